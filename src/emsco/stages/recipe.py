"""Recipe: how stages learn."""

from dataclasses import dataclass
from typing import Any

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

    def trainer(self, problem: Problem, *, seed: int, n_jobs: int, like: StageTrainer | None = None) -> StageTrainer:
        """Return what trains feature sets of a problem.

        ``like`` is one of the same problem that differs in C at most; what they share is not made again.
        """
        estimator = self.estimator
        if estimator is None:
            if isinstance(like, LogisticTrainer):
                return like.with_strength(self.C)
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
