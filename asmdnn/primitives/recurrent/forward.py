"""The plans of a recurrent layer, forward: one for each way to multiply, by the types of its tensors."""

from functools import partial
from typing import NamedTuple

from asmdnn.generators.dot.matmul_shape import TileKernel
from asmdnn.generators.recurrent.tile import RecurrentTileSpec
from asmdnn.isa.dot import U8S8, Types, f32_dot_level
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.widening import cycles_beside_tiles, level_of_tiles, multiplies_pairs_slowly
from asmdnn.primitives.products.target import target_of
from asmdnn.primitives.recurrent.bytes import between_floats
from asmdnn.primitives.recurrent.description import GRUForward, QuantizedRecurrent, RecurrentForward
from asmdnn.primitives.recurrent.factors import FACTORS, WEIGHTS, check_types
from asmdnn.primitives.recurrent.formats import kernel_formats, passed_formats
from asmdnn.primitives.recurrent.planner import Planner
from asmdnn.primitives.reorder.copies import Inside, ways_as_passed_or_copied


class RecurrentRequest(NamedTuple):
    """A layer, and for whom."""

    desc: RecurrentForward
    engine: Engine


def request_of(desc: RecurrentForward, attr: Attr, engine: Engine) -> RecurrentRequest:
    """Raises Refused."""
    refuse_attr(attr)
    s = desc.sizes
    if isinstance(desc, GRUForward) and desc.weights_iter.dtype.size_bytes * s.out * s.hidden > MAX_OFFSET:
        raise Refused(f"{s.hidden} hidden channels put the gates of weights_iter more than 2 GiB apart")
    check_types(desc)
    return RecurrentRequest(desc, engine)


def inside_of(request: RecurrentRequest, way: str) -> Inside:
    """The plan of a recurrent layer that multiplies in one way.  Raises Refused."""
    desc, engine = request.desc, request.engine
    types = FACTORS[way](desc, engine)
    target = target_of(engine, types=types)
    passed = passed_formats(desc, target.lanes, types.group)
    for name, tensor in passed.items():
        if tensor.may_overlap and name.startswith("dst"):
            raise Refused(f"{name} has elements that share a place")
    formats = kernel_formats(desc, passed, target.lanes, types)
    plan = Planner(desc, formats, engine, types).plan(way)
    if types == U8S8 and isinstance(desc, QuantizedRecurrent) and desc.rnn_data_qparams:
        plan = between_floats(plan, passed, desc.rnn_data_qparams, engine)
    check_pays(plan, request, types)
    return Inside(plan, passed, engine.tuning, engine.isa)


def check_pays(plan: Plan, request: RecurrentRequest, types: Types) -> None:
    """Raise Refused for products of pairs where vectors are slow at them, unless weights are packed so, or tiles of AMX
    are expected to make up for it."""
    desc, engine = request
    level = level_of_tiles(types, engine)
    if types.src != types.weights or level is None or not multiplies_pairs_slowly(engine):
        return
    if all(getattr(desc, name) == plan.tensors[name] for name in WEIGHTS if name in plan.tensors):
        return
    if all(spec.isa != level for spec in plan.specs):
        raise Refused("no tiles of AMX are expected to be faster, and vectors multiply pairs slowly")
    cycles = cycles_beside_tiles(plan, (TileKernel, RecurrentTileSpec), engine)
    other = inside_of(request, "floats").plan.cycles
    if cycles >= other:
        raise Refused(f"{cycles:.0f} cycles are expected, {other} of f32")


plans = ways_as_passed_or_copied(request_of, {way: partial(inside_of, way=way) for way in FACTORS}, f32_dot_level)
