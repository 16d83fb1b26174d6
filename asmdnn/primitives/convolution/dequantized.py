"""Convolutions of quantised tensors with scales and zero points that tiles of bytes do not take.

    integers   src and weights, less their zero points, become s32; sums are exact, modulo 2^32
    floats     src and weights, less their zero points, become f32, and so are sums

These are zero points of weights or of src's channels, u8 weights, and long kernels of a channel each.  Both tensors are
written in every call.  Scales of src's channels come before sums, which are of floats then; others are links after the
sums.  Floats are for few products, too: their sums are exact where zero points are bytes.  Padding is 0 then, as it
should be.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.direct import NAME, Parts, planned_parts
from asmdnn.primitives.convolution.multiplied import level_inside
from asmdnn.primitives.convolution.reordered import ways_around
from asmdnn.primitives.convolution.sums_of_bytes import CHANNELS, are_long_rows, needs_integers, scales_channels
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, Planner, try_all
from asmdnn.primitives.products.quantities import add_numbers, room_of
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.types import INTEGERS8, f32, s8, s32

FACTORS = ("src", "weights")
NUMBERS = {"integers": s32, "floats": f32}
AROUND_INTEGERS = (("pack", ("weights",)), ("pack+reorder", ("weights", "dst")))


def of_numbers(parts: Parts[Any], planners: tuple[Planner[Any], ...]) -> Planner[Any]:
    """What these planners make of the numbers that quantised src and weights stand for; of integers a direct
    convolution of these parts."""
    planners_of = {"integers": (of_integers(parts),), "floats": planners}

    def numbers(desc: Any, attr: Attr, engine: Engine) -> Iterator[Answer]:
        if any(getattr(desc, name).dtype not in INTEGERS8 for name in FACTORS):
            return
        name = "integers" if needs_integers(desc, attr) else "floats"
        try:
            check(desc, attr)
            yield from planned(name, planners_of[name], (desc, attr, engine))
        except Refused as reason:
            yield Refusal(f"{name}:{f32_level(engine.isa)}", str(reason))

    return numbers


def of_integers(parts: Parts[Any]) -> Planner[Any]:
    """The planner of s32 times s32, which no caller passes."""
    direct = partial(planned_parts, parts=parts, level=level_inside)

    def plans(desc: Any, attr: Attr, engine: Engine) -> Iterator[Answer]:
        yield from ways_around(NAME, desc, attr, engine, direct, AROUND_INTEGERS)

    return plans


def check(desc: Any, attr: Attr) -> None:
    """Raise Refused for what others compute, or nothing does."""
    points = dict(attr.zero_points)
    is_needed = "weights" in points or points.get("src") or scales_channels(attr)
    if not is_needed and desc.weights.dtype == s8 and not are_long_rows(desc, attr):
        raise Refused("tiles of bytes take such weights, and one zero point of src")
    if points.get("weights") or points.get("src", 0) & ~CHANNELS:
        raise Refused(f"zero points are {points}: of src they have the mask 0 or 2, of weights 0")
    if desc.dst.dtype == s32 and scales_channels(attr):
        raise Refused("dst is s32, and with scales of src's channels sums are f32: take f32, s8 or u8")


def planned(name: str, planners: tuple[Planner[Any], ...], request: tuple[Any, Attr, Engine]) -> Iterator[Answer]:
    """Of numbers in scratch.  Raises Refused."""
    desc, attr, engine = request
    before, after = parts_of(attr)
    passed = {"src": channels_last(desc.src, desc.src.dtype) if desc.src.is_any else desc.src}
    passed["weights"] = row_major(desc.weights.dims, desc.weights) if desc.weights.is_any else desc.weights
    numbers = {"src": channels_last(desc.src, NUMBERS[name])}
    numbers["weights"] = MemoryDesc(desc.weights.dims, NUMBERS[name], LETTERS[: desc.weights.ndims])
    assembly, arguments = Assembly(engine.tuning, engine.isa), dict[str, MemoryDesc]()
    for x in FACTORS:
        arguments |= add_numbers(assembly, engine, (x, passed[x]), numbers[x], before)
    for answer in try_all(planners, desc.with_formats(numbers), after, engine):
        way = f"{name}+{answer.implementation}"
        if not isinstance(answer, Plan):
            yield Refusal(way, answer.reason)
            continue
        whole = assembly.branch()
        whole.add_plan(answer, {x: View(room_of(x)) for x in FACTORS if passed[x].nelems()})
        yield whole.plan(way, {**answer.tensors, **passed, **arguments}, answer.outputs)


def channels_last(tensor: MemoryDesc, dtype: Any) -> MemoryDesc:
    letters = LETTERS[: tensor.ndims]
    return MemoryDesc(tensor.dims, dtype, letters[0] + letters[2:] + letters[1])


def parts_of(attr: Attr) -> tuple[Attr, Attr]:
    """What is done to factors, and to sums."""
    points, scales = dict(attr.zero_points), dict(attr.scales)
    early = {x: mask for x, mask in scales.items() if x == "src" and mask & CHANNELS}
    before = Attr(scales=early, zero_points={x: mask for x, mask in points.items() if x in FACTORS})
    late = {x: mask for x, mask in scales.items() if x not in early}
    of_dst = {x: mask for x, mask in points.items() if x == "dst"}
    return before, attr.changed(scales=late, zero_points=of_dst, fpmath_mode="strict")
