"""The clock of a fit: its phases, what is shown of them, and that it ends in time; the time is mostly made up."""

import io
import sys
import threading
import warnings

import numpy as np
from numpy.testing import assert_array_equal
import pytest
from sklearn.naive_bayes import GaussianNB

from emsco import BestFirst, EMSCOClassifier, Evolution, Exact, Guarantee, load
from emsco.exceptions import InvalidParameterError, SearchInterruptedWarning, TimeLimitWarning
from emsco.fitting import clock as clocks
from emsco.fitting import pipeline, progress, training
from emsco.fitting.clock import PHASES, Clock, Speed
from emsco.search.auto import Auto
from emsco.search.base import TimeUpError
from emsco.stages.estimator import EstimatorTrainer
from emsco.stages.logistic import LogisticTrainer

FEW = {"search": BestFirst(max_designs=400), "validation": 3, "max_stages": 4, "random_state": 0}


@pytest.fixture
def time(monkeypatch):
    """A clock that stands still unless it is moved: ``time[0] += 1``."""
    now = [100.0]
    monkeypatch.setattr(clocks, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def slow(time, monkeypatch):
    """Feature sets take time, and nothing else does: so many seconds per set and fold, by its number of columns."""
    pace = {"logistic": 0.02, "estimator": 0.1}
    train, run = LogisticTrainer.train, EstimatorTrainer.run

    def slow_train(self, sets):
        time[0] += pace["logistic"] * float((1 + sets.sum(axis=1)).sum())
        return train(self, sets)

    def slow_run(self, tasks):
        time[0] += pace["estimator"] * sum(1.0 + arguments[-1].sum() for _, arguments, _ in tasks)
        return run(self, tasks)

    monkeypatch.setattr(LogisticTrainer, "train", slow_train)
    monkeypatch.setattr(EstimatorTrainer, "run", slow_run)
    return pace


def table(n=150, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X @ np.linspace(2, 0, d) + rng.normal(size=n) > 0).astype(int)


def quietly(clf, *given, **named):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.fit(*given, **named)


# The clock by itself


def test_work_takes_as_long_as_work_of_its_kind_has_taken_and_else_as_other_work():
    speed = Speed()
    assert speed.of("trees") == 1.0
    speed.learn("logistic", 9.0, 0.001)  # kernels are loaded before it
    assert (speed.of("logistic"), speed.knows("logistic"), speed.knows("trees")) == (1.0, True, False)
    speed.learn("logistic", 4.0, 2.0)
    assert (speed.of("logistic"), speed.of("trees")) == (2.0, 2.0)
    speed.learn("given", 1.0, 100.0)
    assert speed.of("given") == 0.01
    assert speed.of("trees") == 1 / 3  # no machine is much faster than others
    for _ in range(60):
        speed.learn("logistic", 2.0, 2.0)
    assert speed.of("logistic") == pytest.approx(1.0, abs=1e-3)


def test_a_phase_may_take_its_share_and_what_later_ones_do_not_need(time):
    clock = Clock(100.0)
    clock.expect({"searching": 500.0, "training the front": 500.0})
    clock.begin("searching")
    share = PHASES["searching"] / (PHASES["searching"] + PHASES["training the front"])
    assert clock.left() == pytest.approx(100 * share)
    clock.expect({"training the front": 2.0})
    clock.begin("searching")
    assert clock.left() == pytest.approx(100 - 1.25 * 2)
    time[0] += 20
    assert clock.left() == pytest.approx(77.5)
    clock.begin("training the front")
    assert clock.left() == pytest.approx(80)
    time[0] += 90
    assert clock.left() == pytest.approx(-10)
    clock.begin("calibrating")
    assert clock.left() == 0


def test_work_is_refused_if_it_would_end_far_beyond_the_phase_unless_it_must_be_done(time):
    clock = Clock(10.0)
    clock.begin("training the front")
    assert clock.affords(10)
    assert not clock.affords(10.1)
    clock.check(10.3)
    with pytest.raises(TimeUpError):
        clock.check(10.5)
    with clock.must():
        clock.check(1e6)
    Clock().check(1e6)
    assert Clock().affords(1e6)
    clock.hurry()
    assert not clock.affords(0.1)


def test_the_clock_stands_still_while_kernels_are_compiled(time, monkeypatch):
    monkeypatch.setattr(progress, "is_live", lambda: True)
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with Clock(10.0, verbose=True) as clock:
        time[0] += 1
        clock.compiling(begins=True)
        time[0] += 30
        assert "compiling, once on this machine" in stream.getvalue()
        assert clock.elapsed == 1
        clock.compiling(begins=False)
        time[0] += 1
        assert clock.elapsed == 2
        clock.cut("half of it was done")
        assert "compilation, once on this machine, took another 30 s" in clock.in_words


def test_numba_tells_the_clock_when_it_compiles():
    from numba import njit

    with Clock() as clock:
        stopped = []
        clock.compiling = lambda *, begins: stopped.append(begins)
        njit(lambda x: x + 1)(1)
    njit(lambda x: x + 2)(1)
    assert stopped == [True, False]


# What is shown


def test_one_line_says_how_far_the_fit_is_how_long_it_took_and_takes_and_what_it_does(time):
    clock = Clock()
    assert clock._text() == f"{'░' * 15} 0 %, 0:00: reading"
    time[0] += 10
    clock.expect({"searching": 20.0, "training the front": 10.0})
    clock.begin("searching")
    assert clock._text() == f"{'█' * 4}{'░' * 11} 25 %, 0:10, 0:30 left: searching"
    time[0] += 5
    clock("searching", 0.25, "7 on the front")  # as expected
    assert clock._text() == f"{'█' * 6}{'░' * 9} 38 %, 0:15, 0:25 left: searching, 7 on the front"
    time[0] += 45
    clock("searching", 0.5, "9 on the front")  # slower: half of it took 50 seconds
    assert clock.rest() == pytest.approx(10 + (5 / 7) * 50 + (2 / 7) * 10)
    time[0] += 5
    assert clock.rest() == pytest.approx(10 + (10 / 11) * 45 + (1 / 11) * 0, rel=0.3)
    clock.begin("training the front")
    clock.tell(75.0, "spline")
    assert clock._text().endswith(" %, 1:05, 1:15 left: training the front, spline")
    time[0] += 75
    assert clock.rest() == 0


def test_a_bar_never_goes_back_and_a_limit_bounds_the_time_left(time):
    clock = Clock(60.0)
    clock.expect({"searching": 5.0})
    clock.begin("searching")
    time[0] += 5
    assert " 99 %, 0:05, " in clock._text() or " 80 %, 0:05, " in clock._text()
    before = clock._share
    clock.tell(1000.0)
    assert clock._share == before
    assert ", 0:55 left: " in clock._text()


def test_parts_of_a_phase_have_names_of_their_own_and_may_be_followed_by_others(time):
    clock = Clock()
    clock.expect({"searching": 100.0})
    clock.begin("searching")
    clock("training", 0.0)
    time[0] += 10
    clock("training", 1.0)
    assert clock.rest() == pytest.approx(90)
    time[0] += 200
    clock("searching with all states", 0.5)
    assert ": searching with all states" in clock._text()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "verbose", "shown"),
    [(Terminal, None, True), (Terminal, False, False), (io.StringIO, None, False), (io.StringIO, True, True)],
)
def test_progress_is_shown_on_a_terminal_and_elsewhere_only_if_asked_for(stream, verbose, shown, monkeypatch):
    X, y = table()
    monkeypatch.setattr(sys, "stderr", stream())
    quietly(EMSCOClassifier(verbose=verbose, final_estimator="search", **FEW), X, y)
    printed = sys.stderr.getvalue()
    assert bool(printed) == shown
    if shown:
        for phase in ("reading", "comparing learners", "searching", "choosing thresholds", "training the front"):
            assert phase in printed
        assert f"{'█' * 15} 100 %, 0:" in printed.splitlines()[-1]
    if stream is Terminal and shown:
        assert printed.count("\n") == 1  # one line for the whole fit
        assert max(len(text) for text in printed.strip("\n").split("\r")) < 80


def test_a_line_that_is_long_is_cut_and_one_that_was_longer_leaves_nothing_behind(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "30")
    line = progress.ProgressLine()
    line("a" * 50)
    line("b")
    line.clear()
    line.close()
    assert sys.stderr.getvalue() == f"\r{'a' * 29}\rb{' ' * 28}\r \r"


def test_the_line_shows_life_while_nothing_is_reported_and_its_thread_ends_on_any_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "_TICK", 0.01)
    before = threading.active_count()

    def fail(error):
        with Clock(verbose=None):
            n_before, pause = len(sys.stderr.getvalue()), threading.Event()
            for _ in range(500):
                pause.wait(0.01)
                if len(sys.stderr.getvalue()) > n_before:
                    raise error

    for error in (KeyboardInterrupt, ValueError):
        with pytest.raises(error):
            fail(error)
        assert threading.active_count() == before
    with progress.doing("reading t.csv"):
        assert sys.stderr.getvalue().endswith("\rreading t.csv")
    assert threading.active_count() == before
    assert sys.stderr.getvalue().endswith("\r")


def test_a_warning_stands_on_a_line_of_its_own(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Clock(verbose=True) as clock:
        with pytest.warns(UserWarning, match="careful"):
            clock.warn("careful", UserWarning)
        assert sys.stderr.getvalue().endswith(" \r")


# With a limit

WAYS = {
    "default": {},
    "logistic": {"final_estimator": "search"},
    "one threshold": {"threshold": 0.8, "final_estimator": "search"},
    "exact": {"threshold": 0.8, "final_estimator": "search", "search": Exact()},
    "evolution": {"threshold": 0.8, "search": Evolution(population_size=30, max_generations=20)},
    "guarantee": {"threshold": Guarantee(0.7, confidence=0.8), "final_estimator": "search"},
    "estimator": {"estimator": GaussianNB()},
    "final estimator": {"final_estimator": GaussianNB()},
    "refit": {"validation": 0.3, "refit": True},
}


@pytest.mark.parametrize("limit", [0.001, 5, 60, 400])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("slow")
def test_a_fit_ends_in_time_with_a_front_that_decides(way, limit, time):
    X, y = table()
    clf = EMSCOClassifier(np.arange(1, 7), **{**FEW, **WAYS[way]}, time_limit=limit)
    began = time[0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(X, y)
    taken = time[0] - began
    least = 60 if "estimator" in way else 15  # that one feature set takes, all features bought, and its model
    begun = 12 if "estimator" in way else 0  # one fold of an estimator, which is not cut off
    assert taken <= max(1.1 * limit + 2 + begun, least)
    told = [str(each.message) for each in caught if issubclass(each.category, TimeLimitWarning)]
    assert bool(told) == bool(clf.timed_out_)
    assert not any(issubclass(each.category, SearchInterruptedWarning) for each in caught)
    if clf.timed_out_:
        (text,) = told
        assert text.startswith(f"time_limit={limit:g} cut the fit short: ")
        assert all(what in text for what in clf.timed_out_)
    assert bool(clf.timed_out_) or limit > 5
    assert len(clf.front_) >= 1
    assert len(clf.decide(X)) == len(X)
    for point in range(len(clf.front_)):
        assert clf.use(point).stages_


@pytest.mark.parametrize("way", WAYS)
def test_with_a_limit_that_is_never_reached_a_fit_finds_what_it_finds_without(way):
    X, y = table()
    prices = np.arange(1, 7)
    plain, limited = (
        quietly(EMSCOClassifier(prices, **{**FEW, **WAYS[way]}, time_limit=limit), X, y) for limit in (None, 1e6)
    )
    assert limited.timed_out_ == plain.timed_out_ == ()
    assert limited.point_ == plain.point_
    for name in ("designs", "values", "confusion", "thresholds"):
        assert_array_equal(getattr(limited.front_, name), getattr(plain.front_, name))
    assert_array_equal(limited.decide(X).confidence, plain.decide(X).confidence)


@pytest.mark.usefixtures("slow")
def test_the_more_time_there_is_the_better_is_the_front(slow):
    X, y = table()
    slow["logistic"] = 0.01
    clfs = [
        quietly(EMSCOClassifier(np.arange(1, 7), final_estimator="search", **FEW, time_limit=t), X, y) for t in (5, 80)
    ]
    assert len(clfs[0].front_) < len(clfs[1].front_)
    assert len(clfs[0].timed_out_) > len(clfs[1].timed_out_)


def test_a_search_that_ends_before_its_first_designs_is_named_in_the_file(monkeypatch, tmp_path):
    def too_late(*_):
        raise TimeUpError

    monkeypatch.setattr(Auto, "search", too_late)
    X, y = table()
    clf = quietly(EMSCOClassifier(np.arange(1, 7), final_estimator="search", random_state=0), X, y)
    clf.save(tmp_path / "m.emsco")
    assert type(load(tmp_path / "m.emsco").search_) is type(clf.search_) is not Auto


@pytest.mark.parametrize("wrong", [0, -1, "1 min", True, np.inf, np.nan])
def test_a_limit_is_a_positive_number_of_seconds(wrong):
    with pytest.raises(InvalidParameterError, match="time_limit must be a positive number of seconds"):
        EMSCOClassifier(time_limit=wrong).fit(*table())


@pytest.mark.parametrize("way", ["logistic", "exact", "final estimator"])
def test_a_run_that_was_cut_short_goes_on_with_a_longer_limit_and_ends_as_without_one(way, slow, tmp_path):
    X, y = table()
    settings = {**FEW, **WAYS[way]}
    whole = quietly(EMSCOClassifier(np.arange(1, 7), **settings), X, y)
    for limit in (5, 30, None):
        clf = quietly(EMSCOClassifier(np.arange(1, 7), **settings, time_limit=limit), X, y, checkpoint=tmp_path / "c")
        assert bool(clf.timed_out_) == (limit is not None)
    assert (clf.encoding_, clf.C_) == (whole.encoding_, whole.C_)
    for name in ("designs", "values", "confusion", "thresholds"):
        assert_array_equal(getattr(clf.front_, name), getattr(whole.front_, name))
    assert_array_equal(clf.decide(X).confidence, whole.decide(X).confidence)


# Ctrl-C after the search


@pytest.mark.parametrize("settings", [{}, {"threshold": 0.8}, {"threshold": Guarantee(0.7, confidence=0.8)}])
@pytest.mark.parametrize(
    ("module", "name"),
    [(pipeline, "by_class"), (training, "_train_points"), (pipeline, "promise_of_each"), (pipeline, "first_choice")],
)
def test_ctrl_c_after_the_search_keeps_what_there_is(module, name, settings, monkeypatch):
    X, y = table()
    original, n_calls = getattr(module, name), 0

    def interrupted(*given, **named):
        nonlocal n_calls
        n_calls += 1
        if n_calls == 1:
            raise KeyboardInterrupt
        return original(*given, **named)

    monkeypatch.setattr(module, name, interrupted)
    clf = EMSCOClassifier(np.arange(1, 7), final_estimator="search", choose="combined", **{**FEW, **settings})
    with pytest.warns(SearchInterruptedWarning, match=r"interrupted; \d+ of the \d+ points of the front are there"):
        clf.fit(X, y)
    assert n_calls > 1
    assert len(clf.decide(X)) == len(X)
    assert clf.timed_out_ == ()  # there was no limit
