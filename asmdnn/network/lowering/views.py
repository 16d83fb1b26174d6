"""Operators that only change dims or strides: other descriptors of the same storage, wherever one exists."""

from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.network.descriptors import row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.indices import constant_indices, gather_rows
from asmdnn.network.lowering.lowering import ImageFormats, Lowering
from asmdnn.network.operators.definition import normal
from asmdnn.network.operators.moves import permutation, slices, split_sizes
from asmdnn.network.operators.own import OWN
from asmdnn.network.operators.spans import AxisSpan, chosen, whole
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.shuffle.shuffle import Shuffle


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


LOWERINGS = {
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), lower_reshape),
    "Transpose": lower_transpose,
    f"{OWN}.ChannelShuffle": lower_shuffle,
    "Slice": Lowering(lower_slice, ImageFormats.PARTS),
    "Split": Lowering(lower_split, ImageFormats.PARTS),
    "Expand": lower_expand,
}
