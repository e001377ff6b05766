"""CO-T: one stage per distinct price, the cheapest first (BASELINES §8.1)."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from emsco.baselines.base import BoolArray, Candidate, Figures, FloatArray, Rival, combined
from emsco.baselines.price_stages import Walk, train_by_price
from emsco.baselines.settings import check_positive
from emsco.scoring.rejection import check_threshold, is_confident
from emsco.stages.base import outcomes_of
from emsco.stages.problem import Problem


class CostOrdered(Rival):
    """CO-T of Hamilton & Fulp (2021): one stage per price, the cheapest features first.

    A case leaves at the first stage that is confident, as in EMSCO. If no stage is confident, it is rejected. Stages
    are l2 logistic regressions, as in EMSCO. A unit has the price that it costs alone, including the shared cost of its
    group.

    Parameters
    ----------
    threshold : float
        Least confidence of a label, at every stage. Set it before ``fit``.
    C : float
        Inverse regularisation strength.
    criterion, validation, random_state
        As in every method; nothing is tuned here.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> CostOrdered(threshold=0.8).fit(X, y, costs=[1, 1, 5, 5]).decide(X)
    <Decisions of 150 rows: 125 conclusive, mean cost 7.6, left at stages [66, 84]>
    """

    tunes: ClassVar[bool] = False

    def __init__(
        self,
        threshold: float = 0.75,
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
        stages = train_by_price(problem, C=check_positive(self.C, "C"))
        gate = _UntilConfident(check_threshold(self.threshold))
        yield Candidate({"n_stages": len(stages.sets)}, Walk(stages, [gate] * (len(stages.sets) - 1)))


class _UntilConfident:
    """Continues below the threshold."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold

    def continues(self, known: FloatArray, probabilities: FloatArray) -> BoolArray:
        return np.asarray(~is_confident(outcomes_of(probabilities)[0], self._threshold))
