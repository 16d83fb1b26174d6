"""Which operators are spelt in others, and when."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module

import numpy as np

from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.spelling.words import F32, Sentences, Speller

MODULES = ("attention", "norms", "products", "losses", "rows")
KINDS = "ib"  # of types that may stand beside f32: indices, lengths, masks
Spelling = Callable[..., tuple[str, ...] | None]  # (words, node, *inputs): the results; None to leave a node as it is


@cache
def spellings() -> Mapping[str, Spelling]:
    """Of ONNX's own operators, which have definitions in numpy beside: these compute constants and other types."""
    found: dict[str, Spelling] = {}
    for name in MODULES:
        found |= import_module(f"asmdnn.network.spelling.{name}").SPELLINGS
    return found


def spelt(folding: Sentences, node: Node) -> dict[str, str] | None:
    """The values behind a node's results, whose nodes are taken in; None for one that stays as it is.

    What an f32 node of one of these operators means is the same.
    """
    spelling = spellings().get(node.op) if not node.domain else None
    if spelling is None or not is_f32(folding, node) or not folding.kept_integers.isdisjoint(node.inputs):
        return None
    results = spelling(Speller(folding, node), node, *node.inputs)
    if results is None:
        return None
    return {name: result for name, result in zip(node.outputs, results, strict=False) if name != NOTHING}


def is_f32(folding: Sentences, node: Node) -> bool:
    """Whether a node's first operand with numbers is f32, and none has another floating type."""
    types = [folding.values[name].dtype for name in node.inputs if name != NOTHING]
    return F32 in types and all(dtype == F32 or np.dtype(dtype).kind in KINDS for dtype in types)
