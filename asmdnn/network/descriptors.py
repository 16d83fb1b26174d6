"""Descriptors of values: row-major, with channels last, as inputs lie, and of a format that a primitive chooses."""

from functools import lru_cache
from math import prod

import numpy as np

from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import format_of
from asmdnn.memory.tags import LETTERS
from asmdnn.network.operators.definition import Value
from asmdnn.network.passing import BYTES, passed_type
from asmdnn.types import DataType, f32, s32

STORED = BYTES  # values that kernels keep as they are; others are f32


def stored(value: Value) -> DataType:
    """The type in which kernels keep a value."""
    return STORED.get(value.dtype, f32)


@lru_cache(4096)
def row_major(dims: tuple[int, ...], dtype: DataType = f32) -> MemoryDesc:
    return MemoryDesc(dims or (1,), dtype, LETTERS[: len(dims) or 1])


def input_desc(value: Value) -> MemoryDesc:
    """How an input lies in memory: plain, in its type; of integers the low 32 bits, which are enough for indices."""
    plain = row_major(value.shape, passed_type(value.dtype))
    if value.dtype.kind != "i" or value.dtype.itemsize < s32.size_bytes:
        return plain
    words = value.dtype.itemsize // s32.size_bytes or 1
    return MemoryDesc(plain.dims, s32, strides=tuple(words * stride for stride in plain.strides))


def words_desc(value: Value) -> MemoryDesc:
    """All words of an input of integers of 32 bits and more."""
    return row_major((prod(value.shape) * value.dtype.itemsize // s32.size_bytes,), s32)


@lru_cache(4096)
def channels_last(dims: tuple[int, ...], dtype: DataType = f32) -> MemoryDesc:
    letters = LETTERS[: len(dims)]
    return MemoryDesc(dims, dtype, f"{letters[0]}{letters[2:]}{letters[1]}")


def is_row_major(desc: MemoryDesc) -> bool:
    """Whether elements lie as row-major ones do: also in blocks, if all axes after these are 1."""
    plain = row_major(desc.dims, desc.dtype)
    if not desc.inner_blocks or desc.padded_dims != desc.dims or desc.offset0:
        return desc == plain
    blocked = {dim for dim, _ in desc.inner_blocks}
    return all(
        np.array_equal(desc.dim_offsets(dim), plain.dim_offsets(dim))
        if dim in blocked
        else desc.strides[dim] == plain.strides[dim]
        for dim, n in enumerate(desc.dims)
        if n > 1
    )


@lru_cache(4096)
def any_format(dims: tuple[int, ...], dtype: DataType = f32) -> MemoryDesc:
    return MemoryDesc(dims, dtype, "any")


def layout_of(desc: MemoryDesc) -> str:
    return layout_with(desc, desc.strides)


@lru_cache(4096)
def layout_with(desc: MemoryDesc, strides: tuple[int, ...]) -> str:
    """By strides, too: equal descriptors may have different ones along dims of 1."""
    return format_of(desc)
