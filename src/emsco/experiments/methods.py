"""The methods of the comparison, by name and setting; each rival with the full grid of its specification."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from math import ceil
from time import process_time
from typing import Any, Protocol, TypeAlias

import numpy as np
from sklearn.base import clone

from emsco.arrays import FloatArray
from emsco.baselines.astc import ASTC
from emsco.baselines.base import Rival
from emsco.baselines.best_subset import BestSubset
from emsco.baselines.budget_prune import BudgetPrune
from emsco.baselines.budget_rf import BudgetRF
from emsco.baselines.cact_lasso import CaCTLasso
from emsco.baselines.cascade import DetectorCascade
from emsco.baselines.cegb import CEGB
from emsco.baselines.co_t import CostOrdered
from emsco.baselines.cstc import CSTC
from emsco.baselines.cwcf import CWCF
from emsco.baselines.generic_ga import GenericGA
from emsco.baselines.greedy_miser import GreedyMiser
from emsco.baselines.ji_carin import JiCarin
from emsco.baselines.nsga2 import NSGA2
from emsco.baselines.optimal_tree import OptimalTree
from emsco.baselines.reject_rules import RejectRules
from emsco.baselines.sgr import SGR
from emsco.baselines.single_stage import SingleStage
from emsco.baselines.stage_lp import StageLP
from emsco.baselines.top_features import TopFeatures
from emsco.data.encoding import ENCODINGS, Encoder
from emsco.data.table import Table
from emsco.deployed.decide import Decisions
from emsco.estimators import EMSCOClassifier
from emsco.experiments.setting import PaperSetting
from emsco.search.bestfirst import BestFirst

PAPER_RULES, EQUAL, DEPLOYED = "paper", "equal", "deployed"
SETTINGS = {
    PAPER_RULES: "as in the paper: everybody trains on the training rows; EMSCO is preset='paper'",
    EQUAL: "like for like: everybody tunes on the validation rows, may choose the encoding of the numbers, and is "
    "trained again on training and validation rows",
    DEPLOYED: "as users would: EMSCO with its defaults and cross-validation, the others as in their publications, "
    "trained again on all rows after tuning",
}
ON_REQUEST = ("EMSCO, C=100", "EMSCO, standardised")  # methods that are compared only on request


class Method(Protocol):
    """A method of the comparison."""

    def fit(self, X: Any, y: Any, costs: Any, X_val: Any, y_val: Any) -> Any:
        """Train, and tune on the validation rows."""

    def decide(self, X: Any) -> Decisions:
        """Decide rows."""


Factory: TypeAlias = Callable[[PaperSetting, int, bool], Method]


class Paper:
    """EMSCO as in the paper: evolution, the paper's rule for the number of stages, the fittest design."""

    def __init__(self, setting: PaperSetting, seed: int, *, quick: bool, **parameters: Any) -> None:
        self._setting, self._seed, self._quick, self._parameters = setting, seed, quick, parameters

    def fit(self, X: Any, y: Any, costs: Any, X_val: Any, y_val: Any) -> "Paper":
        """Search designs on the validation rows."""
        n_features = np.asarray(X).shape[1]
        generations = 10 if self._quick else 150
        search = replace(self._setting.evolution, max_generations=generations, patience=20)
        self.classifier = EMSCOClassifier(
            costs,
            threshold=self._setting.threshold,
            max_stages=max(ceil(n_features / 2), 10),
            search=search,
            random_state=self._seed,
            preset="paper",
            **self._parameters,
        ).fit(X, y, X_val, y_val)
        self.settings_ = {"design": self.classifier.design_.tolist()}
        return self

    def decide(self, X: Any) -> Decisions:
        """Decide with the fittest design."""
        return self.classifier.decide(X)


class Ours(Paper):
    """EMSCO beyond the paper, by the paper's score: the paper's threshold, the point of the best combined score.

    ``folds`` says whether all rows validate in turns, as by default, or only the validation rows; the final stages are
    trained on all rows in either case.
    """

    folds = True

    def fit(self, X: Any, y: Any, costs: Any, X_val: Any, y_val: Any) -> "Ours":
        """Search, and train the stages on training and validation rows."""
        self.classifier = EMSCOClassifier(
            costs,
            threshold=self._setting.threshold,
            choose="combined",
            random_state=self._seed,
            **self._parameters,
        )
        if self._quick:
            self.classifier.set_params(search=BestFirst(max_designs=500))
        if self.folds:
            self.classifier.fit(stacked(X, X_val), np.concatenate([y, y_val]))
        else:
            self.classifier.set_params(refit=True, validation=1 / 3).fit(X, y, X_val, y_val)
        self.settings_ = {"design": self.classifier.design_.tolist()}
        return self


class OursLikeOthers(Ours):
    """The same with the rows of the other methods: the validation rows tune, then all of them train."""

    folds = False


Parts: TypeAlias = dict[tuple[str, bool], tuple[Rival, float]]  # see ``Tuned``


class Tuned:
    """A rival that is tuned on validation rows and then, except with the paper's rules, trained on them, too.

    If it then reads nothing any more, the model of the training rows stays.

    Parameters
    ----------
    rival : Rival
    encodings : sequence of str
        Encodings of numbers to choose from, by the rival's criterion on the validation rows.
    again : bool
        Whether to train again on all rows after tuning.
    parts : dict
        What other settings of the same rival have done on the same rows: by encoding, tuned or also trained again, the
        rival and its processor time. Here they find what they have in common, and add to it.

    Attributes
    ----------
    shared_ : float
        Processor time of the parts that were there before.
    """

    def __init__(
        self, rival: Rival, encodings: Sequence[str] = ("linear",), *, again: bool = True, parts: Parts | None = None
    ) -> None:
        self._rival, self._encodings, self._again = rival, tuple(encodings), again
        self._parts: Parts = {} if parts is None else parts

    def fit(self, X: Any, y: Any, costs: Any, X_val: Any, y_val: Any) -> "Tuned":
        """Tune with each encoding, keep the best, and train it on all rows."""
        self.shared_ = 0.0
        best: tuple[bool, float, float] | None = None
        for encoding in distinct(self._encodings, X, X_val):
            fresh: Rival = clone(self._rival)
            rival = self._part(encoding, False, partial(fresh.fit, X, y, costs, X_val, y_val, encoding=encoding))
            score = max(
                (row["mean_cost"] > 0, float(row["score"]), -float(row["mean_cost"])) for row in rival.table_
            )  # as the rival chooses among its settings: something that reads nothing comes last
            if best is None or score > best:
                best = score
                self.rival_: Rival = rival
                self.settings_ = {**rival.settings_, "encoding": encoding}
        if self._again:
            rows, labels = stacked(X, X_val), np.concatenate([y, y_val])
            train = partial(trained_again, self.rival_, rows, labels, costs)
            self.rival_ = self._part(self.settings_["encoding"], True, train)
        return self

    def _part(self, encoding: str, again: bool, train: Callable[[], Rival]) -> Rival:
        """Return a rival that was trained before, or train it."""
        if (encoding, again) in self._parts:
            rival, seconds = self._parts[encoding, again]
            self.shared_ += seconds
            return rival
        started = process_time()
        rival = train()
        self._parts[encoding, again] = rival, process_time() - started
        return rival

    def decide(self, X: Any) -> Decisions:
        """Decide with the last model."""
        return self.rival_.decide(X)


def trained_again(tuned: Rival, rows: Any, labels: Any, costs: Any) -> Rival:
    """Return a tuned rival, trained on other rows unless it then reads nothing, which is no answer: Rival._choose."""
    again = copy(tuned).refit(rows, labels, costs)
    return again if again.trace(rows).read.any() or not tuned.trace(rows).read.any() else tuned


def distinct(encodings: Sequence[str], X: Any, X_val: Any) -> Iterator[str]:
    """Give the encodings that differ on these rows, the first of equal ones: columns of 0 and 1 have only one."""
    if len(encodings) == 1:
        yield from encodings
        return
    table, more = Table(X), Table(X_val)
    seen: list[tuple[FloatArray, FloatArray]] = []
    for encoding in encodings:
        encoder = Encoder(table, slice(None), more, encoding=encoding)
        encoded = encoder.encode(table, slice(None)), encoder.encode(more, slice(None))
        if not any(all(map(np.array_equal, encoded, other)) for other in seen):
            seen.append(encoded)
            yield encoding


def stacked(X: Any, more: Any) -> Any:
    """Return the rows of one table followed by those of another."""
    if isinstance(X, np.ndarray):
        return np.vstack([X, more])
    import pandas

    return pandas.concat([X, more])


def methods(setting: str, parts: Parts | None = None) -> dict[str, Factory]:
    """Return the methods of a setting by name, EMSCO first; with the parts that other settings have trained."""
    ours: dict[str, Factory] = {
        PAPER_RULES: lambda s, seed, quick: Paper(s, seed, quick=quick),
        EQUAL: lambda s, seed, quick: OursLikeOthers(s, seed, quick=quick, final_estimator="search"),
        DEPLOYED: lambda s, seed, quick: Ours(s, seed, quick=quick),
    }
    rivals: dict[str, Factory] = {name: _prepared(setting, name, parts) for name in RIVALS}
    return {
        "EMSCO": ours[setting],
        "EMSCO, C=100": lambda s, seed, quick: Paper(s, seed, quick=quick, encoding="linear", C=100.0),
        "EMSCO, standardised": lambda s, seed, quick: Paper(s, seed, quick=quick, encoding="linear"),
        **rivals,
    }


def _prepared(setting: str, name: str, parts: Parts | None) -> Factory:
    """Return a rival as a setting has it."""

    def make(s: PaperSetting, seed: int, quick: bool) -> Method:
        rival = RIVALS[name](s, seed)
        if quick:
            rival.set_params(**QUICK.get(name, {}))
        encodings = ENCODINGS if setting == EQUAL and name not in ANY_SCALE else ("linear",)
        return Tuned(rival, encodings[:2] if quick else encodings, again=setting != PAPER_RULES, parts=parts)

    return make


def _greedy_miser(s: PaperSetting, seed: int) -> Rival:
    grid: dict[str, Any] = {
        "learning_rates": (0.05, 0.1, 0.3), "split_levels": (1, 2, 3), "min_samples_leaf": (1, 5, 20)
    }  # fmt: skip
    return GreedyMiser(threshold=s.threshold, random_state=seed, **grid)


def _nsga2(s: PaperSetting, seed: int) -> Rival:
    e = s.evolution
    return NSGA2(
        threshold=s.threshold, population_size=e.population_size, max_generations=150, mutation_rate=e.mutation_rate,
        recombination_rate=e.recombination_rate, stage_bias=e.stage_bias, random_state=seed,
    )  # fmt: skip


RIVALS: Mapping[str, Callable[[PaperSetting, int], Rival]] = {
    "Single-Stage": lambda s, seed: SingleStage(threshold=0.0, random_state=seed),
    "Single-Stage, reject": lambda s, seed: SingleStage(threshold=s.threshold, random_state=seed),
    "CO-T": lambda s, seed: CostOrdered(threshold=s.threshold, random_state=seed),
    "CaCT LASSO": lambda s, seed: CaCTLasso(threshold=s.threshold, random_state=seed),
    "GM*": _greedy_miser,
    "CSTC*": lambda s, seed: CSTC(threshold=s.threshold, random_state=seed),
    "CEGB*": lambda s, seed: CEGB(threshold=s.threshold, random_state=seed),
    "Reject rules": lambda s, seed: RejectRules(threshold=s.threshold, random_state=seed),
    "Stage LP": lambda s, seed: StageLP(threshold=s.threshold, random_state=seed),
    "BudgetPrune": lambda s, seed: BudgetPrune(threshold=s.threshold, random_state=seed),
    "BudgetRF": lambda s, seed: BudgetRF(threshold=s.threshold, random_state=seed),
    "ASTC*": lambda s, seed: ASTC(threshold=s.threshold, random_state=seed),
    "Ji & Carin": lambda s, seed: JiCarin(threshold=s.threshold, policies=("myopic", "look-ahead"), random_state=seed),
    "CWCF*": lambda s, seed: CWCF(threshold=s.threshold, random_state=seed),
    "SGR": lambda s, seed: SGR(threshold=s.threshold, random_state=seed),
    "LightGBM, top k": lambda s, seed: TopFeatures(threshold=s.threshold, random_state=seed),
    "Best subset": lambda s, seed: BestSubset(threshold=s.threshold, random_state=seed),
    "STreeD*": lambda s, seed: OptimalTree(threshold=s.threshold, random_state=seed),
    "Cascade*": lambda s, seed: DetectorCascade(threshold=s.threshold, random_state=seed),
    "Generic GA": lambda s, seed: GenericGA(threshold=s.threshold, random_state=seed),
    "NSGA-II": _nsga2,
}
# Trees split a column by its order, which no encoding changes.
ANY_SCALE = {"GM*", "CEGB*", "BudgetPrune", "BudgetRF", "LightGBM, top k", "STreeD*"}
# Small grids for a check of everything in minutes.
QUICK: Mapping[str, dict[str, Any]] = {
    "CaCT LASSO": {"penalties": (0.5, 2.0, 8.0, 32.0)},
    "GM*": {"price_weights": (0.0, 0.1, 1.0), "rounds": (20, 50), "learning_rates": 0.1, "split_levels": 3,
            "min_samples_leaf": 5},
    "CSTC*": {"price_weights": (0.1, 1.0), "levels": (2,), "omegas": ("leaves",), "sparsities": (1e-3,),
              "temperatures": (1.0,), "C": (1.0,)},
    "CEGB*": {"price_weights": (0.0, 0.1, 1.0), "num_leaves": (8,), "n_rounds": 50, "learning_rates": (0.1,),
              "min_rows_in_leaf": (5,)},
    "Reject rules": {"price_weights": (0.0, 0.1)},
    "Stage LP": {"price_weights": (0.1,), "inputs": ("confidence",)},
    "BudgetPrune": {"price_weights": (0.0, 0.1), "n_trees": (10,), "max_depths": (6,)},
    "BudgetRF": {"budgets": (0.2,), "splits": ("entropy-expected",), "price_powers": (0.5,), "max_trees": 5},
    "ASTC*": {"budgets": (0.1, 0.4), "levels": (2,), "C": (1.0,)},
    "Ji & Carin": {"price_weights": (0.1, 1.0), "policies": ("myopic",), "max_components": 1},
    "CWCF*": {"price_weights": (0.1,), "n_updates": 16, "n_warm": 20, "width": 16},
    "SGR": {"C": (1.0,)},
    "LightGBM, top k": {"n_units": (1, 3), "orders": ("gain",), "learning_rates": (0.1,), "n_rounds": 50,
                        "num_leaves": (8,), "min_rows_in_leaf": (5,)},
    "Best subset": {"n_units": (1, 3), "C": (1.0,)},
    "STreeD*": {"price_weights": (0.1, 1.0), "max_depths": (2,), "min_rows_in_leaf": (5,), "smoothings": (0.0,)},
    "Cascade*": {"detections": (0.9, 0.99), "max_stages": (2,), "C": (1.0,)},
    "Generic GA": {"population_size": 50, "max_generations": 10},
    "NSGA-II": {"population_size": 50, "max_generations": 10},
}  # fmt: skip
