"""What classical models make of their scores: functions of them, and the label of the best one."""

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import Node
from asmdnn.network.operators.attributes import INTS, TEXTS, Attributes, one_of

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
NEARLY_ZERO = 1e-7  # which softmax_zero keeps
WINITZKI = 0.147  # of his approximation of the inverse of erf
INT64 = 7
TRANSFORM: Attributes = {"post_transform": one_of(*TRANSFORMS)}
LABELS: Attributes = {"classlabels_ints": INTS, "classlabels_int64s": INTS, "classlabels_strings": TEXTS}


def transformed(w: Decomposer, name: str, x: str) -> str:
    """Scores (rows, classes) after a function of TRANSFORMS."""
    if name == "SOFTMAX":
        return w("Softmax", x, axis=1)
    if name == "LOGISTIC":
        return w("Sigmoid", x)
    if name == "SOFTMAX_ZERO":
        return softmax_of_others(w, x)
    return probit(w, x) if name == "PROBIT" else x


def softmax_of_others(w: Decomposer, x: str) -> str:
    """exp(x - m) / sum, m being the largest; what is nearly 0 becomes x exp(-m) / sum, and is not in the sum."""
    most = w.reduced("ReduceMax", x, 1)
    is_some = w("Greater", w("Abs", x), w.like(x, NEARLY_ZERO))
    powers = w.where(is_some, w("Exp", w.sub(x, most)), w.like(x, 0))
    rest = w.where(is_some, w.like(x, 0), w.mul(x, w("Exp", w("Neg", most))))
    return w.div(w.add(powers, rest), w.reduced("ReduceSum", powers, 1))


def probit(w: Decomposer, x: str) -> str:
    """sqrt(2) erfinv(2 x - 1), the latter as Winitzki approximates it."""
    y = w.sub(w.mul(x, 2.0), 1.0)
    log = w("Log", w.mul(w("Sub", w.like(x, 1), y), w.add(y, 1.0)))
    half = w.add(w.mul(log, 0.5), 2 / (np.pi * WINITZKI))
    square = w.sub(w.mul(half, half), w.mul(log, 1 / WINITZKI))
    size = w("Sqrt", w.sub(w("Sqrt", square), half))
    sign = w.where(w("Less", y, w.like(x, 0)), w.like(x, -1), w.like(x, 1))
    return w.mul(w.mul(sign, size), np.sqrt(2.0))


def labels_of(node: Node) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    """The labels of classes, integers or texts.  Raises InvalidArguments."""
    numbers = node.get("classlabels_int64s", ()) or node.get("classlabels_ints", ())
    texts = node.get("classlabels_strings", ())
    if bool(len(numbers)) == bool(len(texts)):
        what = "both" if len(texts) else "no"
        raise InvalidArguments(f"{node} has {what} classlabels of integers and of texts: it must have one of them")
    return np.array(texts, object) if len(texts) else np.asarray(numbers, np.int64)


def labelled(w: Decomposer, labels: np.ndarray[tuple[int], np.dtype[np.generic]], at: str) -> str:
    """The labels at these places, which are integers."""
    if labels.dtype == object:
        raise Unimplemented(f"{w.node} has labels that are texts, which are not read: train with integer labels")
    if np.array_equal(labels, np.arange(len(labels))):
        return at
    return w("Gather", w.constant(labels, np.int64), at, axis=0)


def best(w: Decomposer, scores: str) -> str:
    """The class of the largest score, the first of equal ones."""
    return w("ArgMax", scores, axis=1, keepdims=0)


def above(w: Decomposer, score: str, limit: float) -> str:
    """1 where the score (rows, 1) is above, else 0, as classes (rows,)."""
    is_more = w("Greater", w.reshaped(score, w.shape(score)[0]), w.like(score, limit))
    return w("Cast", is_more, to=INT64)
