"""What the parameters of a classifier name as a learner."""

from typing import Any

import numpy as np

from emsco.data.encoding import ENCODINGS
from emsco.exceptions import InvalidParameterError


def boosting() -> Any:
    """Return the classifier named "boosting": histogram gradient boosting with trees small enough for few rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=120, learning_rate=0.08, max_leaf_nodes=12, min_samples_leaf=10, l2_regularization=2.0,
        max_features=0.6, early_stopping=False,
    )  # fmt: skip


def check_learning(encoding: Any, C: Any, *, automatic: bool = True) -> None:
    """Raise unless encoding and C are valid."""
    known = (*ENCODINGS, "auto") if automatic else ENCODINGS
    if not isinstance(encoding, str) or encoding not in known:
        raise InvalidParameterError(f"must be one of {', '.join(known)}; got {encoding!r}.", parameter="encoding")
    number = isinstance(C, int | float | np.integer | np.floating) and not isinstance(C, bool)
    if not (automatic and isinstance(C, str) and C == "auto") and not (number and 0 < C < np.inf):
        raise InvalidParameterError(
            f"must be a positive number{' or auto' if automatic else ''}; got {C!r}.", parameter="C"
        )


def check_products(products: Any, estimator: Any) -> bool:
    """Return whether stages use products of columns."""
    if not isinstance(products, bool | np.bool_):
        raise InvalidParameterError(f"must be True or False; got {products!r}.", parameter="products")
    if products and estimator is not None:
        raise InvalidParameterError(
            "is for logistic stages. In Python, put PolynomialFeatures(interaction_only=True) in a pipeline before an "
            "estimator of your own.",
            parameter="products",
        )
    return bool(products)


def check_estimator(estimator: Any, name: str) -> Any:
    """Return the classifier for the value of a parameter."""
    if isinstance(estimator, str):
        if estimator != "boosting":
            raise InvalidParameterError(f"must be a classifier, 'boosting' or None; got {estimator!r}.", parameter=name)
        return boosting()
    return estimator


def check_calibration(calibration: Any) -> str | None:
    """Return how probabilities are calibrated."""
    if calibration not in (None, "sigmoid", "isotonic", "temperature"):
        raise InvalidParameterError(
            f"must be 'sigmoid', 'isotonic', 'temperature' or None; got {calibration!r}.", parameter="calibration"
        )
    return None if calibration is None else str(calibration)
