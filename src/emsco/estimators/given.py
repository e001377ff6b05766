"""MultiStageClassifier: a design that you already have."""

from typing import Any, Self

from numpy.typing import ArrayLike

from emsco.estimators.base import StagedClassifier
from emsco.prices.prices import Costs


class MultiStageClassifier(StagedClassifier):
    """A classifier that buys its features in stages, by a design you already have.

    Parameters
    ----------
    design : array-like of int of shape (n_features,), or list of lists of names
        The stage, from 0, in which each feature is bought, -1 if never; or the names bought stage after stage. None:
        everything in one stage.
    costs : None, array-like, mapping or Prices
        Price of each column, in order or by name, or of units that yield several columns. None: every column costs 1.
    threshold : float, mapping, sequence or Guarantee
        A row leaves with a label as soon as its top class probability reaches the threshold. Give one number; one
        number per class, by label; or one per stage, the last of which holds for all further stages. A
        ``Guarantee(...)`` calibrates the thresholds.
    estimator : classifier, "boosting" or None
        Trained at each stage on the features bought so far. None: l2 logistic regression.
    random_state : int, RandomState or None
        Seeds estimators that are random.
    n_jobs : int or None
        Workers that train the stages.
    encoding : "linear", "rank", "spline" or "raw"
        Encoding of numeric columns: standardised, as ranks among the training values, as ranks with spline terms, or
        not scaled.
    C : float
        Inverse regularisation strength of logistic stages.
    products : bool
        Whether logistic stages also use the products of all pairs of encoded columns.

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
        *,
        threshold: Any = 0.75,
        encoding: str = "linear",
        C: float = 1.0,
        products: bool = False,
        estimator: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.design = design
        self.costs = costs
        self.threshold = threshold
        self.encoding = encoding
        self.C = C
        self.products = products
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
        from emsco.fitting.given import fit_design
        from emsco.fitting.pipeline import Given

        table = self._begin(X)
        given = Given(table, y, X_cal=X_cal, y_cal=y_cal, names_are_text=hasattr(self, "feature_names_in_"))
        parameters = self.get_params(deep=False)
        self._deploy(fit_design(parameters, given), parameters["threshold"])
        self._warn_of_shortage()
        return self
