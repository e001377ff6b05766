"""l2-regularised logistic regressions on many feature sets: Newton's method, one set after another.

Arrays in, arrays out, no checks. Samples lie along the last axis, so that every inner loop walks contiguous memory:
``Z`` is (n_columns + 1, n_samples) and its last row is all ones, for the intercept. Feature set ``s`` owns the rows
``members[starts[s]:starts[s + 1]]`` of ``Z``, the last of them always the row of ones. Two classes have one logit,
L >= 3 classes have L (softmax, as scikit-learn parametrises it). The result of a set depends on nothing but the set:
not on its neighbours in the batch, nor on the number of threads.

The objective is scikit-learn's: sum of log-losses + ridge / 2 * ||coefficients||^2, with ridge = 1 / C and the
intercepts unpenalised.

Compilation is most of a first search, so kernels get the arrays they work in from `workspace`, and clear them by loops:
every form of ``np.empty``, ``max`` or ``a[:] = b`` is another function to compile, some of them for seconds.
"""

from typing import Any, NamedTuple

import numpy as np

from emsco._compile import inlined, kernel, part
from emsco._scalar import exponential, fma, logistic

Array = Any  # numba sees concrete arrays; a precise annotation would only be repeated in every signature

BLOCK = 512  # samples handled at a time: the columns of one block stay in the first-level cache
MAX_ITERATIONS = 200
# A step that moves no margin of a training sample by more than this is the last. The error left is smaller by a factor
# of at least a hundred (see below); samples far outside the training data see a multiple of it.
LAST_MOVE = 1e-6
# After a step that moves no margin by more than this, the curvature has changed by about as little: keep its factor.
_SAME_CURVATURE = 1e-2
OVERSHOT = 0.5  # a step is halved when the slope at its end points back with more than this share of its start


class Workspace(NamedTuple):
    """The arrays in which `fit` works.

    Attributes
    ----------
    margins, moves, probabilities, residuals : ndarray of shape (n_logits, n_samples)
    weight : ndarray of shape (n_samples,)
    weighted : ndarray of shape (2, BLOCK)
    blocks : ndarray of shape (n_logits * (n_logits + 1) / 2, m, m)
        m is the largest number of columns of a set, the intercept's included.
    H : ndarray of shape (n_logits * m, n_logits * m)
    current, step, gradient : ndarray of shape (n_logits * m,)
    """

    margins: Array
    moves: Array
    probabilities: Array
    residuals: Array
    weight: Array
    weighted: Array
    blocks: Array
    H: Array
    current: Array
    step: Array
    gradient: Array


def workspace(n_logits: int, n_samples: int, m: int) -> Workspace:
    """Return the arrays in which `fit` works, for sets of at most m columns, the intercept's included."""
    size = n_logits * m
    margins, moves, probabilities, residuals = np.empty((4, n_logits, n_samples))
    return Workspace(
        margins,
        moves,
        probabilities,
        residuals,
        weight=np.empty(n_samples),
        weighted=np.empty((2, BLOCK)),
        blocks=np.empty((n_logits * (n_logits + 1) // 2, m, m)),
        H=np.empty((size, size)),
        current=np.empty(size),
        step=np.empty(size),
        gradient=np.empty(size),
    )


@part(fastmath=True)
def add_products(row: Array, weighted: Array, Z: Array, members: Array, count: int, start: Any, stop: int) -> None:
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


@part(fastmath=True)
def _add_pairs(
    row0: Array, row1: Array, even: Array, odd: Array, Z: Array, members: Array, count: int, start: int, stop: int
) -> None:
    """As add_products, for two rows at once: eight sums from six loads keep the multipliers busy."""
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


@part()
def margins_of(Z: Array, columns: Array, theta: Array, intercept: Array, n: int, margins: Array) -> None:
    """Margins = intercept + theta @ Z[columns] of the first n samples.

    Term by term: a sample gets the same bits alone or among others.
    """
    for a in range(margins.shape[0]):
        start = intercept[a]
        for i in range(n):
            margins[a, i] = start
        j = 0
        while j + 2 <= columns.size:  # two terms a pass: half the traffic of the sums
            c0 = columns[j]
            c1 = columns[j + 1]
            t0 = theta[a, j]
            t1 = theta[a, j + 1]
            for i in range(n):
                margins[a, i] = fma(t1, Z[c1, i], fma(t0, Z[c0, i], margins[a, i]))
            j += 2
        if j < columns.size:
            c0 = columns[j]
            t0 = theta[a, j]
            for i in range(n):
                margins[a, i] = fma(t0, Z[c0, i], margins[a, i])


@part()
def probabilities_of(margins: Array, n: int, probabilities: Array, total: Array) -> None:
    """Class probabilities of n margins (n_logits, n_samples); with one logit, those of the second class.

    Not in place: overlapping arrays would keep LLVM from vectorising. ``total`` is an array to work in.
    """
    n_logits = margins.shape[0]
    if n_logits == 1:
        for i in range(n):
            probabilities[0, i] = logistic(margins[0, i])
        return
    for i in range(n):  # it holds the largest margin first
        total[i] = margins[0, i]
    for a in range(1, n_logits):
        for i in range(n):
            total[i] = margins[a, i] if margins[a, i] > total[i] else total[i]
    for a in range(n_logits):
        for i in range(n):
            probabilities[a, i] = exponential(margins[a, i] - total[i])
    for i in range(n):
        total[i] = 0.0
    for a in range(n_logits):
        for i in range(n):
            total[i] += probabilities[a, i]
    for a in range(n_logits):
        for i in range(n):
            probabilities[a, i] /= total[i]


@part()
def top_of(probabilities: Array, n: int, confidence: Array, label: Array) -> None:
    """Top probability of n samples and the class that has it, the lowest index on a tie."""
    if probabilities.shape[0] == 1:
        for i in range(n):
            p = probabilities[0, i]
            q = 1.0 - p
            label[i] = 1 if p > q else 0
            confidence[i] = p if p > q else q
        return
    for i in range(n):
        best = 0
        for a in range(1, probabilities.shape[0]):
            if probabilities[a, i] > probabilities[best, i]:
                best = a
        confidence[i] = probabilities[best, i]
        label[i] = best


@part(fastmath=True)
def factor(H: Array, n: int) -> None:
    """Overwrite the lower triangle of a positive definite H, n x n, by its Cholesky factor."""
    for j in range(n):
        row = H[j]
        diagonal = row[j]
        pivot = diagonal
        for k in range(j):
            pivot -= row[k] * row[k]
        # Rounding may eat a pivot of a nearly singular matrix.
        least = 1e-14 * diagonal if 1e-14 * diagonal > 1e-300 else 1e-300
        pivot = np.sqrt(pivot if pivot > least else least)
        row[j] = pivot
        for i in range(j + 1, n):
            other = H[i]
            value = other[j]
            for k in range(j):
                value -= other[k] * row[k]
            other[j] = value / pivot


@part(fastmath=True)
def substitute(factor: Array, x: Array, n: int) -> None:
    """Overwrite the n values of x by the solution of factor factor^T y = x."""
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


@part(fastmath=True)
def slope_along(residuals: Array, moves: Array, theta: Array, step: Array, m: int, ridge: float) -> float:
    """Return the derivative of the objective along the step, at the point that gave the residuals."""
    slope = 0.0
    for a in range(residuals.shape[0]):
        for i in range(residuals.shape[1]):
            slope += residuals[a, i] * moves[a, i]
        for j in range(a * m, a * m + m - 1):
            slope += ridge * theta[j] * step[j]
    return slope


@part(fastmath=True)
def moves_of(Z: Array, members: Array, step: Array, moves: Array) -> float:
    """Set moves = step @ Z[members] and return the largest absolute value."""
    largest = 0.0
    m = members.size
    n_samples = moves.shape[1]
    for a in range(moves.shape[0]):
        move = moves[a]
        for i in range(n_samples):
            move[i] = 0.0
        for j in range(m):
            z = Z[members[j]]
            s = step[a * m + j]
            for i in range(n_samples):
                move[i] += s * z[i]
        for i in range(n_samples):
            largest = abs(move[i]) if abs(move[i]) > largest else largest
    return largest


@part(fastmath=True)
def curvature_of(probabilities: Array, Z: Array, members: Array, blocks: Array, weight: Array, weighted: Array) -> None:
    """blocks[pair] = Z[members] diag(p_a (1[a = b] - p_b)) Z[members]^T, lower triangles, for logits b <= a.

    ``weight`` and ``weighted`` are arrays to work in.
    """
    n_logits, n_samples = probabilities.shape
    m = members.size
    pair = 0
    for a in range(n_logits):
        for b in range(a + 1):
            block = blocks[pair]
            for j in range(m):
                for k in range(m):
                    block[j, k] = 0.0
            for i in range(n_samples):
                weight[i] = probabilities[a, i] * ((1.0 if a == b else 0.0) - probabilities[b, i])
            for start in range(0, n_samples, BLOCK):
                stop = start + BLOCK if start + BLOCK < n_samples else n_samples
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
                    _add_pairs(block[j], block[j + 1], even, odd, Z, members, j + 2, start, stop)
                if m % 2:
                    z0 = Z[members[m - 1], start:stop]
                    for i in range(v.size):
                        even[i] = v[i] * z0[i]
                    add_products(block[m - 1], even, Z, members, m, start, stop)
            pair += 1


@inlined
def assemble(H: Array, blocks: Array, n_logits: int, m: int, ridge: float) -> None:
    """Lower triangle of the Hessian from its blocks, m x m."""
    pair = 0
    for a in range(n_logits):
        for b in range(a + 1):
            for j in range(m):
                for k in range(j + 1):
                    value = blocks[pair, j, k]
                    H[a * m + j, b * m + k] = value
                    if a != b:
                        H[a * m + k, b * m + j] = value
            if n_logits > 1:
                # Adding one number to all intercepts changes no probability, so H is singular in that direction. The
                # gradient has no part in it: stiffening it changes nothing but the rank.
                H[a * m + m - 1, b * m + m - 1] += 1.0
            pair += 1
        for j in range(a * m, a * m + m - 1):
            H[j, j] += ridge


@kernel()
def moments(Z: Array, targets: Array, rows: Array, gram: Array, cross: Array) -> None:
    """Add Z @ Z.T (its lower triangle) to gram and targets @ Z.T to cross; unlike BLAS, the same bits for any threads.

    ``rows`` counts the rows of Z: 0, 1, ...
    """
    start = np.int64(0)  # a literal 0 would be a type of its own, compiled apart
    for j in range(rows.size):
        add_products(gram[j], Z[j], Z, rows, j + 1, start, Z.shape[1])
    for a in range(targets.shape[0]):
        add_products(cross[a], targets[a], Z, rows, rows.size, start, Z.shape[1])


@inlined
def _begin(gram: Array, cross: Array, columns: Array, n_samples: int, work: Workspace) -> None:
    """Start at the class frequencies: fill weights, margins, gradient and curvature."""
    margins, _, _, _, _, _, blocks, _, current, _, gradient = work
    n_logits = cross.shape[0]
    m = columns.size
    ones = gram.shape[0] - 1
    pair = 0
    for a in range(n_logits):
        prior = cross[a, ones] / n_samples
        intercept = np.log(prior / (1.0 - prior)) if n_logits == 1 else np.log(prior)
        for i in range(n_samples):
            margins[a, i] = intercept
        for b in range(a + 1):
            weight = prior * ((1.0 if a == b else 0.0) - cross[b, ones] / n_samples)
            for j in range(m):
                for k in range(j + 1):
                    blocks[pair, j, k] = weight * gram[columns[j], columns[k]]
            pair += 1
        for j in range(m):
            current[a * m + j] = 0.0
            gradient[a * m + j] = prior * gram[ones, columns[j]] - cross[a, columns[j]]
        current[a * m + m - 1] = intercept


@inlined
def _go_on(Z: Array, targets: Array, columns: Array, ridge: float, slope: float, bends: bool, work: Workspace) -> None:
    """Halve the last step while it overshoots, then fill the gradient and, if it ``bends``, the curvature."""
    margins, moves, probabilities, residuals, weight, weighted, blocks, _, current, step, gradient = work
    n_logits, n_samples = targets.shape
    m = columns.size
    size = 1.0
    while True:
        probabilities_of(margins, n_samples, probabilities, weight)
        for a in range(n_logits):
            for i in range(n_samples):
                residuals[a, i] = probabilities[a, i] - targets[a, i]
        if slope_along(residuals, moves, current, step, m, ridge) <= -OVERSHOT * slope or size < 1e-9:
            break
        size /= 2.0
        for a in range(n_logits):
            for i in range(n_samples):
                margins[a, i] -= size * moves[a, i]
        for j in range(n_logits * m):
            current[j] -= size * step[j]
    for j in range(n_logits * m):
        gradient[j] = 0.0
    start = np.int64(0)
    for a in range(n_logits):
        add_products(gradient[a * m : (a + 1) * m], residuals[a], Z, columns, m, start, n_samples)
        for j in range(a * m, a * m + m - 1):
            gradient[j] += ridge * current[j]
    if bends:
        curvature_of(probabilities, Z, columns, blocks, weight, weighted)


@kernel()
def fit(
    Z: Array, targets: Array, gram: Array, cross: Array, members: Array, starts: Array, ridge: float, theta: Array,
    work: Workspace,
) -> int:  # fmt: skip
    """Fill theta (n_sets, n_logits, n_columns + 1) with the minimisers; columns outside a set keep what they hold.

    Returns how many sets did not converge.

    ``targets`` is (n_logits, n_samples), one where the sample is of the logit's class. ``gram`` and ``cross`` are
    its ``moments``: they give gradient and Hessian at the class frequencies, where every set starts, for a copy.
    """
    margins, moves, _, _, _, _, blocks, H, current, step, gradient = work
    n_logits, n_samples = targets.shape
    n_failed = 0
    for s in range(starts.size - 1):
        columns = members[starts[s] : starts[s + 1]]
        m = columns.size
        slope = 0.0
        largest = 1.0
        iteration = 0
        while largest >= LAST_MOVE and iteration < MAX_ITERATIONS:
            bends = largest > _SAME_CURVATURE
            if iteration == 0:
                _begin(gram, cross, columns, n_samples, work)
            else:
                _go_on(Z, targets, columns, ridge, slope, bends, work)
            if bends:
                assemble(H, blocks, n_logits, m, ridge)
                factor(H, n_logits * m)
            for j in range(n_logits * m):
                step[j] = -gradient[j]
            substitute(H, step, n_logits * m)
            largest = moves_of(Z, columns, step, moves)
            slope = 0.0
            for j in range(n_logits * m):
                slope += step[j] * gradient[j]
                current[j] += step[j]
            for a in range(n_logits):
                for i in range(n_samples):
                    margins[a, i] += moves[a, i]
            iteration += 1
        n_failed += 0 if largest < LAST_MOVE else 1
        for a in range(n_logits):
            for j in range(m):
                theta[s, a, columns[j]] = current[a * m + j]
    return n_failed


@kernel()
def _predict(
    Z: Array, columns: Array, theta: Array, intercept: Array, margins: Array, total: Array, probabilities: Array
) -> None:
    """Fill probabilities (n_classes, n_samples)."""
    n_logits = theta.shape[0]
    n_samples = Z.shape[1]
    margins_of(Z, columns, theta, intercept, n_samples, margins)
    if n_logits > 1:
        probabilities_of(margins, n_samples, probabilities, total)
        return
    first = probabilities[0]
    second = probabilities[1:]
    probabilities_of(margins, n_samples, second, total)
    for i in range(n_samples):
        first[i] = 1.0 - second[0, i]


def predict(Z: Array, columns: Array, theta: Array, intercept: Array) -> Array:
    """Class probabilities (n_classes, n_samples) of one model; theta is (n_logits, columns.size)."""
    n_logits, n_samples = len(theta), Z.shape[1]
    probabilities = np.empty((max(n_logits, 2), n_samples))
    work = np.empty((n_logits + 1, n_samples))
    _predict(Z, columns, theta, intercept, work[:-1], work[-1], probabilities)
    return probabilities


@kernel()
def _outcomes(
    Z: Array, members: Array, starts: Array, theta: Array, confidence: Array, label: Array,
    chosen: Array, intercept: Array, margins: Array, probabilities: Array, total: Array,
) -> None:  # fmt: skip
    """Fill confidence and label; what follows are arrays to work in."""
    n_logits = theta.shape[1]
    n_samples = Z.shape[1]
    for s in range(starts.size - 1):
        columns = members[starts[s] : starts[s + 1] - 1]
        for a in range(n_logits):
            for j in range(columns.size):
                chosen[a, j] = theta[s, a, columns[j]]
            intercept[a] = theta[s, a, theta.shape[2] - 1]
        margins_of(Z, columns, chosen, intercept, n_samples, margins)
        probabilities_of(margins, n_samples, probabilities, total)
        top_of(probabilities, n_samples, confidence[s], label[s])


def outcomes(Z: Array, members: Array, starts: Array, theta: Array, confidence: Array, label: Array) -> None:
    """Top class probability (n_sets, n_samples) and the class that has it, the lowest index on a tie."""
    n_logits, n_samples = theta.shape[1], Z.shape[1]
    margins, probabilities = np.empty((2, n_logits, n_samples))
    chosen, intercept, total = np.empty(theta.shape[1:]), np.empty(n_logits), np.empty(n_samples)
    _outcomes(Z, members, starts, theta, confidence, label, chosen, intercept, margins, probabilities, total)
