"""What becomes of the samples that judge with a design that branches."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, IntArray
from emsco.designs.branched import Branched, BranchFigures
from emsco.designs.partition import acquired_sets, stage_counts
from emsco.scoring.judge import Judge
from emsco.scoring.tally import Tally


class Forked:
    """Where each sample leaves a design that branches, and with which answer.

    Parameters
    ----------
    judge : Judge
        Knows what the stages say; classifiers are shared by all branches.
    branched : Branched
    branch : ndarray of shape (n_samples,)
        The branch of each sample.

    Attributes
    ----------
    stage, answer : ndarray of shape (n_samples,)
        Stage of its branch at which each sample leaves, and the position of its label.
    labelled : ndarray of shape (n_samples,)
        Whether it gets a label.
    """

    def __init__(self, judge: Judge, branched: Branched, branch: NDArray[np.intp]) -> None:
        n = branch.size
        self.judge, self.branched, self.branch = judge, branched, branch
        self.stage, self.answer = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp)
        self.labelled = np.zeros(n, dtype=np.bool_)
        for b, (row, rule) in enumerate(zip(branched.rows, branched.rules, strict=True)):
            answers, mine = judge.answers(row), np.flatnonzero(branch == b)
            stage, labelled = answers.leaving(rule)
            self.stage[mine], self.labelled[mine] = stage[mine], labelled[mine]
            self.answer[mine] = answers.label[stage[mine], mine]

    @property
    def right(self) -> BoolArray:
        """Which samples get the right label."""
        return np.asarray(self.labelled & (self.answer == self.judge.task.y))

    def confusion(self) -> IntArray:
        """Return how many samples of each true class get each label, and last, none, (n_classes, n_classes + 1)."""
        n = self.judge.task.n_classes
        label = np.where(self.labelled, self.answer, n)
        return np.bincount(self.judge.task.y * (n + 1) + label, minlength=n * (n + 1)).reshape(n, n + 1)

    def figures(self) -> BranchFigures:
        """Return what became of the samples of each branch."""
        n, n_stages = self.branched.n_branches, self.branched.n_stages
        left = np.bincount(self.branch * n_stages + self.stage, minlength=n * n_stages).reshape(n, n_stages)
        ticks = self.judge.task.prices.stage_ticks(acquired_sets(self.branched.rows)[0])
        return BranchFigures(
            left[:, ::-1].cumsum(axis=1)[:, ::-1],
            np.bincount(self.branch[self.labelled], minlength=n),
            np.bincount(self.branch[self.right], minlength=n),
            ticks.cumsum(axis=1) / self.judge.task.prices.scale,
        )

    def tally(self) -> Tally:
        """Return the counts of all branches together, as those of one design."""
        task, figures, confusion = self.judge.task, self.figures(), self.confusion()[None]
        ticks = task.prices.stage_ticks(acquired_sets(self.branched.rows)[0])
        tally = Tally(
            n_samples=task.y.size,
            reached=figures.reached.sum(axis=0, keepdims=True),
            n_conclusive=figures.n_conclusive.sum(keepdims=True),
            n_correct=figures.n_correct.sum(keepdims=True),
            total_ticks=(figures.reached * ticks).sum(keepdims=True).ravel(),
            scale=task.prices.scale,
            least_price=task.prices.least,
        )
        if task.aims is None:
            return tally
        n_stages = np.array([int(stage_counts(self.branched.rows).max())])
        return replace(tally, values=task.aims.score(tally, n_stages, confusion))
