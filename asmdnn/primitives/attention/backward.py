"""Backward attention: the plan in f32, or the one by tiles of AMX where rows are bf16."""

from collections.abc import Mapping

from asmdnn.generators.dot.matmul_shape import TileKernel
from asmdnn.isa.dot import F32
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attention.backward_description import AttentionBackward
from asmdnn.primitives.attention.backward_schedule import OUTPUTS, BackwardPlan
from asmdnn.primitives.attention.backward_tiles import TiledBackwardPlan
from asmdnn.primitives.attention.schedule import is_tiled
from asmdnn.primitives.attention.tensors import SUMS
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation
from asmdnn.primitives.core.widening import cycles_beside_tiles, level_of_tiles, tiled_pairs
from asmdnn.primitives.elementwise.schedule import check_tensors
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.types import FLOAT_NAMES

MULTIPLIED = ("query", "key", "value", "diff_dst")
INPUTS = (*MULTIPLIED, "mask", SUMS)


@implementation("attention", f32_level)
def plan(desc: AttentionBackward, attr: Attr, engine: Engine) -> Plan:
    """Plan a backward attention.  Raises Refused."""
    refuse_attr(attr, "a gradient")
    asked = {name: getattr(desc, name) for name in (*INPUTS, *OUTPUTS) if getattr(desc, name) is not None}
    passed = {name: row_major(t.dims, t) if t.is_any else t for name, t in asked.items()}
    for name in OUTPUTS:
        check_tensors(passed, name, FLOAT_NAMES)
    implementation = f"attention:{f32_level(engine.isa)}"
    if 0 in (*desc.query.dims, *desc.value.dims):
        if any(passed[name].nelems() for name in OUTPUTS):
            raise Refused("query or value has no elements, of which there are no sums")
        return Assembly(engine.tuning, engine.isa).plan(implementation, passed, OUTPUTS)
    found = BackwardPlan.whole(desc, passed, F32, engine)
    return by_tiles(desc, passed, found, engine) or found


def by_tiles(desc: AttentionBackward, passed: Mapping[str, MemoryDesc], other: Plan, engine: Engine) -> Plan | None:
    """The plan whose products take tiles of AMX, where fewer cycles are expected than of another one."""
    types = tiled_pairs((passed[name].dtype for name in MULTIPLIED), engine)
    if types is None:
        return None
    try:
        plan = TiledBackwardPlan.whole(desc, passed, types, engine)
    except Refused:
        return None  # such as blocks of a single row
    pays = cycles_beside_tiles(plan, (TileKernel,), engine) < other.cycles
    return plan if pays and is_tiled(plan, level_of_tiles(types, engine)) else None
