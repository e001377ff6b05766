import dataclasses
import warnings

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest

from emsco import reference
from emsco.designs.partition import acquired_sets
from emsco.exceptions import InvalidPricesError, PriceRoundingWarning
from emsco.prices.prices import Prices, resolve
from tests.strategies import bill, populations, price_models

NAMES = ["age", "sodium", "creatinine", "sex"]


def test_none_costs_one_each():
    assert resolve(None, NAMES).total == 4


def test_an_array_is_in_column_order_and_a_mapping_by_name():
    by_order = resolve([1, 2, 3, 4], NAMES)
    by_name = resolve({"sex": 4, "creatinine": 3, "sodium": 2, "age": 1}, NAMES)
    assert_array_equal(by_order.own_ticks, by_name.own_ticks)
    assert by_order.unit_names == by_name.unit_names == tuple(NAMES)


def test_a_panel_is_one_unit_in_the_place_of_its_first_column():
    prices = Prices(units={"panel": ["creatinine", "sodium"]}, price={"panel": 40, "age": 1, "sex": 0})
    resolved = resolve(prices, NAMES)
    assert resolved.unit_names == ("age", "panel", "sex")
    assert resolved.unit_columns == ((0,), (1, 2), (3,))
    assert_array_equal(resolved.own_ticks, [1, 40, 0])


def test_decimal_prices_are_exact():
    resolved = resolve([0.1, 0.2, 7.27, 102.9], NAMES)
    assert resolved.scale == 100
    assert_array_equal(resolved.own_ticks, [10, 20, 727, 10290])


@given(st.lists(st.just(0.0) | st.floats(1e-9, 1e9), min_size=4, max_size=4))
@pytest.mark.filterwarnings("ignore::emsco.exceptions.PriceRoundingWarning")
def test_any_price_is_within_the_stated_tolerance_and_only_a_free_one_is_free(values):
    resolved = resolve(values, NAMES)
    assert np.abs(resolved.own_ticks / resolved.scale - values).max() <= sum(values) / 2**40 * (1 + 1e-9)
    assert_array_equal(resolved.own_ticks > 0, np.array(values) > 0)
    assert_array_equal(resolved.prices, values)
    assert resolved.own_ticks.sum() <= 2**40 + 4


@pytest.mark.parametrize("values", [[1, 1, 1, 1e10], [19.99, 1, 1, 89_000_000.5], [0.123456, 1, 1, 900_000]])
def test_large_prices_with_decimals_are_exact(values):
    resolved = resolve(values, NAMES)
    assert_array_equal(resolved.own_ticks / resolved.scale, values)


def test_a_series_is_matched_by_its_index_unless_that_only_counts():
    pd = pytest.importorskip("pandas")
    by_name = resolve(pd.Series({"sex": 4, "creatinine": 3, "sodium": 2, "age": 1}), NAMES)
    assert_array_equal(by_name.prices, [1, 2, 3, 4])
    assert_array_equal(resolve(pd.Series([1, 2, 3, 4]), NAMES).prices, [1, 2, 3, 4])
    assert_array_equal(resolve(pd.Series([4, 3, 2, 1], index=[3, 2, 1, 0]), ["0", "1", "2", "3"]).prices, [1, 2, 3, 4])
    with pytest.raises(InvalidPricesError, match="'Age'"):
        resolve(pd.Series({"sex": 4, "creatinine": 3, "sodium": 2, "Age": 1}), NAMES)


@given(st.lists(st.integers(0, 1000), min_size=4, max_size=4), st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_stage_prices_add_up_to_the_prices_of_what_is_new(values, stages):
    from emsco.designs.partition import compress

    design = compress(np.array([stages]))
    resolved = resolve(values, NAMES)
    paid = resolved.stage_ticks(acquired_sets(design)[0])[0] / resolved.scale
    for j, price in enumerate(paid):
        assert price == sum(v for v, s in zip(values, design[0], strict=True) if s == j)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ([1, 2, 3], "4 columns"),
        ([[1, 2, 3, 4]], "4 columns"),
        ([1, 2, 3, -4], "'sex' is -4"),
        ([1, 2, np.nan, 4], "'creatinine' is nan"),
        ([1, 2, np.inf, 4], "at least 0"),
        ("free", "numbers"),
        ({"age": 1, "sodium": 1, "sex": 1}, r"no price for \['creatinine'\]"),
        ({"age": 1, "sodium": 1, "sex": 1, "creatinine": 1, "x": 1}, r"price for \['x'\]"),
        ({"age": 1, "sodium": 1, "sex": 1, "creatinine": None}, "'creatinine' is None"),
        ([1e308] * 4, "another unit"),
        ([1e-310] * 4, "another unit"),
        (Prices(units=None, price={}), "units must be a mapping"),
        (Prices(price=[1, 2, 3, 4]), "price must be a mapping"),
        (Prices(units={"age": 1, "sodium": 1, "sex": 1, "creatinine": 1}), "must list"),
        (Prices(units={"p": ["sodium"]}, price={"p": 1, "sodium": 2, "age": 1, "sex": 1, "creatinine": 1}), "inside"),
        ({"Age": 1, "sodium": 1, "sex": 1, "creatinine": 1}, r"no price for \['age'\].*\['Age'\]"),
        (Prices(units={"p": ["sodium", "potassium"]}, price={}), "'potassium'"),
        (Prices(units={"p": ["sodium"], "q": ["sodium"]}, price={}), "can be in one"),
        (Prices(units={"p": []}, price={}), "must list"),
        (Prices(units={"p": "sodium"}, price={}), "must list"),
        (Prices(units={"age": ["sodium"]}, price={}), "rename the unit"),
        (Prices(units={"p": ["sodium"]}, price={"p": 1, "age": 1, "sex": 1}), r"no price for \['creatinine'\]"),
    ],
)
def test_bad_prices_are_explained(costs, message):
    with pytest.raises(InvalidPricesError, match=message):
        resolve(costs, NAMES)


BLOOD = Prices(
    price={"age": 1, "chol": 7.27, "fbs": 5.2},
    groups={"blood": ["chol", "fbs"]},
    discount={"chol": 5.17, "fbs": 3.1},
)


def test_the_first_of_a_group_pays_the_shared_cost_whichever_it_is():
    prices = resolve(BLOOD, ["age", "chol", "fbs"])
    age, chol, fbs = np.eye(3, dtype=bool)
    assert prices.price_of(chol) == 7.27
    assert prices.price_of(fbs, chol | age) == 3.1
    assert prices.price_of(fbs, age) == 5.2
    assert prices.price_of(chol | fbs) == prices.price_of(fbs | chol, age) == 10.37
    assert prices.total == 11.37
    assert_array_equal(prices.stage_ticks(np.array([fbs, fbs | age, fbs | age | chol])), [520, 100, 517])


def test_an_overhead_is_paid_by_every_stage_that_buys_something():
    prices = resolve(dataclasses.replace(BLOOD, overhead=0.5), ["age", "chol", "fbs"])
    age, chol, fbs = np.eye(3, dtype=bool)
    assert prices.price_of(age) == 1.5
    assert prices.price_of(chol, age) == 7.77
    assert prices.price_of(np.zeros(3, dtype=bool), age) == 0
    assert prices.total == 11.87
    assert prices.least == 0.5
    sets = np.array([age, age | fbs, age | fbs, age | fbs | chol])
    assert_array_equal(prices.stage_ticks(sets), [150, 570, 0, 567])
    assert_array_equal(prices.paid(sets), [1.5, 7.2, 7.2, 12.87])


def test_in_parallel_a_stage_costs_its_slowest_unit():
    prices = resolve(dataclasses.replace(BLOOD, parallel=True), ["age", "chol", "fbs"])
    age, chol, fbs = np.eye(3, dtype=bool)
    assert prices.price_of(age | chol | fbs) == prices.total == 7.27
    assert prices.price_of(age | fbs, chol) == 3.1
    assert prices.price_of(age, chol) == 1
    assert_array_equal(prices.stage_ticks(np.array([fbs, fbs | age, fbs | age | chol])), [520, 100, 517])
    third = resolve(Prices(price={"a": 1 / 3, "b": 0.2}, overhead=0.1, parallel=True), "ab")
    assert third.total == 1 / 3 + 0.1


@given(st.lists(st.just(0.0) | st.floats(1e-9, 1e9), min_size=5, max_size=5), st.booleans())
@pytest.mark.filterwarnings("ignore::emsco.exceptions.PriceRoundingWarning")
def test_ticks_of_any_price_and_overhead_are_within_the_stated_tolerance(values, parallel):
    *values, overhead = values
    costs = Prices(price=dict(zip(NAMES, values, strict=True)), overhead=overhead, parallel=parallel)
    resolved = resolve(costs, NAMES)
    assert (resolved.overhead_ticks > 0) == (overhead > 0)
    assert resolved.own_ticks.sum() + 4 * resolved.overhead_ticks <= 2**40 + 8  # a stage for every unit
    sets = np.tri(4, dtype=bool)
    terms = np.array(values) + overhead
    assert_allclose(resolved.paid(sets), terms.cumsum(), rtol=1e-14)
    assert_allclose(resolved.stage_ticks(sets) / resolved.scale, terms, atol=8 * terms.sum() / 2**40)


@given(st.integers(1, 6).flatmap(lambda n: st.tuples(price_models(n), populations(min_features=n, max_features=n))))
def test_the_price_of_a_stage_is_that_of_the_reference(case):
    costs, designs = case
    prices = resolve(costs, [f"x{i}" for i in range(designs.shape[1])])
    own, _, *rules = bill(prices, 0.5)
    ticks = prices.stage_ticks(acquired_sets(designs)[0])
    for design, of_design in zip(designs, ticks, strict=True):
        for j in range(design.max() + 1):
            assert of_design[j] == reference.stage_price(design.tolist(), j, own, *rules)
            assert prices.price_of(design == j, design < j) == of_design[j] / prices.scale
        assert not of_design[design.max() + 1 :].any()


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ({}, "A stage costs the sum of its purchases, including the shared cost of each new group."),
        ({"groups": {}, "discount": {}, "overhead": 1200.5},
         "A stage costs the sum of its purchases, plus an overhead of 1,200.5."),
        ({"parallel": True, "overhead": 2},
         "A stage takes as long as its slowest purchase, including the shared cost of each new group, plus an overhead "
         "of 2."),
        ({"price": {"chol": 7.27, "fbs": 5.2}, "derived": {"age": ["chol"]}},
         "A stage costs the sum of its purchases, including the shared cost of each new group. A derived feature costs "
         "the features that it is computed from."),
    ],
)  # fmt: skip
def test_the_rule_is_a_sentence(model, says):
    assert resolve(dataclasses.replace(BLOOD, **model), ["age", "chol", "fbs"]).rule == says


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"overhead": -1}, "overhead must be a number of at least 0; got -1"),
        ({"overhead": "much"}, "overhead must be a number of at least 0; got 'much'"),
        ({"overhead": None}, "overhead must be a number of at least 0; got None"),
        ({"parallel": "yes"}, "parallel must be True or False; got 'yes'"),
        ({"groups": {"blood": ["chol", "sodium"]}}, "holds 'sodium', which is no unit"),
        ({"groups": {"blood": "chol"}}, "must list its units"),
        ({"groups": {"a": ["chol"], "b": ["chol", "fbs"]}}, "'chol' is in two groups"),
        ({"discount": {"chol": 5.17}}, r"no discount for \['fbs'\]"),
        ({"discount": {"chol": 5.17, "fbs": 3.1, "age": 0}}, r"discount for \['age'\], which are in no group"),
        ({"discount": {"chol": 5.17, "fbs": 3}}, "same for all of the group.*chol 2.1, fbs 2.2"),
        ({"discount": {"chol": 9.27, "fbs": 7.2}}, "not negative"),
        ({"discount": {"chol": "much", "fbs": 3.1}}, "price of 'chol' is 'much'"),
        ({"derived": {"ratio": ["chol"]}}, "derived 'ratio' is no column or unit"),
        ({"derived": {"age": ["chol"]}}, "'age' is derived and has a price"),
        ({"derived": {"age": ["Chol"]}, "price": {"chol": 7.27, "fbs": 5.2}}, "from 'Chol', which is no unit"),
        ({"derived": {"age": "chol"}}, "must list the units it is computed from"),
        ({"derived": ["age"]}, "derived must be a mapping"),
        (
            {"derived": {"age": ["fbs"], "fbs": ["chol"]}, "price": {"chol": 7.27}, "groups": {}, "discount": {}},
            "'age' is derived from 'fbs', which is derived itself",
        ),
        ({"derived": {"age": ["chol"]}, "price": {"chol": 7.27, "fbs": 5.2}, "parallel": True}, "do not go together"),
    ],
)
def test_groups_and_models_that_make_no_sense_are_explained(change, says):
    with pytest.raises(InvalidPricesError, match=says):
        resolve(dataclasses.replace(BLOOD, **change), ["age", "chol", "fbs"])


def test_a_derived_unit_costs_what_of_its_sources_is_not_bought_yet():
    costs = Prices(price={"TT4": 14.51, "T4U": 11.41, "TSH": 22.78}, derived={"FTI": ["TT4", "T4U"]}, overhead=1)
    prices = resolve(costs, ["TT4", "T4U", "FTI", "TSH"])
    assert_array_equal(prices.prices, [14.51, 11.41, 25.92, 22.78])
    for design, by_stage in [
        ([0, 0, 0, 0], [49.7]),
        ([0, 1, 2, 3], [15.51, 12.41, 1, 23.78]),  # free once both are bought; the visit is not
        ([1, 2, 0, -1], [26.92, 1, 1]),  # what it was computed from is known
        ([0, -1, 1, -1], [15.51, 12.41]),
    ]:
        acquired = acquired_sets(np.array([design]))[0]
        assert_array_equal(prices.stage_ticks(acquired)[0] / prices.scale, by_stage)
        assert_allclose(prices.paid(acquired[0]), np.cumsum(by_stage), rtol=1e-14)
    fractions = resolve(
        dataclasses.replace(costs, price={"TT4": 1 / 3, "T4U": 1 / 7, "TSH": 1}), ["TT4", "T4U", "FTI", "TSH"]
    )
    new, owned = np.array([False, False, True, False]), np.array([True, False, False, False])
    assert fractions.price_of(new, owned) == pytest.approx(1 + 1 / 7, rel=1e-14)


def test_a_price_that_no_number_can_hold_is_refused():
    with pytest.raises(InvalidPricesError, match="costs must be finite numbers"):
        resolve([10**400, 1], ["a", "b"])
    with pytest.raises(InvalidPricesError, match="the price of 'a' is 1000"):
        resolve({"a": 10**400, "b": 1}, ["a", "b"])


def test_prices_that_are_too_far_apart_draw_a_warning():
    with pytest.warns(PriceRoundingWarning, match=r"range from 0.01 to 1e\+12.*0.01 is counted as 0.9"):
        resolve([1e12, 0.01, 0.02, 5], ["a", "b", "c", "d"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resolve([1e6, 0.01, 1 / 3], ["a", "b", "c"])


def test_shared_costs_that_differ_by_rounding_are_accepted_and_said():
    prices = Prices(
        price={"a": 124.1483, "b": 34.1484, "c": 29.1484},
        groups={"blood": ["a", "b", "c"]},
        discount={"a": 100, "b": 10, "c": 5},
    )
    with pytest.warns(PriceRoundingWarning, match=r"'blood' shares.*a 24.1483, b 24.1484.*the group shares 24.1484"):
        priced = resolve(prices, ["a", "b", "c"])
    assert priced.shared_prices.tolist() == [24.1484]
    assert priced.prices.tolist() == [124.1484, 34.1484, 29.1484]
    assert priced.total == 139.1484
    again = Prices(price=dict(zip("abc", priced.prices, strict=True)), groups=prices.groups, discount=prices.discount)
    assert resolve(again, ["a", "b", "c"]).total == priced.total  # said once: a model file holds what was assumed
