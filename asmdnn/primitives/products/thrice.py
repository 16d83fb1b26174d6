"""f32 as three products of bf16, by tiles of AMX: `fpmath_mode` bf16x3.

    x = high + low + e, high = bf16(x), low = bf16(x - high), so that |low| <= 2^-8 |x| and |e| <= 2^-16 |x|
    x w = high high' + low high' + high low' + at most 3.1 * 2^-16 |x w|

The three are one product of three times the depth: along k src is (high, low, high), weights are (high, high, low).
Both are made in front of it, in every call.  Henry, Tang, Heinecke: Leveraging the bfloat16 Artificial
Intelligence Datatype For Higher-Precision Computations (ARITH 2019).  What is infinite, or rounds to that, becomes NaN.
"""

from collections.abc import Iterator
from typing import Any, Final

from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, Planner, try_all
from asmdnn.primitives.core.widening import MULTIPLIED, level_of_tiles
from asmdnn.primitives.elementwise import binary
from asmdnn.primitives.elementwise.binary import BinaryForward
from asmdnn.primitives.reorder.copies import Reordering, add_reorder, between_reorders
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.types import HALF_FLOATS, f32

PARTS: Final = 3
HIGH, LOW = {"src": (0, 2), "weights": (0, 1)}, {"src": 1, "weights": 2}  # which parts of k are which


def answers(
    planners: tuple[Planner[Any], ...], depths: tuple[int, int], desc: Any, attr: Attr, engine: Engine
) -> Iterator[Answer]:
    """The plan, or why there is none.  depths: the dims of src and of weights that are summed over."""
    exact = next((x for x in try_all(planners, desc, attr.strict, engine) if isinstance(x, Plan)), None)
    try:
        plan = planned(planners, dict(zip(HIGH, depths, strict=True)), desc, attr, engine)
        if exact and plan.cycles >= exact.cycles:
            raise Refused(f"{plan.cycles} cycles are expected, {exact.cycles} of f32")
        yield plan
    except Refused as reason:
        yield Refusal(f"{attr.fpmath_mode}:{f32_level(engine.isa)}", str(reason))


def planned(planners: tuple[Planner[Any], ...], depths: dict[str, int], desc: Any, attr: Attr, engine: Engine) -> Plan:
    """Raises Refused."""
    half = HALF_FLOATS[0]
    level = level_of_tiles(MULTIPLIED[half], engine)
    if level is None:
        raise Refused(f"three products of {half} take longer than one of f32 by vectors, isa {engine.isa} has no tiles")
    if getattr(desc, "groups", 1) > 1:
        raise Refused(f"weights have {desc.groups} groups, only 1 is implemented")
    tensors = {name: getattr(desc, name) for name in depths}
    if any(0 in tensor.dims for tensor in tensors.values()):
        raise Refused("there is nothing to multiply")
    longer = {name: MemoryDesc(long(x.dims, depths[name]), half, "any") for name, x in tensors.items()}
    found = try_all(planners, desc.with_formats(longer), attr.strict, engine)
    inner = next((x for x in found if isinstance(x, Plan)), None)
    if inner is None or all(spec.isa != level for spec in inner.specs):
        raise Refused("vectors are expected to be faster than tiles")
    assembly = Assembly(engine.tuning, engine.isa)
    plain = {name: inner.tensors[name] for name in depths}
    plain = {name: row_major(x.dims, x) if x.inner_blocks else x for name, x in plain.items()}
    given = {name: as_given(x, plain[name]) for name, x in tensors.items()}
    for name, depth in depths.items():
        add_parts(assembly, name, (given[name], plain[name]), depth, engine)
    plan = between_reorders(inner, plain, engine.tuning, isa=engine.isa)
    assembly.add_plan(plan, {name: View(room_of(name)) for name in depths})
    in_place = tuple(name for name in plan.in_place if name not in depths)
    return assembly.plan(f"{attr.fpmath_mode}+{plan.implementation}", {**plan.tensors, **given}, plan.outputs, in_place)


def long(dims: tuple[int, ...], depth: int) -> tuple[int, ...]:
    """With three times as many elements in a dim."""
    found = list(dims)
    found[depth] *= PARTS
    return tuple(found)


def as_given(tensor: MemoryDesc, plain: MemoryDesc) -> MemoryDesc:
    """As a caller passes it: `any` becomes dense, in the order of what is made of it."""
    if not tensor.is_any:
        return tensor
    order = sorted(range(plain.ndims), key=lambda dim: -plain.strides[dim])
    last = MemoryDesc(tuple(tensor.dims[dim] for dim in order), f32, LETTERS[: plain.ndims])
    return last.permute_axes(order)


def room_of(name: str) -> str:
    """The scratch of its parts."""
    return f"{name} in parts"


def add_parts(
    assembly: Assembly, name: str, tensors: tuple[MemoryDesc, MemoryDesc], depth: int, engine: Engine
) -> None:
    """High and low parts of the first tensor, one after another in the second."""
    (given, whole), room = tensors, room_of(name)
    assembly.scratch[room] = whole.size_bytes
    begins = [[0] * given.ndims for _ in range(PARTS)]
    for part, begin in enumerate(begins):
        begin[depth] = part * given.dims[depth]
    parts = [whole.submemory(given.dims, tuple(begin)) for begin in begins]
    high = row_major(given.dims, parts[0])
    rounded = assembly.room(f"high of {name}", high.size_bytes)
    add_reorder(assembly, Reordering(name, given, rounded, high))
    rest = binary.plan(BinaryForward("sub", given, high, parts[LOW[name]]), NO_ATTR, engine)
    if isinstance(rest, Refusal):
        raise Refused(rest.reason)
    assembly.add_plan(rest, {"src0": View(name), "src1": View(rounded), "dst": View(room)})
    for number in HIGH[name]:
        add_reorder(assembly, Reordering(rounded, high, room, parts[number]))
