from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pytest
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

from emsco import BestFirst, Prices
from emsco.designs.partition import acquired_sets, all_designs
from emsco.exceptions import InvalidParameterError
from emsco.prices.prices import resolve
from emsco.search.chains import Order, cuts, finest, merged, orders
from tests.classifiers import fixed
from tests.strategies import populations, seeds


def sets_of(design):
    acquired, exists = acquired_sets(np.asarray(design)[None])
    return {tuple(row) for row in acquired[exists].tolist()}


@settings(max_examples=60)
@given(populations(max_stages=4, max_features=5, max_rows=1, removal=True), st.integers(1, 4), st.booleans())
def test_merging_stages_gives_every_design_that_needs_no_other_feature_sets(population, max_stages, removal):
    design = population[0]
    n_units = design.size
    found = merged(design, max_stages=max_stages, removal=removal, most=10**6)
    owned = sets_of(design)
    bought = (design >= 0).sum()
    expected = [
        d
        for d in all_designs(n_units, n_units, removal=True).tolist()
        if sets_of(d) <= owned and max(d) < max_stages and (removal or sum(s >= 0 for s in d) == bought)
    ]
    assert sorted(found.tolist()) == sorted(expected)


def test_few_stages_come_first_where_there_are_too_many():
    design = np.arange(12)
    found = merged(design, max_stages=12, removal=True, most=100)
    assert len(found) == 12 + 66  # one and two stages; three would be 220 more
    assert found.max() == 1
    assert len(merged(design, max_stages=12, removal=True, most=5)) == 5


@pytest.mark.parametrize("n_units", [1, 2, 10, 11, 57, 300])
def test_an_order_is_cut_finely_where_it_begins(n_units):
    order = Order(np.random.default_rng(0).permutation(n_units), n_units)
    design = finest(order)
    stages = design[order.units]
    assert (np.diff(stages) >= 0).all()
    assert_array_equal(np.unique(stages), np.arange(stages[-1] + 1))
    assert_array_equal(stages[:10], np.arange(min(n_units, 10)))
    assert stages[-1] < 10 + 30
    for removal in (False, True):
        designs = cuts(order, max_stages=3, removal=removal, most=500)
        assert len(designs) <= 500
        assert set().union(*map(sets_of, designs)) <= sets_of(design)
        assert (designs >= 0).all() or removal
        assert designs.max() < 3


@pytest.mark.parametrize("n_placed", [1, 4, 25])
def test_units_without_a_place_are_one_last_stage(n_placed):
    order = Order(np.random.default_rng(0).permutation(40), n_placed)
    whole = finest(Order(order.units[:n_placed].argsort().argsort(), n_placed))
    design = finest(order)
    assert set(design[order.units[n_placed:]].tolist()) == {whole.max() + 1}
    assert design[order.units[:n_placed]].max() == whole.max()


def slow_order(sure, prices, per_price):
    """Return the greedy order in plain Python."""
    owned, order = set(), []
    before = None
    while len(order) < prices.n_units:
        left = [u for u in range(prices.n_units) if u not in owned]
        sureness = {u: float(sure(np.array([[v in owned | {u} for v in range(prices.n_units)]]))[0]) for u in left}
        base = min(sureness.values()) if before is None else before

        def worth(u, sureness=sureness, base=base):
            gain = sureness[u] - base
            if not per_price:
                return gain
            bought = [np.array([v in s for v in range(prices.n_units)]) for s in (owned, owned | {u})]
            price = max(int(prices.stage_ticks(np.array([bought]))[0, 1]), 1e-3)
            return gain / price if gain > 0 else gain * price

        best = max(left, key=lambda u: (worth(u), -u))
        before = sureness[best]
        owned.add(best)
        order.append(best)
    return order


def made_up(seed, n_units):
    """Return the sureness of feature sets, with gains that depend on what is owned."""
    rng = np.random.default_rng(seed)
    alone, pairs = rng.normal(0.1, 0.1, n_units), rng.normal(0, 0.05, (n_units, n_units))
    return lambda sets: -1 + sets @ alone + np.einsum("si,ij,sj->s", sets, pairs, sets)


PRICES = [
    None,
    [0, 0, 3, 1, 2.5],
    Prices(price={f"x{i}": 4 for i in range(5)}, discount={"x1": 1, "x2": 1}, groups={"lab": ["x1", "x2"]}),
]


@settings(max_examples=40)
@given(seeds(), st.sampled_from(PRICES))
def test_the_order_is_that_of_the_largest_gains(seed, costs):
    prices, sure = resolve(costs, [f"x{i}" for i in range(5)]), made_up(seed, 5)
    found = orders(sure, prices)
    assert len(found) == (1 if costs is None else 2)
    for order, per_price in zip(found, (False, True), strict=False):
        assert order.units.tolist() == slow_order(sure, prices, per_price)
        assert order.n_placed == 5


def test_a_strong_learner_decides_among_what_comes_first():
    fast, strong = made_up(1, 9), made_up(2, 9)
    asked = []

    def remember(sets):
        asked.append(len(sets))
        return strong(sets)

    prices = resolve(None, [f"x{i}" for i in range(9)])
    (order,) = orders(fast, prices, remember)
    assert asked[0] == 1, "everything"
    assert max(asked) == 5
    assert len(asked) == 1 + order.n_placed
    first = np.argsort(-fast(np.eye(9, dtype=bool)), kind="stable")[:5]
    assert order.units[0] == first[strong(np.eye(9, dtype=bool)[first]).argmax()]
    assert sorted(order.units.tolist()) == list(range(9))


@settings(max_examples=30)
@given(seeds(), st.integers(1, 9))
def test_an_order_of_a_strong_learner_ends_where_it_is_nearly_as_sure_as_with_everything(seed, most):
    rng = np.random.default_rng(seed)
    gains = rng.exponential(size=9)

    def strong(sets):
        return -2 + sets @ gains / gains.sum()  # -1 with everything

    (order,) = orders(made_up(seed, 9), resolve(None, [f"x{i}" for i in range(9)]), strong, most=most)
    reached = -2 + np.cumsum(gains[order.units]) / gains.sum()
    enough = np.flatnonzero(reached >= -1.02)
    assert order.n_placed == min(most, enough[0] + 1)


def test_beyond_some_units_the_order_is_that_of_the_last_gains():
    sure = made_up(3, 7)
    (order, n_placed) = orders(sure, resolve(None, [f"x{i}" for i in range(7)]), most=2)[0]
    assert sorted(order.tolist()) == list(range(7))
    assert n_placed == 7, "a fast learner's last gains are an order, too"
    assert order[:2].tolist() == slow_order(sure, resolve(None, [f"x{i}" for i in range(7)]), False)[:2]


def rows(n_features=18, n=240, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    return X, (X[:, 3] + X[:, 7] + X[:, 11] + rng.normal(size=n) > 0).astype(int)


def fitted(**settings):
    search = BestFirst(max_designs=600, **settings)
    X, y = rows()
    return fixed(
        threshold=0.8, search=search, encoding="linear", C=1.0, validation=3, random_state=0, max_stages=5
    ).fit(X, y)


def test_with_many_features_a_search_starts_from_chains():
    by_default, chained, evolved = fitted(), fitted(start="chains"), fitted(start=1)
    assert_array_equal(by_default.front_.designs, chained.front_.designs)
    assert not np.array_equal(by_default.front_.designs, evolved.front_.designs)
    assert by_default.history_[0, 0] <= 300  # half of the designs
    assert by_default.front_.combined.max() > evolved.front_.combined.max()


def test_what_else_a_search_could_start_from_is_told():
    with pytest.raises(InvalidParameterError, match="start must be a whole number of at least 0, or 'chains'; got 'x'"):
        BestFirst(start="x")


def test_few_designs_and_unequal_prices_are_no_obstacle():
    X, y = make_classification(n_samples=120, n_features=16, random_state=0)
    costs = np.arange(1, 17)
    clf = fixed(costs, search=BestFirst(max_designs=3), encoding="linear", C=1.0, random_state=0).fit(X, y)
    assert len(clf.front_) >= 1


def test_a_slow_estimator_orders_features_only_if_asked_to():
    X, y = make_classification(n_samples=120, n_features=16, random_state=0)
    trained = []
    for start in (None, "chains"):
        search = BestFirst(max_designs=20, start=start)
        clf = fixed(estimator=GaussianNB(), search=search, validation=0.3, random_state=0).fit(X, y)
        trained.append(clf.n_feature_sets_)
    assert trained[0] < 16 * 15 // 2 < trained[1]
