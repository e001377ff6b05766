"""What the parameters of a classifier name as a learner."""

from importlib.util import find_spec
from typing import Any

import numpy as np

from emsco.data.encoding import ENCODINGS, RAW
from emsco.exceptions import InvalidParameterError

# Trees, learning rate, leaves of a tree, rows of a leaf, l2, and the shares of columns and rows that a tree sees.
# From few and noisy rows to many rows with interactions; the race tries all.
_BOOSTED = {
    "light": (120, 0.06, 12, 10, 2.0, 0.6, 0.8),
    "medium": (300, 0.06, 31, 10, 1.0, 0.5, 0.8),
    "deep": (200, 0.1, 31, 20, 0.05, 1.0, 1.0),
}
BOOSTED = tuple(_BOOSTED)
TREE = "tree"  # a shrunken tree, which races with logistic stages where errors have prices


def boosting() -> Any:
    """Return the classifier named "boosting": histogram gradient boosting with trees small enough for few rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=120, learning_rate=0.08, max_leaf_nodes=12, min_samples_leaf=10, l2_regularization=2.0,
        max_features=0.6, early_stopping=False,
    )  # fmt: skip


def boosted(kind: str, *, share: float = 1.0, wide: bool = False) -> Any:
    """Return boosted trees of one of the kinds `BOOSTED`: LightGBM's if it is installed, else scikit-learn's.

    Parameters
    ----------
    kind : str
    share : float
        Share of the trees, each of which learns accordingly more: fewer are faster, and good enough to compare sets.
    wide : bool
        Whether there are many columns; then each has fewer bins.
    """
    trees, rate, leaves, rows, l2, columns, subsample = _BOOSTED[kind]
    trees, rate = max(round(trees * share), 1), min(rate / share, 0.3)
    if find_spec("lightgbm") is not None:
        from lightgbm import LGBMClassifier

        return LGBMClassifier(
            n_estimators=trees, learning_rate=rate, num_leaves=leaves, min_child_samples=rows, reg_lambda=l2,
            min_child_weight=0.01, colsample_bytree=columns, subsample=subsample,
            subsample_freq=1 if subsample < 1 else 0, max_bin=63 if wide else 255,
            deterministic=True, force_row_wise=True, n_jobs=1, verbose=-1,
        )  # fmt: skip
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=trees, learning_rate=rate, max_leaf_nodes=leaves, min_samples_leaf=rows, l2_regularization=l2,
        max_features=columns, max_bins=63 if wide else 255, early_stopping=False,
    )  # fmt: skip


def n_trees(kind: str, n_classes: int) -> int:
    """Return the number of trees that one fit of boosted trees grows: one per round and class, of two classes one."""
    return _BOOSTED[kind][0] * (n_classes if n_classes > 2 else 1)


def boosting_seconds(kind: str, model: Any, n_classes: int, n_rows: int, n_columns: Any) -> Any:
    """Return about how many seconds boosted trees take to train on one core, by numbers of columns.

    A tree looks at all rows and, leaf by leaf, at the bins of each column. ``model`` knows how many trees there are.
    """
    n_rounds = getattr(model, "n_estimators", None) or model.max_iter
    leaves = min(_BOOSTED[kind][2], n_rows / _BOOSTED[kind][3])
    each = 3e-4 + n_rows * (8e-8 + 1.1e-8 * n_columns) + 1.5e-6 * leaves * n_columns
    return n_rounds * (n_classes if n_classes > 2 else 1) * each


def check_learning(encoding: Any, C: Any, *, automatic: bool = True) -> None:
    """Raise unless encoding and C are valid."""
    known = (*ENCODINGS, RAW, "auto") if automatic else (*ENCODINGS, RAW)
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
    """Return the classifier for the value of a parameter; "auto" and "search" are names of final ones alone."""
    if not isinstance(estimator, str):
        return estimator
    names = ("boosting", "auto", "search") if name == "final_estimator" else ("boosting",)
    if estimator not in names:
        known = ", ".join(map(repr, names))
        raise InvalidParameterError(f"must be a classifier, {known} or None; got {estimator!r}.", parameter=name)
    return boosting() if estimator == "boosting" else estimator


def check_calibration(calibration: Any) -> str | None:
    """Return how probabilities are calibrated."""
    if calibration not in (None, "sigmoid", "isotonic", "temperature"):
        raise InvalidParameterError(
            f"must be 'sigmoid', 'isotonic', 'temperature' or None; got {calibration!r}.", parameter="calibration"
        )
    return None if calibration is None else str(calibration)
