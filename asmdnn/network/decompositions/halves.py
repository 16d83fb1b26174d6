"""Results of decompositions whose constants are f32 where a node is of 16 bits: as the node declares them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from asmdnn.network.decompositions.words import Sentences
from asmdnn.network.element_types import CODES
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.definition import AXES_MOVED
from asmdnn.network.passing import is_half


def in_types(folding: Sentences, known: Mapping[str, str], types: Mapping[str, Any]) -> dict[str, str]:
    """The values after results, f32 cast to halves among these types."""
    found = dict[str, str]()
    for name, value in known.items():
        dtype = types.get(name)
        found[name] = value
        if dtype is not None and is_half(np.dtype(dtype)) and folding.values[value].dtype == np.float32:
            made, to = f"{value} as {np.dtype(dtype).name}", {"to": CODES[np.dtype(dtype).name]}
            folding.node(Node("Cast", (value,), (made,), to, opset=AXES_MOVED))
            found[name] = folding.known(made)
    return found


def in_type_of(folding: Sentences, node: Node, known: Mapping[str, str]) -> dict[str, str]:
    """As the first operand of 16 bits, if a node has one."""
    types = [folding.values[name].dtype for name in node.inputs if name != NOTHING]
    halves = [dtype for dtype in types if is_half(dtype)]
    return in_types(folding, known, dict.fromkeys(known, halves[0])) if halves else dict(known)
