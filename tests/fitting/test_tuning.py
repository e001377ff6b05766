"""Thresholds that are chosen with the design: counts, fronts, and everything that uses them."""

from functools import partial

from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

import emsco
from emsco import (
    BestFirst,
    Guarantee,
    Loss,
    MultiStageClassifier,
    Objective,
    reference,
)
from emsco.cli.app import emsco as command
from emsco.exceptions import InvalidParameterError, ModelFileError, NoSuchPointError, SearchInterruptedWarning
from emsco.fitting import training
from emsco.fitting import tuning as thresholds
from emsco.fitting.clock import Clock
from emsco.fitting.tuning import EXITS, LASTS, tune
from emsco.report.learning import learning_record
from emsco.scoring.cache import StageCache
from emsco.scoring.objectives import check_objectives
from emsco.scoring.rejection import resolve_rule, rule_of
from emsco.scoring.thresholds import rule_words
from tests.classifiers import fixed
from tests.deployed.test_session import answers, assert_is_row
from tests.scoring.test_cascade import draw_population, make_cascade
from tests.scoring.test_judge import make_judge
from tests.strategies import bill, problem, seeds


@settings(max_examples=30, deadline=None)
@given(seeds(), st.sampled_from([2, 3]))
def test_counts_equal_the_walk_in_plain_python_at_every_pair_of_thresholds(seed, n_classes):
    p = problem(seed, n_classes=n_classes)
    design = draw_population(seed, n_rows=1)[0]
    judge = make_judge(p)
    _, pairs, tally = thresholds._counted(design, judge.answers(design), judge.task)
    outcome = reference.train_logistic(p.train.T, p.y_train, p.validation.T)
    costs, _, shared, overhead, parallel = bill(p.prices, 0.0)
    for i in np.random.default_rng(seed).integers(len(pairs), size=25):
        exit_at, last_at = pairs[i].tolist()
        walked = reference.walk(
            design.tolist(), outcome, p.y_validation.tolist(), costs, exit_at, shared, overhead, parallel, last_at
        )
        assert tuple(tally.vectors[i].tolist()) == walked
        rule = rule_of([exit_at, last_at], int(design.max()) + 1)
        by_rule = make_cascade(p, rule)[0].tally(design[None])
        assert_array_equal(by_rule.reached[0], tally.reached[i])
    n_pairs = len(LASTS) * (len(EXITS) if design.max() else 1)
    assert len({tuple(pair) for pair in pairs.tolist()}) == len(pairs) == n_pairs


@settings(max_examples=5, deadline=None)
@given(seeds())
def test_the_front_is_what_no_pair_of_any_promising_design_beats(seed):
    p = problem(seed, n_features=5)
    designs = np.unique(draw_population(seed, n_rows=12, n_features=5), axis=0)
    judge = make_judge(p)
    promising = thresholds._promising(designs, judge, Clock())
    front = tune(designs, judge)
    outcome = reference.train_logistic(p.train.T, p.y_train, p.validation.T)
    costs, truth = bill(p.prices, 0.0)[0], p.y_validation.tolist()
    vectors = [
        reference.walk(design, outcome, truth, costs, exit_at, last=last_at)
        for design in promising.tolist()
        for exit_at in EXITS
        for last_at in LASTS
    ]
    n = p.y_validation.size
    points = list({reference.objectives(v, n) for v in vectors})
    best = [q for q in points if not any(reference.dominates(other, q) for other in points)]
    found = {(round(float(c), 9), round(float(np.nan_to_num(a)), 9)) for c, a in
             zip(front.coverage, front.accuracy, strict=True)}  # fmt: skip
    assert found == {(round(float(c), 9), round(float(a), 9)) for c, a, _ in best}
    assert len(front) == len(best)


def test_a_large_front_keeps_the_best_of_everything(monkeypatch):
    p = problem(3, n_features=6, n_validation=200)
    designs = np.unique(draw_population(3, n_rows=40, n_features=6), axis=0)
    judge = make_judge(p)
    whole = tune(designs, judge)
    monkeypatch.setattr(thresholds, "_MOST", 30)
    few = tune(designs, judge)
    assert len(few) < 40 < len(whole)
    for name in ("coverage", "accuracy"):
        assert np.nanmax(getattr(few, name)) == np.nanmax(getattr(whole, name))
    assert few.mean_cost.min() == whole.mean_cost.min()
    assert few.combined.max() == whole.combined.max()
    losses = np.column_stack([-few.coverage, -np.nan_to_num(few.accuracy), few.mean_cost])
    for loss in losses:
        assert not ((losses <= loss).all(axis=1) & (losses < loss).any(axis=1)).any()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(420, 6))
    y = np.where(X[:, 0] + X[:, 1] + 0.5 * X[:, 2] + rng.normal(scale=0.8, size=420) > 0, "spam", "ham")
    return X, y


@pytest.fixture(scope="module")
def fitted(data):
    X, y = data
    return make().fit(X[:200], y[:200], X[200:300], y[200:300])


def make(**more):
    settings = {"encoding": "linear", "C": 1.0, "random_state": 0, "search": BestFirst(max_designs=400)}
    return fixed([1, 1, 2, 3, 3, 5], threshold="auto", **{**settings, **more})


def test_each_point_does_on_the_rows_that_judged_it_what_the_front_says(fitted, data):
    X, y = data
    front = fitted.front_
    assert front.thresholds.shape == (len(front), 2)
    assert len({tuple(pair) for pair in front.thresholds.tolist()}) > 3
    for point in range(0, len(front), max(len(front) // 25, 1)):
        decisions = fitted.use(point).decide(X[200:300])
        given = decisions.conclusive
        assert given.mean() == pytest.approx(front.coverage[point])
        assert decisions.cost.mean() == pytest.approx(front.mean_cost[point])
        if given.any():
            assert (decisions.label.data == y[200:300])[given].mean() == pytest.approx(front.accuracy[point])


def test_sessions_evaluations_files_and_pickles_have_the_thresholds_of_the_point(fitted, data, tmp_path):
    X, y = data
    front = fitted.front_
    point = int(np.argmax((front.n_stages > 1) & (front.thresholds[:, 0] != front.thresholds[:, 1])))
    fitted.use(point)
    evaluation = fitted.evaluate(X[300:], y[300:])
    fitted.save(tmp_path / "m.emsco")
    loaded = emsco.load(tmp_path / "m.emsco")
    assert_array_equal(loaded.front_.thresholds, front.thresholds)
    for clf in (fitted, loaded):
        decisions = clf.decide(X[300:])
        assert decisions.conclusive.mean() == evaluation.points[point].coverage
        for i in range(40):
            assert_is_row(answers(clf, {f"x{j}": v for j, v in enumerate(X[300 + i])})[-1], decisions, i)
    assert evaluation.everything == evaluation.always  # no point's thresholds are those of buying everything


def test_a_file_without_its_thresholds_or_with_impossible_ones_is_refused(fitted, tmp_path):
    from emsco.storage import container
    from emsco.storage.codec import from_members, to_members

    members = to_members(fitted.deployed_)
    without = {name: part for name, part in members.items() if name != "arrays/thresholds.npy"}
    with pytest.raises(ModelFileError, match="thresholds of the front are missing"):
        from_members(without)
    wild = container.array_to_bytes(fitted.front_.thresholds + 1)
    with pytest.raises(ModelFileError, match="thresholds of the front are no probabilities"):
        from_members({**members, "arrays/thresholds.npy": wild})


def test_tables_show_the_thresholds(fitted):
    frame = fitted.front_.to_frame()
    assert_array_equal(frame[["early_threshold", "last_threshold"]], fitted.front_.thresholds)
    for point in range(len(fitted.front_)):
        rule = fitted.deployed_.rules[point]
        words = rule_words(rule, int(fitted.front_.n_stages[point]), fitted.classes_)
        assert fitted.front_.when_labelled(point) == words
        assert words in fitted.front_.to_text(most=len(fitted.front_), width=400)
    text = fitted.front_.shortlist().to_text(400)
    assert all(fitted.front_.when_labelled(pick.point)[1:] in text for pick in fitted.front_.shortlist())
    part = fitted.front_[5:8]
    assert_array_equal(part.thresholds, fitted.front_.thresholds[5:8])


def test_a_budget_and_a_coverage_are_all_one_needs_to_know(data):
    X, y = data
    limits = {"max_cost": 3, "min_coverage": 0.8, "best": "accuracy"}
    clf = make(choose=limits).fit(X, y)
    point = clf.front_[clf.point_]
    assert point.mean_cost <= 3
    assert point.coverage >= 0.8
    with pytest.raises(NoSuchPointError, match="min_coverage"):  # at a threshold that was guessed
        make(choose=limits).set_params(threshold=0.85).fit(X, y)


@pytest.mark.parametrize("more", [
    {"final_estimator": RandomForestClassifier(10, max_depth=3)},
    {"objectives": ["fpr", "fnr", "cost"]},
    {"objectives": ["cost", Loss([[0, 1], [5, 0]], reject=0.5)], "final_estimator": RandomForestClassifier(5)},
    {"removal": False},
    {"estimator": RandomForestClassifier(3, max_depth=2), "search": BestFirst(max_designs=60)},
])  # fmt: skip
def test_it_goes_with_everything_else_and_any_number_of_workers(data, more):
    X, y = data
    one, two = (make(n_jobs=n, **more).fit(X, y) for n in (1, 2))
    assert_array_equal(one.front_.designs, two.front_.designs)
    assert_array_equal(one.front_.thresholds, two.front_.thresholds)
    losses = np.nan_to_num(np.where(one.front_.maximise, -one.front_.values, one.front_.values))
    for loss in losses:
        assert not ((losses <= loss).all(axis=1) & (losses < loss).any(axis=1)).any()
    if more.get("removal") is False:
        assert (one.front_.designs >= 0).all()
    assert set(one.decide(X[:9]).stage) <= set(range(6))


def test_what_cannot_be_is_told(data, fitted):
    X, y = data
    with pytest.raises(InvalidParameterError, match="threshold cannot be 'auto' for a given design"):
        MultiStageClassifier(threshold="auto").fit(X, y)
    with pytest.raises(InvalidParameterError, match=r"threshold must be a probability.*got 'automatic'"):
        fixed(threshold="automatic").fit(X, y)
    clf = fixed(threshold=0.8, encoding="linear", C=1.0, search=BestFirst(max_designs=50)).fit(X, y)
    clf.threshold = "auto"
    with pytest.raises(InvalidParameterError, match="set to 'auto' after fit"):
        clf.decide(X)
    fitted.use(0)
    fitted.threshold = 0.9
    try:
        assert fitted.deployed_.rule == resolve_rule(0.9, fitted.classes_)  # a number given later counts
    finally:
        fitted.threshold = "auto"


def test_the_command_line_takes_it(tmp_path, data):
    X, y = data
    path = tmp_path / "t.csv"
    lines = [",".join([*(f"{v:.4f}" for v in row), label]) for row, label in zip(X[:200], y[:200], strict=True)]
    path.write_text("\n".join(["a,b,c,d,e,f,what", *lines]) + "\n")
    run = CliRunner().invoke
    fit = ["fit", str(path), "--target", "what", "--threshold", "auto", "-o", str(tmp_path / "m.emsco")]
    done = run(command, [*fit, "--min-coverage", "0.8", "--max-cost", "4", "--best", "accuracy"])
    assert done.exit_code == 0, done.output
    assert "Labels: " in done.output
    front = run(command, ["front", str(tmp_path / "m.emsco")])
    assert "% confidence; all others get a label" in " ".join(front.output.split())
    report = run(command, ["report", str(tmp_path / "m.emsco"), "-o", str(tmp_path / "r.html")])
    assert report.exit_code == 0
    assert "early exit at" in (tmp_path / "r.html").read_text(encoding="utf-8")
    refused = run(command, [*fit, "--guarantee", "0.9"])
    assert refused.exit_code == 2
    assert "goes with no other threshold" in refused.output


class _Interrupted(GaussianNB):
    """Somebody presses Ctrl-C while it is trained for the 40th time."""

    n_fits = 0

    def fit(self, X, y):
        type(self).n_fits += 1
        if self.n_fits == 40:
            raise KeyboardInterrupt
        return super().fit(X, y)


@pytest.mark.parametrize("threshold", ["auto", 0.8])
def test_an_interrupted_final_training_leaves_the_stages_of_the_search(data, threshold, tmp_path, monkeypatch):
    X, y = data
    monkeypatch.setattr(_Interrupted, "n_fits", 0)
    with pytest.warns(SearchInterruptedWarning, match="those in use are of the search"):
        clf = make(final_estimator=_Interrupted()).set_params(threshold=threshold).fit(X, y)
    plain = make().set_params(threshold=threshold).fit(X, y)
    assert_array_equal(clf.front_.designs, plain.front_.designs)
    assert_array_equal(clf.decide(X).confidence, plain.decide(X).confidence)
    assert clf.encoding_ == "linear"
    clf.set_params(final_estimator=GaussianNB()).save(tmp_path / "m.emsco")  # whose class a file knows
    plain.set_params(final_estimator=GaussianNB()).save(tmp_path / "plain.emsco")
    for name, finished in (("m.emsco", False), ("plain.emsco", True)):
        loaded = emsco.load(tmp_path / name)
        assert loaded.finished_ == finished
        assert (learning_record(loaded.deployed_)["final_estimator"] is not None) == finished


def test_ctrl_c_while_thresholds_are_chosen_leaves_those_of_the_search(data, monkeypatch):
    X, y = data

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(thresholds, "_counted", interrupted)
    with pytest.warns(SearchInterruptedWarning, match="all are 0.85, as in the search"):
        clf = make().fit(X, y)
    plain = make().set_params(threshold=0.85).fit(X, y)
    assert_array_equal(clf.front_.designs, plain.front_.designs)
    assert set(clf.front_.thresholds.ravel()) == {0.85}
    assert_array_equal(clf.decide(X).label, plain.use(clf.point_).decide(X).label)


@pytest.mark.parametrize("threshold", ["auto", 0.8, Guarantee(0.7, confidence=0.8)])
def test_ctrl_c_while_the_front_is_trained_leaves_the_points_that_are_ready(data, threshold, monkeypatch):
    X, y = data
    whole = make().set_params(threshold=threshold).fit(X, y)
    train, n_batches = StageCache.models, 0

    def interrupted(self, sets):
        nonlocal n_batches
        n_batches += 1
        if n_batches == 3:
            raise KeyboardInterrupt
        return train(self, sets)

    monkeypatch.setattr(training, "SETS_AT_ONCE", 4)
    monkeypatch.setattr(StageCache, "models", interrupted)
    with pytest.warns(SearchInterruptedWarning, match=f"of its {len(whole.front_)} points are there"):
        clf = make().set_params(threshold=threshold).fit(X, y)
    kept = [whole.front_.values.tolist().index(values) for values in clf.front_.values.tolist()]
    assert 0 < len(kept) < len(whole.front_)
    assert kept == sorted(kept)
    for i in range(len(kept)):
        assert_array_equal(clf.use(i).decide(X).confidence, whole.use(kept[i]).decide(X).confidence)
    n_batches = 2  # nothing is ready yet, so the point that will be in use is made ready
    with pytest.warns(SearchInterruptedWarning, match=f"interrupted; 1 of the {len(whole.front_)} points of the front"):
        clf = make().set_params(threshold=threshold).fit(X, y)
    assert len(clf.decide(X)) == len(X)


@pytest.mark.parametrize("n_objectives", [6, 12])
def test_a_large_front_of_many_objectives_keeps_many_points(n_objectives, monkeypatch):
    p = problem(3, n_features=6, n_validation=200)
    rng = np.random.default_rng(0)

    def weighed(counts, weights):
        return (counts.confusion * weights).sum(axis=(1, 2))

    own = [Objective(f"o{i}", partial(weighed, weights=rng.normal(size=(2, 2)))) for i in range(n_objectives - 1)]
    judge = make_judge(p, aims=check_objectives(["cost", *own], np.bincount(p.y_validation)))
    designs = np.unique(draw_population(3, n_rows=40, n_features=6), axis=0)
    assert len(tune(designs, judge)) > 100
    monkeypatch.setattr(thresholds, "_MOST", 100)
    assert 25 <= len(tune(designs, judge)) <= 150


def test_a_small_memory_is_enough_for_final_stages(data):
    X, y = data
    roomy, narrow = (make(final_estimator=GaussianNB(), cache_bytes=size) for size in (2**28, 30_000))
    fronts = [clf.set_params(threshold=0.8).fit(X, y).front_ for clf in (roomy, narrow)]
    assert_array_equal(fronts[0].designs, fronts[1].designs)
