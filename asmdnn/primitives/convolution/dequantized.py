"""Convolutions of quantised tensors with scales and zero points that tiles of bytes do not take: as floats.

src and weights, less their zero points, become f32 in every call: zero points of weights or of src's channels, and u8
weights.  So do scales of src's channels; others are links after the sums.  Padding is 0 then, as it should be.  Sums
are those of f32, so a dst of s32, which promises exact ones, is refused.
"""

from collections.abc import Iterator
from typing import Any

from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, Planner, try_all
from asmdnn.primitives.products.quantities import add_numbers, room_of
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.types import f32, s8, s32, u8

NAME = "floats"
FACTORS = ("src", "weights")
BYTES = (u8, s8)
CHANNELS = 2  # of src: the bit of their dim in a mask


def of_numbers(*planners: Planner[Any]) -> Planner[Any]:
    """What these planners make of the numbers that quantised src and weights stand for."""

    def floats(desc: Any, attr: Attr, engine: Engine) -> Iterator[Answer]:
        if any(getattr(desc, name).dtype not in BYTES for name in FACTORS):
            return
        try:
            check(desc, attr)
            yield from planned(planners, desc, attr, engine)
        except Refused as reason:
            yield Refusal(f"{NAME}:{f32_level(engine.isa)}", str(reason))

    return floats


def check(desc: Any, attr: Attr) -> None:
    """Raise Refused for what others compute, or nothing does."""
    points, scales = dict(attr.zero_points), dict(attr.scales)
    is_needed = "weights" in points or points.get("src") or scales.get("src", 0) & CHANNELS
    if not is_needed and desc.weights.dtype == s8:
        raise Refused("tiles of bytes take such weights, and one zero point of src")
    if points.get("weights") or points.get("src", 0) & ~CHANNELS:
        raise Refused(f"zero points are {points}: of src they have the mask 0 or 2, of weights 0")
    if desc.dst.dtype == s32:
        raise Refused("dst is s32, and sums are f32 with such zero points, scales or weights: take f32, s8 or u8")


def planned(planners: tuple[Planner[Any], ...], desc: Any, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """Of numbers in scratch.  Raises Refused."""
    before, after = parts_of(attr)
    passed = {"src": channels_last(desc.src, desc.src.dtype) if desc.src.is_any else desc.src}
    passed["weights"] = row_major(desc.weights.dims, desc.weights) if desc.weights.is_any else desc.weights
    numbers = {"src": channels_last(desc.src, f32)}
    numbers["weights"] = MemoryDesc(desc.weights.dims, f32, LETTERS[: desc.weights.ndims])
    assembly, arguments = Assembly(engine.tuning, engine.isa), dict[str, MemoryDesc]()
    for x in FACTORS:
        arguments |= add_numbers(assembly, engine, (x, passed[x]), numbers[x], before)
    for answer in try_all(planners, desc.with_formats(numbers), after, engine):
        name = f"{NAME}+{answer.implementation}"
        if not isinstance(answer, Plan):
            yield Refusal(name, answer.reason)
            continue
        whole = assembly.branch()
        whole.add_plan(answer, {x: View(room_of(x)) for x in FACTORS if passed[x].nelems()})
        yield whole.plan(name, {**answer.tensors, **passed, **arguments}, answer.outputs)


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
