"""What the products of a recurrent layer multiply, by the types of its tensors.

Weights of bf16 and f16 are widened as they are loaded, and rows are f32 inside: tensors of other types become that in
front, results are rounded once, after.  Pairs of bf16 are multiplied where the level has VDPBF16PS and the CPU class
is not slow at it; then a step hands on h as bf16.  Weights of s8 are multiplied by rows of u8.
"""

from asmdnn.isa.dot import F32, U8S8, Types, multiplied
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.widening import fast_pairs
from asmdnn.primitives.recurrent.description import QuantizedRecurrent, RecurrentForward
from asmdnn.primitives.recurrent.qparams import ROWS, check_bytes, check_dynamic, is_dynamic
from asmdnn.types import FLOAT_NAMES, FLOATS, f32, s8

WEIGHTS = ("weights_layer", "weights_iter", "weights_projection")
ONLY = f"only {', '.join(FLOAT_NAMES)} are implemented"


def factors_of(desc: RecurrentForward, engine: Engine) -> Types:
    """The types of a step's products.  Raises Refused for tensors of others."""
    tensors = desc.tensors()
    weights = tensors["weights_layer"].dtype
    if weights == s8 or is_dynamic(desc):
        data, scales = (getattr(desc, name, ()) for name in ("rnn_data_qparams", "rnn_weights_qparams"))
        (check_dynamic if is_dynamic(desc) else check_bytes)(tensors, data, scales, why_no_bytes(desc))
        return U8S8
    for name, tensor in tensors.items():
        if name in WEIGHTS and tensor.dtype != weights:
            raise Refused(f"{name} is {tensor.dtype}, weights_layer {weights}: all weights have one type")
        if name not in WEIGHTS and tensor.dtype not in FLOATS:
            raise Refused(f"{name} is {tensor.dtype}, {ONLY}")
    if weights not in FLOATS:
        raise Refused(f"weights_layer is {weights}, {ONLY}")
    rows = (tensors[name].dtype for name in ROWS if name in tensors)
    pairs = None if desc.is_training else fast_pairs((weights, *rows), engine)
    if pairs is not None:
        return pairs
    return F32 if weights == f32 else multiplied(f32, weights, engine.isa)


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
