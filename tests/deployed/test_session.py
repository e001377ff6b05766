from dataclasses import replace
import json
import pickle
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from emsco import Accept, Acquire, EMSCOClassifier, EmscoError, MultiStageClassifier, Prices, Reject
from emsco.datasets import load_heart_failure
from emsco.exceptions import InvalidInputError, SessionError
from tests.classifiers import fixed
from tests.deployed.test_decide import numbers
from tests.strategies import seeds
from tests.test_estimators import PANEL, QUICK, patients

STAGES = [["visits"], ["age", "smokes", "ward"], ["blood panel"]]


@pytest.fixture(scope="module")
def clf():
    X, y = patients()
    return MultiStageClassifier(STAGES, PANEL, threshold=0.85).fit(X, y)


def answers(clf, row):
    """All answers of a session that is given what it asks for."""
    session = clf.session()
    found = [session.step()]
    while isinstance(found[-1], Acquire):
        session.give({column: row[column] for column in found[-1].columns})
        found.append(session.step())
    return found


def assert_is_row(answer, decisions, i):
    """The answer is what `decide` says of row i, to the bit."""
    assert isinstance(answer, Accept) == decisions.conclusive[i]
    label = answer.label if isinstance(answer, Accept) else answer.best_guess
    assert label == decisions.label.data[i]
    assert (answer.confidence, answer.stage, answer.cost) == (
        decisions.confidence[i], decisions.stage[i], decisions.cost[i],
    )  # fmt: skip


def mixed(seed, n, n_classes):
    """A table of all kinds: numbers on odd scales, booleans, texts with rare ones, and missing values."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "far": 1e6 + 1e-3 * hidden + 1e-3 * rng.normal(size=n),
            "whole": rng.poisson(2, size=n),
            "flag": hidden + rng.normal(size=n) > 0,
            "holes": np.where(rng.random(n) < 0.3, np.nan, hidden + rng.normal(size=n)),
            "word": pd.array(np.where(rng.random(n) < 0.2, None, rng.choice(list("abc"), n)), dtype=object),
            "rare": pd.array([f"t{k}" for k in rng.geometric(0.05, size=n)], dtype=object),
            "mixed": pd.array([1.0, 2, "x", None, True] * (n // 5) + ["x"] * (n % 5), dtype=object),
        }
    )
    labels = np.array(["no", "yes", "maybe"])[:n_classes]
    y = labels[np.digitize(hidden + rng.normal(scale=0.7, size=n), [0.0, 1.0][: n_classes - 1])]
    y[:n_classes] = labels
    return frame, y


UNITS = Prices(
    units={"lab": ["holes", "far"]},
    price={"lab": 7.5, "word": 5.5, "whole": 0, "flag": 0.1, "rare": 0.2, "mixed": 3},
    groups={"blood": ["lab", "word"]},
    discount={"lab": 5.25, "word": 3.25},
)
COSTS = st.sampled_from([None, UNITS, [1, 2, 3, 0, 5, 0.1, 0.2]])
ESTIMATORS = st.sampled_from([None, None, DecisionTreeClassifier(max_depth=3, random_state=0)])


@settings(max_examples=40)
@given(seeds(), st.sampled_from([2, 3]), st.floats(0.0, 1.0), COSTS, ESTIMATORS)
def test_a_session_answers_as_decide_does_to_the_bit(seed, n_classes, threshold, costs, estimator):
    X, y = mixed(seed, 80, n_classes)
    rng = np.random.default_rng(seed)
    n_units = 6 if costs is UNITS else 7
    design = rng.permutation(n_units) * rng.integers(1, n_units + 1) // n_units
    clf = MultiStageClassifier(design, costs, threshold=threshold, estimator=estimator).fit(X, y)
    X_new, _ = mixed(seed + 1, 60, n_classes)
    decisions = clf.decide(X_new)
    for i, row in enumerate(X_new.astype(object).to_dict("records")):
        *bought, answer = answers(clf, row)
        assert_is_row(answer, decisions, i)
        for stage, request in zip(clf.stages_, bought, strict=False):
            assert (request.features, request.price) == (stage.features, stage.price)
        assert len(bought) == answer.stage + 1


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB()])
def test_an_estimator_whose_sums_depend_on_the_batch_answers_as_for_one_row(estimator, n_classes):
    X, y = numbers(3, n_classes=n_classes, missing=0.1)
    clf = MultiStageClassifier([0, 0, 1, 1, 2, 2], threshold=0.9, estimator=estimator).fit(X, y)
    for row in X[:30]:
        answer = answers(clf, {f"x{i}": value for i, value in enumerate(row)})[-1]
        assert_is_row(answer, clf.decide(row[None]), 0)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_numbers_without_names_and_absurd_ones(missing):
    X, y = numbers(0, missing=missing)
    clf = MultiStageClassifier([2, 0, 1, 1, 0, 2], threshold=0.95).fit(X, y)
    X[::3] = np.copysign(np.finfo(float).max, X[::3])
    X[1::9] *= 1e101
    X[2] = 0.0
    X[5] = -0.0
    decisions = clf.decide(X)
    for i, row in enumerate(X):
        assert_is_row(answers(clf, {f"x{c}": value for c, value in enumerate(row)})[-1], decisions, i)


def test_columns_named_by_numbers_are_given_by_number_or_text():
    X, y = numbers(0)
    clf = MultiStageClassifier([0, 0, 0, 0, 0, 0]).fit(pd.DataFrame(X), y)
    session, other = clf.session(), clf.session()
    session.give(dict(enumerate(X[0])))
    other.give({str(i): value for i, value in enumerate(X[0])})
    assert session.step() == other.step()


def test_every_point_of_a_front_has_its_own_sessions():
    X, y = patients()
    clf = fixed(PANEL, threshold=0.8, search=QUICK, random_state=0).fit(X, y)
    rows = X.iloc[:20].to_dict("records")
    before = clf.session()
    asked = before.step()
    for point in range(len(clf.front_)):
        decisions = clf.use(point).decide(X.iloc[:20])
        for i, row in enumerate(rows):
            assert_is_row(answers(clf, row)[-1], decisions, i)
    assert before.step() == asked  # a session keeps the design it began with


def test_step_says_the_same_until_values_are_given(clf):
    session = clf.session()
    assert session.step() is session.step()
    assert session.step() == Acquire(features=("visits",), columns=("visits",), price=0.0, stage=0)
    session.give({})
    assert session.step() == Acquire(("visits",), ("visits",), 0.0, 0)


def test_a_stage_may_be_given_in_parts(clf):
    X, _ = patients()
    i = int(np.flatnonzero(clf.decide(X).stage == 2)[0])
    row = X.iloc[i].to_dict()
    session = clf.session()
    session.give({"visits": row["visits"]})
    assert session.step() == Acquire(("age", "smokes", "ward"), ("age", "smokes", "ward"), 4.0, 1)
    session.give({"smokes": row["smokes"]})
    assert session.step() == Acquire(("age", "ward"), ("age", "ward"), 4.0, 1)
    session.give({"ward": row["ward"], "age": row["age"]})
    assert session.step() == Acquire(("blood panel",), ("sodium", "creatinine"), 40.0, 2)
    session.give({"creatinine": row["creatinine"]})
    assert session.step() == Acquire(("blood panel",), ("sodium",), 40.0, 2)  # half a panel is still to be bought
    session.give({"sodium": row["sodium"]})
    assert_is_row(session.step(), clf.decide(X), i)


@settings(max_examples=30)
@given(seeds())
def test_values_may_come_early_in_any_order_and_cost_the_same(clf, seed):
    X, _ = patients(60, seed=9)
    rng = np.random.default_rng(seed)
    i = int(rng.integers(60))
    row = X.iloc[i].to_dict()
    session = clf.session()
    for column in rng.permutation(X.columns).tolist():
        session.give({column: row[column]})
        if not isinstance(session.step(), Acquire):
            break
    assert_is_row(session.step(), clf.decide(X), i)
    at_once = clf.session()
    at_once.give(row)
    assert at_once.step() == session.step()


def test_a_value_may_be_replaced_until_its_stage_is_complete(clf):
    X, _ = patients()
    i = int(np.flatnonzero(clf.decide(X).stage == 2)[0])
    row = X.iloc[i].to_dict()
    session = clf.session()
    session.give({"age": "59", "sodium": 1e9})
    session.give({"age": row["age"], "visits": row["visits"], "smokes": row["smokes"], "ward": row["ward"]})
    with pytest.raises(SessionError, match="'age' was given before and stage 2 has used it"):
        session.give({"age": 60})
    session.give({"sodium": row["sodium"], "creatinine": row["creatinine"]})
    assert_is_row(session.step(), clf.decide(X), i)


@pytest.mark.parametrize("unknown", [None, np.nan, float("nan"), pd.NA, pd.NaT, np.float32("nan"), "nan"])
def test_what_could_not_be_obtained_is_a_missing_cell_and_is_paid_for(clf, unknown):
    X, _ = patients(1)
    expected = clf.decide(pd.DataFrame({name: [None] for name in X}, dtype=object))
    session = clf.session()
    while isinstance(request := session.step(), Acquire):
        session.give({c: None if c == "ward" and isinstance(unknown, str) else unknown for c in request.columns})
    assert_is_row(session.step(), expected, 0)
    assert session.step().cost == 44.0
    assert set(session.state["given"].values()) == {None}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"agee": 3}, "no column 'agee'; did you mean 'age'"),
        ({"zzz": 3}, "no column 'zzz'; columns: .'visits'"),
        ({None: 3}, "no column None"),
        ({"blood panel": 3}, r"what is bought; give the values of its columns \['sodium', 'creatinine'\]"),
        ({"age": "old"}, "'age' was given 'old', but was numeric in training"),
        ({"age": ""}, "numeric in training"),
        ({"age": np.inf}, "finite number"),
        ({"age": -np.inf}, "finite number"),
        ({"age": "inf"}, "finite number"),
        ({"age": 10**400}, "finite number"),
        ({"age": 10**5000}, "finite number"),
        ({"age": "9" * 10**6}, "numeric in training"),
        ({"age": [60]}, "numeric in training"),
        ({"age": np.array([60.0])}, "numeric in training"),
        ({"age": pd.Series([60.0])}, "numeric in training"),
        ({"age": 60j}, "numeric in training"),
        ({"age": pd.Timestamp("2020-01-01")}, "numeric in training"),
        ({"age": np.timedelta64(5, "ns")}, "numeric in training"),
        ({"ward": ["a"]}, "'ward' was given .'a'., but was text in training"),
        ({"ward": b"a"}, "text in training"),
        ({"ward": {"a": 1}}, "text in training"),
        ({"ward": np.array(["a"])}, "text in training"),
        ({"ward": pd.Timestamp("2020-01-01")}, "text in training"),
        ({"ward": "a" * (2**16 + 1)}, "up to 65,536 characters"),
        ({"ward": 10**5000}, "up to 65,536 characters"),
        ({"visits": 3, "age": "old"}, "'age'"),
        ([("age", 3)], "mapping of column name to value"),
        (None, "mapping of column name to value"),
        ("age", "mapping of column name to value"),
    ],
)
def test_a_value_that_cannot_be_used_changes_nothing(clf, values, message):
    session = clf.session()
    before = session.state
    with pytest.raises(InvalidInputError, match=message) as caught:
        session.give(values)
    assert len(str(caught.value)) < 400
    assert session.state == before
    assert session.step() == clf.session().step()


def test_a_text_of_any_length_that_was_seen_in_training_is_fine():
    X, y = patients()
    long = "x" * 100_000
    X["ward"] = X["ward"].replace({"intensive": long})
    clf = MultiStageClassifier([0] * 5, PANEL).fit(X, y)
    decisions = clf.decide(X)
    i = int((X["ward"] == long).to_numpy().argmax())
    assert_is_row(answers(clf, X.iloc[i])[-1], decisions, i)


def test_a_row_of_a_frame_and_numpy_scalars_are_given_as_they_are(clf):
    X, _ = patients()
    decisions = clf.decide(X)
    for i in range(10):
        session = clf.session()
        while isinstance(request := session.step(), Acquire):
            session.give(X.iloc[i][list(request.columns)])
        assert_is_row(session.step(), decisions, i)


def test_the_decision_is_the_end(clf):
    X, _ = patients()
    session = clf.session()
    session.give(X.iloc[0])
    before = session.state
    with pytest.raises(SessionError, match="decided and takes no more values"):
        session.give({"age": 3})
    assert session.state == before
    assert before["decided"]


def test_an_estimator_that_raises_leaves_the_session_as_it_was():
    class Moody(DecisionTreeClassifier):
        fails = False

        def predict_proba(self, X, check_input=True):
            if Moody.fails:
                raise OSError("no connection")
            return super().predict_proba(X, check_input)

    X, y = numbers(0)
    clf = MultiStageClassifier([0, 0, 1, 1, 1, 1], threshold=1.0, estimator=Moody(max_depth=1)).fit(X, y)
    session = clf.session()
    session.give({"x0": 5.0})
    before = session.state
    Moody.fails = True
    with pytest.raises(OSError, match="no connection"):
        session.give({"x0": 7.0, "x1": 1.0})
    Moody.fails = False
    assert session.state == before
    session.give({"x0": None, "x1": 1.0})
    fresh = clf.session()
    fresh.give({"x0": None, "x1": 1.0})
    assert fresh.state == session.state


def test_answers_are_consumed_with_match_and_hold_plain_python():
    heart = load_heart_failure()
    clf = MultiStageClassifier([0] * 6 + [1] * 6, heart.prices, threshold=0.9).fit(heart.data, heart.target)
    kinds = set()
    for row in heart.data.to_dict("records"):
        for answer in answers(clf, row):
            match answer:
                case Acquire(features, columns, price, stage):
                    values = [features, columns, price, stage]
                    assert {type(price), type(stage)} == {float, int}
                case Accept(label, confidence, cost, stage):
                    values = [label, confidence, cost, stage]
                    assert [type(value) for value in values] == [int, float, float, int]
                case Reject(confidence, cost, stage, best_guess):
                    values = [confidence, cost, stage, best_guess]
                    assert [type(value) for value in values] == [float, float, int, int]
            json.dumps(values)
            kinds.add(type(answer))
            with pytest.raises(AttributeError):
                answer.stage = 7
            assert not hasattr(answer, "__dict__")
    assert kinds == {Acquire, Accept, Reject}


@pytest.mark.parametrize("labels", [[False, True], ["a", "b"], [1.0, 2.0], [3, 4]])
def test_labels_of_every_kind_are_plain_python(labels):
    X, y = numbers(0)
    clf = MultiStageClassifier(threshold=0.0).fit(X, np.array(labels)[y])
    answer = answers(clf, {f"x{i}": value for i, value in enumerate(X[0])})[-1]
    assert answer.label in labels
    assert type(answer.label) is type(labels[0])


def through_json(state):
    return json.loads(json.dumps(state, allow_nan=False))


@settings(max_examples=25)
@given(seeds(), st.sampled_from([2, 3]), st.floats(0.3, 1.0), ESTIMATORS)
def test_a_state_survives_json_and_goes_on_to_the_same_bits(seed, n_classes, threshold, estimator):
    X, y = mixed(seed, 60, n_classes)
    rng = np.random.default_rng(seed)
    design = rng.permutation(6) * rng.integers(1, 7) // 6
    clf = MultiStageClassifier(design, UNITS, threshold=threshold, estimator=estimator).fit(X, y)
    decisions = clf.decide(X)
    twin = pickle.loads(pickle.dumps(clf))
    for i, row in enumerate(X.astype(object).to_dict("records")[:10]):
        session = clf.session()
        for column in rng.permutation(X.columns).tolist():
            session.give({column: row[column]})
            state = session.state
            other = twin.session(through_json(state))
            assert (other.step(), other.state) == (session.step(), state)
            if not isinstance(session.step(), Acquire):
                break
            session = other
        assert_is_row(session.step(), decisions, i)
        with pytest.raises(SessionError, match="decided"):
            twin.session(state).give({})


def test_a_state_says_what_a_person_wants_to_know(clf):
    session = clf.session()
    assert session.state == {
        "version": 1, "classifier": session.state["classifier"], "stage": 0, "decided": False, "cost": 0.0, "given": {},
    }  # fmt: skip
    session.give({"visits": 2, "ward": "a"})
    state = session.state
    assert (state["stage"], state["cost"]) == (1, 0.0)
    assert state["given"] == {"visits": 2.0, "ward": "a"}
    state["given"]["visits"] = 7.0  # a copy
    assert session.state["given"]["visits"] == 2.0
    session.give({"age": 60, "smokes": True})
    assert session.state["cost"] == 4.0
    assert "stage 3 of 3: Acquire" in repr(session)


def test_a_state_continues_in_another_process(tmp_path, clf):
    X, _ = patients()
    i = int(np.flatnonzero(clf.decide(X).stage == 2)[0])
    row = X.iloc[i]
    session = clf.session()
    session.give({"visits": row["visits"], "age": row["age"]})
    (tmp_path / "clf.pickle").write_bytes(pickle.dumps(clf))
    (tmp_path / "state.json").write_text(json.dumps(session.state))
    rest = row.drop(["visits", "age"]).to_dict()
    code = f"""
import json, pathlib, pickle
folder = pathlib.Path({str(tmp_path)!r})
nan = None
clf = pickle.loads((folder / "clf.pickle").read_bytes())
session = clf.session(json.loads((folder / "state.json").read_text()))
session.give({rest!r})
print(session.step(), session.state["classifier"])
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    session.give(rest)
    assert done.stdout.strip() == f"{session.step()} {session.state['classifier']}", done.stderr


def test_a_state_of_another_classifier_is_refused(clf):
    X, y = patients()
    state = clf.session().state

    def refit(**changes):
        settings = {"design": STAGES, "costs": PANEL, "threshold": 0.85, "estimator": None} | changes
        data = settings.pop("data", (X, y))
        return MultiStageClassifier(**settings).fit(*data)

    assert refit().session(state).state == state  # trained again to the same bits
    dearer = Prices(units=PANEL.units, price={**PANEL.price, "visits": 1})
    seen = {state["classifier"]}
    for other in (
        refit(threshold=0.86),
        refit(design=STAGES[::-1]),
        refit(costs=dearer),
        refit(data=patients(seed=1)),
        refit(data=(X, np.where(y == "dies", "0", "1"))),
        refit(data=(X.assign(age=X["age"] + 1), y)),
        refit(data=(X.rename(columns={"visits": "visit"}), y), design=[["visit"], *STAGES[1:]],
              costs=replace(PANEL, price={"visit" if k == "visits" else k: v for k, v in PANEL.price.items()})),
        refit(estimator=GaussianNB()),
        refit(estimator=GaussianNB(var_smoothing=0.1)),
        refit(estimator=DecisionTreeClassifier(random_state=0)),
    ):  # fmt: skip
        with pytest.raises(SessionError, match="another design, threshold, price list or training"):
            other.session(state)
        fingerprint = other.session().state["classifier"]
        assert len(fingerprint) == 16
        assert fingerprint not in seen
        seen.add(fingerprint)


def test_use_and_fit_begin_sessions_of_the_new_design():
    X, y = patients()
    clf = fixed(PANEL, threshold=0.8, search=QUICK, random_state=0).fit(X, y)
    fingerprints = [clf.use(i).session().state["classifier"] for i in range(len(clf.front_))]
    assert len(set(fingerprints)) == len(fingerprints)
    state = clf.use(0).session().state
    with pytest.raises(SessionError, match="another design"):
        clf.use(1).session(state)
    clf.use(0).threshold = 0.9
    with pytest.raises(SessionError, match="threshold"):
        clf.session(state)
    clf.threshold = 0.8
    clf.session(state)
    X2, y2 = patients(seed=4)
    clf.fit(X2, y2)
    with pytest.raises(SessionError, match="training"):
        clf.use(0).session(state)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=150)
@given(st.data())
def test_a_damaged_state_is_an_error_or_continues_as_it_says(clf, data):
    session = clf.session()
    session.give({"visits": 1, "age": 60.0, "smokes": None})
    state = session.state
    name = data.draw(st.sampled_from([*state, "new", *state["given"], "sodium", "nothing"]))
    value = data.draw(JSON)
    if name in state or name == "new":
        damaged = {**state, name: value}
    else:
        damaged = {**state, "given": {**state["given"], name: value}}
    try:
        other = clf.session(damaged)
    except SessionError:
        return
    assert {k: v for k, v in other.state.items() if k != "given"} == {k: v for k, v in state.items() if k != "given"}


@pytest.mark.parametrize("state", [3, "state", [], {}, {"version": 1}, np.zeros(3)])
def test_what_is_no_state_is_an_error(clf, state):
    with pytest.raises(SessionError, match="continued from its state, a mapping of version, classifier, stage"):
        clf.session(state)


def test_damaged_states_say_what_is_wrong(clf):
    session = clf.session()
    session.give({"visits": 1})
    state = session.state
    with pytest.raises(SessionError, match="of version 2; this release reads version 1"):
        clf.session({**state, "version": 2, "more": 1})
    with pytest.raises(SessionError, match="damaged: there is no column 'visit'"):
        clf.session({**state, "given": {"visit": 1}})
    with pytest.raises(SessionError, match="do not follow from the values"):
        clf.session({**state, "given": {}})
    with pytest.raises(SessionError, match="do not follow from the values"):
        clf.session({**state, "cost": -1.0})


def test_there_is_no_session_before_fit_and_a_bad_threshold_is_named():
    with pytest.raises(NotFittedError):
        EMSCOClassifier().session()
    X, y = numbers(0)
    clf = MultiStageClassifier().fit(X, y)
    clf.threshold = 2
    with pytest.raises(EmscoError, match="between 0 and 1"):
        clf.session()


def test_sessions_leave_no_trace_in_what_is_pickled(clf):
    clf.session()
    twin = pickle.loads(pickle.dumps(clf))
    assert "itinerary" not in twin.deployed_.__dict__
    assert twin.session().state == clf.session().state


def test_a_session_is_a_table_in_a_notebook():
    X = pd.DataFrame({"age": [1.0, 2, 3, 4] * 5, "<b>blood": [4.0, 3, 2, 1] * 5})
    y = ["<i>sick", "well", "sick", "well"] * 5
    clf = MultiStageClassifier([0, 1], threshold=[1.0, 0.0], costs=[1, 5]).fit(X, y)
    session = clf.session()
    assert "buy now" in session._repr_html_()
    session.give({"age": None})
    assert "age = missing" in session._repr_html_()
    assert "&lt;b&gt;blood" in session._repr_html_()
    session.give({"<b>blood": 2})
    html = session._repr_html_()
    assert "confidence" in html
    assert "stage 2 of 2" in html
    assert not any(tag in html for tag in ("<i>", "<b>blood"))
    silent = MultiStageClassifier([0, 1], threshold=1.0, costs=[1, 5]).fit(X, y).session()
    silent.give({"age": 1, "<b>blood": 2})
    assert "none; best guess" in silent._repr_html_()
