"""l1-regularised logistic regressions along a path of penalties: proximal Newton on a working set, warm starts.

Arrays in, arrays out, no checks. ``Z``, ``targets`` and the layout of the weights are those of `logistic`: columns
first, a last row of ones for the intercept, one logit for two classes, else one per class.

The objective is sum of log-losses + penalty * ||coefficients||_1, the intercepts unpenalised. A point is accepted by
the optimality conditions alone: with g the gradient of the loss, g = -penalty * sign(w) where w is not 0, and
|g| <= penalty where it is; each up to ``tolerance``.
"""

from typing import Any

import numpy as np

from emsco._compile import kernel
from emsco._scalar import exponential
from emsco.stages._logistic import BLOCK, add_products, assemble, curvature_of, moves_of, probabilities_of

Array = Any

_MAX_STEPS = 100  # Newton steps per penalty
_MAX_SWEEPS = 1000  # over the coordinates, per Newton step
_FLAT = 1e-12  # share of the largest curvature below which a coordinate is left alone


@kernel()
def _loss(margins: Array, targets: Array) -> float:
    """Return the sum of the log-losses."""
    n_logits, n_samples = margins.shape
    total = 0.0
    for i in range(n_samples):
        top = 0.0 if n_logits == 1 else margins[0, i]
        for a in range(n_logits):
            top = max(top, margins[a, i])
        partition = exponential(-top) if n_logits == 1 else 0.0
        own = 0.0
        for a in range(n_logits):
            partition += exponential(margins[a, i] - top)
            own += targets[a, i] * margins[a, i]
        total += np.log(partition) + top - own
    return total


@kernel()
def _violation(weight: float, slope: float, penalty: float) -> float:
    """Return by how much a coordinate misses the optimality conditions."""
    if weight > 0.0:
        return abs(slope + penalty)
    if weight < 0.0:
        return abs(slope - penalty)
    return max(abs(slope) - penalty, 0.0)


@kernel()
def _descend(H: Array, gradient: Array, weights: Array, penalties: Array, tolerance: float, step: Array) -> None:
    """Set step to the minimiser of gradient.s + s.H.s / 2 + penalties.|weights + s|, one coordinate at a time."""
    n = step.size
    pull = np.zeros(n)  # H @ step
    step[:] = 0.0
    flat = 0.0
    for j in range(n):
        flat = max(flat, _FLAT * H[j, j])
    for _ in range(_MAX_SWEEPS):
        worst = 0.0
        for j in range(n):
            curvature = H[j, j]
            if curvature <= flat:
                continue
            slope = gradient[j] + pull[j]
            current = weights[j] + step[j]
            target = current - slope / curvature
            reach = penalties[j] / curvature
            new = target - reach if target > reach else (target + reach if target < -reach else 0.0)
            move = new - current
            if move != 0.0:
                step[j] = new - weights[j]
                row = H[j]
                for k in range(n):
                    pull[k] += move * row[k]
                worst = max(worst, abs(move) * curvature)
        if worst <= tolerance:
            break


@kernel()
def _solve(Z: Array, targets: Array, members: Array, penalty: float, tolerance: float, current: Array) -> bool:
    """Minimise over the rows ``members`` of Z, from ``current`` (n_logits, n_members) on and in place."""
    n_logits, n_samples = targets.shape
    m = members.size
    n = n_logits * m
    margins = np.empty((n_logits, n_samples))
    moves = np.empty((n_logits, n_samples))
    trial = np.empty((n_logits, n_samples))
    probabilities = np.empty((n_logits, n_samples))
    residual = np.empty(n_samples)
    weighted = np.empty((2, BLOCK))
    blocks = np.empty((n_logits * (n_logits + 1) // 2, m, m))
    H = np.empty((n, n))
    gradient = np.empty(n)
    step = np.empty(n)
    penalties = np.full(n, penalty)
    for a in range(n_logits):
        penalties[a * m + m - 1] = 0.0
    weights = current.reshape(n)
    start = np.int64(0)
    moves_of(Z, members, weights, margins)
    loss = _loss(margins, targets)
    for _ in range(_MAX_STEPS):
        probabilities_of(margins, n_samples, probabilities, residual)
        gradient[:] = 0.0
        for a in range(n_logits):
            for i in range(n_samples):
                residual[i] = probabilities[a, i] - targets[a, i]
            add_products(gradient[a * m : (a + 1) * m], residual, Z, members, m, start, n_samples)
        worst = 0.0
        for j in range(n):
            worst = max(worst, _violation(weights[j], gradient[j], penalties[j]))
        if worst <= tolerance:
            return True
        curvature_of(probabilities, Z, members, blocks, residual, weighted)
        assemble(H, blocks, n_logits, m, 0.0)
        for j in range(n):
            for k in range(j):
                H[k, j] = H[j, k]
        _descend(H, gradient, weights, penalties, max(0.01 * worst, 0.1 * tolerance), step)
        decrease = 0.0  # of the objective, to first order
        for j in range(n):
            decrease += gradient[j] * step[j] + penalties[j] * (abs(weights[j] + step[j]) - abs(weights[j]))
        moves_of(Z, members, step, moves)
        size = 1.0
        while True:
            change = 0.0
            for j in range(n):
                change += penalties[j] * (abs(weights[j] + size * step[j]) - abs(weights[j]))
            for a in range(n_logits):
                for i in range(n_samples):
                    trial[a, i] = margins[a, i] + size * moves[a, i]
            moved = _loss(trial, targets)
            # The last term is the rounding of the two losses: close to the end it exceeds what there is to gain.
            if moved + change <= loss + 1e-4 * size * decrease + 1e-13 * n_samples or size < 1e-9:
                break
            size /= 2.0
        loss = moved
        for j in range(n):
            weights[j] += size * step[j]
        for a in range(n_logits):
            for i in range(n_samples):
                margins[a, i] = trial[a, i]
    return False


@kernel()
def slopes(Z: Array, targets: Array, rows: Array, theta: Array) -> Array:
    """Gradient of the loss at weights theta (n_logits, n_columns + 1), same shape; ``rows`` counts those of Z."""
    n_logits, n_samples = targets.shape
    margins = np.empty((n_logits, n_samples))
    probabilities = np.empty((n_logits, n_samples))
    gradient = np.zeros((n_logits, rows.size))
    start = np.int64(0)
    moves_of(Z, rows, theta.reshape(n_logits * rows.size), margins)
    probabilities_of(margins, n_samples, probabilities, np.empty(n_samples))
    for a in range(n_logits):
        for i in range(n_samples):
            probabilities[a, i] -= targets[a, i]
        add_products(gradient[a], probabilities[a], Z, rows, rows.size, start, n_samples)
    return gradient


@kernel()
def path(Z: Array, targets: Array, rows: Array, penalties: Array, tolerance: float, theta: Array) -> int:
    """Fill theta (n_penalties, n_logits, n_columns + 1) with the minimisers; penalties descend and are above 0.

    theta[0] holds where to start: the weights of an empty model. Returns how many penalties did not converge.
    """
    n_logits = targets.shape[0]
    n_columns = rows.size - 1
    previous = np.inf
    n_failed = 0
    for p in range(penalties.size):
        penalty = penalties[p]
        if p > 0:
            theta[p] = theta[p - 1]
        gradient = slopes(Z, targets, rows, theta[p])
        working = np.zeros(rows.size, dtype=np.bool_)
        working[n_columns] = True
        # A column whose slope stays this far below the penalty will hardly enter; if it does, it is added below.
        likely = 2.0 * penalty - previous
        converged = False
        for attempt in range(n_columns + 2):  # each but the first adds a column, so the last one finds none to add
            n_added = 0
            for j in range(n_columns):
                if working[j]:
                    continue
                for a in range(n_logits):
                    if theta[p, a, j] != 0.0 or abs(gradient[a, j]) > likely:
                        working[j] = True
                        n_added += 1
                        break
            if n_added == 0 and attempt > 0:
                break
            members = rows[working]
            current = np.empty((n_logits, members.size))
            for a in range(n_logits):
                for j in range(members.size):
                    current[a, j] = theta[p, a, members[j]]
            converged = _solve(Z, targets, members, penalty, tolerance, current)
            for a in range(n_logits):
                for j in range(members.size):
                    theta[p, a, members[j]] = current[a, j]
            gradient = slopes(Z, targets, rows, theta[p])
            likely = penalty + tolerance
        n_failed += 0 if converged else 1
        previous = penalty
    return n_failed
