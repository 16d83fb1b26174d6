"""What the products of a recurrent layer multiply, by the types of its tensors.

Weights of bf16 and f16 are widened as they are loaded, and rows are f32 inside: tensors of other types become that in
front, results are rounded once, behind.  Pairs of bf16 are multiplied where the level has VDPBF16PS and the CPU class
is not slow at it; then a step hands on h as bf16.  Weights of s8 are multiplied by rows of u8.
"""

from collections.abc import Mapping

from asmdnn.isa.dot import F32, Types, multiplied
from asmdnn.memory import MemoryDesc
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.widening import fast_pairs
from asmdnn.types import FLOAT_NAMES, FLOATS, f32

WEIGHTS = ("weights_layer", "weights_iter", "weights_projection")
ROWS = ("src_layer", "src_iter", "dst_layer", "dst_iter")  # what steps multiply, and hand on
ONLY = f"only {', '.join(FLOAT_NAMES)} are implemented"


def factors_of(tensors: Mapping[str, MemoryDesc], engine: Engine, is_training: bool) -> Types:
    """The types of a step's products.  Raises Refused for tensors of others."""
    weights = tensors["weights_layer"].dtype
    for name, tensor in tensors.items():
        if name in WEIGHTS and tensor.dtype != weights:
            raise Refused(f"{name} is {tensor.dtype}, weights_layer {weights}: all weights have one type")
        if name not in WEIGHTS and tensor.dtype not in FLOATS:
            raise Refused(f"{name} is {tensor.dtype}, {ONLY}")
    if weights not in FLOATS:
        raise Refused(f"weights_layer is {weights}, {ONLY}")
    rows = (tensors[name].dtype for name in ROWS if name in tensors)
    pairs = None if is_training else fast_pairs((weights, *rows), engine)
    if pairs is not None:
        return pairs
    return F32 if weights == f32 else multiplied(f32, weights, engine.isa)
