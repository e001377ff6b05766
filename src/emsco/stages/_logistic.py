"""l2-regularised logistic regressions on many feature sets: Newton's method, one set after another.

Arrays in, arrays out, no checks. Samples lie along the last axis, so that every inner loop walks contiguous memory:
``Z`` is (n_columns + 1, n_samples) and its last row is all ones, for the intercept. Feature set ``s`` owns the rows
``members[starts[s]:starts[s + 1]]`` of ``Z``, the last of them always the row of ones. Two classes have one logit,
L >= 3 classes have L (softmax, as scikit-learn parametrises it). The result of a set depends on nothing but the set:
not on its neighbours in the batch, nor on the number of threads.

The objective is scikit-learn's: sum of log-losses + ridge / 2 * ||coefficients||^2, with ridge = 1 / C and the
intercepts unpenalised.
"""

from typing import Any

import numpy as np

from emsco._compile import kernel
from emsco._scalar import exponential, fma, logistic

Array = Any  # numba sees concrete arrays; a precise annotation would only be repeated in every signature

_BLOCK = 512  # samples handled at a time: the columns of one block stay in the first-level cache
_MAX_ITERATIONS = 200
# A step that moves no margin of a training sample by more than this is the last. The error left is smaller by a factor
# of at least a hundred (see below); samples far outside the training data see a multiple of it.
_LAST_MOVE = 1e-6
# After a step that moves no margin by more than this, the curvature has changed by about as little: keep its factor.
_SAME_CURVATURE = 1e-2
_OVERSHOT = 0.5  # a step is halved when the slope at its end points back with more than this share of its start


@kernel(fastmath=True)
def _add_products(row: Array, weighted: Array, Z: Array, members: Array, count: int, start: Any, stop: int) -> None:
    """row[m] += weighted . Z[members[m], start:stop] for m < count, four at a time to load ``weighted`` once.

    The slices make all indices start at 0, which spares numba the check for negative ones: four times as fast.
    """
    m = 0
    while m + 4 <= count:
        z0 = Z[members[m], start:stop]
        z1 = Z[members[m + 1], start:stop]
        z2 = Z[members[m + 2], start:stop]
        z3 = Z[members[m + 3], start:stop]
        sum0 = sum1 = sum2 = sum3 = 0.0
        for i in range(weighted.size):
            w = weighted[i]
            sum0 += w * z0[i]
            sum1 += w * z1[i]
            sum2 += w * z2[i]
            sum3 += w * z3[i]
        row[m] += sum0
        row[m + 1] += sum1
        row[m + 2] += sum2
        row[m + 3] += sum3
        m += 4
    while m < count:
        z = Z[members[m], start:stop]
        total = 0.0
        for i in range(weighted.size):
            total += weighted[i] * z[i]
        row[m] += total
        m += 1


@kernel(fastmath=True)
def _add_pairs(
    row0: Array, row1: Array, even: Array, odd: Array, Z: Array, members: Array, count: int, start: int, stop: int
) -> None:
    """As _add_products, for two rows at once: eight sums from six loads keep the multipliers busy."""
    m = 0
    while m + 4 <= count:
        z0 = Z[members[m], start:stop]
        z1 = Z[members[m + 1], start:stop]
        z2 = Z[members[m + 2], start:stop]
        z3 = Z[members[m + 3], start:stop]
        a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
        for i in range(even.size):
            a = even[i]
            b = odd[i]
            a0 += a * z0[i]
            a1 += a * z1[i]
            a2 += a * z2[i]
            a3 += a * z3[i]
            b0 += b * z0[i]
            b1 += b * z1[i]
            b2 += b * z2[i]
            b3 += b * z3[i]
        row0[m] += a0
        row0[m + 1] += a1
        row0[m + 2] += a2
        row0[m + 3] += a3
        row1[m] += b0
        row1[m + 1] += b1
        row1[m + 2] += b2
        row1[m + 3] += b3
        m += 4
    while m < count:
        z = Z[members[m], start:stop]
        a0 = b0 = 0.0
        for i in range(even.size):
            a0 += even[i] * z[i]
            b0 += odd[i] * z[i]
        row0[m] += a0
        row1[m] += b0
        m += 1


@kernel()
def probabilities_of(margins: Array, probabilities: Array) -> None:
    """Class probabilities of margins (n_logits, n_samples); with one logit, those of the second class.

    Not in place: overlapping arrays would keep LLVM from vectorising.
    """
    n_logits, n_samples = margins.shape
    if n_logits == 1:
        margin = margins[0]
        probability = probabilities[0]
        for i in range(n_samples):
            probability[i] = logistic(margin[i])
        return
    top = np.empty(n_samples)
    total = np.zeros(n_samples)
    for i in range(n_samples):  # top[:] = margins[0] would compile for seconds: the text of its error
        top[i] = margins[0, i]
    for a in range(1, n_logits):
        for i in range(n_samples):
            top[i] = max(top[i], margins[a, i])
    for a in range(n_logits):
        for i in range(n_samples):
            probabilities[a, i] = exponential(margins[a, i] - top[i])
        for i in range(n_samples):
            total[i] += probabilities[a, i]
    for a in range(n_logits):
        for i in range(n_samples):
            probabilities[a, i] /= total[i]


@kernel(fastmath=True)
def _factor(H: Array) -> None:
    """Overwrite the lower triangle of a positive definite H by its Cholesky factor."""
    for j in range(H.shape[0]):
        pivot = H[j, j]
        for k in range(j):
            pivot -= H[j, k] * H[j, k]
        # Rounding may eat a pivot of a nearly singular matrix.
        pivot = np.sqrt(max(pivot, 1e-14 * H[j, j], 1e-300))
        H[j, j] = pivot
        for i in range(j + 1, H.shape[0]):
            value = H[i, j]
            for k in range(j):
                value -= H[i, k] * H[j, k]
            H[i, j] = value / pivot


@kernel(fastmath=True)
def _substitute(factor: Array, x: Array) -> None:
    """Overwrite x by the solution of factor factor^T y = x."""
    n = x.size
    for j in range(n):
        value = x[j]
        for k in range(j):
            value -= factor[j, k] * x[k]
        x[j] = value / factor[j, j]
    for j in range(n - 1, -1, -1):
        value = x[j]
        for k in range(j + 1, n):
            value -= factor[k, j] * x[k]
        x[j] = value / factor[j, j]


@kernel(fastmath=True)
def _slope(residuals: Array, moves: Array, theta: Array, step: Array, ridge: float) -> float:
    """Return the derivative of the objective along the step, at the point that gave the residuals."""
    n_logits, n_samples = residuals.shape
    m = theta.shape[1]
    slope = 0.0
    for a in range(n_logits):
        for i in range(n_samples):
            slope += residuals[a, i] * moves[a, i]
        for j in range(m - 1):
            slope += ridge * theta[a, j] * step[a, j]
    return slope


@kernel(fastmath=True)
def _add_moves(moves: Array, Z: Array, members: Array, step: Array) -> float:
    """Set moves = step @ Z[members] and return the largest absolute value."""
    n_logits, n_samples = moves.shape
    largest = 0.0
    for a in range(n_logits):
        move = moves[a]
        move[:] = 0.0
        for j in range(members.size):
            z = Z[members[j]]
            s = step[a, j]
            for i in range(n_samples):
                move[i] += s * z[i]
        for i in range(n_samples):
            largest = max(largest, abs(move[i]))
    return largest


@kernel(fastmath=True)
def _curvature(blocks: Array, probabilities: Array, Z: Array, members: Array, weighted: Array) -> None:
    """blocks[pair] = Z[members] diag(p_a (1[a = b] - p_b)) Z[members]^T, lower triangles, for logits b <= a."""
    n_logits, n_samples = probabilities.shape
    m = members.size
    weight = np.empty(n_samples)
    blocks[:] = 0.0
    pair = 0
    for a in range(n_logits):
        for b in range(a + 1):
            for i in range(n_samples):
                weight[i] = probabilities[a, i] * ((1.0 if a == b else 0.0) - probabilities[b, i])
            for start in range(0, n_samples, _BLOCK):
                stop = min(start + _BLOCK, n_samples)
                v = weight[start:stop]
                even = weighted[0, : stop - start]
                odd = weighted[1, : stop - start]
                for j in range(0, m - 1, 2):
                    z0 = Z[members[j], start:stop]
                    z1 = Z[members[j + 1], start:stop]
                    for i in range(v.size):
                        even[i] = v[i] * z0[i]
                        odd[i] = v[i] * z1[i]
                    # Both rows up to the longer one: the entry above the diagonal is never read.
                    _add_pairs(blocks[pair, j], blocks[pair, j + 1], even, odd, Z, members, j + 2, start, stop)
                if m % 2:
                    z0 = Z[members[m - 1], start:stop]
                    for i in range(v.size):
                        even[i] = v[i] * z0[i]
                    _add_products(blocks[pair, m - 1], even, Z, members, m, start, stop)
            pair += 1


@kernel()
def _assemble(H: Array, blocks: Array, n_logits: int, ridge: float) -> None:
    """Lower triangle of the Hessian from its blocks."""
    m = blocks.shape[1]
    pair = 0
    for a in range(n_logits):
        for b in range(a + 1):
            for j in range(m):
                for k in range(j + 1):
                    H[a * m + j, b * m + k] = blocks[pair, j, k]
                    if a != b:
                        H[a * m + k, b * m + j] = blocks[pair, j, k]
            pair += 1
        for j in range(m - 1):
            H[a * m + j, a * m + j] += ridge
    if n_logits > 1:
        # Adding one number to all intercepts changes no probability, so H is singular in that direction. The
        # gradient has no part in it: stiffening it changes nothing but the rank.
        for a in range(n_logits):
            for b in range(a + 1):
                H[a * m + m - 1, b * m + m - 1] += 1.0


@kernel()
def moments(Z: Array, targets: Array, rows: Array, gram: Array, cross: Array) -> None:
    """Add Z @ Z.T (its lower triangle) to gram and targets @ Z.T to cross; unlike BLAS, the same bits for any threads.

    ``rows`` counts the rows of Z: 0, 1, ...
    """
    start = np.int64(0)  # a literal 0 would be a type of its own, compiled apart
    for j in range(rows.size):
        _add_products(gram[j], Z[j], Z, rows, j + 1, start, Z.shape[1])
    for a in range(targets.shape[0]):
        _add_products(cross[a], targets[a], Z, rows, rows.size, start, Z.shape[1])


@kernel()
def fit(
    Z: Array, targets: Array, gram: Array, cross: Array, members: Array, starts: Array, ridge: float, theta: Array
) -> int:
    """Fill theta (n_sets, n_logits, n_columns + 1) with the minimisers; columns outside a set keep what they hold.

    Returns how many sets did not converge.

    ``targets`` is (n_logits, n_samples), one where the sample is of the logit's class. ``gram`` and ``cross`` are
    its ``moments``: they give gradient and Hessian at the class frequencies, where every set starts, for a copy.
    """
    n_logits, n_samples = targets.shape
    start = np.int64(0)
    priors = np.empty(n_logits)
    for a in range(n_logits):
        priors[a] = cross[a, Z.shape[0] - 1] / n_samples
    margins = np.empty((n_logits, n_samples))
    moves = np.empty((n_logits, n_samples))
    probabilities = np.empty((n_logits, n_samples))
    residuals = np.empty((n_logits, n_samples))
    weighted = np.empty((2, _BLOCK))
    n_failed = 0
    for s in range(starts.size - 1):
        columns = members[starts[s] : starts[s + 1]]
        m = columns.size
        current = np.zeros((n_logits, m))
        step = np.zeros((n_logits, m))
        gradient = np.empty(n_logits * m)
        blocks = np.zeros((n_logits * (n_logits + 1) // 2, m, m))
        H = np.empty((n_logits * m, n_logits * m))
        slope = 0.0
        largest = np.inf
        for iteration in range(_MAX_ITERATIONS):
            if iteration == 0:
                pair = 0
                for a in range(n_logits):
                    prior = priors[a]
                    current[a, m - 1] = np.log(prior / (1.0 - prior)) if n_logits == 1 else np.log(prior)
                    margins[a, :] = current[a, m - 1]
                    for b in range(a + 1):
                        weight = prior * ((1.0 if a == b else 0.0) - priors[b])
                        for j in range(m):
                            for k in range(j + 1):
                                blocks[pair, j, k] = weight * gram[columns[j], columns[k]]
                        pair += 1
                    for j in range(m):
                        gradient[a * m + j] = prior * gram[Z.shape[0] - 1, columns[j]] - cross[a, columns[j]]
            else:
                size = 1.0
                while True:
                    probabilities_of(margins, probabilities)
                    for a in range(n_logits):
                        for i in range(n_samples):
                            residuals[a, i] = probabilities[a, i] - targets[a, i]
                    if _slope(residuals, moves, current, step, ridge) <= -_OVERSHOT * slope or size < 1e-9:
                        break
                    size /= 2.0
                    for a in range(n_logits):
                        for i in range(n_samples):
                            margins[a, i] -= size * moves[a, i]
                        for j in range(m):
                            current[a, j] -= size * step[a, j]
                gradient[:] = 0.0
                for a in range(n_logits):
                    _add_products(gradient[a * m : (a + 1) * m], residuals[a], Z, columns, m, start, n_samples)
                    for j in range(m - 1):
                        gradient[a * m + j] += ridge * current[a, j]
                if largest > _SAME_CURVATURE:
                    _curvature(blocks, probabilities, Z, columns, weighted)
            if largest > _SAME_CURVATURE:
                _assemble(H, blocks, n_logits, ridge)
                _factor(H)
            for a in range(n_logits):
                for j in range(m):
                    step[a, j] = -gradient[a * m + j]
            _substitute(H, step.reshape(n_logits * m))
            slope = 0.0
            for a in range(n_logits):
                for j in range(m):
                    slope += step[a, j] * gradient[a * m + j]
            largest = _add_moves(moves, Z, columns, step)
            for a in range(n_logits):
                for j in range(m):
                    current[a, j] += step[a, j]
                for i in range(n_samples):
                    margins[a, i] += moves[a, i]
            if largest < _LAST_MOVE:
                break
        n_failed += 0 if largest < _LAST_MOVE else 1
        for a in range(n_logits):
            for j in range(m):
                theta[s, a, columns[j]] = current[a, j]
    return n_failed


@kernel()
def margins_of(Z: Array, columns: Array, theta: Array, intercept: Array, margins: Array) -> None:
    """Margins = intercept + theta @ Z[columns], term by term: a sample gets the same bits alone or among others."""
    n_logits, n_samples = margins.shape
    for a in range(n_logits):
        margin = margins[a]
        start = intercept[a]
        for i in range(n_samples):
            margin[i] = start
        j = 0
        while j + 2 <= columns.size:  # two terms a pass: half the traffic of the sums
            z0 = Z[columns[j]]
            z1 = Z[columns[j + 1]]
            t0 = theta[a, j]
            t1 = theta[a, j + 1]
            for i in range(n_samples):
                margin[i] = fma(t1, z1[i], fma(t0, z0[i], margin[i]))
            j += 2
        if j < columns.size:
            z0 = Z[columns[j]]
            t0 = theta[a, j]
            for i in range(n_samples):
                margin[i] = fma(t0, z0[i], margin[i])


@kernel()
def predict(Z: Array, columns: Array, theta: Array, intercept: Array) -> Array:
    """Class probabilities (n_classes, n_samples) of one model; theta is (n_logits, columns.size)."""
    n_logits = theta.shape[0]
    n_samples = Z.shape[1]
    probabilities = np.empty((max(n_logits, 2), n_samples))
    margins = np.empty((n_logits, n_samples))
    margins_of(Z, columns, theta, intercept, margins)
    probabilities_of(margins, probabilities[probabilities.shape[0] - n_logits :])
    if n_logits == 1:
        for i in range(n_samples):
            probabilities[0, i] = 1.0 - probabilities[1, i]
    return probabilities


@kernel()
def outcomes(Z: Array, members: Array, starts: Array, theta: Array, confidence: Array, label: Array) -> None:
    """Top class probability (n_sets, n_samples) and the class that has it, the lowest index on a tie."""
    n_samples = Z.shape[1]
    for s in range(starts.size - 1):
        columns = members[starts[s] : starts[s + 1] - 1]
        chosen = np.empty((theta.shape[1], columns.size))
        for a in range(theta.shape[1]):
            for j in range(columns.size):
                chosen[a, j] = theta[s, a, columns[j]]
        probabilities = predict(Z, columns, chosen, theta[s, :, theta.shape[2] - 1].copy())
        for i in range(n_samples):
            best = 0
            for a in range(1, probabilities.shape[0]):
                if probabilities[a, i] > probabilities[best, i]:
                    best = a
            confidence[s, i] = probabilities[best, i]
            label[s, i] = best
