"""A scale for every channel of src, such as a squeeze-and-excite block computes: the mask of src has the bit of dim 1.

    dst[n, o] = bias[o] + sum over c of weights[o, c] * (src_scales[n, c] * src[n, c])

Channels are summed over, so no post-op can multiply by it.  One operand is multiplied in scratch, before it is read:
weights, of which each serves all pixels of an image, or src, of which each element serves all output channels; the one
that has fewer elements.  Within a tile the multiply would be repeated for every row of weights that is loaded, or for
every element that is broadcast, of every tile.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final

from asmdnn.generators.move.conversion import Conversion
from asmdnn.isa.dot import f32_dot_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Phase, Repeat, View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.description import ConvolutionDesc, Desc
from asmdnn.primitives.convolution.direct import NAME, Parts, planned_parts
from asmdnn.primitives.convolution.reordered import any_format, plans_between_reorders
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, Planner, answers_of, try_all
from asmdnn.primitives.reorder.schedule import ScaledConversion, reorder_phases
from asmdnn.primitives.shapes.formats import dense_like
from asmdnn.records import dataclass, replace
from asmdnn.types import f32

IMAGES, CHANNELS = 1, 2  # bits of the mask
MOST_WEIGHTS: Final = 64  # whose multiplication is known
SCALES = "src_scales"
SCALED = Conversion("f32", "f32", scaled=True)


@dataclass(frozen=True, slots=True)
class Scales:
    """f32[images, channels]; one image if all share theirs."""

    images: int
    channels: int

    @property
    def image_bytes(self) -> int:
        return f32.size_bytes * self.channels

    @property
    def desc(self) -> MemoryDesc:
        """As a caller passes them."""
        return MemoryDesc((self.images * self.channels,), f32, "a")


def has_scales(attr: Attr) -> bool:
    """Whether channels of src have scales."""
    return bool(dict(attr.scales).get("src", 0) & CHANNELS)


def scales_of(desc: ConvolutionDesc, attr: Attr) -> Scales:
    """Raises Refused."""
    for name in ("src", "weights"):
        if (dtype := desc.tensors()[name].dtype) != f32:
            raise Refused(f"scales of src's channels are for f32, and {name} is {dtype}: scale src before")
    mask = dict(attr.scales)["src"]
    if mask & ~(IMAGES | CHANNELS):
        raise Refused(f"scales of src have the mask {mask}, but only dims 0, 1 of src can have scales")
    return Scales(desc.src.dims[0] if mask & IMAGES else 1, desc.src.dims[1])


def without_scales(attr: Attr) -> Attr:
    """The attributes of what reads the scaled operand."""
    others = {name: mask for name, mask in attr.scales if name != "src"}
    return replace(attr, scales=others, zero_points=dict(attr.zero_points))  # type: ignore[arg-type]  # as __init__


def scaling_src(planners: Sequence[Planner[Any]]) -> tuple[Planner[Any], ...]:
    """The planners, as one; where channels of src have scales, their plans after what multiplies src."""

    def ask(desc: Any, attr: Attr, engine: Engine) -> Iterator[Answer]:
        if not has_scales(attr):
            return answers_of(planners, desc, attr, engine)
        return chain.from_iterable(of_scaled_source(planner, desc, attr, engine) for planner in planners)

    return (ask,)


def of_scaled_source(planner: Planner[Desc], desc: Desc, attr: Attr, engine: Engine) -> Iterator[Answer]:
    try:
        scales = scales_of(desc, attr)
    except Refused as reason:
        yield Refusal(f"scale_src:{engine.isa}", str(reason))
        return
    for answer in try_all((planner,), source_of_choice(desc), without_scales(attr), engine):
        name = f"scale_src+{answer.implementation}"
        try:
            if isinstance(answer, Refusal):
                raise Refused(answer.reason)
            yield scaling_source(name, answer, desc, scales, engine)
        except Refused as reason:
            yield Refusal(name, str(reason))


def source_of_choice(desc: Desc) -> Desc:
    """With the format of the scaled src: as src is given, dense, or open where its channels lie apart."""
    src = desc.src
    if src.is_any:
        return desc
    together = src.inner_blocks or src.strides[1] == 1 or src.dims[1] == 1
    return desc.with_formats({"src": dense_like(src, src) if together else any_format(src)})


def scaling_source(name: str, plan: Plan, desc: ConvolutionDesc, scales: Scales, engine: Engine) -> Plan:
    """`plan`, of a src that is brought into its format and multiplied."""
    wanted = plan.tensors["src"]
    src = wanted if desc.src.is_any else desc.src
    assembly, copy = Assembly(engine.tuning, engine.isa), "scaled src"
    if src.nelems():
        strides = (scales.channels if scales.images > 1 else 0, 1, *[0] * (src.ndims - 2))
        assembly.add(multiplied(src, wanted, ("src", copy), strides, engine))
        assembly.scratch[copy] = wanted.size_bytes
    assembly.add_plan(plan, {"src": View(copy)} if src.nelems() else {})
    return assembly.plan(name, {**plan.tensors, "src": src, SCALES: scales.desc}, plan.outputs)


def multiplied(
    src: MemoryDesc, dst: MemoryDesc, buffers: tuple[str, str], strides: tuple[int, ...], engine: Engine
) -> list[Phase]:
    """What brings a tensor into another format, times its scales, whose strides these are."""
    numbers = ScaledConversion(SCALED, strides)
    return reorder_phases(src, dst, (*buffers, SCALES, "", ""), engine.tuning, numbers, isa=engine.isa)


@lru_cache(MOST_WEIGHTS)
def multiplied_weights(
    weights: MemoryDesc, places: tuple[int, ...], copy: str, strides: tuple[int, ...], engine: Engine
) -> tuple[Phase, ...]:
    """The same of weights, which images of any size have in common.  places: their own strides, as those of dims of one
    block do not count where descriptors are compared."""
    return tuple(multiplied(weights, weights, ("weights", copy), strides, engine))


def scaling_weights(parts: Parts[Desc]) -> Planner[Desc]:
    """The planner of direct convolutions of `parts`, whose weights are multiplied."""

    def plans(desc: Desc, attr: Attr, engine: Engine) -> Iterator[Answer]:
        name = f"scale_weights+{NAME}"

        def planned(desc: Desc, attr: Attr, engine: Engine) -> Plan:
            scales = scales_of(desc, attr)
            if desc.groups > 1:
                raise Refused(f"weights have {desc.groups} groups, whose other kernels are faster")
            images = desc.src.dims[0] if engine.any_batch else scales.images  # as if each had weights of its own
            if images * desc.weights.nelems() >= desc.src.nelems():
                raise Refused("src has no more elements than the weights of all images")
            plan = planned_parts(desc, without_scales(attr), engine, parts, weights_of_images=scales.images > 1)
            return scaled_weights(f"{name}:{f32_dot_level(engine.isa)}", plan, desc, scales, engine)

        if has_scales(attr):
            yield from plans_between_reorders(name, desc, attr, engine, planned)

    return plans


def scaled_weights(name: str, plan: Plan, desc: ConvolutionDesc, scales: Scales, engine: Engine) -> Plan:
    """`plan`, of weights that are multiplied for each image."""
    weights = plan.tensors["weights"]
    assembly, copy = Assembly(engine.tuning, engine.isa), "scaled weights"
    strides = (*[scales.channels // desc.groups] * desc.has_groups, 0, 1, *[0] * len(desc.kernel))
    steps = (0, weights.size_bytes, scales.image_bytes, 0, 0)
    for phase in multiplied_weights(weights, weights.strides, copy, strides, engine):
        repeats = (Repeat(scales.images, steps),) if scales.images > 1 else ()
        assembly.add([replace(phase, repeats=(*repeats, *phase.repeats))])
    assembly.scratch[copy] = scales.images * weights.size_bytes
    assembly.add_plan(plan, {"weights": View(copy)})
    return assembly.plan(name, {**plan.tensors, SCALES: scales.desc}, plan.outputs)
