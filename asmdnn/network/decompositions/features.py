"""Operators of ai.onnx.ml that make features of features: arithmetic of columns, and choices of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, counted, shown
from asmdnn.network.decompositions.foreign import ForeignOperator
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.attributes import FLOAT, FLOATS, INT, INTS, TEXTS, one_of

FLOAT_CODE = 1
MOST_INPUTS = 1024  # of a FeatureVectorizer


def by_column(w: Decomposer, node: Node, name: str, x: str, default: float) -> str:
    """An attribute with a number for each column, or one for all, in the type of x.  Raises InvalidArguments."""
    given = node.get(name, ()) or (default,)
    if len(given) not in (1, *w.shape(x)[-1:]):
        raise InvalidArguments(f"{node} has {len(given)} {name} for {w.shape(x)[-1:]} columns: one, or as many, fit")
    return w.like(x, given)


def scaler(w: Decomposer, node: Node, x: str) -> tuple[str, ...]:
    """(x - offset) scale."""
    x = w.floats(x)
    offset, scale = (by_column(w, node, name, x, default) for name, default in (("offset", 0.0), ("scale", 1.0)))
    return (w("Mul", w("Sub", x, offset), scale),)


def normalizer(w: Decomposer, node: Node, x: str) -> tuple[str, ...]:
    """x over a norm of its row: the largest element, which may be negative, as onnxruntime has it, or a sum."""
    x, how = w.floats(x), node.get("norm", "MAX")
    axis = len(w.shape(x)) - 1
    if axis < 0:
        raise InvalidArguments(f"{node} is given a number: rows of features are needed")
    op = {"MAX": "ReduceMax", "L1": "ReduceL1", "L2": "ReduceL2"}[how]
    norm = w.reduced(op, x, axis)
    is_none = w("Equal", norm, w.like(x, 0))
    return (w.div(x, w.where(is_none, w.like(x, 1), norm)),)


def binarizer(w: Decomposer, node: Node, x: str) -> tuple[str, ...]:
    dtype = w.value(x).dtype
    wide = w.floats(x)
    is_more = w("Greater", wide, w.like(wide, node.get("threshold", 0.0)))
    return (w.as_type_of(w("Cast", is_more, to=FLOAT_CODE), x) if dtype.kind != "f" else
            w.where(is_more, w.like(wide, 1), w.like(wide, 0)),)  # fmt: skip


def imputer(w: Decomposer, node: Node, x: str) -> tuple[str, ...]:
    """Numbers in the place of a number, or of NaN."""
    of_floats = w.value(x).dtype.kind == "f"
    name, missing = ("imputed_value_floats", "replaced_value_float") if of_floats else (
        "imputed_value_int64s", "replaced_value_int64")  # fmt: skip
    if not node.get(name, ()):
        raise InvalidArguments(f"{node} is given {w.value(x).dtype.name} and has no {name}")
    value, found = node.get(missing, 0), by_column(w, node, name, x, 0.0)
    is_missing = w("IsNaN", x) if value != value else w("Equal", x, w.like(x, value))
    return (w("Where", is_missing, w.expanded(found, *w.shape(x)), x),)


def extractor(w: Decomposer, node: Node, x: str, places: str) -> tuple[str, ...]:
    """Columns by their numbers."""
    count = int(np.prod(w.shape(places), dtype=np.int64))
    dims = w.shape(x)
    if not dims or not count:
        raise InvalidArguments(f"{node} chooses {count} of dims {dims}: it must choose columns of rows")
    y = w("Gather", x, w.reshaped(places, count), axis=len(dims) - 1)
    return (w.reshaped(y, *((1, count) if len(dims) == 1 else (*dims[:-1], count))),)


def vectorizer(w: Decomposer, node: Node, *several: str) -> tuple[str, ...]:
    """Columns of all inputs beside each other, zeros where one has less than is said."""
    names = [name for name in several if name != NOTHING]
    widths: Sequence[int] = node.get("inputdimensions", ())
    if len(widths) != len(names) or min(widths) < 0:
        raise InvalidArguments(
            f"{node} has inputdimensions {shown(widths)} for {counted(len(names), 'input')}: it needs as many"
        )
    return (w.joined(1, *(of_width(w, node, name, width) for name, width in zip(names, widths, strict=True))),)


def of_width(w: Decomposer, node: Node, name: str, width: int) -> str:
    dims = w.shape(name)
    if len(dims) not in (1, 2):
        raise InvalidArguments(f"{node} is given dims {dims}: its inputs have one or two")
    x = w.reshaped(w.floats(name), dims[0], dims[1] if len(dims) == 2 else 1)
    rows, columns = w.shape(x)
    if columns < width:
        return w.joined(1, x, w.like(x, np.zeros((rows, width - columns))))
    return w.part(x, 1, 0, width)


def one_hot(w: Decomposer, node: Node, x: str) -> tuple[str, ...]:
    """1 at the category that an element is."""
    if node.get("cats_strings", ()):
        raise Unimplemented(f"{node} has cats_strings, texts inside of a model are not read: encode them before")
    known = node.get("cats_int64s", ())
    if not known or not node.get("zeros", 1):
        reason = "zeros=0, which stops at unknown ones" if known else "no cats_int64s"
        raise Unimplemented(f"{node} has {reason}: only categories of integers with zeros=1 are read")
    y = w.lifted(x, len(w.shape(x)))
    equal = w("Equal", y, w.like(x, known))
    return (w("Cast", equal, to=FLOAT_CODE),)


COLUMNS: dict[str, Any] = {"scale": FLOATS, "offset": FLOATS}
DECOMPOSITIONS = {
    "Scaler": ForeignOperator(scaler, "x", 1, COLUMNS, of_integers=True),
    "Normalizer": ForeignOperator(normalizer, "x", 1, {"norm": one_of("MAX", "L1", "L2")}, of_integers=True),
    "Binarizer": ForeignOperator(binarizer, "x", 1, {"threshold": FLOAT}, of_integers=True),
    "Imputer": ForeignOperator(
        imputer, "x", 1, {"imputed_value_floats": FLOATS, "imputed_value_int64s": INTS, "replaced_value_float": FLOAT,
                          "replaced_value_int64": INT}, of_integers=True,
    ),
    "ArrayFeatureExtractor": ForeignOperator(extractor, "xx", of_integers=True),
    "FeatureVectorizer": ForeignOperator(
        vectorizer, "x" + "?" * (MOST_INPUTS - 1), 1, {"inputdimensions": INTS}, of_integers=True
    ),
    "OneHotEncoder": ForeignOperator(
        one_hot, "x", 1, {"cats_int64s": INTS, "cats_strings": TEXTS, "zeros": INT}, of_integers=True
    ),
}  # fmt: skip
