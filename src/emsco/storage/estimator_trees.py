"""Trees inside estimators: compiled code follows their indices without a look, so these are checked before.

Search trees of nearest neighbours are built again from their points. The text of LightGBM's trees is written again from
the numbers that were read and checked, because its parser believes what it is told.
"""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.storage.estimator_checks import Check, Here, kind_of, require
from emsco.storage.skops_file import Foreign

_NUMBER = re.compile(r"[+-]?\d{1,20}(\.\d{1,20})?(e[+-]?\d{1,3})?", re.ASCII)
_MOST_TREES = 2**20
_INNER = ("split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child", "internal_value",
          "internal_weight", "internal_count")  # fmt: skip
_LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
_CATEGORICAL = 1  # a bit of LightGBM's decision_type


def check_nodes(
    inner: NDArray[np.bool_], left: NDArray[Any], right: NDArray[Any], feature: NDArray[Any], n_features: int
) -> None:
    """Check that inner nodes lead to later ones, so that every walk ends, and look at columns there are."""
    node = np.flatnonzero(inner)
    require(inner.size > 0, "a node")
    for child in (left, right):
        to = child[node].astype(np.int64)
        require(bool(((to > node) & (to < inner.size)).all()), "children after their parents")
    looked_at = feature[node].astype(np.int64)
    require(bool(((looked_at >= 0) & (looked_at < n_features)).all()), "splits on columns there are")


def tree(per_leaf: int | str) -> Check:
    """Return the check of scikit-learn's Tree with so many numbers per leaf."""

    def check(value: Any, here: Here) -> Any:
        from sklearn.tree._tree import NODE_DTYPE, Tree

        known = isinstance(value, Foreign) and value.package == "sklearn" and value.name == "Tree"
        require(known and isinstance(value.state, dict) and len(value.arguments) == 3, f"a tree, but {kind_of(value)}")
        n_features, n_classes, n_outputs = value.arguments
        nodes, values = (value.state.get(name) for name in ("nodes", "values"))
        k = here.sizes[per_leaf] if isinstance(per_leaf, str) else per_leaf
        require(n_features == here.sizes["f"] and n_outputs == 1, "a tree of its columns")
        require(isinstance(n_classes, np.ndarray) and n_classes.tolist() == [k], "a tree of its classes")
        require(
            isinstance(nodes, np.ndarray) and nodes.ndim == 1 and nodes.dtype == NODE_DTYPE, "nodes of this version"
        )
        good = isinstance(values, np.ndarray) and values.dtype == np.float64 and values.shape == (len(nodes), 1, k)
        require(good and bool(np.isfinite(values).all()), "finite values of its nodes")
        check_nodes(nodes["left_child"] != -1, nodes["left_child"], nodes["right_child"], nodes["feature"], n_features)
        depth = value.state.get("max_depth")
        require(isinstance(depth, int) and 0 <= depth < len(nodes), "the depth of its nodes")
        made = Tree(n_features, n_classes.astype(np.intp), 1)
        state = {"max_depth": depth, "node_count": len(nodes), "nodes": np.ascontiguousarray(nodes)}
        made.__setstate__({**state, "values": np.ascontiguousarray(values)})
        return made

    return check


def predictor(value: Any, here: Here) -> Any:
    """Check a tree of histogram gradient boosting; categories are not supported."""
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    known = isinstance(value, Foreign) and value.package == "sklearn" and value.name == "TreePredictor"
    require(known and isinstance(value.state, dict), f"a tree, but {kind_of(value)}")
    nodes = value.state.get("nodes")
    good = isinstance(nodes, np.ndarray) and nodes.ndim == 1 and nodes.dtype == PREDICTOR_RECORD_DTYPE
    require(good, "nodes of this version")
    require(not nodes["is_categorical"].any(), "trees without categories")
    require(bool((nodes["is_leaf"] <= 1).all()), "nodes that are leaves or not")
    check_nodes(nodes["is_leaf"] == 0, nodes["left"], nodes["right"], nodes["feature_idx"], here.sizes["f"])
    none = np.zeros((0, 8), dtype=np.uint32)
    return TreePredictor(np.ascontiguousarray(nodes), none, none)


def search_tree(points: NDArray[Any], kind: str, *, metric: str, leaf_size: int, settings: dict[str, Any]) -> Any:
    """Return the tree in which neighbours of points are looked up, or None where all points are looked at."""
    from sklearn.neighbors import BallTree, KDTree

    if kind == "brute":
        return None
    return (KDTree if kind == "kd_tree" else BallTree)(points, leaf_size=leaf_size, metric=metric, **settings)


def booster(value: Any, here: Here) -> Any:
    """Check LightGBM's trees; return a booster that is read from a text of our own."""
    from lightgbm import Booster

    known = isinstance(value, Foreign) and value.package == "lightgbm" and value.name == "Booster"
    require(known and isinstance(value.state, dict), f"a booster, but {kind_of(value)}")
    text = value.state.get("_handle", value.state.get("handle"))
    require(isinstance(text, str) and text.isascii(), "trees as text")
    made = Booster(model_str=booster_text(str(text), here.sizes["f"], here.sizes["k"]))
    require(made.num_feature() == here.sizes["f"] and made.num_model_per_iteration() == here.sizes["l"], "its sizes")
    return made


def booster_text(text: str, n_features: int, n_classes: int) -> str:
    """Return LightGBM's text of trees written again: nothing but numbers that were checked is in it."""
    head, *trees = text.partition("\nend of trees")[0].split("\n\nTree=")
    n_logits = 1 if n_classes == 2 else n_classes
    fields = _fields(head)
    objective = "binary sigmoid:1" if n_logits == 1 else f"multiclass num_class:{n_classes}"
    wanted = {
        "version": "v4",
        "num_class": str(n_logits),
        "num_tree_per_iteration": str(n_logits),
        "max_feature_idx": str(n_features - 1),
        "objective": objective,
    }
    for name, said in wanted.items():
        require(fields.get(name) == said, f"{name}={said}")
    require(0 < len(trees) <= _MOST_TREES and len(trees) % n_logits == 0, "a tree for each class and iteration")
    blocks = [f"Tree={i}\n{_tree_text(block, n_features)}\n\n" for i, block in enumerate(trees)]
    lines = [
        "tree",
        *(f"{name}={wanted[name]}" for name in ("version", "num_class", "num_tree_per_iteration")),
        "label_index=0",
        f"max_feature_idx={n_features - 1}",
        f"objective={objective}",
        "feature_names=" + " ".join(f"Column_{i}" for i in range(n_features)),
        "feature_infos=" + " ".join(["[-1e308:1e308]"] * n_features),
        "tree_sizes=" + " ".join(str(len(block)) for block in blocks),
    ]
    return "\n".join(lines) + "\n\n" + "".join(blocks) + "end of trees\n"


def _tree_text(block: str, n_features: int) -> str:
    fields = _fields(block.partition("\n")[2])
    n_leaves = int(fields["num_leaves"]) if fields.get("num_leaves", "").isdecimal() else 0
    require(1 <= n_leaves <= 2**24 and len(fields["num_leaves"]) < 10, "leaves")
    require(fields.get("num_cat") == "0" and fields.get("is_linear", "0") == "0", "trees without categories")
    shrinkage = fields.get("shrinkage", "1")
    require(_NUMBER.fullmatch(shrinkage) is not None, "a shrinkage")
    numbers = {}
    for names, length in ((_INNER, n_leaves - 1), (_LEAVES, n_leaves)):
        for name in names:
            numbers[name] = fields.get(name, "").split()
            optional = n_leaves == 1 and name != "leaf_value" and not numbers[name]
            require(optional or len(numbers[name]) == length, f"{length} numbers of {name}")
            require(all(map(_NUMBER.fullmatch, numbers[name])), f"numbers as {name}")
    left, right, feature, kinds = (
        _whole_numbers(numbers[name]) for name in ("left_child", "right_child", "split_feature", "decision_type")
    )
    require(bool(((feature >= 0) & (feature < n_features)).all()), "splits on columns there are")
    require(bool(((kinds >= 0) & (kinds < 16) & (kinds & _CATEGORICAL == 0)).all()), "splits by numbers")
    node = np.arange(n_leaves - 1)
    for child in (left, right):
        inner = child >= 0
        require(bool(((child > node) | ~inner).all() and (child < n_leaves - 1).all()), "children after their parents")
        require(bool((~child[~inner] < n_leaves).all()), "leaves there are")
    lines = [f"num_leaves={n_leaves}", "num_cat=0", *(f"{name}={' '.join(cells)}" for name, cells in numbers.items())]
    return "\n".join([*lines, "is_linear=0", f"shrinkage={shrinkage}", ""])


def _whole_numbers(cells: list[str]) -> NDArray[np.int64]:
    require(all(re.fullmatch(r"-?\d{1,9}", cell, re.ASCII) for cell in cells), "whole numbers")
    return np.array(cells, dtype=np.int64)


def _fields(lines: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in lines.split("\n") if "=" in line)
