"""Networks that were written down in Python, in the cache on disk: what they are kept under."""

import hashlib
from collections.abc import Iterator

import numpy as np

from asmdnn.network.graph import Array, Body, Model, Node
from asmdnn.network.narrow.storage import Precision
from asmdnn.network.packs.kept import made_for, store
from asmdnn.primitives.core.engine import Engine
from asmdnn.runtime.byte_sums import byte_sum


class Unnamed(Exception):
    """An attribute that no text stands for, such as a function."""


def key_of_model(model: Model, engine: Engine, precision: Precision) -> str | None:
    """A sum of all that a network of fixed dims depends on, weights included; None if it is not to be kept."""
    return None if model.states or store() is None else sum_of_model(model, repr(made_for(engine, precision)))


def sum_of_model(model: Model, made_for: str) -> str | None:
    """A sum of a model, its weights included, and of what else is said; None if an attribute has no text."""
    digest = hashlib.sha256()
    try:
        for part in (*texts_of(model.body), made_for):
            digest.update(part.encode() + b"\0")
    except Unnamed:
        return None
    sums: dict[object, bytes] = {}  # weights that several constants share are read once
    for name, array in model.body.constants.items():
        place = (array.ctypes.data, array.shape, array.strides, array.dtype.str)
        if place not in sums:
            sums[place] = byte_sum(dense(array))
        digest.update(repr((name, array.dtype.str, array.shape, is_turned(array))).encode() + sums[place])
    return digest.hexdigest()


def texts_of(body: Body) -> Iterator[str]:
    """Inputs, outputs and nodes; not its constants."""
    yield repr((body.name, {name: str(declared) for name, declared in body.inputs.items()}, body.outputs))
    for node in body.nodes:
        yield text_of(node)


def text_of(node: Node) -> str:
    """Raises Unnamed."""
    attributes = [(name, value_text(value)) for name, value in node.attributes.items()]
    return repr((node.op, node.inputs, node.outputs, attributes, node.name, node.domain, node.opset))


def value_text(value: object) -> str:
    if isinstance(value, Body):
        own = [(name, value_text(array)) for name, array in value.constants.items()]
        return repr((*texts_of(value), own))
    if isinstance(value, tuple):
        return f"({','.join(map(value_text, value))})"
    if isinstance(value, np.ndarray):
        return repr((value.dtype.str, value.shape, value.tobytes()))
    if not isinstance(value, str | bytes | int | float | np.generic):
        raise Unnamed(value)
    return repr(value)


def is_turned(array: Array) -> bool:
    """Whether it lies by columns, as torch keeps the weights of products."""
    return array.flags.f_contiguous and not array.flags.c_contiguous


def dense(array: Array) -> Array:
    """u8[bytes]: the elements in the order in which they lie."""
    return np.ascontiguousarray(array.T if is_turned(array) else array).reshape(-1).view(np.uint8)
