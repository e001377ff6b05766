"""The estimators that a model file may hold, and what each of their attributes must be.

The list is short on purpose: what is on it is checked to the last index. An attribute that is not listed is refused.
``left_out`` marks what only training needs; it is not read, and a loaded estimator does not have it. Settings are
checked as ``plain`` values unless said otherwise.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from emsco.exceptions import shown
from emsco.storage.estimator_checks import (
    MOST_CLASSES,
    Check,
    Here,
    floats,
    labels,
    left_out,
    listed,
    number,
    one_of,
    part,
    plain,
    require,
    size,
    template,
    templates,
    whole,
    wholes,
    workers,
)
from emsco.storage.estimator_together import (
    as_wide_as_its_input,
    finish_boosting,
    finish_categories,
    finish_gradient,
    finish_imputer,
    finish_isotonic,
    finish_light,
    finish_machine,
    finish_neighbours,
    finish_network,
    finish_products,
)
from emsco.storage.estimator_trees import booster, predictor, tree
from emsco.storage.skops_file import Foreign


@dataclass(frozen=True)
class Spec:
    """What a class is made from.

    Attributes
    ----------
    module : str
        Where it is imported from; the module that a file names is not.
    attributes : mapping of str to check
        What training gives it, in the order in which it is checked.
    optional : mapping of str to check
        What it may lack.
    settings : mapping of str to check
        Its parameters that are more than plain values, or that prediction reads.
    finish : callable or None
        Takes the object once it is made and what is known of it: checks what attributes must be together.
    """

    module: str
    attributes: Mapping[str, Check] = field(default_factory=dict)
    optional: Mapping[str, Check] = field(default_factory=dict)
    settings: Mapping[str, Check] = field(default_factory=dict)
    finish: Callable[[Any, Here], None] | None = None


def _unused(*names: str) -> dict[str, Check]:
    return dict.fromkeys(names, left_out)


def _steps(value: Any, here: Here) -> list[tuple[str, Any]]:
    """Check the steps of a trained pipeline: each takes as many columns as the one before gives."""
    require(isinstance(value, list) and value != [], "steps")
    sizes = {name: n for name, n in here.sizes.items() if name == "f"}
    steps = []
    for name, step in value:
        require(isinstance(name, str), "names of steps")
        passes = step in ("passthrough", None) if not isinstance(step, Foreign) else False
        if passes and "f" in sizes:
            steps.append((name, step))
            continue
        kinds = CLASSIFIERS if len(steps) == len(value) - 1 else TRANSFORMERS
        made, found = here.build(step, kinds, sizes)
        here.sizes.setdefault("f", found["f"])
        sizes = {"f": found.get("out", found["f"])}
        steps.append((name, made))
    require("k" in found, "a classifier as its last step")
    here.share(found, "k", "l")
    return steps


def _first_guess(value: Any, here: Here) -> Any:
    return value if isinstance(value, str) and value == "zero" else part(*CLASSIFIERS, same=("f", "k"))(value, here)


def _finish_bagging(made: Any, here: Here) -> None:
    """Make the parts, each of which sees columns of its own."""
    require(len(made.estimators_) == len(made.estimators_features_), "columns of every part")
    made.estimators_ = [
        here.build(value, CLASSIFIERS, {"f": len(columns)})[0]
        for value, columns in zip(made.estimators_, made.estimators_features_, strict=True)
    ]


def _foreign(value: Any, here: Here) -> Foreign:
    """Take a part that ``finish`` makes."""
    require(isinstance(value, Foreign), "a part")
    return value  # type: ignore[no-any-return]


def _light_others(value: Any, here: Here) -> dict[str, Any]:
    """Check further settings of LightGBM, which reads them from one text: numbers only, of names that are known."""
    known = isinstance(value, dict) and set(value) <= set(_LIGHT_OTHERS)
    require(known, f"known settings only, {', '.join(_LIGHT_OTHERS)}, but {shown(value)}")
    return {name: item if isinstance(item, bool) else number()(item, here) for name, item in value.items()}


_LIGHT_NUMBERS = ("num_leaves", "max_depth", "learning_rate", "n_estimators", "subsample_for_bin", "min_split_gain",
                  "min_child_weight", "min_child_samples", "subsample", "subsample_freq", "colsample_bytree",
                  "reg_alpha", "reg_lambda")  # fmt: skip
_LIGHT_OTHERS = ("verbose", "verbosity", "max_bin", "min_data_in_bin", "is_unbalance", "scale_pos_weight",
                 "extra_trees", "path_smooth", "max_delta_step", "feature_fraction_bynode", "deterministic",
                 "force_col_wise", "force_row_wise", "seed", "extra_seed", "bagging_seed", "feature_fraction_seed",
                 "data_random_seed")  # fmt: skip
_SIZES: dict[str, Check] = {"n_features_in_": size("f"), "classes_": labels}
_MEMBERS = _unused("named_estimators_", "_n_feature_outs", "feature_names_in_")
_TREE = Spec(
    "sklearn.tree",
    {**_SIZES, "n_classes_": size("k", MOST_CLASSES), "n_outputs_": one_of(1), "tree_": tree("k")},
    _unused("max_features_"),
)
_FORESTS = _unused("estimator", "estimator_params", "estimator_", "_n_samples", "_sample_weight",
                   "_n_samples_bootstrap", "oob_decision_function_", "oob_score_")  # fmt: skip
_COUNTS: dict[str, Check] = {
    **_SIZES,
    "class_count_": floats("k", least=0),
    "feature_count_": floats("k", "f", least=0),
    "feature_log_prob_": floats("k", "f", finite=False),
    "class_log_prior_": floats("k", finite=False),
}
_LINE: dict[str, Check] = {**_SIZES, "coef_": floats("l", "f"), "intercept_": floats("l")}


def _forest(of: str) -> Spec:
    learned: dict[str, Check] = {
        **_SIZES,
        "n_classes_": size("k", MOST_CLASSES),
        "n_outputs_": one_of(1),
        "estimators_": listed(part(of, same=("f", "k"))),
    }
    return Spec("sklearn.ensemble", learned, _FORESTS)


_PARTS: dict[str, Spec] = {
    "LabelEncoder": Spec("sklearn.preprocessing", {"classes_": labels}),
    "LabelBinarizer": Spec(
        "sklearn.preprocessing",
        {"classes_": labels, "y_type_": one_of("binary", "multiclass"), "sparse_input_": one_of(False)},
    ),
    "_CalibratedClassifier": Spec(
        "sklearn.calibration",
        {
            "classes": labels,
            "estimator": lambda value, here: part(*CLASSIFIERS, *MARGINS)(value, here),
            "calibrators": listed(part("_SigmoidCalibration", "IsotonicRegression", "_TemperatureScaling", same=())),
            "method": one_of("sigmoid", "isotonic", "temperature"),
        },
        settings=_unused("estimator", "calibrators", "classes", "method"),
    ),
    "_SigmoidCalibration": Spec("sklearn.calibration", {"a_": number(), "b_": number()}),
    "_TemperatureScaling": Spec("sklearn.calibration", {"beta_": number()}),
    "IsotonicRegression": Spec(
        "sklearn.isotonic",
        {
            "X_thresholds_": floats("t"),
            "y_thresholds_": floats("t"),
            "X_min_": number(),
            "X_max_": number(),
            "increasing_": one_of(True, False),
        },
        settings={"out_of_bounds": one_of("clip", "nan", "raise")},
        finish=finish_isotonic,
    ),
    "DecisionTreeRegressor": Spec(
        "sklearn.tree",
        {"n_features_in_": size("f"), "n_outputs_": one_of(1), "tree_": tree(1)},
        _unused("max_features_", "class_weight"),
    ),
    "LinearSVC": Spec("sklearn.svm", _LINE, _unused("n_iter_")),
}

_TRANSFORMERS: dict[str, Spec] = {
    "StandardScaler": Spec(
        "sklearn.preprocessing",
        {"n_features_in_": size("f")},
        {"mean_": floats("f"), "scale_": floats("f"), "var_": floats("f"), **_unused("n_samples_seen_")},
        {"with_mean": one_of(True, False), "with_std": one_of(True, False)},
        as_wide_as_its_input,
    ),
    "MinMaxScaler": Spec(
        "sklearn.preprocessing",
        {"n_features_in_": size("f"), "min_": floats("f"), "scale_": floats("f")},
        {"data_min_": floats("f"), "data_max_": floats("f"), "data_range_": floats("f"), **_unused("n_samples_seen_")},
        finish=as_wide_as_its_input,
    ),
    "MaxAbsScaler": Spec(
        "sklearn.preprocessing",
        {"n_features_in_": size("f"), "scale_": floats("f"), "max_abs_": floats("f")},
        _unused("n_samples_seen_"),
        finish=as_wide_as_its_input,
    ),
    "RobustScaler": Spec(
        "sklearn.preprocessing",
        {"n_features_in_": size("f")},
        {"center_": floats("f"), "scale_": floats("f")},
        finish=as_wide_as_its_input,
    ),
    "PolynomialFeatures": Spec(
        "sklearn.preprocessing",
        {"n_features_in_": size("f")},
        _unused("_min_degree", "_max_degree", "n_output_features_", "_n_out_full"),
        {
            "interaction_only": one_of(True, False),
            "include_bias": one_of(True, False),
            "order": one_of("C", "F"),
        },
        finish_products,
    ),
    "SimpleImputer": Spec(
        "sklearn.impute",
        {"n_features_in_": size("f"), "statistics_": floats("f")},
        _unused("_fit_dtype", "_fill_dtype", "indicator_"),
        {
            "add_indicator": one_of(False),
            "strategy": one_of("mean", "median", "most_frequent", "constant"),
        },
        finish_imputer,
    ),
    "OneHotEncoder": Spec(
        "sklearn.preprocessing",
        {"n_features_in_": size("f"), "categories_": listed(floats(None), length="f")},
        _unused("_infrequent_enabled", "drop_idx_", "_drop_idx_after_grouping", "_n_features_outs"),
        {
            "drop": one_of(None),
            "min_frequency": one_of(None),
            "max_categories": one_of(None),
            "dtype": lambda value, here: np.float64,
            "handle_unknown": one_of("error", "ignore", "infrequent_if_exist", "warn"),
            "sparse_output": one_of(True, False),
        },
        finish_categories,
    ),
}  # fmt: skip

_CLASSIFIERS: dict[str, Spec] = {
    "LogisticRegression": Spec("sklearn.linear_model", _LINE, _unused("n_iter_", "multi_class")),
    "DecisionTreeClassifier": _TREE,
    "ExtraTreeClassifier": _TREE,
    "RandomForestClassifier": _forest("DecisionTreeClassifier"),
    "ExtraTreesClassifier": _forest("ExtraTreeClassifier"),
    "GradientBoostingClassifier": Spec(
        "sklearn.ensemble",
        {
            **_SIZES,
            "n_trees_per_iteration_": size("l", MOST_CLASSES),
            "n_classes_": size("k", MOST_CLASSES),
            "n_estimators_": whole(1),
            "init_": _first_guess,
            "estimators_": listed(listed(part("DecisionTreeRegressor"))),
        },
        _unused("_loss", "_rng", "train_score_", "oob_improvement_", "oob_scores_", "oob_score_", "max_features_",
                "alpha"),
        {"init": lambda value, here: value if value == "zero" else template(value, here),
         "learning_rate": number(0), "loss": one_of("log_loss", "exponential")},
        finish_gradient,
    ),
    "HistGradientBoostingClassifier": Spec(
        "sklearn.ensemble",
        {
            **_SIZES,
            "n_trees_per_iteration_": size("l", MOST_CLASSES),
            "_baseline_prediction": floats(1, "l"),
            "_predictors": listed(listed(predictor, length="l"), least=0),
            "_label_encoder": part("LabelEncoder", same=("k",)),
        },
        _unused("is_categorical_", "_preprocessor", "_is_categorical_remapped", "_random_seed",
                "_feature_subsample_rng", "_n_features", "_loss", "do_early_stopping_", "_use_validation_data",
                "_bin_mapper", "_scorer", "train_score_", "validation_score_"),
        {"categorical_features": one_of(None, "from_dtype"), "loss": one_of("log_loss")},
        finish_boosting,
    ),
    "LGBMClassifier": Spec(
        "lightgbm",
        {
            "_n_features_in": size("f"),
            "_n_features": size("f"),
            "_classes": labels,
            "_n_classes": size("k", MOST_CLASSES),
            "_objective": one_of("binary", "multiclass"),
            "_Booster": booster,
            "_le": part("LabelEncoder", same=("k",)),
        },
        _unused("_evals_result", "_best_score", "_best_iteration", "_class_weight", "_class_map",
                "_fitted_with_feature_names", "fitted_", "_other_params"),
        {
            **dict.fromkeys(_LIGHT_NUMBERS, number()),
            "objective": one_of(None, "binary", "multiclass"),
            "boosting_type": one_of("gbdt", "dart", "rf", "goss"),
            "importance_type": one_of("split", "gain"),
            "_other_params": _light_others,
        },
        finish_light,
    ),
    "AdaBoostClassifier": Spec(
        "sklearn.ensemble",
        {
            **_SIZES,
            "n_classes_": size("k", MOST_CLASSES),
            "estimators_": lambda value, here: listed(part(*CLASSIFIERS, same=("f", "k")), length="n")(value, here),
            "estimator_weights_": floats("n"),
        },
        {"estimator_errors_": floats("n", finite=False), **_unused("estimator_params", "estimator_", "algorithm")},
        {"estimator": template},
    ),
    "BaggingClassifier": Spec(
        "sklearn.ensemble",
        {
            **_SIZES,
            "n_classes_": size("k", MOST_CLASSES),
            "estimators_": listed(_foreign),
            "estimators_features_": listed(wholes(None, below="f")),
        },
        _unused("estimator_params", "estimator_", "_n_samples", "_max_samples", "_max_features", "_sample_weight",
                "_seeds", "oob_decision_function_", "oob_score_"),
        {"estimator": template},
        _finish_bagging,
    ),
    "VotingClassifier": Spec(
        "sklearn.ensemble",
        {
            "classes_": labels,
            "estimators_": lambda value, here: listed(part(*CLASSIFIERS, same=("f", "k")))(value, here),
            "le_": part("LabelEncoder", same=("k",)),
        },
        _MEMBERS,
        {"estimators": templates, "voting": one_of("soft")},
    ),
    "StackingClassifier": Spec(
        "sklearn.ensemble",
        {
            "classes_": labels,
            "estimators_": lambda value, here: listed(part(*CLASSIFIERS, *MARGINS, same=("f", "k")))(value, here),
            "final_estimator_": lambda value, here: part(*CLASSIFIERS, same=("k",))(value, here),
            "_label_encoder": part("LabelEncoder", same=("k",)),
            "stack_method_": listed(one_of("predict_proba", "decision_function", "predict")),
        },
        _MEMBERS,
        {"estimators": templates, "final_estimator": template, "passthrough": one_of(True, False)},
    ),
    "CalibratedClassifierCV": Spec(
        "sklearn.calibration",
        {**_SIZES, "calibrated_classifiers_": listed(part("_CalibratedClassifier"))},
        settings={"estimator": template},
    ),
    "FrozenEstimator": Spec(
        "sklearn.frozen",
        settings={"estimator": lambda value, here: part(*CLASSIFIERS, *MARGINS, same=("f", "k", "l"))(value, here)},
    ),
    "Pipeline": Spec("sklearn.pipeline", settings={"steps": _steps, "memory": one_of(None)}),
    "GaussianNB": Spec(
        "sklearn.naive_bayes",
        {
            **_SIZES,
            "theta_": floats("k", "f"),
            "var_": floats("k", "f", least=0),
            "class_prior_": floats("k"),
            "class_count_": floats("k", least=0),
        },
        {"epsilon_": number()},
    ),
    "BernoulliNB": Spec("sklearn.naive_bayes", _COUNTS),
    "MultinomialNB": Spec("sklearn.naive_bayes", _COUNTS),
    "ComplementNB": Spec("sklearn.naive_bayes", {**_COUNTS, "feature_all_": floats("f", least=0)}),
    "LinearDiscriminantAnalysis": Spec(
        "sklearn.discriminant_analysis",
        {**_LINE, "priors_": floats("k"), "means_": floats("k", "f")},
        {"xbar_": floats("f"), "scalings_": floats("f", "c"), "explained_variance_ratio_": floats("v"),
         "covariance_": floats("f", "f"), "_max_components": whole(), "_n_features_out": whole()},
        {"covariance_estimator": one_of(None)},
    ),
    "QuadraticDiscriminantAnalysis": Spec(
        "sklearn.discriminant_analysis",
        {
            **_SIZES,
            "priors_": floats("k"),
            "means_": floats("k", "f"),
            "rotations_": listed(floats("f", None), length="k"),
            "scalings_": listed(floats(None), length="k"),
        },
        _unused("covariance_"),
        {"covariance_estimator": one_of(None)},
    ),
    "KNeighborsClassifier": Spec(
        "sklearn.neighbors",
        {
            **_SIZES,
            "_fit_X": floats("s", "f"),
            "_y": wholes("s", below="k"),
            "n_samples_fit_": size("s", 2**40),
            "_fit_method": one_of("kd_tree", "ball_tree", "brute"),
            "effective_metric_": one_of("euclidean", "manhattan", "chebyshev", "minkowski"),
            "effective_metric_params_": plain,
            "_tree": left_out,
            "outputs_2d_": one_of(False),
        },
        _unused("radius"),
        {
            "n_neighbors": whole(1),
            "weights": one_of("uniform", "distance"),
            "leaf_size": whole(1, 2**20),
            "metric": one_of("euclidean", "manhattan", "chebyshev", "minkowski", "l1", "l2"),
            "metric_params": one_of(None),
            "p": number(1, 1e6),
        },
        finish_neighbours,
    ),
    "MLPClassifier": Spec(
        "sklearn.neural_network",
        {
            **_SIZES,
            "n_layers_": whole(2, 2**10),
            "n_outputs_": whole(1, MOST_CLASSES),
            "out_activation_": one_of("logistic", "softmax"),
            "coefs_": listed(floats(None, None)),
            "intercepts_": listed(floats(None)),
            "_label_binarizer": part("LabelBinarizer", same=("k",)),
        },
        {"n_iter_": whole(), "t_": whole(most=2**62), **_unused(
            "loss", "loss_", "loss_curve_", "best_loss_", "validation_scores_", "best_validation_score_", "_optimizer",
            "_random_state", "_best_coefs", "_best_intercepts", "_no_improvement_count", "_coef_indptr",
            "_intercept_indptr")},
        {"activation": one_of("identity", "logistic", "tanh", "relu")},
        finish_network,
    ),
    "SVC": Spec(
        "sklearn.svm",
        {
            **_SIZES,
            "support_vectors_": floats("s", "f"),
            "support_": wholes("s", below=2**31 - 1),
            "_n_support": wholes("k", below=2**31 - 1),
            "_dual_coef_": floats("k-1", "s"),
            "dual_coef_": floats("k-1", "s"),
            "_intercept_": floats("pairs"),
            "intercept_": floats("pairs"),
            "_probA": floats("sigmoids"),
            "_probB": floats("sigmoids"),
            "_gamma": number(0),
            "class_weight_": floats("k"),
            "fit_status_": one_of(0),
        },
        _unused("nu", "epsilon", "_sparse", "_effective_probability", "_num_iter", "shape_fit_", "n_iter_"),
        {
            "kernel": one_of("linear", "poly", "rbf", "sigmoid"),
            "degree": whole(0, 1000),
            "coef0": number(),
            "cache_size": number(0, 1e6),
            "probability": one_of(True, False, "deprecated"),
        },
        finish_machine,
    ),
    "DummyClassifier": Spec(
        "sklearn.dummy",
        {
            **_SIZES,
            "n_classes_": size("k", MOST_CLASSES),
            "n_outputs_": one_of(1),
            "class_prior_": floats("k"),
            "_strategy": one_of("prior", "stratified", "uniform", "most_frequent"),
            "sparse_output_": one_of(False),
        },
    ),
}  # fmt: skip

MARGINS: tuple[str, ...] = ("LinearSVC",)
CLASSIFIERS: tuple[str, ...] = tuple(_CLASSIFIERS)
TRANSFORMERS = tuple(_TRANSFORMERS)
SPECS: dict[str, Spec] = {**_PARTS, **_TRANSFORMERS, **_CLASSIFIERS}
EVERYWHERE: dict[str, Check] = {
    **_unused("feature_names_in_", "_metadata_request", "_sklearn_output_config", "_repr_html_"),
    "n_jobs": workers,
}
