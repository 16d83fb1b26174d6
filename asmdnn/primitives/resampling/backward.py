"""The plans of a backward resampling: those of resampling, of the adjoint's taps.

Where registers do not hold what all axes together need, one axis comes after the other; and of an axis with many taps
some at a time, whose sums are added.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Final, NamedTuple

import numpy as np

from asmdnn.isa.vectors import f32_level, vector_class
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.planning.unhindered import without_needless_barriers
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, plan_of, try_all
from asmdnn.primitives.pooling.formats import format_like
from asmdnn.primitives.resampling import resampling
from asmdnn.primitives.resampling.adjoint import AdjointResampling, adjoint
from asmdnn.primitives.resampling.backward_description import ResamplingBackward
from asmdnn.primitives.resampling.taps import RESERVED, ResampleTaps, registers_of
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.primitives.sum import sum as sums
from asmdnn.primitives.sum.sum import SumForward
from asmdnn.records import replace
from asmdnn.types import FLOAT_NAMES, FLOATS, f16, f32

MOST_TAPS: Final = 64  # of an element, which are code
MOST_AT_ONCE: Final = 8  # taps along an axis
NAMES: Final = {"src": "diff_dst", "dst": "diff_src"}  # of the adjoint's tensors here


def plans(desc: ResamplingBackward, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """Every way to compute the gradient, best first: all axes at once in each way that a resampling has, or `axes`."""
    isa = f32_level(engine.isa)
    try:
        taps = taps_of(desc, attr)
    except Refused as reason:
        yield from (Refusal(f"{way}:{isa}", str(reason)) for way in ("channels", "axes"))
        return
    if at_once(taps, isa, RESERVED + (f16 in (desc.diff_src.dtype, desc.diff_dst.dtype))):
        for answer in try_all((resampling.plans,), whole(desc, taps), NO_ATTR, engine):
            yield renamed(answer) if isinstance(answer, Plan) else answer
        yield Refusal(f"axes:{isa}", "registers hold what all axes together need")
        return
    yield Refusal(f"channels:{isa}", "registers do not hold what all axes together need")
    try:
        yield by_axes(desc, taps, engine)
    except Refused as reason:
        yield Refusal(f"axes:{isa}", str(reason))


def taps_of(desc: ResamplingBackward, attr: Attr) -> tuple[ResampleTaps, ...]:
    """Of every axis.  Raises Refused."""
    refuse_attr(attr, "a gradient")
    for name in ("diff_src", "diff_dst"):
        if (dtype := getattr(desc, name).dtype) not in FLOATS:
            raise Refused(f"{name} is {dtype}, only {', '.join(FLOAT_NAMES)} is implemented")
    if not desc.diff_dst.nelems() and desc.diff_src.nelems():
        raise Refused("diff_dst has no elements, of which there are no sums")
    if not desc.diff_dst.nelems():
        return ()
    forward = desc.forward()
    return tuple(adjoint(forward.taps(i), size) for i, size in enumerate(desc.diff_src.dims[2:]))


def at_once(taps: Sequence[ResampleTaps], isa: str, reserved: int) -> bool:
    """Whether registers hold a weight for each of the outer taps, and sums for each of the inner ones."""
    *outer, inner = [each.each for each in taps] or [1]
    return prod(outer) * inner <= MOST_TAPS and registers_of(taps) + reserved <= vector_class(isa).count


def whole(desc: ResamplingBackward, taps: tuple[ResampleTaps, ...]) -> AdjointResampling:
    """All axes at once."""
    return AdjointResampling("linear", desc.diff_dst, desc.diff_src, axis_taps=taps)


def by_axes(desc: ResamplingBackward, taps: tuple[ResampleTaps, ...], engine: Engine) -> Plan:
    """One axis after the other, those that become shortest first.  Raises Refused."""
    src = format_like(desc.diff_src, desc.diff_dst)
    ends = {"diff_dst": src, "diff_src": format_like(src, desc.diff_src)}
    assembly, here = Assembly(engine.tuning, engine.isa), GradientAt("diff_dst", src)
    shares = [made / size for made, size in zip(desc.diff_src.dims[2:], src.dims[2:], strict=True)]
    *order, last = sorted(range(len(taps)), key=lambda axis: shares[axis])
    for axis in order:
        dims = list(here.desc.dims)
        dims[2 + axis] = desc.diff_src.dims[2 + axis]
        there = format_like(here.desc, MemoryDesc(tuple(dims), f32, "any"))
        assembly.scratch[f"axis {axis}"] = there.size_bytes
        here = along(assembly, taps[axis], axis, here, GradientAt(f"axis {axis}", there), engine)
    along(assembly, taps[last], last, here, GradientAt("diff_src", ends["diff_src"]), engine)
    return without_needless_barriers(assembly.plan(f"axes:{f32_level(engine.isa)}", ends, ("diff_src",)))


class GradientAt(NamedTuple):
    """A buffer, and what is in it."""

    buffer: str
    desc: MemoryDesc


def along(
    assembly: Assembly, taps: ResampleTaps, axis: int, src: GradientAt, dst: GradientAt, engine: Engine
) -> GradientAt:
    """Add what makes dst of src along one axis; dst.  Raises Refused."""
    firsts = range(0, taps.each, MOST_AT_ONCE)
    parts = [f"axis {axis}, taps from {first} on" for first in firsts] if len(firsts) > 1 else [dst.buffer]
    in_f32 = of_type(dst.desc, f32)  # parts, whose sum alone is rounded
    for first, part in zip(firsts, parts, strict=True):
        some = some_of(taps, first)
        every = tuple(some if i == axis else same(n) for i, n in enumerate(src.desc.dims[2:]))
        made = dst.desc if len(parts) == 1 else in_f32
        step = AdjointResampling("linear", src.desc, made, axis_taps=every)
        assembly.add_plan(plan_of((resampling.plans,), step, engine), {"src": View(src.buffer), "dst": View(part)})
    if len(parts) > 1:
        assembly.scratch |= dict.fromkeys(parts, in_f32.size_bytes)
        total = plan_of((sums.plan,), SumForward((in_f32,) * len(parts), dst.desc, (1.0,) * len(parts)), engine)
        names = {f"src{i}": View(part) for i, part in enumerate(parts)}
        assembly.add_plan(total, {**names, "dst": View(dst.buffer)})
    return dst


def some_of(taps: ResampleTaps, first: int) -> ResampleTaps:
    """At most `MOST_AT_ONCE` of them; two at least, since a single one has no weight."""
    begin = max(0, min(first, taps.each - 2))
    weights = taps.weights[:, begin : first + MOST_AT_ONCE].copy()
    weights[:, : first - begin] = 0
    return ResampleTaps(taps.indices[:, begin : first + MOST_AT_ONCE], weights)


def same(size: int) -> ResampleTaps:
    """Of an axis that stays."""
    return ResampleTaps(np.arange(size)[:, None], np.ones((size, 1)))


def renamed(plan: Plan) -> Plan:
    """A plan of the adjoint with the names of the gradient."""
    return replace(
        plan,
        phases=tuple(phase.on({name: View(here) for name, here in NAMES.items()}) for phase in plan.phases),
        tensors={NAMES[name]: plan.tensors[name] for name in ("src", "dst")},
        outputs=("diff_src",),
        in_place=tuple((NAMES[x], NAMES[y]) for x, y in plan.in_place),
    )
