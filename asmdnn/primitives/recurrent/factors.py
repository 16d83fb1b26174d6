"""What the products of a recurrent layer multiply, by the types of its tensors.

Weights of bf16 and f16 are widened as they are loaded, and rows are f32 inside: tensors of other types become that in
front, results are rounded once, after.  Pairs of bf16 are multiplied where the level has VDPBF16PS and the CPU class
is not slow at it, or has tiles of AMX that make up for it; then a step hands on h as bf16.  Weights of s8 are
multiplied by rows of u8.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from asmdnn.isa.dot import F32, U8S8, Types, multiplied
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.widening import fast_pairs, pairs_of_tiles, tiled_pairs
from asmdnn.primitives.recurrent.description import QuantizedRecurrent, RecurrentForward
from asmdnn.primitives.recurrent.qparams import ROWS, SCALES, check_bytes, check_dynamic, is_dynamic
from asmdnn.types import FLOAT_NAMES, FLOATS, DataType, f32, s8

WEIGHTS = ("weights_layer", "weights_iter", "weights_projection")
ONLY = f"only {', '.join(FLOAT_NAMES)} are implemented"


def dynamic_bytes(desc: RecurrentForward, engine: Engine) -> Types:
    """Of rows that are rounded as they come.  Raises Refused, as all of these do."""
    if not is_dynamic(desc):
        raise Refused(f"weights come without {SCALES[0]}")
    return U8S8


def static_bytes(desc: RecurrentForward, engine: Engine) -> Types:
    """Of what a description says that bytes stand for."""
    if is_dynamic(desc) or desc.weights_layer.dtype != s8:
        raise Refused(f"{SCALES[0]} is given" if is_dynamic(desc) else f"weights_layer is {desc.weights_layer.dtype}")
    return U8S8


def pairs(desc: RecurrentForward, engine: Engine) -> Types:
    """Of halves, two of which are multiplied and added at once."""
    weights, tensors = desc.weights_layer.dtype, desc.tensors()
    dtypes = (weights, *(tensors[name].dtype for name in ROWS if name in tensors))
    if desc.is_training:
        return pairs_of_training(desc, dtypes, engine)
    found = fast_pairs(dtypes, engine) or pairs_of_tiles(dtypes, engine)
    if found is None:
        raise Refused(f"isa {engine.isa} has no fast pairs of weights of {weights} and these rows")
    return found


def pairs_of_training(desc: RecurrentForward, dtypes: Iterable[DataType], engine: Engine) -> Types:
    """Where tiles multiply them: the backward pass reads the h that steps have handed on."""
    found = tiled_pairs(dtypes, engine)
    if found is None:
        raise Refused("training keeps f32")
    if getattr(desc, "weights_projection", None) is not None:
        raise Refused("training keeps f32 in front of a projection")
    return found


def floats(desc: RecurrentForward, engine: Engine) -> Types:
    """Of f32, to which weights are widened."""
    weights = desc.weights_layer.dtype
    if weights not in FLOATS:
        raise Refused(f"weights_layer is {weights}, {ONLY}")
    return F32 if weights == f32 else multiplied(f32, weights, engine.isa)


FACTORS: Final[Mapping[str, Callable[[RecurrentForward, Engine], Types]]] = {
    "dynamic_bytes": dynamic_bytes,
    "bytes": static_bytes,
    "pairs": pairs,
    "floats": floats,
}


def check_types(desc: RecurrentForward) -> None:
    """Raise Refused for tensors that do not go together, whichever way is taken."""
    tensors, weights = desc.tensors(), desc.weights_layer.dtype
    if weights == s8 or is_dynamic(desc):
        data, scales = (getattr(desc, name, ()) for name in ("rnn_data_qparams", "rnn_weights_qparams"))
        (check_dynamic if is_dynamic(desc) else check_bytes)(tensors, data, scales, why_no_bytes(desc))
        return
    for name, tensor in tensors.items():
        if name in WEIGHTS and tensor.dtype != weights:
            raise Refused(f"{name} is {tensor.dtype}, weights_layer {weights}: all weights have one type")
        if name not in WEIGHTS and tensor.dtype not in FLOATS:
            raise Refused(f"{name} is {tensor.dtype}, {ONLY}")


def why_no_bytes(desc: RecurrentForward) -> str:
    """Why a layer cannot be of bytes; "": it can."""
    if not isinstance(desc, QuantizedRecurrent):
        return "LSTM and GRU take"
    reasons = {
        "inference takes": desc.is_training,
        "layers without projection take": getattr(desc, "weights_projection", None) is not None,
        "layers of one direction, or of both concatenated, take": desc.direction == "bidirectional_sum",
        "sequences of equal lengths take": bool(desc.lengths),
    }
    return next((reason for reason, applies in reasons.items() if applies), "")
