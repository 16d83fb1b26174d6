"""What reorder kernels compute, as loops written from the tables in the generators' docstrings, and data for them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.generators.conversion import Conversion
from asmdnn.generators.convert import ConvertSpec, ConvertTransposeSpec
from asmdnn.generators.shuffle_rows import RowsSpec
from asmdnn.generators.transpose import TransposeSpec
from tests.support.arena import REACH_BYTES, Bytes
from tests.support.octets import Octets

ReorderSpec = RowsSpec | TransposeSpec | ConvertSpec | ConvertTransposeSpec
Float32 = npt.NDArray[np.float32]
BITS = {"b8": np.uint8, "b16": np.uint16, "b32": np.uint32}
TYPES: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "s32": np.int32, "s8": np.int8, "u8": np.uint8} | BITS
LIMITS = {"s32": (-(2**31), 2147483520), "s8": (-128, 127), "u8": (0, 255)}
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-40, 2147483520.0, 2147483648.0, 0.5, 1.5, 2.5, 127.5)


def memory_of(spec: ReorderSpec, random: np.random.Generator) -> dict[str, Octets]:
    """Numbers of the types that the kernel reads, special ones among them."""
    if isinstance(spec, RowsSpec | TransposeSpec):
        return {name: Octets(random.integers(0, 256, 2 * REACH_BYTES, np.uint8)) for name in ("src", "dst")}
    types = {"src": spec.conversion.src, "dst": spec.conversion.dst, "scales": "f32"}
    found = {name: Octets(numbers(kind, random)) for name, kind in types.items()}
    zero_points = np.resize(np.array([3, -7], np.int32), REACH_BYTES // 2)
    found["src_zero_point"], found["dst_zero_point"] = (Octets(zero_points.view(np.uint8).copy()) for _ in range(2))
    return found


def numbers(kind: str, random: np.random.Generator) -> Bytes:
    """Numbers of many sizes; one in 8 a special value."""
    count = 2 * REACH_BYTES // encode(np.zeros(1, np.float32), kind).itemsize
    if kind in BITS:
        return random.integers(0, 256, 2 * REACH_BYTES, np.uint8)
    values = (random.standard_normal(count) * 10.0 ** random.integers(-2, 5, count)).astype(np.float32)
    values[::8] = np.resize(np.array(SPECIAL, np.float32), len(values[::8]))
    return encode(values, kind).view(np.uint8)


def decode(raw: Bytes, kind: str) -> Float32:
    if kind == "bf16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    result: Float32 = raw.view(TYPES[kind]).astype(np.float32)
    return result


def encode(values: Float32, kind: str) -> npt.NDArray[Any]:
    """To nearest even; integers saturate, NaN gives the smallest."""
    with np.errstate(over="ignore", invalid="ignore"):
        if kind == "bf16":
            word = values.view(np.uint32)
            rounded = (word.astype(np.uint64) + 0x7FFF + (word >> 16 & 1)) >> 16
            return np.where(np.isnan(values), word >> 16 | 0x40, rounded).astype(np.uint16)
        if kind in LIMITS:
            low, high = LIMITS[kind]
            rounded = np.clip(np.rint(values.astype(np.float64)), low, high)
            return np.where(np.isnan(rounded), low, rounded).astype(TYPES[kind])
        return values.astype(TYPES[kind])


def reorder(spec: ReorderSpec, memory: dict[str, Octets]) -> None:
    if isinstance(spec, RowsSpec):
        for r in range(spec.rows):
            zeros = np.zeros(spec.row_bytes, np.uint8)
            row = zeros if spec.zero else memory["src"].load(r * spec.src_step, spec.row_bytes)
            memory["dst"].store(r * spec.dst_step, row)
    elif isinstance(spec, TransposeSpec):
        unit = spec.unit_bytes
        for r in range(spec.rows):
            for c in range(spec.columns):
                element = memory["src"].load(r * spec.src_row_bytes + c * unit, unit)
                memory["dst"].store(c * spec.dst_row_bytes + r * unit, element)
    else:
        convert(spec, memory)


def convert(spec: ConvertSpec | ConvertTransposeSpec, memory: dict[str, Octets]) -> None:
    """dst = saturate(round(scale * (src - src_zero_point) + sum * dst + dst_zero_point)), all in f32."""
    conversion: Conversion = spec.conversion
    src_bytes, dst_bytes = conversion.sizes

    def at(steps: tuple[int, int], r: int, c: int) -> int:
        return r * steps[0] + c * steps[1]

    for r in range(spec.rows):
        for c in range(spec.columns):
            raw, target = memory["src"].load(at(spec.src_steps, r, c), src_bytes), at(spec.dst_steps, r, c)
            if conversion.src in BITS:
                memory["dst"].store(target, raw)
                continue
            with np.errstate(all="ignore"):
                x = decode(raw, conversion.src)
                if conversion.src_zero_point:
                    x = x - decode(memory["src_zero_point"].load(0, 4), "s32")
                if conversion.scaled:
                    x = x * decode(memory["scales"].load(at(spec.scale_steps, r, c), 4), "f32")
                if conversion.sum:
                    x = x + np.float32(conversion.sum) * decode(memory["dst"].load(target, dst_bytes), conversion.dst)
                if conversion.dst_zero_point:
                    x = x + decode(memory["dst_zero_point"].load(0, 4), "s32")
            memory["dst"].store(target, encode(x, conversion.dst).view(np.uint8))
