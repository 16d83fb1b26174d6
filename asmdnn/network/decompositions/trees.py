"""Ensembles of decision trees: sums over trees, which a primitive makes, and what becomes of them."""

from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.forests import ARRAYS
from asmdnn.network.decompositions.class_scores import (
    LABELS,
    TRANSFORM,
    TRANSFORMS,
    above,
    best,
    labelled,
    labels_of,
    transform_of,
    transformed,
)  # fmt: skip
from asmdnn.network.decompositions.foreign import ForeignOperator
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.attributes import FLOATS, INT, INTS, TENSOR, TEXTS, Attributes, needed, one_of
from asmdnn.network.operators.own import OWN
from asmdnn.network.trees.laying import forest_of
from asmdnn.network.trees.plain import PlainTrees
from asmdnn.network.trees.reading import floats_of, indexed_trees, keyed_trees
from asmdnn.records import replace

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


def rows_of(w: Decomposer, node: Node, x: str) -> str:
    """Features as f32 or f64, a matrix.  Raises InvalidArguments."""
    dims = w.shape(x)
    if len(dims) not in (1, 2):
        raise InvalidArguments(f"{node} is given dims {dims}: rows of features have two")
    return w.reshaped(w.floats(x), *((1, *dims) if len(dims) == 1 else dims))


def sums(w: Decomposer, x: str, trees: PlainTrees, base: Array, aggregate: str = "SUM") -> str:
    """(rows, columns): base + what leaves give, together.  Raises InvalidArguments."""
    how = {"AVERAGE": "sum"}.get(aggregate, aggregate.lower())
    if aggregate == "AVERAGE":
        trees = replace(trees, weights=trees.weights / max(1, len(trees.roots)))
    dtype = w.value(x).dtype
    forest = forest_of(w.node, trees, w.shape(x)[1], len(base), how, dtype)
    arrays = [getattr(forest, name) for name in ARRAYS]
    return w("TreeEnsemble", x, *(w.constant(a, a.dtype) for a in (*arrays, base.astype(dtype))), domain=OWN,
             aggregate=how)  # fmt: skip


def base_of(node: Node, columns: int) -> Array:
    """What is added to each column; a single number of two is that of the first one.  Raises InvalidArguments."""
    found = floats_of(node, "base_values")
    if columns == 2 and len(found) == 1:
        return np.array([found[0], 0.0])
    if len(found) not in (0, columns):
        raise InvalidArguments(f"{node} has {len(found)} base_values and {columns} targets: there must be as many")
    return found if len(found) else np.zeros(columns)


def regressor(w: Decomposer, node: Node, x: str) -> tuple[str, ...]:
    columns = node.get("n_targets", 1)
    if not 1 <= columns <= 1 << 16:
        raise InvalidArguments(f"{node} has n_targets {columns}: it must be from 1 to 65536")
    trees, rows = keyed_trees(node, "target"), rows_of(w, node, x)
    y = sums(w, rows, trees, base_of(node, columns), node.get("aggregate_function", "SUM"))
    return (transformed(w, transform_of(node, columns), y),)


def ensemble(w: Decomposer, node: Node, x: str) -> tuple[str, ...]:
    """The one of operator set 5."""
    columns, how, after = (node.get(name, value) for name, value in
                           (("n_targets", 1), ("aggregate_function", 1), ("post_transform", 0)))  # fmt: skip
    if not 0 <= how < len(AGGREGATES) or not 0 <= after < len(TRANSFORMS) or not 1 <= columns <= 1 << 16:
        numbers = f"n_targets {columns}, aggregate_function {how} and post_transform {after}"
        raise InvalidArguments(f"{node} has {numbers}: these are from 1, 0 to 3, and 0 to 4")
    y = sums(w, rows_of(w, node, x), indexed_trees(node), np.zeros(columns), AGGREGATES[how])
    return (transformed(w, TRANSFORMS[after], y),)


def classifier(w: Decomposer, node: Node, x: str) -> tuple[str, ...]:
    """(labels, scores): of two classes whose leaves give to one alone both scores come from its sum."""
    labels, trees = labels_of(node), keyed_trees(node, "class")
    rows, name = rows_of(w, node, x), node.get("post_transform", "NONE")
    classes, given = len(labels), np.unique(trees.columns)
    if classes == 2 and given.tolist() == [0]:
        return of_one_score(w, node, rows, trees, labels)
    y = sums(w, rows, trees, base_of(node, classes))
    if classes == 2 and given.tolist() == [1]:
        return labelled(w, labels, above(w, w.part(y, 1, 1, 2), limit_of(trees))), transformed(w, name, y)
    return labelled(w, labels, best(w, y)), transformed(w, name, y)


def limit_of(trees: PlainTrees) -> float:
    """Above which a score is one of the second class: if no leaf gives less than 0, scores are shares."""
    return 0.5 if (trees.weights >= 0).all() else 0.0


def of_one_score(w: Decomposer, node: Node, rows: str, trees: PlainTrees, labels: Any) -> tuple[str, ...]:
    """The second score is the sum, the first one what it leaves of 1, or its negative."""
    name, base = node.get("post_transform", "NONE"), floats_of(node, "base_values")
    if len(base) > 2:
        raise InvalidArguments(f"{node} has {len(base)} base_values for two classes: there must be one or two")
    y = sums(w, rows, trees, base[-1:] if len(base) else np.zeros(1))
    limit = limit_of(trees)
    label = labelled(w, labels, above(w, y, limit))
    if name == "LOGISTIC" or not limit:
        return label, transformed(w, name if name == "LOGISTIC" else "NONE", w.joined(1, w("Neg", y), y))
    both = w.joined(1, w("Sub", w.like(y, 1), y), y)
    return label, transformed(w, "PROBIT" if name == "PROBIT" else "NONE", both)


LISTS: Attributes = {
    **{f"nodes_{name}": needed(INTS) for name in ("featureids", "falsenodeids", "truenodeids")},
    "nodes_missing_value_tracks_true": INTS,
}
KEYED: Attributes = {
    **LISTS, **{f"nodes_{name}": needed(INTS) for name in ("nodeids", "treeids")}, "nodes_modes": needed(TEXTS),
    "nodes_values": FLOATS, "nodes_values_as_tensor": TENSOR, "nodes_hitrates": FLOATS,
    "nodes_hitrates_as_tensor": TENSOR, "base_values": FLOATS, "base_values_as_tensor": TENSOR, **TRANSFORM,
}  # fmt: skip


def givers(prefix: str) -> Attributes:
    """The attributes of what leaves give."""
    ids = {f"{prefix}_{name}": needed(INTS) for name in ("ids", "nodeids", "treeids")}
    return {**ids, f"{prefix}_weights": FLOATS, f"{prefix}_weights_as_tensor": TENSOR}


V5: Attributes = {
    **LISTS, **dict.fromkeys(("aggregate_function", "post_transform", "n_targets"), INT),
    **{name: needed(INTS) for name in ("tree_roots", "nodes_trueleafs", "nodes_falseleafs", "leaf_targetids")},
    **{name: needed(TENSOR) for name in ("nodes_modes", "nodes_splits", "leaf_weights")},
    "nodes_hitrates": TENSOR, "membership_values": TENSOR,
}  # fmt: skip
DECOMPOSITIONS = {
    "TreeEnsemble": ForeignOperator(ensemble, "x", 1, V5, of_integers=True),
    "TreeEnsembleRegressor": ForeignOperator(
        regressor, "x", 1, {**KEYED, **givers("target"), "n_targets": INT, "aggregate_function": one_of(*AGGREGATES)},
        of_integers=True,
    ),
    "TreeEnsembleClassifier": ForeignOperator(
        classifier, "x", 2, {**KEYED, **givers("class"), **LABELS}, of_integers=True
    ),
}  # fmt: skip
