"""Backward attention: a plan in f32, and one by tiles of AMX where rows are bf16."""

from collections.abc import Iterator

from asmdnn.isa.dot import F32, Types
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attention.backward_description import AttentionBackward
from asmdnn.primitives.attention.backward_schedule import OUTPUTS, BackwardPlan
from asmdnn.primitives.attention.backward_tiles import TiledBackwardPlan
from asmdnn.primitives.attention.by_tiles import tiles_first
from asmdnn.primitives.attention.schedule import NAME
from asmdnn.primitives.attention.tensors import SUMS
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, implementation
from asmdnn.primitives.core.widening import tiles_of_pairs, types_for_tiles
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.primitives.shapes.tensors import check_tensors
from asmdnn.types import FLOAT_NAMES

MULTIPLIED = ("query", "key", "value", "diff_dst")
INPUTS = (*MULTIPLIED, "mask", SUMS)


def plans(desc: AttentionBackward, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """By tiles of AMX where the level has them, and by vectors."""

    def tiled() -> tuple[Plan, Types]:
        passed = passed_of(desc)
        types = types_for_tiles({name: passed[name].dtype for name in MULTIPLIED})
        return TiledBackwardPlan.whole(desc, passed, types, engine), types

    yield from tiles_first(plan(desc, attr, engine), tiles_of_pairs(engine), tiled, engine)


@implementation(NAME, f32_level)
def plan(desc: AttentionBackward, attr: Attr, engine: Engine) -> Plan:
    """Plan a backward attention in f32.  Raises Refused."""
    refuse_attr(attr, "a gradient")
    passed = passed_of(desc)
    for name in OUTPUTS:
        check_tensors(passed, name, FLOAT_NAMES)
    if 0 in (*desc.query.dims, *desc.value.dims):
        if any(passed[name].nelems() for name in OUTPUTS):
            raise Refused("query or value has no elements, of which there are no sums")
        return Assembly(engine.tuning, engine.isa).plan(f"{NAME}:{f32_level(engine.isa)}", passed, OUTPUTS)
    return BackwardPlan.whole(desc, passed, F32, engine)


def passed_of(desc: AttentionBackward) -> dict[str, MemoryDesc]:
    """The tensors that there are, row-major where their format is any."""
    asked = {name: getattr(desc, name) for name in (*INPUTS, *OUTPUTS) if getattr(desc, name) is not None}
    return {name: row_major(t.dims, t) if t.is_any else t for name, t in asked.items()}
