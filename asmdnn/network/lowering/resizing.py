"""Resize and Upsample of spatial axes as resampling, and their gradients."""

from asmdnn.network.descriptors import any_format
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING
from asmdnn.network.lowering.integer_tail import tail_of
from asmdnn.network.lowering.lowering import ImageFormats, Lower, Lowering
from asmdnn.network.operators.resizing import (
    placed_as,
    resize_inputs,
    resized,
    roundings_of,
    why_no_kernel,
)
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.resampling.backward_description import ResamplingBackward
from asmdnn.primitives.resampling.description import (
    Coordinates,
    NearestRounding,
    ResamplingAlgorithm,
    ResamplingForward,
)
from asmdnn.types import f32

COORDINATES: dict[str, Coordinates] = {
    "half_pixel": "half_pixel",
    "align_corners": "align_corners",
    "asymmetric": "asymmetric",
}
ROUNDINGS: dict[str, NearestRounding] = {
    "floor": "floor",
    "ceil": "ceil",
    "round_prefer_floor": "round_prefer_floor",
    "round_prefer_ceil": "round_prefer_ceil",
}
ALGORITHM: dict[str, ResamplingAlgorithm] = {"nearest": "nearest", "linear": "linear", "cubic": "cubic"}


def lower_resize(steps: Steps, group: Group) -> None:
    """Of constant scales or sizes, with maps after it; in the channels' blocks where there are some."""
    node = group.node
    x, *names = node.inputs
    dims = steps.shape(x)
    given = resize_inputs(node, tuple(steps.value(name).data if name != NOTHING else None for name in names))
    outputs, factors = resized(node, dims, *given)
    if reason := why_no_kernel(node, dims, outputs, factors):
        raise Refused(reason)
    algorithm, roundings = node.get("mode", "nearest"), roundings_of(node, dims, outputs, factors)
    dtype, tail = steps.type_of(group.result), tail_of(steps, group)
    source = steps.place(x) if dtype == f32 else steps.as_type(x, dtype)
    desc = ResamplingForward(
        ALGORITHM[algorithm],
        source.desc,
        steps.result_format(tuple(outputs), dtype),
        tuple(factors[2:]),
        COORDINATES[placed_as(node, dims, outputs, factors)],
        ROUNDINGS[min(roundings, default="floor")],
    )
    is_cut = steps.value(x).dtype.kind in "iu" and algorithm != "nearest"  # where the primitive would round
    attr = Attr(["trunc"]) if is_cut else tail.attr()
    steps.add(group.nodes, group.label, desc, {"src": source}, {"dst": group.result}, attr=attr)


def lower_resize_gradient(steps: Steps, group: Group) -> None:
    """In the channels' blocks where there are some."""
    node = group.node
    after = steps.place(node.inputs[0])
    desc = ResamplingBackward(
        ALGORITHM[node.get("mode")],
        any_format(tuple(node.get("image"))),
        after.desc,
        tuple(node.get("factors")),
        COORDINATES[node.get("coordinates")],
        ROUNDINGS[node.get("rounding")],
    )
    steps.add(group.nodes, group.label, desc, {"diff_dst": after}, {"diff_src": group.result})


LOWERINGS: dict[str, Lower | Lowering] = {
    **dict.fromkeys(("Resize", "Upsample"), Lowering(lower_resize, ImageFormats.CHOOSES)),
    "asmdnn.ResizeGradient": lower_resize_gradient,
}
