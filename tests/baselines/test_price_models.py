"""Rivals of stages pay stage by stage; others pay for what they have read as for one stage."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest

from emsco import Prices
from emsco.baselines.single_stage import SingleStage
from emsco.exceptions import InvalidPricesError
from emsco.experiments.methods import QUICK, RIVALS
from emsco.experiments.setting import PAPER
from tests.baselines.contract import data

NAMES = [f"x{i}" for i in range(6)]
PRICES = Prices(
    price=dict(zip(NAMES, [3, 1, 4, 1, 5, 9], strict=True)),
    groups={"visit": ["x0", "x4"]},
    discount={"x0": 1, "x4": 3},
    overhead=0.5,
    parallel=True,
)
OWN = np.array([1, 1, 4, 1, 3, 9])
STAGED = {"CO-T", "Reject rules", "Stage LP", "NSGA-II", "Cascade*", "Generic GA"}


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_pay_by_the_price_model(name):
    X, y = data()
    try:
        rival = RIVALS[name](PAPER["heart"], 0).set_params(**QUICK.get(name, {})).fit(X[:160], y[:160], PRICES)
    except ImportError as error:
        pytest.skip(str(error))
    decisions = rival.decide(X[160:])
    bought, trace = decisions.bought, rival.trace(X[160:])
    together = (bought * (OWN + 2 * np.isin(NAMES, ["x0", "x4"]))).max(axis=1) + 0.5 * bought.any(axis=1)
    if name not in STAGED:
        assert trace.stages is None
        assert_allclose(decisions.cost, together)
        return
    known = [np.isin(np.arange(6), columns) for columns in trace.stages]
    owned = np.zeros(6, dtype=bool)
    paid = []
    for units in known:
        paid.append(rival.prices_.price_of(units & ~owned, owned) + (paid[-1] if paid else 0))
        owned = units
    assert_allclose(decisions.cost, np.array(paid)[decisions.stage])
    assert_array_equal(bought, np.array(known)[decisions.stage])
    assert (decisions.cost >= together).all()


def test_derived_units_are_refused():
    X = np.random.default_rng(0).normal(size=(30, 2))
    prices = Prices(price={"x0": 1}, derived={"x1": ["x0"]})
    with pytest.raises(InvalidPricesError, match="costs has derived units, which the baselines do not know"):
        SingleStage().fit(X, X[:, 0] > 0, costs=prices)
