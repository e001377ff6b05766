"""Spambase as others publish it: a public split, everybody labelled, so many features; our figures beside theirs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import csv
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from emsco.data.output import writing_text
from emsco.datasets import load_spambase
from emsco.estimators import EMSCOClassifier
from emsco.exceptions import NoSuchPointError
from emsco.scoring.front import Front
from emsco.search.bestfirst import BestFirst

N_TEST = N_VALIDATION = 920
BUDGETS = (5, 10, 25)
PUBLISHED = {5: 0.909, 10: 0.922, 25: 0.938}  # accuracy of greedy dynamic feature selection (Covert et al. 2023)
MEAN, EACH = "mean", "each"  # what the budget limits: the mean number of features, or the number of every case
FITS = {"training rows": False, "training and validation rows": True}

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Result:
    """The test figures of a point of the front.

    Attributes
    ----------
    split, trained_on : str
        Keys of `SPLITS` and of `FITS`.
    limit : {"mean", "each"}
    budget : int
    accuracy, mean_cost : float
    largest_cost : float
        Of a test row.
    published : float
        Accuracy of the publication, with so many features for every row.
    seconds : float
        Time of the fit, which serves all budgets.
    """

    split: str
    trained_on: str
    limit: str
    budget: int
    accuracy: float
    mean_cost: float
    largest_cost: float
    published: float
    seconds: float


def two_calls(n_rows: int) -> tuple[Rows, Rows, Rows]:
    """Return training, validation and test rows by two calls of ``train_test_split`` with the seed 0.

    Examples
    --------
    >>> [part.size for part in two_calls(4601)]
    [2761, 920, 920]
    """
    rest, test = train_test_split(np.arange(n_rows), test_size=N_TEST, random_state=0)
    train, validation = train_test_split(rest, test_size=N_VALIDATION, random_state=0)
    return train, validation, test


def one_shuffle(n_rows: int) -> tuple[Rows, Rows, Rows]:
    """Return training, validation and test rows by one shuffle with the seed 0: tests first, then validation.

    Examples
    --------
    >>> [part.size for part in one_shuffle(4601)]
    [2761, 920, 920]
    """
    rows = np.arange(n_rows)
    np.random.default_rng(0).shuffle(rows)
    return rows[N_TEST + N_VALIDATION :], rows[N_TEST : N_TEST + N_VALIDATION], rows[:N_TEST]


SPLITS: Mapping[str, Callable[[int], tuple[Rows, Rows, Rows]]] = {"two calls": two_calls, "one shuffle": one_shuffle}


def run(*, quick: bool = False) -> Iterator[Result]:
    """Fit on each split, choose points on the validation rows, and score them once on the test rows.

    ``quick`` searches little, on few rows.
    """
    spam = load_spambase(as_frame=False)
    X, y = np.asarray(spam.data), np.asarray(spam.target)
    for name, split in SPLITS.items():
        train, validation, test = split(len(y))
        for trained_on, everything in FITS.items():
            clf = EMSCOClassifier(random_state=0)
            if quick:
                train, validation = train[:500], validation[:250]
                clf.set_params(search=BestFirst(max_designs=300), encoding="rank", C=10.0, final_estimator="search")
            started = perf_counter()
            if everything:
                rows = np.concatenate([train, validation])
                clf.fit(X[rows], y[rows])
            else:
                clf.set_params(validation=1 / 4).fit(X[train], y[train], X[validation], y[validation])
            seconds = round(perf_counter() - started, 1)
            for limit in (MEAN, EACH):
                for budget in BUDGETS:
                    point = choose(clf.front_, budget, limit)
                    if point is not None:
                        accuracy, cost = _score(clf, point, X[test], y[test])
                        yield Result(
                            name, trained_on, limit, budget, accuracy, float(cost.mean()), float(cost.max()),
                            PUBLISHED[budget], seconds,
                        )  # fmt: skip


def choose(front: Front, budget: int, limit: str) -> int | None:
    """Return the most accurate point within a budget that labels every validation row; None if there is none."""
    if limit == MEAN:
        try:
            return front.choose(max_cost=budget, min_coverage=1.0, best="accuracy")
        except NoSuchPointError:
            return None
    most = (front.designs >= 0).sum(axis=1)  # every feature costs 1
    within = np.flatnonzero((most <= budget) & (front.coverage == 1))
    if not within.size:
        return None
    return int(within[np.lexsort((front.mean_cost[within], -front.accuracy[within]))[0]])


def _score(clf: Any, point: int, X: Any, y: Any) -> tuple[float, NDArray[np.float64]]:
    """Return the accuracy of all rows, labelled or not, and their costs."""
    decisions = clf.use(point).decide(X)
    right = (decisions.label.data == y) & decisions.conclusive
    return float(right.mean()), decisions.cost


def text_table(results: Sequence[Result]) -> str:
    """Return our figures beside the published ones."""
    head = f"{'split':12}{'trained on':30}{'budget':>7}{'limits':>8}{'accuracy':>10}{'published':>11}"
    lines = [head + f"{'mean':>7}{'most':>6}{'seconds':>9}"]
    for r in results:
        lines.append(
            f"{r.split:12}{r.trained_on:30}{r.budget:7d}{r.limit:>8}{r.accuracy:10.3f}{r.published:11.3f}"
            f"{r.mean_cost:7.2f}{r.largest_cost:6.0f}{r.seconds:9.1f}"
        )
    return "\n".join(lines)


def write(results: Sequence[Result], path: Path) -> None:
    """Write the results as CSV."""
    with writing_text(path) as file:
        writer = csv.writer(file)
        writer.writerow([field.name for field in fields(Result)])
        writer.writerows(astuple(result) for result in results)
