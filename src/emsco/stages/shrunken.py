"""Shrunken trees: decision trees whose nodes are drawn towards the node above, for few rows and few columns."""

from typing import Any

from sklearn.tree import DecisionTreeClassifier

_STRENGTH = 4.0  # rows of the node above that each node has besides its own


class ShrunkenTree(DecisionTreeClassifier):  # type: ignore[misc]
    """A decision tree with probabilities that few rows in a leaf do not make certain.

    ``fit`` returns a plain ``DecisionTreeClassifier``, which files and exports know. From the root down, the class
    shares of a node are those of its n rows and of as many as `_STRENGTH` rows with the shares of the node above.

    Examples
    --------
    >>> tree = ShrunkenTree(min_samples_leaf=1).fit([[0.0], [0.0], [1.0], [1.0]], [0, 0, 1, 1])
    >>> tree.predict_proba([[0.0]]).round(3).tolist()
    [[0.667, 0.333]]
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> DecisionTreeClassifier:
        """Return the trained tree."""
        plain = DecisionTreeClassifier(**self.get_params(deep=False))
        plain.fit(X, y, sample_weight, check_input)
        tree = plain.tree_
        shares, n_rows = tree.value[:, 0], tree.weighted_n_node_samples
        for node in range(tree.node_count):  # a node comes before those below it
            for child in (tree.children_left[node], tree.children_right[node]):
                if child >= 0:
                    own = n_rows[child] * shares[child] + _STRENGTH * shares[node]
                    shares[child] = own / (n_rows[child] + _STRENGTH)
        return plain


def shrunken_tree() -> ShrunkenTree:
    """Return the tree that races with logistic stages where errors have prices."""
    return ShrunkenTree(min_samples_leaf=2, max_leaf_nodes=_MOST_LEAVES, random_state=0)


def tree_seconds(n_rows: int, n_columns: float) -> float:
    """Return about how many seconds a tree takes to train, on one core."""
    return 1.5e-3 + 5e-8 * n_rows * n_columns


_MOST_LEAVES = 64
