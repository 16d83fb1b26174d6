"""A convolution of one channel along one axis as a product whose rows overlap.

    dst[p, o] = bias[o] + sum over k of src[stride p + k] weights[o, k]

Window p is row p of a matrix with strides (stride, 1): nothing is copied.  Of few windows, such as the frames of a
short-time Fourier transform, the time is that of streaming the weights once, which products do at twice the speed: 4
frames of 256 taps to 258 channels take 6.6 us, by convolution 17.1 (AMD EPYC (Zen 3), one thread); 100 frames the same.
"""

from collections.abc import Mapping
from math import prod

from asmdnn.memory import MemoryDesc
from asmdnn.network.descriptors import any_format, row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import Array, Node
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.integer_tail import AnyTail
from asmdnn.network.operators.geometry import window_of
from asmdnn.network.steps import Steps
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.types import f32

MOST_FRAMES = 12
LEAST_WEIGHTS = 4096  # below, everything is in L1


def is_frames(steps: Steps, node: Node, tail: AnyTail) -> bool:
    """Whether a convolution is such a product, and of few windows."""
    (x, w), result = (steps.shape(name) for name in node.inputs[:2]), steps.shape(node.outputs[0])
    if x[:2] != (1, 1) or prod(x) != max(x) or tail.tensors or not prod(w) >= LEAST_WEIGHTS:
        return False
    window = window_of(node, x[2:], w[2:])
    is_plain = not any((*window.before, *window.after)) and all(d == 1 for d in window.dilations)
    return is_plain and prod(result[2:]) <= MOST_FRAMES


def lower_frames(steps: Steps, group: Group, given: Mapping[str, tuple[str, Array]], tail: AnyTail) -> None:
    """The result lies with its channels last."""
    node = group.node
    result = steps.shape(node.outputs[0])
    weights = given["weights"][1]
    out, frames, taps = result[1], prod(result[2:]), weights[0].size
    axis = max(range(2, len(result)), key=lambda i: steps.shape(node.inputs[0])[i])
    stride = node.get("strides", (1,) * len(result[2:]))[axis - 2]
    plain = steps.plain(node.inputs[0])
    src = MemoryDesc((frames, taps), f32, strides=(stride, 1), offset0=plain.desc.offset0)
    constants = {**given, "weights": (f"{node.inputs[1]} by taps", weights.reshape(out, taps).T)}
    row = row_major((1, out)) if "bias" in given else None
    desc = MatMul(src, any_format((taps, out)), row_major((frames, out)), row)
    places = {"src": Place(plain.buffer, src)}
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, constants=constants, attr=tail.attr())
    (made,) = steps.places[group.result]
    order = (0, len(result) - 1, *range(1, len(result) - 1))
    rows = row_major((1, *result[2:], out)).permute_axes(tuple(order.index(i) for i in range(len(order))))
    steps.places[group.result] = [Place(made.buffer, rows)]
