"""LinearRegressor and LinearClassifier: products, and what becomes of them."""

import numpy as np

from asmdnn.errors import InvalidArguments, counted
from asmdnn.network.decompositions.class_scores import (
    LABELS,
    TRANSFORM,
    above,
    best,
    labelled,
    labels_of,
    transform_of,
    transformed,
)  # fmt: skip
from asmdnn.network.decompositions.foreign import ForeignOperator
from asmdnn.network.decompositions.trees import rows_of
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import Node
from asmdnn.network.operators.attributes import FLOATS, INT, Attributes, needed


def products(w: Decomposer, node: Node, x: str, count: int) -> str:
    """(rows, count): x coefficients^T + intercepts.  Raises InvalidArguments."""
    weights, shift = (np.asarray(node.get(name, ()), np.float64) for name in ("coefficients", "intercepts"))
    features = w.shape(x)[1]
    if len(weights) != count * features or len(shift) not in (0, count):
        found = f"{len(weights)} coefficients and {len(shift)} intercepts"
        raise InvalidArguments(
            f"{node} has {found}, {counted(count, 'score')} of {features} features need {count * features}"
        )
    y = w("MatMul", x, w.like(x, weights.reshape(count, features).T))
    return w.add(y, w.like(x, shift)) if len(shift) else y


def regressor(w: Decomposer, node: Node, x: str) -> tuple[str, ...]:
    count = node.get("targets", 1)
    if not 1 <= count <= 1 << 16:
        raise InvalidArguments(f"{node} has targets {count}: it must be from 1 to 65536")
    y = products(w, node, rows_of(w, node, x), count)
    return (transformed(w, transform_of(node, count), y),)


def classifier(w: Decomposer, node: Node, x: str) -> tuple[str, ...]:
    """(labels, scores); a single score is that of the second class of two."""
    labels, rows, name = labels_of(node), rows_of(w, node, x), node.get("post_transform", "NONE")
    count = len(node.get("intercepts", ())) or max(1, len(node.get("coefficients", ())) // max(1, w.shape(rows)[1]))
    y = products(w, node, rows, count)
    if count > 1:
        if count != len(labels):
            raise InvalidArguments(
                f"{node} has {counted(count, 'score')} and {counted(len(labels), 'classlabel')}: there must be as many"
            )
        return labelled(w, labels, best(w, y)), transformed(w, name, y)
    if len(labels) != 2:
        raise InvalidArguments(f"{node} has one score and {counted(len(labels), 'classlabel')}: two are needed")
    label = labelled(w, labels, above(w, y, 0.0))
    if name == "LOGISTIC":
        return label, w("Sigmoid", w.joined(1, w("Neg", y), y))
    y = w.joined(1, w("Neg", y), y)
    return label, transformed(w, name, y)


LINEAR: Attributes = {"coefficients": needed(FLOATS), "intercepts": FLOATS, **TRANSFORM}
DECOMPOSITIONS = {
    "LinearRegressor": ForeignOperator(regressor, "x", 1, {**LINEAR, "targets": INT}, of_integers=True),
    "LinearClassifier": ForeignOperator(classifier, "x", 2, {**LINEAR, **LABELS, "multi_class": INT}, of_integers=True),
}
