"""A design that somebody already has: its stages are trained, and a promise is calibrated; nothing is searched."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
import warnings

import numpy as np

from emsco.checks import check_n_jobs, check_seed
from emsco.data.labels import check_target
from emsco.data.splits import split_rows
from emsco.data.table import Rows
from emsco.deployed.model import Deployed, Origin
from emsco.designs.partition import check_design, distinct_sets, set_key
from emsco.exceptions import InvalidParameterError, SuspiciousColumnWarning
from emsco.fitting.aside import set_aside
from emsco.fitting.pipeline import Given
from emsco.fitting.promising import answering, promise_of_each
from emsco.fitting.rehearsal import Rehearsal
from emsco.fitting.training import train_sets
from emsco.prices.prices import resolve
from emsco.promises.policy import ThresholdPolicy, policy_of
from emsco.stages.learners import check_estimator, check_learning, check_products
from emsco.stages.recipe import Recipe

_PILOT = 1 / 3  # of the rows choose, before a last training, which thresholds are calibrated


def fit_design(parameters: Mapping[str, Any], given: Given) -> Deployed:
    """Train the stages of a given design on all rows; those that calibrate a ``Guarantee`` excepted."""
    policy = _policy(parameters["threshold"])
    check_learning(parameters["encoding"], parameters["C"], automatic=False)
    products = check_products(parameters["products"], parameters["estimator"])
    encoding, C = parameters["encoding"], float(parameters["C"])
    recipe = Recipe(check_estimator(parameters["estimator"], "estimator"), encoding, C, products)
    seed, n_jobs = check_seed(parameters["random_state"]), check_n_jobs(parameters["n_jobs"])
    table = given.table
    codes, classes = check_target(given.y, table.n_rows)
    prices = resolve(parameters["costs"], table.names)
    design = np.zeros(prices.n_units, dtype=np.int64)
    if parameters["design"] is not None:
        design = check_design(parameters["design"], prices.unit_names)
    rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(3)[2])
    aside = set_aside(policy, table, codes, classes, given.X_cal, given.y_cal, rng)
    policy.search_rule(aside.classes, 0.0)  # the classes that a threshold names are those of the data, or it is refused
    origin = Origin("MultiStageClassifier", parameters, encoding=encoding, C=C, names_are_text=given.names_are_text)

    def trained(rows: Rows) -> Deployed:
        rehearsal = Rehearsal(aside.table, aside.codes, aside.classes.size, prices, None, learn=rows)
        setup = rehearsal.prepared(recipe, seed=seed, n_jobs=n_jobs)
        sets = distinct_sets(design[None])
        models = dict(zip(map(set_key, sets), train_sets(setup.trainer, sets), strict=True))
        named, rules = table.named, ()
        return Deployed(aside.classes, setup.encoder, named, prices, design[None], models, policy, rules, origin)

    if aside.calibration is None:
        deployed = trained(aside.learn)
        return replace(deployed, rules=policy.rules(deployed.classes, design[None], None, ()))
    everyone = np.arange(table.n_rows)[aside.learn]
    rest, pilot = (everyone[rows] for rows in split_rows(aside.codes[everyone], _PILOT, rng, aside.classes))
    rehearsed = trained(rest)
    encoded = rehearsed.encoder.encode(aside.table, pilot)
    asked, n_rows = answering(rehearsed, encoded, aside.codes[pilot]), aside.calibration.truth.size
    plans = policy.plans(design[None], asked, n_classes=aside.classes.size, n_rows=n_rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SuspiciousColumnWarning)  # said once
        deployed = trained(aside.learn)
    promises = promise_of_each(deployed, plans, aside)
    rules = policy.rules(deployed.classes, design[None], None, promises)
    return replace(deployed, promises=promises, rules=rules)


def _policy(threshold: Any) -> ThresholdPolicy:
    policy = policy_of(threshold)
    if policy.tunes:
        raise InvalidParameterError(
            f"cannot be {threshold!r} for a given design, which no rows judge; give a number, one per class or stage, "
            "or a Guarantee.",
            parameter="threshold",
        )
    return policy
