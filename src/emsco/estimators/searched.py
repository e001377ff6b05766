"""EMSCOClassifier: searches the ways to buy features in stages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Self

from numpy.typing import ArrayLike

from emsco.arrays import IntArray
from emsco.deployed.model import the_front
from emsco.estimators.base import StagedClassifier
from emsco.prices.prices import Costs
from emsco.scoring.front import Front


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
        *,
        # What to look for
        threshold: Any = 0.75,
        objectives: Sequence[Any] | None = None,
        choose: str | Mapping[str, Any] | Callable[[Front], int] | None = None,
        preset: str = "best",
        # How to search
        search: Any = None,
        max_stages: int | None = None,
        removal: bool | None = None,
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
        verbose: bool = False,
        cache_bytes: int = 2**28,
    ) -> None:
        self.costs = costs
        self.threshold = threshold
        self.objectives = objectives
        self.choose = choose
        self.preset = preset
        self.search = search
        self.max_stages = max_stages
        self.removal = removal
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
        self.verbose = verbose
        self.cache_bytes = cache_bytes

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
        from emsco.fitting.pipeline import Given, fit
        from emsco.fitting.settings import read_settings

        settings = read_settings(self.get_params(deep=False))
        given = Given(self._begin(X), y, X_val, y_val, X_cal, y_cal)
        if checkpoint is None:
            fitted = fit(settings, given)
        else:
            from emsco.fitting.memory import Memory
            from emsco.storage.checkpoint import Checkpoint

            with Checkpoint(checkpoint) as file:
                memory = Memory(file)
                if self.random_state is None:
                    settings = replace(settings, seed=memory.seed(settings.seed))
                fitted = fit(settings, given, memory)
        self._deploy(fitted.deployed)  # whatever becomes of the choice, there is a point in use
        point = fitted.choose()
        self._deploy(replace(fitted.deployed.use(point), chosen=int(point)))
        self._warn_of_shortage()
        return self

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
        self._deploy(self.deployed_.use(point))
        self._warn_of_shortage()
        return self

    @property
    def front_(self) -> Front:
        """The non-dominated designs found, fittest first, with their figures on the rows that score."""
        return the_front(self.deployed_)

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
    def validation_(self) -> int | float | str | None:
        """How the rows behind the figures of ``front_`` were judged."""
        return self.deployed_.origin.validation

    @property
    def finished_(self) -> bool:
        """Whether the stages in use are those of ``final_estimator`` and ``calibration``, if these are set."""
        return self.deployed_.origin.finished

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
