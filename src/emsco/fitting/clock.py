"""The clock of a fit: its phases, how long they take, and when a limit ends them.

Without a limit the clock only watches. What a fit finds depends on it in no way.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import exp, inf, log
from threading import RLock
from time import monotonic
from typing import Protocol, Self

from numba.core import event

from emsco.exceptions import warn
from emsco.fitting.progress import ProgressLine, Ticker, drawn, duration, is_shown, minutes
from emsco.search.base import TimeUpError

# In the order in which they come, with the share of a limit that each may take if all of them take too long.
PHASES = {
    "reading": 2.0,
    "comparing learners": 11.0,
    "racing final learners": 15.0,
    "searching": 27.0,
    "ordering features": 12.0,
    "training the final stages": 14.0,
    "choosing thresholds": 16.0,
    "judging the front": 12.0,  # of a model that is trained again
    "training the front": 12.0,
    "calibrating": 3.0,
}
_GRACE = 0.04  # of the limit by which a phase may end late, before what it is doing is thrown away
_RESERVE = 1.25  # times as long as expected, which later phases are left
_FADING = 0.8  # weight of what was measured before, beside what is measured now
_LOADED = ("logistic", "walking", "boosted")  # kinds of work for which kernels or packages are loaded
_LONG = 0.3  # seconds, beside which that does not count
_USUAL = 3.0  # factor by which machines differ
_BAR = 15
_DRAWN = 0.1  # seconds between two drawings, at least


class Speed:
    """How long work takes here, in seconds per second that it is expected to take; by kind of work.

    Of a kind that was not met yet, it is as with those that were, within limits. Where something is loaded before the
    first work of a kind, that counts only if it is long.
    """

    def __init__(self) -> None:
        self._met: dict[str, tuple[float, float]] = {}  # seconds taken and expected

    def of(self, kind: str) -> float:
        """Return by how much longer than expected work of a kind takes."""
        taken, expected = self._met.get(kind, (0.0, 0.0))
        if expected > 0:
            return taken / expected
        known = [log(taken / expected) for taken, expected in self._met.values() if expected > 0]
        return min(max(exp(sum(known) / len(known)), 1 / _USUAL), _USUAL) if known else 1.0

    def knows(self, kind: str) -> bool:
        """Return whether work of a kind was met."""
        return kind in self._met

    def learn(self, kind: str, taken: float, expected: float) -> None:
        """Take note of how long some work has taken."""
        if kind in _LOADED and kind not in self._met and expected < _LONG:
            self._met[kind] = (0.0, 0.0)
        elif taken > 0 and expected > 0:
            before = self._met.get(kind, (0.0, 0.0))
            self._met[kind] = (_FADING * before[0] + taken, _FADING * before[1] + expected)


class Helpers(Protocol):
    """Whoever works beside this process."""

    def in_words(self) -> str:
        """Return who is there, and what they have done."""


class Clock:
    """Knows in which phase a fit is, how long that takes, and when it must end; shows it as one line.

    The compilation of kernels, once on a machine, does not count.

    Parameters
    ----------
    limit : float or None
        Seconds that the fit may take.
    verbose : bool or None
        Whether progress is shown; None: on a terminal and in a notebook.
    beside : Helpers or None
        Whoever works beside this process, to be shown, too.

    Attributes
    ----------
    limit : float or None
    speed : Speed
    cuts : dict of str to str
        What was cut short for lack of time, in words, by phase.
    """

    def __init__(
        self, limit: float | None = None, *, verbose: bool | None = False, beside: Helpers | None = None
    ) -> None:
        self.limit = limit
        self.speed = Speed()
        self.cuts: dict[str, str] = {}
        self._started = monotonic()
        self._compiled = 0.0
        self._compiling_since: float | None = None
        self._ends = self._deadline = inf if limit is None else float(limit)  # of the fit, and of this phase
        self._must = 0
        self._phase, self._phase_began = "reading", 0.0
        self._expected: dict[str, float] = {}  # seconds of the phases that come, that were, and of this one
        self._spent = dict.fromkeys(PHASES, 0.0)
        self._name, self._more = self._phase, ""  # of what is going on
        self._first = self._last = (0.0, 0.0)  # when which share of that was done, as reported first and last
        self._rest: tuple[float, float] | None = None  # seconds left of the phase, and when that was said
        self._share = 0.0  # of the fit, as shown last
        self._drawn_at = -inf
        self._line = ProgressLine() if is_shown(verbose) else None
        self._ticker: Ticker | None = None
        self._lock = RLock()
        self._listener = _Compiling(self)
        self._beside = beside

    def __enter__(self) -> Self:
        event.register("numba:compile", self._listener)  # type: ignore[no-untyped-call]
        if self._line is not None:
            self._draw()
            self._ticker = Ticker(self._draw)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        event.unregister("numba:compile", self._listener)  # type: ignore[no-untyped-call]
        if self._ticker is not None:
            self._ticker.close()
        if self._line is not None:
            if kind is None:
                self._line.note(self._text())
                self._line(f"{drawn(1.0, _BAR)} 100 %, {minutes(monotonic() - self._started)}")
            self._line.close()

    @property
    def in_words(self) -> str:
        """What the limit has cut short, and what a longer fit could gain."""
        took = f" (compilation, once on this machine, took another {self._compiled:.0f} s)" if self._compiled else ""
        return (
            f"time_limit={self.limit:g} cut the fit short{took}: {'; '.join(self.cuts.values())}. Without a limit it "
            f"takes about {duration(self.whole())}, and may find points that are cheaper or more accurate."
        )

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning, without those of compilation."""
        now, since = monotonic(), self._compiling_since
        return (now if since is None else since) - self._started - self._compiled

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Say how long phases will probably take; a phase that was not expected does not come."""
        with self._lock:
            self._expected.update(seconds)

    def begin(self, phase: str, *, most: float = 1.0) -> None:
        """Begin a phase: it may take its share of the time that is left, and what later ones do not need.

        With a limit it takes no more than a share of ``most``.
        """
        with self._lock:
            now = self.elapsed
            if self._line is not None:
                self._line.note(self._text())
            self._spent[self._phase] += now - self._phase_began
            self._phase, self._phase_began = phase, now
            self._name, self._more, self._rest, self._first, self._last = phase, "", None, (now, 0.0), (now, 0.0)
            self._deadline = now + min(self.left_through(phase), most * max(self._ends - now, 0.0))
        self._draw(now=True)

    def __call__(self, phase: str, share: float, more: str = "") -> None:
        """Show which share of a phase is done, or of a part of it that has a name of its own."""
        with self._lock:
            now = self.elapsed
            if phase != self._name:
                self._name, self._first = phase, (now, share)
            self._last, self._more, self._rest = (now, share), more, None
        self._draw()

    def tell(self, rest: float, more: str = "") -> None:
        """Show what is going on, with the seconds that this phase will still take."""
        with self._lock:
            self._rest, self._more = (rest, self.elapsed), more
        self._draw()

    def warn(self, message: str, kind: type[Warning]) -> None:
        """Warn, on a line of its own."""
        with self._lock:
            if self._line is not None:
                self._line.clear()
            warn(message, kind)

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit, or somebody is in a hurry."""
        return self._ends < inf

    def left(self) -> float:
        """Return the seconds that are left for this phase."""
        return self._deadline - self.elapsed

    def left_through(self, phase: str) -> float:
        """Return the seconds that are left for this phase and those that follow, up to one."""
        with self._lock:
            left, later = self._ends - self.elapsed, self._later()
            if left == inf:
                return inf
            order = list(PHASES)
            after = [other for other in later if order.index(other) > order.index(phase)]
            mine = PHASES[self._phase] + sum(PHASES[other] for other in later if other not in after)
            share = mine / (mine + sum(PHASES[other] for other in after))
            needed = _RESERVE * sum(self._expected[other] for other in after)
            return max(left * share, left - needed, 0.0)

    def left_in_all(self) -> float:
        """Return the seconds that are left for the fit."""
        return self._ends - self.elapsed

    def affords(self, seconds: float) -> bool:
        """Return whether there is time for so much in this phase."""
        return seconds <= self.left()

    def check(self, seconds: float = 0.0) -> None:
        """Raise if so much more would end far beyond the time of this phase."""
        if not self._must and seconds > self.left() + _GRACE * self._ends:
            raise TimeUpError

    def affords_all(self) -> bool:
        """Return whether there is time for all that is still to come, as far as that is known."""
        return sum(self._expected.get(phase, 0.0) for phase in (self._phase, *self._later())) <= self.left_in_all()

    def affords_later(self, seconds: float) -> bool:
        """Return whether there is time for so much, and then for all phases after this one."""
        return seconds + sum(self._expected[phase] for phase in self._later()) <= self.left_in_all()

    @contextmanager
    def must(self) -> Iterator[None]:
        """Do what cannot be left out, however long it takes."""
        self._must += 1
        try:
            yield
        finally:
            self._must -= 1

    def cut(self, what: str, phase: str | None = None) -> None:
        """Say what this phase, or another one, leaves out for lack of time."""
        self.cuts.setdefault(self._phase if phase is None else phase, what)

    def hurry(self) -> None:
        """Leave out, from now on, all that can be left out."""
        self._ends = self._deadline = min(self.elapsed, self._ends)

    def whole(self) -> float:
        """Return about how many seconds the fit would take if nothing were cut short."""
        with self._lock:
            spent = dict(self._spent)
            spent[self._phase] += self.elapsed - self._phase_began
            return sum(max(seconds, self._expected.get(phase, 0.0)) for phase, seconds in spent.items())

    def rest(self) -> float:
        """Return about how many seconds the fit still takes."""
        with self._lock:
            rest = self._rest_of_phase() + sum(self._expected[phase] for phase in self._later())
            return min(rest, max(self._ends - self.elapsed, 0.0))

    def compiling(self, *, begins: bool) -> None:
        """Stop while kernels are compiled, once on a machine; go on afterwards."""
        with self._lock:
            now = monotonic()
            if begins:
                self._compiling_since = now
            elif self._compiling_since is not None:
                self._compiled += now - self._compiling_since
                self._compiling_since = None
        self._draw(now=begins)

    def _later(self) -> list[str]:
        """Return the phases that are still to come."""
        order = list(PHASES)
        return [phase for phase in order[order.index(self._phase) + 1 :] if self._expected.get(phase, 0.0) > 0]

    def _rest_of_phase(self) -> float:
        """Return the seconds left of this phase: as told, or as measured and expected, the more measured the later."""
        now = self.elapsed
        spent, expected = now - self._phase_began, self._expected.get(self._phase, 0.0)
        if self._rest is not None:
            rest, said = self._rest
            return max(rest - (now - said), 0.0)
        (began, share), (at, done) = self._first, self._last
        if done <= share:
            return max(expected - spent, spent / 4)
        measured = max((at - began) * (1 - done) / (done - share) - (now - at), 0.0)
        if self._name != self._phase:  # a part of it: others may follow
            return max(measured, expected - spent)
        weight = max((done - share) / (1 - share), spent / (spent + expected) if spent else 0.0)
        return weight * measured + (1 - weight) * expected * (1 - done)

    def _draw(self, *, now: bool = False) -> None:
        """Write the line anew, unless that was done a moment ago."""
        with self._lock:
            if self._line is None or (not now and monotonic() - self._drawn_at < _DRAWN):
                return
            self._drawn_at = monotonic()
            self._line(self._text())

    def _text(self) -> str:
        elapsed, rest, known = self.elapsed, self.rest(), bool(self._expected)
        if known and elapsed > 0:
            self._share = max(self._share, min(elapsed / (elapsed + rest), 0.99))
        left = f", {minutes(rest)} left" if known else ""
        more = "compiling, once on this machine" if self._compiling_since is not None else self._more
        shown = ", ".join(filter(None, (self._name, more, "" if self._beside is None else self._beside.in_words())))
        taken = minutes(monotonic() - self._started)
        return f"{drawn(self._share, _BAR)} {100 * self._share:.0f} %, {taken}{left}: {shown}"


class _Compiling(event.Listener):
    """Stops the clock while numba compiles."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._depth = 0

    def on_start(self, _: object) -> None:
        self._depth += 1
        if self._depth == 1:
            self._clock.compiling(begins=True)

    def on_end(self, _: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._clock.compiling(begins=False)
