"""Objectives chosen by the user: their values, gains and searches equal plain Python, and mistakes are explained."""

import dataclasses
from fractions import Fraction
import pickle

from hypothesis import assume, given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.base import clone

from emsco import BestFirst, EMSCOClassifier, Evolution, Exact, Loss, Objective, Recall, reference
from emsco.deployed.evaluation import by_objectives
from emsco.exceptions import InvalidParameterError
from emsco.scoring.cache import StageCache
from emsco.scoring.cascade import Cascade
from emsco.scoring.objectives import check_objectives
from emsco.scoring.ranking import log_fitness, norm, pareto_rank, selection_probabilities
from emsco.search.bestfirst import search_best_first
from emsco.search.evolution import evolve
from emsco.stages.logistic import LogisticTrainer
from tests.classifiers import fixed
from tests.scoring.test_cascade import draw_population, make_cascade
from tests.search.exact.test_proof import all_designs
from tests.strategies import bill, has_ties, problem, seeds
from tests.test_estimators import patients

MATRIX = {2: [[0, 3], [7, 0]], 3: [[0, 3, 1], [7, 0, 2], [4, 5, 0]]}
REJECT = {2: [1, 2], 3: [1, 2, 1]}
WHOLE = st.sampled_from([0.0, 0.4, 0.6, 0.75, 0.9, 1.0])


def late(counts):
    """A user's function: how much later than the first stage, and how silent of class 1; negative values, and ties."""
    return 1 - counts.n_stages - counts.rejected[:, 1]


def named(name, n_classes):
    return {
        "loss": Loss(MATRIX[n_classes], REJECT[n_classes]),
        "recall_1": Recall(1),
        "late": Objective("late", late),
        "early": Objective("early", lambda counts: -late(counts), maximise=False),
    }.get(name, name)


NAMES = {
    2: [
        "coverage",
        "accuracy",
        "cost",
        "fpr",
        "fnr",
        "stages",
        "worst_class_accuracy",
        "worst_class_recall",
        "recall_1",
        "loss",
        "late",
        "early",
    ],
    3: [
        "coverage",
        "accuracy",
        "cost",
        "stages",
        "worst_class_accuracy",
        "worst_class_recall",
        "recall_1",
        "loss",
        "late",
        "early",
    ],
}
UP = {"coverage", "accuracy", "worst_class_accuracy", "worst_class_recall", "recall_1", "late"}


def scoring(p, threshold, names):
    """The fast path: aims, and a cascade that scores by them."""
    class_counts = np.bincount(p.y_validation, minlength=p.n_classes)
    aims = check_objectives([named(name, p.n_classes) for name in names], class_counts, range(p.n_classes))
    n_classes = p.n_classes if aims.by_class else 0
    size = {"n_units": p.prices.n_units, "threshold": threshold, "max_bytes": 2**24}
    cache = StageCache(LogisticTrainer(p), p.y_validation, **size, n_classes=n_classes)
    return aims, Cascade(cache, p.prices, aims.score)


def plainly(p, threshold, names):
    """The slow path: a function of a design that returns its values as fractions."""
    outcome = reference.train_logistic(p.train.T, p.y_train, p.validation.T)
    truth, known = p.y_validation.tolist(), {}

    def values(design):
        if tuple(design) not in known:
            answers = reference.told(design, outcome, len(truth), threshold)
            vector = reference.walk(design, outcome, truth, *bill(p.prices, threshold))
            three = reference.objectives(vector, len(truth))
            silent = sum(a is None and t == 1 for a, t in zip(answers, truth, strict=True))
            every = {
                **dict(zip(("coverage", "accuracy", "cost"), three, strict=True)),
                "stages": Fraction(reference.stage_count(design)),
                "fpr": reference.error_rate(answers, truth, 0),
                "fnr": reference.error_rate(answers, truth, 1),
                "worst_class_accuracy": reference.worst_class_accuracy(answers, truth),
                "worst_class_recall": min(reference.recall(answers, truth, true) for true in set(truth)),
                "recall_1": reference.recall(answers, truth, 1),
                "loss": reference.loss(answers, truth, MATRIX[p.n_classes], REJECT[p.n_classes]),
                "late": Fraction(1 - reference.stage_count(design) - silent),
                "early": -Fraction(1 - reference.stage_count(design) - silent),
            }
            known[tuple(design)] = tuple(every[name] for name in names)
        return known[tuple(design)]

    return values


def plain_gains(p, names):
    """The slow path: values of a generation -> gains in [0, 1]."""
    fates = [[*row, r] for row, r in zip(MATRIX[p.n_classes], REJECT[p.n_classes], strict=True)]
    n = p.n_validation
    worst = float(Fraction(sum(max(fates[t]) for t in p.y_validation.tolist()), n))
    least = float(Fraction(sum(min(fates[t]) for t in p.y_validation.tolist()), n))

    def column(name, values):
        numbers = [float(v) for v in values]
        if name == "cost":
            return reference.inverse_costs(values, p.prices.least)
        if name == "stages":
            return [1 / v for v in numbers]
        if name in ("fpr", "fnr"):
            return [1 - v for v in numbers]
        if name == "loss":
            return [(worst - v) / (worst - least) for v in numbers]
        if name in ("late", "early"):
            low, high = min(numbers), max(numbers)
            if low == high:
                return [1.0 for _ in numbers]
            return [(v - low if name == "late" else high - v) / (high - low) for v in numbers]
        return numbers

    def gains(points):
        columns = [column(name, values) for name, values in zip(names, zip(*points, strict=True), strict=True)]
        return [list(row) for row in zip(*columns, strict=True)]

    return gains


@st.composite
def choices(draw, n_classes, least=2):
    return draw(st.lists(st.sampled_from(NAMES[n_classes]), min_size=least, max_size=4, unique=True))


@settings(max_examples=40, deadline=None)
@given(seeds(), st.sampled_from([2, 3]), WHOLE, st.data())
def test_values_ranks_and_norms_equal_plain_python_design_by_design(seed, n_classes, threshold, data):
    p = problem(seed, n_classes=n_classes)
    names = NAMES[n_classes] if seed % 3 == 0 else data.draw(choices(n_classes))
    if names == ["coverage", "accuracy", "cost"]:
        return
    assume(not has_ties(p))
    population = draw_population(seed, n_rows=15)
    aims, cascade = scoring(p, threshold, names)
    tally = cascade.tally(population)
    values = plainly(p, threshold, names)
    points = [values(design) for design in population.tolist()]
    assert_array_equal(tally.values, [[float(v) for v in point] for point in points])
    assert aims.maximise == tuple(name in UP for name in names)
    plain = make_cascade(p, threshold)[0].tally(population)
    for name in ("reached", "n_conclusive", "n_correct", "total_ticks"):
        assert_array_equal(getattr(tally, name), getattr(plain, name))
    measured = aims.measure(tally)
    assert measured.gains.min() >= 0
    assert measured.gains.max() <= 1
    assert_array_equal(pareto_rank(measured), reference.ranks(points, aims.maximise))
    gains = plain_gains(p, names)(points)
    assert_allclose(norm(measured), [np.sqrt(sum(g * g for g in row)) for row in gains], rtol=1e-14)
    for a, one in zip(points, tally.vectors.tolist(), strict=True):
        assert [a == b for b in points] == [one == other for other in tally.vectors.tolist()]


@settings(max_examples=20, deadline=None)
@given(seeds(), st.sampled_from([2, 3]), WHOLE, st.sampled_from([4, 12, 30]), st.data())
def test_every_generation_equals_plain_python(seed, n_classes, threshold, population_size, data):
    p = problem(seed, n_features=5, n_classes=n_classes)
    names = data.draw(choices(n_classes))
    if names == ["coverage", "accuracy", "cost"]:
        return
    chosen = Evolution(population_size=population_size, max_generations=10, patience=5)
    aims, cascade = scoring(p, threshold, names)
    generations = []
    size = {"n_features": 5, "max_stages": 4, "rng": default_rng(seed)}
    found = evolve(cascade.tally, chosen, **size, on_generation=generations.append, measure=aims.measure)
    history = reference.evolve(
        plainly(p, threshold, names), reference.Settings(**dataclasses.asdict(chosen)), 5, 4, p.n_validation,
        p.prices.least, default_rng(seed), gains=plain_gains(p, names), maximise=aims.maximise,
    )  # fmt: skip
    assert len(generations) == len(history) == found.n_generations + 1
    for state, expected in zip(generations, history, strict=True):
        assert state.population.tolist() == expected.population
        assert_array_equal(state.tally.values, [[float(v) for v in point] for point in expected.vectors])
        assert state.unique.tolist() == expected.unique
        assert state.n_nondominated == expected.n_nondominated
    last = history[-1]
    assert found.designs.tolist() == [last.population[i] for i in last.unique[: last.n_nondominated]]


def true_front(p, threshold, names, max_stages):
    """Every non-dominated vector and its designs, the simplest first, by plain Python."""
    values, by_vector = plainly(p, threshold, names), {}
    for design in all_designs(p.prices.n_units, max_stages):
        by_vector.setdefault(values(design), []).append(design)
    up = [name in UP for name in names]
    front = [v for v in by_vector if not any(reference.dominates(other, v, up) for other in by_vector)]
    return {v: sorted(by_vector[v], key=lambda d: (reference.stage_count(d), d)) for v in front}


@settings(max_examples=15, deadline=None)
@given(seeds(), st.sampled_from([2, 3]), st.sampled_from([0.5, 0.7, 0.9]), st.data())
def test_best_first_finds_the_whole_frontier_of_a_small_space(seed, n_classes, threshold, data):
    p = problem(seed, n_classes=n_classes)
    names = data.draw(choices(n_classes))
    if names == ["coverage", "accuracy", "cost"]:
        return
    aims, cascade = scoring(p, threshold, names)
    size = {"n_features": 4, "max_stages": 3, "rng": default_rng(seed)}
    found = search_best_first(cascade.tally, BestFirst(), **size, measure=aims.measure)
    truth = true_front(p, threshold, names, 3)
    expected = {tuple(map(float, vector)): designs for vector, designs in truth.items()}
    got = dict(zip(map(tuple, found.tally.values.tolist()), found.ties, strict=True))
    assert got.keys() == expected.keys()
    for vector, designs in expected.items():
        assert got[vector].tolist() == designs
    assert found.designs.tolist() == [ties[0].tolist() for ties in found.ties]


@pytest.mark.filterwarnings("ignore::emsco.exceptions.BaseRateWarning")
@settings(max_examples=25, deadline=None)
@given(seeds(), st.sampled_from([2, 3]), st.sampled_from([["coverage", "accuracy"], ["coverage", "cost"],
       ["cost", "accuracy"], ["cost", "coverage", "accuracy"]]), st.sampled_from([0.5, 0.75, 0.95]))  # fmt: skip
def test_an_exact_search_by_some_of_the_three_is_the_true_frontier(seed, n_classes, names, threshold):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 4)).round(1)
    y = (X @ rng.normal(size=(4, n_classes)) + rng.normal(size=(60, n_classes))).argmax(axis=1)
    y[:n_classes] = y[30 : 30 + n_classes] = range(n_classes)
    kwargs = {"costs": rng.integers(0, 4, 4), "threshold": threshold, "max_stages": 3, "random_state": 0}
    fitted = {}
    for search in (Exact(), BestFirst()):  # which enumerates so small a space
        clf = fixed(**kwargs, search=search, objectives=names).fit(X[:30], y[:30], X[30:], y[30:])
        fitted[type(search)] = clf.front_
        assert clf.front_.objectives == tuple(names)
        assert len(np.unique(clf.front_.values, axis=0)) == len(clf.front_)
    exact, walked = fitted[Exact], fitted[BestFirst]
    assert exact.certificate.proven
    assert sorted(map(tuple, np.nan_to_num(exact.values))) == sorted(map(tuple, np.nan_to_num(walked.values)))
    every = fixed(**kwargs, search=Exact()).fit(X[:30], y[:30], X[30:], y[30:]).front_
    rows = {tuple(design): i for i, design in enumerate(every.designs.tolist())}
    for i, design in enumerate(exact.designs.tolist()):  # of equal designs it lists those best in all three
        assert exact.n_ties[i] == every.n_ties[rows[tuple(design)]]


def test_auto_proves_what_it_can():
    X, y = patients()
    kwargs = {"max_stages": 2, "random_state": 0}
    for names, kind in (
        (["accuracy", "cost"], Exact),
        (["accuracy", "stages"], BestFirst),
        (["fpr", "fnr"], BestFirst),
    ):
        clf = fixed(objectives=names, **kwargs).fit(X, y)
        assert isinstance(clf.search_, kind)
    with pytest.raises(InvalidParameterError, match="search cannot be exact with the objectives fpr, stages"):
        fixed(objectives=["fpr", "cost", "stages"], search=Exact()).fit(X, y)


def test_the_papers_objectives_by_name_are_the_default():
    X, y = patients()
    search = Evolution(population_size=20, max_generations=4)
    default = fixed(search=search, random_state=0).fit(X, y).front_
    by_name = fixed(search=search, random_state=0, objectives=["coverage", "accuracy", "cost"]).fit(X, y)
    assert_array_equal(by_name.front_.designs, default.designs)
    assert_array_equal(by_name.front_.values, default.values)
    assert default.objectives == ("coverage", "accuracy", "cost")
    assert_array_equal(default.values, np.column_stack([default.coverage, default.accuracy, default.mean_cost]))


def test_rates_are_what_decide_does():
    X, y = patients(seed=4)
    names = ["fpr", "fnr", "coverage", Loss([[0, 1], [5, 0]], 0.5)]
    clf = fixed(objectives=names, search=Evolution(population_size=30, max_generations=5), random_state=0)
    clf.fit(X[:200], y[:200], X[200:], y[200:])
    truth = np.asarray(y[200:]) == clf.classes_[1]
    for i, values in enumerate(clf.front_.values):
        decisions = clf.use(i).decide(X[200:])
        said = decisions.label.data == clf.classes_[1]
        false = decisions.conclusive & said & ~truth
        missed = decisions.conclusive & ~said & truth
        silent = ~decisions.conclusive
        assert values[0] == false.sum() / (~truth).sum()
        assert values[1] == missed.sum() / truth.sum()
        assert values[2] == decisions.conclusive.mean()
        assert values[3] == pytest.approx((false.sum() + 5 * missed.sum() + 0.5 * silent.sum()) / truth.size)


def test_a_design_that_gains_nothing_is_never_selected_unless_all_are_so():
    fitness = log_fitness(np.array([1, 0, 0]), np.array([0.5, 0.1, 0.0]), epsilon=0.01)
    shares = selection_probabilities(fitness)
    assert shares[2] == 0
    assert shares[0] > shares[1] > 0
    assert_array_equal(selection_probabilities(log_fitness(np.zeros(4, int), np.zeros(4), epsilon=0.01)), 0.25)


def test_nothing_conclusive_at_all_is_searched_too():
    X, y = patients()
    search = Evolution(population_size=10, max_generations=3)
    clf = fixed(threshold=1.0, objectives=["coverage", "accuracy"], search=search, random_state=0).fit(X, y)
    assert_array_equal(clf.front_.values, [[0, np.nan]])
    assert clf.front_.fitness.tolist() == [0]


def test_many_classes_are_counted_in_parts(monkeypatch):
    p = problem(3, n_classes=3)
    population = draw_population(3, n_rows=40)
    whole = scoring(p, 0.6, ["worst_class_accuracy", "loss"])[1].tally(population)
    monkeypatch.setattr("emsco.scoring.cascade._CELLS_AT_ONCE", 70)
    assert_array_equal(scoring(p, 0.6, ["worst_class_accuracy", "loss"])[1].tally(population).values, whole.values)


def test_objectives_survive_clone_and_pickle():
    objectives = ("coverage", Loss([[0, 1], [2, 0]], reject=[0.1, 0.2]), Objective("late", late))
    clf = clone(fixed(objectives=objectives))
    assert clf.objectives == objectives
    assert pickle.loads(pickle.dumps(clf)).objectives == objectives
    assert repr(objectives[2]) == "Objective('late', tests.scoring.test_objectives.late, maximise=True)"


@pytest.mark.parametrize(
    ("objectives", "says"),
    [
        ("coverage", "must list at least two of 'coverage'"),
        (["coverage"], "must list at least two"),
        (["coverage", "speed"], "got 'speed' among them"),
        (["coverage", 3], "got 3 among them"),
        (["coverage", "loss"], r"give emsco.Loss\(matrix, reject\) in its place"),
        (["coverage", "coverage"], "has coverage twice"),
        (["coverage", Loss(np.zeros((3, 3)), 0)], "for 3 classes, y has 2"),
        (["coverage", Objective("fpr", late)], "has an Objective named 'fpr'"),
        (["coverage", Objective("combined", late)], "has an Objective named 'combined'"),
        (["coverage", Objective("early_threshold", late)], "named 'early_threshold'"),
        (["coverage", Objective("accuracy_low", late)], "has an Objective named 'accuracy_low'"),
        (["coverage", Objective("odd", lambda counts: [1.0])], r"'odd' must return a finite number for each of \d+"),
        (["coverage", Objective("odd", lambda counts: counts.n_stages / 0.0)], "'odd' must return a finite number"),
        (["coverage", Objective("odd", lambda counts: "much")], "'odd' must return a finite number"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_objectives_that_make_no_sense_are_explained(objectives, says):
    X, y = patients()
    with pytest.raises(InvalidParameterError, match=says):
        fixed(objectives=objectives, search=Evolution(population_size=10, max_generations=1)).fit(X, y)


def test_error_rates_are_for_two_classes():
    p = problem(0, n_classes=3)
    with pytest.raises(InvalidParameterError, match="fnr, which is for two classes; there are 3"):
        fixed(objectives=["fnr", "cost"]).fit(p.train.T, p.y_train)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Recall(["sick"]), "give its label instead of"),
        (lambda: Recall(""), "give its label instead of"),
        (
            lambda: check_objectives(["cost", Recall("ill")], np.array([1, 2]), ["sick", "well"]),
            r"objectives has Recall\('ill'\), but the classes are \['sick', 'well'\]",
        ),
        (lambda: check_objectives(["cost", Recall("1"), Recall(1)], np.array([1, 2]), [0, 1]), "has recall_1 twice"),
        (lambda: check_objectives(["cost", Objective("recall_x", late)], np.array([1, 2])), "rename it"),
        (lambda: Loss([[0, 1]], 0), r"a row and a column per class; got one of shape \(1, 2\)"),
        (lambda: Loss([0, 1], 0), "a row and a column per class"),
        (lambda: Loss([[0, -1], [1, 0]], 0), "numbers of at least 0"),
        (lambda: Loss([[0, np.nan], [1, 0]], 0), "numbers of at least 0"),
        (lambda: Loss([[0, 1], [1, 0]], [1, 2, 3]), "one price of rejection or one per class"),
        (lambda: Loss("cheap", 0), "a square matrix of prices"),
        (lambda: Objective("", late), "the name of an objective"),
        (lambda: Objective("x", 3), "'x' needs a function; got 3"),
        (lambda: Objective("x", late, maximise="yes"), "maximise must be True or False"),
    ],
)
def test_losses_and_functions_are_checked_when_they_are_made(make, says):
    with pytest.raises(InvalidParameterError, match=says):
        make()


def test_held_out_rows_are_worth_what_the_same_rows_are_when_they_judge():
    X, y = patients()
    objectives = ["fnr", "fpr", "cost", Loss([[0, 1], [5, 0]], reject=0.5), Objective("late", late)]
    clf = fixed(
        threshold=0.7, objectives=objectives, search=Evolution(population_size=20, max_generations=3), random_state=0
    )
    others = X[100:], y[100:]
    clf.fit(X[:100], y[:100], *others)
    worth = by_objectives(clf.objectives, clf.evaluate(*others).points, [0, 1])
    assert list(worth) == ["fnr", "fpr", "loss", "late"]
    for name, values in worth.items():
        assert_allclose(values, clf.front_.values[:, clf.front_.objectives.index(name)], rtol=1e-12)
    assert by_objectives(None, clf.evaluate(*others).points, [0, 1]) == {}


def test_a_search_by_recall_has_the_recall_of_its_front():
    X, y = patients()
    objectives = ["cost", Recall(y[0]), "worst_class_recall", "coverage"]
    search = Evolution(population_size=20, max_generations=3)
    front = EMSCOClassifier(threshold=0.7, objectives=objectives, search=search, random_state=0).fit(X, y).front_
    assert_allclose(front.values[:, 1], front.recall[:, front.classes.index(y[0])])
    assert_allclose(front.values[:, 2], front.worst_recall)
