import warnings

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pandas as pd
import polars as pl
import pytest
from sklearn.preprocessing import StandardScaler

from emsco.data.encoding import CategoryCode, CurveCode, Encoder, NumberCode
from emsco.data.table import ReadTable, Table
from emsco.exceptions import InvalidInputError, SuspiciousColumnWarning

ALL = slice(None)


def encode(frame, train=ALL):
    table = Table(frame)
    encoder = Encoder(table, train)
    return encoder, encoder.encode(table, ALL)


@given(st.integers(0, 2**32 - 1))
def test_numbers_are_standardised_like_scikit_learns_scaler(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 3)) * 10.0 ** rng.integers(-3, 4, size=3) + rng.normal(size=3)
    train = np.arange(12)
    _, Z = encode(X, train)
    assert_allclose(Z.T, StandardScaler().fit(X[train]).transform(X), rtol=1e-9, atol=1e-9)


def test_only_training_rows_are_learned_from():
    X = np.array([[1.0], [3.0], [1000.0]])
    encoder, Z = encode(X, np.array([0, 1]))
    assert encoder.codes[0] == NumberCode("x0", 2.0, 1.0, False)
    assert_array_equal(Z, [[-1, 1, 998]])


def test_a_constant_column_becomes_zero():
    assert_array_equal(encode(np.full((5, 1), 0.1))[1], np.zeros((1, 5)))


def test_missing_numbers_are_the_mean_and_flagged():
    encoder, Z = encode(np.array([[1.0], [np.nan], [3.0]]))
    assert encoder.encoded_names == ("x0", "x0 missing")
    assert_array_equal(Z, [[-1, 0, 1], [0, 1, 0]])


def test_a_value_missing_only_later_is_the_mean():
    encoder, _ = encode(np.array([[1.0], [3.0]]))
    out = np.empty((1, 1))
    encoder.encode_column(0, np.array([np.nan]), ALL, out)
    assert out[0, 0] == 0


FRAME = {
    "number": [1.5, None, 2.5, 3.5],
    "whole": [1, 2, 3, 4],
    "flag": [True, False, None, True],
    "text": ["a", "b", None, "c"],
}


def pandas_plain():
    return pd.DataFrame(FRAME)


def pandas_nullable():
    return pd.DataFrame(FRAME).convert_dtypes()


def pandas_categorical():
    frame = pd.DataFrame(FRAME).convert_dtypes()
    frame["text"] = frame["text"].astype("category")
    return frame


def polars_plain():
    return pl.DataFrame(FRAME)


def polars_categorical():
    return pl.DataFrame(FRAME).with_columns(pl.col("text").cast(pl.Categorical))


def object_matrix():
    return np.array(list(zip(*FRAME.values(), strict=True)), dtype=object)


@pytest.mark.parametrize("make", [pandas_nullable, pandas_categorical, polars_plain, polars_categorical, object_matrix])
def test_every_kind_of_table_is_read_alike(make):
    _, expected = encode(pandas_plain())
    encoder, Z = encode(make())
    assert_array_equal(Z, expected)
    assert [type(code) for code in encoder.codes] == [NumberCode, NumberCode, NumberCode, CategoryCode]


def test_categories_have_a_column_each_and_missing_is_one():
    encoder, Z = encode(pd.DataFrame({"t": ["b", "a", None, "b", "c"]}))
    assert encoder.encoded_names == ("t=a", "t=b", "t=c", "t=missing")
    assert_array_equal(Z, [[0, 1, 0, 0, 0], [1, 0, 0, 1, 0], [0, 0, 0, 0, 1], [0, 0, 1, 0, 0]])


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"ward": pd.Series([1, 2, 3, 1]).astype("category")}),
        pl.DataFrame({"ward": pl.Series(["1", "2", "3", "1"]).cast(pl.Categorical)}),
    ],
    ids=["pandas", "polars"],
)
def test_declared_categories_stay_categories_even_if_they_look_like_numbers(frame):
    encoder, Z = encode(frame)
    assert encoder.encoded_names == ("ward=1", "ward=2", "ward=3")
    assert_array_equal(Z, [[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]])


def test_two_categories_have_a_column_each_so_that_an_unseen_or_missing_one_is_neither():
    encoder, Z = encode(pd.DataFrame({"t": ["b", "a", "b"]}))
    assert encoder.encoded_names == ("t=a", "t=b")
    assert_array_equal(Z, [[0, 1, 0], [1, 0, 1]])
    for other in ("A", None):
        out = np.full((2, 1), 7.0)
        encoder.encode_column(0, np.array([other], dtype=object), ALL, out)
        assert_array_equal(out, 0)


def test_an_unseen_category_is_zero_everywhere():
    encoder, _ = encode(pd.DataFrame({"t": ["b", "a", "c"]}))
    out = np.full((3, 1), 7.0)
    encoder.encode_column(0, np.array(["zebra"], dtype=object), ALL, out)
    assert_array_equal(out, 0)


def test_rare_categories_beyond_the_limit_share_a_column():
    values = [f"id{i:03d}" for i in range(100)] + ["id000", "id001"]
    encoder, Z = encode(pd.DataFrame({"t": values}))
    assert len(encoder.encoded_names) == 32
    assert encoder.encoded_names[-1] == "t=rare"
    assert_array_equal(Z.sum(axis=0), 1)
    assert Z[-1].sum() == 100 - 31


def test_text_that_is_all_numbers_is_numbers():
    encoder, Z = encode(np.array([["1.5", "x"], ["2.5", "y"]]))
    assert isinstance(encoder.codes[0], NumberCode)
    assert_array_equal(Z[0], [-1, 1])


def test_a_few_stray_words_in_a_column_of_numbers_are_pointed_out():
    with pytest.warns(SuspiciousColumnWarning, match="'n/a'"):
        encode(pd.DataFrame({"age": [*map(str, range(20)), "n/a"]}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode(pd.DataFrame({"grade": ["1", "2", "a", "b", "c"]}))


def test_text_where_a_number_was_learned_is_an_error_that_names_the_cell():
    encoder, _ = encode(pd.DataFrame({"age": [1.0, 2.0]}))
    with pytest.raises(InvalidInputError, match=r"'age' holds 'old' in row 7"):
        encoder.encode_column(0, np.array([*range(7), "old"], dtype=object), np.array([5, 7]), np.empty((1, 2)))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_dates_are_refused(make):
    from datetime import datetime

    with pytest.raises(InvalidInputError, match="dates"):
        encode(make({"when": [datetime(2020, 1, 1), datetime(2021, 1, 1)]}))


def test_values_too_large_to_be_squared_are_refused():
    with pytest.raises(InvalidInputError, match="rescale"):
        encode(np.array([[1e308], [-1e308]]))


def curves(values, encoding, train=ALL):
    table = Table(np.asarray(values, dtype=np.float64)[:, None])
    encoder = Encoder(table, train, encoding=encoding)
    return encoder, encoder.encode(table, ALL)


def test_ranks_are_the_shares_of_smaller_values_standardised():
    values = np.array([5.0, 1.0, 1e9, 7.0, 2.0])
    encoder, Z = curves(values, "rank")
    ranks = (np.array([2, 0, 4, 3, 1]) + 0.5) / 5
    assert_allclose(Z[0], (ranks - ranks.mean()) / ranks.std(), rtol=1e-12)
    assert isinstance(encoder.codes[0], CurveCode)


def test_between_training_values_a_rank_is_interpolated_and_beyond_them_it_stays():
    encoder, _ = curves([0.0, 10.0, 20.0, 30.0], "rank")
    out = np.empty((1, 4))
    encoder.encode_column(0, np.array([-5.0, 0.0, 15.0, 1e300]), ALL, out)
    code = encoder.codes[0]
    assert out[0, 0] == out[0, 1] == code.curves[0][0]
    assert_allclose(out[0, 2], 0, atol=1e-12)
    assert out[0, 3] == code.curves[0][-1]


def test_many_zeros_are_a_value_of_their_own():
    encoder, Z = curves([0.0] * 50 + list(range(1, 51)), "rank")
    assert encoder.codes[0].at_zero is not None
    assert Z.shape[0] == 2
    is_zero = np.arange(100) < 50
    assert_array_equal(Z[1], np.where(is_zero, 1.0, -1.0))
    assert np.ptp(Z[0][is_zero]) == 0
    assert (np.diff(Z[0][~is_zero]) > 0).all()


def test_few_zeros_are_values_as_others():
    assert curves([0.0, *range(1, 50)], "rank")[0].codes[0].at_zero is None


def test_splines_bend_and_ranks_do_not():
    values = np.arange(90.0)
    assert curves(values, "rank")[1].shape[0] == 1
    _, Z = curves(values, "spline")
    assert Z.shape[0] == 3
    assert np.ptp(Z[1][:29]) == 0
    assert np.ptp(Z[2][:59]) == 0
    assert np.ptp(Z[2][61:]) > 0


@pytest.mark.parametrize("encoding", ["rank", "spline"])
def test_two_values_and_constants_stay_lines(encoding):
    for values in ([0.0, 1.0, 1.0, 0.0], [3.0, 3.0, 3.0, 3.0]):
        assert_array_equal(curves(values, encoding)[1], curves(values, "linear")[1])


def test_a_column_of_which_most_values_are_the_largest_one_has_no_curve_that_is_constant():
    values = np.array([1.0, 2.0, 3.0, 4.0, *[5.0] * 40])[:, None]
    encoded = Encoder(Table(values), slice(None), encoding="spline").encode(Table(values), slice(None))
    assert np.isfinite(encoded).all()
    assert_allclose(encoded.std(axis=1), 1.0)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["linear", "rank", "spline"]))
def test_one_value_is_encoded_as_a_column_is_and_curves_are_standardised(seed, encoding):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 200))
    values = rng.normal(size=n) * 10.0 ** rng.integers(-5, 6)
    values[rng.random(n) < rng.uniform(0, 0.6)] = 0.0
    values[rng.random(n) < rng.uniform(0, 0.3)] = np.nan
    train = rng.permutation(n)[: max(n // 2, 2)]
    table = Table(np.column_stack([values, rng.integers(4, size=n)]))
    encoder = Encoder(table, train, encoding=encoding)
    Z = encoder.encode(table, ALL)
    assert np.isfinite(Z).all()
    for row in range(min(n, 20)):
        one = [0.0] * encoder.n_encoded
        for c, code in enumerate(encoder.codes):
            cell = table.column(c)[row]
            code.encode_one(None if np.isnan(cell) else float(cell), one, int(encoder.starts[c]))
        assert_array_equal(one, Z[:, row])
    code = encoder.codes[0]
    if isinstance(code, CurveCode):
        known = train[~np.isnan(values[train])]
        assert_allclose(Z[: len(code.curves)][:, known].mean(axis=1), 0, atol=1e-9)
        assert_allclose(Z[: len(code.curves)][:, known].std(axis=1), 1, atol=1e-9)


@pytest.mark.parametrize("cells", [["2024-03-31", "2024-04-01", None], ["2024-03-31 12:00", "2024-03-31T12:00:30Z"]])
def test_text_that_is_a_date_is_refused_as_dates_are(cells):
    with pytest.raises(InvalidInputError, match="column 'seen' holds dates or durations"):
        Encoder(Table(pd.DataFrame({"seen": cells})), slice(None))


@pytest.mark.parametrize("cells", [["2024-03-31", "never"], ["2024-99-99", "2024-99-98"], ["1-2-3", "4-5-6"]])
def test_text_that_is_only_like_a_date_is_a_category(cells):
    encoder = Encoder(Table(pd.DataFrame({"seen": cells})), slice(None))
    assert encoder.n_encoded == 2


def test_a_column_has_at_most_ten_thousand_categories():
    with pytest.raises(InvalidInputError, match="column 'note' holds 10,001 different texts, and at most 10,000"):
        Encoder(Table(pd.DataFrame({"note": [f"n{i}" for i in range(10_001)]})), slice(None))


def test_the_table_of_numbers_says_what_the_codes_say():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=50), "b": np.where(rng.random(50) < 0.4, 0.0, rng.normal(size=50))})
    frame.loc[3, ["a", "b"]] = np.nan
    line, curves = (Encoder(Table(frame), ALL, encoding=encoding) for encoding in ("linear", "spline"))
    for encoder in (line, curves):
        table = encoder.numbers()
        for c, code in enumerate(encoder.codes):
            assert (table.mean[c], table.inverse_scale[c]) == (code.mean, code.inverse_scale)
            assert encoder.encoded_names[table.place[c]] == code.names[0]
            assert encoder.encoded_names[table.missing_at[c]] == f"{code.name} missing"
            own = slice(table.curve_start[c], table.curve_start[c + 1])
            if isinstance(code, CurveCode):
                n_pieces = len(code.knots) - 1
                assert tuple(table.ends[c]) == (code.knots[0], code.knots[-1])
                assert tuple(table.left[c, :n_pieces]) == tuple(table.knots[c, :n_pieces]) == code.knots[:-1]
                assert np.isinf(table.knots[c, n_pieces:]).all()
                shown = np.array(code.curves)
                assert_array_equal(table.values[own, :n_pieces], shown[:, :-1])
                assert_array_equal(table.rises[own, :n_pieces], np.diff(shown))
                assert_array_equal(table.width[c, :n_pieces], np.diff(code.knots))
                assert not table.rises[own, n_pieces:].any()
                assert not table.values[own, n_pieces].any()  # where the cell is missing
                zeros = table.values[own, n_pieces + 1]
                assert tuple(zeros) == code.at_zero if code.at_zero else np.isnan(table.zero[c])
            else:
                assert own.start == own.stop
    assert [code.at_zero is not None for code in curves.codes] == [False, True]


def piece_of(table, c, value):
    """The piece of a curve that a number is on, looked up as a compiled reader does; and the strides it took."""
    inside = min(max(value, table.ends[c, 0]), table.ends[c, 1])
    at = int(table.grid[c, int((inside - table.ends[c, 0]) * table.grid_scale[c])])
    stride = int(table.reach[c])
    strides = 0
    while stride:
        at += stride if table.knots[c, at + stride] <= inside else 0
        stride //= 2
        strides += 1
    return at, strides


CROWDED = {
    "even": np.linspace(-1, 1, 40),
    "heavy": np.exp(np.linspace(-8, 8, 40) * 2),
    "far": 1e9 + np.arange(40.0),
    "apart": np.concatenate([np.arange(20) * 1e-9, 1 + np.arange(20) * 1e-9]),
    "neighbours": 1 + np.arange(40) * np.finfo(float).eps,
    "tiny": np.arange(40) * 5e-324,
    "huge": np.linspace(-1e150, 1e150, 40),
    "few": np.array([0.0, 1.0, 5.0]),
}


@pytest.mark.parametrize("name", CROWDED)
def test_the_grid_finds_the_piece_that_a_search_among_all_knots_finds(name):
    knots = CROWDED[name]
    code = CurveCode("a", 0.0, 1.0, False, tuple(knots.tolist()), (tuple(np.arange(knots.size) * 1.0),), None)
    table = Encoder.of([code]).numbers()
    between = np.random.default_rng(0).uniform(knots[0], knots[-1], 500)
    values = np.concatenate(
        [knots, np.nextafter(knots, -np.inf), np.nextafter(knots, np.inf), between, [-1e300, 1e300]]
    )
    expected = np.searchsorted(knots[1:-1], np.clip(values, knots[0], knots[-1]), side="right")
    found, strides = zip(*(piece_of(table, 0, value) for value in values), strict=True)
    assert_array_equal(found, expected)
    assert max(strides) <= (1 if name in ("even", "far", "huge", "few") else 6)


def test_there_is_no_table_of_numbers_where_a_column_is_text():
    assert Encoder(Table(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})), ALL).numbers() is None


def test_raw_numbers_keep_their_scale():
    frame = pd.DataFrame({"a": [100.0, 300.0, 200.0, np.nan], "b": list("xyxy")})
    table = Table(frame)
    encoder = Encoder(table, ALL, encoding="raw")
    Z = encoder.encode(table, ALL)
    assert encoder.encoded_names == ("a", "a missing", "b=x", "b=y")
    assert_array_equal(Z[:2], [[-100, 100, 0, 0], [0, 0, 0, 1]])


def test_columns_of_a_small_table_are_read_once(monkeypatch):
    frame = pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": pd.Categorical(["x", "y", "x"]), "c": ["u", None, "v"]})
    table, asked = Table(frame), []
    read = Table.column
    with monkeypatch.context() as patch:
        patch.setattr(Table, "column", lambda self, position: asked.append(position) or read(self, position))
        once = ReadTable.of(table)
        for encoding in ("linear", "spline"):
            found = Encoder(once, ALL, encoding=encoding)
            Z = found.encode(once, ALL)
    assert sorted(asked) == [0, 1, 2]
    plain = Encoder(table, ALL, encoding="spline")
    assert found.codes == plain.codes
    assert_array_equal(Z, plain.encode(table, ALL))
    assert type(ReadTable.of(Table(np.zeros((2**20, 3))))) is Table
