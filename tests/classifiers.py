"""The classifiers of the tests: one that is not about defaults, and one whose design branches."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
from sklearn.linear_model import LogisticRegression

from emsco import EMSCOClassifier, Evolution
from emsco.data.table import Table
from emsco.deployed.evaluation import result_of
from emsco.deployed.judging import decide_all
from emsco.designs.branched import Branched, BranchFigures, Route
from emsco.designs.partition import acquired_sets
from emsco.scoring.branches import branches_paid, dearest_paid
from emsco.scoring.front import stages_paid
from emsco.scoring.rejection import RejectRule
from emsco.stages.logistic import LogisticModel


def fixed(costs=None, **settings):
    """Return a classifier with logistic stages, one threshold and the best combined score, unless settings say more.

    The preset of the paper is taken as it is.
    """
    if settings.get("preset") == "paper":
        return EMSCOClassifier(costs, **settings)
    return EMSCOClassifier(costs, **{"threshold": 0.75, "choose": "combined", "final_estimator": "search", **settings})


def branching(X, y, rows, route, bars, *, costs=None, experts=None, estimator=None, **settings):
    """Return a fitted classifier of a few chains and a point that branches, which is in use; assembled by hand.

    ``bars`` has the thresholds of the stages of each branch. Classifiers of branches that are not shared are trained on
    half the rows.
    """
    settings = {"search": Evolution(population_size=20, max_generations=2), "random_state": 0, **settings}
    clf = fixed(costs, **settings).fit(X, y)
    rules = tuple(RejectRule.of([[bar] for bar in each]) for each in bars)
    branched = Branched(np.array(rows), route, rules, experts or ("shared",) * len(rows))
    deployed = with_branches(clf.deployed_, branched, X, y, estimator)
    clf._deploy(deployed, clf.threshold)
    return clf


def with_branches(deployed, branched, X, y, estimator=None):
    """Return a deployed classifier with one more point, which branches and is in use."""
    branched.check(deployed.prices.unit_columns)
    table, codes = Table(X), np.searchsorted(deployed.classes, np.asarray(y))
    Z, models = deployed.encoder.encode(table, slice(None)), dict(deployed.models)
    for b, row in enumerate(branched.rows):
        for j, (key, units) in enumerate(zip(branched.keys(b), acquired_sets(row[None])[0][0], strict=True)):
            columns = [c for unit in np.flatnonzero(units) for c in deployed.prices.unit_columns[unit]]
            own = j > 0 and branched.experts[b] != "shared"
            if key not in models:
                models[key] = _trained(Z[deployed.encoder.positions(columns)].T, codes, own, estimator)
    front, n = deployed.front, len(deployed.designs)
    designs = np.concatenate([deployed.designs, branched.summary[None]])
    again = np.append(np.arange(n), 0)
    longer = max(branched.n_stages, front.reached.shape[1])
    reached = np.pad(front.reached[again], ((0, 0), (0, longer - front.reached.shape[1])))
    mixed = replace(
        front[again.tolist()],
        designs=designs,
        reached=reached,
        paid=stages_paid(designs, deployed.prices, longer),
        branched=(None,) * n + (branched,),
    )
    rules = (*deployed.rules, deployed.rules[0])
    whole = replace(
        deployed, designs=designs, models=models, front=mixed, rules=rules, point=n, evaluation=None,
        branches=mixed.branched,
    )  # fmt: skip
    return _counted(whole, X, np.asarray(y))


def _counted(deployed, X, truth):
    """Fill in the figures of the last point, as if the first rows had validated it."""
    front, branched = deployed.front, deployed.branched
    n = front.n_samples
    table, truth = Table(X[:n]), truth[:n]
    decisions, paid, depths = decide_all(deployed, table)[-1]
    result = result_of(decisions, truth, deployed.classes, paid, branches=depths)
    inside, deepest = [decisions.branch == b for b in range(len(depths))], max(depths)
    right = decisions.conclusive & (decisions.label.data == truth)
    figures = BranchFigures(
        reached=np.array([[(rows & (decisions.stage >= j)).sum() for j in range(deepest)] for rows in inside]),
        n_conclusive=np.array([(decisions.conclusive & rows).sum() for rows in inside]),
        n_correct=np.array([(right & rows).sum() for rows in inside]),
        paid=branches_paid(branched, deployed.prices),
    )
    branched = replace(branched, figures=figures)
    n_stages = front.reached.shape[1]
    changed = {
        "coverage": result.coverage, "accuracy": result.accuracy, "mean_cost": decisions.cost.mean(),
        "reached": np.pad(figures.reached.sum(axis=0), (0, n_stages - deepest)), "confusion": result.confusion,
        "values": [result.coverage, result.accuracy, decisions.cost.mean()],
        "paid": dearest_paid(branched, deployed.prices, n_stages),
    }  # fmt: skip
    arrays = {name: getattr(front, name).copy() for name in changed}
    for name, value in changed.items():
        arrays[name][-1] = value
    front = replace(front, branched=(*front.branched[:-1], branched), **arrays)
    return replace(deployed, front=front, branches=front.branched)


def _trained(Z, codes, own, estimator):
    if own:
        half = np.arange(len(Z)) % 2 == 0
        half[[np.flatnonzero(codes == k)[0] for k in np.unique(codes)]] = True
        Z, codes = Z[half], codes[half]
    if estimator is not None:
        return deepcopy(estimator).fit(Z, codes)
    model = LogisticRegression(max_iter=1000).fit(Z, codes)
    return LogisticModel(np.ascontiguousarray(model.coef_), model.intercept_.copy())


def sick(n=240, seed=0):
    """Rows of a number, a category, a pattern of two and others; what matters depends on the category."""
    rng = np.random.default_rng(seed)
    import pandas as pd

    kind = rng.choice(["a", "b", "c"], n)
    X = pd.DataFrame({"age": rng.normal(50, 10, n).round(1), "kind": kind, "u": rng.integers(0, 2, n)})
    for name in "vwxz":
        X[name] = rng.normal(size=n).round(2)
    score = np.where(kind == "a", X["w"], np.where(kind == "b", X["x"], X["z"]))
    y = np.where(score + 0.3 * rng.normal(size=n) > 0, "sick", "well")
    X.loc[rng.random(n) < 0.05, "age"] = np.nan
    return X, y


SICK = {"age": 1, "kind": 2, "u": 3, "v": 4, "w": 5, "x": 6, "z": 7}
CATEGORY = Route("category", 1, (1,), groups=(("a",), ("b",), ()), default=2, n_branches=3)
CHAINS = [[0, 0, -1, 2, 1, -1, -1], [0, 0, -1, -1, -1, 1, -1], [0, 0, 1, -1, -1, -1, 2]]
BARS = [[0.9, 0.8, 0.6], [0.9, 0.0], [0.85, 0.7, 0.65]]


def routed(**settings):
    """The classifier of three branches by a category that most tests use, with its rows and labels."""
    X, y = sick()
    return branching(X, y, CHAINS, CATEGORY, BARS, costs=SICK, **settings), X, y
