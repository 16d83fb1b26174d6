"""Concat: operands are written where they belong, or copied there."""

from collections.abc import Sequence

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.network.descriptors import channels_last, row_major
from asmdnn.network.format_choice import CHANNELS_LAST
from asmdnn.network.fusion.maps import Group
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.lowering import ImageFormats, Lowering
from asmdnn.network.operators.definition import normal
from asmdnn.network.steps import Steps
from asmdnn.types import f32


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


LOWERINGS = {"Concat": Lowering(lower_concat, ImageFormats.PARTS)}
