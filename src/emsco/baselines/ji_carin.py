"""Sequential acquisition by class densities, after Ji & Carin 2007 (BASELINES §7.1)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from emsco.baselines.base import BoolArray, Candidate, Figures, FloatArray, Rival, Trace, combined
from emsco.baselines.grid import numbers, whole_numbers
from emsco.baselines.settings import check_count, check_positive
from emsco.exceptions import InvalidParameterError
from emsco.stages.problem import Problem

PRICE_WEIGHTS = tuple(np.logspace(-3, 1, 9).tolist())
MYOPIC, LOOK_AHEAD = "myopic", "look-ahead"
_LEAST_GAIN = 1e-9  # of a purchase: less is rounding
_BLOCK = 2_000_000  # numbers at a time


class JiCarin(Rival):
    """Buys the unit that lowers the expected risk most, until none is worth its price (Ji & Carin, 2007, simplified).

    Each class has a density, a mixture of Gaussians fitted to its training rows. From the values known so far follow
    the posterior of the classes and the predictive density of any other value, in closed form. The risk is the
    probability that the most probable class is wrong. At each step, the risk expected after buying a unit, plus
    ``price_weight`` times its price as a share of everything, is compared with the current risk.

    Parameters
    ----------
    threshold : float
        Least confidence of a label.
    price_weights : sequence of float
    policies : sequence of {"myopic", "look-ahead"}
        "look-ahead" also considers to buy two units at once, and then buys the first of the best pair: two values can
        be worth their price together although none is alone.
    n_ahead : int
        Units that are considered in pairs: those with the least expected risk plus price before anything is known.
    max_components : int
        Largest number of Gaussians per class; fewer if the Bayesian information criterion prefers it.
    ridge : float
        Added to the diagonal of every covariance.
    n_draws : int
        Quantiles per Gaussian by which an expected risk is estimated.
    criterion, validation, random_state
        As in every method.

    Notes
    -----
    The publication models hidden states and plans with a partially observable Markov decision process. This is the
    greedy policy of the same model, as named there, and its extension to pairs. Columns of 0 and 1 are Gaussians too,
    which overrates their precision. Units of several columns are bought as a whole; the expectation is then over their
    columns together.
    """

    grids: ClassVar[Mapping[str, str]] = {"price_weight": "price_weights", "policy": "policies"}

    def __init__(
        self,
        threshold: float = 0.75,
        price_weights: Sequence[float] = PRICE_WEIGHTS,
        policies: Sequence[str] = (MYOPIC,),
        n_ahead: int = 8,
        max_components: int = 3,
        ridge: float = 1e-3,
        n_draws: int = 20,
        criterion: Callable[[Figures], float] = combined,
        validation: float = 1 / 3,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.price_weights = price_weights
        self.policies = policies
        self.n_ahead = n_ahead
        self.max_components = max_components
        self.ridge = ridge
        self.n_draws = n_draws
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        weights = sorted(numbers(self.price_weights, "price_weights"), reverse=True)
        (most,) = whole_numbers([self.max_components], "max_components")
        ridge, n_draws = check_positive(self.ridge, "ridge"), check_count(self.n_draws, "n_draws", 2)
        if not isinstance(self.policies, list | tuple) or any(p not in (MYOPIC, LOOK_AHEAD) for p in self.policies):
            raise InvalidParameterError(f"policies must list 'myopic', 'look-ahead' or both; got {self.policies!r}.")
        density = fit_density(problem.train, problem.y_train, problem.n_classes, most, ridge, seed)
        n_ahead = check_count(self.n_ahead, "n_ahead", 2)
        units = [np.flatnonzero(columns) for columns in problem.unit_columns]
        total = problem.prices.total if problem.prices.total > 0 else 1.0
        risks = Risks()
        for policy in self.policies:
            for weight in weights:
                prices = weight * problem.prices.prices / total
                model = Policy(density, units, prices, n_draws, n_ahead if policy == LOOK_AHEAD else 0)
                settings = {"price_weight": weight, "policy": policy}
                yield Candidate(settings, model, partial(model.trace, problem.validation, risks))


@dataclass(frozen=True)
class Density:
    """Gaussians of all classes together.

    Attributes
    ----------
    log_weights : ndarray of shape (n_gaussians,)
        Log of class prior times share in the class.
    means : ndarray of shape (n_gaussians, n_encoded)
    covariances : ndarray of shape (n_gaussians, n_encoded, n_encoded)
    class_of : ndarray of shape (n_gaussians,)
    n_classes : int
    """

    log_weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    class_of: NDArray[np.intp]
    n_classes: int

    def log_joint(self, columns: NDArray[np.intp], values: FloatArray) -> FloatArray:
        """Return the log of weight times density, (n_gaussians, n_rows), of columns with values (n_columns, n_rows)."""
        out = np.repeat(self.log_weights[:, None], values.shape[1], axis=1)
        if columns.size:
            roots = np.linalg.cholesky(self._block(columns, columns))
            apart = np.linalg.solve(roots, values - self.means[:, columns, None])
            size = np.log(np.einsum("gii->gi", roots)).sum(axis=1) + 0.5 * columns.size * np.log(2 * np.pi)
            out -= 0.5 * (apart**2).sum(axis=1) + size[:, None]
        return out

    def _block(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> FloatArray:
        """Return a block of each covariance."""
        return self.covariances[:, rows[:, None], columns]

    def posterior(self, log_joint: FloatArray) -> FloatArray:
        """Return class probabilities, (n_rows, n_classes), from ``log_joint``."""
        shares = shares_of(log_joint)
        return (np.eye(self.n_classes)[:, self.class_of] @ shares).T

    def conditional(
        self, known: NDArray[np.intp], values: FloatArray, new: NDArray[np.intp]
    ) -> tuple[FloatArray, FloatArray]:
        """Return means (n_gaussians, n_new, n_rows) and Cholesky factors (n_gaussians, n_new, n_new) of new columns."""
        means = np.repeat(self.means[:, new, None], values.shape[1], axis=2)
        own = self._block(new, new)
        if known.size:
            both = self._block(known, new)
            slopes = np.linalg.solve(self._block(known, known), both).transpose(0, 2, 1)
            means += slopes @ (values - self.means[:, known, None])
            own = own - slopes @ both
        return means, np.asarray(np.linalg.cholesky(own + 1e-12 * np.eye(new.size)), dtype=np.float64)


def fit_density(
    Z: FloatArray, y: NDArray[np.int64], n_classes: int, max_components: int, ridge: float, seed: int
) -> Density:
    """Fit a mixture of Gaussians to each class, with the number of components of the least BIC."""
    from sklearn.mixture import GaussianMixture

    parts = []
    for code in range(n_classes):
        rows = Z[:, y == code].T
        if len(rows) < 2:  # a class of one row: its value, as uncertain as all rows together
            parts.append((code, np.ones(1), rows[:1], np.cov(Z).reshape(1, len(Z), len(Z)) + ridge * np.eye(len(Z))))
            continue
        # More Gaussians than one need more rows than columns each, or their covariance is only the ridge.
        most = max(1, min(max_components, len(rows) // (2 * (len(Z) + 1))))
        fitted = [GaussianMixture(k, reg_covar=ridge, random_state=seed).fit(rows) for k in range(1, most + 1)]
        best = min(fitted, key=lambda mixture: mixture.bic(rows))
        parts.append((code, best.weights_, best.means_, best.covariances_))
    prior = np.bincount(y, minlength=n_classes) / y.size
    return Density(
        np.concatenate([np.log(prior[code] * shares) for code, shares, _, _ in parts]),
        np.concatenate([means for _, _, means, _ in parts]),
        np.concatenate([covariances for _, _, _, covariances in parts]),
        np.concatenate([np.full(shares.size, code, dtype=np.intp) for code, shares, _, _ in parts]),
        n_classes,
    )


def shares_of(log_joint: FloatArray) -> FloatArray:
    """Return the share of each Gaussian in a case, (n_gaussians, n_rows)."""
    shares = np.exp(log_joint - log_joint.max(axis=0))
    return np.asarray(shares / shares.sum(axis=0))


class Policy:
    """Buys unit after unit for each case; cases that know the same units are handled together.

    Parameters
    ----------
    density : Density
    units : list of ndarray
        The encoded columns of each unit.
    prices : ndarray of shape (n_units,)
        In units of risk.
    n_draws : int
    n_ahead : int
        Units that are considered in pairs; 0 for none.
    """

    def __init__(
        self, density: Density, units: list[NDArray[np.intp]], prices: FloatArray, n_draws: int, n_ahead: int
    ) -> None:
        self._density, self._units, self._prices = density, units, prices
        most = max(columns.size for columns in units) * (2 if n_ahead else 1)
        middle = norm.ppf((np.arange(n_draws) + 0.5) / n_draws)
        # The same draws for every case: a case's decisions must not depend on its neighbours.
        shuffled = np.random.default_rng(0)
        self._draws = np.stack([middle, *(shuffled.permutation(middle) for _ in range(most - 1))])
        self._ahead = set(self._promising(n_ahead))

    def _promising(self, n_units: int) -> list[int]:
        """Return the units of the least expected risk plus price, before anything is known."""
        nothing, nobody = np.empty(0, dtype=np.intp), np.empty((0, 1))
        prior = self._density.log_joint(nothing, nobody)
        losses = [
            price + float(self.expected_risk(prior, nothing, nobody, columns)[0])
            for price, columns in zip(self._prices, self._units, strict=True)
        ]
        return np.argsort(losses, kind="stable")[:n_units].tolist() if n_units else []

    def trace(self, Z: FloatArray, risks: "Risks | None" = None) -> Trace:
        """Decide encoded cases, (n_encoded, n_rows); given the risks that other policies have found."""
        n_encoded, n_rows = Z.shape
        risks = Risks() if risks is None else risks
        bought: BoolArray = np.zeros((n_rows, len(self._units)), dtype=np.bool_)
        answers = np.empty((n_rows, self._density.n_classes))
        waiting = np.arange(n_rows)
        while waiting.size:
            keys, group = np.unique(bought[waiting], axis=0, return_inverse=True)
            still = []
            for g, key in enumerate(keys):
                rows = waiting[group.ravel() == g]
                answers[rows], unit = self._step(key, Z, rows, risks)
                buying = unit >= 0
                bought[rows[buying], unit[buying]] = True
                still.append(rows[buying])
            waiting = np.sort(np.concatenate(still)) if still else waiting[:0]
        read = np.zeros((n_rows, n_encoded), dtype=np.bool_)
        for u, columns in enumerate(self._units):
            read[np.ix_(bought[:, u], columns)] = True
        return Trace(answers, read, np.zeros(n_rows, dtype=np.intp))

    def _step(
        self, key: BoolArray, Z: FloatArray, rows: NDArray[np.intp], risks: "Risks"
    ) -> tuple[FloatArray, NDArray[np.intp]]:
        """Return the posterior of cases that know the same units, and the unit each buys next; -1 for none."""
        owned = [self._units[u] for u in np.flatnonzero(key)]
        known = np.sort(np.concatenate([np.empty(0, np.intp), *owned])).astype(np.intp)
        values = Z[np.ix_(known, rows)]
        log_joint = self._density.log_joint(known, values)
        posterior = self._density.posterior(log_joint)
        best = 1 - posterior.max(axis=1) - _LEAST_GAIN
        unit = np.full(best.size, -1, dtype=np.intp)
        left = np.flatnonzero(~key)
        options = [(u,) for u in left] + list(combinations([u for u in left if u in self._ahead], 2))
        for option in options:
            price = float(self._prices[list(option)].sum())
            worth = best > price  # no purchase lowers the risk below 0
            if worth.any():
                new = np.concatenate([self._units[u] for u in option])

                def expected(some: NDArray[np.intp], new: NDArray[np.intp] = new) -> FloatArray:
                    return self.expected_risk(log_joint[:, some], known, values[:, some], new)

                loss = price + risks.of((key.tobytes(), *option), rows, expected)
                better = worth & (loss < best)
                best[better], unit[better] = loss[better], option[0]
        return posterior, unit

    def expected_risk(
        self, log_joint: FloatArray, known: NDArray[np.intp], values: FloatArray, new: NDArray[np.intp]
    ) -> FloatArray:
        """Return the risk expected when new columns become known, (n_rows,).

        The predictive density is a mixture over the Gaussians; each contributes its quantiles, weighted by its share.
        """
        n_rows = values.shape[1]
        if not known.size and n_rows > 1:  # nothing tells the cases apart
            return np.repeat(self.expected_risk(log_joint[:, :1], known, values[:, :1], new), n_rows)
        means, roots = self._density.conditional(known, values, new)
        size = max(1, _BLOCK // (len(means) ** 2 * self._draws[: new.size].size))
        blocks = [slice(start, start + size) for start in range(0, n_rows, size)]
        return np.concatenate([self._risk_after(log_joint[:, rows], means[:, :, rows], roots) for rows in blocks])

    def _risk_after(self, log_joint: FloatArray, means: FloatArray, roots: FloatArray) -> FloatArray:
        """Return the expected risk; arrays are (drawn from, judged by, columns, rows, draws) where they have all."""
        density, draws = self._density, self._draws[: means.shape[1]]
        shares = shares_of(log_joint)
        inverse = np.linalg.inv(roots)
        size = np.log(np.einsum("gii->gi", roots)).sum(axis=1)
        drawn = means[..., None] + (roots @ draws)[:, :, None, :]
        apart = drawn[:, None] - means[None, ..., None]
        distant = (inverse[None] @ apart.reshape(*apart.shape[:3], -1)).reshape(apart.shape)
        after = log_joint[:, :, None] - 0.5 * (distant**2).sum(axis=2) - size[:, None, None]
        after = np.exp(after - after.max(axis=1, keepdims=True))
        if len(means) > density.n_classes:
            after = np.stack([after[:, density.class_of == c].sum(axis=1) for c in range(density.n_classes)], axis=1)
        right = (after.max(axis=1) / after.sum(axis=1)).mean(axis=2)
        return np.asarray((shares * (1 - right)).sum(axis=0))


class Risks:
    """Expected risks of the cases of one table, which do not depend on the weight of prices: each is computed once."""

    def __init__(self) -> None:
        self._found: dict[tuple[Any, ...], tuple[NDArray[np.intp], FloatArray]] = {}

    def of(
        self, question: tuple[Any, ...], rows: NDArray[np.intp], compute: Callable[[NDArray[np.intp]], FloatArray]
    ) -> FloatArray:
        """Return the risks of rows, in rising order, for a question; ``compute`` takes their positions."""
        if question not in self._found:
            self._found[question] = rows, compute(np.arange(rows.size))
        known, risk = self._found[question]
        missing = np.flatnonzero(~np.isin(rows, known))
        if missing.size:
            known, risk = np.append(known, rows[missing]), np.append(risk, compute(missing))
            order = known.argsort()
            known, risk = self._found[question] = known[order], risk[order]
        return risk[np.searchsorted(known, rows)]
