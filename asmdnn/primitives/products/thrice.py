"""f32 as three products of bf16, by tiles of AMX: `fpmath_mode` bf16x3.

    x = high + low + e, high = bf16(x), low = bf16(x - high), so that |low| <= 2^-8 |x| and |e| <= 2^-16 |x|
    x w = high high' + low high' + high low' + at most 3.1 * 2^-16 |x w|

The three are one product of three times the depth: along k src is (high, low, high), weights are (high, high, low).
Weights of format `any` are packed so, once; others are made so in front of it, in every call, and so is src.  Henry,
Tang, Heinecke: Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations (ARITH 2019).
What is infinite, or rounds to that, becomes NaN.
"""

from collections.abc import Iterator
from typing import Any

from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.memory.split import PARTS, SplitDesc, with_size
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, Planner, try_all
from asmdnn.primitives.core.widening import MULTIPLIED, level_of_tiles
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.reorder.split import ORDER_OF_SRC, ORDER_OF_WEIGHTS, add_parts, dense_as
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.types import HALF_FLOATS

ORDERS = {"src": ORDER_OF_SRC, "weights": ORDER_OF_WEIGHTS}


def answers(
    planners: tuple[Planner[Any], ...], depths: tuple[int, int], desc: Any, attr: Attr, engine: Engine
) -> Iterator[Answer]:
    """The plan, or why there is none.  depths: the dims of src and of weights that are summed over."""
    of = {name: depth % getattr(desc, name).ndims for name, depth in zip(ORDERS, depths, strict=True)}
    exact = None
    if desc.weights.holds_elements:  # else nothing else multiplies them
        exact = next((x for x in try_all(planners, desc, attr.strict, engine) if isinstance(x, Plan)), None)
    try:
        plan = planned(planners, of, desc, attr, engine)
        if exact and plan.cycles >= exact.cycles:
            raise Refused(f"{plan.cycles} cycles are expected, {exact.cycles} of f32")
        yield plan
    except Refused as reason:
        yield Refusal(f"{attr.fpmath_mode}:{f32_level(engine.isa)}", str(reason))


def planned(planners: tuple[Planner[Any], ...], depths: dict[str, int], desc: Any, attr: Attr, engine: Engine) -> Plan:
    """Raises Refused."""
    inner, weights = inner_plan(planners, depths, desc, attr, engine), desc.weights
    split = SplitDesc(inner.tensors["weights"], depths["weights"])
    is_packed = not weights.holds_elements or (weights.is_any and bool(split.inner_blocks))
    made = {"src": depths["src"]} if is_packed else depths  # in every call
    plain = {name: inner.tensors[name] for name in made}
    plain = {name: row_major(x.dims, x) if x.inner_blocks else x for name, x in plain.items()}
    given = {name: getattr(desc, name) for name in plain}
    given = {name: dense_as(plain[name], x.dims) if x.is_any else x for name, x in given.items()}
    assembly = Assembly(engine.tuning, engine.isa)
    for name, depth in made.items():
        assembly.scratch[room_of(name)] = plain[name].size_bytes
        add_parts(assembly, (name, given[name]), (room_of(name), plain[name]), depth, ORDERS[name])
    plan = between_reorders(inner, plain, engine.tuning, isa=engine.isa)
    assembly.add_plan(plan, {name: View(room_of(name)) for name in made})
    in_place = tuple(pair for pair in plan.in_place if pair[0] not in depths)
    tensors = {**plan.tensors, "weights": split, **given}
    return assembly.plan(f"{attr.fpmath_mode}+{plan.implementation}", tensors, plan.outputs, in_place)


def inner_plan(
    planners: tuple[Planner[Any], ...], depths: dict[str, int], desc: Any, attr: Attr, engine: Engine
) -> Plan:
    """Of the product of bf16, three times as deep, of tensors in formats of its own.  Raises Refused."""
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
    weights = tensors["weights"]
    if not weights.holds_elements:
        longer["weights"] = storage_of(weights, depths["weights"])
    found = try_all(planners, desc.with_formats(longer), attr.strict, engine)
    inner = next((x for x in found if isinstance(x, Plan)), None)
    if inner is None or (weights.holds_elements and all(spec.isa != level for spec in inner.specs)):
        raise Refused("vectors are expected to be faster than tiles")
    if not inner.tensors["weights"].holds_elements:
        raise Refused("transformed weights would be rounded once more")
    return inner


def storage_of(weights: MemoryDesc, depth: int) -> MemoryDesc:
    """What lies in memory of weights that are split already.  Raises Refused for others."""
    if not isinstance(weights, SplitDesc) or weights.depth != depth:
        raise Refused(f"weights are {weights}, which is no sum of two along dim {depth}")
    return weights.storage


def long(dims: tuple[int, ...], depth: int) -> tuple[int, ...]:
    """With three times as many elements in a dim."""
    return with_size(dims, depth, PARTS * dims[depth])


def room_of(name: str) -> str:
    """The scratch of its parts."""
    return f"{name} in parts"
