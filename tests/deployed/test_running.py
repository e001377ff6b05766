import _thread
import asyncio
from collections import Counter
from functools import partial
from itertools import count
import pickle
from threading import Barrier, Event, Lock, current_thread, main_thread
from time import sleep

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from emsco import Accept, Acquire, MultiStageClassifier, Reject
from emsco.exceptions import InvalidInputError, InvalidParameterError, RunInterruptedError
from tests.deployed.test_decide import assert_same, numbers
from tests.strategies import seeds
from tests.test_estimators import PANEL, patients

X, Y = patients()
ROWS = X.to_dict("records")
CLF = MultiStageClassifier([["visits"], ["age", "smokes", "ward"], ["blood panel"]], PANEL, threshold=0.85).fit(X, Y)
EXPECTED = CLF.decide(X)


def look_up(i, request):
    return {column: ROWS[i][column] for column in request.columns}


async def look_up_later(i, request):
    await asyncio.sleep(0.001 * (i % 3))  # completed in another order
    return look_up(i, request)


class AsyncObject:
    async def __call__(self, i, request):
        return look_up(i, request)


async def after(delay, i, request):
    await asyncio.sleep(delay)
    return look_up(i, request)


@pytest.mark.parametrize("acquire", [look_up, look_up_later, AsyncObject(), partial(after, 0)])
@pytest.mark.parametrize("max_in_flight", [1, 3, np.int64(8), 10_000])
def test_a_run_decides_as_decide_does(acquire, max_in_flight):
    decisions = CLF.run(acquire, range(len(ROWS)), max_in_flight=max_in_flight)
    assert_same(decisions, EXPECTED)
    assert decisions.label.dtype == EXPECTED.label.dtype
    assert (decisions.label.mask == EXPECTED.label.mask).all()
    assert len(decisions.to_frame()) == len(ROWS)


def test_inside_a_loop_there_is_run_async():
    async def main():
        decisions = await CLF.run_async(look_up_later, range(len(ROWS)))
        with pytest.raises(InvalidParameterError, match=r"an event loop is running .*await clf.run_async"):
            CLF.run(look_up_later, range(3))
        assert_same(CLF.run(look_up, range(len(ROWS))), EXPECTED)  # a callback that blocks needs no loop
        return decisions

    assert_same(asyncio.run(main()), EXPECTED)


@settings(max_examples=15)
@given(seeds(), st.sampled_from([2, 3]), st.floats(0.0, 1.0), st.integers(1, 5), st.booleans())
def test_each_stage_that_an_input_reaches_is_asked_once_and_no_other(seed, n_classes, threshold, limit, asynchronous):
    X, y = numbers(seed, n_classes=n_classes, missing=0.1)
    design = np.random.default_rng(seed).permutation(6) // 2
    clf = MultiStageClassifier(design, threshold=threshold).fit(X, y)
    asked = Counter()

    def acquire(i, request):
        asked[i, request.stage] += 1
        assert request.features == clf.stages_[request.stage].features
        return {column: X[i, int(column[1:])] for column in request.columns}

    async def acquire_later(i, request):
        await asyncio.sleep(0)
        return acquire(i, request)

    decisions = clf.run(acquire_later if asynchronous else acquire, range(len(X)), max_in_flight=limit)
    assert_same(decisions, clf.decide(X))
    assert asked == {(i, j): 1 for i in range(len(X)) for j in range(decisions.stage[i] + 1)}


def test_the_order_of_completion_does_not_matter():
    order, others_decided = [], Event()

    def acquire(i, request):
        if i == 0:
            assert others_decided.wait(10)
        return look_up(i, request)

    def on_decision(i, decision):
        order.append(i)
        if len(order) == 7:
            others_decided.set()

    decisions = CLF.run(acquire, range(8), max_in_flight=8, on_decision=on_decision)
    assert order[-1] == 0
    assert sorted(order) == list(range(8))
    assert_same(decisions, CLF.decide(X.iloc[:8]))


class Gauge:
    """How many calls are under way, and the most there were."""

    def __init__(self):
        self.now = self.most = self.total = 0
        self.lock = Lock()

    def __enter__(self):
        with self.lock:
            self.now += 1
            self.total += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_):
        with self.lock:
            self.now -= 1


def test_threads_reach_the_limit_and_keep_it():
    gauge, together = Gauge(), Barrier(5)

    def acquire(i, request):
        with gauge:
            if i < 5 and request.stage == 0:
                together.wait(10)  # passes only if five calls are under way
            sleep(0.0005)
            return look_up(i, request)

    CLF.run(acquire, range(40), max_in_flight=5)
    assert gauge.most == 5


def test_an_event_loop_reaches_the_limit_and_keeps_it():
    gauge = Gauge()

    async def acquire(i, request):
        with gauge:
            await asyncio.sleep(0.0005)
            return look_up(i, request)

    CLF.run(acquire, range(40), max_in_flight=5)
    assert gauge.most == 5


@pytest.mark.parametrize("asynchronous", [False, True])
def test_inputs_are_taken_when_there_is_room_for_them(asynchronous):
    taken, decided, ahead = [], [], []

    def inputs():
        for i in range(60):
            assert current_thread() is main_thread()
            taken.append(i)
            ahead.append(len(taken) - len(decided))
            yield i

    acquire = look_up_later if asynchronous else look_up
    CLF.run(acquire, inputs(), max_in_flight=4, on_decision=lambda i, decision: decided.append(i))
    assert len(taken) == 60
    assert max(ahead) <= 4


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_endless_stream_ends_with_an_error_of_whoever_feeds_it(asynchronous):
    def stream():
        for i in count():
            if i == 25:
                raise ConnectionError("feed closed")
            yield i

    acquire = look_up_later if asynchronous else look_up
    with pytest.raises(RunInterruptedError, match="the inputs failed with ConnectionError: feed closed") as caught:
        CLF.run(acquire, stream(), max_in_flight=3)
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert_decided(caught.value.decided, 25)


def assert_decided(decided, n):
    assert set(decided) <= set(range(n))
    assert len(decided) >= n - 8
    for i, decision in decided.items():
        assert isinstance(decision, Accept if EXPECTED.conclusive[i] else Reject)
        assert (decision.confidence, decision.cost) == (EXPECTED.confidence[i], EXPECTED.cost[i])


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_call_that_fails_stops_the_run_and_loses_nothing(asynchronous):
    started, ended = [], []

    def begin(i):
        started.append(i)
        if i == 30:
            raise TimeoutError("laboratory is closed")

    def acquire(i, request):
        begin(i)
        sleep(0.001)
        ended.append(i)
        return look_up(i, request)

    async def acquire_later(i, request):
        begin(i)
        await asyncio.sleep(0.001)
        ended.append(i)
        return look_up(i, request)

    with pytest.raises(RunInterruptedError, match="input 30, 30, failed with TimeoutError: laboratory is") as caught:
        CLF.run(acquire_later if asynchronous else acquire, range(len(ROWS)), max_in_flight=4)
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert Counter(started) - Counter(ended) == {30: 1}  # calls in flight ended
    assert max(started) <= 34  # and none was started for a later input
    assert_decided(caught.value.decided, 30 + 4)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.decided) == (str(caught.value), caught.value.decided)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("values", "cause", "message"),
    [
        ({}, InvalidInputError, r"acquire returned no value of \['visits'\]; return None for what could not"),
        ({"visits": "many"}, InvalidInputError, "numeric in training"),
        ({"visits": 1, "name": "Jo"}, InvalidInputError, "no column 'name'"),
        (None, InvalidInputError, "mapping of column name to value; got None"),
    ],
)
def test_what_a_callback_returns_is_checked(asynchronous, values, cause, message):
    async def later(i, request):
        return values

    with pytest.raises(RunInterruptedError, match=message) as caught:
        CLF.run(later if asynchronous else lambda i, request: values, [0])
    assert isinstance(caught.value.__cause__, cause)


def test_a_callback_that_returns_more_than_it_was_asked_is_asked_no_more():
    asked = []

    def acquire(i, request):
        asked.append(i)
        return ROWS[i]

    assert_same(CLF.run(acquire, range(len(ROWS))), EXPECTED)
    assert sorted(asked) == list(range(len(ROWS)))


def test_a_callback_that_is_async_only_inside_is_told_apart():
    with pytest.raises(RunInterruptedError, match="acquire returned a coroutine; make it an async function"):
        CLF.run(lambda i, request: look_up_later(i, request), [0])
    decisions = asyncio.run(CLF.run_async(lambda i, request: look_up_later(i, request), range(len(ROWS))))
    assert_same(decisions, EXPECTED)
    with pytest.raises(RunInterruptedError, match="acquire returned nothing to await; give run one that blocks"):
        asyncio.run(CLF.run_async(look_up, [0]))


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_waits_for_the_calls_in_flight_and_is_raised():
    gauge, seen = Gauge(), []

    def acquire(i, request):
        with gauge:
            if i == 20:
                _thread.interrupt_main()
            sleep(0.002)
            return look_up(i, request)

    with pytest.raises(KeyboardInterrupt) as caught:
        CLF.run(acquire, count(), max_in_flight=3, on_decision=lambda i, decision: seen.append(i))
    total = gauge.total
    assert gauge.now == 0
    assert caught.value.__notes__ == [f"{len(seen)} inputs were decided before."]
    sleep(0.01)
    assert gauge.total == total
    assert set(seen) <= set(range(30))


def test_a_run_that_is_cancelled_cancels_the_calls_in_flight():
    gauge = Gauge()

    async def acquire(i, request):
        with gauge:
            await asyncio.sleep(30)

    async def main():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(CLF.run_async(acquire, range(20), max_in_flight=4), 0.02)
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1
    assert (gauge.now, gauge.most, gauge.total) == (0, 4, 4)


def test_a_callback_whose_own_task_was_cancelled_fails_the_run():
    async def acquire(i, request):
        if i == 5:
            raise asyncio.CancelledError
        return look_up(i, request)

    with pytest.raises(RunInterruptedError, match="input 5, 5, failed with CancelledError"):
        CLF.run(acquire, range(20), max_in_flight=2)


def test_on_decision_is_called_by_the_caller_with_each_decision():
    found = {}

    def on_decision(i, decision):
        assert current_thread() is main_thread()
        found[i] = decision

    CLF.run(look_up, range(50), on_decision=on_decision)
    assert_decided(found, 50)
    assert len(found) == 50

    def full(i, decision):
        raise OSError("disk full")

    with pytest.raises(RunInterruptedError, match="OSError: disk full"):
        CLF.run(look_up, range(50), on_decision=full)


def test_no_inputs_give_no_decisions():
    assert len(CLF.run(look_up, [])) == 0
    assert len(CLF.run(look_up_later, iter([]))) == 0


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, None, "8"])
def test_a_limit_is_a_positive_whole_number(limit):
    with pytest.raises(InvalidParameterError, match="max_in_flight must be a whole number of at least 1"):
        CLF.run(look_up, [0], max_in_flight=limit)


@pytest.mark.parametrize("inputs", [None, 3, X])
def test_inputs_are_an_iterable_and_a_table_is_none(inputs):
    with pytest.raises(InvalidParameterError, match="inputs must be an iterable"):
        CLF.run(look_up, inputs)


def test_acquire_is_called():
    with pytest.raises(InvalidParameterError, match="acquire must be a function"):
        CLF.run(ROWS[0], [0])


def test_a_request_says_what_to_buy():
    requests = []
    CLF.run(lambda i, request: requests.append(request) or look_up(i, request), [0], max_in_flight=1)
    assert requests[0] == Acquire(("visits",), ("visits",), 0.0, 0)
