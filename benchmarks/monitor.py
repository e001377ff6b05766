"""How soon Monitor notices a drop, and how often it is wrong: `python -m benchmarks.monitor`, beside MAPIE.

Both watch the accuracy of labels against the same limit, 90 %, at the same rate of false alarms, 2.5 %. The alarm of
either is the first moment at which somebody who looks after every label would see one.
"""

import sys

import numpy as np

from emsco.promises.evidence import Bets, Wealth

LIMIT, LEVEL = 0.1, 0.025
QUIET, DROPS, HORIZON = (0, 1_000), (0.0, 0.02, 0.05, 0.1), 4_000


def stream(rng: np.random.Generator, quiet: int, drop: float) -> np.ndarray:
    """Errors: at the limit, then beyond it."""
    return np.concatenate([rng.random(quiet) < LIMIT, rng.random(HORIZON) < LIMIT + drop]).astype(np.int64)


def ours(errors: np.ndarray) -> int | None:
    _, path = Wealth().after(Bets((0.0, 1.0), LIMIT), errors)
    return first(path >= np.log(1 / LEVEL))


def theirs(errors: np.ndarray) -> int | None:
    from mapie.exchangeability_testing import RiskMonitoring

    monitor = RiskMonitoring(risk="accuracy", test_level=2 * LEVEL, threshold=LIMIT, warn=False)
    monitor.update(np.ones_like(errors), 1 - errors)
    return first(monitor.online_risk_lower_bound_sequence_history > monitor.threshold)


def first(beyond: np.ndarray) -> int | None:
    return int(beyond.argmax()) if beyond.any() else None


def delays(watch, n: int, quiet: int, drop: float) -> tuple[float, float, float]:  # type: ignore[no-untyped-def]
    """Return the share of false alarms, the median delay of the others, and the share without an alarm."""
    rng = np.random.default_rng(0)
    false, found = 0, []
    for _ in range(n):
        moment = watch(stream(rng, quiet, drop))
        if moment is not None and (moment < quiet or not drop):
            false += 1
        else:
            found.append(HORIZON if moment is None else moment - quiet)
    missed = np.mean(np.array(found) >= HORIZON) if found else 0.0
    return false / n, float(np.median(found)) if found else np.nan, float(missed)


def main() -> None:
    n, n_theirs = (int(number) for number in (*sys.argv[1:], 1000, 20)[:2])
    print(f"{n} streams of ours, {n_theirs} of MAPIE, which is slower; {HORIZON:,} labels after the drop")
    heads = f"{'false':>8} {'delay':>8} {'never':>7}"
    print(f"{'labels before':>14} {'drop':>6} | ours {heads} | MAPIE {heads}")
    for quiet in QUIET:
        for drop in DROPS:
            cells = [delays(ours, n, quiet, drop), delays(theirs, n_theirs, quiet, drop)]
            text = " | ".join(f"     {false:8.3f} {delay:8.0f} {missed:7.2f}" for false, delay, missed in cells)
            print(f"{quiet:14,} {100 * drop:5.0f}% | {text}", flush=True)


if __name__ == "__main__":
    main()
