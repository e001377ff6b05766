"""Which roots are worth a closer look: what their branches would gain by buying different things.

A root is not judged by what it predicts, but by what the features of each of its branches tell there. A context that
says nothing by itself is found so.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, FloatArray
from emsco.fitting.experts import WEIGHT
from emsco.stages.problem import Problem

_SPLITS = 4  # times that rows are split into halves: one chooses features, the other says what they are worth
_BOUGHT = (1, 2, 4)  # features that a branch buys after the root
_RIDGE = 1.0  # added to the products of each standardised column with itself
_LEAST = 1e-3  # least probability of a class


class Screen:
    """What branches gain, by the share of each column's variance that the classes explain in a branch.

    Half of the rows choose the best columns, for each branch and for all branches together; the other half says how
    much more those of the branches tell. Roots that help by luck gain nothing on average.

    Parameters
    ----------
    problem : Problem
        Its training rows are those that are looked at.
    """

    def __init__(self, problem: Problem) -> None:
        self._X = np.ascontiguousarray(problem.train.T)
        self._squares = self._X**2
        self._y, self._n_classes = problem.y_train, problem.n_classes
        self._unit = np.where(problem.columns.has_owner, problem.columns.owner, -1)
        price = np.maximum(problem.prices.prices, 1e-9 * max(problem.prices.total, 1e-9))
        self._price = price[np.maximum(self._unit, 0)]
        rng = np.random.default_rng(0)
        self._halves = [rng.permutation(self._y.size) % 2 == 0 for _ in range(_SPLITS)]

    def gain(self, branch: NDArray[np.intp], n_branches: int, root: BoolArray) -> float:
        """Return what the branches of a root gain: more variance explained by what they buy."""
        allowed = (self._unit >= 0) & ~root[np.maximum(self._unit, 0)]
        if not allowed.any():
            return -np.inf
        gains = []
        for half in self._halves:
            parts = [self._told(branch, n_branches, rows) for rows in (half, ~half)]
            for (chooses, _), (tells, share) in (parts, parts[::-1]):
                gains.append(self._more(chooses, tells, share, allowed))
        return float(np.mean(gains, axis=0).max())

    def _more(self, chooses: FloatArray, tells: FloatArray, share: FloatArray, allowed: BoolArray) -> list[float]:
        """Return what branches gain over buying the same in all of them, by number of features and way to choose."""
        gains, each = [], np.arange(len(share))[:, None]
        for worth in (chooses, chooses / self._price) if np.ptp(self._price) > 0 else (chooses,):
            worth = np.where(allowed, worth, -np.inf)
            own, common = np.argsort(-worth, axis=1), np.argsort(-(share @ worth))
            for n in _BOUGHT:
                n = min(n, int(allowed.sum()))
                cost = self._price[own[:, :n]].sum(axis=1) @ share - self._price[common[:n]].sum()
                scale = 1.0 if cost <= 0 else self._price[common[:n]].sum() / (self._price[common[:n]].sum() + cost)
                of_own = share @ tells[each, own[:, :n]].sum(axis=1)
                gains.append(float(of_own * scale - share @ tells[:, common[:n]].sum(axis=1)))
        return gains

    def _told(self, branch: NDArray[np.intp], n_branches: int, rows: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return the adjusted share of variance that classes explain, by branch and column, and the share of rows."""
        K = self._n_classes
        X, squares = self._X[rows], self._squares[rows]
        cell = branch[rows] * K + self._y[rows]
        member = np.zeros((n_branches * K, cell.size))
        member[cell, np.arange(cell.size)] = 1.0
        counts = member.sum(axis=1).reshape(n_branches, K, 1)
        sums = (member @ X).reshape(n_branches, K, -1)
        total = (member @ squares).reshape(n_branches, K, -1).sum(axis=1)
        n = np.maximum(counts.sum(axis=1), 1.0)
        mean = sums.sum(axis=1) ** 2 / n
        between = (sums**2 / np.maximum(counts, 1.0)).sum(axis=1) - mean
        spread = np.maximum(total - mean, 1e-12)
        n_present = np.maximum((counts > 0).sum(axis=1), 1)
        left = np.clip(1 - between / spread, 0.0, 1.0)
        explained = 1 - left * (n - 1) / np.maximum(n - n_present, 1)
        explained = np.where(total - mean > 1e-9 * n, explained, 0.0)
        return explained, counts.sum(axis=1)[:, 0] / max(cell.size, 1)


class Grower:
    """Orders units by ridge regressions of the class indicators, in one branch at a time.

    The products of columns of a branch and fold are computed once; those of any training set are sums of them.

    Parameters
    ----------
    problem : Problem
        Its training rows are those that are looked at.
    folds : ndarray of shape (n_rows,)
        The fold in which each row is judged.
    """

    def __init__(self, problem: Problem, folds: NDArray[np.intp]) -> None:
        self._columns = problem.columns
        self._X = np.vstack([problem.train, np.ones((1, problem.y_train.size))])
        self._y, self._n_classes = problem.y_train, problem.n_classes
        self._targets = np.eye(problem.n_classes)[problem.y_train]
        self._folds, self._n_folds = folds, int(folds.max()) + 1
        self._prices = problem.prices
        self._everyone = self._moments(np.arange(self._y.size))
        self._asked: dict[tuple[bytes, bool], _Asked] = {}

    def grow(
        self, rows: NDArray[np.intp], root: BoolArray, *, own: bool, most: int, views: Sequence[int]
    ) -> list[list[tuple[int, ...]]]:
        """Return the orders of units after the root in a branch, one or two for each view.

        Parameters
        ----------
        rows : ndarray of int
            Rows of the branch.
        root : ndarray of shape (n_units,)
        own : bool
            Whether only these rows train, or all others, too, and these more.
        most : int
            Units of an order.
        views : sequence of int
            Folds that are left out, one after the other; -1 leaves none out.
        """
        key = rows.tobytes(), own
        if key not in self._asked:
            self._asked[key] = self._ask(rows, own=own)
        ask = self._asked[key]
        kinds = (False, True) if np.unique(self._prices.prices).size > 1 or self._prices.groups.any() else (False,)
        return [[self._order(ask, root, view, most, per_price=kind) for kind in kinds] for view in views]

    def _ask(self, rows: NDArray[np.intp], *, own: bool) -> "_Asked":
        """Return the regressions of a branch."""
        products, sums = self._moments(rows)
        if not own:
            products = self._everyone[0] + (WEIGHT - 1) * products
            sums = self._everyone[1] + (WEIGHT - 1) * sums
        train = [(products.sum(axis=0) - products[f], sums.sum(axis=0) - sums[f]) for f in range(self._n_folds)]
        for part, _ in train:
            part[np.diag_indices(len(part) - 1)] += _RIDGE
        return _Asked(self, train, [rows[self._folds[rows] == f] for f in range(self._n_folds)])

    def _order(self, ask: "_Asked", root: BoolArray, view: int, most: int, *, per_price: bool) -> tuple[int, ...]:
        """Return units, each the one that adds most to how sure the rows outside of a fold are of the truth."""
        owned, placed = root.copy(), list[int]()
        n = np.array([rows.size for rows in ask.by_fold], dtype=np.float64)
        n[view if view >= 0 else slice(0)] = 0.0
        reached = -np.inf
        while len(placed) < most and not owned.all():
            units = np.flatnonzero(~owned)
            sets = np.tile(owned, (units.size, 1))
            sets[np.arange(units.size), units] = True
            sure = ask(sets) @ (n > 0) / n.sum()
            if not placed:
                reached = float((ask(owned[None]) @ (n > 0))[0] / n.sum())
            worth = sure - reached
            if per_price:
                steps = np.stack([np.tile(owned, (units.size, 1)), sets], axis=1)
                price = np.maximum(self._prices.stage_ticks(steps)[:, 1], 1e-3)
                worth = np.where(worth > 0, worth / price, worth * price)
            best = int(worth.argmax())
            reached = float(sure[best])
            placed.append(int(units[best]))
            owned = sets[best]
        return tuple(placed)

    def _moments(self, rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Return products of columns with each other and with classes, by fold."""
        d = len(self._X)
        products, sums = np.zeros((self._n_folds, d, d)), np.zeros((self._n_folds, d, self._n_classes))
        for f in range(self._n_folds):
            of_fold = rows[self._folds[rows] == f]
            X = self._X[:, of_fold]
            products[f], sums[f] = X @ X.T, X @ self._targets[of_fold]
        return products, sums

    def columns_of(self, sets: BoolArray) -> BoolArray:
        """Return the columns of feature sets, the constant one included."""
        return np.hstack([self._columns(sets), np.ones((len(sets), 1), dtype=np.bool_)])

    def told(self, columns: NDArray[np.intp], weights: FloatArray, rows: NDArray[np.intp]) -> FloatArray:
        """Return the log probability that regressions give to the truth, summed over rows, set by set."""
        X = self._X[:, rows]
        share = np.maximum(np.einsum("skn,skc->snc", X[columns], weights, optimize=True), _LEAST)
        truth = share[:, np.arange(rows.size), self._y[rows]]
        return np.asarray(np.log(truth / share.sum(axis=2)).sum(axis=1))


class _Asked:
    """How sure regressions of a branch are of the truth, by set and fold; each set is solved once."""

    def __init__(
        self,
        grower: Grower,
        train: list[tuple[FloatArray, FloatArray]],
        by_fold: list[NDArray[np.intp]],
    ) -> None:
        self._grower, self._train = grower, train
        self._known: dict[bytes, FloatArray] = {}
        self.by_fold = by_fold

    def __call__(self, sets: BoolArray) -> FloatArray:
        keys = [np.packbits(units).tobytes() for units in sets]
        new = [i for i, key in enumerate(keys) if key not in self._known]
        if new:
            members = self._grower.columns_of(sets[new])
            sizes = members.sum(axis=1)
            for size in np.unique(sizes).tolist():
                these = np.flatnonzero(sizes == size)
                columns = np.nonzero(members[these])[1].reshape(these.size, size)
                told = self._solved(columns)
                self._known.update((keys[new[i]], each) for i, each in zip(these.tolist(), told, strict=True))
        return np.array([self._known[key] for key in keys])

    def _solved(self, columns: NDArray[np.intp]) -> FloatArray:
        told = np.zeros((len(columns), len(self._train)))
        for f, ((products, sums), rows) in enumerate(zip(self._train, self.by_fold, strict=True)):
            if rows.size:
                moments = products[columns[:, :, None], columns[:, None, :]]
                weights = np.asarray(np.linalg.solve(moments, sums[columns]), dtype=np.float64)
                told[:, f] = self._grower.told(columns, weights, rows)
        return told
