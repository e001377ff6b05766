"""Gates of all stages learned together, by a linear program (BASELINES §5.2)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar
import warnings

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from emsco.baselines.base import Candidate, Figures, FloatArray, Rival, combined
from emsco.baselines.price_stages import LinearGate, Walk, gate_inputs, held_out, make_folds, train_by_price
from emsco.baselines.settings import check_count, check_grid, check_positive
from emsco.exceptions import InvalidParameterError
from emsco.stages.problem import Problem


class StageLP(Rival):
    """The linear program of Wang, Trapeznikov & Saligrama (2014) for the gates of a cascade.

    Stages are fixed, the cheapest features first. A case that leaves at a stage loses 1 if the label is wrong, plus its
    cost as a share of the total, times a price weight, which is tuned. The loss of a case is exactly a maximum over
    stages of sums of gate indicators. Hinges instead of the indicators make it convex, and the gates of all stages are
    one linear program, solved by HiGHS. The losses on training rows are cross-validated.

    Parameters
    ----------
    threshold : float
        Least confidence of a label.
    price_weights : array-like
        Values to choose from.
    inputs : sequence of {"features", "confidence"}
        Inputs of a linear gate, to choose from: the columns known at its stage, or the top probability there and its
        lead over the second.
    shrinkage : float
        Weight of the l1 norm of the gates' weights.
    max_stages : int or None
        If there are more distinct prices, neighbouring prices share a stage. None: one stage per price.
    C : float
        Inverse regularisation strength of the stages.
    n_folds : int
        Number of cross-validation folds of the training rows.
    max_rows : int
        Largest number of training rows for the gates; from more rows, a random sample is drawn. The program takes
        seconds for 1000 rows, and minutes for 3000.
    criterion : callable
        Function of `Figures` to maximise on the validation rows.
    validation : float
        Share of validation rows, unless ``fit`` receives validation rows.
    random_state : int, RandomState or None
        Seeds the split and the folds.

    Notes
    -----
    The hinges are loose if gates cannot identify the cases that gain by continuing: a large price weight sends all
    cases to the first stage, and a weight of 0 need not send all cases to the last.
    """

    grids: ClassVar[Mapping[str, str]] = {"price_weight": "price_weights", "inputs": "inputs"}

    def __init__(
        self,
        threshold: float = 0.75,
        price_weights: ArrayLike = (0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1),
        inputs: Sequence[str] = ("features", "confidence"),
        shrinkage: float = 1e-4,
        max_stages: int | None = 5,
        C: float = 1.0,
        n_folds: int = 5,
        max_rows: int = 1000,
        criterion: Callable[[Figures], float] = combined,
        validation: float = 1 / 3,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.price_weights = price_weights
        self.inputs = inputs
        self.shrinkage = shrinkage
        self.max_stages = max_stages
        self.C = C
        self.n_folds = n_folds
        self.max_rows = max_rows
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        grid = check_grid(self.price_weights, "price_weights")
        shrinkage = check_positive(self.shrinkage, "shrinkage")
        most = None if self.max_stages is None else check_count(self.max_stages, "max_stages", 1)
        C, n_folds = check_positive(self.C, "C"), check_count(self.n_folds, "n_folds", 2)
        max_rows = check_count(self.max_rows, "max_rows", 1)
        kinds = ("features", "confidence")
        if not isinstance(self.inputs, list | tuple) or not all(kind in kinds for kind in self.inputs):
            raise InvalidParameterError(f"inputs must be a list of 'features' and 'confidence'; got {self.inputs!r}.")
        stages = train_by_price(problem, C=C, max_stages=most)
        rng = np.random.default_rng(seed)
        answers = held_out(problem, stages, make_folds(problem.y_train, n_folds, rng), C=C)
        rows = np.sort(rng.permutation(problem.y_train.size)[:max_rows])
        answers, known = answers[:, rows], problem.train[:, rows]
        wrong = answers.argmax(axis=2) != problem.y_train[rows]
        seen = [gate_inputs(known[c], a) for c, a in zip(stages.columns[:-1], answers, strict=False)]
        for weight in grid:
            losses = (wrong + weight * stages.shares[:, None]).T
            for kind in self.inputs:
                used = [slice(0, -2) if kind == "features" else slice(-2, None) for _ in seen]
                weights = learn_gates([s[u] for s, u in zip(seen, used, strict=True)], losses, shrinkage)[0]
                gates = []
                for inputs, part, w in zip(seen, used, weights, strict=True):
                    full = np.zeros(len(inputs))
                    full[part] = w[:-1]
                    gates.append(LinearGate(full, float(w[-1])))
                yield Candidate({"price_weight": float(weight), "inputs": kind}, Walk(stages, gates))


def savings(losses: FloatArray) -> FloatArray:
    """Return the savings of each stage for a row, compared with its worst stage, (n_rows, n_stages)."""
    return np.asarray(losses.max(axis=1, keepdims=True) - losses)


def learn_gates(inputs: Sequence[FloatArray], losses: FloatArray, shrinkage: float) -> tuple[list[FloatArray], float]:
    """Return the weights of the gates, the intercept last, and the mean of the convex bound of the losses.

    With hard gates a row that leaves at stage e loses max(losses) - sum(savings) + max_m V_m = losses[e], where
    V_m = sum of savings[j] over j < m with an open gate + sum of savings[l] over l > m, if gate m is closed. An open
    gate j becomes the hinge a_j = (1 + g_j)+, a closed one b_j = (1 - g_j)+, and the maximum the variable t.

    Parameters
    ----------
    inputs : list of ndarray of shape (n_inputs, n_rows)
        Inputs of the gates of all stages except the last.
    losses : ndarray of shape (n_rows, n_stages)
        Losses of leaving at each stage.
    shrinkage : float
    """
    if not inputs:
        return [], 0.0
    n_rows, n_stages = losses.shape
    saved = savings(losses)
    later = saved.sum(axis=1, keepdims=True) - saved.cumsum(axis=1)  # saved by all later stages together
    columns = [np.vstack([z, np.ones(n_rows)]).T for z in inputs]
    gates: Any = sparse.block_diag(columns)
    n_hinges, n_weights = gates.shape
    hinges, rows = sparse.eye_array(n_hinges), sparse.eye_array(n_rows)
    # Variables: weights as a difference of two parts of at least 0, hinges a and b gate after gate, bounds t.
    blocks: list[list[Any]] = [[gates, -gates, -hinges, None, None], [-gates, gates, None, -hinges, None]]
    for m in range(n_stages):
        opened = sparse.hstack([sparse.diags_array(saved[:, j] * (j < m)) for j in range(n_stages - 1)])
        closed = sparse.hstack([sparse.diags_array(later[:, j] * (j == m)) for j in range(n_stages - 1)])
        blocks.append([None, None, opened, closed, -rows])
    A: Any = sparse.block_array(blocks, format="csc")
    A.eliminate_zeros()
    limits = np.concatenate([-np.ones(2 * n_hinges), np.zeros(n_stages * n_rows)])
    price = np.concatenate([np.full(2 * n_weights, shrinkage), np.zeros(2 * n_hinges), np.full(n_rows, 1 / n_rows)])
    result = linprog(price, A_ub=A, b_ub=limits, method="highs")
    if result.x is None:
        warnings.warn(f"HiGHS did not find the gates: {result.message}", ConvergenceWarning, stacklevel=2)
        return [np.zeros(c.shape[1]) for c in columns], np.inf
    weights = result.x[:n_weights] - result.x[n_weights : 2 * n_weights]
    return np.split(weights, np.cumsum([c.shape[1] for c in columns])[:-1]), float(result.x[-n_rows:].mean())
