"""Everything at once: features left out, price models, thresholds by class and stage, objectives, folds, promises.

What the front says of a design is counted again in plain Python, row by row, on the rows that judged it.
"""

from dataclasses import replace
import warnings

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

from emsco import (
    Accept,
    Acquire,
    BestFirst,
    Evolution,
    Exact,
    Guarantee,
    Loss,
    MultiStageClassifier,
    Prices,
    load,
    reference,
)
from emsco.checks import check_seed
from emsco.data.splits import make_folds
from emsco.data.table import Table
from emsco.designs.partition import compress
from emsco.exceptions import GuaranteeWarning
from emsco.promises.guarantee import check, plan
from emsco.scoring.answers import Answers
from emsco.scoring.cache import StageCache
from emsco.scoring.cascade import Cascade
from emsco.scoring.rejection import RejectRule
from emsco.stages.logistic import LogisticTrainer
from tests.classifiers import fixed
from tests.strategies import bill, price_models, problem, seeds

pytestmark = pytest.mark.filterwarnings("ignore::emsco.exceptions.BaseRateWarning")  # classes are drawn of any size

COLUMNS = ["age", "ward", "salt", "sugar"]
LABELS = ["a", "b", "c"]
LINES = {"encoding": "linear", "C": 1.0}  # as a MultiStageClassifier learns
SEARCHES = [BestFirst(max_designs=60), Evolution(population_size=12, max_generations=3), "auto"]
THRESHOLDS = {
    "one": lambda n: 0.7,
    "by class": lambda n: dict(zip(LABELS[:n], [0.6, 0.85, 0.7], strict=False)),
    "by stage": lambda n: [0.9, 0.7, 0.6],
}
MATRIX, REJECT = [[0, 1, 4], [5, 0, 2], [1, 1, 0]], [1, 2, 3]


def rows(seed, n, n_classes, shift=0.8):
    """Numbers, with gaps in one column, and text; labels are text."""
    rng = np.random.default_rng(seed)
    code = rng.integers(n_classes, size=n)
    code[: 4 * n_classes] = np.arange(n_classes).repeat(4)  # some of each wherever rows are split
    X = pd.DataFrame(rng.normal(size=(n, 4)) + shift * code[:, None], columns=COLUMNS)
    X["ward"] = np.where(X["ward"] > 0.5, "east", "west")
    X.loc[rng.random(n) < 0.3, "salt"] = np.nan
    order = rng.permutation(n)
    return X.iloc[order].reset_index(drop=True), np.array(LABELS)[code[order]]


def chosen_objectives(name, n_classes):
    return {
        "paper": None,
        "two": ["accuracy", "cost"],
        "classes": ["fpr", "fnr", "cost"] if n_classes == 2 else ["worst_class_accuracy", "cost", "stages"],
        "loss": [Loss([row[:n_classes] for row in MATRIX[:n_classes]], REJECT[:n_classes]), "stages", "coverage"],
    }[name]


def bar(threshold, stage, label):
    """What a user's threshold asks of a label at a stage."""
    if isinstance(threshold, dict):
        return threshold[label]
    return threshold[min(stage, len(threshold) - 1)] if isinstance(threshold, list) else threshold


def answers_of(clf, X):
    """What every stage in use says of every row: confidences and labels, (n_stages, n_rows)."""
    Z = clf.deployed_.encoder.encode(Table(X), slice(None))
    said = [np.asarray(stage.model.predict_proba(Z[stage.encoded_columns].T)) for stage in clf.stages_]
    return np.array([p.max(axis=1) for p in said]), np.array([p.argmax(axis=1) for p in said])


def walk(clf, X, threshold):
    """Send rows through the stages in use: whether each is conclusive, its label or best guess, stage and cost."""
    own, _, shared, overhead, parallel = bill(clf.deployed_.prices, None)
    design = clf.design_.tolist()
    price = [reference.stage_price(design, j, own, shared, overhead, parallel) for j in range(len(clf.stages_))]
    confidence, label = answers_of(clf, X)
    fates = []
    for i in range(len(X)):
        paid = 0
        for stage in range(len(clf.stages_)):
            paid += price[stage]
            guess = clf.classes_[label[stage, i]]
            conclusive = bool(confidence[stage, i] >= bar(threshold, stage, guess))
            if conclusive:
                break
        fates.append((conclusive, guess, stage, paid / clf.deployed_.prices.scale))
    return fates


def expect(front, i, fates, truth):
    """Compare the figures of a point with what happened to the rows that judged it."""
    n = len(truth)
    told = [guess if conclusive else None for conclusive, guess, _, _ in fates]
    conclusive = sum(label is not None for label in told)
    correct = sum(label == true for label, true in zip(told, truth, strict=True))
    assert front.coverage[i] == conclusive / n
    assert_array_equal(front.accuracy[i], correct / conclusive if conclusive else np.nan)
    assert front.mean_cost[i] == pytest.approx(sum(cost for *_, cost in fates) / n)
    n_stages = max(front.designs[i]) + 1
    reached = [sum(stage >= j for _, _, stage, _ in fates) for j in range(n_stages)]
    assert front.reached[i, :n_stages].tolist() == reached
    classes = sorted(set(truth))
    codes = [None if label is None else classes.index(label) for label in told]
    true = [classes.index(label) for label in truth]
    values = {
        "coverage": front.coverage[i],
        "accuracy": front.accuracy[i],
        "cost": front.mean_cost[i],
        "stages": n_stages,
        "fpr": reference.error_rate(codes, true, 0),
        "fnr": reference.error_rate(codes, true, 1),
        "worst_class_accuracy": reference.worst_class_accuracy(codes, true),
        "loss": reference.loss(codes, true, MATRIX, REJECT),
    }
    for name, value in zip(front.objectives, front.values[i], strict=True):
        assert_array_equal(value, float(values[name]), err_msg=name)


def expect_undominated(front):
    vectors = [tuple(np.nan_to_num(row)) for row in front.values]
    assert len(set(vectors)) == len(vectors)
    assert not any(reference.dominates(a, b, front.maximise) for a in vectors for b in vectors)


def session(clf, row):
    one = clf.session()
    while isinstance(step := one.step(), Acquire):
        one.give({name: row[name] for name in step.columns})
    accepted = isinstance(step, Accept)
    return accepted, step.label if accepted else step.best_guess, step.stage, step.cost


def some(front):
    """Points that differ: the fittest, the most stages, the most and the fewest features, the most coverage."""
    n_bought = (front.designs >= 0).sum(axis=1)
    ends = (front.n_stages.argmax(), n_bought.argmax(), n_bought.argmin(), front.coverage.argmax())
    return sorted({0, *map(int, ends)})


SETUPS = {
    "seed": seeds(),
    "n_classes": st.sampled_from([2, 3]),
    "prices": price_models(4, COLUMNS),
    "kind": st.sampled_from(list(THRESHOLDS)),
    "objectives": st.sampled_from(["paper", "two", "classes", "loss"]),
    "search": st.sampled_from(SEARCHES),
}


@settings(max_examples=25)
@given(**SETUPS)
def test_front_decide_and_sessions_are_one_walk(seed, n_classes, prices, kind, objectives, search):
    X, y = rows(seed, 100, n_classes)
    threshold = THRESHOLDS[kind](n_classes)
    aims = chosen_objectives(objectives, n_classes)
    clf = fixed(prices, threshold=threshold, search=search, objectives=aims, random_state=0, **LINES)
    clf.fit(X[:60], y[:60], X[60:], y[60:])
    expect_undominated(clf.front_)
    for point in some(clf.front_):
        fates = walk(clf.use(point), X[60:], threshold)
        expect(clf.front_, point, fates, y[60:].tolist())
        d = clf.decide(X[60:])
        columns = (d.conclusive.tolist(), d.label.data.tolist(), d.stage.tolist(), d.cost.tolist())
        assert list(zip(*columns, strict=True)) == fates
        assert [session(clf, row) for row in X[60:70].to_dict("records")] == fates[:10]


@settings(max_examples=15)
@given(**SETUPS)
def test_with_folds_each_row_is_walked_by_stages_trained_without_it(seed, n_classes, prices, kind, objectives, search):
    X, y = rows(seed, 90, n_classes)
    threshold = THRESHOLDS[kind](n_classes)
    aims = chosen_objectives(objectives, n_classes)
    clf = fixed(prices, threshold=threshold, search=search, objectives=aims, validation=3, random_state=0, **LINES)
    clf.fit(X, y)
    expect_undominated(clf.front_)
    for point in some(clf.front_):
        design = clf.front_.designs[point]
        fates, truth = [], []
        for train, judges in folds_of(y, np.arange(len(y))):
            part = MultiStageClassifier(design, prices, threshold=threshold).fit(X.iloc[train], y[train])
            fates += walk(part, X.iloc[judges], threshold)
            truth += y[judges].tolist()
        expect(clf.front_, point, fates, truth)


# ---------------------------------------------------------------- promises


def streams():
    """The generators of a classifier with random_state=0: of the split, the search, the calibration rows."""
    return [np.random.default_rng(s) for s in np.random.SeedSequence(check_seed(0)).spawn(4)]


def folds_of(y, learn, n_folds=3):
    classes, codes = np.unique(y, return_inverse=True)
    return [(learn[a], learn[b]) for a, b in make_folds(n_folds, codes[learn], classes, streams()[0])]


@pytest.mark.parametrize("estimator", [None, GaussianNB()], ids=["logistic", "final estimator"])
@pytest.mark.parametrize("per_class", [False, True], ids=["all", "each class"])
@pytest.mark.parametrize("given_rows", [False, True], ids=["drawn", "given"])
def test_promises_are_planned_on_the_folds_and_checked_on_rows_that_nothing_saw(estimator, per_class, given_rows):
    X, y = rows(1, 480, 2, shift=1.3)
    guarantee = Guarantee(0.75, per_class=per_class, threshold=0.8)
    prices = Prices(price=dict.fromkeys(COLUMNS, 2), groups={"blood": ["salt", "sugar"]}, discount={"salt": 1,
                    "sugar": 1}, overhead=0.5)  # fmt: skip
    clf = fixed(prices, threshold=guarantee, search=BestFirst(max_designs=100), validation=3, random_state=0,
                          final_estimator=estimator, objectives=["worst_class_accuracy", "coverage", "cost"],
                          **LINES)  # fmt: skip
    shuffled = streams()[2].permutation(480)
    unseen, learn = np.sort(shuffled[:120]), np.sort(shuffled[120:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)  # of cheap designs
        if given_rows:
            clf.fit(X.iloc[learn], y[learn], X_cal=X.iloc[unseen], y_cal=y[unseen])
        else:
            clf.fit(X, y)
    assert any(promise.passed for promise in clf.deployed_.promises)
    assert (clf.front_.designs == -1).any()
    codes = np.searchsorted(LABELS[:2], y)
    for i in some(clf.front_):
        design = clf.front_.designs[i]
        how = {"design": design, "costs": prices, "threshold": 0.8, "estimator": estimator}
        fates, said, judged = [], [], []
        for train, judges in folds_of(y, learn):
            part = MultiStageClassifier(**how).fit(X.iloc[train], y[train])
            fates += walk(part, X.iloc[judges], 0.8)
            said.append(answers_of(part, X.iloc[judges]))
            judged.append(judges)
        judged = np.concatenate(judged)
        expect(clf.front_, i, fates, y[judged].tolist())
        pilot = Answers(*(np.concatenate(parts, axis=1) for parts in zip(*said, strict=True)), codes[judged])
        whole = MultiStageClassifier(**how).fit(X.iloc[learn], y[learn])
        answers = Answers(*answers_of(whole, X.iloc[unseen]), codes[unseen])
        promised = check(plan(guarantee, pilot, n_classes=2, n_rows=120), answers, LABELS[:2])
        assert replace(clf.deployed_.promises[i], given=False) == promised
        rule = {label: promised.rule.bar(0, code) for code, label in enumerate(LABELS[:2])}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GuaranteeWarning)
            d = clf.use(i).decide(X.iloc[unseen])
        fates = walk(clf, X.iloc[unseen], rule)
        assert d.conclusive.tolist() == [conclusive for conclusive, *_ in fates]
        assert d.cost.tolist() == [cost for *_, cost in fates]
        assert promised.coverage == d.conclusive.mean()


# ---------------------------------------------------------------- bits


@settings(max_examples=40)
@given(st.data(), seeds(), st.sampled_from([2, 3]))
def test_bits_by_stage_and_class_are_a_walk_in_plain_python(data, seed, n_classes):
    """With room for few sets, so that they are forgotten, and with thresholds that change."""
    p = problem(seed, n_classes=n_classes)
    trainer = LogisticTrainer(p)
    n_stages = data.draw(st.integers(1, 3))
    n_columns = data.draw(st.sampled_from([1, n_classes]))
    bars = st.sampled_from([0.4, 0.5, 0.6, 0.75, 0.9])
    matrices = [
        np.array(data.draw(st.lists(bars, min_size=n_stages * n_columns, max_size=n_stages * n_columns)))
        .reshape(n_stages, n_columns)
        for _ in range(2)
    ]  # fmt: skip
    tables = [RejectRule(tuple(map(tuple, matrix.tolist()))) for matrix in matrices]
    room = {"n_units": 4, "max_bytes": 3_500, "n_classes": n_classes}
    cache = StageCache(trainer, p.y_validation, threshold=tables[0], **room)
    assert 4 <= cache.capacity < 15  # sets of four features
    seen = []

    def score(tally, n_stages, confusion):
        seen.extend(confusion.tolist())
        return np.zeros((len(n_stages), 2))

    population = np.random.default_rng(seed).integers(-1, 4, size=(12, 4))
    population[:, 0] = np.maximum(population[:, 0], 0)
    population = compress(population)
    for matrix, rule in zip(matrices, tables, strict=True):
        if rule is not tables[0]:
            cache.set_threshold(rule)
        seen.clear()
        tally = Cascade(cache, p.prices, score).tally(population)
        for design, reached, confusion in zip(population, tally.reached.tolist(), seen, strict=True):
            sets = np.array([(design >= 0) & (design <= j) for j in range(design.max() + 1)])
            outcomes = trainer.outcomes(sets, trainer.train(sets))
            counted = np.zeros((n_classes, n_classes + 1), dtype=int)
            waiting = [0] * len(reached)
            for i, truth in enumerate(p.y_validation.tolist()):
                given_label = n_classes
                for j in range(len(sets)):
                    waiting[j] += 1
                    label = int(outcomes.label[j, i])
                    row = matrix[min(j, n_stages - 1)]
                    if outcomes.confidence[j, i] >= row[label if n_columns > 1 else 0]:
                        given_label = label
                        break
                counted[truth, given_label] += 1
            assert confusion == counted.tolist()
            assert reached == waiting


# ---------------------------------------------------------------- files


def test_a_model_file_keeps_all_of_it(tmp_path):
    X, y = rows(2, 300, 3)
    prices = Prices(price=dict.fromkeys(COLUMNS, 3), overhead=1, parallel=True)
    guarantee = Guarantee(0.6, per_class=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        settings = {"search": BestFirst(max_designs=60), "random_state": 0, "encoding": "rank"}
        aims = ("worst_class_accuracy", "stages", "cost")
        clf = fixed(prices, threshold=guarantee, objectives=aims, **settings).fit(X, y)
        clf.save(tmp_path / "m.emsco")
        again = load(tmp_path / "m.emsco")
        assert again.deployed_.promises == clf.deployed_.promises
        for point in range(len(clf.front_)):
            expected, d = clf.use(point).decide(X), again.use(point).decide(X)
            assert_array_equal(d.confidence, expected.confidence)
            assert_array_equal(d.conclusive, expected.conclusive)
            assert_array_equal(d.cost, expected.cost)
            assert session(again, X.iloc[0].to_dict()) == session(clf, X.iloc[0].to_dict())
    assert again.get_params() == clf.get_params()
    assert_array_equal(again.front_.values, clf.front_.values)


def test_exact_and_best_first_agree_on_all_that_both_can_do():
    X, y = rows(3, 90, 3)
    prices = Prices(price=dict.fromkeys(COLUMNS, 2), groups={"blood": ["salt", "sugar"]}, discount={"salt": 1,
                    "sugar": 1}, overhead=0.5, parallel=True)  # fmt: skip
    how = {"threshold": {"a": 0.6, "b": 0.7, "c": 0.8}, "validation": 3, "random_state": 0, **LINES}
    exact, walked = (
        fixed(prices, search=search, objectives=["coverage", "cost"], **how).fit(X, y).front_
        for search in (Exact(), BestFirst())
    )
    assert exact.certificate.proven
    assert {tuple(row) for row in exact.values} == {tuple(row) for row in walked.values}
