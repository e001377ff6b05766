"""Recipe: how stages learn."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from emsco.data.encoding import ENCODINGS
from emsco.exceptions import InvalidParameterError
from emsco.stages.base import StageTrainer
from emsco.stages.estimator import EstimatorTrainer
from emsco.stages.logistic import LogisticTrainer, scikit_twin
from emsco.stages.problem import Problem

_LARGEST_NEWTON = 600  # weights of one stage; beyond, scikit-learn's solver is faster than ours


@dataclass(frozen=True)
class Recipe:
    """How stages learn.

    Attributes
    ----------
    estimator : classifier or None
        None: l2 logistic regression.
    encoding : str
        Of the columns of numbers.
    C : float
        Inverse strength of the regularisation of the logistic regression.
    products : bool
        Whether it has the products of any two columns, too.
    """

    estimator: Any = None
    encoding: str = "linear"
    C: float = 1.0
    products: bool = False

    def trainer(self, problem: Problem, *, seed: int, n_jobs: int) -> StageTrainer:
        """Return what trains feature sets of a problem."""
        estimator = self.estimator
        if estimator is None:
            if self.n_weights(problem) <= _LARGEST_NEWTON:
                return LogisticTrainer(problem, C=self.C, n_jobs=n_jobs, products=self.products)
            # Newton's method solves for all weights of a set at once; with many classes and columns that does not pay.
            estimator = self.logistic()
        return EstimatorTrainer(problem, estimator, seed=seed, n_jobs=n_jobs)

    def logistic(self) -> Any:
        """Return scikit-learn's twin of our logistic regression."""
        return scikit_twin(self.C, products=self.products)

    def n_weights(self, problem: Problem) -> int:
        """Return the weights of a logistic regression on everything."""
        n_columns = int(problem.train.shape[0])
        if self.products:
            n_columns += n_columns * (n_columns - 1) // 2
        return n_columns * (1 if problem.n_classes == 2 else problem.n_classes)


def boosting() -> Any:
    """Return what the name "boosting" stands for: histogram gradient boosting, with trees small enough for few rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=120, learning_rate=0.08, max_leaf_nodes=12, min_samples_leaf=10, l2_regularization=2.0,
        max_features=0.6, early_stopping=False,
    )  # fmt: skip


def check_learning(encoding: Any, C: Any, *, automatic: bool = True) -> None:
    """Raise unless encoding and C are among what is known."""
    known = (*ENCODINGS, "auto") if automatic else ENCODINGS
    if not isinstance(encoding, str) or encoding not in known:
        raise InvalidParameterError(f"must be one of {', '.join(known)}; got {encoding!r}.", parameter="encoding")
    number = isinstance(C, int | float | np.integer | np.floating) and not isinstance(C, bool)
    if not (automatic and isinstance(C, str) and C == "auto") and not (number and 0 < C < np.inf):
        raise InvalidParameterError(
            f"must be a positive number{' or auto' if automatic else ''}; got {C!r}.", parameter="C"
        )


def check_products(products: Any, estimator: Any) -> bool:
    """Return whether stages have products of columns."""
    if not isinstance(products, bool | np.bool_):
        raise InvalidParameterError(f"must be True or False; got {products!r}.", parameter="products")
    if products and estimator is not None:
        raise InvalidParameterError(
            "is for logistic stages. In Python, put PolynomialFeatures(interaction_only=True) in a pipeline before an "
            "estimator of your own.",
            parameter="products",
        )
    return bool(products)


def check_estimator(estimator: Any, name: str) -> Any:
    """Return the classifier that a parameter stands for."""
    if isinstance(estimator, str):
        if estimator != "boosting":
            raise InvalidParameterError(f"must be a classifier, 'boosting' or None; got {estimator!r}.", parameter=name)
        return boosting()
    return estimator
