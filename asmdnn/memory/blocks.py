"""The storage of a blocked tensor seen as a numpy array, one axis per block level; and the padding in it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asmdnn.memory.desc import MemoryDesc

Array = NDArray[Any]


def blocked_view(desc: MemoryDesc, storage: Array) -> Array:
    """`storage` (flat, of the desc's element type) as axes grouped by dim: the block index, then its inner blocks.

    "aBcd8b" of 1x17x5x4 gives shape (1, 3, 8, 5, 4), which reshaped to `padded_dims` is the padded tensor in logical
    order.  No copy.
    """
    inner: list[list[tuple[int, int]]] = [[] for _ in desc.dims]
    stride = 1
    for dim, size in reversed(desc.inner_blocks):
        inner[dim].insert(0, (size, stride))
        stride *= size
    counts = (n // block for n, block in zip(desc.padded_dims, desc.blocks, strict=True))
    outer = zip(counts, desc.strides, strict=True)
    axes = [axis for first, others in zip(outer, inner, strict=True) for axis in (first, *others)]
    item = desc.dtype.size_bytes
    view: Array = np.ndarray(
        shape=tuple(n for n, _ in axes),
        dtype=storage.dtype,
        buffer=storage,
        offset=desc.offset0 * item if storage.size else 0,
        strides=tuple(stride * item for _, stride in axes),
    )
    return view


def padding_views(desc: MemoryDesc, storage: Array) -> Iterator[Array]:
    """Views that together cover the padding of `storage`, some of it more than once."""
    view, axis = blocked_view(desc, storage), 0
    for dim, (n, padded, block) in enumerate(zip(desc.dims, desc.padded_dims, desc.blocks, strict=True)):
        sizes = [padded // block, *(size for blocked, size in desc.inner_blocks if blocked == dim)]
        if n != padded:
            # Write the first padded index as digits, one per level: at each level what has a larger digit is padding.
            levels = np.moveaxis(view, range(axis, axis + len(sizes)), range(len(sizes)))
            first, weight = n, padded
            for size in sizes:
                weight //= size
                digit, first = divmod(first, weight)
                yield levels[digit + 1 :]
                levels = levels[digit, ...]
            yield levels
        axis += len(sizes)
