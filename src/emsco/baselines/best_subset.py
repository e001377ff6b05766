"""Best subset: the k units that explain the classes best together, as a single stage with a reject (abess)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar
import warnings

import numpy as np

from emsco.baselines.base import BoolArray, Candidate, Figures, FloatArray, Rival, Trace, combined
from emsco.baselines.grid import numbers, whole_numbers
from emsco.stages.base import StageModel
from emsco.stages.logistic import LogisticTrainer
from emsco.stages.problem import Problem

_RIDGE = 1e-3  # of the selection: without any, separable classes have no finite weights


class BestSubset(Rival):
    """Adaptive best subset selection (Zhu et al., PNAS 2020) of whole units; every case pays for the chosen ones.

    For each k, abess looks for the k units whose logistic regression fits the training rows best. A logistic regression
    with the usual penalty is then trained on them, so that its confidence compares with that of other methods. Cases
    below the threshold are rejected. The selection does not know the prices; the tuning does. Needs abess.

    Parameters
    ----------
    threshold : float
        Least confidence of a label.
    n_units : sequence of int
        Numbers of units (k) to choose from; those above the number of units count once, as all of them.
    C : sequence of float
        Inverse regularisation strengths of the final regression.
    criterion, validation, random_state
        As in every method.
    """

    grids: ClassVar[Mapping[str, str]] = {"n_units": "n_units", "C": "C"}

    def __init__(
        self,
        threshold: float = 0.75,
        n_units: Sequence[int] = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 50),
        C: Sequence[float] = (0.1, 1.0, 10.0),
        criterion: Callable[[Figures], float] = combined,
        validation: float = 1 / 3,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.n_units = n_units
        self.C = C
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        most = problem.prices.n_units
        sizes = sorted({min(k, most) for k in whole_numbers(self.n_units, "n_units")})
        strengths = numbers(self.C, "C", least=1e-12)
        chosen = np.array([best_subset(problem, size) for size in sizes])
        for C in strengths:
            trainer = LogisticTrainer(problem, C=C)
            models = trainer.models(chosen, trainer.train(chosen))
            for size, units, model in zip(sizes, chosen, models, strict=True):
                yield Candidate({"n_units": size, "C": C}, _Subset(model, problem.unit_columns[units].any(axis=0)))


def best_subset(problem: Problem, n_units: int) -> BoolArray:
    """Return the units of the best logistic regression on ``n_units`` units, as a mask of shape (n_units,)."""
    units = np.zeros(problem.prices.n_units, dtype=np.bool_)
    owner = problem.unit_columns.argmax(axis=0)
    varies = np.ptp(problem.train, axis=1) > 0
    columns = np.flatnonzero(varies & problem.unit_columns.any(axis=0))
    columns = columns[np.argsort(owner[columns], kind="stable")]
    owners, group = np.unique(owner[columns], return_inverse=True)  # abess wants the groups numbered in order
    if n_units >= owners.size:
        units[owners] = True
        return units
    weights = _fitted(problem, columns, group, n_units)
    units[owner[columns[(weights != 0).any(axis=1)]]] = True
    return units


def _fitted(problem: Problem, columns: Any, group: Any, n_units: int) -> FloatArray:
    """Return the weights of each column, (n_columns, n_outputs)."""
    from abess import LogisticRegression, MultinomialRegression

    kind = LogisticRegression if problem.n_classes == 2 else MultinomialRegression
    model = kind(support_size=[n_units], group=group.tolist(), alpha=_RIDGE, thread=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # abess uses what scikit-learn and NumPy are about to remove
        model.fit(np.ascontiguousarray(problem.train[columns].T), np.asarray(problem.y_train))
    return np.asarray(model.coef_, dtype=np.float64).reshape(columns.size, -1)


class _Subset:
    """A logistic regression that reads the same columns of every case."""

    def __init__(self, model: StageModel, columns: BoolArray) -> None:
        self._model, self._columns = model, np.flatnonzero(columns)

    def trace(self, Z: FloatArray) -> Trace:
        read = np.zeros((Z.shape[1], len(Z)), dtype=np.bool_)
        read[:, self._columns] = True
        answers = self._model.predict_proba(Z[self._columns].T)
        return Trace(answers, read, np.zeros(Z.shape[1], dtype=np.intp))
