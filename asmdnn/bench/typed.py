"""Problems of other types than f32: data that a type can hold, and answers after the conversion to it."""

from collections.abc import Iterable, Mapping

import numpy as np

import asmdnn as dnn
from asmdnn.bench import chains
from asmdnn.bench.judge import Answer
from asmdnn.bench.problem_text import Impossible
from asmdnn.bench.values import Array, decoded, encoded, is_integer, joined, rounded
from asmdnn.definitions.rounding import UNIT_ROUNDOFF
from asmdnn.types import DataType, f32


def numbers(random: np.random.Generator, dims: tuple[int, ...], dtype: DataType, least: float, largest: float) -> Array:
    """Elements from least to largest, whole ones of integer types; without sign from 0 on."""
    stored = np.dtype(dtype.numpy)
    if not is_integer(dtype):
        return encoded(random.uniform(least, largest, dims).astype(np.float32), dtype)
    first = max(np.ceil(least), np.iinfo(stored).min)
    return random.integers(int(first), int(max(first, largest)), dims, endpoint=True).astype(stored)


def narrowed(values: Array, error: Array, dtype: DataType) -> tuple[Array, Array]:
    """Values and errors in a type: what is in doubt may be rounded either way; nothing is said of what the type has
    not."""
    if dtype == f32:
        return values, error
    error = np.broadcast_to(error, values.shape)
    unknown = ~np.isfinite(error)
    known = np.where(unknown, 0.0, values)
    within = np.where(unknown, 0.0, error)
    with np.errstate(invalid="ignore"):
        either_way = np.abs(rounded(known + within, dtype) - rounded(known - within, dtype))
    tolerance = np.where(within > 0, within + either_way, 0.0)
    return rounded(known, dtype), np.where(unknown | ~np.isfinite(tolerance), np.inf, tolerance)


def answer(
    attr: dnn.Attr,
    values: Array,
    error: Array,
    arrays: Mapping[str, Array],
    dtype: DataType,
    divisor: Array | float = 1.0,
    zero_point: Array | int = 0,
) -> Answer:
    """Numbers that are off by `error` after post-ops, the scales of dst, which compute in f32, and its zero point, in
    dst's type."""
    if attr.post_ops or attr.scales:
        before = {"dst": decoded(arrays["dst"], dtype)} if "dst" in arrays else {}
        values, error = chains.apply(attr, values, error, {**arrays, **before}, divisor)
    moved = values + zero_point
    if np.any(zero_point):  # added in f32, unless all are integers
        error = error + (np.asarray(error) > 0) * UNIT_ROUNDOFF * np.abs(moved)
    return Answer(*narrowed(moved, error, dtype), "numpy")


def together(found: Iterable[tuple[Array, Array | float]]) -> Answer:
    """Several results with their errors, all in a row."""
    pairs = [(values, np.broadcast_to(error, values.shape)) for values, error in found]
    values, errors = zip(*pairs, strict=True)
    return Answer(joined(values), joined(errors), "numpy")


def check_in_place(source: dnn.MemoryDesc, dst: dnn.MemoryDesc) -> None:
    """Raise Impossible for a result that cannot replace a source."""
    if source.dtype != dst.dtype:
        raise Impossible(f"--inplace=true needs one type, the source is {source.dtype}, dst {dst.dtype}")
    if source.dims != dst.dims:
        raise Impossible(f"--inplace=true needs one size, the source has dims {source.dims}, dst {dst.dims}")
    if source != dst:
        raise Impossible(f"--inplace=true needs one layout, the source is {source}, dst {dst}")
