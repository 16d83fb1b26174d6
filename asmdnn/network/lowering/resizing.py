"""Resize and Upsample of spatial axes as resampling."""

from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING
from asmdnn.network.lowering.lowering import ImageFormats, Lowering
from asmdnn.network.lowering.maps import Tail
from asmdnn.network.operators.resizing import coordinates_of, resize_inputs, resized, rounding_of
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.resampling.description import (
    ALGORITHMS,
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
WHOLE = 1e-3  # of an element


def lower_resize(steps: Steps, group: Group) -> None:
    """Of constant scales or sizes, with maps after it; in the channels' blocks where there are some."""
    node = group.main
    assert node is not None
    x, *names = node.inputs
    dims = steps.shape(x)
    given = resize_inputs(node, tuple(steps.value(name).data if name != NOTHING else None for name in names))
    outputs, factors = resized(node, dims, *given)
    if tuple(outputs[:2]) != dims[:2] or not 3 <= len(dims) <= 5:
        raise Refused(f"dims {dims} become {tuple(outputs)}: only spatial axes are resized")
    mode, algorithm = coordinates_of(node), node.get("mode", "nearest")
    roundings = {rounding_of(node, f) for f, n, o in zip(factors, dims, outputs, strict=True) if n != o or f != 1}
    if algorithm == "nearest" and len(roundings) > 1:
        raise Refused("axes that grow and axes that shrink have different roundings here, and no kernel")
    if mode not in COORDINATES or algorithm not in ALGORITHMS:
        raise Refused(f"mode {algorithm}, {mode} has no kernel; {', '.join(COORDINATES)} have")
    if node.get("antialias", 0) or node.get("exclude_outside", 0) or node.get("cubic_coeff_a", -0.75) != -0.75:
        raise Refused("antialias, exclude_outside and cubic_coeff_a have no kernel")
    exact = all(abs(f * n - o) < WHOLE for f, n, o in zip(factors, dims, outputs, strict=True))
    if mode == "align_corners" and not exact:
        raise Refused("scales that make no whole sizes have no kernel with align_corners")
    dtype, tail = steps.type_of(group.result), Tail(steps, group.maps, group.x)
    source = steps.place(x) if dtype == f32 else steps.as_type(x, dtype)
    desc = ResamplingForward(
        ALGORITHM[algorithm],
        source.desc,
        steps.result_format(tuple(outputs), dtype),
        tuple(factors[2:]),
        COORDINATES[mode],
        ROUNDINGS[min(roundings, default="floor")],
    )
    is_cut = steps.value(x).dtype.kind in "iu" and algorithm != "nearest"  # where the primitive would round
    attr = Attr(["trunc"]) if is_cut else tail.attr()
    steps.add(group.nodes, group.label, desc, {"src": source}, {"dst": group.result}, attr=attr)


LOWERINGS = dict.fromkeys(("Resize", "Upsample"), Lowering(lower_resize, ImageFormats.CHOOSES))
