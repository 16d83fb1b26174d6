"""What reorder kernels compute, as loops written from the tables in the generators' docstrings, and data for them."""

from functools import cache
from typing import Any, get_args
from zlib import crc32

import ml_dtypes
import numpy as np
import numpy.typing as npt

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.functions.quotient import QuotientSpec
from asmdnn.generators.move.compensation import CompensationSpec
from asmdnn.generators.move.conversion import Conversion
from asmdnn.generators.move.convert import ConvertSpec
from asmdnn.generators.move.convert_narrow import ConvertNarrowSpec
from asmdnn.generators.move.convert_pixels import ConvertDeinterleaveSpec, ConvertInterleaveSpec
from asmdnn.generators.move.convert_transpose import ConvertTransposeSpec
from asmdnn.generators.move.im2col import Im2colSpec
from asmdnn.generators.move.interleave import InterleaveSpec
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.generators.move.spread import SpreadSpec
from asmdnn.generators.move.transpose import TransposeSpec
from asmdnn.generators.move.triples import TriplesDeinterleaveSpec, TriplesInterleaveSpec
from asmdnn.generators.move.words import WordsSpec
from tests.generators.case import Case, Reference
from tests.support.arena import REACH_BYTES, Bytes, constant_buffer
from tests.support.octets import Octets, Places

Pixels = ConvertInterleaveSpec | ConvertDeinterleaveSpec | TriplesInterleaveSpec | TriplesDeinterleaveSpec
Converting = ConvertSpec | ConvertTransposeSpec | ConvertNarrowSpec | Pixels | WordsSpec
Float32 = npt.NDArray[np.float32]
TAP_SPREAD_BYTES = 4096  # sources of taps begin within so many bytes of the pointer, on either side
BITS = {"b8": np.uint8, "b16": np.uint16, "b32": np.uint32}
FLOAT8 = {"f8_e5m2": ml_dtypes.float8_e5m2, "f8_e4m3": ml_dtypes.float8_e4m3fn}
TYPES: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "s32": np.int32, "s8": np.int8, "u8": np.uint8}
TYPES |= BITS | FLOAT8 | {"s16": np.int16}
LIMITS = {"s32": (-(2**31), 2147483520), "s16": (-32768, 32767), "s8": (-128, 127), "u8": (0, 255)}
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-40, 2147483520.0, 2147483648.0, 0.5, 1.5, 2.5, 127.5)


def copy_case(spec: RowsSpec, random: np.random.Generator, _: bool) -> Case:
    memory = {name: some("b8", random) for name in spec.frame}
    copy(spec, memory)
    return case(spec, memory)


def transpose_case(spec: TransposeSpec, random: np.random.Generator, _: bool) -> Case:
    memory = {name: some("b8", random) for name in spec.frame}
    transpose(spec, memory)
    return case(spec, memory)


def interleave_case(spec: InterleaveSpec, random: np.random.Generator, _: bool) -> Case:
    memory = {name: some("b8", random) for name in spec.frame}
    (rows, zero_rows), (columns, zero_columns) = spec.sides
    high, wide, unit = rows + zero_rows, columns + zero_columns, spec.unit_bytes
    for s in range(spec.steps):
        memory["dst"].store(s * spec.dst_step_bytes, np.zeros(high * wide * unit, np.uint8))
    s, r, c = (index.ravel() for index in np.indices((spec.steps, rows, columns)))
    units = memory["src"].gather(s * spec.src_step_bytes + r * spec.src_row_bytes + c * unit, unit)
    memory["dst"].scatter(s * spec.dst_step_bytes + (c * high + r) * unit, units)
    return case(spec, memory)


def spread_case(spec: SpreadSpec, random: np.random.Generator, _: bool) -> Case:
    memory = {name: some("b8", random) for name in spec.frame}
    memory["dst"].store(0, np.zeros(spec.rows * spec.dst_step, np.uint8))
    row = np.arange(spec.rows)
    memory["dst"].scatter(row * spec.dst_step, memory["src"].gather(row * spec.row_bytes, spec.row_bytes))
    return case(spec, memory)


def im2col_case(spec: Im2colSpec, random: np.random.Generator, _: bool) -> Case:
    memory = {name: some("b8", random) for name in spec.frame}
    pixel, runs = np.arange(spec.pixels), np.array(spec.offsets)
    of_lines = -(-len(runs) * spec.piece_bytes // 64) * 64
    memory["dst"].scatter(pixel * spec.dst_step, np.zeros((spec.pixels, of_lines), np.uint8))
    found = memory["src"].gather(np.add.outer(pixel * spec.src_step, runs).ravel(), spec.run_bytes)
    places = np.add.outer(pixel * spec.dst_step, np.arange(len(runs)) * spec.piece_bytes)
    memory["dst"].scatter(places.ravel(), found)
    return case(spec, memory)


def quotient_case(spec: QuotientSpec, random: np.random.Generator, _: bool) -> Case:
    memory = {name: some("f32", random) for name in spec.frame}
    divide(spec, memory)
    return case(spec, memory)


def conversion_case(spec: Converting, random: np.random.Generator, _: bool) -> Case:
    """Numbers of the types that the kernel reads, special ones among them."""
    types = {"src": spec.conversion.src, "dst": spec.conversion.dst, "scales": "f32"}
    memory = {name: some(kind, random) for name, kind in types.items()}
    zero_points = np.resize(np.array([3, -7], np.int32), REACH_BYTES // 2)
    memory |= {f"{side}_zero_point": Octets(zero_points.view(np.uint8).copy()) for side in ("src", "dst")}
    convert(spec, memory)
    return case(spec, memory)


def compensation_case(spec: CompensationSpec, random: np.random.Generator, _: bool) -> Case:
    """Between no tap and seven of them; sources on both sides of the pointer, also twice the same bytes."""
    memory = {name: some("b8", random) for name in ("src", "compensation")}
    taps = random.integers(-TAP_SPREAD_BYTES, TAP_SPREAD_BYTES, crc32(spec.name.encode()) % 8)
    compensate(spec, memory, taps)
    words = np.array([len(taps), *taps], np.int64)
    buffers = {name: octets.buffer() for name, octets in memory.items()}
    return Case(spec, {**buffers, "taps": constant_buffer(words)}, {}, words)


def case(spec: KernelSpec, memory: dict[str, Octets]) -> Case:
    return Case(spec, {name: octets.buffer() for name, octets in memory.items()}, {})


def some(kind: str, random: np.random.Generator) -> Octets:
    """Numbers of a type, others for every argument."""
    first = 4 * int(random.integers(REACH_BYTES // 4))
    return Octets(numbers(kind)[first : first + 2 * REACH_BYTES].copy())


@cache
def numbers(kind: str) -> Bytes:
    """More than an argument needs, of many sizes; one in 8 a special value."""
    random, size = np.random.default_rng(7), 3 * REACH_BYTES
    if kind in BITS:
        return random.integers(0, 256, size, np.uint8)
    count = size // encode(np.zeros(1, np.float32), kind).itemsize
    values = (random.standard_normal(count) * 10.0 ** random.integers(-2, 5, count)).astype(np.float32)
    values[::8] = np.resize(np.array(SPECIAL, np.float32), len(values[::8]))
    stored = encode(values, kind)
    if kind in FLOAT8:
        stored[np.isnan(stored.astype(np.float32))] = 1  # which NaN they become is not said
    return stored.view(np.uint8)


def decode(raw: Bytes, kind: str) -> Float32:
    if kind == "bf16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32).ravel()
    result: Float32 = raw.view(TYPES[kind]).astype(np.float32).ravel()
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


def copy(spec: RowsSpec, memory: dict[str, Octets]) -> None:
    for r in range(spec.rows):
        zeros = np.zeros(spec.row_bytes, np.uint8)
        row = zeros if spec.zero else memory["src"].load(r * spec.src_step, spec.row_bytes)
        memory["dst"].store(r * spec.dst_step, row)


def transpose(spec: TransposeSpec, memory: dict[str, Octets]) -> None:
    r, c = (index.ravel() for index in np.indices((spec.rows, spec.columns)))
    units = memory["src"].gather(r * spec.src_row_bytes + c * spec.unit_bytes, spec.unit_bytes)
    group = spec.group or spec.columns
    begins = np.arange(spec.columns) // group * spec.group_bytes + np.arange(spec.columns) % group * spec.dst_row_bytes
    memory["dst"].scatter(begins[c] + r * spec.unit_bytes, units)
    for c in range(spec.columns if spec.zero_rows else 0):
        zeros = np.zeros(spec.zero_rows * spec.unit_bytes, np.uint8)
        memory["dst"].store(c * spec.dst_row_bytes + spec.rows * spec.unit_bytes, zeros)


def compensate(spec: CompensationSpec, memory: dict[str, Octets], taps: Places) -> None:
    """compensation[o] = -factor * sum over taps, repeats and dense bytes of src, modulo 2^32."""
    repeats, dense = (index.ravel() for index in np.indices((spec.repeats, spec.dense)))
    for o in range(spec.outputs):
        within = o * spec.src_step + repeats * spec.repeat_step + dense
        places = (taps[:, None] + within).ravel()
        total = -spec.factor * int(memory["src"].gather(places, 1).view(np.int8).sum(dtype=np.int64))
        memory["compensation"].store(o * spec.dst_step, np.array([total], np.int64).astype(np.int32).view(np.uint8))


def divide(spec: QuotientSpec, memory: dict[str, Octets]) -> None:
    """scales[i] = src_scales[i] / dst_scales[i]; scales[count + i] = sum / dst_scales[i]."""
    with np.errstate(all="ignore"):
        for i in range(spec.count):
            dst = decode(memory["dst_scales"].load(i * spec.dst_step_bytes, 4), "f32")
            src = np.ones(1, np.float32)
            if spec.src_step_bytes is not None:
                src = decode(memory["src_scales"].load(i * spec.src_step_bytes, 4), "f32")
            memory["scales"].store(4 * i, (src / dst).view(np.uint8))
            if spec.sum:
                memory["scales"].store(4 * (spec.count + i), (np.float32(spec.sum) / dst).view(np.uint8))


def convert(spec: Converting, memory: dict[str, Octets]) -> None:
    """dst = saturate(round(scale * (src - src_zero_point) + sum * dst + dst_zero_point)), all in f32; see quotient.py
    on the factors of the sum."""
    for r in range(spec.rows, spec.rows + getattr(spec, "zero_rows", 0)):
        places = r * spec.dst_steps[0] + np.arange(spec.columns) * spec.dst_steps[1]
        size = spec.conversion.sizes[1]
        memory["dst"].scatter(places, np.zeros((spec.columns, size), np.uint8))
    conversion: Conversion = spec.conversion
    src_bytes, dst_bytes = conversion.sizes
    rows, columns = (index.ravel() for index in np.indices((spec.rows, spec.columns)))

    def at(steps: tuple[int, int]) -> Places:
        where: Places = rows * steps[0] + columns * steps[1]
        return where

    def number(name: str) -> Float32:
        return decode(memory[name].gather(np.zeros(1, np.int64), 4), "s32")

    raw = memory["src"].gather(at(spec.src_steps), src_bytes)
    if conversion.src in BITS:
        memory["dst"].scatter(at(spec.dst_steps), raw)
        return
    with np.errstate(all="ignore"):
        x = decode(raw, conversion.src)
        if conversion.src_zero_point:
            x = x - number("src_zero_point")
        if conversion.scaled:
            x = x * decode(memory["scales"].gather(at(spec.scale_steps), 4), "f32")
        if conversion.sum:
            y = np.float32(conversion.sum) * decode(memory["dst"].gather(at(spec.dst_steps), dst_bytes), conversion.dst)
            if conversion.sum_factors:
                y = y * decode(memory["scales"].gather(at(spec.scale_steps) + conversion.sum_factors, 4), "f32")
            x = x + y
        if conversion.dst_zero_point:
            x = x + number("dst_zero_point")
    memory["dst"].scatter(at(spec.dst_steps), encode(x, conversion.dst).view(np.uint8).reshape(-1, dst_bytes))


REFERENCES = {
    RowsSpec: Reference(copy_case, rounds=False),
    TransposeSpec: Reference(transpose_case, rounds=False),
    InterleaveSpec: Reference(interleave_case, rounds=False),
    SpreadSpec: Reference(spread_case, rounds=False),
    Im2colSpec: Reference(im2col_case, rounds=False),
    QuotientSpec: Reference(quotient_case, rounds=False),
    CompensationSpec: Reference(compensation_case, rounds=False),
    **dict.fromkeys(get_args(Converting), Reference(conversion_case, rounds=False)),
}
