"""What the products of a backward pass multiply, by the types of its tensors.

f32 in general.  Where rows and weights are bf16, and tiles of AMX multiply it, the gradients of the sums inside gates
become bf16, too, as they do in oneDNN; all that products sum up stays f32.
"""

from collections.abc import Callable, Mapping
from typing import Final

from asmdnn.isa.dot import F32, Types
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.widening import tiled_pairs
from asmdnn.primitives.recurrent.backward_description import RecurrentBackward

ROWS = ("src_layer", "dst_layer")


def packed_of(desc: RecurrentBackward) -> list[str]:
    """The weights that products multiply by."""
    return [name for name in desc.PACKED if getattr(desc, name, None) is not None]


def pairs(desc: RecurrentBackward, engine: Engine) -> Types:
    """Of rows and weights that are halves.  Raises Refused."""
    tensors, s, weights = desc.tensors(), desc.sizes, desc.weights_layer.dtype
    for name in (*ROWS, *packed_of(desc)):
        if (dtype := tensors[name].dtype) != weights:
            raise Refused(f"{name} is {dtype}, weights_layer {weights}: tiles take rows and weights of one type")
    found = tiled_pairs([weights], engine)
    if found is None:
        raise Refused(f"isa {engine.isa} has no tiles of {weights} here")
    for channels, what in ((s.hidden, "hidden"), (s.out, "projected")):
        if channels % found.group:
            raise Refused(f"{channels} {what} channels are no whole pairs")
    return found


def floats(desc: RecurrentBackward, engine: Engine) -> Types:
    """What all becomes in front."""
    return F32


FACTORS: Final[Mapping[str, Callable[[RecurrentBackward, Engine], Types]]] = {"pairs": pairs, "floats": floats}
