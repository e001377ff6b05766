"""What both classifiers do once they are fitted: they hold a `Deployed` and delegate to it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from os import PathLike
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from emsco.arrays import IntArray
from emsco.checks import CLIENT, check_n_jobs
from emsco.data.table import Table, check_size, is_dask
from emsco.deployed.decide import Decisions, Stage
from emsco.deployed.evaluation import Evaluation
from emsco.deployed.model import Deployed
from emsco.deployed.session import Accept, Acquire, Reject, Session
from emsco.exceptions import GuaranteeWarning, InvalidInputError, warn
from emsco.promises.guarantee import Promise
from emsco.stages.base import outcomes_of

if TYPE_CHECKING:
    from emsco.report.plots import StagesDisplay

_SWAPPING = Lock()  # held while a point or a threshold is exchanged, so that neither exchange is lost


def _is_same(known: Any, threshold: Any) -> bool:
    """Return whether two thresholds are equal; a number, in nearly all sessions, is compared at once."""
    if type(threshold) is float:
        return type(known) is float and known == threshold
    if isinstance(threshold, np.ndarray) or isinstance(known, np.ndarray):
        return type(known) is type(threshold) and np.array_equal(known, threshold)
    return type(known) is type(threshold) and bool(known == threshold)


class StagedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What both classifiers do once they have trained stages."""

    threshold: Any
    n_jobs: int | None
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    _state: tuple[Any, Deployed]  # the threshold that is deployed, and what is

    @property
    def deployed_(self) -> Deployed:
        """The frozen object that decides, with its designs, models, prices, rules and the point in use."""
        threshold = self.threshold
        state: tuple[Any, Deployed] | None = self.__dict__.get("_state")
        if state is None:  # check_is_fitted itself takes longer than a session
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet; call fit first.")
        if _is_same(state[0], threshold):
            return state[1]
        with _SWAPPING:
            return self._with_threshold(threshold)

    def _with_threshold(self, threshold: Any) -> Deployed:
        """Return what is deployed, with a threshold that was set after fit; the caller holds the lock."""
        known, deployed = self._state
        if not _is_same(known, threshold):
            deployed = deployed.with_threshold(threshold)
            self._state = deepcopy(threshold), deployed
        return deployed

    @classmethod
    def from_deployed(cls, deployed: Deployed) -> Self:
        """Return the fitted classifier that something deployed belongs to, such as one from a file."""
        clf = cls(**deployed.origin.parameters)
        clf.n_features_in_ = deployed.n_columns
        if deployed.origin.names_are_text:
            clf.feature_names_in_ = np.array(deployed.column_names, dtype=object)
        clf._deploy(deployed, clf.threshold)
        return clf

    def _deploy(self, deployed: Deployed, threshold: Any) -> None:
        """Put something into use, by one assignment: other threads see the old one or the new one."""
        self._state = deepcopy(threshold), deployed

    def _use(self, point: int) -> None:
        """Put another point into use."""
        threshold = self.threshold
        if "_state" not in self.__dict__:
            check_is_fitted(self)
        with _SWAPPING:
            self._deploy(self._with_threshold(threshold).use(point), threshold)

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels, in order."""
        return self.deployed_.classes

    @property
    def design_(self) -> IntArray:
        """The stage, from 0, in which each feature is bought; -1 if never."""
        return self.deployed_.design

    @property
    def stages_(self) -> list[Stage]:
        """What each stage buys, its price and its trained model."""
        return self.deployed_.stages

    @property
    def guarantee_(self) -> Promise:
        """What is promised of the design in use, and how it was checked; only if the threshold is a ``Guarantee``."""
        promise = self.deployed_.promise
        if promise is None:
            raise AttributeError("there is no guarantee_: nothing was promised; give threshold=Guarantee(...) and fit.")
        return promise

    @property
    def evaluation_(self) -> Evaluation | None:
        """Results that were saved with the model, if any."""
        return self.deployed_.evaluation

    @property
    def notes_(self) -> Mapping[str, Any]:
        """Notes that were saved with the model."""
        return dict(self.deployed_.notes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def decide(self, X: Any) -> Decisions:
        """Decide each row with as few purchases as its design allows, or reject it.

        A cell is read only if its row has paid for it: unbought cells may hold anything, and a column that no waiting
        row needs, or the design never buys, may be absent. Columns of a DataFrame are matched by name. Logistic stages
        decide large tables of numbers in ``n_jobs`` threads; if that is None, in one per core (at most
        ``OMP_NUM_THREADS``), as matrix products do. The result does not depend on it.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
            The partitions of a Dask DataFrame are decided one by one, when the result is computed; only the columns
            that the design buys are read.

        Returns
        -------
        Decisions
            For a Dask DataFrame, another one, with the columns of ``Decisions.to_frame``.
        """
        if is_dask(X):
            from emsco.cluster.deciding import decide

            decided: Decisions = decide(self.deployed_, X)
            return decided
        n_jobs = None if self.n_jobs is None else check_n_jobs(self.n_jobs)
        return self.deployed_.decide(X, n_jobs=n_jobs)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the class probabilities of the stage where each row leaves, whether confident or not.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
            All columns of the training table, in the same order.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        check_is_fitted(self)
        deployed, table = self.deployed_, Table(X)
        check_size(table)
        self._check_names(X, reset=False)
        if isinstance(X, np.ndarray) and X.dtype.kind == "f" and np.isinf(X).any():
            raise InvalidInputError("X contains inf; replace it by a finite number, or by NaN if it is unknown.")
        return deployed.predict_proba(table)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return a class for every row; ``decide`` is the answer that may say nothing.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
            All columns of the training table, in the same order.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        probabilities, deployed = self.predict_proba(X), self.deployed_
        errors = deployed.row_errors(Table(X))
        codes = outcomes_of(probabilities)[1] if errors is None else errors.guess(probabilities)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of ``predict``, as every classifier of scikit-learn does.

        Every row gets a label here, and the cost does not count. To select models by what ``decide`` does, give one of
        the scorers of ``emsco.metrics`` to ``cross_val_score`` or ``GridSearchCV``; ``evaluate`` gives all figures.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        return float(super().score(X, y, sample_weight))

    def session(self, state: Mapping[str, Any] | None = None) -> Session:
        """Begin to decide one input whose values are bought one stage at a time, or continue.

        Parameters
        ----------
        state : mapping, optional
            ``state`` of a session of the same classifier (design, threshold, training), in this process or another.

        Returns
        -------
        Session
        """
        return self.deployed_.session(state)

    def run(
        self,
        acquire: Callable[[Any, Acquire], Any],
        inputs: Iterable[Any],
        *,
        max_in_flight: int = 8,
        on_decision: Callable[[Any, Accept | Reject], object] | None = None,
    ) -> Decisions:
        """Decide many inputs at once by a callback that buys what each needs, and nothing else.

        Parameters
        ----------
        acquire : callable
            ``acquire(input, request)`` buys what an ``Acquire`` asks for and returns the values by column name, None
            for what could not be obtained. It is called once per input and stage that the input reaches: by threads,
            or if it is an async function, in an event loop.
        inputs : iterable
            Anything that tells ``acquire`` whom to buy for. No more are taken than are in flight.
        max_in_flight : int
            Most calls of ``acquire`` at the same time.
        on_decision : callable, optional
            ``on_decision(input, decision)`` is called here, by the caller's thread, as inputs are decided: to show
            progress, or to store what an interrupt must not lose.

        Returns
        -------
        Decisions
            In the order of the inputs, whatever the order of completion.

        Raises
        ------
        RunInterruptedError
            A call failed. No further call was started, and those in flight were awaited; the error holds what was
            decided, and its ``__cause__`` is the reason. Ctrl-C raises KeyboardInterrupt in the same way.
        """
        return self.deployed_.run(acquire, inputs, max_in_flight=max_in_flight, on_decision=on_decision)

    async def run_async(
        self,
        acquire: Callable[[Any, Acquire], Awaitable[Any]],
        inputs: Iterable[Any],
        *,
        max_in_flight: int = 8,
        on_decision: Callable[[Any, Accept | Reject], object] | None = None,
    ) -> Decisions:
        """Do what ``run`` does, with an async callback, inside a running event loop.

        Parameters and result as of ``run``. Cancelling cancels the calls in flight.
        """
        deployed = self.deployed_
        return await deployed.run_async(acquire, inputs, max_in_flight=max_in_flight, on_decision=on_decision)

    def evaluate(self, X: Any, y: ArrayLike) -> Evaluation:
        """Judge on rows that neither training nor search saw: every point of the front, and buying everything.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)

        Returns
        -------
        Evaluation
            Counts, with figures and their confidence intervals.
        """
        return self.deployed_.evaluate(X, y)

    def retrain(self, X: Any, y: ArrayLike, *, X_cal: Any = None, y_cal: ArrayLike | None = None) -> Self:
        """Train the stages again on other rows, such as those of last year; nothing is searched.

        Designs, prices, encoding, learner and regularisation strength stay as they are, and so do the thresholds and
        the point in use. Every model of every point is trained again, behind an encoder of the new rows. The points of
        ``front_`` keep their numbers. Their figures are those of the new rows, validated as in ``fit``; if validation
        rows were given to ``fit``, by cross-validation. A point may now be dominated by another.

        The thresholds of a ``Guarantee`` are calibrated again: what was promised of the old stages does not hold for
        the new ones. If retraining fails or is interrupted, the classifier stays as it was.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
            Columns of a DataFrame are matched by name; further ones are ignored.
        y : array-like of shape (n_rows,)
            Labels, of the same classes as in ``fit``.
        X_cal, y_cal : like X and y, optional
            Rows that calibrate a ``Guarantee``, drawn as new rows will be. Without them, a share of X does.

        Returns
        -------
        self

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from emsco import EMSCOClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = EMSCOClassifier(costs=[1, 1, 5, 5], random_state=0).fit(X[::2], y[::2])
        >>> design = clf.design_
        >>> (clf.retrain(X, y).design_ == design).all(), clf.front_.n_samples
        (np.True_, 150)
        """
        threshold, deployed = deepcopy(self.threshold), self.deployed_
        from emsco.fitting.retraining import retrain  # later than the check: an unfitted one imports nothing

        again = retrain(deployed, self.get_params(deep=False), X, y, X_cal, y_cal)
        with _SWAPPING:  # a point that was put into use meanwhile stays in use
            self._state = threshold, again.use(self._state[1].point)
        self._warn_of_shortage()
        return self

    def save(self, path: str | PathLike[str], *, evaluation: Evaluation | None = None, notes: Any = None) -> None:
        """Write the classifier, every point of its front included, to a file that ``emsco.load`` reads.

        Parameters
        ----------
        path : str or path
            The file; one that is there is replaced, whole or not at all.
        evaluation : Evaluation or None
            What ``evaluate`` returned, to be kept with the model. None: that of the file it was loaded from, if any.
        notes : dict or None
            Anything that JSON can hold, such as where the data come from. None: those of the file it was loaded from.

        Raises
        ------
        ModelFileError
            The file cannot be written, or holds an estimator that could not be loaded again.
        """
        from emsco.storage.model_file import save

        save(self._to_save(), path, evaluation=evaluation, notes=notes)

    def _to_save(self) -> Deployed:
        """Return what is deployed, with the parameters and the name of this classifier as they are now."""
        deployed = self.deployed_
        origin = replace(deployed.origin, kind=type(self).__name__, parameters=self._own_params())
        return replace(deployed, origin=origin)

    def _warn_of_shortage(self) -> None:
        """Warn if the promise of the design in use, or of one of its classes, cannot be made."""
        for shortage in self.deployed_.shortages():
            warn(shortage, GuaranteeWarning)

    def plot_stages(self, X: Any = None, y: ArrayLike | None = None, *, ax: Any = None) -> "StagesDisplay":
        """Draw how many inputs leave at each stage of the design in use, and what is paid; needs matplotlib.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns), optional
            Rows to draw. None: the validation rows of the search.
        y : array-like of shape (n_rows,), optional
            Their labels, which split those who leave into right and wrong.
        ax : pair of Axes, or None
            Where. None: a new figure.

        Returns
        -------
        StagesDisplay
            With the axes as ``ax_`` and the figure as ``figure_``.
        """
        from emsco.report.plots import StagesDisplay

        return StagesDisplay.from_estimator(self, X, y, ax=ax)

    def export_onnx(self, folder: str | PathLike[str]) -> None:
        """Write the design in use as ONNX graphs, one per stage, and ``manifest.json``, which says how to walk them.

        The graphs take raw columns: numbers (NaN where missing) and text. Each was compared with this classifier on
        rows like those of training before anything is written.

        Parameters
        ----------
        folder : str or path
            Made if it is not there.

        Raises
        ------
        ExportError
            A stage's estimator cannot be converted, or its graph does not agree with it.
        """
        from emsco.deployed.export import export_onnx

        export_onnx(self.deployed_, folder)

    def _own_params(self) -> dict[str, Any]:
        """Return the parameters that are this classifier's own: a client belongs to a process."""
        return {name: value for name, value in self.get_params(deep=False).items() if name != CLIENT}

    def __sklearn_clone__(self) -> Self:
        bare = type(self)(**self._own_params())
        cloned: Self = BaseEstimator.__sklearn_clone__(bare)
        client = getattr(self, CLIENT, None)
        return cloned if client is None else cloned.set_params(client=client)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: None if name == CLIENT else value for name, value in state.items()}

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in self.__dict__

    def _begin(self, X: Any) -> Table:
        """Check the training table and record its columns as scikit-learn does; what was fitted before is void."""
        self.__dict__.pop("_state", None)
        table = Table(X)
        check_size(table)
        self._check_names(X, reset=True)
        return table

    def _check_names(self, X: Any, *, reset: bool) -> None:
        try:
            validate_data(self, X, reset=reset, skip_check_array=True)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(str(error)) from error
