"""Depthwise convolution by large kernels of floats of 16 bits that a level does not multiply: as f32, in scratch.

Rows widen what they load, every source pixel for several kernel rows and every weight for each few pixels of a row.  Of
a large kernel a copy of both takes less.  On a Zen 5 with AVX2, us, 64 channels at 56x56: bf16 31x31 takes 2,850 so
instead of 5,310, 13x13 540 instead of 1,030; 9x9 350 instead of 370, 7x7 would take as long.  15x15 of stride 2 takes
218 instead of 275, and 206 instead of 191 of f16; 9x9 of stride 4 would take 161 instead of 124.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from asmdnn.isa.dot import f32_dot_level, multiplied
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import check_zero_points
from asmdnn.primitives.convolution import grouped
from asmdnn.primitives.convolution.description import ConvolutionDesc, ConvolutionForward
from asmdnn.primitives.convolution.interleaved import positions_met
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder import copies
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.primitives.shapes.tensors import refuse_overlap
from asmdnn.records import replace
from asmdnn.types import HALF_FLOATS, f32

NAME = "widen+depthwise"
LEAST_POSITIONS = 50  # of the kernel, that meet a pixel of src
FACTORS = ("src", "weights")
IMAGES = ("src", "dst")
Desc = TypeVar("Desc", bound=ConvolutionDesc)
Planner = Callable[[Desc, Attr, Engine], Plan]  # raises Refused
WAYS = {NAME: FACTORS, f"reorder+{NAME}": (*FACTORS, "dst")}


def plans(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """Of a large depthwise kernel of such floats; nothing for others."""
    types = {getattr(desc, name).dtype for name in FACTORS}
    if not types <= {*HALF_FLOATS, f32} or types == {f32} or positions_met(desc) < LEAST_POSITIONS:
        return
    if multiplied(desc.src.dtype, desc.weights.dtype, engine.isa).src == f32:
        yield from as_f32(desc, attr, engine, grouped.planned)


def as_f32(desc: Desc, attr: Attr, engine: Engine, rows: Planner[Desc]) -> Iterator[Plan | Refusal]:
    """The plans of a depthwise one by `rows`, of f32; nothing for others."""
    if desc.groups == desc.src.dims[1] == desc.dst.dims[1] > 1:
        for name, free in WAYS.items():
            try:
                yield planned((name, free), desc, attr, engine, rows)
            except Refused as reason:
                yield Refusal(f"{name}:{f32_dot_level(engine.isa)}", str(reason))


def planned(way: tuple[str, tuple[str, ...]], desc: Desc, attr: Attr, engine: Engine, rows: Planner[Desc]) -> Plan:
    """The plan of f32, between reorders; way: its name, and the tensors that are in formats that it likes.  Raises
    Refused."""
    name, free = way
    given = desc.tensors()
    refuse_overlap(dst=desc.dst)
    check_zero_points(attr, given, starts=True)
    wanted = {x: MemoryDesc(given[x].dims, f32 if x in FACTORS else given[x].dtype, "any") for x in free}
    last = {x: MemoryDesc(d.dims, d.dtype, "axb") for x, d in {**given, **wanted}.items() if x in IMAGES and d.is_any}
    inner = rows(desc.with_formats({**wanted, **last}), attr, engine)
    passed = {x: of_type(inner.tensors[x], given[x].dtype) if given[x].is_any else given[x] for x in free}
    if passed.get("dst") == inner.tensors["dst"]:
        raise Refused("dst is written as it is")
    reads = ("dst",) if attr.reads_dst() else ()
    plan = copies.between_reorders(inner, passed, engine.tuning, reads, isa=engine.isa)
    return replace(plan, implementation=f"{name}:{inner.implementation.rpartition(':')[2]}")
