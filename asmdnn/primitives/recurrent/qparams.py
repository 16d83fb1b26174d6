"""What bytes stand for in LSTMs and GRUs whose weights are s8: fields of their descriptions.

| field | value | what it says |
|---|---|---|
| rnn_data_qparams    | (scale, shift) | src_layer, dst_layer and h are u8 for (byte - shift) / scale |
| rnn_weights_qparams | (mask, scales) | weights are s8 for byte / scale: mask 0 is one, 24 every gate and channel |

Sums are of products of bytes, and exact; gates, cells and c are f32, and h is rounded to a byte by every step, as a
GRU's s(r) h is.  A shift is a whole number of u8, the zero point.  c, bias and peephole are f32; layers and h are u8,
or f32, which is made such bytes in front, and of such bytes behind.
"""

import math
from collections.abc import Mapping
from typing import Any

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import MemoryDesc
from asmdnn.memory.sequences import items
from asmdnn.planning.refusal import Refused
from asmdnn.types import DataType, f32, s8, u8

DataQparams = tuple[float, float]
WeightsQparams = tuple[int, tuple[float, ...]]
COMMON, GATES_AND_CHANNELS = 0, 24  # masks: dims 3 and 4 of weights
MOST_BYTE = 255
ROWS = ("src_layer", "src_iter", "dst_layer", "dst_iter")


def check_qparams(data: object, weights: object, columns: int) -> None:
    """Raise InvalidArguments for what says nothing of bytes; columns: gates times hidden channels."""
    if data is not None:
        if not isinstance(data, tuple) or len(data) != 2 or not all(map(is_number, data)) or data[0] <= 0:
            raise InvalidArguments(f"rnn_data_qparams must be a scale above 0 and a shift, not {shown(data)}")
        if not float(data[1]).is_integer() or not 0 <= data[1] <= MOST_BYTE:
            raise InvalidArguments(
                f"rnn_data_qparams has the shift {shown(data[1])}: zero points of u8 are whole, 0 to 255"
            )
    if weights is None:
        return
    if not isinstance(weights, tuple) or len(weights) != 2 or not isinstance(weights[1], tuple):
        raise InvalidArguments(f"rnn_weights_qparams must be a mask and a tuple of scales, not {shown(weights)}")
    mask, scales = weights
    if isinstance(mask, bool) or mask not in (COMMON, GATES_AND_CHANNELS):
        raise InvalidArguments(
            f"rnn_weights_qparams has the mask {shown(mask)}: it is 0, or 24 for every gate and channel"
        )
    wanted = columns if mask else 1
    if len(scales) != wanted:
        raise InvalidArguments(f"rnn_weights_qparams has {len(scales)} scales, with mask {mask} they are {wanted}")
    for number, scale in enumerate(scales):
        if not is_number(scale) or scale <= 0:
            raise InvalidArguments(f"rnn_weights_qparams has the scale {shown(scale)} at {number}: scales are above 0")


def is_number(value: object) -> bool:
    """A finite one."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def as_tuples(value: Any) -> Any:
    """Sequences as tuples, those within them too; the rest as it is."""
    try:
        return tuple(map(as_tuples, items(value))) if not isinstance(value, str | int | float) else value
    except Exception:  # whatever the caller's object does
        return value


def check_bytes(tensors: Mapping[str, MemoryDesc], data: object, weights: object, why_not: str) -> None:
    """Raise Refused for a layer of s8 weights that is not one of bytes.  why_not: it is of no such kind."""
    if why_not:
        raise Refused(f"weights_layer is s8, which {why_not}")
    if data is None or weights is None:
        name = "rnn_data_qparams" if data is None else "rnn_weights_qparams"
        raise Refused(f"weights_layer is s8, and {name} is None: it says what bytes stand for")
    for name, tensor in tensors.items():
        known: tuple[DataType, ...] = (u8, f32) if name in ROWS else (f32,)
        if not name.startswith("weights_") and tensor.dtype not in known:
            raise Refused(f"{name} is {tensor.dtype}, with weights of s8 it is {' or '.join(map(str, known))}")
        if name in ("weights_layer", "weights_iter") and tensor.dtype != s8:
            raise Refused(f"{name} is {tensor.dtype}, weights_layer s8: all weights have one type")
