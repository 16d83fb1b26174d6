"""Operators that only change dims or strides: other descriptors of the same storage, wherever one exists."""

from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.network.descriptors import channels_last, row_major
from asmdnn.network.format_choice import CHANNELS_LAST
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import Array
from asmdnn.network.lowering.indices import constant_indices, indices_of
from asmdnn.network.lowering.lowering import ImageFormats, Lowering
from asmdnn.network.operators.definition import normal
from asmdnn.network.operators.moves import permutation, slices, split_sizes
from asmdnn.network.operators.own import OWN
from asmdnn.network.operators.spans import AxisSpan, chosen, whole
from asmdnn.network.place import Place
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.gather.description import Gather
from asmdnn.primitives.shuffle.shuffle import Shuffle
from asmdnn.types import f32


def lower_reshape(steps: Steps, group: Group) -> None:
    """Reshape, Flatten, Squeeze, Unsqueeze: the same storage, of blocked formats where no block is torn."""
    node = group.node
    dims = steps.shape(group.result) or (1,)
    alias(steps, node.inputs[0], group.result, lambda desc: desc.reshape(dims))


def lower_transpose(steps: Steps, group: Group) -> None:
    """The same storage with other strides."""
    node = group.node
    order = permutation(node, len(steps.shape(node.inputs[0])))
    inverse = tuple(order.index(axis) for axis in range(len(order)))
    alias(steps, node.inputs[0], group.result, lambda desc: desc.permute_axes(inverse))


def lower_shuffle(steps: Steps, group: Group) -> None:
    """In the format that is there."""
    node = group.node
    source = steps.place(node.inputs[0])
    tag = source.desc.tag
    dtype = source.desc.dtype
    dst = MemoryDesc(source.desc.dims, dtype, tag) if tag else row_major(source.desc.dims, dtype)
    desc = Shuffle(source.desc, dst, 1, source.desc.dims[1] // node.get("groups"))
    steps.add(group.nodes, group.label, desc, {"src": source}, {"dst": group.result})


def lower_slice(steps: Steps, group: Group) -> None:
    """A sub-memory; a step is a stride, or, below 0, a gather."""
    node = group.node
    x, *inputs = node.inputs
    dims = steps.shape(x)
    found = slices(node, dims, *(steps.value(name).data if name else None for name in inputs))
    if 0 in steps.shape(group.result):
        raise Refused("its result has no elements")
    parts = [chosen(n, part) for n, part in zip(dims, found, strict=True)]
    backward = [axis for axis, each in enumerate(parts) if each.step < 0]
    if len(backward) > 1:
        raise Refused("steps below 0 along several axes have no kernel")
    if backward:
        (axis,) = backward
        first, count, step = parts[axis]
        forward = [each if each.step > 0 else whole(n) for each, n in zip(parts, dims, strict=True)]
        plain = steps.plain(x, steps.kept(x).desc.dtype)
        source = Place(plain.buffer, cut(plain.desc, forward))
        numbers = constant_indices(steps, group.result, first + step * np.arange(count))
        gather_rows(steps, group, source, numbers, axis)
        return
    alias(steps, x, group.result, lambda desc: cut(desc, parts))


def lower_split(steps: Steps, group: Group) -> None:
    """A sub-memory each."""
    node = group.node
    x, dims = node.inputs[0], steps.shape(node.inputs[0])
    axis = normal(node.get("axis", 0), len(dims))
    sizes = split_sizes(node, dims[axis], steps.value(node.inputs[1]).data if len(node.inputs) > 1 else None)
    starts = accumulate(sizes, initial=0)
    for name, start, size in zip(node.outputs, starts, sizes, strict=False):
        parts = [whole(n) if i != axis else AxisSpan(start, size) for i, n in enumerate(dims)]
        alias(steps, x, name, lambda desc, parts=parts: cut(desc, parts))  # type: ignore[misc]


def lower_gather(steps: Steps, group: Group) -> None:
    """Of constant indices at equal distances a sub-memory, else a primitive."""
    node = group.node
    x, name = node.inputs
    indices, dims = steps.value(name).data, steps.shape(x)
    axis = normal(node.get("axis", 0), len(dims))
    taken = spaced(indices, dims[axis]) if indices is not None else None
    if taken is None:
        gather(steps, group, axis)
        return
    parts = [taken if i == axis else whole(n) for i, n in enumerate(dims)]
    alias(steps, x, group.result, lambda desc: cut(desc, parts).reshape(steps.shape(group.result) or (1,)))


def spaced(indices: Array, limit: int) -> AxisSpan | None:
    """The elements that indices choose, if these rise by equal steps."""
    wide = indices.astype(np.int64)
    found = np.where(wide < 0, wide + limit, wide).ravel()
    if not len(found) or not 0 <= found.min() <= found.max() < limit:
        return None
    step = int(found[1] - found[0]) if len(found) > 1 else 1
    if step < 1 or (np.diff(found) != step).any():
        return None
    return AxisSpan(int(found[0]), len(found), step)


def gather(steps: Steps, group: Group, axis: int) -> None:
    """By indices at any distances, or that are known when the network runs."""
    node = group.node
    x, name = node.inputs
    dims = steps.shape(x)
    if 0 in steps.shape(group.result):
        raise Refused("its result has no elements")
    gather_rows(steps, group, steps.plain(x, steps.kept(x).desc.dtype), indices_of(steps, name, dims[axis], axis), axis)


def gather_rows(steps: Steps, group: Group, source: Place, numbers: Place, axis: int) -> None:
    """The primitive."""
    dims = source.desc.dims
    made = row_major((*dims[:axis], *numbers.desc.dims, *dims[axis + 1 :]), source.desc.dtype)
    desc = Gather(source.desc, numbers.desc, made, axis)
    steps.add(group.nodes, group.label, desc, {"src": source, "indices": numbers}, {"dst": group.result})


def lower_one_hot(steps: Steps, group: Group) -> None:
    """A table with its last row so often that indices up to twice too large, and as negative ones, choose it."""
    node = group.node
    name, table = node.inputs
    rows = np.asarray(steps.value(table).data)
    count, size = len(rows) - 1, rows.shape[1]
    numbers = indices_of(steps, name, 2 * count, 0)
    wide = np.concatenate((rows, np.repeat(rows[-1:], 2 * count - 1, 0)))
    source = steps.memory.add_weight(f"{table}, wide", wide, row_major(wide.shape))
    desc = Gather(source.desc, numbers.desc, row_major((*numbers.desc.dims, size)), 0)
    steps.add(group.nodes, group.label, desc, {"src": source, "indices": numbers}, {"dst": group.result})


def lower_expand(steps: Steps, group: Group) -> None:
    """Strides of 0."""
    node = group.node
    shape = steps.shape(group.result)
    alias(steps, node.inputs[0], group.result, lambda desc: repeated(desc, shape))


def alias(steps: Steps, source: str, result: str, view: Callable[[MemoryDesc], MemoryDesc]) -> None:
    """The value at the place of another one, in the first of its formats of which there is such a view."""
    known = [*steps.places.get(source, ()), None]
    for place in known:
        found = place if place is not None else steps.plain(source, steps.kept(source).desc.dtype)
        try:
            steps.places[result] = [Place(found.buffer, view(found.desc))]
            return
        except InvalidArguments:
            if place is None:
                raise


def cut(desc: MemoryDesc, parts: Sequence[AxisSpan]) -> MemoryDesc:
    """Some of the elements along each axis.  Raises InvalidArguments where blocks do not allow it, Refused for none."""
    if desc.dims == () or not parts:
        return desc
    if any(each.size == 0 for each in parts):
        raise Refused("a part without elements has no kernel")
    part = desc.submemory(tuple(each.reach for each in parts), tuple(each.first for each in parts))
    if all(each.step == 1 for each in parts):
        return part
    if part.inner_blocks:
        raise InvalidArguments("blocks have no steps")
    strides = [stride * each.step for stride, each in zip(part.strides, parts, strict=True)]
    return MemoryDesc(tuple(each.size for each in parts), desc.dtype, strides=strides, offset0=part.offset0)


def repeated(desc: MemoryDesc, shape: tuple[int, ...]) -> MemoryDesc:
    """Dims of 1 as often as wanted."""
    if desc.inner_blocks:
        raise InvalidArguments("blocks cannot be repeated")
    wide = desc.reshape((1,) * (len(shape) - desc.ndims) + desc.dims)
    strides = [stride if n == m else 0 for stride, n, m in zip(wide.strides, wide.dims, shape, strict=True)]
    return MemoryDesc(shape, desc.dtype, strides=strides, offset0=wide.offset0)


def lower_concat(steps: Steps, group: Group) -> None:
    """Operands are written where they belong, if each part is one piece of memory; others are copied there."""
    node = group.node
    dims = steps.shape(group.result)
    axis = normal(node.get("axis", 1), len(dims))
    names = [name for name in node.inputs if steps.shape(name)[axis]]
    sizes = [steps.shape(name)[axis] for name in names]
    whole = common_format(steps, names, group.result, sizes if axis == 1 else None)
    target, start = Place(steps.memory.add(group.result, whole), whole), 0
    for name, source in gathered(steps, names, axis):
        offsets = tuple(start if i == axis else 0 for i in range(len(dims)))
        place = Place(target.buffer, whole.submemory(source.desc.dims, offsets))
        if not steps.memory.put_inside(source, place, place.desc):
            steps.reorder(source, place, name)
        start += source.desc.dims[axis]
    steps.places[group.result] = [target]


def gathered(steps: Steps, names: Sequence[str], axis: int) -> list[tuple[str, Place]]:
    """Operands of a concat; pieces that lie one after another, as those of a split, are one operand."""
    found = list[tuple[str, Place]]()
    for name in names:
        place = steps.kept(name)
        both = joined(found[-1][1], place, axis) if found else None
        if both is None:
            found.append((name, place))
        else:
            found[-1] = f"{found[-1][0]}, {name}", both
    return found


def joined(one: Place, two: Place, axis: int) -> Place | None:
    """Two pieces as one, if the second one begins where the first one ends."""
    a, b = one.desc, two.desc
    if one.buffer != two.buffer or a.strides != b.strides or a.inner_blocks != b.inner_blocks or a.dtype != b.dtype:
        return None
    dims = tuple(n + m if i == axis else n for i, (n, m) in enumerate(zip(a.dims, b.dims, strict=True)))
    both = MemoryDesc(dims, a.dtype, strides=a.strides, inner_blocks=a.inner_blocks, offset0=a.offset0)
    try:
        after = both.submemory(b.dims, tuple(n if i == axis else 0 for i, n in enumerate(a.dims)))
    except InvalidArguments:  # inside of a block, or of other dims
        return None
    return Place(one.buffer, both) if after == b else None


def common_format(steps: Steps, names: Sequence[str], result: str, sizes: list[int] | None) -> MemoryDesc:
    """That of the first operand which is in blocks, if no operand's channels cut one, or has its channels last, if it
    is not f32; else row-major."""
    dims, dtype = steps.shape(result), steps.type_of(result)
    for name in names:
        desc = steps.kept(name).desc
        if desc.inner_blocks and desc.tag and sizes and all(size % desc.blocks[1] == 0 for size in sizes[:-1]):
            return MemoryDesc(dims, dtype, desc.tag)
        if dtype != f32 and len(dims) >= CHANNELS_LAST and desc == channels_last(desc.dims, dtype):
            return channels_last(dims, dtype)
    return row_major(dims, dtype)


LOWERINGS = {
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), lower_reshape),
    "Transpose": lower_transpose,
    f"{OWN}.ChannelShuffle": lower_shuffle,
    "Slice": Lowering(lower_slice, ImageFormats.PARTS),
    "Split": Lowering(lower_split, ImageFormats.PARTS),
    "Gather": lower_gather,
    f"{OWN}.OneHotRows": lower_one_hot,
    "Expand": lower_expand,
    "Concat": Lowering(lower_concat, ImageFormats.PARTS),
}
