"""Recipe: the training settings of stages."""

from dataclasses import dataclass
from typing import Any

from emsco.checks import n_threads
from emsco.stages.base import StageTrainer
from emsco.stages.estimator import EstimatorTrainer
from emsco.stages.logistic import LogisticTrainer, scikit_twin
from emsco.stages.problem import Problem

_TOLERANCE = 1e-5  # of scikit-learn's solver, whose last digits take longest
_LARGEST_NEWTON = 600  # weights of one stage; beyond, scikit-learn's solver is faster than ours


@dataclass(frozen=True)
class Recipe:
    """The training settings of stages.

    Attributes
    ----------
    estimator : classifier or None
        None: l2 logistic regression.
    encoding : str
        Encoding of numeric columns.
    C : float
        Inverse strength of the regularisation of the logistic regression.
    products : bool
        Whether it also uses the products of all pairs of columns.
    kind : str or None
        Name of the learner, if a race of learners was won by it.
    """

    estimator: Any = None
    encoding: str = "linear"
    C: float = 1.0
    products: bool = False
    kind: str | None = None

    def trainer(self, problem: Problem, *, seed: int, n_jobs: int, like: StageTrainer | None = None) -> StageTrainer:
        """Return the trainer for feature sets of a problem.

        ``like`` is a trainer of the same problem that differs at most in C; the two share their arrays.
        """
        estimator = self.estimator
        if estimator is None:
            if isinstance(like, LogisticTrainer):
                return like.with_strength(self.C)
            if self.is_batched(problem):
                return LogisticTrainer(problem, C=self.C, n_jobs=n_threads(n_jobs), products=self.products)
            # Newton's method solves for all weights of a set at once; with many classes and columns this is slow.
            estimator = scikit_twin(self.C, products=self.products, tol=_TOLERANCE)
        return EstimatorTrainer(problem, estimator, seed=seed, n_jobs=n_jobs)

    def is_batched(self, problem: Problem) -> bool:
        """Return whether feature sets are trained in batches, fast enough to search with."""
        return self.estimator is None and self.n_weights(problem) <= _LARGEST_NEWTON

    def logistic(self) -> Any:
        """Return scikit-learn's equivalent of our logistic regression."""
        return scikit_twin(self.C, products=self.products)

    def n_weights(self, problem: Problem) -> int:
        """Return the number of weights of a logistic regression on all columns."""
        n_columns = int(problem.train.shape[0])
        if self.products:
            n_columns += n_columns * (n_columns - 1) // 2
        return n_columns * (1 if problem.n_classes == 2 else problem.n_classes)
