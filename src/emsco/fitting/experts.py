"""Classifiers of a branch, judged by the rows of that branch, each by folds that did not train on it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, IntArray
from emsco.data.table import Rows
from emsco.designs.branched import Route
from emsco.fitting.rehearsal import Rehearsal
from emsco.fitting.routes import Root, branches_of
from emsco.scoring.judge import Judge
from emsco.stages.base import FeatureSets, StageModel, StageOutcomes, StageTrainer
from emsco.stages.crossfit import CrossFitTrainer
from emsco.stages.problem import Problem
from emsco.stages.recipe import Recipe

WEIGHT = 4  # times that the rows of a branch count where all rows train
_ENOUGH = 100  # training rows of a branch, from which on classifiers of its own are tried
_OF_EACH = 3  # training rows of each class that these need


@dataclass(frozen=True, eq=False)
class Sorted:
    """Which branch each row takes.

    Attributes
    ----------
    root : Root
    everyone : ndarray of shape (n_rows,)
        Branch of each row of the table that trains.
    judged : ndarray of shape (n_samples,)
        Branch of each sample that judges, fold after fold.
    """

    root: Root
    everyone: NDArray[np.intp]
    judged: NDArray[np.intp]

    @property
    def route(self) -> Route:
        """The route of the root."""
        return self.root.route


def sorted_by(root: Root, rehearsal: Rehearsal, judge: Judge) -> Sorted:
    """Send all rows down their branches.

    For a route by leaning, the labels are those of classifiers that were not trained on the row; every row must have
    one.
    """
    table = rehearsal.table
    leaning: IntArray | None = None
    rows = judged_rows(rehearsal)
    if root.route.kind == "leaning":
        assert rows is not None
        leaning = np.full(table.n_rows, -1, dtype=np.int64)
        leaning[rows] = judge.cache.outcomes(root.units[None]).label[0]
    everyone = branches_of(root.route, table, leaning)
    if rows is None:
        assert rehearsal.judges is not None
        return Sorted(root, everyone, branches_of(root.route, rehearsal.judges[0]))
    return Sorted(root, everyone, everyone[rows])


def judged_rows(rehearsal: Rehearsal) -> NDArray[np.intp] | None:
    """Return the rows of the table that judge, fold after fold; None if they are of another one."""
    return None if rehearsal.folds is None else np.concatenate([judges for _, judges in rehearsal.folds])


class ExpertTrainer:
    """Trains feature sets for one branch; what the root says is that of the classifier which all branches share.

    Parameters
    ----------
    trainer : StageTrainer
        Of the other feature sets, with the rows of the branch as its samples.
    root : ndarray of shape (n_units,)
    told : StageOutcomes
        What the shared classifier of the root says of the samples, one row.
    """

    def __init__(self, trainer: StageTrainer, root: BoolArray, told: StageOutcomes) -> None:
        self._trainer = trainer
        self._root, self._told = root, told
        self.memory_dtype = trainer.memory_dtype

    def train(self, feature_sets: FeatureSets) -> NDArray[Any]:
        """Train each set."""
        return self._trainer.train(feature_sets)

    def outcomes(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> StageOutcomes:
        """Return the outcomes of trained sets."""
        found = self._trainer.outcomes(feature_sets, memory)
        is_root = (feature_sets == self._root).all(axis=1)
        if is_root.any():
            found.confidence[is_root], found.label[is_root] = self._told.confidence, self._told.label
        return found

    def models(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> list[StageModel]:
        """Return the models of trained sets, for deployment."""
        return self._trainer.models(feature_sets, memory)


class SharedTrainer:
    """The classifiers of chains, as the rows of one branch see them.

    Parameters
    ----------
    judge : Judge
        Of chains.
    samples : ndarray of int
        Its samples that are in the branch.
    """

    memory_dtype = np.dtype(np.uint8)

    def __init__(self, judge: Judge, samples: NDArray[np.intp]) -> None:
        self._judge, self._samples = judge, samples

    def train(self, feature_sets: FeatureSets) -> NDArray[Any]:
        """Have each set trained."""
        for i in range(0, len(feature_sets), self._judge.cache.capacity):
            self._judge.cache.slots(feature_sets[i : i + self._judge.cache.capacity])
        return np.zeros(len(feature_sets), dtype=self.memory_dtype)

    def outcomes(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> StageOutcomes:
        """Return the outcomes of trained sets."""
        found = self._judge.cache.outcomes(feature_sets)
        return StageOutcomes(found.confidence[:, self._samples], found.label[:, self._samples])

    def models(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> list[StageModel]:
        """Return the models of trained sets, for deployment."""
        return self._judge.cache.models(feature_sets)


def kinds_of(
    sent: Sorted, branch: int, rehearsal: Rehearsal, codes: IntArray, *, asked: str, shares: bool
) -> list[str]:
    """Return which kinds of classifiers are tried in a branch.

    Parameters
    ----------
    sent : Sorted
    branch : int
    rehearsal : Rehearsal
    codes : ndarray of shape (n_rows,)
        Class indices of the table.
    asked : str
        What the user wants.
    shares : bool
        Whether the classifiers of chains are fast to train.
    """
    if asked != "auto":
        return [asked]
    trained = [rehearsal.learn] if rehearsal.folds is None else [train for train, _ in rehearsal.folds]
    counts = [_class_counts(rows, sent.everyone == branch, codes, rehearsal.n_classes) for rows in trained]
    known = np.bincount(codes[rehearsal.learn], minlength=rehearsal.n_classes) > 0
    enough = all(each.sum() >= _ENOUGH * 0.8 and each[known].min() >= _OF_EACH for each in counts)
    return [*(["own"] if enough else []), "weighted", *(["shared"] if shares else [])]


def _class_counts(rows: Rows, inside: BoolArray, codes: IntArray, n_classes: int) -> IntArray:
    return np.bincount(codes[rows][inside[rows]], minlength=n_classes)


def expert_judge(
    sent: Sorted, branch: int, kind: str, judge: Judge, rehearsal: Rehearsal, recipe: Recipe, *, seed: int
) -> Judge:
    """Return a judge of the classifiers of a branch, whose samples are those of the branch."""
    samples = np.flatnonzero(sent.judged == branch)
    task = replace(judge.task, y=judge.task.y[samples])
    if kind == "shared":
        return Judge(task, SharedTrainer(judge, samples))
    trainers: list[StageTrainer] = []
    problems = [problem for problem, _ in rehearsal.problems(recipe.encoding)]
    trained: list[Rows] = [rehearsal.learn] if rehearsal.folds is None else [train for train, _ in rehearsal.folds]
    start = 0
    for problem, rows in zip(problems, trained, strict=True):
        inside = sent.everyone[rows] == branch
        judged = sent.judged[start : start + problem.n_validation] == branch
        start += problem.n_validation
        trainers.append(recipe.trainer(_of_branch(problem, kind, inside, judged), seed=seed, n_jobs=1))
    whole = trainers[0]
    if rehearsal.crosses:
        ((problem, _),) = rehearsal.everything().problems(recipe.encoding)
        inside = sent.everyone[rehearsal.learn] == branch
        none = np.zeros(problem.n_validation, dtype=np.bool_)
        whole = recipe.trainer(_of_branch(problem, kind, inside, none), seed=seed, n_jobs=1)
    trainer = CrossFitTrainer(trainers, whole)
    told = judge.cache.outcomes(sent.root.units[None])
    own = StageOutcomes(told.confidence[:, samples], told.label[:, samples])
    return Judge(task, ExpertTrainer(trainer, sent.root.units, own))


def _of_branch(problem: Problem, kind: str, inside: BoolArray, judged: BoolArray) -> Problem:
    """Return the problem of a branch: rows that train, by kind of classifier, and those of the branch that judge."""
    rows = np.flatnonzero(inside)
    if kind == "weighted":
        rows = np.concatenate([np.arange(inside.size), np.tile(rows, WEIGHT - 1)])
    return replace(
        problem,
        train=np.ascontiguousarray(problem.train[:, rows]),
        y_train=problem.y_train[rows],
        validation=np.ascontiguousarray(problem.validation[:, judged]),
        y_validation=problem.y_validation[judged],
    )
