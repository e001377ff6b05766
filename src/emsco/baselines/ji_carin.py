"""Sequential acquisition by class densities, after Ji & Carin 2007 (BASELINES §7.1)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

from emsco.baselines.base import BoolArray, Candidate, Figures, FloatArray, Rival, Trace, combined
from emsco.baselines.grid import numbers, whole_numbers
from emsco.baselines.settings import check_count, check_positive
from emsco.exceptions import InvalidParameterError
from emsco.stages.problem import Problem

PRICE_WEIGHTS = tuple(np.logspace(-3, 1, 9).tolist())
MYOPIC, LOOK_AHEAD = "myopic", "look-ahead"
_LEAST_GAIN = 1e-9  # of a purchase: less is rounding


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
        for policy in self.policies:
            for weight in weights:
                prices = weight * problem.prices.prices / total
                model = Policy(density, units, prices, n_draws, n_ahead if policy == LOOK_AHEAD else 0)
                yield Candidate({"price_weight": weight, "policy": policy}, model)


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
            for g, (mean, covariance) in enumerate(zip(self.means, self.covariances, strict=True)):
                root = np.linalg.cholesky(covariance[np.ix_(columns, columns)])
                apart = np.linalg.solve(root, values - mean[columns, None])
                size = np.log(np.diag(root)).sum() + 0.5 * columns.size * np.log(2 * np.pi)
                out[g] -= 0.5 * (apart**2).sum(axis=0) + size
        return out

    def posterior(self, log_joint: FloatArray) -> FloatArray:
        """Return class probabilities, (n_rows, n_classes), from ``log_joint``."""
        shares = np.exp(log_joint - logsumexp(log_joint, axis=0))
        return (np.eye(self.n_classes)[:, self.class_of] @ shares).T

    def conditional(
        self, known: NDArray[np.intp], values: FloatArray, new: NDArray[np.intp]
    ) -> tuple[FloatArray, FloatArray]:
        """Return means (n_gaussians, n_new, n_rows) and Cholesky factors (n_gaussians, n_new, n_new) of new columns."""
        means = np.repeat(self.means[:, new, None], values.shape[1], axis=2)
        roots = np.empty((len(means), new.size, new.size))
        for g, (mean, covariance) in enumerate(zip(self.means, self.covariances, strict=True)):
            own = covariance[np.ix_(new, new)]
            if known.size:
                slope = np.linalg.solve(covariance[np.ix_(known, known)], covariance[np.ix_(known, new)]).T
                means[g] += slope @ (values - mean[known, None])
                own = own - slope @ covariance[np.ix_(known, new)]
            roots[g] = np.linalg.cholesky(own + 1e-12 * np.eye(new.size))
        return means, roots


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

    def trace(self, Z: FloatArray) -> Trace:
        """Decide encoded cases, (n_encoded, n_rows)."""
        n_encoded, n_rows = Z.shape
        bought: BoolArray = np.zeros((n_rows, len(self._units)), dtype=np.bool_)
        answers = np.empty((n_rows, self._density.n_classes))
        waiting = np.arange(n_rows)
        while waiting.size:
            keys, group = np.unique(bought[waiting], axis=0, return_inverse=True)
            still = []
            for g, key in enumerate(keys):
                rows = waiting[group.ravel() == g]
                known = np.sort(np.concatenate([np.empty(0, np.intp), *(self._units[u] for u in np.flatnonzero(key))]))
                values = Z[np.ix_(known.astype(np.intp), rows)]
                answers[rows], unit = self._step(key, known.astype(np.intp), values)
                buying = unit >= 0
                bought[rows[buying], unit[buying]] = True
                still.append(rows[buying])
            waiting = np.sort(np.concatenate(still)) if still else waiting[:0]
        read = np.zeros((n_rows, n_encoded), dtype=np.bool_)
        for u, columns in enumerate(self._units):
            read[np.ix_(bought[:, u], columns)] = True
        return Trace(answers, read, np.zeros(n_rows, dtype=np.intp))

    def _step(self, key: BoolArray, known: NDArray[np.intp], values: FloatArray) -> tuple[FloatArray, NDArray[np.intp]]:
        """Return the posterior of cases that know the same units, and the unit each buys next; -1 for none."""
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
                loss = price + self.expected_risk(log_joint[:, worth], known, values[:, worth], new)
                better = loss < best[worth]
                at = np.flatnonzero(worth)[better]
                best[at], unit[at] = loss[better], option[0]
        return posterior, unit

    def expected_risk(
        self, log_joint: FloatArray, known: NDArray[np.intp], values: FloatArray, new: NDArray[np.intp]
    ) -> FloatArray:
        """Return the risk expected when new columns become known, (n_rows,).

        The predictive density is a mixture over the Gaussians; each contributes its quantiles, weighted by its share.
        """
        density, draws = self._density, self._draws[: new.size]
        means, roots = density.conditional(known, values, new)
        shares = np.exp(log_joint - logsumexp(log_joint, axis=0))
        risk = np.zeros(values.shape[1])
        inverse = np.linalg.inv(roots)
        size = np.log(np.einsum("gii->gi", roots)).sum(axis=1)
        for g in range(len(means)):
            drawn = means[g][:, :, None] + (roots[g] @ draws)[:, None, :]  # (n_new, n_rows, n_draws)
            after = np.empty((len(means), *drawn.shape[1:]))
            for h in range(len(means)):
                apart = np.tensordot(inverse[h], drawn - means[h][:, :, None], axes=1)
                after[h] = log_joint[h][:, None] - 0.5 * (apart**2).sum(axis=0) - size[h]
            after = np.exp(after - after.max(axis=0))
            classes = np.tensordot(np.eye(density.n_classes)[:, density.class_of], after, axes=1)
            risk += shares[g] * (1 - (classes.max(axis=0) / classes.sum(axis=0)).mean(axis=1))
        return risk
