"""MultiStageClassifier (a given design) and EMSCOClassifier (a searched one), as scikit-learn estimators."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, Self
import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from emsco import __version__
from emsco.arrays import BoolArray, IntArray
from emsco.checks import check_n_jobs, check_seed
from emsco.data.labels import check_target, known_codes
from emsco.data.splits import check_columns, is_folds, make_folds, split_rows
from emsco.data.table import Rows, Table, check_size
from emsco.deployed.session import plain_classes
from emsco.deployed.staged import StagedClassifier
from emsco.designs.partition import (
    acquired_sets,
    check_design,
    check_max_stages,
    count_solutions,
    distinct_sets,
    set_key,
)
from emsco.exceptions import (
    InvalidInputError,
    InvalidParameterError,
    NoSuchPointError,
    SearchInterruptedWarning,
    SuspiciousColumnWarning,
)
from emsco.fitting.finishing import SETS_AT_ONCE, finish
from emsco.fitting.probes import probing
from emsco.fitting.progress import PhaseLine, ProgressLine
from emsco.fitting.searching import History, Settings, run
from emsco.fitting.training import Rehearsal, Setup, check_calibrable, prepare, settle
from emsco.prices.prices import Costs, PriceList, check_validation_size, resolve
from emsco.promises.calibration import CalibrationRows, plan_checks, set_aside
from emsco.promises.guarantee import Guarantee, Plan, Promise, check, hopeful
from emsco.promises.thresholds import SEARCHED, is_auto, searched_with, untuned
from emsco.scoring.front import Front, check_choice
from emsco.scoring.judge import Judge, Task
from emsco.scoring.objectives import PAPER, Aims, check_objectives
from emsco.scoring.rejection import RejectRule, check_rule, resolve_rule
from emsco.search.bestfirst import BestFirst
from emsco.search.evolution import Evolution
from emsco.search.exact.proof import Exact, estimate_seconds, is_affordable
from emsco.stages.base import StageModel, StageTrainer
from emsco.stages.estimator import check_estimator_usable
from emsco.stages.recipe import Recipe, check_estimator, check_learning, check_products
from emsco.storage.checkpoint import Checkpoint, SearchJournal, Shelf, fingerprint, identity_of

_FEW_UNITS = 14  # all their feature sets are trained in seconds
_CALIBRATION_FOLDS = 3  # that calibrate the probabilities of final stages
_PILOT = 1 / 3  # of the rows of a given design choose, before a last training, which thresholds are calibrated


# What parameters left at None stand for.
_PRESETS: dict[str, dict[str, Any]] = {
    "best": {"search": "auto", "removal": True, "validation": 5, "encoding": "auto", "C": "auto", "choose": "combined"},
    "paper": {
        "search": Evolution(), "removal": False, "validation": 1 / 3, "encoding": "linear", "C": 1.0,
        "choose": "fitness",
    },
}  # fmt: skip


class MultiStageClassifier(StagedClassifier):
    """A classifier that buys its features in stages, by a design you already have.

    Parameters
    ----------
    design : array-like of int of shape (n_features,), or list of lists of names
        The stage, from 0, in which each feature is bought, -1 if never; or the names bought stage after stage. None:
        everything in one stage.
    costs : None, array-like, mapping or Prices
        Price of each column, in order or by name, or of units that yield several. None: every column costs 1.
    threshold : float, mapping, sequence or Guarantee
        A row leaves with a label as soon as its top class probability is at least this: one number; a number per
        class, by label, of which that of the top class counts; numbers for stage after stage, of which the last one
        holds for all further stages; or ``Guarantee(...)``, which calibrates them.
    estimator : classifier, "boosting" or None
        Trained at each stage on the features bought so far. None: l2 logistic regression.
    random_state : int, RandomState or None
        Seeds estimators that are random.
    n_jobs : int or None
        Workers that train the stages.
    encoding : "linear", "rank" or "spline"
        How stages see a column of numbers: standardised, as its rank among the training values, or that with bends.
    C : float
        Inverse strength of the regularisation of logistic stages.
    products : bool
        Whether logistic stages see the products of any two encoded columns, too.

    Attributes
    ----------
    stages_ : list of Stage
        What each stage buys, its price and its trained model.
    guarantee_ : Promise
        What is promised, and how it was checked; only if the threshold is a ``Guarantee``.
    design_ : ndarray of shape (n_features,)
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had column names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> design = [["sepal length (cm)", "sepal width (cm)"], ["petal length (cm)", "petal width (cm)"]]
    >>> clf = MultiStageClassifier(design=design, costs=[1, 1, 5, 5], threshold=0.8).fit(X, y)
    >>> clf.decide(X)
    <Decisions of 150 rows: 125 conclusive, mean cost 7.6, left at stages [66, 84]>
    """

    def __init__(
        self,
        design: Any = None,
        costs: Costs = None,
        threshold: Any = 0.75,
        estimator: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        encoding: str = "linear",
        C: float = 1.0,
        products: bool = False,
    ) -> None:
        self.encoding = encoding
        self.C = C
        self.products = products
        self.design = design
        self.costs = costs
        self.threshold = threshold
        self.estimator = estimator
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: ArrayLike, *, X_cal: Any = None, y_cal: ArrayLike | None = None) -> Self:
        """Train the stages on all rows; those that calibrate a ``Guarantee`` excepted.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
            Numbers, booleans, text or categories; missing values are allowed.
        y : array-like of shape (n_rows,)
        X_cal, y_cal : like X and y, optional
            Rows that calibrate a ``Guarantee``, drawn as new rows will be. Without them, a share of X does.

        Returns
        -------
        self
        """
        if is_auto(self.threshold):
            raise InvalidParameterError(
                "the threshold 'auto' is for EMSCOClassifier, which has rows that judge; give a given design a number, "
                "one per class or stage, or a Guarantee."
            )
        check_rule(_searched(self.threshold))
        check_learning(self.encoding, self.C, automatic=False)
        seed = check_seed(self.random_state)
        n_jobs = check_n_jobs(self.n_jobs)
        table = self._read_table(X)
        codes, classes = check_target(y, table.n_rows)
        prices = resolve(self.costs, table.names)
        design = np.zeros(prices.n_units, dtype=np.int64)
        if self.design is not None:
            design = check_design(self.design, prices.unit_names)
        rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(3)[2])
        parts = set_aside(self.threshold, table, codes, classes, X_cal, y_cal, rng)
        table, codes, classes, calibration = parts.table, parts.codes, parts.classes, parts.calibration
        resolve_rule(_searched(self.threshold), classes)
        self.classes_, self._prices, self._named = classes, prices, table.named
        products = check_products(self.products, self.estimator)
        recipe = Recipe(check_estimator(self.estimator, "estimator"), self.encoding, float(self.C), products)
        plans: list[Plan] = []

        def train(rows: Rows) -> None:
            rehearsal = Rehearsal(table, codes, classes.size, prices, None, learn=rows)
            setup = prepare(rehearsal, recipe, seed=seed, n_jobs=n_jobs)
            self._encoder = setup.encoder
            sets = distinct_sets(design[None])
            self._models = dict(zip(map(set_key, sets), _train(setup.trainer, sets), strict=True))

        if calibration is not None:
            everyone = np.arange(table.n_rows)[parts.learn]
            rest, pilot = (everyone[rows] for rows in split_rows(codes[everyone], _PILOT, rng, classes))
            train(rest)
            answers = self._answering(self._encoder.encode(table, pilot), codes[pilot])
            plans = plan_checks(self.threshold, design[None], answers, calibration, classes.size)
        with warnings.catch_warnings():
            if calibration is not None:
                warnings.simplefilter("ignore", SuspiciousColumnWarning)  # said once
            train(parts.learn)
        self._promises = _promises(self, plans, design[None], calibration)
        self._deploy(design)
        self._warn_of_shortage()
        return self


class EMSCOClassifier(StagedClassifier):
    """Searches the ways to buy features in stages, and deploys one of the non-dominated ones.

    Parameters
    ----------
    costs : None, array-like, mapping or Prices
        Price of each column, in order or by name, or of units that yield several. None: every column costs 1.
    threshold : float, mapping, sequence, Guarantee or "auto"
        A row leaves with a label as soon as its top class probability is at least this: one number; a number per
        class, by label, of which that of the top class counts; numbers for stage after stage, of which the last one
        holds for all further stages; or ``Guarantee(...)``, which calibrates them. "auto": each point of the front has
        thresholds of its own, one for its early exits and one for its last stage, chosen on the rows that score; for
        those who know what they can spend and how many labels they need rather than how sure a label must be.
    estimator : classifier, "boosting" or None
        Trained at each stage on the features bought so far. None: l2 logistic regression, trained in batches; any
        scikit-learn classifier with ``predict_proba`` works, one clone per feature set; "boosting" is scikit-learn's
        histogram gradient boosting.
    max_stages : int or None
        Most stages of a design. None: half the features, but at least 10 and at most 30. With many columns, few stages
        make the search much faster.
    removal : bool or None
        Whether designs may leave features out: these are never bought, and the last stage knows all that are.
    search : "auto", Exact, BestFirst, Evolution or None
        How to search. ``Exact()`` proves the frontier, where the space is small enough; ``BestFirst()`` finds most of
        it; ``Evolution()`` is the paper's search. "auto": ``Exact()`` where that is estimated to take seconds, else
        ``BestFirst()``; with an ``estimator``, which makes feature sets costly, ``Evolution()``.
    validation : float, int, splitter or None
        A fraction: this share of the rows, of each class, scores the designs and trains none. A whole number: so many
        folds take turns, so that every row is scored by stages trained without it, and the final stages are trained on
        all rows. A splitter of scikit-learn: its folds. If ``fit`` is given rows to score on, these are used instead.
    choose : "fitness", "combined", "knee", mapping, callable or None
        Which point of the front to deploy: the fittest, the one of the best combined score, the knee, what
        ``front_.choose`` returns for the arguments in a mapping (``best`` being that of the preset where it is not
        said), or what a function of the front returns, an index. Of a ``Guarantee``, and but for a function, among
        the points of which rows that do not calibrate say that the promise can be made.
        If no point is within the limits of a mapping, ``fit`` raises `NoSuchPointError` with the fittest in use.
    refit : bool
        Train the deployed stages again on all rows, training and validation.
    random_state : int, RandomState or None
        Seeds the split, the search, and estimators that are random.
    n_jobs : int or None
        Workers that train feature sets; the result is the same for any number.
    verbose : bool
        Print the progress of the search to standard error.
    cache_bytes : int
        Bound of the memory that remembers trained feature sets.
    encoding : "linear", "rank", "spline", "auto" or None
        How stages see a column of numbers: standardised; as its rank among the training values, with a column that
        says 0 where many cells are; the rank with bends; or whichever of these scores best in random designs.
    C : float, "auto" or None
        Inverse strength of the regularisation of logistic stages; "auto": what scores best in random designs.
    final_estimator : classifier, "boosting" or None
        What the stages of the front are trained with once the search is over. They are scored again, and what is
        dominated then is left out: a search with a fast learner, stages of a strong one. None: as in the search.
    calibration : "sigmoid", "isotonic", "temperature" or None
        How the probabilities of the final stages are calibrated, on folds of the training rows.
    preset : "best" or "paper"
        What ``removal``, ``search``, ``validation``, ``choose``, ``encoding`` and ``C`` are where they are None. In
        "best": True, "auto", 5 folds, "combined", "auto", "auto". In "paper", as published: False, ``Evolution()``, a
        third of the rows, "fitness", "linear", 1.
    products : bool
        Whether logistic stages see the products of any two encoded columns, too: two features that say more together
        than each alone. Of n columns that makes n (n + 1) / 2, which takes accordingly longer.
    objectives : None or sequence of str, Loss and Objective
        What designs are compared by, two or more of "coverage", "accuracy", "cost", "fpr" and "fnr" (wrong labels among
        all rows of a class, the positive one being ``classes_[1]``; a rejected row is no error), "stages" (their
        number), "worst_class_accuracy" (the least share of right labels over the true classes), `Loss` and `Objective`.
        None: coverage, accuracy and cost. ``Exact()`` proves any two or all three of these, and no others.

    Attributes
    ----------
    front_ : Front
        The non-dominated designs found, fittest first, with their figures on the rows that score.
    point_ : int
        The point of the front in use.
    design_ : ndarray of shape (n_features,)
        Its stage, from 0, of each feature; -1: never bought.
    stages_ : list of Stage
        What each of its stages buys, its price and its trained model.
    guarantee_ : Promise
        What is promised of the point in use, and how it was checked; only if the threshold is a ``Guarantee``.
    search_ : Exact, BestFirst or Evolution
        How it was searched.
    search_seconds_ : float
    encoding_ : str
    C_ : float
        How the stages were trained, where that was "auto".
    validation_ : int, float or "given"
        How the rows behind the figures of ``front_`` were judged: by so many folds, each row by stages trained without
        it; by stages trained on the others, this share of the rows; or rows given to ``fit``. None if a file of an
        older version does not say.
    finished_ : bool
        Whether the stages in use are those of ``final_estimator`` and ``calibration``, if these are set; False if their
        training was interrupted.
    history_ : ndarray of shape (n_steps, 3)
        How the search went: designs scored, distinct vectors on the front and feature sets trained after each
        generation of an evolution or batch of a best-first search; empty after an exact one.
    n_generations_ : int
        Generations of an evolution, batches of a best-first search; 0 after an exact one.
    n_feature_sets_ : int
        Feature sets trained by the search.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had column names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = EMSCOClassifier(costs=[1, 1, 5, 5], threshold=0.8, random_state=0).fit(X, y)
    >>> cheapest = int(clf.front_.mean_cost.argmin())
    >>> clf.use(cheapest).stages_[0].features
    ('x0',)
    """

    def __init__(
        self,
        costs: Costs = None,
        threshold: Any = 0.75,
        estimator: Any = None,
        max_stages: int | None = None,
        removal: bool | None = None,
        search: Any = None,
        validation: Any = None,
        choose: str | Mapping[str, Any] | Callable[[Front], int] | None = None,
        refit: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        cache_bytes: int = 2**28,
        encoding: str | None = None,
        C: float | str | None = None,
        final_estimator: Any = None,
        calibration: str | None = None,
        objectives: Sequence[Any] | None = None,
        preset: str = "best",
        products: bool = False,
    ) -> None:
        self.preset = preset
        self.products = products
        self.encoding = encoding
        self.C = C
        self.final_estimator = final_estimator
        self.calibration = calibration
        self.costs = costs
        self.threshold = threshold
        self.estimator = estimator
        self.max_stages = max_stages
        self.removal = removal
        self.search = search
        self.validation = validation
        self.choose = choose
        self.refit = refit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.cache_bytes = cache_bytes
        self.objectives = objectives

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
        *,
        X_cal: Any = None,
        y_cal: ArrayLike | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Self:
        """Search designs and train the stages of all that are on the front.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
            Numbers, booleans, text or categories; missing values are allowed.
        y : array-like of shape (n_rows,)
        X_val, y_val : like X and y, optional
            Rows that score the designs. Without them, rows of X do, as ``validation`` says.
        X_cal, y_cal : like X and y, optional
            Rows that calibrate a ``Guarantee``, drawn as new rows will be. Without them, a share of X does.
        checkpoint : path-like or None
            File that remembers the search. If the run is killed, the same call goes on from there, and ends as if it
            had not been. The file is left in place; that of another run is refused.

        Returns
        -------
        self
        """
        if checkpoint is None:
            self._fit(X, y, X_val, y_val, X_cal, y_cal, None)
        else:
            with Checkpoint(checkpoint) as file:
                self._fit(X, y, X_val, y_val, X_cal, y_cal, file)
        self._warn_of_shortage()
        return self

    def _fit(
        self,
        X: Any,
        y: ArrayLike,
        X_val: Any,
        y_val: ArrayLike | None,
        X_cal: Any,
        y_cal: ArrayLike | None,
        checkpoint: Checkpoint | None,
    ) -> None:
        check_rule(_searched(self.threshold))
        self._check_preset()
        _check_search(self._set_to("search"))
        seed = check_seed(self.random_state)
        if checkpoint is not None and self.random_state is None:
            seed = checkpoint.seed(seed)
        n_jobs = check_n_jobs(self.n_jobs)
        self._check_parameters()
        table = self._read_table(X)
        codes, classes = check_target(y, table.n_rows)
        prices = resolve(self.costs, table.names)
        max_stages = check_max_stages(self.max_stages, prices.n_units)
        rngs = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(4))
        split_rng, search_rng, calibration_rng, recipe_rng = rngs
        parts = set_aside(self.threshold, table, codes, classes, X_cal, y_cal, calibration_rng)
        table, codes, classes = parts.table, parts.codes, parts.classes
        rule = self._search_rule(classes, max_stages)

        rehearsal = self._rehearsal(table, parts.learn, codes, classes, prices, X_val, y_val, split_rng)
        task = self._task(rehearsal, classes, rule, max_stages)
        recipe = settle(
            rehearsal,
            Recipe(check_estimator(self.estimator, "estimator"), products=bool(self.products)),
            encoding=self._set_to("encoding"),
            C=self._set_to("C"),
            score=probing(task, recipe_rng, by_sureness=isinstance(self.threshold, Guarantee)),
            n_jobs=n_jobs,
        )
        final = self._final_recipe(recipe, rehearsal, classes)  # what is wrong with it is said before the search
        setup = prepare(rehearsal, recipe, seed=seed, n_jobs=n_jobs)
        provable = rule.n_rows == 1 and _is_provable(task.aims)
        settings = self._settings(prices.n_units, max_stages, task.y.size, n_jobs, provable=provable)
        history: History = []
        journal = None
        if checkpoint is not None:
            checkpoint.claim(self._identity(setup, settings, max_stages, seed, rule))
            journal = SearchJournal(checkpoint, history)

        judge = Judge(task, setup.trainer, checkpoint)
        line = PhaseLine(shown=self.verbose)
        searched = run(
            judge,
            setup.trainer,
            settings,
            instead=_auto(prices.n_units) if self._set_to("search") == "auto" else None,
            fast=recipe.estimator is None,
            rng=search_rng,
            n_jobs=n_jobs,
            history=history,
            journal=journal,
            line=line,
        )
        front, finished = searched.front, True
        how: dict[str, Any] = {"chains": recipe.estimator is None, "thresholds": is_auto(self.threshold), "line": line}
        if final is not None:
            again = prepare(rehearsal, final, seed=seed, n_jobs=n_jobs)
            strong = Judge(task, again.trainer, None if checkpoint is None else Shelf(checkpoint, identity_of(final)))
            try:
                front = finish(front, judge, strong, **how)
                setup, judge = again, strong
            except KeyboardInterrupt:
                final, finished = None, False
                line.close()
                warnings.warn(
                    "interrupted while the final stages were trained; those in use are of the search.",
                    SearchInterruptedWarning,
                    stacklevel=3,
                )
        if final is None and is_auto(self.threshold):
            try:
                front = finish(front, judge, judge, **how)
            except KeyboardInterrupt:
                line.close()
                front = untuned(front)
                warnings.warn(
                    f"interrupted while thresholds were chosen; all are {SEARCHED}, as in the search.",
                    SearchInterruptedWarning,
                    stacklevel=3,
                )

        self.classes_, self._prices, self._named = classes, prices, table.named
        plans: list[Plan] = []
        if parts.calibration is not None:
            plans = plan_checks(self.threshold, front.designs, judge.answers, parts.calibration, classes.size)
        train = judge.cache.models
        if self.refit and not rehearsal.crosses:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SuspiciousColumnWarning)  # said once
                setup = prepare(rehearsal.everything(), setup.recipe, seed=seed, n_jobs=n_jobs)
            train = partial(_train, setup.trainer)
        self._encoder = setup.encoder
        self._models, ready = self._train_front(train, front)
        if len(ready) < len(front):
            front, plans = replace(front[ready], certificate=None), [plans[i] for i in ready if plans]
        self.encoding_, self.C_ = setup.recipe.encoding, setup.recipe.C
        self.finished_ = finished
        self.validation_: int | float | str | None = rehearsal.judged_by
        self.front_ = front
        self.search_ = searched.settings
        self.search_seconds_ = searched.seconds
        self.history_ = np.array(history, dtype=np.int64).reshape(-1, 3)
        self.n_generations_ = max(len(history) - isinstance(searched.settings, Evolution), 0)
        self.n_feature_sets_ = searched.n_feature_sets
        self._promises = _promises(self, plans, front.designs, parts.calibration)
        self._use(0)  # whatever becomes of the choice, there is a point in use
        n_rows = 0 if parts.calibration is None else parts.calibration.truth.size
        self._use(self._chosen(hopeful(plans, n_rows)))

    def _task(self, rehearsal: Rehearsal, classes: NDArray[Any], rule: RejectRule, max_stages: int) -> Task:
        """Return which designs are looked for, and what they are to be good at."""
        y = rehearsal.y
        check_validation_size(y.size)
        aims = check_objectives(self.objectives, np.bincount(y, minlength=classes.size))
        self._check_choice(aims)
        if isinstance(self._set_to("search"), Exact):
            _check_provable(aims)
        return Task(
            y, classes.size, rehearsal.prices, rule, aims, max_stages, bool(self._set_to("removal")),
            int(self.cache_bytes),
        )  # fmt: skip

    def _rehearsal(
        self,
        table: Table,
        learn: Rows,
        codes: IntArray,
        classes: NDArray[Any],
        prices: PriceList,
        X_val: Any,
        y_val: Any,
        rng: np.random.Generator,
    ) -> Rehearsal:
        """Return which rows train and which judge."""
        if (X_val is None) != (y_val is None):
            raise InvalidInputError("give X_val and y_val together, or neither.")
        if X_val is not None:
            judges = Table(X_val)
            check_size(judges)
            check_columns(judges, table)
            judged = known_codes(y_val, classes, judges.n_rows)
            return Rehearsal(table, codes, classes.size, prices, None, (judges, judged), learn)
        validation = self._set_to("validation")
        if is_folds(validation):
            folds = make_folds(validation, codes[learn], classes, rng)
        else:
            folds = [split_rows(codes[learn], validation, rng, classes)]
        if not isinstance(learn, slice):
            folds = [(learn[train], learn[judges]) for train, judges in folds]
        return Rehearsal(table, codes, classes.size, prices, folds, learn=learn)

    def _final_recipe(self, recipe: Recipe, rehearsal: Rehearsal, classes: NDArray[Any]) -> Recipe | None:
        """Return how the stages of the front are trained, if not as in the search."""
        final = check_estimator(self.final_estimator, "final_estimator")
        if final is None and self.calibration is None:
            return None
        if final is not None:
            check_estimator_usable(final)
        encoding = recipe.encoding
        if final is None:
            # Whether a forest is true is how many trees it has, and an untrained one does not know.
            final = recipe.logistic() if recipe.estimator is None else recipe.estimator
        elif self._set_to("encoding") == "auto":
            encoding = "linear"
        if self.calibration is not None:
            from sklearn.calibration import CalibratedClassifierCV

            check_calibrable(rehearsal, classes, _CALIBRATION_FOLDS)
            final = CalibratedClassifierCV(final, method=self.calibration, cv=_CALIBRATION_FOLDS, ensemble=False)
        return Recipe(final, encoding, recipe.C)

    def _chosen(self, hopeful: NDArray[np.intp]) -> Any:
        """Return the point to use: of those whose promise will probably hold, if there are any."""
        choose = self._set_to("choose")
        if callable(choose):
            return choose(self.front_)
        if hopeful.size:
            # Pilot rows tell, not those that calibrate: a choice by these would make the promise void.
            with suppress(NoSuchPointError):
                return hopeful[self._choice(self.front_[hopeful], choose)]
        return self._choice(self.front_, choose)

    def _choice(self, front: Front, choose: Any) -> int:
        if choose == "fitness":
            return 0
        if choose == "knee":
            return front.knee()
        if not isinstance(choose, Mapping):
            choose = {"best": choose}
        return front.choose(**{"best": self._best, **choose})

    @property
    def _best(self) -> str:
        """What decides between points within limits, if nothing else is said."""
        return str(_PRESETS[self.preset]["choose"])

    def _set_to(self, name: str) -> Any:
        """Return a parameter, or what the preset says where it is None."""
        value = getattr(self, name)
        return _PRESETS[self.preset][name] if value is None else value

    def _from_preset(self) -> dict[str, Any]:
        """Return the parameters that were left to the preset."""
        return {name: value for name, value in _PRESETS[self.preset].items() if getattr(self, name) is None}

    def _check_preset(self) -> None:
        if not isinstance(self.preset, str) or self.preset not in _PRESETS:
            raise InvalidParameterError(
                f"must be one of {', '.join(_PRESETS)}; got {self.preset!r}.", parameter="preset"
            )

    def _search_rule(self, classes: NDArray[Any], max_stages: int) -> RejectRule:
        """Return the rule that designs are searched with, for as many stages as they can have."""
        rule = resolve_rule(_searched(self.threshold), classes)
        rule = RejectRule.of(rule.bars[:max_stages])
        if rule.n_rows > 1 and isinstance(self._set_to("search"), Exact):
            raise InvalidParameterError(
                f"cannot be exact with a threshold per stage ({rule}); search best-first (BestFirst) or by evolution "
                "(Evolution), or give one threshold for all stages.",
                parameter="search",
            )
        return rule

    def _settings(
        self, n_units: int, max_stages: int, n_samples: int, n_jobs: int, *, provable: bool = True
    ) -> Settings:
        """Return how to search; "auto" trains as many feature sets as their training allows."""
        search = self._set_to("search")
        if search != "auto":
            return search  # type: ignore[no-any-return]
        if self.estimator is not None:
            return Evolution()
        size = {"n_units": n_units, "max_stages": max_stages, "n_samples": n_samples}
        removal = self._set_to("removal")
        if not provable or not is_affordable(**size, removal=removal):
            return _auto(n_units)
        if self.verbose:
            n_designs = count_solutions(n_units, max_stages, removal=removal)
            seconds = estimate_seconds(**size, n_jobs=n_jobs, removal=removal)
            ProgressLine()(f"{n_designs:,} designs, about {seconds:.1g} s: searching exactly")
        return Exact()

    def _identity(
        self, setup: Setup, settings: Settings, max_stages: int, seed: int, rule: RejectRule
    ) -> dict[str, str]:
        """Return what makes two runs the same; the number of workers does not."""
        prices = setup.problems[0].prices
        data = [
            array
            for part in setup.problems
            for array in (part.train, part.y_train, part.validation, part.y_validation, part.unit_columns)
        ]
        return {
            "version": __version__,
            "data": fingerprint(*data),
            "prices": fingerprint(prices.own_ticks, prices.shared_ticks, prices.groups, np.array(prices.scale)),
            "price model": f"{prices.overhead_ticks}, {'parallel' if prices.parallel else 'sum'}",
            "threshold": rule.key,
            "objectives": identity_of(self.objectives),
            "search": repr(settings),
            "max_stages": str(max_stages),
            "removal": str(self._set_to("removal")),
            "estimator": identity_of(setup.recipe),
            "seed": str(seed),
        }

    def _train_front(
        self, train: Callable[[BoolArray], list[StageModel]], front: Front
    ) -> tuple[dict[bytes, StageModel], NDArray[np.intp]]:
        """Return the models of all sets that the front needs, and the points that have theirs: all, unless interrupted.

        The set of everything comes first, then those of point after point.
        """
        acquired, exists = acquired_sets(front.designs)
        needed = np.concatenate([np.ones((1, front.designs.shape[1]), dtype=np.bool_), acquired[exists]])
        sets = needed[np.sort(np.unique(needed, axis=0, return_index=True)[1])]
        models: dict[bytes, StageModel] = {}
        try:
            with PhaseLine(shown=self.verbose) as line:
                for i in range(0, len(sets), SETS_AT_ONCE):
                    part = sets[i : i + SETS_AT_ONCE]
                    models.update(zip(map(set_key, part), train(part), strict=True))
                    line("training the front", len(models) / len(sets))
        except KeyboardInterrupt:
            lacks = [any(set_key(units) not in models for units in sets[has])
                     for sets, has in zip(acquired, exists, strict=True)]  # fmt: skip
            ready = np.flatnonzero(~np.array(lacks))
            if not ready.size:
                raise
            warnings.warn(
                f"interrupted while the front was trained; {ready.size} of its {len(front)} points are there.",
                SearchInterruptedWarning,
                stacklevel=4,
            )
            return models, ready
        return models, np.arange(len(front))

    def use(self, point: int) -> Self:
        """Deploy another point of the front; its stages are trained already.

        Parameters
        ----------
        point : int
            Index into ``front_``.

        Returns
        -------
        self
        """
        if not hasattr(self, "front_"):
            check_is_fitted(self)
        self._use(point)
        self._warn_of_shortage()
        return self

    def _use(self, point: int) -> None:
        if isinstance(point, bool) or not isinstance(point, int | np.integer) or not 0 <= point < len(self.front_):
            raise InvalidParameterError(
                f"must be one of the points 0 to {len(self.front_) - 1} of the front; got {point!r}.", parameter="point"
            )
        self.point_ = int(point)
        self._deploy(self.front_.designs[point])

    def _designs(self) -> IntArray:
        return self.front_.designs

    def _check_choice(self, aims: Aims | None) -> None:
        choose = self._set_to("choose")
        if isinstance(choose, Mapping):
            check_choice({"best": self._best, **choose}, PAPER if aims is None else aims.names)
        elif not callable(choose) and str(choose) not in ("fitness", "combined", "knee"):
            raise InvalidParameterError(
                "must be 'fitness', 'combined', 'knee', a mapping of arguments for Front.choose, or a function of the "
                f"front that returns an index; got {self.choose!r}.",
                parameter="choose",
            )

    def _check_parameters(self) -> None:
        check_learning(self._set_to("encoding"), self._set_to("C"))
        check_products(self.products, self.estimator)
        if self.calibration not in (None, "sigmoid", "isotonic", "temperature"):
            raise InvalidParameterError(
                f"must be 'sigmoid', 'isotonic', 'temperature' or None; got {self.calibration!r}.",
                parameter="calibration",
            )
        cache = self.cache_bytes
        if isinstance(cache, bool) or not isinstance(cache, int | np.integer) or cache < 1:
            raise InvalidParameterError(f"must be a positive number of bytes; got {cache!r}.", parameter="cache_bytes")
        for name in ("removal", "refit", "verbose"):
            value = getattr(self, name)
            if not isinstance(value, bool | np.bool_ | int) and not (name == "removal" and value is None):
                raise InvalidParameterError(f"must be True or False; got {value!r}.", parameter=name)


def _searched(threshold: Any) -> Any:
    """Return the threshold that designs are searched with."""
    searched = searched_with(threshold)
    return threshold if searched is None else searched


def _promises(
    clf: StagedClassifier, plans: list[Plan], designs: IntArray, rows: CalibrationRows | None
) -> tuple[Promise, ...]:
    """Look at the calibration rows, and return what can be promised of each design."""
    if rows is None:
        return ()
    answers = clf._answering(clf._encoder.encode(rows.table, rows.rows), rows.truth)
    labels = plain_classes(clf.classes_)
    return tuple(check(plan, answers(design), labels) for plan, design in zip(plans, designs, strict=True))


def _train(trainer: StageTrainer, sets: BoolArray) -> list[StageModel]:
    """Train feature sets without validation samples: there is nothing to score."""
    return trainer.models(sets, trainer.train(sets))


def _auto(n_units: int) -> BestFirst:
    """Return how "auto" searches what it cannot prove: many features make many sets to train."""
    return BestFirst(focus=0.5) if n_units <= _FEW_UNITS else BestFirst(max_designs=30_000, focus=0.5)


def _check_search(search: Any) -> None:
    if not isinstance(search, Settings) and not (isinstance(search, str) and search == "auto"):
        raise InvalidParameterError(
            f"must be 'auto', emsco.Exact(...), emsco.BestFirst(...) or emsco.Evolution(...); got {search!r}.",
            parameter="search",
        )


def _is_provable(aims: Aims | None) -> bool:
    return aims is None or set(aims.names) <= set(PAPER)


def _check_provable(aims: Aims | None) -> None:
    if aims is not None and not _is_provable(aims):
        others = ", ".join(name for name in aims.names if name not in PAPER)
        raise InvalidParameterError(
            f"cannot be exact with the objectives {others}: an exact search proves fronts of coverage, accuracy and "
            "cost. Search best-first (BestFirst) or by evolution (Evolution).",
            parameter="search",
        )
