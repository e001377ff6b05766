"""Single-Stage: one classifier on all features, with or without the reject (BASELINES §8.3)."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from emsco.baselines.base import Candidate, Figures, FloatArray, Rival, Trace, combined
from emsco.stages.base import StageModel
from emsco.stages.logistic import LogisticTrainer
from emsco.stages.problem import Problem


class SingleStage(Rival):
    """One l2 logistic regression on all features; every case pays for everything.

    Parameters
    ----------
    threshold : float
        Least confidence of a label; 0 gives a label to every case, as in the paper.
    C : float
        Inverse regularisation strength.
    criterion, validation, random_state
        As in every method; nothing is tuned here.
    """

    tunes: ClassVar[bool] = False

    def __init__(
        self,
        threshold: float = 0.0,
        C: float = 1.0,
        criterion: Callable[[Figures], float] = combined,
        validation: float = 1 / 3,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.C = C
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        everything = np.ones((1, problem.prices.n_units), dtype=np.bool_)
        trainer = LogisticTrainer(problem, C=self.C)
        yield Candidate({"C": self.C}, _Everything(trainer.models(everything, trainer.train(everything))[0]))


class _Everything:
    """A model that reads all columns of every case."""

    def __init__(self, model: StageModel) -> None:
        self._model = model

    def trace(self, Z: FloatArray) -> Trace:
        n_encoded, n_rows = Z.shape
        return Trace(
            self._model.predict_proba(Z.T),
            np.ones((n_rows, n_encoded), dtype=np.bool_),
            np.zeros(n_rows, dtype=np.intp),
        )
