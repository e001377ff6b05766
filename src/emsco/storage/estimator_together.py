"""What the attributes of an estimator must be together, and what is computed from them instead of read.

Each function takes an estimator whose attributes were checked one by one, and what is known of its sizes.
"""

from math import comb
from typing import Any

import numpy as np

from emsco.storage.estimator_checks import Here, require
from emsco.storage.estimator_trees import search_tree

_MOST_PRODUCTS = 2**20  # columns that a transform may make
_HIGHEST_DEGREE = 6


def as_wide_as_its_input(made: Any, here: Here) -> None:
    """Note that a transform gives as many columns as it takes."""
    here.bind("out", here.sizes["f"])


def finish_products(made: Any, here: Here) -> None:
    """Count the columns that a transform makes."""
    degree = made.degree if isinstance(made.degree, tuple | list) else (0, made.degree)
    good = len(degree) == 2 and all(isinstance(d, int) and 0 <= d <= _HIGHEST_DEGREE for d in degree)
    require(good and degree[0] <= degree[1], f"a degree of at most {_HIGHEST_DEGREE}")
    require(comb(here.sizes["f"] + degree[1], degree[1]) <= _MOST_PRODUCTS, f"at most {_MOST_PRODUCTS:,} columns")
    made.fit(np.zeros((1, here.sizes["f"])))  # all that it learns is the number of columns
    here.bind("out", int(made.n_output_features_))


def finish_categories(made: Any, here: Here) -> None:
    """Count the columns of one-hot categories, in place of the counts in the file."""
    for categories in made.categories_:
        require(categories.size > 0 and bool((categories[:-1] < categories[1:]).all()), "categories in ascending order")
    learned = {"_infrequent_enabled": False, "drop_idx_": None, "_drop_idx_after_grouping": None}
    vars(made).update(learned, _n_features_outs=[len(categories) for categories in made.categories_])
    here.bind("out", sum(len(categories) for categories in made.categories_))


def finish_imputer(made: Any, here: Here) -> None:
    """Fill in the types of numbers."""
    require(isinstance(made.missing_values, float) and np.isnan(made.missing_values), "NaN as missing values")
    vars(made).update(_fit_dtype=np.dtype(np.float64), _fill_dtype=np.dtype(np.float64), indicator_=None)
    as_wide_as_its_input(made, here)


def finish_neighbours(made: Any, here: Here) -> None:
    """Build the tree of neighbours again from its points."""
    state = vars(made)
    k, metric, kind = here.sizes["k"], state["effective_metric_"], state["_fit_method"]
    require(made.n_neighbors <= here.sizes["s"] == state["n_samples_fit_"], "as many points as neighbours")
    require(made.classes_.dtype.kind == "i" and made.classes_.tolist() == list(range(k)), "classes without gaps")
    settings = state["effective_metric_params_"]
    wanted = {"p"} if metric == "minkowski" else set()
    require(isinstance(settings, dict) and settings.get("w") is None, "a metric without weights")
    settings = {name: value for name, value in settings.items() if name != "w"}
    require(set(settings) == wanted, "the settings of its metric")
    require(all(isinstance(p, int | float) and 1 <= p <= 1e6 for p in settings.values()), "an order of its metric")
    points = np.ascontiguousarray(state["_fit_X"], dtype=np.float64)
    leaf_size, outputs = made.leaf_size, {"outputs_2d_": False}
    found = search_tree(points, kind, metric=metric, leaf_size=leaf_size, settings=settings)
    state.update(outputs, _fit_X=points, _tree=found)


def finish_boosting(made: Any, here: Here) -> None:
    """Give histogram boosting what follows from its sizes."""
    from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper

    k, n_columns = here.sizes["k"], here.sizes["f"]
    bins = _BinMapper()
    bins.is_categorical_ = np.zeros(n_columns, dtype=np.uint8)
    bins.bin_thresholds_ = [np.zeros(0)] * n_columns
    bins.missing_values_bin_idx_ = bins.n_bins - 1
    state = {"is_categorical_": None, "_preprocessor": None, "_is_categorical_remapped": None, "_scorer": None}
    vars(made).update(state, _n_features=n_columns, _bin_mapper=bins, _loss=_loss("log_loss", k))


def finish_gradient(made: Any, here: Here) -> None:
    """Put the trees of gradient boosting into a grid of iterations and classes."""
    k, n_logits = here.sizes["k"], here.sizes["l"]
    require(made.loss == "log_loss" or k == 2, "two classes for its loss")
    grid = np.empty((len(made.estimators_), n_logits), dtype=object)
    for i, row in enumerate(made.estimators_):
        require(len(row) == n_logits, "a tree per class and iteration")
        grid[i] = row
    made.estimators_ = grid
    vars(made).update(_loss=_loss(made.loss, k))


def _loss(name: str, n_classes: int) -> Any:
    from sklearn._loss.loss import ExponentialLoss, HalfBinomialLoss, HalfMultinomialLoss

    if name == "exponential":
        return ExponentialLoss()
    return HalfBinomialLoss() if n_classes == 2 else HalfMultinomialLoss(n_classes=n_classes)


def finish_machine(made: Any, here: Here) -> None:
    """Check what libsvm reads without a look."""
    state, k = vars(made), here.sizes["k"]
    counts, n_pairs = state["_n_support"], k * (k - 1) // 2
    require(bool(counts.sum() == here.sizes["s"]) and here.sizes["s"] > 0, "vectors of each class")
    require(here.sizes["k-1"] == k - 1 and here.sizes["pairs"] == n_pairs, "numbers per pair")
    require(here.sizes["sigmoids"] == n_pairs, "probabilities: train it with probability=True")
    for name in ("support_", "_n_support"):
        require(state[name].dtype == np.int32, "indices of 32 bits")
    for name in ("support_vectors_", "_dual_coef_", "_intercept_", "_probA", "_probB"):
        state[name] = np.ascontiguousarray(state[name], dtype=np.float64)
    state.update(_sparse=False, _effective_probability=True, shape_fit_=(here.sizes["s"], here.sizes["f"]))


def finish_network(made: Any, here: Here) -> None:
    """Check that layers fit each other."""
    widths = [here.sizes["f"]]
    require(len(made.coefs_) == len(made.intercepts_) == made.n_layers_ - 1, "as many layers as it says")
    for weights, offsets in zip(made.coefs_, made.intercepts_, strict=True):
        require(weights.shape == (widths[-1], offsets.size), "layers that fit each other")
        widths.append(offsets.size)
    n_logits = here.sizes["l"]
    require(widths[-1] == made.n_outputs_ == n_logits, "an output per class")
    require(made.out_activation_ == ("logistic" if n_logits == 1 else "softmax"), "an activation for its classes")


def finish_isotonic(made: Any, here: Here) -> None:
    """Check that the steps of an isotonic regression ascend."""
    X = made.X_thresholds_
    require(X.size > 0 and bool((X[:-1] < X[1:]).all()), "thresholds in ascending order")


def finish_light(made: Any, here: Here) -> None:
    """Check the sizes of LightGBM's classifier, and fill in what only training needs."""
    state, k = vars(made), here.sizes["k"]
    require(state["_classes"].tolist() == list(range(k)), "classes without gaps")
    require(state["_n_features"] == state["_n_features_in"] == here.sizes["f"], "its columns")
    state.update(fitted_=True, _fitted_with_feature_names=False, _evals_result={}, _best_score={}, _best_iteration=0)
    state.update(_class_map={i: i for i in range(k)}, _class_weight=None)
