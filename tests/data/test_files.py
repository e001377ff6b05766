from contextlib import suppress
import gzip
import json
import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pandas as pd
import pyarrow as pa
from pyarrow import parquet
import pytest

from emsco import Prices
from emsco.data.files import TableFile
from emsco.data.table import Table
from emsco.exceptions import EmscoError, FileError, InvalidInputError, InvalidPricesError
from emsco.prices.files import read_prices, without
from emsco.prices.prices import resolve
from tests.strategies import examples


def written(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def frame(path, **options):
    return TableFile(path, **options).read().to_pandas()


def test_columns_of_numbers_and_of_text_and_missing_cells(tmp_path):
    table = frame(written(tmp_path, 'a,b,c\n1, x,"1,5"\nNA,?,2\n 3.5 ,y,\n'))
    assert_array_equal(table["a"], [1, np.nan, 3.5])
    assert table["b"].isna().tolist() == [False, True, False]
    assert table["c"].tolist()[:2] == ["1,5", "2"]


@pytest.mark.parametrize("delimiter", list(",;\t|"))
def test_the_delimiter_is_found(tmp_path, delimiter):
    table = frame(written(tmp_path, "a,b\n1,2\n3,4\n".replace(",", delimiter)))
    assert table.to_dict("list") == {"a": [1, 3], "b": [2, 4]}


def test_decimal_commas_where_semicolons_separate(tmp_path):
    assert frame(written(tmp_path, "a;b\n1,5;x\n2;y\n"))["a"].tolist() == [1.5, 2]


def test_quotes_line_ends_and_a_byte_order_mark(tmp_path):
    content = '\ufeffname,text\r\n1,"two\nlines, and ""quotes"""\r\n2,b\r\n'
    table = frame(written(tmp_path, content))
    assert table["text"].tolist() == ['two\nlines, and "quotes"', "b"]
    assert list(table) == ["name", "text"]


def test_encodings_and_compression(tmp_path):
    content = "a,b\n1,Jürgen\n"
    assert frame(written(tmp_path, content.encode("latin-1")), encoding="latin-1")["b"][0] == "Jürgen"
    assert frame(written(tmp_path, gzip.compress(content.encode()), "t.csv.gz"))["b"][0] == "Jürgen"
    with pytest.raises(FileError, match=r"not utf-8 \(byte 7\).*latin-1"):
        TableFile(written(tmp_path, content.encode("latin-1")))
    with pytest.raises(FileError, match="no encoding 'klingon'"):
        TableFile(written(tmp_path, content), encoding="klingon")


def test_parquet_is_read_whatever_its_name(tmp_path):
    table = pd.DataFrame({"a": [1, None, 3], "b": ["x", None, "z"], "c": pd.Categorical(["1", "2", "1"])})
    table.to_parquet(tmp_path / "t.csv")
    read = TableFile(tmp_path / "t.csv").read()
    assert read.schema.names == ["a", "b", "c"]
    view = Table(read)
    assert_array_equal(view.column(0), [1, np.nan, 3])
    assert view.column(1).tolist() == ["x", None, "z"]
    assert [view.is_categorical(i) for i in range(3)] == [False, False, True]


def test_columns_that_are_known_to_be_text_stay_text(tmp_path):
    file = TableFile(written(tmp_path, "code,x\n01,1\n02,2\n"))
    assert file.read(numbers=["x"]).column("code").to_pylist() == ["01", "02"]
    ((block, _),) = file.blocks(["x", "code"], numbers=["x"])
    assert block.to_pydict() == {"x": [1.0, 2.0], "code": ["01", "02"]}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "no names in its first line"),
        ("\n\n", "no names"),
        ("a,b\n", "has no rows"),
        ("a,a\n1,2\n", "more than once"),
        ("a,b\n1,2\n3\n", "Expected 2 columns, got 1"),
        (b"\x89PNG\0\0\0\r\n", "neither CSV nor Parquet"),
        (b"PAR1 and nothing more", "damaged Parquet"),
    ],
)
def test_files_that_are_no_tables_are_explained(tmp_path, content, says):
    with pytest.raises(FileError, match=says):
        frame(written(tmp_path, content))


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileError, match="there is no file"):
        TableFile(tmp_path / "none.csv")
    with pytest.raises(FileError, match="is a folder"):
        TableFile(tmp_path)
    with pytest.raises(FileError, match="no column 'z'; its columns: a, b"):
        TableFile(written(tmp_path, "a,b\n1,2\n")).require(["a", "z"])


def test_a_table_too_large_to_be_read_whole_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("emsco.data.files.MAX_TABLE_BYTES", 100)
    with pytest.raises(FileError, match="take a sample"):
        TableFile(written(tmp_path, "a\n" + "1234567\n" * 100)).read()


def test_arrow_types_that_are_no_features_are_explained():
    when = Table(pa.table({"when": pd.to_datetime(["2020-01-01"]), "list": [[1]], "none": pa.nulls(1)}))
    with pytest.raises(InvalidInputError, match="dates"):
        when.column(0)
    with pytest.raises(InvalidInputError, match="one value per cell"):
        when.column(1)
    assert np.isnan(when.column(2)).all()


PANEL = "feature,price,unit,group,discount\nage,1,,,\nchol,7.27,,blood,5.17\nfbs,5.2,,blood,3.1\nsys,4,pressure,,\ndia,,pressure,,\n"  # noqa: E501


def as_records():
    return [
        {"feature": "age", "price": 1},
        {"feature": "chol", "price": 7.27, "group": "blood", "discount": 5.17},
        {"feature": "fbs", "price": 5.2, "group": "blood", "discount": 3.1},
        {"feature": "sys", "price": 4, "unit": "pressure"},
        {"feature": "dia", "unit": "pressure"},
    ]


EXPECTED = Prices(
    units={"pressure": ["sys", "dia"]},
    price={"age": 1, "chol": 7.27, "fbs": 5.2, "pressure": 4},
    groups={"blood": ["chol", "fbs"]},
    discount={"chol": 5.17, "fbs": 3.1},
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.csv", PANEL),
        ("p.csv", PANEL.replace(".", "§").replace(",", ";").replace("§", ",")),
        ("p.json", json.dumps(as_records())),
        ("p.json", json.dumps({r["feature"]: {k: v for k, v in r.items() if k != "feature"} for r in as_records()})),
        ("p.yaml", "".join(f"- {json.dumps(r)}\n" for r in as_records())),
    ],
)
def test_prices_come_from_csv_json_and_yaml(tmp_path, name, content):
    prices = read_prices(written(tmp_path, content, name))
    assert prices == EXPECTED
    assert resolve(prices, ["age", "chol", "fbs", "sys", "dia"]).total == 15.37


def test_the_simplest_price_lists(tmp_path):
    for name, content in (("p.csv", "price,feature\n1,a\n0,b\n"), ("p.json", '{"a": 1, "b": 0}'),
                          ("p.yml", "a: 1\nb: 0\n")):  # fmt: skip
        assert read_prices(written(tmp_path, content, name)) == Prices(price={"a": 1.0, "b": 0.0})


def test_a_feature_may_be_computed_from_others(tmp_path):
    expected = Prices(price={"TT4": 14.5, "T4U": 11.5}, derived={"FTI": ["TT4", "T4U"]})
    for name, content in (
        ("p.csv", "feature,price,from\nTT4,14.5,\nT4U,11.5,\nFTI,,TT4 + T4U\n"),
        ("p.json", '{"TT4": 14.5, "T4U": 11.5, "FTI": {"from": ["TT4", "T4U"]}}'),
        ("p.yaml", "TT4: 14.5\nT4U: 11.5\nFTI: {from: TT4+T4U}\n"),
    ):
        prices = read_prices(written(tmp_path, content, name))
        assert prices == expected
    assert resolve(prices, ["TT4", "T4U", "FTI"]).total == 26
    assert without(prices, ["FTI"]) == Prices(price={"TT4": 14.5, "T4U": 11.5})
    with pytest.raises(InvalidPricesError, match="from 'TT4', which is no unit"):
        resolve(without(prices, ["TT4"]), ["T4U", "FTI"])


def test_json_and_yaml_say_the_price_model(tmp_path):
    yaml = "overhead: 5\nparallel: true\nprices:\n  a: 1\n  b: {price: 0}\n"
    expected = Prices(price={"a": 1.0, "b": 0.0}, overhead=5, parallel=True)
    assert read_prices(written(tmp_path, yaml, "p.yaml")) == expected
    content = {"prices": [{"feature": "a", "price": 1}], "overhead": 0.5}
    assert read_prices(written(tmp_path, json.dumps(content), "p.json")) == Prices(price={"a": 1.0}, overhead=0.5)
    assert without(expected, ["b"]) == Prices(price={"a": 1.0}, overhead=5, parallel=True)


def test_features_named_like_the_price_model_are_features(tmp_path):
    for content in ({"overhead": 5, "a": 1}, {"prices": 2, "overhead": 5}, {"prices": {"price": 2}, "a": 1}):
        names = list(content)
        assert list(read_prices(written(tmp_path, json.dumps(content), "p.json")).price) == names


def test_what_a_table_does_not_have_can_be_left_out():
    fewer = without(EXPECTED, ["age", "dia", "fbs"])
    assert fewer == Prices(
        units={"pressure": ["sys"]},
        price={"chol": 7.27, "pressure": 4},
        groups={"blood": ["chol"]},
        discount={"chol": 5.17},
    )
    assert without(EXPECTED, ["sys", "dia"]).units == {}
    assert "pressure" not in without(EXPECTED, ["sys", "dia"]).price


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("p.csv", "name,cost\na,1\n", "has the columns feature,price"),
        ("p.csv", "", "has the columns feature,price"),
        ("p.csv", "feature,price\n", "lists no prices"),
        ("p.csv", "feature,price\na,1\na,2\n", "lists 'a' twice"),
        ("p.csv", "feature,price\na,cheap\n", "price of 'a' in .* is 'cheap'"),
        ("p.csv", "feature,price\na\n", r"no price for \['a'\]"),
        ("p.csv", "feature,price\na,1,2\n", "line 2 .* has 3 cells"),
        ("p.csv", "feature,price,unit\na,1,u\nb,2,u\n", "1.0 at one of its features and 2.0 at 'b'"),
        ("p.json", "{", "is not JSON"),
        ("p.json", "[" * 100_000, "is not JSON"),
        ("p.json", "3", "must hold a list"),
        ("p.json", '[{"feature": "a", "cost": 1}]', r"has \['cost'\]"),
        ("p.json", '[{"price": 1}]', "no feature"),
        ("p.json", '{"a": true}', "is True"),
        ("p.json", '{"prices": {"a": 1}, "overhead": "much"}', "overhead in .* is 'much'"),
        ("p.json", '{"prices": {"a": 1}, "parallel": 1}', "parallel is 1; it can be true or false"),
        ("p.yaml", "a: [", "is not YAML"),
        ("p.yaml", "a: &x [1, 2]\nb: *x\n", "aliases"),
        ("p.yaml", "!!python/object/apply:os.system ['true']", "is not YAML"),
    ],
)
def test_price_lists_that_make_no_sense_are_explained(tmp_path, name, content, says):
    with pytest.raises((FileError, InvalidPricesError), match=says):
        read_prices(written(tmp_path, content, name))


def test_price_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileError, match="there is no file"):
        read_prices(tmp_path / "none.csv")
    with pytest.raises(FileError, match="is a folder"):
        read_prices(tmp_path)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(FileError, match="is a pipe or a device"):
        read_prices(tmp_path / "pipe.csv")  # it would wait for ever
    with pytest.raises(FileError, match="not UTF-8"):
        read_prices(written(tmp_path, b"feature,price\n\xff,1\n"))
    with pytest.raises(FileError, match="is it a price list"):
        read_prices(written(tmp_path, b"x" * (2**20 + 1)))


@st.composite
def mutations(draw, content):
    """Bytes of a file with some of them changed, cut out, doubled, or replaced by what often breaks parsers."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        kind = draw(st.integers(0, 4))
        if kind == 0 and at < len(data):
            data[at] = draw(st.integers(0, 255))
        elif kind == 1:
            del data[at : at + draw(st.integers(1, 30))]
        elif kind == 2:
            data[at:at] = data[at : at + draw(st.integers(1, 30))]
        elif kind == 3:
            pieces = [b'"', b"\n", b"\r", b",", b";", b"\0", b"\xff\xfe", b"nan", b"inf", b"-1", b"1e999", b"{", b"\t"]
            data[at:at] = draw(st.sampled_from(pieces))
        else:
            data = data[:at]
    return bytes(data)


CSV = ("age;sex;code;died\n" + "63,5;m;01;0\n41;f;02;1\n;?;x;0\n" * 5).encode()
PARQUET = pa.BufferOutputStream()
parquet.write_table(pa.table({"a": [1.5, None, 3.0], "b": ["x", "y", None]}), PARQUET)


@examples(400)
@given(st.one_of(mutations(CSV), mutations(PARQUET.getvalue().to_pybytes())))
def test_mutated_tables_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "mutated.csv"
    path.write_bytes(content)
    try:
        file = TableFile(path)
        table = Table(file.read())
        for c in range(len(table.names)):
            table.column(c)
        assert sum(block.num_rows for block, _ in file.blocks(file.names, numbers=[])) == table.n_rows
    except EmscoError:
        pass


@examples(600)
@given(
    st.sampled_from(
        [
            ("p.csv", PANEL),
            ("p.json", json.dumps(as_records())),
            ("p.yaml", "a: 1\nb: {price: 2, group: g, discount: 1}\n"),
            ("p.yaml", "overhead: 5\nparallel: true\nprices: {a: 1, b: 2}\n"),
        ]
    ).flatmap(lambda case: st.tuples(st.just(case[0]), mutations(case[1].encode())))
)
def test_mutated_price_lists_are_read_or_refused(tmp_path_factory, case):
    name, content = case
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content)
    with suppress(EmscoError):
        resolve(read_prices(path), ["age", "chol", "fbs", "sys", "dia"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.json", '{"age": 1, "sex": 2, "age": 3}'),
        ("p.json", '[{"feature": "age", "price": 1, "price": 2}]'),
        ("p.yaml", "age: 1\nsex: 2\nage: 3\n"),
        ("p.yaml", "prices:\n  - feature: age\n    price: 1\n    price: 2\n"),
    ],
)
def test_a_key_that_comes_twice_in_a_price_file_is_refused(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=r"has the key '(age|price)' twice; remove one of them"):
        read_prices(tmp_path / name)


def test_a_column_that_is_misspelt_draws_a_suggestion(tmp_path):
    file = TableFile(written(tmp_path, "Class,blood pressure\n1,2\n"))
    for wrong, near in (("class", "Class"), (" CLASS", "Class"), ("blod pressure", "blood pressure")):
        with pytest.raises(FileError, match=f"is it '{near}'"):
            file.require([wrong])
    with pytest.raises(FileError, match="its columns: Class, blood pressure"):
        file.require(["weight"])


def test_a_small_compressed_file_that_expands_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("emsco.data.files._EXPANDED_BYTES", 2**20)
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(b"a,b\n")
        file.write(b"1,0\n" * 2**20)
    assert path.stat().st_size < 2**14
    with pytest.raises(FileError, match=r"bytes and expands to more than \d+ MiB, which is unusual for a table"):
        TableFile(path).read()


def test_a_file_name_may_hold_bytes_that_are_no_text(tmp_path):
    for suffix in (b".csv", b".csv.gz", b".parquet"):
        path = Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), b"caf\xe9" + suffix)))
        try:
            path.write_bytes(b"")
        except OSError:
            pytest.skip("this file system wants names to be text")
        if suffix == b".parquet":
            with path.open("wb") as file:
                pd.DataFrame({"a": [1, 2]}).to_parquet(file)
        else:
            path.write_bytes(gzip.compress(b"a\n1\n2\n") if suffix == b".csv.gz" else b"a\n1\n2\n")
        assert TableFile(path).read().column("a").to_pylist() == [1, 2]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
def test_a_pipe_is_refused_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(FileError, match="is a pipe or a device"):
        TableFile(tmp_path / "pipe.csv")


def test_kept_cells_are_those_of_the_file(tmp_path):
    file = TableFile(written(tmp_path, "id,x\n007,1\nNA,?\n,2\n"))
    ((block, kept),) = file.blocks(["x"], numbers=["x"], keep=["id", "x"])
    assert block.to_pydict() == {"x": [1.0, None, 2.0]}
    assert kept.to_pydict() == {"id": ["007", "NA", None], "x": ["1", "?", "2"]}


def test_views_of_text_are_read_as_text(tmp_path):
    path = tmp_path / "views.parquet"
    table = pa.table({"a": pa.array(["x", None], pa.string_view())})
    parquet.write_table(table, path)
    assert TableFile(path).read().to_pydict() == {"a": ["x", None]}
    assert str(TableFile(path).read().schema.field("a").type) == "string"


def labelled(tmp_path, kind, counts):
    """A file of rows by label, some without one, in an order of their own."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([None, "a", "b", "c"], counts))
    table = pd.DataFrame({"row": np.arange(y.size, dtype=float), "y": y})
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        parquet.write_table(pa.Table.from_pandas(table), path, row_group_size=700)
    else:
        table.to_csv(path, index=False)
    return path, table


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_sample_has_each_label_in_proportion_and_rare_ones_whole(tmp_path, kind):
    path, table = labelled(tmp_path, kind, [50, 40_000, 9_000, 950])
    found, n_known, rows = TableFile(path).sample(["row", "y"], "y", 10_000)
    assert n_known == 49_950
    sample = found.to_pandas()
    assert sample["y"].value_counts().to_dict() == {"a": 8008, "b": 1802, "c": 950}
    whole = table.iloc[sample["row"].astype(int)]
    assert_array_equal(whole["y"], sample["y"])
    assert_array_equal(sample["row"], rows)
    assert sample["row"].is_monotonic_increasing
    assert 20_000 < sample["row"].mean() < 30_000, "from everywhere"
    again, _, _ = TableFile(path).sample(["row", "y"], "y", 10_000)
    other, _, _ = TableFile(path).sample(["row", "y"], "y", 10_000, seed=1)
    assert again.equals(found)
    assert not other.equals(found)


def test_a_sample_of_few_rows_is_all_that_have_a_label(tmp_path):
    path, table = labelled(tmp_path, "parquet", [5, 10, 10, 10])
    found, n_known, _ = TableFile(path).sample(["row"], "y", 1_000)
    assert n_known == found.num_rows == 30
    assert_array_equal(found["row"].to_numpy(), table.loc[table["y"].notna(), "row"])


def test_only_large_files_are_sampled(tmp_path, monkeypatch):
    path, _ = labelled(tmp_path, "parquet", [0, 10, 10, 10])
    assert not TableFile(path).may_be_large
    monkeypatch.setattr("emsco.data.files.MAX_ROWS", 20)
    assert TableFile(path).may_be_large
