"""Formats that planners choose: for tensors whose format is left to them, and for copies."""

from collections.abc import Sequence

from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS, tag_of
from asmdnn.types import DataType


def row_major(dims: Sequence[int], desc: MemoryDesc) -> MemoryDesc:
    """A dense tensor of these dims, of desc's type."""
    return MemoryDesc(tuple(dims), desc.dtype, LETTERS[: len(dims)])


def of_type(desc: MemoryDesc, dtype: DataType) -> MemoryDesc:
    """The same layout of elements of another type."""
    if desc.dtype == dtype and not desc.is_any:
        return desc
    return MemoryDesc(
        desc.dims, dtype, strides=desc.strides, inner_blocks=desc.inner_blocks, offset0=desc.offset0
    )  # fmt: skip


def like(model: MemoryDesc, desc: MemoryDesc) -> MemoryDesc:
    """`desc`; if its format is any, that of the model, or a plain one if the model has none for it.

    Elements of a model that share memory, such as those that a stride of 0 repeats, have places of their own then.
    """
    if not desc.is_any:
        return desc
    if model.dims == desc.dims and model.dtype == desc.dtype and not model.is_any:
        return unshared(model) if model.may_overlap else model
    return row_major(desc.dims, desc)


def unshared(model: MemoryDesc) -> MemoryDesc:
    """A dense format whose dims lie in the model's order; what the model repeats is outermost."""
    order = sorted(range(model.ndims), key=lambda dim: (model.strides[dim] != 0, -model.strides[dim], dim))
    return MemoryDesc(model.dims, model.dtype, tag_of(tuple(order), model.inner_blocks))


def dense_like(model: MemoryDesc, desc: MemoryDesc) -> MemoryDesc:
    """A dense format for a tensor that broadcasts to `model`: its dims in the order of the model's memory, in the same
    blocks where they are not 1.  A single number or a vector is plain."""
    if sum(n > 1 for n in desc.dims) < 2:
        return row_major(desc.dims, desc)
    blocks = tuple((dim, size) for dim, size in model.inner_blocks if desc.dims[dim] > 1)
    order = sorted(range(model.ndims), key=lambda dim: (-model.strides[dim], dim))
    return MemoryDesc(desc.dims, desc.dtype, tag_of(tuple(order), blocks))


def with_padding(tensor: MemoryDesc) -> MemoryDesc:
    """The same memory, whose padding, which is zeros, counts as elements."""
    return MemoryDesc(
        tensor.padded_dims,
        tensor.dtype,
        strides=tensor.strides,
        inner_blocks=tensor.inner_blocks,
        offset0=tensor.offset0,
    )


def pads_channels(tensor: MemoryDesc) -> bool:
    """Whether the last block of channels has padding, and no other dim."""
    pairs = zip(tensor.dims, tensor.padded_dims, strict=True)
    return [dim for dim, (size, padded) in enumerate(pairs) if size != padded] == [1]
