import numpy as np
import pandas as pd

from emsco import Prices
from emsco.data.encoding import Encoder
from emsco.data.table import Table
from emsco.datasets import make_cube_context
from emsco.fitting.routes import branches_of, by_leaning, routes
from emsco.prices.prices import resolve


def found(frame, costs=None, *, min_rows, y=None, rows=slice(None)):
    table = Table(frame)
    roots = routes(table, rows, Encoder(table, rows), resolve(costs, table.names), min_rows=min_rows, y=y)
    for root in roots:
        root.route.check()
        assert root.units[root.route.unit]
        assert np.bincount(branches_of(root.route, table)[rows]).min() >= min_rows
    return [(root.route.kind, root.route.columns, root.route.words(table.names, ())) for root in roots]


def test_frequent_categories_have_a_branch_each_and_the_others_one():
    frame = pd.DataFrame({"town": ["a"] * 50 + ["b"] * 40 + ["c"] * 30 + ["d"] * 20 + [None] * 5})
    assert found(frame, min_rows=40) == [("category", (0,), ("town is a", "town is b", "town is anything else"))]
    assert found(frame, min_rows=60) == []
    assert found(frame.iloc[:100], min_rows=40) == [("category", (0,), ("town is a or anything else", "town is b"))]


def test_few_numbers_are_like_categories_and_many_are_cut():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"slope": np.repeat([1, 2, 3], [50, 40, 10]), "age": rng.permutation(100)})
    y = (frame["age"] >= 73).to_numpy(dtype=int)
    kinds = found(frame, min_rows=20, y=y)
    assert kinds[0] == ("category", (0,), ("slope is 1 or anything else", "slope is 2"))
    cuts = [words for kind, columns, words in kinds if (kind, columns) == ("cut", (1,))]
    assert ("age below 49.5, or missing", "age 49.5 or more") in cuts or (
        "age below 49.5", "age 49.5 or more, or missing") in cuts  # fmt: skip
    assert any(words[0].startswith("age below 72.5") for words in cuts)
    assert any(len(words) == 3 for words in cuts)


def test_zeros_and_ones_of_a_unit_are_a_pattern():
    frame = pd.DataFrame({"p": [1] * 30 + [0] * 30 + [0] * 5, "q": [0] * 30 + [1] * 30 + [0] * 5})
    kinds = found(frame, Prices(units={"panel": ["p", "q"]}, price={"panel": 1}), min_rows=30)
    assert [kind for kind, _, _ in kinds] == ["category", "category", "pattern"]
    assert kinds[2][2] == ("p = 0 and q = 1, or p, q have any other pattern", "p = 1 and q = 0")


def test_the_context_of_a_cube_is_a_largest_column_and_only_rows_to_learn_from_are_counted():
    cube = make_cube_context(400, random_state=0)
    kinds = found(cube.data, cube.prices, min_rows=20, rows=np.arange(200))
    largest = [columns for kind, columns, _ in kinds if kind == "largest"]
    assert largest == [(0, 1, 2, 3, 4)]
    assert found(cube.data, cube.prices, min_rows=201) == found(cube.data, cube.prices, min_rows=401) == []


def test_a_leaning_has_a_branch_for_each_frequent_label():
    label = np.repeat([0, 1, 2], [50, 45, 5])
    route = by_leaning(label, 3, min_rows=40)
    assert route.groups == ((0,), (1,))
    assert branches_of(route, Table(np.zeros((100, 1))), label).tolist() == [0] * 50 + [1] * 45 + [0] * 5
    assert by_leaning(label, 3, min_rows=51) is None
