from itertools import product

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from scipy.optimize import linprog
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco.baselines.stage_lp import StageLP, learn_gates, savings
from emsco.exceptions import InvalidParameterError
from tests.baselines.contract import check_contract, costs_of, data

QUICK = {"price_weights": [0.02, 0.2], "max_stages": 3, "random_state": 0}


@pytest.mark.parametrize("inputs", ["features", "confidence"])
def test_it_keeps_the_contract_of_rivals(inputs):
    check_contract(StageLP(threshold=0.7, inputs=[inputs], **QUICK))


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")  # some checks draw a class of one row
@parametrize_with_checks([StageLP(price_weights=[0.1])])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def exits(opened):
    """The stage where each row leaves, by the gates that are open to it, (n_rows, n_gates)."""
    closed = np.column_stack([~opened, np.ones(len(opened), dtype=bool)])
    return closed.argmax(axis=1)


@pytest.mark.parametrize("n_stages", [2, 3, 4, 5])
def test_the_loss_of_hard_gates_is_a_maximum_over_stages(n_stages):
    rng = np.random.default_rng(n_stages)
    opened = np.array(list(product([False, True], repeat=n_stages - 1)))
    for _ in range(50):
        losses = rng.integers(0, 2, (1, n_stages)) + np.sort(rng.random((1, n_stages)).round(2))
        saved = savings(losses)[0]
        for gates, leaves in zip(opened, exits(opened), strict=True):
            values = [
                saved[:m][gates[:m]].sum() + (saved[m + 1 :].sum() if m < n_stages - 1 and not gates[m] else 0)
                for m in range(n_stages)
            ]
            assert_allclose(losses.max() - saved.sum() + max(values), losses[0, leaves], atol=1e-12)


def cascade(seed, n_stages, n_rows=60):
    rng = np.random.default_rng(seed)
    inputs = [rng.normal(size=(2 + j, n_rows)) for j in range(n_stages - 1)]
    losses = (rng.random((n_rows, n_stages)) < 0.3) + 0.4 * np.linspace(0.2, 1, n_stages)
    return inputs, losses


@pytest.mark.parametrize("n_stages", [2, 3, 5])
def test_the_optimum_bounds_the_loss_of_its_gates(n_stages):
    for seed in range(5):
        inputs, losses = cascade(seed, n_stages)
        weights, bound = learn_gates(inputs, losses, 1e-4)
        opened = np.column_stack([w[:-1] @ z + w[-1] > 0 for w, z in zip(weights, inputs, strict=True)])
        loss = losses[np.arange(len(losses)), exits(opened)].mean()
        constant = (losses.max(axis=1) - savings(losses).sum(axis=1)).mean()
        assert bound >= loss - constant - 1e-9


def test_two_stages_are_a_weighted_hinge_classification():
    inputs, losses = cascade(0, 2)
    weights, bound = learn_gates(inputs, losses, 1e-4)
    gain = losses[:, 0] - losses[:, 1]  # of going on
    Z = np.vstack([inputs[0], np.ones(len(gain))]).T
    signed = np.sign(gain)[:, None] * Z
    n = Z.shape[1]
    program = linprog(
        np.concatenate([np.full(2 * n, 1e-4), np.abs(gain) / len(gain)]),
        A_ub=-np.hstack([signed, -signed, np.eye(len(gain))]),
        b_ub=-np.ones(len(gain)),
    )
    assert_allclose(weights[0], program.x[:n] - program.x[n : 2 * n], atol=1e-7)
    assert_allclose(bound + 1e-4 * np.abs(weights[0]).sum(), program.fun)


def test_the_same_program_has_the_same_solution():
    inputs, losses = cascade(1, 4)
    first, second = learn_gates(inputs, losses, 1e-4), learn_gates(inputs, losses, 1e-4)
    assert_array_equal(np.concatenate(first[0]), np.concatenate(second[0]))
    assert first[1] == second[1]


def test_dear_stages_are_left_alone_and_useful_ones_are_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (X @ [0.5, 2.0] > 0).astype(int)
    cost = {w: StageLP(price_weights=[w], random_state=0).fit(X, y, [1, 4]).decide(X).cost.mean() for w in (0.01, 1)}
    assert cost[1] == 1
    assert cost[0.01] > 3


def test_equal_prices_leave_no_gate_to_learn():
    X, y = data()
    decisions = StageLP(random_state=0).fit(X, y).decide(X)
    assert_array_equal(decisions.stage, 0)
    assert_array_equal(decisions.cost, 6)


def test_few_rows_can_learn_the_gates():
    X, y = data()
    fitted = StageLP(max_rows=40, **QUICK).fit(X, y, costs_of())
    assert [(row["price_weight"], row["inputs"]) for row in fitted.table_] == [
        (0.2, "features"), (0.2, "confidence"), (0.02, "features"), (0.02, "confidence"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"inputs": "features"}, "inputs must be a list"),
        ({"inputs": ["prices"]}, "inputs must be a list"),
        ({"inputs": []}, "no settings"),
        ({"shrinkage": 0}, "shrinkage must be a positive number"),
        ({"max_rows": 0}, "max_rows must be a whole number of at least 1"),
        ({"price_weights": [-1]}, "price_weights must be numbers of at least 0"),
    ],
)
def test_bad_settings_are_refused(setting, message):
    X, y = data()
    with pytest.raises(InvalidParameterError, match=message):
        StageLP(**setting).fit(X, y, costs_of())


@pytest.mark.parametrize("inputs", ["features", "confidence"])
def test_on_average_a_larger_price_weight_buys_no_more(inputs):
    costs = []
    for seed in range(5):
        X, y = data(seed)
        rivals = [StageLP(0.0, [w], [inputs], max_stages=3, random_state=0) for w in (0.02, 0.1, 0.5, 1)]
        costs.append([rival.fit(X[:160], y[:160], costs_of()).decide(X[160:]).cost.mean() for rival in rivals])
    assert (np.diff(np.mean(costs, axis=0)) <= 0.05 * sum(costs_of())).all()
    assert np.ptp(np.mean(costs, axis=0)) > 0.05 * sum(costs_of())
