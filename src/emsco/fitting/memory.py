"""The checkpoint as a fit sees it: which run it belongs to, the recipe that was settled, sets and snapshots."""

from dataclasses import replace
import json
from typing import Any

import numpy as np

from emsco import __version__
from emsco.exceptions import CheckpointError
from emsco.fitting.probes import Scores
from emsco.fitting.rehearsal import Rehearsal
from emsco.fitting.settings import Settings
from emsco.scoring.cache import Store
from emsco.scoring.judge import Task
from emsco.search.auto import Auto
from emsco.search.base import History, RunJournal
from emsco.search.exact.proof import Exact
from emsco.stages.learners import check_learning
from emsco.stages.recipe import Recipe
from emsco.storage.checkpoint import Checkpoint, SearchJournal, Shelf, fingerprint, identity_of

_IN_PART = "in part"


class Memory:
    """What a fit keeps on disk.

    Parameters
    ----------
    checkpoint : Checkpoint
        Open.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    def seed(self, seed: int) -> int:
        """Return the seed of the run: the one it began with."""
        return self._checkpoint.seed(seed)

    def claim(self, settings: Settings, task: Task, rehearsal: Rehearsal) -> None:
        """Say which run this is; the file of another one is refused."""
        self._checkpoint.claim(_identity(settings, task, rehearsal))

    def recipe(self, settings: Settings) -> Recipe | None:
        """Return the recipe that was settled before, if one was."""
        text = self._checkpoint.fact("recipe")
        if text is None or self._checkpoint.fact("compared") == _IN_PART:
            return None
        try:
            record = json.loads(text)
            check_learning(record["encoding"], record["C"], automatic=False)
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"the checkpoint is damaged: its recipe is {text[:60]!r}; remove it.") from error
        return Recipe(settings.estimator, record["encoding"], float(record["C"]), settings.products)

    def scores(self) -> Scores:
        """Return how good recipes are that were compared before."""
        text = self._checkpoint.fact("scores") or "[]"
        try:
            scores = {(str(encoding), float(C)): float(score) for encoding, C, score in json.loads(text)}
            for encoding, C in scores:
                check_learning(encoding, C, automatic=False)
        except (ValueError, TypeError) as error:
            raise CheckpointError(f"the checkpoint is damaged: its scores are {text[:60]!r}; remove it.") from error
        return scores

    def keep_recipe(self, recipe: Recipe, scores: Scores, *, settled: bool) -> None:
        """Remember which recipe is in use, and whether it is settled: a time limit may leave some to be compared.

        What another recipe has trained is of no use to it.
        """
        text = json.dumps({"encoding": recipe.encoding, "C": recipe.C})
        if self._checkpoint.fact("recipe") not in (None, text):
            self._checkpoint.forget()
        self._checkpoint.set_fact("recipe", text)
        self._checkpoint.set_fact("scores", json.dumps([[*each, score] for each, score in scores.items()]))
        self._checkpoint.set_fact("compared", "all" if settled else _IN_PART)

    def keep_rows(self, n_rows: int) -> None:
        """Remember how many rows judge in the search; a time limit may leave another choice of them."""
        if self._checkpoint.fact("rows") not in (None, str(n_rows)):
            self._checkpoint.forget()
        self._checkpoint.set_fact("rows", str(n_rows))

    def store(self, final: Recipe | None = None) -> Store:
        """Return where the feature sets of the search, or of a final learner, are kept."""
        return self._checkpoint if final is None else Shelf(self._checkpoint, identity_of(final))

    def journal(self, history: History) -> RunJournal:
        """Return the snapshots of the search; its history is filled in."""
        return SearchJournal(self._checkpoint, history)


def _identity(settings: Settings, task: Task, rehearsal: Rehearsal) -> dict[str, str]:
    """Return what makes two runs the same; the number of workers and the time they may take do not."""
    encoding = "linear" if settings.encoding == "auto" else settings.encoding
    data: list[Any] = [
        array
        for part, _ in rehearsal.problems(encoding)
        for array in (part.train, part.y_train, part.validation, part.y_validation, part.unit_columns)
    ]
    prices = rehearsal.prices
    search = settings.search
    if isinstance(search, Auto):
        search = search.picked(task, fast=settings.estimator is None)
    if isinstance(search, Exact):
        search = replace(search, time_limit=None)
    learning = Recipe(settings.estimator, products=settings.products), settings.encoding, settings.C
    return {
        "version": __version__,
        "data": fingerprint(*data),
        "prices": fingerprint(prices.own_ticks, prices.shared_ticks, prices.groups, np.array(prices.scale)),
        "price model": f"{prices.overhead_ticks}, {'parallel' if prices.parallel else 'sum'}"
        + (f", {prices.sources}" if prices.sources else ""),
        "threshold": task.rule.key,
        "objectives": identity_of(settings.objectives),
        "search": repr(search),
        "max_stages": str(task.max_stages),
        "removal": str(settings.removal),
        "estimator": identity_of(learning),
        "settled by": _settled_by(settings),
        "seed": str(settings.seed),
    }


def _settled_by(settings: Settings) -> str:
    if settings.policy.tunes:
        return "worth at several thresholds"
    return "combined score" if settings.policy.set_aside is None else "log-likelihood"
