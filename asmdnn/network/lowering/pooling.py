"""Pooling, with maps after it as post-ops: of windows, and of whole planes."""

from collections.abc import Sequence
from math import prod
from operator import add

from asmdnn.definitions.windows import SlidingWindow
from asmdnn.memory import MemoryDesc
from asmdnn.network.descriptors import any_format, row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import Node
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.integer_tail import AS_IT_IS, Start, tail_of
from asmdnn.network.lowering.integers import source_of
from asmdnn.network.lowering.lowering import ImageFormats, Lowering
from asmdnn.network.operators.geometry import window_of
from asmdnn.network.operators.own import OWN
from asmdnn.network.operators.windows import pooling
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.concat.pad import Pad
from asmdnn.primitives.pooling.description import MOST_POSITIONS, PoolingForward
from asmdnn.primitives.reduction.description import ReductionAlgorithm, ReductionForward
from asmdnn.records import replace
from asmdnn.types import DataType, PoolingAlgorithm, f32, s32, u8

GLOBAL: dict[str, tuple[PoolingAlgorithm, ReductionAlgorithm]] = {
    "GlobalAveragePool": ("avg_include_padding", "mean"),
    "GlobalMaxPool": ("max", "max"),
}

AVERAGES = {"AveragePool", "GlobalAveragePool"}
MAX_POOL_GRADIENT = f"{OWN}.MaxPoolGradient"


def lower_pool(steps: Steps, group: Group) -> None:
    """MaxPool and AveragePool; indices of maxima are left to numpy."""
    node = group.node
    if len(node.outputs) > 1 and node.outputs[1]:
        raise Refused("indices of maxima have no kernel here")
    sizes = steps.shape(node.inputs[0])[2:]
    window, _ = pooling(node, sizes)
    if min((*window.before, *window.after)) < 0:
        raise Refused("negative padding has no kernel")
    asked = window_of(node, sizes, window.kernel)  # without what ceil_mode adds
    average: PoolingAlgorithm = "avg_exclude_padding"
    if node.get("count_include_pad", 0) and any((*asked.before, *asked.after)):
        average = "avg_include_padding"
    source, start = operand(steps, node, average == "avg_include_padding")
    if node.op == "AveragePool" and average == "avg_include_padding" and asked.after != window.after:
        source, start, average = copy_with(steps, group, asked), AS_IT_IS, "avg_exclude_padding"
        asked = replace(asked, before=(0,) * len(sizes), after=(0,) * len(sizes))
    desc = PoolingForward(
        "max" if node.op == "MaxPool" else average,
        source.desc,
        steps.result_format(steps.shape(group.x), steps.type_of(group.result)),
        kernel=window.kernel,
        strides=window.strides,
        dilations=tuple(d - 1 for d in window.dilations),
        padding_l=asked.before,
        padding_r=asked.after,
    )
    if desc.src.dtype == desc.dst.dtype == f32 and has_gradient(steps, group):
        add_with_places(steps, group, desc, source)
        return
    tail = tail_of(steps, group, None, start)
    places = {"src": source, **tail.places()}
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, attr=tail.attr())


def copy_with(steps: Steps, group: Group, padding: SlidingWindow) -> Place:
    """The operand of means that count zeros around it, but not what ceil_mode adds: a tensor with these zeros."""
    source = steps.plain(group.node.inputs[0])
    batch, channels, *sizes = source.desc.dims
    rows = map(add, sizes, map(add, padding.before, padding.after))
    desc = Pad(source.desc, row_major((batch, channels, *rows)), (0, 0, *padding.before), "constant", 0.0)
    steps.add((), f"{group.label}: padding", desc, {"src": source}, {"dst": ""})
    return Place(steps.steps[-1].buffers["dst"], desc.dst)


def has_gradient(steps: Steps, group: Group) -> bool:
    """Whether a node after wants to know where the maxima are, and nothing is done to them here."""
    node = group.node
    return not group.maps and any(
        other.key == MAX_POOL_GRADIENT and other.inputs[0] == node.inputs[0] and other.attributes == node.attributes
        for other in steps.graph.nodes
    )


def add_with_places(steps: Steps, group: Group, desc: PoolingForward, source: Place) -> None:
    """Maxima, and where each is, in one format."""
    dst = steps.chosen(desc, "dst")
    indices = MemoryDesc(dst.dims, places_of(desc.kernel), strides=dst.strides, inner_blocks=dst.inner_blocks)
    desc = replace(desc, dst=dst, indices=indices)
    steps.add(group.nodes, group.label, desc, {"src": source}, {"dst": group.result, "indices": ""})
    steps.left[group.result] = Place(steps.steps[-1].buffers["indices"], indices)


def places_of(kernel: Sequence[int]) -> DataType:
    """The smallest type that counts the positions of a window, or the elements of a plane."""
    return u8 if prod(kernel) <= MOST_POSITIONS else s32


def operand(steps: Steps, node: Node, counts_padding: bool) -> tuple[Place, Start]:
    """Where src lies, and what means of it stand for: those of integers become floats after the sums, unless 0 is
    among them that is not their zero point."""
    floats = node.inputs[0]
    if floats not in steps.dequantizers or node.op not in AVERAGES:
        return steps.kept(floats), AS_IT_IS
    source = source_of(steps, floats)
    if counts_padding and source.has_zero:
        return steps.place(floats), AS_IT_IS
    scale, zero = source.numbers.scale.reshape(()), source.numbers.zero.reshape(())
    return steps.bytes_of(source.name), Start(scale, -scale * zero)


def lower_whole(steps: Steps, group: Group) -> None:
    """A window of the whole plane where channels are lanes, else a reduction of rows."""
    node = group.node
    source, start = operand(steps, node, False)
    sizes, result = source.desc.dims[2:], any_format(steps.shape(group.x), steps.type_of(group.result))
    by_window, by_rows = GLOBAL[node.op]
    if 0 in sizes or not prod(sizes):
        raise Refused("its operand has no elements")
    tail = tail_of(steps, group, None, start)
    places = {"src": source, **tail.places()}
    if source.desc.inner_blocks and len(sizes) <= 3:
        pool = PoolingForward(by_window, source.desc, result, sizes)
        steps.add(group.nodes, group.label, pool, places, {"dst": group.result}, attr=tail.attr())
    else:
        rows = ReductionForward(by_rows, source.desc, result)
        steps.add(group.nodes, group.label, rows, places, {"dst": group.result}, attr=tail.attr())


LOWERINGS = {
    "MaxPool": Lowering(lower_pool, ImageFormats.CHOOSES),
    "AveragePool": Lowering(lower_pool, ImageFormats.CHOOSES, of_floats=True),
    **{name: Lowering(lower_whole, ImageFormats.BLOCKS, of_floats=name in AVERAGES) for name in GLOBAL},
}
