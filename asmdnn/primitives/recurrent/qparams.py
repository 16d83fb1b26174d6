"""What bytes stand for in LSTMs and GRUs whose weights are s8: fields of their descriptions.

| field | value | what it says |
|---|---|---|
| rnn_data_qparams    | (scale, shift) | src_layer, dst_layer and h are u8 for (byte - shift) / scale |
| rnn_weights_qparams | scales         | weights are s8 for byte / scale: one, or one for every gate and channel |

Sums are of products of bytes, and exact; gates, cells and c are f32, and h is rounded to a byte by every step, as a
GRU's s(r) h is.  A shift is a whole number of u8, the zero point.  c, bias and peephole are f32; layers and h are u8,
or f32, which is made such bytes in front, and of such bytes after.

An LSTM may say it by tensors: weights_layer_scales and weights_iter_scales, f32 for every gate and channel, what 1 of
its weights stands for.  Rows are f32 then, and are rounded to bytes by the range of what comes, as ONNX's
DynamicQuantizeLinear does: src_layer as a whole, h of all sequences at every step.  All results are f32.
"""

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import MemoryDesc
from asmdnn.memory.sequences import items
from asmdnn.planning.refusal import Refused
from asmdnn.types import DataType, f32, s8, u8

Qparams = tuple[float, ...]
MOST_BYTE = 255
LEAST_SCALE = 2.0**-62
ROWS = ("src_layer", "src_iter", "dst_layer", "dst_iter")
SCALES = ("weights_layer_scales", "weights_iter_scales")


def is_dynamic(desc: Any) -> bool:
    """Whether a layer's rows are rounded to bytes as they come."""
    return any(getattr(desc, name, None) is not None for name in SCALES)


def checked_data(value: object) -> Qparams:
    """Scale and shift; () of None.  Raises InvalidArguments."""
    pair = as_tuple(value)
    if pair == ():
        return ()
    if pair is None or len(pair) != 2 or not is_scale(pair[0]) or not is_number(pair[1]):
        raise InvalidArguments(f"rnn_data_qparams must be a scale above 0 and a shift, not {shown(value)}")
    if not float(pair[1]).is_integer() or not 0 <= pair[1] <= MOST_BYTE:
        raise InvalidArguments(
            f"rnn_data_qparams has the shift {shown(pair[1])}: zero points of u8 are whole, 0 to 255"
        )
    return tuple(map(float, pair))


def checked_scales(value: object, columns: int) -> Qparams:
    """One scale, or one for each of the columns, which are gates times hidden channels; () of None.  Raises
    InvalidArguments."""
    scales = as_tuple(value)
    if scales is None:
        raise InvalidArguments(f"rnn_weights_qparams must be scales, not {shown(value)}")
    for number, scale in enumerate(scales):
        if not is_scale(scale):
            what = f"rnn_weights_qparams has the scale {shown(scale)} at {number}"
            raise InvalidArguments(f"{what}: scales are above 0, from 2**-62 to 2**62")
    if len(scales) not in (0, 1, columns):
        raise InvalidArguments(
            f"rnn_weights_qparams has {len(scales)} scales: it has 1, or {columns}, of every gate and channel"
        )
    return tuple(map(float, scales))


def is_number(value: object) -> bool:
    """A finite one."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # of an integer that no float has
        return False


def is_scale(value: Any) -> bool:
    """One whose product with another one f32 has."""
    return is_number(value) and LEAST_SCALE <= value <= 1 / LEAST_SCALE


def as_tuple(value: Any) -> tuple[Any, ...] | None:
    """A sequence as a tuple, () of None; None of what is no sequence."""
    try:
        return () if value is None else tuple(items(value)) if not isinstance(value, str) else None
    except Exception:  # whatever the caller's object does
        return None


def check_dynamic(tensors: Mapping[str, MemoryDesc], data: Qparams, weights: Qparams, why_not: str) -> None:
    """Raise Refused for a layer with scales that is not one of bytes by them."""
    for name in SCALES:
        if name not in tensors:
            (other,) = (x for x in SCALES if x in tensors)
            raise Refused(f"{other} is given without {name}: both weights are s8, with scales of their own")
    if data or weights:
        name = "rnn_data_qparams" if data else "rnn_weights_qparams"
        raise Refused(f"{name} is given beside {SCALES[0]}, which says what bytes stand for")
    for name, tensor in tensors.items():
        wanted = s8 if name in ("weights_layer", "weights_iter", "weights_projection") else f32
        if tensor.dtype != wanted:
            raise Refused(f"{name} is {tensor.dtype}, with {SCALES[0]} it is {wanted}")
    if why_not:
        raise Refused(f"{SCALES[0]} is given, which {why_not}")


def check_bytes(tensors: Mapping[str, MemoryDesc], data: Qparams, weights: Qparams, why_not: str) -> None:
    """Raise Refused for a layer of s8 weights that is not one of bytes.  why_not: it is of no such kind."""
    if why_not:
        raise Refused(f"weights_layer is s8, which {why_not}")
    if not data or not weights:
        name = "rnn_weights_qparams" if data else "rnn_data_qparams"
        raise Refused(f"weights_layer is s8, and {name} is not given: it says what bytes stand for")
    for name, tensor in tensors.items():
        known: tuple[DataType, ...] = (u8, f32) if name in ROWS else (f32,)
        if not name.startswith("weights_") and tensor.dtype not in known:
            raise Refused(f"{name} is {tensor.dtype}, with weights of s8 it is {' or '.join(map(str, known))}")
        if name in ("weights_layer", "weights_iter") and tensor.dtype != s8:
            raise Refused(f"{name} is {tensor.dtype}, weights_layer s8: all weights have one type")
