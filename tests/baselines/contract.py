"""What every rival must do, whatever its method; each rival's tests call these."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import make_classification

from emsco import Prices
from emsco.baselines.base import measure


def data(seed=0, n_classes=2, n_rows=240, n_features=6):
    X, y = make_classification(
        n_rows, n_features, n_informative=4, n_redundant=1, n_classes=n_classes, n_clusters_per_class=1, flip_y=0.1,
        random_state=seed,
    )  # fmt: skip
    return X, y


def costs_of(n_features=6):
    return [3.0, 1.0, 4.0, 1.0, 5.0, 9.0][:n_features]


def check_contract(rival):
    """Run all of it; ``rival`` is unfitted, quick, and of fixed random_state."""
    fitted = {n_classes: fit_anew(rival, n_classes) for n_classes in (2, 3)}
    for n_classes in fitted:
        check_figures(fitted[n_classes], n_classes)
        check_no_peeking(fitted[n_classes], n_classes)
    check_same_seed(fitted[2], fit_anew(rival))
    check_scale_of_costs(fitted[2], fit_anew(rival, costs=[10 * c for c in costs_of()]))
    check_threshold_zero(fit_anew(clone(rival).set_params(threshold=0.0)))
    check_labels_tables_and_edges(rival)
    check_refit(rival)


def check_refit(rival):
    """The chosen settings on the same rows give the same model; on more rows they stay."""
    X, y = data()
    fitted = clone(rival).fit(X[:120], y[:120], costs_of(), X[120:160], y[120:160], encoding="rank")
    before, chosen = fitted.predict_proba(X[160:]), dict(fitted.settings_)
    fitted.refit(X[:120], y[:120], costs_of())
    assert_allclose(fitted.predict_proba(X[160:]), before, atol=1e-9)
    fitted.refit(X[:160], y[:160], costs_of())
    assert fitted.settings_ == chosen
    assert fitted.decide(X[160:]).cost.max() <= sum(costs_of()) + 1e-9


def fit_anew(rival, n_classes=2, costs=None):
    X, y = data(n_classes=n_classes)
    return clone(rival).fit(X[:160], y[:160], costs or costs_of())


def check_figures(fitted, n_classes):
    X, y = data(n_classes=n_classes)
    decisions, trace = fitted.decide(X[160:]), fitted.trace(X[160:])
    assert_allclose(trace.probabilities.sum(axis=1), 1, atol=1e-9)
    assert np.isfinite(trace.probabilities).all()
    assert (decisions.cost >= 0).all()
    assert (decisions.cost <= sum(costs_of()) + 1e-9).all()
    assert_allclose(decisions.cost, decisions.bought @ np.array(costs_of()))
    assert_array_equal(decisions.conclusive, trace.probabilities.max(axis=1) >= fitted.threshold)
    assert_array_equal(decisions.label.data, fitted.classes_[trace.probabilities.argmax(axis=1)])
    figures = measure(trace, y[160:], decisions.cost, fitted.threshold, fitted.prices_)
    assert figures.coverage == decisions.conclusive.mean()
    assert len(fitted.table_) >= 1


def check_no_peeking(fitted, n_classes):
    """Columns that an input has not bought may hold anything."""
    rows = data(n_classes=n_classes)[0][160:]
    before = fitted.decide(rows)
    rng = np.random.default_rng(0)
    for fill in (np.nan, rng.normal(0, 100, rows.shape)):
        after = fitted.decide(np.where(before.bought, rows, fill))
        assert_array_equal(after.bought, before.bought)
        assert_array_equal(after.confidence, before.confidence)
        assert_array_equal(after.label.data, before.label.data)
        assert_array_equal(after.stage, before.stage)
        assert_array_equal(after.cost, before.cost)


def check_same_seed(first, second):
    X, _ = data()
    assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    assert_array_equal(first.decide(X).bought, second.decide(X).bought)


def check_scale_of_costs(first, dearer):
    X, _ = data()
    assert_allclose(dearer.predict_proba(X), first.predict_proba(X), atol=1e-9)
    assert_allclose(dearer.decide(X).cost, 10 * first.decide(X).cost)


def check_threshold_zero(fitted):
    X, _ = data()
    decisions = fitted.decide(X[160:])
    assert decisions.conclusive.all()
    assert_array_equal(decisions.label.data, fitted.predict(X[160:]))


def check_labels_tables_and_edges(rival):
    """Text labels, text and missing cells, panels and groups, a single row, a class absent from validation."""
    X, y = data(n_classes=3)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame.loc[::7, "a"] = np.nan
    frame["f"] = np.where(frame["f"] > 0, "high", "low")
    names = np.array(["no", "perhaps", "yes"])[y]
    prices = Prices(
        units={"panel": ["b", "c"]},
        price={"a": 3, "panel": 4, "d": 2, "e": 5, "f": 1},
        groups={"visit": ["d", "e"]},
        discount={"d": 1, "e": 4},
    )
    known = np.flatnonzero(y[160:] < 2) + 160
    fitted = clone(rival).fit(frame[:160], names[:160], prices, frame.iloc[known], names[known])
    decisions = fitted.decide(frame[160:])
    assert set(fitted.classes_) == {"no", "perhaps", "yes"}
    assert decisions.bought.shape == (80, 5)
    own, shared = np.array([3, 4, 1, 4, 1]), decisions.bought[:, [2, 3]].any(axis=1)
    assert_allclose(decisions.cost, decisions.bought @ own + shared)
    one = fitted.decide(frame[160:161])
    assert len(one) == 1
    assert_allclose(one.confidence, decisions.confidence[:1], rtol=1e-9)
    shuffled = fitted.decide(frame[160:][list("fedcba")])
    assert_array_equal(shuffled.confidence, decisions.confidence)
