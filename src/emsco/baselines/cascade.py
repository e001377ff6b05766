"""A cascade in the manner of Viola and Jones: stages that may only dismiss the most frequent class early."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from emsco.baselines.base import BoolArray, Candidate, Figures, FloatArray, Rival, combined
from emsco.baselines.grid import numbers
from emsco.baselines.price_stages import Walk, held_out, make_folds, train_by_price
from emsco.baselines.settings import check_count
from emsco.exceptions import InvalidParameterError
from emsco.stages.problem import Problem


class DetectorCascade(Rival):
    """Stages in the order of prices; each one dismisses cases as background, the others go on (Viola & Jones, 2001).

    The background is the most frequent class. A stage dismisses a case if the background is more probable than a level,
    which is set so that of the other cases that reach the stage a share of ``detection`` goes on. The last stage, which
    has all features, decides about the rest; cases below the threshold are rejected. A cascade thus saves money only on
    the background.

    Parameters
    ----------
    threshold : float
        Least confidence of a label.
    detections : sequence of float
        Shares of the other cases that each stage has to pass on, between 0 and 1.
    max_stages : sequence of int
        Largest number of stages: neighbouring prices are merged.
    C : sequence of float
        Inverse regularisation strengths of the stages.
    n_folds : int
        Levels are set by confidences from cross-validation on the training rows.
    criterion, validation, random_state
        As in every method.

    Notes
    -----
    The publication boosts stumps on image features, chooses them stage by stage, has two classes and no reject. Here,
    stages are l2 logistic regressions on units of growing price, as in CO-T, which differs only in its exits: it lets
    any class leave at any stage.
    """

    grids: ClassVar[Mapping[str, str]] = {"detection": "detections", "max_stages": "max_stages", "C": "C"}

    def __init__(
        self,
        threshold: float = 0.75,
        detections: Sequence[float] = (0.8, 0.9, 0.95, 0.98, 0.99, 1.0),
        max_stages: Sequence[int] = (2, 3, 5),
        C: Sequence[float] = (0.1, 1.0, 10.0),
        n_folds: int = 5,
        criterion: Callable[[Figures], float] = combined,
        validation: float = 1 / 3,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.detections = detections
        self.max_stages = max_stages
        self.C = C
        self.n_folds = n_folds
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        detections = numbers(self.detections, "detections")
        if max(detections) > 1:
            raise InvalidParameterError(f"detections must be shares between 0 and 1; got {self.detections!r}.")
        n_folds = check_count(self.n_folds, "n_folds", 2)
        sizes = [check_count(size, "max_stages", 1) for size in self.max_stages]
        folds = make_folds(problem.y_train, n_folds, np.random.default_rng(seed))
        background = int(np.bincount(problem.y_train).argmax())
        for size, C in product(sizes, numbers(self.C, "C", least=1e-12)):
            stages = train_by_price(problem, C=C, max_stages=size)
            answers = held_out(problem, stages, folds, C=C)[:-1, :, background]
            for detection in sorted(detections):
                levels = dismissal_levels(answers, problem.y_train != background, detection)
                gates = [_UnlessBackground(background, level) for level in levels]
                yield Candidate({"detection": detection, "max_stages": size, "C": C}, Walk(stages, gates))


def dismissal_levels(background: FloatArray, wanted: BoolArray, detection: float) -> list[float]:
    """Return, for each stage, the probability of the background above which it dismisses a case.

    Of the wanted cases that reach a stage, at least a share of ``detection`` goes on; if none reaches it, all cases do.

    Parameters
    ----------
    background : ndarray of shape (n_stages, n_rows)
        Probability of the background.
    wanted : ndarray of shape (n_rows,)
        Cases of other classes.
    detection : float

    Examples
    --------
    >>> dismissal_levels(np.array([[0.1, 0.5, 0.9, 0.7]]), np.array([True, True, True, False]), 0.6)
    [0.5]
    """
    levels = []
    reached = np.ones(wanted.size, dtype=np.bool_)
    for stage in background:
        rows = np.sort(stage[reached & wanted])
        n_kept = int(np.ceil(detection * rows.size - 1e-9))
        level = float(rows[n_kept - 1]) if n_kept else (np.inf if not rows.size else -np.inf)
        levels.append(level)
        reached &= stage <= level
    return levels


class _UnlessBackground:
    """Continues unless the background is more probable than a level."""

    def __init__(self, background: int, level: float) -> None:
        self._background, self._level = background, level

    def continues(self, known: FloatArray, probabilities: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(probabilities[:, self._background] <= self._level)
