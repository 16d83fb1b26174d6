"""Graphs made of an ONNX file, whose weights may be learned."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory.sequences import items
from asmdnn.network.dims import Dim, declared_dims
from asmdnn.network.graph import TensorType
from asmdnn.network.onnx.reader import read_model

MOST_NAMED = 8


def fill_from(graph: Any, path: Any, shapes: Any, train: Any) -> None:
    """Put the nodes of a file into an empty graph.  Raises InvalidArguments."""
    patterns = patterns_of(train)
    model = read_model(path)
    body = model.body
    if shapes is not None and not (isinstance(shapes, Mapping) and all(name in body.inputs for name in shapes)):
        raise InvalidArguments(f"shapes must be dims by input, {', '.join(body.inputs)}, not {shown(shapes)}")
    weights = [name for name, array in body.constants.items() if array.dtype == np.float32 and array.size]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in weights):
            known = ", ".join(weights[:MOST_NAMED]) + ", ..." * (len(weights) > MOST_NAMED)
            raise InvalidArguments(
                f"train names {shown(pattern)}, which no f32 weight matches: {known or 'there are none'}"
            )
    for name, declared in body.inputs.items():
        dims = (shapes or {}).get(name)
        if dims is not None:
            said = declared_dims(name, body.inputs, dims)
            declared = TensorType(declared.dtype, tuple(n.name if isinstance(n, Dim) else n for n in said))
        graph._inputs[name] = declared
    for name, array in body.constants.items():
        if name in weights and array.ndim and any(fnmatchcase(name, pattern) for pattern in patterns):
            graph.parameter(name, array.shape, array)
        else:
            graph._constants[name] = array
    graph.name = graph.name or body.name
    graph._nodes, graph._ends = list(body.nodes), tuple(body.outputs)


def patterns_of(train: Any) -> list[str]:
    """Raises InvalidArguments for what are no patterns of names."""
    try:
        found = list(items(train)) if isinstance(train, Iterable) and not isinstance(train, str) else [train]
    except Exception:  # whatever the caller's object does
        found = [None]
    if not all(isinstance(pattern, str) and pattern for pattern in found):
        raise InvalidArguments(f"train must be patterns of weights' names, such as ['head.*'], not {shown(train)}")
    return found
