"""Judge: trains feature sets, each once, and counts what designs make of the rows that judge."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.designs.operators.elitism import unique_vectors
from emsco.designs.partition import acquired_sets, stage_counts
from emsco.prices.errors import ErrorPrices
from emsco.prices.prices import PriceList
from emsco.scoring.answers import Answers
from emsco.scoring.cache import StageCache, Store, sets_at_once
from emsco.scoring.cascade import Cascade
from emsco.scoring.front import Front, make_front
from emsco.scoring.objectives import Aims, Chosen, Objectives, combined_score, measure
from emsco.scoring.ranking import nondominated
from emsco.scoring.rejection import RejectRule
from emsco.scoring.tally import Tally
from emsco.stages.base import StageOutcomes, StageTrainer

_LEAST_PROBABILITY = 1e-6
TEMPERATURES = (0.35, 0.5, 0.7, 0.85, 1.2, 1.45, 1.75, 2.1, 2.5, 3.0, 4.0)  # by which confidences may be off
WORTH_AT = (0.6, 0.75, 0.9, 0.97)  # thresholds at which learners are compared


@dataclass(frozen=True, eq=False)
class Task:
    """Which designs are looked for, and what they are to be good at.

    Attributes
    ----------
    y : ndarray of shape (n_samples,)
        Class indices of the samples that judge.
    n_classes : int
    prices : PriceList
    rule : RejectRule
        When a label is given, while designs are searched.
    aims : Aims or None
        What is compared; None: the paper's objectives.
    max_stages : int
    removal : bool
        Whether designs may leave units out.
    cache_bytes : int
        Memory for what feature sets say.
    tunes : bool
        Whether each design gets thresholds of its own after the search.
    errors : ErrorPrices or None
        If errors have prices, the second row of ``rule`` is that of the last stage of each design.
    """

    y: IntArray
    n_classes: int
    prices: PriceList
    rule: RejectRule
    aims: Aims | None
    max_stages: int
    removal: bool
    cache_bytes: int
    tunes: bool = False
    errors: ErrorPrices | None = None

    def measure(self, tally: Tally) -> Objectives | Chosen:
        """Return the objectives of counts."""
        return measure(tally) if self.aims is None else self.aims.measure(tally)

    def score(self, tally: Tally) -> FloatArray:
        """Return the combined score of counts."""
        return combined_score(tally, self.prices.total)

    def best(self, tally: Tally, *keys: NDArray[Any]) -> NDArray[np.intp]:
        """Return which counts are non-dominated, each objective vector once: the least of equals by these keys."""
        best = np.flatnonzero(nondominated(self.measure(tally)))
        order = np.lexsort([key[best] for key in reversed(keys)]) if keys else np.arange(best.size)
        return best[unique_vectors(order, tally.select(best).vectors)]

    def front(self, designs: IntArray, tally: Tally) -> Front:
        """Return the front of designs; of equals, that with the fewest stages, then units, then the first."""
        best = self.best(tally, stage_counts(designs), (designs >= 0).sum(axis=1))
        kind = np.unique(tally.vectors, axis=0, return_inverse=True)[1].ravel()
        ties = [designs[kind == kind[i]] for i in best]
        n_ties = np.array([len(tied) for tied in ties])
        return make_front(designs[best], tally.select(best), n_ties, ties, self.prices, aims=self.aims)


class Judge:
    """What the stages of one learner make of the samples that judge.

    Parameters
    ----------
    task : Task
    trainer : StageTrainer
    store : Store or None
        Keeps what feature sets say beyond this run.
    fast : bool
        Whether feature sets are trained in batches, fast enough to order units by them.

    Attributes
    ----------
    task, trainer, fast
        As given.
    cache : StageCache
        What the feature sets trained so far say.
    """

    def __init__(self, task: Task, trainer: StageTrainer, store: Store | None = None, *, fast: bool = True) -> None:
        aims = task.aims
        self.task = task
        self.trainer = trainer
        self.fast = fast
        self.cache = StageCache(
            trainer,
            task.y,
            n_units=task.prices.n_units,
            threshold=task.rule,
            max_bytes=task.cache_bytes,
            store=store,
            n_classes=task.n_classes if aims is not None and aims.by_class else 0,
            n_answers=0 if task.errors is None else task.errors.n_answers,
        )
        score, last_differs = None if aims is None else aims.score, task.errors is not None
        self._cascade = Cascade(self.cache, task.prices, score, last_differs=last_differs)

    def tally(self, designs: IntArray) -> Tally:
        """Count designs."""
        return self._cascade.tally(designs)

    def sureness(self, sets: BoolArray) -> FloatArray:
        """Return how sure feature sets are of the truth; only some of them are looked at at a time."""
        task = self.task
        step = min(sets_at_once(task.y.size), self.cache.capacity)
        parts = (self.cache.outcomes(sets[i : i + step]) for i in range(0, len(sets), step))
        return np.concatenate([sureness(outcomes, task.y, task.n_classes) for outcomes in parts])

    def answers(self, design: IntArray) -> Answers:
        """Return what the stages of a design say."""
        outcomes = self.cache.outcomes(acquired_sets(design[None])[0][0])
        n_classes = None if self.task.errors is None else self.task.n_classes
        return Answers(outcomes.confidence, outcomes.label, self.task.y, n_classes)


def sureness(outcomes: StageOutcomes, y: IntArray, n_classes: int) -> NDArray[np.float64]:
    """Return the mean log probability that feature sets give to the truth, as far as outcomes tell it."""
    return np.asarray(likelihoods(outcomes, y, n_classes).mean(axis=1))


def likelihoods(outcomes: StageOutcomes, y: IntArray, n_classes: int) -> NDArray[np.float64]:
    """Return the log probability that feature sets give to the true class of each sample, as far as outcomes tell it.

    Of a wrong label, what is left is shared by the other classes.
    """
    right = outcomes.label == y
    chance = np.where(right, outcomes.confidence, (1 - outcomes.confidence) / (n_classes - 1))
    return np.asarray(np.log(np.maximum(chance, _LEAST_PROBABILITY)))


def tempered(outcomes: StageOutcomes, y: IntArray, n_classes: int) -> NDArray[np.float64]:
    """Return what ``likelihoods`` does, with the confidences of each set divided by the temperature that suits it best.

    Where each point has thresholds of its own it does not matter whether confidences are too high or too low in
    general, only whether the truth is told apart.
    """
    best = likelihoods(outcomes, y, n_classes)
    for temperature in TEMPERATURES:
        odds = ((1 - outcomes.confidence) / (n_classes - 1) / np.maximum(outcomes.confidence, _LEAST_PROBABILITY)) ** (
            1 / temperature
        )
        cooled = StageOutcomes(1 / (1 + (n_classes - 1) * odds), outcomes.label)
        rows = likelihoods(cooled, y, n_classes)
        better = rows.mean(axis=1) > best.mean(axis=1)
        best[better] = rows[better]
    return best


def worth(outcomes: StageOutcomes, y: IntArray) -> FloatArray:
    """Return what feature sets are worth on average over several thresholds, between 1 and less than 0.

    At a threshold t a right label is worth 1 and a wrong one costs t / (1 - t): a label of confidence t is worth
    nothing. What always answering the largest class gains, every learner gains.
    """
    right = outcomes.label == y
    total = right.mean(axis=1)  # at 0 everybody gets a label
    for bar in WORTH_AT:
        given = outcomes.confidence >= bar
        total = total + (given & right).mean(axis=1) - bar / (1 - bar) * (given & ~right).mean(axis=1)
    return np.asarray(total / (1 + len(WORTH_AT)))
