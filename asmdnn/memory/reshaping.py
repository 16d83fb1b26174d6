"""The same storage as a tensor of other dims: which strides and blocks give the same elements in the same order."""

from math import prod

from asmdnn.errors import InvalidArguments
from asmdnn.memory.layout import Blocks
from asmdnn.memory.tags import LETTERS
from asmdnn.memory.views import Described, Level, levels_of, merged_levels, plain_strides


def reshaped(desc: Described, dims: tuple[int, ...]) -> tuple[tuple[int, ...], Blocks]:
    """Strides and inner blocks that give `dims` the same elements in the same (row-major) order at the same places.

    Raises InvalidArguments if there are none.
    """
    if prod(dims) != desc.nelems():
        raise InvalidArguments(
            f"dims {dims} has {prod(dims)} elements, but {desc} has {desc.nelems()}: make them equal"
        )
    if 0 in dims:
        return tuple(prod(n or 1 for n in dims[dim + 1 :]) for dim in range(len(dims))), ()
    levels = levels_of(desc)
    regrouped = _regrouped(desc, levels, dims)
    if regrouped is None and desc.inner_blocks and (strides := plain_strides(desc)) is not None:
        levels = [[Level(n, stride, False)] for n, stride in zip(desc.dims, strides, strict=True)]
        regrouped = _regrouped(desc, levels, dims)
    if regrouped is None:
        raise InvalidArguments(
            f"dims {dims} cannot be a view of {desc}: reorder to the plain format first, "
            f"asmdnn.reorder(memory, MemoryDesc({desc.dims}, {desc.dtype}, '{LETTERS[: desc.ndims]}'))"
        )
    unit = prod(level.size for dim in levels for level in dim if level.inner)
    return _fill_in(regrouped, dims, unit)


def _regrouped(desc: Described, levels: list[list[Level]], dims: tuple[int, ...]) -> list[list[Level]] | None:
    """The levels of each of the new dims; None if they cannot be had.

    Old and new dims are paired into the smallest groups of equally many elements.  A padded dim has no other digits
    than its own, so it must be a separate group on both sides.
    """
    padded = [n != most for n, most in zip(desc.dims, desc.padded_dims, strict=True)]
    old = [dim for dim in range(desc.ndims) if padded[dim] or desc.dims[dim] > 1]
    result: list[list[Level]] = [[] for _ in dims]
    new = 0
    while old or new < len(dims):
        if old and padded[old[0]] and new < len(dims) and dims[new] == desc.dims[old[0]]:
            result[new] = levels[old.pop(0)]
            new += 1
            continue
        if new < len(dims) and dims[new] == 1:
            new += 1  # a new axis of one element: its stride has no say
            continue
        first, have, want, digits = new, 1, 1, list[Level]()
        while have != want or want == 1:
            if have <= want:
                if not old or padded[old[0]]:
                    return None
                have *= desc.dims[old[0]]
                digits += levels[old.pop(0)]
            else:
                want *= dims[new]
                new += 1
        taken = _dealt(merged_levels(digits), dims[first:new])
        if taken is None:
            return None
        result[first:new] = taken
    return result


def _dealt(levels: list[Level], dims: tuple[int, ...]) -> list[list[Level]] | None:
    """The digits dealt out to `dims`, whose product is theirs, from the innermost on; levels are cut where needed."""
    result: list[list[Level]] = []
    for n in reversed(dims):
        taken: list[Level] = []
        while n > 1:
            size, stride, inner = levels.pop()
            if size % n and n % size:
                return None
            use = min(n, size)
            if size > use:
                levels.append(Level(size // use, stride * use, inner))
            taken.insert(0, Level(use, stride, inner))
            n //= use
        blocks = taken[1:] if taken and not taken[0].inner else taken
        # A desc counts blocks with one stride, and then goes through the inner blocks in the order of the storage.
        if not all(level.inner for level in blocks) or blocks != sorted(blocks, key=lambda level: -level.stride):
            return None
        result.insert(0, taken)
    return result


def _fill_in(levels: list[list[Level]], dims: tuple[int, ...], unit: int) -> tuple[tuple[int, ...], Blocks]:
    """Strides, for a single block the one it would have in a dense tensor, and inner blocks in the order of storage."""
    strides, dense = [0] * len(dims), unit
    for dim in reversed(range(len(dims))):
        outer = [level for level in levels[dim] if not level.inner]
        strides[dim] = outer[0].stride if outer and outer[0].size > 1 else dense
        dense = strides[dim] * (outer[0].size if outer else 1)
    inner = [(level, dim) for dim, of_dim in enumerate(levels) for level in of_dim if level.inner]
    inner.sort(key=lambda pair: -pair[0].stride)
    return tuple(strides), tuple((dim, level.size) for level, dim in inner)
