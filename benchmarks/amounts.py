"""Amounts at risk: simulated fraud, where a missed fraud costs its amount, beside a price list of the mean amount.

    python -m benchmarks.amounts --seeds 10

Both policies are trained on the same rows and judged by what the test rows cost: tests, false alarms, missed amounts.
"""

import argparse
from typing import Any

import numpy as np

from emsco import EMSCOClassifier

_PRICES = {"amount": 0, "device": 0.5, "history": 2, "call": 6}
_ALARM = 20.0  # price of a false alarm


def make_fraud(n_rows: int, seed: int) -> tuple[Any, Any]:
    """Draw transactions: a free amount, three tests, the dearer the better, and the truth."""
    import pandas

    rng = np.random.default_rng(seed)
    y = (rng.random(n_rows) < 0.15).astype(int)
    columns = {"amount": np.round(np.exp(rng.normal(3.5, 1.3, n_rows)), 2)}
    for name, shift in (("device", 1.2), ("history", 1.5), ("call", 2.0)):
        columns[name] = shift * y + rng.normal(size=n_rows)
    return pandas.DataFrame(columns), y


def total(clf: EMSCOClassifier, X: Any, y: Any) -> float:
    """Return the money per case: tests, false alarms and missed amounts."""
    decided = clf.decide(X)
    label = decided.label.data.astype(int)
    lost = np.where(y == 1, np.where(label == 0, X["amount"], 0.0), np.where(label == 1, _ALARM, 0.0))
    return float((decided.cost + lost).mean())


def main() -> None:
    """Fit both policies on each seed and print what they cost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=2_000)
    options = parser.parse_args()
    found = []
    for seed in range(options.seeds):
        X, y = make_fraud(options.rows, seed)
        X_test, y_test = make_fraud(20_000, 10_000 + seed)
        missed: Any
        line = []
        for missed in ("amount", float(X["amount"].mean())):
            clf = EMSCOClassifier(_PRICES, errors=[[0, _ALARM], [missed, 0]], random_state=seed).fit(X, y)
            line.append(total(clf, X_test, y_test))
        found.append(line)
        print(f"seed {seed}: by amount {line[0]:.3f}, by the mean amount {line[1]:.3f}", flush=True)
    by_amount, by_mean = np.array(found).T
    for name, values in (("amount", by_amount), ("mean", by_mean), ("saved", by_mean - by_amount)):
        error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
        print(f"{name:7} {values.mean():.3f} +- {error:.3f}")


if __name__ == "__main__":
    main()
