"""What the products of a recurrent layer multiply, by the types of its tensors.

Weights of bf16 and f16 are widened as they are loaded, and rows are f32 inside: tensors of other types become that in
front, results are rounded once, behind.  Pairs of bf16 are multiplied where the level has VDPBF16PS and the CPU class
is not slow at it; then a step hands on h as bf16.  Weights of s8 are multiplied by rows of u8.
"""

from asmdnn.isa.dot import BF16, F32, U8S8, Types, levels_of, multiplied
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.widening import multiplies_pairs_slowly
from asmdnn.primitives.recurrent.description import QuantizedRecurrent, RecurrentForward
from asmdnn.primitives.recurrent.qparams import ROWS, check_bytes
from asmdnn.types import bf16, f16, f32, s8

WEIGHTS = ("weights_layer", "weights_iter", "weights_projection")
FLOATS = (f32, bf16, f16)


def factors_of(desc: RecurrentForward, engine: Engine) -> Types:
    """The types of a step's products.  Raises Refused for tensors of others."""
    tensors = desc.tensors()
    weights = tensors["weights_layer"].dtype
    if weights == s8:
        data, scales = (getattr(desc, name, ()) for name in ("rnn_data_qparams", "rnn_weights_qparams"))
        check_bytes(tensors, data, scales, why_no_bytes(desc))
        return U8S8
    for name, tensor in tensors.items():
        if name in WEIGHTS and tensor.dtype != weights:
            raise Refused(f"{name} is {tensor.dtype}, weights_layer {weights}: all weights have one type")
        if name not in WEIGHTS and tensor.dtype not in FLOATS:
            raise Refused(f"{name} is {tensor.dtype}, beside f32, bf16 and f16 nothing is implemented")
    if weights not in FLOATS:
        raise Refused(f"weights_layer is {weights}, beside f32, bf16 and f16 nothing is implemented")
    is_bf16 = all(tensors[name].dtype == bf16 for name in ROWS if name in tensors)
    if weights == bf16 and is_bf16 and not desc.is_training and has_fast_pairs(engine):
        return BF16
    return F32 if weights == f32 else multiplied(f32, weights, engine.isa)


def has_fast_pairs(engine: Engine) -> bool:
    return bool(levels_of(BF16, engine.isa)) and not multiplies_pairs_slowly(engine)


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
