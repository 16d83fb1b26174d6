"""What callers declare of a graph's inputs, and what they give: dims, and data of those that are constants."""

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, Final

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, did_you_mean, resembling, shown
from asmdnn.memory.sequences import no_text
from asmdnn.memory.traced import is_integer
from asmdnn.network.graph import LARGEST_DIM, NOTHING, Array, Body, Model, TensorType
from asmdnn.network.narrow.storage import Precision, is_fallback
from asmdnn.primitives.core.engine import Engine

Shapes = Mapping[str, tuple[int, ...]]
MIXING: Final = ("DynamicQuantizeLinear", "DynamicQuantizeLSTM")
NUMPY_TYPES = (
    "float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
    "uint64", "bool",
)  # fmt: skip


def declared(name: str, shape: Any, dtype: Any) -> TensorType:
    """The type of an input.  Raises InvalidArguments."""
    try:
        dims = tuple(n if n is None or isinstance(n, str) else index(n) for n in no_text(shape))
        found = np.dtype(dtype)
    except Exception:  # whatever the caller's objects do
        near = resembling(dtype, NUMPY_TYPES)
        raise InvalidArguments(
            f"input {shown(name)} needs dims and a numpy type, not {shown(shape)}, {shown(dtype)}{near}"
        ) from None
    if not all(0 <= n <= LARGEST_DIM for n in dims if isinstance(n, int)):
        raise InvalidArguments(f"input {shown(name)} has dims {shown(dims)}, they must be from 0 to 2**63 - 1")
    return TensorType(found, dims)


def check_names(inputs: Mapping[str, TensorType], shapes: Shapes, constants: Mapping[str, Array]) -> None:
    """Raise InvalidArguments for a name that is no input."""
    for name in (*shapes, *constants):
        if name not in inputs:
            raise InvalidArguments(f"{shown(name)} is no input of the model: {did_you_mean(shown(name), inputs)}")


def integer_dims(given: Iterable[Any]) -> tuple[int, ...]:
    """As Python's integers, or such as stand for several."""
    return tuple([n if is_integer(n) else int(n) for n in given])


def shape_of(name: str, declared: TensorType, given: Any, argument: str = "shapes") -> tuple[int, ...]:
    """The dims of an input, as an argument has them.  Raises InvalidArguments."""
    known = declared.shape
    if given is None:
        if known is None or any(not isinstance(n, int) for n in known):
            raise InvalidArguments(f"input {name} is {declared}: say its dims, as in shapes={{{name!r}: (1, ...)}}")
        return tuple(n for n in known if isinstance(n, int))
    try:
        dims = integer_dims(no_text(given))
    except Exception:  # whatever the caller's object does
        raise InvalidArguments(f"{argument}[{name!r}] must be integers, not {shown(given)}") from None
    fits = known is None or (
        len(dims) == len(known) and all(not isinstance(n, int) or n == m for n, m in zip(known, dims, strict=True))
    )
    if not fits or not all(0 <= n <= LARGEST_DIM for n in dims):
        what = "is" if argument == "shapes" else "has dims"
        raise InvalidArguments(f"{argument}[{name!r}] {what} {shown(dims)}, which does not fit the model's {declared}")
    return dims


def constant_of(name: str, declared: TensorType, given: Any) -> Array:
    """An input's data, in its type.  Raises InvalidArguments."""
    try:
        data = np.asarray(given)
        fits = data.dtype.kind in "fiub" or data.dtype == declared.dtype
    except Exception:  # whatever the caller's object does
        fits = False
    if not fits:
        raise InvalidArguments(f"constants[{name!r}] must be an array or a number, not {shown(given)}")
    shape_of(name, declared, data.shape, "constants")
    with np.errstate(all="ignore"):  # what does not fit becomes infinite, as in a Cast
        return data.astype(declared.dtype)


def mapping(name: str, given: Any) -> Mapping[str, Any]:
    """What was given, or nothing.  Raises InvalidArguments."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidArguments(f"{name} must map names of inputs to values, not {shown(given)}")
    return given


def names_of(model: Model) -> set[str]:
    """What `keep_f32` may name: nodes and their results."""
    nodes = model.body.nodes
    return ({node.name for node in nodes} | {name for node in nodes for name in node.outputs}) - {NOTHING}


def check_kept(model: Model, precision: Precision) -> None:
    """Raise InvalidArguments for names that no node has."""
    known = names_of(model) if precision.keep_f32 else set()
    for name in precision.keep_f32:
        if name not in known:
            raise InvalidArguments(f"keep_f32 has {shown(name)}, which no node is called: {did_you_mean(name, known)}")


def check_asked(model: Model, engine: Engine, fallback: str | None, precision: Precision) -> None:
    """What is wrong whatever the shapes are.  Raises InvalidArguments, Unimplemented."""
    if not is_fallback(fallback):
        raise InvalidArguments(
            f"fallback must be None or 'numpy', not {shown(fallback)}{resembling(fallback, ['numpy'])}"
        )
    check_kept(model, precision)
    if engine.any_batch:
        check_any_batch(model.body)


def check_any_batch(body: Body) -> None:
    """Raise Unimplemented for nodes that scale all items by the range of all."""
    for node in body.nodes:
        if node.op in MIXING:
            what = f"{node} scales every item by the range of all of them, so that its bits depend on its neighbours"
            raise Unimplemented(f"{what}: leave out deterministic='batch', or quantise the model statically")
        for inner in node.attributes.values():
            if isinstance(inner, Body):
                check_any_batch(inner)
