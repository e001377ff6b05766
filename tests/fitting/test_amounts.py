"""Prices of errors that grow with an amount: from fit to decisions, sessions, files, commands and evaluations."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pandas as pd
import pytest

import emsco
from emsco import EMSCOClassifier, Exact
from emsco.deployed.session import Acquire
from emsco.exceptions import InvalidInputError, InvalidParameterError, InvalidPricesError, MissingColumnError
from tests.cli.calls import call

PRICES = {"amount": 0, "device": 0.5, "call": 4}
ERRORS = {"fine": {"fraud": 20}, "fraud": {"fine": "amount"}}


def _fraud(n_rows, seed):
    rng = np.random.default_rng(seed)
    y = (rng.random(n_rows) < 0.2).astype(int)
    amount = np.round(np.exp(rng.normal(3.5, 1.3, n_rows)), 2)
    X = pd.DataFrame({"amount": amount, "device": 1.2 * y + rng.normal(size=n_rows)})
    X["call"] = 2.5 * y + rng.normal(size=n_rows)
    return X, np.array(["fine", "fraud"])[y]


def _lost(decided, X, y):
    missed = (y == "fraud") & (decided.label.data == "fine")
    alarm = (y == "fine") & (decided.label.data == "fraud")
    return np.where(missed, X["amount"], 0.0) + np.where(alarm, 20.0, 0.0)


@pytest.fixture(scope="module")
def fitted():
    X, y = _fraud(600, 0)
    return EMSCOClassifier(PRICES, errors=ERRORS, random_state=0).fit(X, y)


def test_labels_are_of_least_expected_price_and_large_amounts_buy_more(fitted):
    X, _ = _fraud(2000, 1)
    decided, probabilities = fitted.decide(X), fitted.predict_proba(X)
    alarm, missed = 20 * probabilities[:, 0], X["amount"] * probabilities[:, 1]
    assert_array_equal(decided.label.data == "fraud", alarm < missed)
    assert_array_equal(fitted.predict(X), decided.label.data)
    assert len(fitted.stages_) > 1
    dear = X["amount"] > X["amount"].median()
    assert decided.cost[dear].mean() > 2 * decided.cost[~dear].mean()


def test_the_policy_by_amount_saves_money_against_that_of_the_mean_amount(fitted):
    X, y = _fraud(600, 0)
    X_test, y_test = _fraud(20_000, 1)
    errors = {"fine": {"fraud": 20}, "fraud": {"fine": float(X["amount"].mean())}}
    by_mean = EMSCOClassifier(PRICES, errors=errors, random_state=0).fit(X, y)
    totals = [d.cost + _lost(d, X_test, y_test) for d in (fitted.decide(X_test), by_mean.decide(X_test))]
    saved = totals[1] - totals[0]
    assert saved.mean() > 3 * saved.std() / np.sqrt(saved.size)


def test_the_evaluation_sums_the_amounts_of_the_rows(fitted, tmp_path):
    X, y = _fraud(1000, 2)
    evaluation = fitted.evaluate(X, y)
    decided = fitted.decide(X)
    money = evaluation.money
    assert_allclose(money["the design in use"].errors, _lost(decided, X, y).mean())
    assert_allclose(money['buy nothing, always "fine"'].total, X["amount"][y == "fraud"].sum() / 1000)
    assert_allclose(money['buy nothing, always "fraud"'].total, 20 * (y == "fine").mean())
    fitted.save(tmp_path / "m.emsco", evaluation=evaluation)
    assert emsco.load(tmp_path / "m.emsco").evaluation_.money == money


def test_the_front_holds_the_loss_of_the_rows_that_judged():
    X, y = _fraud(400, 3)
    X_val, y_val = _fraud(500, 4)
    clf = EMSCOClassifier(PRICES, errors=ERRORS, random_state=0).fit(X, y, X_val, y_val)
    for point in range(len(clf.front_)):
        decided = clf.use(point).decide(X_val)
        tests, errors = clf.front_.values[point]
        assert_allclose([tests, errors], [decided.cost.mean(), _lost(decided, X_val, y_val).mean()], rtol=1e-9)


def test_files_and_sessions_decide_as_the_classifier_does(fitted, tmp_path):
    X, _ = _fraud(60, 5)
    fitted.save(tmp_path / "m.emsco")
    loaded = emsco.load(tmp_path / "m.emsco")
    decided = fitted.decide(X)
    assert_array_equal(loaded.decide(X).label, decided.label)
    assert_array_equal(loaded.decide(X).confidence, decided.confidence)
    assert "amount" in loaded.session().step().columns
    for i in range(60):
        session = loaded.session()
        while isinstance(request := session.step(), Acquire):
            session.give({column: X[column][i] for column in request.columns})
        assert (request.label, request.confidence, request.cost) == (
            decided.label[i],
            decided.confidence[i],
            decided.cost[i],
        )


def test_an_amount_that_is_missing_is_refused(fitted):
    X, _ = _fraud(5, 6)
    with pytest.raises(MissingColumnError, match="prices of errors depend on it"):
        fitted.decide(X.drop(columns="amount"))
    with pytest.raises(InvalidInputError, match="none missing"):
        fitted.decide(X.assign(amount=np.nan))
    session = fitted.session()
    with pytest.raises(InvalidInputError, match="is the amount that prices of errors depend on"):
        session.give(dict.fromkeys(session.step().columns))
    assert isinstance(session.step(), Acquire)


@pytest.mark.parametrize(
    ("parameters", "error", "said"),
    [
        ({"costs": {**PRICES, "amount": 1}}, InvalidPricesError, "give it the price 0"),
        ({"errors": [[0, 5], ["sum", 0]]}, InvalidPricesError, "nor a column of X"),
        ({"search": Exact()}, InvalidParameterError, "search must be 'auto' or None"),
    ],
)
def test_settings_that_amounts_do_not_allow_are_refused(parameters, error, said):
    X, y = _fraud(100, 0)
    with pytest.raises(error, match=said):
        EMSCOClassifier(**{"costs": PRICES, "errors": ERRORS, **parameters}).fit(X, y)


def test_the_commands_read_the_column_that_a_file_of_prices_names(tmp_path, capsys):
    X, y = _fraud(300, 7)
    X.assign(truth=y).to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "errors.csv").write_text("true,fine,fraud\nfine,0,20\nfraud,1 * amount,0\n")
    (tmp_path / "prices.csv").write_text("feature,price\namount,0\ndevice,0.5\ncall,4\n")
    model, out = tmp_path / "m.emsco", tmp_path / "out.csv"
    call(capsys, "fit", tmp_path / "data.csv", "--target", "truth", "--costs", tmp_path / "prices.csv",
         "--errors", tmp_path / "errors.csv", "-o", model)  # fmt: skip
    call(capsys, "predict", model, tmp_path / "data.csv", "-o", out)
    assert_array_equal(pd.read_csv(out)["label"], emsco.load(model).decide(X).label.data)
    printed = call(capsys, "evaluate", model, tmp_path / "data.csv").out
    assert "money per case" in printed
