"""A 1x1 convolution and the depthwise one that alone reads it are a pair, the main block of mobile networks.

    depthwise(maps(conv1x1(x)))   as one group, with the maps after both

Lowering asks whether one primitive is expected to be faster than two, and takes them apart again where it is not.
"""

from collections.abc import Container, Sequence

from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.geometry import window_of
from asmdnn.network.static import StaticGraph
from asmdnn.records import replace


def paired(graph: StaticGraph, groups: Sequence[Group], narrow: Container[str] = ()) -> tuple[Group, ...]:
    """The groups, those of a pair as one in the place of the second.  narrow: what is multiplied or kept in fewer bits
    than f32, of which there are no pairs."""
    readers, wide = graph.readers(), [group for group in groups if is_wide(group, narrow)]
    firsts = {group.result: group for group in wide if is_pointwise(graph, group) and readers[group.result] == 1}
    pairs, taken = dict[str, Group](), set[str]()
    for group in groups:
        is_second = group.main is not None and is_wide(group, narrow) and is_depthwise(graph, group)
        source = group.main.inputs[0] if is_second and group.main is not None else NOTHING
        if source in firsts:
            pairs[group.result] = replace(firsts[source], second=group)
            taken.add(source)
    return tuple(pairs.get(group.result, group) for group in groups if group.result not in taken)


def is_wide(group: Group, narrow: Container[str]) -> bool:
    """Whether it reads and makes f32 alone."""
    return not any(name in narrow for node in group.nodes for name in (*node.inputs, *node.outputs))


def is_pointwise(graph: StaticGraph, group: Group) -> bool:
    """Whether it is a 1x1 convolution of an image, without groups, strides, padding and scales, and maps."""
    node = group.main
    if not is_convolution(graph, node) or node is None or node.get("group", 1) != 1 or group.scale is not None:
        return False
    if group.has_integers:
        return False
    (src, weights), dst = (graph.shape(name)[2:] for name in node.inputs[:2]), graph.shape(node.outputs[0])[2:]
    return weights == (1, 1) and {*window_of(node, src, weights).strides} == {1} and src == dst


def is_depthwise(graph: StaticGraph, group: Group) -> bool:
    """Whether it is a convolution of every channel separately, and maps."""
    node = group.main
    if not is_convolution(graph, node) or node is None or group.has_integers:
        return False
    channels, into = graph.shape(node.inputs[1])[:2]
    return into == 1 and node.get("group", 1) == channels == graph.shape(node.inputs[0])[1]


def is_convolution(graph: StaticGraph, node: Node | None) -> bool:
    """Of images, with constant weights and bias."""
    if node is None or node.op != "Conv" or node.domain or len(graph.shape(node.inputs[0])) != 4:
        return False
    return all(graph.is_constant(name) for name in node.inputs[1:] if name != NOTHING)
