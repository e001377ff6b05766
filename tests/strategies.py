"""What the property tests draw: designs, populations, objectives, problems."""

import os

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
import numpy as np

from emsco.designs.partition import compress
from emsco.prices.prices import Prices, resolve
from emsco.stages.logistic import LogisticTrainer
from emsco.stages.problem import Problem


def examples(n):
    """Settings of a property test: so many examples in CI, a fifth of them elsewhere."""
    return settings(max_examples=n if os.environ.get("EMSCO_THOROUGH") else n // 5)


def seeds():
    return st.integers(0, 2**32 - 1)


@st.composite
def populations(draw, max_stages=5, min_features=1, max_features=9, max_rows=12, removal=False):
    """Valid populations: integer rows without gaps; with removal, -1 in all but one place at most."""
    shape = (draw(st.integers(1, max_rows)), draw(st.integers(min_features, max_features)))
    rows = draw(hnp.arrays(np.int64, shape, elements=st.integers(-1 if removal else 0, max_stages - 1)))
    if removal:
        bought = draw(hnp.arrays(np.int64, shape[:1], elements=st.integers(0, shape[1] - 1)))
        rows[np.arange(shape[0]), bought] = np.maximum(rows[np.arange(shape[0]), bought], 0)
    return compress(rows)


@st.composite
def vectors(draw, max_rows=25):
    """Tallies as (n_conclusive, n_correct, total_cost) with many ties, and their number of samples."""
    n_samples = draw(st.integers(1, 8))
    n_rows = draw(st.integers(1, max_rows))
    rows = []
    for _ in range(n_rows):
        conclusive = draw(st.integers(0, n_samples))
        rows.append((conclusive, draw(st.integers(0, conclusive)), draw(st.integers(0, 6))))
    return np.array(rows, dtype=np.int64), n_samples


def problem(seed, *, n_features=4, n_train=40, n_validation=30, n_classes=2, costs=None):
    """A noisy linear problem, one encoded column per unit, standardised like the encoder does."""
    rng = np.random.default_rng(seed)
    n = n_train + n_validation
    X = rng.normal(size=(n, n_features))
    X[:, 0] = np.round(X[:, 0])  # repeated values make equal confidences
    scores = X @ rng.normal(size=(n_features, n_classes)) + rng.normal(size=(n, n_classes))
    y = scores.argmax(axis=1)
    for part in (slice(0, n_train), slice(n_train, n)):
        y[part][:n_classes] = np.arange(n_classes)  # every class in both parts
    train = X[:n_train]
    X = (X - train.mean(axis=0)) / train.std(axis=0)
    if costs is None:
        costs = rng.integers(1, 6, size=n_features)
    prices = resolve(costs, [f"x{i}" for i in range(n_features)])
    return Problem(
        train=np.ascontiguousarray(X[:n_train].T),
        y_train=y[:n_train].copy(),
        validation=np.ascontiguousarray(X[n_train:].T),
        y_validation=y[n_train:].copy(),
        n_classes=n_classes,
        unit_columns=np.eye(n_features, dtype=np.bool_),
        prices=prices,
    )


def has_ties(p):
    """Whether a feature set gives a sample two classes that are equally probable: rounding tells which is the label."""
    sets = ((np.arange(1, 2 ** p.train.shape[0])[:, None] >> np.arange(p.train.shape[0])) & 1).astype(np.bool_)
    trainer = LogisticTrainer(p)
    for units, model in zip(sets, trainer.models(sets, trainer.train(sets)), strict=True):
        second, first = np.sort(model.predict_proba(p.validation[units].T), axis=1)[:, -2:].T
        if (first - second).min() < 1e-7:
            return True
    return False


def bill(prices, threshold):
    """What `reference.walk` wants to know of prices and threshold: costs, threshold, shared costs, price model.

    What a derived unit is computed from is a cost that it shares with each of its sources, and with their groups.
    """
    own = prices.own_ticks.tolist()
    derived = [[d for d, sources in enumerate(prices.sources) if u in sources] for u in range(prices.n_units)]
    shared = []
    for members, cost in zip(prices.groups.T, prices.shared_ticks.tolist(), strict=True):
        units = np.flatnonzero(members).tolist()
        shared.append((sorted({*units, *(d for u in units for d in derived[u])}), cost))
    for unit, units in enumerate(derived):
        if units:
            shared.append(([unit, *units], own[unit]))
            own[unit] = 0
    return own, threshold, shared, prices.overhead_ticks, prices.parallel


@st.composite
def price_models(draw, n_units, names=None):
    """Prices of x0, x1, ... with free units, groups, overhead, in parallel or not, and derived units: combined."""
    names = names or [f"x{i}" for i in range(n_units)]
    numbers = st.sampled_from([0, 0, 1, 1, 2, 3, 10, 0.25])
    own = {name: draw(numbers) for name in names}
    of_group = [draw(st.sampled_from(["", "", "a", "b"])) for _ in names]
    groups = {g: [n for n, mine in zip(names, of_group, strict=True) if mine == g] for g in set(of_group) - {""}}
    shared = {g: draw(numbers) for g in sorted(groups)}
    parallel, alone = draw(st.booleans()), [name for name, g in zip(names, of_group, strict=True) if not g]
    computed = [] if parallel else draw(st.lists(st.sampled_from(alone), unique=True, max_size=2)) if alone else []
    given = [name for name in names if name not in computed]
    some = st.lists(st.sampled_from(given), unique=True, min_size=1) if given else st.nothing()
    derived = {name: draw(some) for name in computed} if given else {}
    return Prices(
        price={n: own[n] + shared.get(g, 0) for n, g in zip(names, of_group, strict=True) if n not in derived},
        groups=groups,
        discount={name: own[name] for name, g in zip(names, of_group, strict=True) if g},
        overhead=draw(st.sampled_from([0, 0, 0.5, 1, 7])),
        parallel=parallel,
        derived=derived,
    )
