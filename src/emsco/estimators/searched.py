"""EMSCOClassifier: searches the ways to buy features in stages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from emsco.arrays import IntArray
from emsco.data.table import is_dask
from emsco.deployed.model import the_front
from emsco.estimators.base import StagedClassifier
from emsco.prices.prices import Costs
from emsco.promises.loss import LossPromise
from emsco.scoring.front import Front
from emsco.scoring.gains import Branches
from emsco.scoring.outlook import Outlook


class EMSCOClassifier(StagedClassifier):
    """Searches the ways to buy features in stages and deploys one of the Pareto-optimal designs.

    The parameters come in five groups: what to look for (``costs`` to ``preset``), how to search (``search`` to
    ``removal``), how stages learn (``encoding`` to ``calibration``), which rows validate and train (``validation``,
    ``refit``), and how to run (``random_state`` to ``cache_bytes``).

    Parameters
    ----------
    costs : None, array-like, mapping or Prices
        Price of each column, in order or by name, or of units that yield several columns. None: every column costs 1.
    threshold : None, float, mapping, sequence, Guarantee or "auto"
        A row leaves with a label as soon as its top class probability reaches the threshold. None: that of the preset.
        With "auto", each point of the front has its own thresholds, one for its early exits and one for its last stage,
        chosen on the validation rows; a point whose last threshold is 0 labels every row. Otherwise give one number;
        one number per class, by label; or one per stage, the last of which holds for all further stages. A
        ``Guarantee(...)`` calibrates the thresholds.
    errors : None, array-like or mapping
        Prices of errors: a matrix with a row per true class and a column per label, in the order of ``classes_``, or a
        mapping of true class to a mapping of label to price. A last column, or the key ``"reject"``, is the price of
        no answer; without it every row gets a label. Each stage then gives the label of least expected price, and a
        row leaves as soon as leaving is expected to cost no more than the bar of the stage. Bars are chosen with each
        design, and the front is over money for tests ("cost") and for errors ("loss"). The empty design, which buys
        nothing, is one of the designs.
    objectives : None or sequence of str, Loss and Objective
        Two or more objectives by which designs are compared: "coverage", "accuracy", "cost", "fpr" and "fnr" (wrong
        labels among all rows of a class, the positive class being ``classes_[1]``; a rejected row is no error),
        "stages" (their number), "worst_class_accuracy" (the smallest share of correct labels over the true classes),
        `Loss` and `Objective`. None: coverage, accuracy and cost. ``Exact()`` proves any two or all three of these.
    choose : "no_worse", "total", "combined", "fitness", "knee", mapping, callable or None
        Which point of the front to deploy: the cheapest that is no worse than buying everything, the recall of every
        class included; the one with the best combined score; the fittest; the knee; the result of ``front_.choose`` for
        the arguments in a mapping (``best`` defaults to that of the preset: "combined" or "fitness"); or the index that
        a function of the front returns. Where errors have prices, None stands for "total": the simplest design that
        does not clearly cost more than the least, tests and errors together. With a ``Guarantee``, and unless it is a
        function, the choice is among the points whose guarantee will probably hold, judged by rows that do not
        calibrate. If no point satisfies the limits of a mapping, ``fit`` raises `NoSuchPointError` with the fittest
        point in use.
    preset : "best" or "paper"
        The values of ``threshold``, ``choose``, ``search``, ``removal``, ``encoding``, ``C``, ``final_estimator`` and
        ``validation`` where they are None. "best": "auto", "no_worse", "auto", True, "auto", "auto", "auto", 5 folds.
        "paper", as published: 0.75, "fitness", ``Evolution()``, False, "raw", 1, "search", a third of the rows.
    search : "auto", Exact, BestFirst, Evolution or None
        The search. ``Exact()`` proves the front if the space is small enough; ``BestFirst()`` finds most of it;
        ``Evolution()`` is the paper's search. "auto": with a threshold of its own for each point, a short
        ``BestFirst()``, because thousands of designs and thresholds are compared afterwards; with given thresholds
        ``Exact()`` if it is estimated to take seconds, else ``BestFirst()``; with an ``estimator``, which makes feature
        sets expensive to train, ``Evolution()``.
    max_stages : int or None
        Maximum number of stages. None: half the features, but at least 10 and at most 30. With many columns, few
        stages make the search much faster.
    removal : bool or None
        Whether designs may leave features out. The last stage then uses all features that the design buys.
    branch : None, "auto" or Branch
        Whether designs may branch: a first purchase, the root, decides what is bought next. "auto": roots of one unit
        are screened, and designs that branch are on the front where they label more rows correctly than chains of the
        same price, by more than luck can explain. ``Branch(...)`` says which. None: all designs are chains.
    encoding : "linear", "rank", "spline", "raw", "auto" or None
        Encoding of numeric columns: standardised; as ranks among the training values, with an extra column for 0 if
        many cells are 0; as ranks with spline terms; not scaled at all, so that the penalty depends on the units; or
        the best of the first three on random designs, at several thresholds.
    C : float, "auto" or None
        Inverse regularisation strength of logistic stages. "auto": the best value on random designs.
    products : bool
        Whether logistic stages also use the products of all pairs of encoded columns. n columns become
        n (n + 1) / 2, which takes accordingly longer.
    estimator : classifier, "boosting" or None
        Classifier of each stage, trained on the features bought so far. None: l2 logistic regression, trained in
        batches. Any scikit-learn classifier with ``predict_proba`` works, with one clone per feature set. "boosting"
        is scikit-learn's histogram gradient boosting.
    final_estimator : classifier, "auto", "search", "boosting" or None
        Classifier for the stages of the front, trained after the search. The designs are validated again, and
        dominated ones are dropped: a search with a fast classifier, stages of a strong one. "search": as in the
        search. "auto": logistic stages race against boosted trees of three sizes (LightGBM if it is installed, else
        scikit-learn), all features bought; the one that gives the truth the highest probability out of fold wins.
    calibration : "sigmoid", "isotonic", "temperature" or None
        Calibration of the probabilities of the final stages, on folds of the training rows.
    validation : float, int, splitter or None
        A fraction: this share of the rows of each class validates the designs and trains none. A whole number: so many
        folds of a cross-validation; every row is scored by stages trained without it, and the final stages are trained
        on all rows. A splitter of scikit-learn: its folds. Rows given to ``fit`` for validation take precedence.
    refit : bool
        Whether to train the deployed stages again on all rows, training and validation.
    random_state : int, RandomState or None
        Seed of the split, the search, and random estimators.
    n_jobs : int or None
        Number of processes that train an ``estimator`` of your own. Logistic and LightGBM stages are trained in threads
        of this process: as many as OpenMP uses (``OMP_NUM_THREADS``, else all cores), or more if ``n_jobs`` is larger.
        The result does not depend on either.
    time_limit : float or None
        Seconds that the whole fit may take, about. The best front found by then is trained; what was cut short is in
        ``timed_out_``. The result then depends on the speed of the machine. None: no limit. The compilation of kernels,
        once on a machine, does not count.
    verbose : bool or None
        Whether to show the progress of the fit on standard error. None: on a terminal and in a notebook.
    cache_bytes : int
        Limit of the memory for trained feature sets.
    client : distributed.Client or None
        Dask cluster whose workers train feature sets, folds and final stages, with the same result. None: that of
        ``joblib.parallel_config(backend="dask")``, if it is active, else this process. It is kept by ``clone``, and
        neither copied nor stored.

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
    learner_ : str
        What the stages in use are: "logistic", boosted trees ("light", "medium" or "deep"), "tree" (a shrunken one,
        where errors have prices), or "given".
    outlook_ : Outlook or None
        What to expect of the point in use on new rows, with the luck of its choice taken out; None if another point or
        other thresholds are in use, or if the point was chosen otherwise than by "no_worse".
    finished_ : bool
        Whether the stages in use are those of ``final_estimator`` and ``calibration``, if these are set; False if their
        training was interrupted.
    timed_out_ : tuple of str
        What ``time_limit`` cut short, in words; empty if there was time for everything.
    branches_ : Branches
        The roots that were tried, with what each gains, its standard error, and whether designs with it are on the
        front, or why not; empty unless ``branch`` is set, and not stored.
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
        *,
        # What to look for
        threshold: Any = None,
        errors: Any = None,
        objectives: Sequence[Any] | None = None,
        choose: str | Mapping[str, Any] | Callable[[Front], int] | None = None,
        preset: str = "best",
        # How to search
        search: Any = None,
        max_stages: int | None = None,
        removal: bool | None = None,
        branch: Any = None,
        # How stages learn
        encoding: str | None = None,
        C: float | str | None = None,
        products: bool = False,
        estimator: Any = None,
        final_estimator: Any = None,
        calibration: str | None = None,
        # Which rows judge and train
        validation: Any = None,
        refit: bool = False,
        # How to run
        random_state: Any = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: bool | None = None,
        cache_bytes: int = 2**28,
        client: Any = None,
    ) -> None:
        self.costs = costs
        self.threshold = threshold
        self.errors = errors
        self.objectives = objectives
        self.choose = choose
        self.preset = preset
        self.search = search
        self.max_stages = max_stages
        self.removal = removal
        self.branch = branch
        self.encoding = encoding
        self.C = C
        self.products = products
        self.estimator = estimator
        self.final_estimator = final_estimator
        self.calibration = calibration
        self.validation = validation
        self.refit = refit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.verbose = verbose
        self.cache_bytes = cache_bytes
        self.client = client

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
            Numbers, booleans, text or categories; missing values are allowed. A Dask DataFrame may be larger than the
            memory: a sample of up to two million rows is searched; logistic stages are then trained on all rows, and
            judged on all of them; other learners are trained on the sample and judged on the other rows.
        y : array-like of shape (n_rows,)
            With a Dask DataFrame, a Dask Series of the same partitions, or the name of the column that holds it.
        X_val, y_val : like X and y, optional
            Rows that score the designs. Without them, rows of X do, as ``validation`` says.
        X_cal, y_cal : like X and y, optional
            Rows that calibrate a ``Guarantee``, drawn as new rows will be. Without them, a share of X does.
        checkpoint : path-like or None
            File that remembers the search. If the run is killed, the same call goes on from there, and ends as if it
            had not been. A run that ``time_limit`` cut short goes on with a longer one, or with none. The file is left
            in place; that of another run is refused.

        Returns
        -------
        self
        """
        from emsco.cluster.blocks import SampledFile
        from emsco.fitting.clock import Clock
        from emsco.fitting.pipeline import Given, fit
        from emsco.fitting.settings import read_settings

        settings = read_settings(self.get_params(deep=False))
        workers = self._workers()
        with Clock(settings.time_limit, verbose=settings.verbose, beside=workers) as clock:
            run = fit
            if isinstance(X, SampledFile):
                X, run = self._all_of(X, y)
            elif is_dask(X):
                X, y, run = self._sampled(X, y, settings, clock)
            table = self._begin(X)
            given = Given(table, y, X_val, y_val, X_cal, y_cal, names_are_text=hasattr(self, "feature_names_in_"))
            if checkpoint is None:
                fitted = run(settings, given, clock, workers=workers)
            else:
                from emsco.fitting.memory import Memory
                from emsco.storage.checkpoint import Checkpoint

                with Checkpoint(checkpoint) as file:
                    memory = Memory(file)
                    if self.random_state is None:
                        settings = replace(settings, seed=memory.seed(settings.seed))
                    fitted = run(settings, given, clock, memory, workers)
        self._branches = fitted.branching.tried
        self._deploy(fitted.deployed, settings.given["threshold"])  # whatever becomes of the choice, a point is in use
        point = fitted.choose()
        self._deploy(replace(fitted.deployed.use(point), chosen=int(point)), settings.given["threshold"])
        self._warn_of_shortage()
        return self

    @property
    def branches_(self) -> Branches:
        """The roots that were tried for designs that branch."""
        check_is_fitted(self)
        branches: Branches = self.__dict__.get("_branches", Branches())
        return branches

    def _sampled(self, X: Any, y: Any, settings: Any, clock: Any) -> tuple[Any, Any, Callable[..., Any]]:
        """Return a sample of a Dask DataFrame, its labels, and what fits them and then trains on all rows."""
        from emsco.cluster.fitting import draw, fitting_all
        from emsco.cluster.partitions import Partitions

        parts = Partitions(X, y, self.client)
        clock("reading", 0.0, f"{len(parts):,} partitions")
        sample = draw(parts, settings.seed)
        return sample.X, sample.y, fitting_all(parts, sample)

    def _all_of(self, file: Any, y: Any) -> tuple[Any, Callable[..., Any]]:
        """Return the sample of a file, and what fits it and then trains on all rows."""
        from emsco.cluster.fitting import Sample, fitting_all

        return file.X, fitting_all(file.blocks, Sample(file.X, y, (), np.unique(y), file.n_rows))

    def _workers(self) -> Any:
        """Return who trains; None: this process."""
        from joblib.parallel import get_active_backend

        backend = get_active_backend()[0]
        client = getattr(backend, "client", None) if type(backend).__name__ == "DaskDistributedBackend" else None
        client = client if self.client is None else self.client
        if client is None:
            return None
        from emsco.cluster.training import Workers

        return Workers(client)

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
        self._use(point)
        self._warn_of_shortage()
        return self

    def promise_loss(self, X: Any, y: ArrayLike, *, at_most: float, confidence: float = 0.95) -> LossPromise:
        """Promise that errors cost at most so much per case on new rows, and use the best point that keeps it.

        Only with ``errors=...``. Points are tested on these rows from the least price of errors on, until one fails. Of
        those that passed, the one of least total is put into use; if none did, nothing changes.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
            Rows drawn as new rows will be, which neither fit nor anybody who chose settings has seen.
        at_most : float
            Expected price of errors per case, no answers included.
        confidence : float
            Least probability, over the draw of these rows, that the promise holds.

        Returns
        -------
        LossPromise
        """
        promise = self.deployed_.promise_loss(X, y, at_most=at_most, confidence=confidence)
        if promise.point is not None:
            self._use(promise.point)
        return promise

    @property
    def front_(self) -> Front:
        """The non-dominated designs found, fittest first, with their figures on the rows that score."""
        return the_front(self.deployed_)

    @property
    def outlook_(self) -> Outlook | None:
        """What to expect of the point in use on new rows, with the luck of its choice taken out; None if unknown."""
        deployed = self.deployed_
        return deployed.outlook if deployed.point == deployed.chosen else None

    @property
    def point_(self) -> int:
        """The point of the front in use."""
        return self.deployed_.point

    @property
    def search_(self) -> Any:
        """How it was searched."""
        search = self.deployed_.origin.search
        if isinstance(search, Mapping):
            from emsco.storage.parameters import search_from_json

            return search_from_json(search)
        return search

    @property
    def search_seconds_(self) -> float:
        """How long that took."""
        return self.deployed_.origin.search_seconds

    @property
    def encoding_(self) -> str:
        """How the stages see columns of numbers."""
        return self.deployed_.origin.encoding

    @property
    def C_(self) -> float:  # noqa: N802
        """Inverse strength of the regularisation of logistic stages."""
        return self.deployed_.origin.C

    @property
    def learner_(self) -> str:
        """What the stages in use are, such as "logistic", "tree" or "deep"."""
        origin = self.deployed_.origin
        final = origin.parameters["final_estimator"] if origin.finished else None
        given = origin.parameters["estimator"] is not None or final not in (None, "auto", "search")
        return origin.learner or ("given" if given else "logistic")

    @property
    def validation_(self) -> int | float | str | None:
        """How the rows behind the figures of ``front_`` were judged."""
        return self.deployed_.origin.validation

    @property
    def finished_(self) -> bool:
        """Whether the stages in use are those of ``final_estimator`` and ``calibration``, if these are set."""
        return self.deployed_.origin.finished

    @property
    def timed_out_(self) -> tuple[str, ...]:
        """What ``time_limit`` cut short, in words; empty if there was time for everything."""
        return self.deployed_.origin.timed_out

    @property
    def history_(self) -> IntArray:
        """How the search went."""
        return self.deployed_.origin.history

    @property
    def n_generations_(self) -> int:
        """Generations of an evolution, batches of a best-first search; 0 after an exact one."""
        return self.deployed_.origin.n_generations

    @property
    def n_feature_sets_(self) -> int:
        """Feature sets trained by the search."""
        return self.deployed_.origin.n_feature_sets
