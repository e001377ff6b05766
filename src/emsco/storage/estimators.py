"""Trained scikit-learn estimators <-> bytes, through skops: only types on a list are made, and only sound ones kept.

scikit-learn's compiled code follows the indices inside trees without a check, so these are checked here. What is not on
the list is refused, by name, when a classifier is saved and again when a file is loaded.
"""

from collections.abc import Iterator
from io import BytesIO
from typing import Any
import warnings
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
from numpy.typing import NDArray

from emsco.exceptions import EmscoError, MissingDependencyError, ModelFileError
from emsco.storage.container import damaged, unpack_plain

# Beside what skops trusts itself: scikit-learn's estimators, losses and links, NumPy's dtypes, ufuncs and generators.
TRUSTED = frozenset(
    {
        "collections.OrderedDict",
        "collections.defaultdict",
        "lightgbm.basic.Booster",
        "lightgbm.sklearn.LGBMClassifier",
        "numpy.dtype",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.calibration._TemperatureScaling",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.feature_selection._univariate_selection.f_classif",
        "sklearn.metrics._dist_metrics.ChebyshevDistance64",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.metrics._dist_metrics.ManhattanDistance64",
        "sklearn.metrics._dist_metrics.MinkowskiDistance64",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
    }
)

_PROBES = 5  # rows that a loaded model answers before it is accepted


def to_bytes(estimator: Any) -> bytes:
    """Return an estimator, trained or not, in skops' format."""
    skops = _skops()
    try:
        data: bytes = skops.dumps(estimator, compression=ZIP_DEFLATED)
        _check_types(data, f"{type(estimator).__name__} cannot be saved: it holds")
    except EmscoError:
        raise
    except Exception as error:  # skops raises what the parts of a foreign object raise
        raise ModelFileError(f"{type(estimator).__name__} cannot be saved: {error}") from error
    return data


def from_bytes(data: bytes, name: str) -> Any:
    """Return an estimator that ``to_bytes`` wrote."""
    skops = _skops()
    plain = _repacked(data, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            _check_types(plain, f"{name} holds")
            estimator = skops.loads(plain, trusted=sorted(TRUSTED))
            for part in _parts(estimator):
                _check_part(part)
    except EmscoError:
        raise
    except Exception as error:  # see above
        raise damaged(f"{name} is no estimator ({type(error).__name__}: {error})") from error
    return estimator


def check_model(model: Any, name: str, *, n_columns: int, n_classes: int) -> None:
    """Raise unless a loaded model answers rows of so many encoded columns with probabilities of so many classes."""
    probes = np.linspace(-1.0, 1.0, _PROBES * n_columns).reshape(n_columns, _PROBES).T
    try:
        if model.n_features_in_ != n_columns:
            raise damaged(f"{name} was trained on {model.n_features_in_} columns; its stage has {n_columns}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numbers that no training gives
            answers = np.asarray(model.predict_proba(probes))
        sound = answers.shape == (_PROBES, n_classes) and answers.dtype.kind == "f" and np.isfinite(answers).all()
    except EmscoError:
        raise
    except Exception as error:  # see above
        raise damaged(f"{name} does not answer ({type(error).__name__}: {error})") from error
    if not sound:
        raise damaged(f"{name} does not give probabilities of {n_classes} classes")


def _check_types(data: bytes, what: str) -> None:
    unknown = sorted(set(_skops().get_untrusted_types(data=data)) - TRUSTED)
    if unknown:
        raise ModelFileError(
            f"{what} {', '.join(unknown)}, which emsco.load does not make; use another estimator, or keep "
            "the classifier by other means (pickle, where you trust everyone who can write the file)."
        )


def _repacked(data: bytes, name: str) -> bytes:
    """Return a skops file whose members were read within bounds and whose arrays are as large as they say."""
    members = unpack_plain(data)
    for member, content in members.items():
        if member.endswith(".npy"):
            try:
                _check_array(content)
            except Exception as error:  # a header is evaluated as literals, which can fail in many ways
                raise damaged(f"{name} holds an array that cannot be read ({error})") from error
        elif member != "schema.json":
            raise damaged(f"{name} holds {member!r}, which is neither JSON nor an array")
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return buffer.getvalue()


def _check_array(content: bytes) -> None:
    file = BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("its version is not 1.0")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    n_cells = 1
    for length in shape:
        n_cells *= length
    if dtype.hasobject or min(shape, default=0) < 0 or n_cells * dtype.itemsize != len(content) - file.tell():
        raise ValueError(f"it is not {shape} cells of {dtype}")


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise MissingDependencyError(
            "model files of estimators other than the default one need skops: pip install 'emsco[skops]'."
        ) from error
    return skops.io


def _parts(root: Any) -> Iterator[Any]:
    """Yield every object inside an object once."""
    waiting, met = [root], {id(root): root}
    while waiting:
        part = waiting.pop()
        yield part
        inside: list[Any] = list(getattr(part, "__dict__", {}).values())
        if isinstance(part, dict):
            inside += [*part, *part.values()]
        elif isinstance(part, list | tuple | set | frozenset):
            inside += part
        elif isinstance(part, np.ndarray) and part.dtype.hasobject:
            inside += part.ravel().tolist()
        for value in inside:
            if id(value) not in met:
                met[id(value)] = value  # kept, or its id could be given to another
                waiting.append(value)


def _check_part(part: Any) -> None:
    """Raise if the object lacks a parameter, or if compiled code would follow an index of it out of its arrays."""
    from sklearn.base import BaseEstimator
    from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
    from sklearn.ensemble._forest import ForestClassifier
    from sklearn.neighbors import BallTree, KDTree, KNeighborsClassifier
    from sklearn.svm._base import BaseLibSVM
    from sklearn.tree import BaseDecisionTree
    from sklearn.tree._tree import Tree

    if isinstance(part, BaseEstimator):
        part.get_params(deep=False)  # each is there
    if isinstance(part, Tree):
        inner = part.children_left != -1
        _check_tree(inner, part.children_left, part.children_right, part.feature, part.n_features)
    elif isinstance(part, BaseDecisionTree) and hasattr(part, "tree_"):
        _require(isinstance(part.tree_, Tree) and part.tree_.n_features == part.n_features_in_, "a tree of its columns")
    elif isinstance(part, ForestClassifier | GradientBoostingClassifier) and hasattr(part, "estimators_"):
        trees = np.asarray(part.estimators_, dtype=object)
        alike = all(isinstance(t, BaseDecisionTree) and t.n_features_in_ == part.n_features_in_ for t in trees.ravel())
        _require(alike, "trees of its columns")
        if isinstance(part, GradientBoostingClassifier):
            _require(trees.shape[1:] == (part.n_trees_per_iteration_,), "a tree per class and iteration")
    elif isinstance(part, HistGradientBoostingClassifier) and hasattr(part, "_predictors"):
        for predictor in (p for iteration in part._predictors for p in iteration):
            nodes = predictor.nodes
            inner = nodes["is_leaf"] == 0
            _require(nodes.ndim == 1 and not nodes["is_categorical"].any(), "trees without categories")
            _check_tree(inner, nodes["left"], nodes["right"], nodes["feature_idx"], part.n_features_in_)
    elif isinstance(part, KDTree | BallTree):
        data, index, nodes, bounds, leaf_size, *_, metric, weights = part.__getstate__()
        again = type(part)(np.asarray(data), leaf_size=leaf_size, metric=metric).__getstate__()
        same = all(np.array_equal(a, b) for a, b in zip((index, nodes, bounds), again[1:4], strict=True))
        _require(same and weights is None and part.__getstate__()[5:7] == again[5:7], "the tree of its points")
    elif isinstance(part, KNeighborsClassifier) and hasattr(part, "_y"):
        points = part._fit_X if part._tree is None else np.asarray(part._tree.data)
        labels = np.asarray(part._y)
        fits = isinstance(points, np.ndarray) and labels.shape == (len(points),) and labels.dtype.kind == "i"
        _require(fits and 0 <= labels.min() <= labels.max() < len(part.classes_), "a label per point")
        _require(points.shape == (part.n_samples_fit_, part.n_features_in_), "points of its columns")
    elif isinstance(part, BaseLibSVM) and hasattr(part, "_n_support"):
        _check_support_vectors(part)


def _check_tree(
    inner: NDArray[np.bool_], left: NDArray[Any], right: NDArray[Any], feature: NDArray[Any], n_features: int
) -> None:
    """Check that inner nodes lead to later ones, so that every walk ends, and look at columns there are."""
    node = np.flatnonzero(inner)
    _require(inner.size > 0, "a node")
    for child in (left, right):
        to = child[node].astype(np.int64)
        _require(bool(((to > node) & (to < inner.size)).all()), "children after their parents")
    looked_at = feature[node].astype(np.int64)
    _require(bool(((looked_at >= 0) & (looked_at < n_features)).all()), "splits on columns there are")


def _check_support_vectors(machine: Any) -> None:
    n_classes, (n_vectors, n_columns) = len(machine.classes_), machine.support_vectors_.shape
    n_pairs = n_classes * (n_classes - 1) // 2
    counts = np.asarray(machine._n_support)
    _require(isinstance(machine.kernel, str) and machine.kernel != "precomputed", "a kernel with a name")
    _require(not machine._sparse and n_columns == machine.n_features_in_, "support vectors of its columns")
    _require(counts.shape == (n_classes,) and counts.min() >= 0 and counts.sum() == n_vectors, "vectors of each class")
    _require(machine._dual_coef_.shape == (n_classes - 1, n_vectors), "a weight per vector")
    _require(machine.support_.shape == (n_vectors,) and machine._intercept_.shape == (n_pairs,), "numbers per pair")
    _require(all(p.shape in ((0,), (n_pairs,)) for p in (machine._probA, machine._probB)), "numbers per pair")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"it does not have {what}")
