"""SVMRegressor and SVMClassifier: products with support vectors, a function of them, and products with coefficients."""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, shown
from asmdnn.network.decompositions.class_scores import (
    INT64,
    LABELS,
    TRANSFORM,
    best,
    labelled,
    labels_of,
    transformed,
)  # fmt: skip
from asmdnn.network.decompositions.foreign import ForeignOperator
from asmdnn.network.decompositions.pairwise import MOST_CLASSES, probabilities
from asmdnn.network.decompositions.trees import rows_of
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.attributes import FLOATS, INT, INTS, Attributes, needed, one_of

KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
SHARE = 0.5  # above which a score of positive coefficients is one of the second class


class SupportVectors(NamedTuple):
    """Vectors (vectors, features) and what their kernels are multiplied with, (vectors, scores), in f64."""

    vectors: Array
    coefficients: Array
    shift: Array


def numbers(node: Node, name: str) -> Array:
    return np.asarray(node.get(name, ()), np.float64)


def check_count(node: Node, name: str, count: int) -> None:
    """Raise InvalidArguments unless an attribute has so many elements."""
    found = len(node.get(name, ()))
    if found != count:
        raise InvalidArguments(f"{node} has {found} {name}, with its other attributes it needs {count}")


def scores(w: Decomposer, node: Node, x: str, machine: SupportVectors) -> str:
    """(rows, scores): kernels of x and the vectors, times the coefficients."""
    vectors, coefficients, shift = machine
    kind = node.get("kernel_type", "LINEAR")
    if kind == "LINEAR":
        y = w("MatMul", x, w.like(x, vectors.T @ coefficients))
    else:
        y = w("MatMul", kernels(w, node, x, vectors), w.like(x, coefficients))
    return w.add(y, w.like(x, shift))


def kernels(w: Decomposer, node: Node, x: str, vectors: Array) -> str:
    """(rows, vectors), of rows and support vectors; distances are those from the vectors' mean, which are shorter."""
    check_count(node, "kernel_params", 3)
    gamma, shift, degree = numbers(node, "kernel_params")
    kind = node.get("kernel_type")
    if kind == "RBF":
        middle = vectors.mean(axis=0).astype(np.float32)  # the same for both
        x, vectors = w.sub(x, w.like(x, middle)), vectors - middle
        own = w.mul(w.reduced("ReduceSumSquare", x, 1), -gamma)
        y = w("MatMul", x, w.like(x, 2 * gamma * vectors.T))
        y = w.add(w.add(y, w.like(x, -gamma * (vectors**2).sum(axis=1))), own)
        return w("Exp", w("Min", y, w.like(x, 0)) if gamma >= 0 else y)
    y = w.add(w("MatMul", x, w.like(x, gamma * vectors.T)), w.like(x, shift))
    return w("Tanh", y) if kind == "SIGMOID" else w("Pow", y, w.like(x, degree))


def regressor(w: Decomposer, node: Node, x: str) -> tuple[str, ...]:
    """One number a row, or with one_class 1 for those above 0, else -1."""
    rows, count = rows_of(w, node, x), node.get("n_supports", 0)
    features = w.shape(rows)[1]
    check_count(node, "rho", 1)
    check_count(node, "coefficients", count or features)
    if count:
        check_count(node, "support_vectors", count * features)
        vectors = numbers(node, "support_vectors").reshape(count, features)
        y = scores(w, node, rows, SupportVectors(vectors, numbers(node, "coefficients")[:, None], numbers(node, "rho")))
    else:
        y = w("MatMul", rows, w.like(rows, numbers(node, "coefficients")[:, None]))
        y = w.add(y, w.like(rows, numbers(node, "rho")))
    if node.get("one_class", 0):
        y = w.where(w("Greater", y, w.like(rows, 0)), w.like(rows, 1), w.like(rows, -1))
    return (y,)


def classifier(w: Decomposer, node: Node, x: str) -> tuple[str, ...]:
    """(labels, scores): by the votes of all pairs of classes; without support vectors by the largest score."""
    labels, rows, name = labels_of(node), rows_of(w, node, x), node.get("post_transform", "NONE")
    if not sum(node.get("vectors_per_class", ())):
        return linear(w, node, rows, labels)
    machine = machine_of(node, w.shape(rows)[1], len(labels))
    y, pairs = scores(w, node, rows, machine), len(machine.shift)
    label = labelled(w, labels, winners(w, y, len(labels)))
    if node.get("prob_a", ()):
        if len(labels) > MOST_CLASSES:
            what = f"{node} has probabilities of {len(labels)} classes, at most {MOST_CLASSES} are read"
            raise Unimplemented(f"{what}: export its votes alone")
        for which in ("prob_a", "prob_b"):
            check_count(node, which, pairs)
        return label, transformed(w, name, probabilities(w, y, numbers(node, "prob_a"), numbers(node, "prob_b")))
    if len(labels) > 2:
        return label, transformed(w, name, y)
    return label, of_two(w, name, y)


def winners(w: Decomposer, y: str, classes: int) -> str:
    """The class (rows,) with most votes, the first of equal ones: a score above 0 is one for the first of its pair."""
    if classes == 2:
        is_first = w("Greater", w.reshaped(y, w.shape(y)[0]), w.like(y, 0))
        return w("Cast", w("Not", is_first), to=INT64)
    pairs = list(combinations(range(classes), 2))
    moved = np.zeros((len(pairs), classes))  # a vote goes from the second class of a pair to the first
    for at, (first, second) in enumerate(pairs):
        moved[at, [first, second]] = 1, -1
    votes = w("MatMul", w.number(w("Greater", y, w.like(y, 0))), w.like(y, moved))
    return best(w, w.add(votes, w.like(y, np.arange(classes))))


def of_two(w: Decomposer, name: str, y: str) -> str:
    """Both scores of two classes, as onnxruntime makes them of one."""
    if name in ("NONE", "LOGISTIC"):
        both = w.joined(1, w("Neg", y), y)
        return w("Sigmoid", both) if name == "LOGISTIC" else both
    if name == "PROBIT":
        raise Unimplemented(f"{w.node} has post_transform PROBIT of one score: read it with NONE")
    return w.joined(1, w("Sub", w.like(y, 1), y), y)


def linear(w: Decomposer, node: Node, x: str, labels: Array) -> tuple[str, ...]:
    """A score for each class; of two the second one where the larger is above a limit."""
    features = w.shape(x)[1]
    check_count(node, "coefficients", len(labels) * features)
    if not len(node.get("rho", ())):
        raise InvalidArguments(f"{node} has no rho: it needs one number")
    weights = numbers(node, "coefficients")
    y = w.add(w("MatMul", x, w.like(x, weights.reshape(len(labels), features).T)), w.like(x, numbers(node, "rho")[0]))
    at = best(w, y)
    if len(labels) == 2 and not node.get("prob_a", ()):
        most = w.reduced("ReduceMax", y, 1, keepdims=False)
        is_second = w("GreaterOrEqual" if (weights >= 0).all() else "Greater", most,
                      w.like(x, SHARE if (weights >= 0).all() else 0))  # fmt: skip
        at = w("Where", is_second, w.ints(1), at)
    return labelled(w, labels, at), transformed(w, node.get("post_transform", "NONE"), y)


def machine_of(node: Node, features: int, classes: int) -> SupportVectors:
    """Of a classifier, a score for each pair of classes.  Raises InvalidArguments."""
    counts = np.asarray(node.get("vectors_per_class"), np.int64)
    if len(counts) != classes or (counts < 0).any() or classes < 2:
        found = shown(list(node.get("vectors_per_class")))
        raise InvalidArguments(f"{node} has vectors_per_class {found}: {classes} counts, of 2 classes or more")
    total, pairs = int(counts.sum()), list(combinations(range(classes), 2))
    check_count(node, "support_vectors", total * features)
    check_count(node, "coefficients", (classes - 1) * total)
    check_count(node, "rho", len(pairs))
    given = numbers(node, "coefficients").reshape(classes - 1, total)
    ends = np.cumsum(counts)
    spans = [slice(end - count, end) for count, end in zip(counts, ends, strict=True)]
    coefficients = np.zeros((total, len(pairs)))
    for at, (first, second) in enumerate(pairs):
        coefficients[spans[first], at] = given[second - 1, spans[first]]
        coefficients[spans[second], at] = given[first, spans[second]]
    vectors = numbers(node, "support_vectors").reshape(total, features)
    return SupportVectors(vectors, coefficients, numbers(node, "rho"))


SVM: Attributes = {
    "kernel_type": one_of(*KERNELS), "kernel_params": FLOATS, "coefficients": needed(FLOATS), "rho": needed(FLOATS),
    "support_vectors": FLOATS, **TRANSFORM,
}  # fmt: skip
DECOMPOSITIONS = {
    "SVMRegressor": ForeignOperator(
        regressor, "x", 1, {**SVM, "n_supports": INT, "one_class": INT}, of_integers=True
    ),
    "SVMClassifier": ForeignOperator(
        classifier, "x", 2, {**SVM, **LABELS, "vectors_per_class": INTS, "prob_a": FLOATS, "prob_b": FLOATS},
        of_integers=True,
    ),
}  # fmt: skip
