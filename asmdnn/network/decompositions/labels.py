"""Operators of ai.onnx.ml that map labels to others."""

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, counted
from asmdnn.network.decompositions.foreign import ForeignOperator
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.attributes import FLOAT, FLOATS, INT, INTS, TENSOR, TEXT, TEXTS, Attributes


def encoder(w: Decomposer, node: Node, x: str) -> tuple[str, ...]:
    """The value after the key that an element is, NaN being one, or the default."""
    keys, values = (numbers_of(node, what) for what in ("keys", "values"))
    if len(keys) != len(values):
        raise InvalidArguments(
            f"{node} has {counted(len(keys), 'key')} and {counted(len(values), 'value')}: there must be as many"
        )
    default = np.asarray(default_of(node, values.dtype), values.dtype).reshape(-1)[0]
    return (mapped(w, x, keys, values, default),)


def numbers_of(node: Node, what: str) -> Array:
    """The keys or values of a node, as numbers.  Raises Unimplemented for texts."""
    if node.get(f"{what}_strings", ()):
        raise Unimplemented(f"{node} has {what}_strings, texts inside of a model are not read: encode them before")
    tensor = node.get(f"{what}_tensor")
    if tensor is not None and np.size(tensor):
        return np.asarray(tensor).ravel()
    if node.get(f"{what}_int64s", ()):
        return np.asarray(node.get(f"{what}_int64s"), np.int64)
    return np.asarray(node.get(f"{what}_floats", ()), np.float32)


def default_of(node: Node, dtype: "np.dtype[np.generic]") -> Array:
    tensor = node.get("default_tensor")
    if tensor is not None and np.size(tensor):
        return np.asarray(tensor)
    return np.asarray(node.get("default_float", -0.0) if dtype.kind == "f" else node.get("default_int64", -1))


def mapped(w: Decomposer, x: str, keys: Array, values: Array, default: Array) -> str:
    """The value after each key, the first of equal ones."""
    keys, first = np.unique(keys, return_index=True)
    values = np.append(values[first], default)
    wide = w.floats(x)
    y = w.lifted(wide, len(w.shape(x)))
    is_key = w("Equal", y, w.like(wide, keys))
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        is_nan = w("And", w("IsNaN", y), w.constant(np.isnan(keys), np.bool_))
        is_key = w("Or", is_key, is_nan)
    last = len(w.shape(y)) - 1
    is_place = w.joined(last, w.number(is_key), w.constant(np.ones((*w.shape(x), 1))))  # the default's is the last one
    return w("Gather", w.constant(values, values.dtype), w("ArgMax", is_place, axis=last, keepdims=0), axis=0)


ENCODER: Attributes = {
    **{f"{what}_{kind}": attribute for what in ("keys", "values")
       for kind, attribute in (("strings", TEXTS), ("int64s", INTS), ("floats", FLOATS), ("tensor", TENSOR))},
    "default_string": TEXT, "default_int64": INT, "default_float": FLOAT, "default_tensor": TENSOR,
}  # fmt: skip
DECOMPOSITIONS = {"LabelEncoder": ForeignOperator(encoder, "x", 1, ENCODER, of_integers=True)}
