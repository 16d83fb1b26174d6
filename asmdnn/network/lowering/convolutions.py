"""Conv as the convolution primitive, of one to three spatial axes and any groups that it takes."""

from asmdnn.memory import MemoryDesc
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.lowering.maps import Tail
from asmdnn.network.operators.geometry import window_of
from asmdnn.network.steps import Steps, any_format
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.types import f32


def lower_conv(steps: Steps, group: Group) -> None:
    """src in the format that the primitive likes best, weights packed once, maps behind it as post-ops."""
    node = group.main
    assert node is not None
    x, w, *more = node.inputs
    weights, bias = steps.value(w).data, more[0] if more else NOTHING
    if weights is None:
        raise Refused(f"its weights {w} are no constant")
    tail = Tail(steps, group.maps, group.x)
    desc, source = description(steps, node), steps.place(x)
    wanted = steps.chosen(desc, "src", tail.attr()) if not source.desc.inner_blocks else source.desc
    source = steps.place(x, wanted)
    groups = node.get("group", 1)
    shaped = weights.reshape(desc.weights.dims)
    constants = {"weights": (w, shaped)}
    if bias != NOTHING:
        data = steps.value(bias).data
        if data is None:
            raise Refused(f"its bias {bias} is no constant")
        constants["bias"] = (bias, data)
    assert groups >= 1
    desc = desc.with_formats({"src": wanted})
    steps.add(
        group.nodes, group.label, desc, {"src": source, **tail.places()}, {"dst": group.result}, constants, tail.attr()
    )


def description(steps: Steps, node: Node) -> ConvolutionForward:
    """The convolution, with formats left to the primitive."""
    x, w = (steps.shape(name) for name in node.inputs[:2])
    window, groups = window_of(node, x[2:], w[2:]), node.get("group", 1)
    weights = w if groups == 1 else (groups, w[0] // groups, *w[1:])
    has_bias = len(node.inputs) > 2 and node.inputs[2] != NOTHING
    return ConvolutionForward(
        src=any_format(x),
        weights=any_format(weights),
        bias=MemoryDesc((w[0],), f32, "a") if has_bias else None,
        dst=any_format(steps.shape(node.outputs[0])),
        strides=window.strides,
        dilations=tuple(d - 1 for d in window.dilations),
        padding_l=window.before,
        padding_r=tuple(
            (o - 1) * s + (k - 1) * d + 1 - n - a
            for o, n, k, s, d, a, _ in zip(steps.shape(node.outputs[0])[2:], x[2:], *window.fields(), strict=True)
        ),
    )


LOWERINGS = {"Conv": lower_conv}
