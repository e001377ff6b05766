"""Trees of linear models with soft routing: what one costs, its gradient in one pass over the rows, and the descent.

Nodes are numbered from the root, level by level; the children of k are 2k + 1 and 2k + 2. The parameters are one
vector: weight vectors (n_vectors, n_columns), then an offset for each inner node, then biases (n_judged, n_logits). The
first ``n_inner`` weight vectors route; those from ``first_class`` on classify, n_logits of them for each of the last
``n_judged`` nodes.
"""

from typing import Any, NamedTuple

import numpy as np

from emsco._compile import kernel
from emsco._scalar import exponential, logistic
from emsco.stages._logistic import margins_of

Array = Any

_BLOCK = 256  # rows at a time: what belongs to them stays in the cache
_CORRECTIONS = 20  # steps that L-BFGS remembers
_SMALL_DROP = 2e-9  # of the objective in a step: it stops there
_SMALL_SLOPE = 1e-5  # or there
_MAX_TRIALS = 30  # of a line search


class Task(NamedTuple):
    """What is minimised: data, the form of the tree, and the penalties.

    Attributes
    ----------
    Z : ndarray of shape (n_columns, n_rows)
    codes : ndarray of shape (n_rows,)
    row_weights : ndarray of shape (n_rows,)
    n_inner, n_judged, n_logits, first_class : int
        One logit: two classes, of which the first scores 0.
    temperature : float
        Softness of the routing.
    on_path : ndarray of shape (n_exits, n_vectors)
        Whether a weight vector belongs to a node on the path to an exit.
    charge_of : ndarray of shape (2, n_columns)
        The two charges that a column incurs, once on a path.
    charges : ndarray of shape (n_charges,)
    sparsity, ridge : float
        Weights of the l1 norm, and of half the squared l2 norm, of the weights.
    """

    Z: Array
    codes: Array
    row_weights: Array
    n_inner: int
    n_judged: int
    n_logits: int
    first_class: int
    temperature: float
    on_path: Array
    charge_of: Array
    charges: Array
    sparsity: float
    ridge: float


@kernel(fastmath=True)
def _products(weights: Array, Z: Array, start: int, stop: int, scores: Array) -> None:
    """Set scores = weights @ Z[:, start:stop]."""
    n_columns = weights.shape[1]
    for v in range(weights.shape[0]):
        score = scores[v, : stop - start]
        for i in range(score.size):
            score[i] = 0.0
        j = 0
        while j + 4 <= n_columns:
            z0 = Z[j, start:stop]
            z1 = Z[j + 1, start:stop]
            z2 = Z[j + 2, start:stop]
            z3 = Z[j + 3, start:stop]
            w0 = weights[v, j]
            w1 = weights[v, j + 1]
            w2 = weights[v, j + 2]
            w3 = weights[v, j + 3]
            for i in range(score.size):
                score[i] += w0 * z0[i] + w1 * z1[i] + w2 * z2[i] + w3 * z3[i]
            j += 4
        while j < n_columns:
            z0 = Z[j, start:stop]
            w0 = weights[v, j]
            for i in range(score.size):
                score[i] += w0 * z0[i]
            j += 1


@kernel(fastmath=True)
def _add_products(slopes: Array, Z: Array, start: int, stop: int, gradient: Array) -> None:
    """Add slopes @ Z[:, start:stop].T to the gradient."""
    n_columns = gradient.shape[1]
    for v in range(gradient.shape[0]):
        slope = slopes[v, : stop - start]
        j = 0
        while j + 4 <= n_columns:
            z0 = Z[j, start:stop]
            z1 = Z[j + 1, start:stop]
            z2 = Z[j + 2, start:stop]
            z3 = Z[j + 3, start:stop]
            sum0 = sum1 = sum2 = sum3 = 0.0
            for i in range(slope.size):
                sum0 += slope[i] * z0[i]
                sum1 += slope[i] * z1[i]
                sum2 += slope[i] * z2[i]
                sum3 += slope[i] * z3[i]
            gradient[v, j] += sum0
            gradient[v, j + 1] += sum1
            gradient[v, j + 2] += sum2
            gradient[v, j + 3] += sum3
            j += 4
        while j < n_columns:
            z0 = Z[j, start:stop]
            sum0 = 0.0
            for i in range(slope.size):
                sum0 += slope[i] * z0[i]
            gradient[v, j] += sum0
            j += 1


@kernel(fastmath=True)
def _sum(values: Array) -> float:
    total = 0.0
    for i in range(values.size):
        total += values[i]
    return total


@kernel()
def _clear(values: Array) -> None:  # values[:] = 0.0 would compile for seconds
    for i in range(values.size):
        values[i] = 0.0


@kernel()
def _largest(values: Array) -> float:
    largest = 0.0
    for i in range(values.size):
        largest = max(largest, abs(values[i]))
    return largest


@kernel(fastmath=True)
def _dot(a: Array, b: Array) -> float:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel(fastmath=True)
def _add(target: Array, factor: float, other: Array) -> None:
    for i in range(target.size):
        target[i] += factor * other[i]


@kernel()
def _losses(scores: Array, biases: Array, codes: Array, loss: Array, residuals: Array) -> None:
    """Log-loss of the scores of one node (n_logits, n_rows), and its slopes; one logit: the other class scores 0."""
    n_logits = biases.size
    n_rows = codes.size
    if n_logits == 1:
        score = scores[0]
        residual = residuals[0]
        bias = biases[0]
        for i in range(n_rows):
            s = score[i] + bias
            small = exponential(-abs(s))
            loss[i] = 1.0 + small
            residual[i] = (1.0 if s > 0.0 else small) / (1.0 + small) - codes[i]
        for i in range(n_rows):
            s = score[i] + bias
            loss[i] = np.log(loss[i]) + max(s, 0.0) - codes[i] * s
        return
    for i in range(n_rows):
        top = scores[0, i] + biases[0]
        for a in range(1, n_logits):
            top = max(top, scores[a, i] + biases[a])
        total = 0.0
        for a in range(n_logits):
            power = exponential(scores[a, i] + biases[a] - top)
            residuals[a, i] = power
            total += power
        for a in range(n_logits):
            residuals[a, i] /= total
        own = codes[i]
        residuals[own, i] -= 1.0
        loss[i] = np.log(total) + top - scores[own, i] - biases[own]


@kernel()
def _add_expected_loss(
    task: Task, parameters: tuple[Array, ...], gradients: tuple[Array, ...], exit_prices: Array, shares: Array
) -> float:
    """Return the sum over rows and judged nodes of row weight, probability of reaching the node, and log-loss there.

    ``shares`` becomes the weight that reaches each exit. Adds the gradients of that sum and of shares @ exit_prices.
    """
    weights, offsets, biases = parameters
    weight_gradient, offset_gradient, bias_gradient = gradients
    n_inner = task.n_inner
    n_exits = n_inner + 1
    n_nodes = n_inner + n_exits
    n_logits = task.n_logits
    n_rows = task.codes.size
    first_judged = n_nodes - task.n_judged
    scores = np.empty((weights.shape[0], _BLOCK))
    slopes = np.empty((weights.shape[0], _BLOCK))
    up = np.empty((n_inner, _BLOCK))
    reached = np.empty((n_nodes, _BLOCK))
    added = np.empty((n_nodes, _BLOCK))  # what one more input in the node would add to the sum
    residuals = np.empty((n_logits, _BLOCK))
    value = 0.0
    _clear(shares)
    for start in range(0, n_rows, _BLOCK):
        stop = min(start + _BLOCK, n_rows)
        size = stop - start
        _products(weights, task.Z, start, stop, scores)
        for i in range(size):
            reached[0, i] = task.row_weights[start + i]
        for k in range(n_inner):
            for i in range(size):
                up[k, i] = logistic((scores[k, i] + offsets[k]) / task.temperature)
            for i in range(size):
                reached[2 * k + 2, i] = reached[k, i] * up[k, i]
                reached[2 * k + 1, i] = reached[k, i] - reached[2 * k + 2, i]
        _clear(slopes.reshape(slopes.size))
        _clear(added.reshape(added.size))
        for m in range(task.n_judged):
            k = first_judged + m
            v = task.first_class + m * n_logits
            _losses(scores[v : v + n_logits], biases[m], task.codes[start:stop], added[k], residuals)
            value += _dot(reached[k, :size], added[k, :size])
            for a in range(n_logits):
                for i in range(size):
                    slopes[v + a, i] = reached[k, i] * residuals[a, i]
                bias_gradient[m, a] += _sum(slopes[v + a, :size])
        for e in range(n_exits):
            shares[e] += _sum(reached[n_inner + e, :size])
            for i in range(size):
                added[n_inner + e, i] += exit_prices[e]
        change = residuals[0]
        for k in range(n_inner - 1, -1, -1):
            low = added[2 * k + 1]
            high = added[2 * k + 2]
            for i in range(size):
                gain = high[i] - low[i]
                added[k, i] += low[i] + up[k, i] * gain
                change[i] = reached[k, i] * gain * up[k, i] * (1.0 - up[k, i]) / task.temperature
            for i in range(size):
                slopes[k, i] += change[i]
            offset_gradient[k] += _sum(change[:size])
        _add_products(slopes, task.Z, start, stop, weight_gradient)
    return value


@kernel()
def _parts(vector: Array, task: Task) -> tuple[Array, Array, Array]:
    """Weights, offsets and biases, as views."""
    n_columns = task.Z.shape[0]
    n_vectors = task.on_path.shape[1]
    n_weights = n_vectors * n_columns
    end = n_weights + task.n_inner
    return (
        vector[:n_weights].reshape(n_vectors, n_columns),
        vector[n_weights:end],
        vector[end:].reshape(task.n_judged, task.n_logits),
    )


@kernel()
def objective(vector: Array, task: Task, price_weight: float, smoothing: float, gradient: Array) -> float:
    """Return the expected loss with its penalties; absolute values and norms are smoothed: sqrt(z + smoothing)."""
    weights, offsets, biases = _parts(vector, task)
    _clear(gradient)
    gradients = _parts(gradient, task)
    weight_gradient = gradients[0]
    n_vectors, n_columns = weights.shape
    n_exits = task.n_inner + 1
    rest = np.sqrt(smoothing)

    norms = np.empty((n_exits, task.charges.size))
    for e in range(n_exits):
        for c in range(task.charges.size):
            norms[e, c] = smoothing  # squared at first
        for v in range(n_vectors):
            if task.on_path[e, v]:
                for j in range(n_columns):
                    square = weights[v, j] * weights[v, j]
                    norms[e, task.charge_of[0, j]] += square
                    norms[e, task.charge_of[1, j]] += square
    path_prices = np.empty(n_exits)
    for e in range(n_exits):
        path_prices[e] = 0.0
        for c in range(task.charges.size):
            norms[e, c] = np.sqrt(norms[e, c])
            path_prices[e] += price_weight * task.charges[c] * (norms[e, c] - rest)

    shares = np.empty(n_exits)
    value: float = _add_expected_loss(task, (weights, offsets, biases), gradients, path_prices, shares)
    for e in range(n_exits):
        value += shares[e] * path_prices[e]
        for c in range(task.charges.size):
            norms[e, c] = price_weight * shares[e] * task.charges[c] / norms[e, c]  # now the pull on the weights
        for v in range(n_vectors):
            if task.on_path[e, v]:
                for j in range(n_columns):
                    pull = norms[e, task.charge_of[0, j]] + norms[e, task.charge_of[1, j]]
                    weight_gradient[v, j] += pull * weights[v, j]
    for v in range(n_vectors):
        for j in range(n_columns):
            w = weights[v, j]
            root = np.sqrt(w * w + smoothing)
            value += task.sparsity * (root - rest) + 0.5 * task.ridge * w * w
            weight_gradient[v, j] += (task.sparsity / root + task.ridge) * w
    return value


@kernel()
def _direction(gradient: Array, steps: Array, turns: Array, n_kept: int, newest: int, direction: Array) -> None:
    """Set direction = -H gradient, H the inverse Hessian that steps and the turns of the gradient on them suggest."""
    for i in range(direction.size):
        direction[i] = -gradient[i]
    if n_kept == 0:
        return
    factors = np.empty(n_kept)
    for age in range(n_kept):
        m = (newest - age) % _CORRECTIONS
        factors[age] = _dot(steps[m], direction) / _dot(steps[m], turns[m])
        _add(direction, -factors[age], turns[m])
    scale = _dot(steps[newest], turns[newest]) / _dot(turns[newest], turns[newest])
    for i in range(direction.size):
        direction[i] *= scale
    for age in range(n_kept - 1, -1, -1):
        m = (newest - age) % _CORRECTIONS
        _add(direction, factors[age] - _dot(turns[m], direction) / _dot(steps[m], turns[m]), steps[m])


@kernel()
def descend(vector: Array, task: Task, price_weight: float, smoothing: float, max_steps: int) -> Array:
    """Move the parameters to a minimum by L-BFGS, in place, and return the values of the objective on the way."""
    size = vector.size
    gradient = np.empty(size)
    new_gradient = np.empty(size)
    new_vector = np.empty(size)
    direction = np.empty(size)
    steps = np.empty((_CORRECTIONS, size))
    turns = np.empty((_CORRECTIONS, size))
    values = np.empty(max_steps + 1)
    values[0] = objective(vector, task, price_weight, smoothing, gradient)
    n_kept = 0
    newest = -1
    n_done = 0
    while n_done < max_steps and _largest(gradient) > _SMALL_SLOPE:
        value = values[n_done]
        _direction(gradient, steps, turns, n_kept, newest, direction)
        slope = _dot(direction, gradient)
        # A step is long enough when the slope has flattened, and short enough when the value has dropped (Wolfe).
        step = 1.0 if n_kept else min(1.0, 1.0 / np.sqrt(-slope))
        shortest = 0.0
        longest = np.inf
        found = False
        for _ in range(_MAX_TRIALS):
            for i in range(size):
                new_vector[i] = vector[i] + step * direction[i]
            new_value = objective(new_vector, task, price_weight, smoothing, new_gradient)
            found = new_value <= value + 1e-4 * step * slope
            if not found:
                longest = step
            elif _dot(direction, new_gradient) < 0.9 * slope:
                shortest = step
            else:
                break
            step = 2.0 * step if longest == np.inf else 0.5 * (shortest + longest)
        if not found:
            if n_kept == 0:
                break
            n_kept = 0  # the memory misleads: try the gradient itself
            continue
        n_done += 1
        values[n_done] = new_value
        newest = (newest + 1) % _CORRECTIONS
        for i in range(size):
            steps[newest, i] = new_vector[i] - vector[i]
            turns[newest, i] = new_gradient[i] - gradient[i]
            vector[i] = new_vector[i]
            gradient[i] = new_gradient[i]
        n_kept = min(n_kept + 1, _CORRECTIONS)
        if _dot(steps[newest], turns[newest]) <= 1e-12 * _dot(turns[newest], turns[newest]):
            n_kept = 0  # no curvature to learn from
        if value - new_value <= _SMALL_DROP * max(abs(value), 1.0):
            break
    return values[: n_done + 1]


@kernel()
def route(Z: Array, columns: Array, coef: Array, intercept: Array, scores: Array) -> None:
    """Fill the scores (1, n_rows) by which a node routes rows: to the right where they are positive."""
    margins_of(Z, columns, coef, intercept, Z.shape[1], scores)
