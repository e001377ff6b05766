"""LightGBM's trees, trained only to be asked once: the model is not copied, and rows are looked up by their bins."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_NAMES_OF_THE_WRAPPER = ("n_estimators", "importance_type", "class_weight", "objective", "random_state")


def plain_parameters(estimator: Any) -> dict[str, Any] | None:
    """Return the parameters of a plain ``LGBMClassifier`` for its engine; None for any other classifier."""
    if type(estimator).__module__ != "lightgbm.sklearn" or type(estimator).__name__ != "LGBMClassifier":
        return None
    given = estimator.get_params()
    if given["objective"] is not None or given["class_weight"] is not None or given["boosting_type"] != "gbdt":
        return None
    known = {name: value for name, value in given.items() if name not in _NAMES_OF_THE_WRAPPER and value is not None}
    return known | {"n_rounds": given["n_estimators"], "seed": given["random_state"], "metric": "None"}


def boosted_probabilities(
    parameters: dict[str, Any],
    X: NDArray[np.float64],
    y: NDArray[Any],
    asked: NDArray[np.float64],
    n_classes: int,
) -> NDArray[np.float64]:
    """Return the class probabilities of the rows asked, as ``LGBMClassifier.fit(X, y).predict_proba(asked)`` does.

    The rows are binned as the training rows, and follow each tree as it grows: nothing is copied, written as text or
    looked up by value afterwards.

    Parameters
    ----------
    parameters : dict
        Those of ``plain_parameters``, with a seed.
    X, y : ndarray of shape (n_rows, n_columns), (n_rows,)
        Training rows, and their classes from 0 on.
    asked : ndarray of shape (n_asked, n_columns)
    n_classes : int

    Returns
    -------
    ndarray of shape (n_asked, n_classes)
    """
    import lightgbm

    options = dict(parameters)
    n_rounds = options.pop("n_rounds")
    options |= {"objective": "binary"} if n_classes == 2 else {"objective": "multiclass", "num_class": n_classes}
    train = lightgbm.Dataset(X, y, params=options)
    booster = lightgbm.Booster(options, train)
    booster.add_valid(lightgbm.Dataset(asked, np.zeros(len(asked)), reference=train, params=options), "asked")
    for _ in range(n_rounds):
        booster.update()  # one that finds no split is no reason to end: the next sees other rows and columns
    said: list[NDArray[np.float64]] = []

    def keep(scores: NDArray[np.float64], _: Any) -> tuple[str, float, bool]:
        said.append(np.array(scores))
        return "kept", 0.0, True

    booster.eval_valid(feval=keep)
    if n_classes == 2:
        return np.column_stack([1.0 - said[0], said[0]])
    return said[0].reshape(len(asked), n_classes)
