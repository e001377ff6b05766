"""Many sessions at once: a callback buys, a bounded number of its calls are under way, answers come in order."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
import inspect
from operator import length_hint
from reprlib import repr as shorten
from typing import Any, TypeAlias

import numpy as np

from emsco.deployed.session import Acquire, Decision, Session
from emsco.exceptions import InvalidInputError, InvalidParameterError, RunInterruptedError

Values: TypeAlias = Mapping[str, Any]
OnDecision: TypeAlias = Callable[[Any, Decision], object]


def run_in_threads(
    begin: Callable[[], Session],
    acquire: Callable[[Any, Acquire], Values],
    inputs: Iterable[Any],
    *,
    max_in_flight: int,
    on_decision: OnDecision | None,
) -> list[Decision]:
    """Return the decision of each input, in their order; ``acquire`` is called by threads, all else by the caller.

    Parameters
    ----------
    begin : callable
        Begins a session.
    acquire : callable
        Buys what is asked of an input.
    inputs : iterable
        Taken one by one, when a thread is free.
    max_in_flight : int
    on_decision : callable or None
    """
    run = _Run(on_decision)
    places: dict[Future[Decision | None], tuple[int, Any]] = {}

    def decide(item: Any) -> Decision | None:
        session = begin()
        while isinstance(answer := session.step(), Acquire):
            if run.stopped:
                return None
            try:
                _give(session, answer, acquire(item, answer))
            except BaseException:
                run.stopped = True  # before the caller hears of it
                raise
        return answer

    def collect() -> None:
        for future in sorted(wait(places, return_when=FIRST_COMPLETED).done, key=lambda done: places[done][0]):
            index, item = places.pop(future)
            try:
                run.record(index, item, future.result())
            except Exception as error:
                run.fail(error, index, item)

    with ThreadPoolExecutor(max_in_flight, thread_name_prefix="emsco") as pool:
        try:
            for index, item in run.take(inputs):
                places[pool.submit(decide, item)] = index, item
                if len(places) == max_in_flight:
                    collect()
            while places:  # after a failure these are the calls in flight
                collect()
        except BaseException as error:
            run.stopped = True
            error.add_note(f"{len(run.decided)} inputs were decided before.")
            raise
    return run.result()


async def run_in_loop(
    begin: Callable[[], Session],
    acquire: Callable[[Any, Acquire], Awaitable[Values]],
    inputs: Iterable[Any],
    *,
    max_in_flight: int,
    on_decision: OnDecision | None,
) -> list[Decision]:
    """Return the decision of each input, in their order; everything is called by the running event loop.

    Parameters as in ``run_in_threads``; what ``acquire`` returns is awaited.
    """
    run = _Run(on_decision)
    tickets = run.take(inputs)

    async def work() -> None:
        for index, item in tickets:
            try:
                session = begin()
                while isinstance(answer := session.step(), Acquire):
                    if run.stopped:
                        return
                    values = acquire(item, answer)
                    if not inspect.isawaitable(values):
                        raise InvalidParameterError("acquire returned nothing to await; give run one that blocks.")
                    _give(session, answer, await values)
                run.record(index, item, answer)
            except (Exception, asyncio.CancelledError) as error:
                task = asyncio.current_task()
                if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                    raise  # somebody cancels the run; else something that the callback awaits was cancelled
                run.fail(error, index, item)

    n_workers = min(max_in_flight, max(length_hint(inputs, max_in_flight), 1))
    try:
        await asyncio.gather(*(work() for _ in range(n_workers)))
    finally:
        run.stopped = True
    return run.result()


def is_async(acquire: Any) -> bool:
    """Return whether a callback is an async function, or an object whose call is one."""
    return inspect.iscoroutinefunction(acquire) or inspect.iscoroutinefunction(type(acquire).__call__)


def check_run(acquire: Any, inputs: Any, max_in_flight: Any) -> int:
    """Return the limit; raise unless a run can begin."""
    if not callable(acquire):
        raise InvalidParameterError(f"acquire must be a function of an input and an Acquire; got {shorten(acquire)}.")
    if not hasattr(inputs, "__iter__") or hasattr(inputs, "columns"):
        raise InvalidParameterError(
            f"inputs must be an iterable, such as a list of identifiers or X.to_dict('records'); got "
            f"{type(inputs).__name__}."
        )
    if isinstance(max_in_flight, bool) or not isinstance(max_in_flight, int | np.integer) or max_in_flight < 1:
        raise InvalidParameterError(f"max_in_flight must be a whole number of at least 1; got {max_in_flight!r}.")
    return int(max_in_flight)


def check_no_loop() -> None:
    """Raise inside a running event loop, which cannot start another."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise InvalidParameterError(
        "an event loop is running (a notebook has one): use `await clf.run_async(...)` for an async acquire."
    )


class _Run:
    """What was decided so far, and whether to go on."""

    def __init__(self, on_decision: OnDecision | None) -> None:
        self.decided: dict[int, Decision] = {}
        self.stopped = False
        self._on_decision = on_decision
        self._failure: tuple[str, Exception | asyncio.CancelledError] | None = None

    def take(self, inputs: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        """Yield position and input, each when it is asked for, until they end or something fails."""
        tickets = enumerate(inputs)
        while not self.stopped:
            try:
                ticket = next(tickets)
            except StopIteration:
                return
            except Exception as error:
                self.fail(error)
                return
            yield ticket

    def record(self, index: int, item: Any, decision: Decision | None) -> None:
        """Keep a decision; None is of an input that was left when the run stopped."""
        if decision is not None:
            self.decided[index] = decision
            if self._on_decision is not None:
                self._on_decision(item, decision)

    def fail(self, error: Exception | asyncio.CancelledError, index: int | None = None, item: Any = None) -> None:
        """Stop: no further call starts, those in flight end. The first reason counts."""
        self.stopped = True
        if self._failure is None:
            self._failure = ("the inputs" if index is None else f"input {index}, {shorten(item)},"), error

    def result(self) -> list[Decision]:
        """Return the decisions in the order of the inputs, or raise if the run failed."""
        if self._failure is None:
            return [self.decided[index] for index in range(len(self.decided))]
        where, error = self._failure
        raise RunInterruptedError(
            f"{where} failed with {type(error).__name__}: {error} The {len(self.decided)} inputs that are decided are "
            "in the attribute `decided` of this error.",
            self.decided,
        ) from error


def _give(session: Session, request: Acquire, values: Any) -> None:
    """Hand over what the callback returned: all that it was asked for."""
    if inspect.iscoroutine(values):
        values.close()
        raise InvalidParameterError("acquire returned a coroutine; make it an async function, or use run_async.")
    session.give(values)
    answer = session.step()
    if isinstance(answer, Acquire) and answer.stage == request.stage:
        raise InvalidInputError(
            f"acquire returned no value of {list(answer.columns)}; return None for what could not be obtained."
        )
