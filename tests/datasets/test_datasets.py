from collections import Counter
import gzip
from hashlib import sha256
from importlib.resources import files

import numpy as np
from numpy.testing import assert_array_equal
import pytest
from sklearn.datasets import make_classification

from emsco import MultiStageClassifier, Prices
from emsco.datasets import (
    fetch_australian_credit,
    fetch_spambase,
    load_australian_credit,
    load_heart_disease,
    load_heart_failure,
    load_pima,
    load_spambase,
    make_cube,
    make_cube_context,
    make_synthetic30,
)
from emsco.prices.prices import resolve
from tests.classifiers import fixed


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("heart_failure.csv", "9c73cea7468ff5d517801ec050fe9993da5912fce4b56f296f8df3b38dd75912"),
        ("pima.csv", "698c203a14aa31941d2251175330c9199f3ccdb31597abbba2a3e35416257a72"),
        ("processed.cleveland.data", "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8"),
        ("australian.csv.gz", "3cf9352264431617bdfb4d1f59636d213f85a273ddc75c831938b5124ff354e6"),
        ("spambase.csv.gz", "294f6669272928152a8f5cf9aec31bfd902eb06a05b8bc87baf0110a95e8ee83"),
    ],
)
def test_carried_files_are_the_published_ones_and_attributed(name, digest):
    folder = files("emsco.datasets").joinpath("data")
    content = folder.joinpath(name).read_bytes()
    published = gzip.decompress(content) if name.endswith(".gz") else content
    assert sha256(published).hexdigest() == digest
    assert f"| `{name}` |" in folder.joinpath("README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("load", "shape", "counts", "total", "licence"),
    [
        (load_heart_failure, (299, 12), [203, 96], 750, "CC BY 4.0"),
        (load_heart_disease, (303, 13), [164, 139], 323.97, "CC BY 4.0"),
        (load_pima, (768, 8), [500, 268], 1600, "CC0 1.0"),
        (make_synthetic30, (1000, 30), [334, 333, 333], 8600, "none needed"),
        (load_australian_credit, (690, 14), [383, 307], 1760, "CC BY 4.0"),
        (load_spambase, (4601, 57), [2788, 1813], 57, "CC BY 4.0"),
    ],
)
def test_data_have_their_prices_and_licences_as_frames_and_arrays(load, shape, counts, total, licence):
    frame, arrays = load(), load(as_frame=False)
    assert frame.data.shape == arrays.data.shape == shape
    assert np.bincount(frame.target).tolist() == counts
    assert list(frame.data) == frame.feature_names == arrays.feature_names
    assert resolve(frame.prices, frame.feature_names).total == total
    assert frame.prices == arrays.prices
    assert frame.license == licence
    assert licence.removesuffix(" 1.0") in frame.DESCR
    assert_array_equal(frame.data.to_numpy(dtype=float), arrays.data)
    assert_array_equal(frame.target.to_numpy(), arrays.target)


def test_impossible_zeros_of_pima_are_missing_unless_asked_otherwise():
    missing = load_pima().data.isna().sum()
    assert missing[missing > 0].to_dict() == {
        "Glucose": 5, "BloodPressure": 35, "SkinThickness": 227, "Insulin": 374, "BMI": 11,
    }  # fmt: skip
    assert not load_pima(zeros_as_missing=False).data.isna().any(axis=None)
    clf = fixed(load_pima().prices, max_stages=2, random_state=0).fit(load_pima().data, load_pima().target)
    assert clf.front_.certificate.proven


@pytest.mark.parametrize(
    ("load", "categories"),
    [
        (load_heart_disease, ["cp", "restecg", "slope", "thal"]),
        (load_australian_credit, ["A4", "A5", "A6", "A12"]),
    ],
)
def test_categories_are_categories(load, categories):
    types = load().data.dtypes
    assert [name for name, kind in types.items() if kind == "category"] == categories


def test_heart_disease_has_five_degrees_and_missing_values():
    heart = load_heart_disease(binary=False)
    assert np.bincount(heart.target).tolist() == [164, 55, 36, 35, 13]
    assert heart.target.name == "num"
    assert_array_equal(heart.target > 0, load_heart_disease().target)
    missing = heart.data.isna().sum()
    assert missing[missing > 0].to_dict() == {"ca": 4, "thal": 2}
    assert_array_equal(heart.data.iloc[0].to_numpy(dtype=float), [63, 1, 1, 145, 233, 1, 2, 150, 0, 2.3, 3, 0, 6])


@pytest.mark.parametrize(
    ("new", "owned", "price"),
    [
        (["age", "sex", "cp", "trestbps"], [], 4.0),
        (["chol"], [], 7.27),
        (["fbs"], [], 5.2),
        (["chol", "fbs"], [], 10.37),  # 5.17 + 3.10 + 2.10 for drawing blood
        (["fbs"], ["chol"], 3.1),
        (["chol"], ["fbs", "age"], 5.17),
        (["restecg", "ca"], ["chol", "thal", "slope"], 116.4),
        (["thalach", "thal"], [], 103.9),
        (["thal"], ["thalach"], 1.0),
        (["thal"], ["exang"], 102.9),
        (["exang"], [], 87.3),
        (["exang", "oldpeak", "slope"], [], 89.3),
        (["oldpeak", "slope"], ["exang"], 2.0),
    ],
)
def test_tests_of_heart_disease_share_costs(new, owned, price):
    heart = load_heart_disease()
    prices = resolve(heart.prices, heart.feature_names)
    mask = {name: i for i, name in enumerate(heart.feature_names)}
    chosen = np.zeros((2, 13), dtype=bool)
    chosen[0, [mask[name] for name in new]] = chosen[1, [mask[name] for name in owned]] = True
    assert prices.price_of(*chosen) == price


def test_prices_and_delays_of_heart_disease_are_turneys():
    heart = load_heart_disease()
    assert isinstance(heart.prices, Prices)
    assert sum(heart.prices.price.values()) == pytest.approx(600.57)
    assert heart.prices.groups == {"A": ["chol", "fbs"], "B": ["thalach", "thal"], "C": ["exang", "oldpeak", "slope"]}
    shared = resolve(heart.prices, heart.feature_names).shared_prices
    assert shared.tolist() == [2.1, 101.9, 86.3]
    assert list(heart.delays) == heart.feature_names
    assert [name for name, delay in heart.delays.items() if delay == "immediate"] == ["age", "sex", "cp", "trestbps"]
    assert Counter(heart.delays.values()) == {"immediate": 4, "delayed": 9}
    assert heart.days.parallel
    assert heart.days.price == {name: int(delay == "delayed") for name, delay in heart.delays.items()}


def test_a_classifier_takes_heart_disease_as_it_is():
    heart = load_heart_disease()
    design = [["age", "sex", "cp", "trestbps", "chol"], ["fbs", "restecg", "thalach", "exang", "oldpeak", "slope"],
              ["ca", "thal"]]  # fmt: skip
    clf = MultiStageClassifier(design, costs=heart.prices, threshold=0.9).fit(heart.data, heart.target)
    cost = clf.decide(heart.data).cost
    assert sorted(set(cost.tolist())) == [11.27, 11.27 + 3.1 + 15.5 + 102.9 + 89.3, 323.97]


def test_the_more_important_a_synthetic_feature_the_dearer():
    synthetic = make_synthetic30()
    assert sorted(Counter(synthetic.prices.values()).items()) == [(100, 7), (200, 6), (300, 6), (400, 6), (500, 5)]
    X, y = synthetic.data, synthetic.target
    assert_array_equal(X, make_classification(1000, 30, n_informative=25, n_classes=3, random_state=0)[0])
    separation = np.array([np.ptp(X.groupby(y)[name].mean()) / X[name].std() for name in X])
    price = np.array(list(synthetic.prices.values()))
    assert separation[price == 500].mean() > 2 * separation[price == 100].mean()


def test_synthetic_data_follow_from_the_seed():
    first, again, other = make_synthetic30(1), make_synthetic30(1), make_synthetic30(2)
    assert_array_equal(first.data, again.data)
    assert first.prices == again.prices != other.prices
    assert sum(other.prices.values()) == 8600
    drawn = make_synthetic30(np.random.RandomState(1), as_frame=False)
    assert_array_equal(drawn.data, first.data)


def test_391_rows_of_spambase_repeat_another():
    spam = load_spambase(as_frame=False)
    assert len(np.unique(np.column_stack([spam.data, spam.target]), axis=0)) == 4601 - 391
    assert set(spam.prices.values()) == {1}


@pytest.mark.parametrize(
    ("load", "digest"),
    [
        (load_australian_credit, "55bdaa62fbb5da9c9b8807f3a6bb15ac07e11a1f36f5fe2144f24cba68ac6cb4"),
        (load_spambase, "d68e267ef3454b1d7ceeb81e0410227822f49511476bb917e5c2b07ce11d5b47"),
    ],
)
def test_rows_of_credit_and_spambase_are_sorted(load, digest):
    """In the order that experiments of version 0.1.0 split them in."""
    bunch = load(as_frame=False)
    values = np.column_stack([bunch.data, bunch.target])
    assert_array_equal(values, values[np.lexsort(values.T[::-1])])
    assert sha256(values.astype("<f8").tobytes()).hexdigest() == digest


@pytest.mark.parametrize(
    ("old", "new"), [(fetch_australian_credit, load_australian_credit), (fetch_spambase, load_spambase)]
)
def test_old_names_give_the_same_data_and_warn_with_the_new_name(old, new):
    with pytest.warns(FutureWarning, match=rf"{old.__name__} is deprecated.*use {new.__name__}\.") as caught:
        bunch = old(as_frame=False)
    assert caught[0].filename == __file__
    assert_array_equal(bunch.data, new(as_frame=False).data)


def test_the_bits_of_a_class_are_where_it_says_and_all_else_is_noise():
    cube = make_cube(16_000, n_features=12, random_state=3)
    X, y = cube.data.to_numpy(), cube.target.to_numpy()
    assert np.bincount(y).tolist() == [2_000] * 8
    centre = np.full((8, 12), 0.5)
    for c in range(8):
        centre[c, c : c + 3] = [int(bit) for bit in f"{c:03b}"]
    means = np.array([X[y == c].mean(axis=0) for c in range(8)])
    assert abs(means - centre).max() < 0.04  # six standard errors
    assert abs((X - centre[y]).std() - 0.3) < 0.01


def test_a_context_says_which_block_tells_the_class_and_nothing_of_the_class():
    cube = make_cube_context(8_000, random_state=3, as_frame=False)
    shown, blocks, y = cube.data[:, :5], cube.data[:, 5:].reshape(8_000, 5, 10), cube.target
    context = shown.argmax(axis=1)
    told, others = blocks[np.arange(8_000), context], blocks[np.arange(8_000), (context + 1) % 5]
    means = np.array([[part[y == c].mean(axis=0) for c in range(8)] for part in (told, others)])
    bits = np.array([[int(bit) for bit in f"{c:03b}"] for c in range(8)])
    own = means[0][np.arange(8)[:, None], np.arange(8)[:, None] + np.arange(3)]
    assert abs(own - bits).max() < 0.12  # the noise hides the context of a few points
    assert abs(means[1] - 0.5).max() < 0.12
    shares = np.array([np.bincount(y[context == c], minlength=8) for c in range(5)]) / 1_600
    assert abs(shares - 1 / 8).max() < 0.06
    prices = resolve(cube.prices, cube.feature_names)
    assert (prices.n_units, prices.total, prices.unit_columns[0]) == (51, 51, (0, 1, 2, 3, 4))


@pytest.mark.parametrize("make", [make_cube, make_cube_context])
def test_cubes_follow_their_seed(make):
    first, again, other = make(80, random_state=1), make(80, random_state=1), make(80, random_state=2)
    assert_array_equal(first.data.to_numpy(), again.data.to_numpy())
    assert (first.data.to_numpy() != other.data.to_numpy()).any()
    arrays = make(80, random_state=1, as_frame=False)
    assert_array_equal(arrays.data, first.data.to_numpy())
    assert first.feature_names == arrays.feature_names == list(first.data)


def test_a_cube_has_room_for_its_classes():
    with pytest.raises(ValueError, match="at least 10; got 9"):
        make_cube(n_features=9)
