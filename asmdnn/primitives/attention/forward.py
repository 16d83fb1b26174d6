"""Forward attention: a plan with the products of the level, and one by tiles of AMX where rows are bf16."""

from collections.abc import Iterator

from asmdnn.isa.dot import Types
from asmdnn.isa.vectors import f32_level
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attention.by_tiles import tiles_first
from asmdnn.primitives.attention.description import AttentionForward
from asmdnn.primitives.attention.schedule import NAME, AttentionPlan
from asmdnn.primitives.attention.tensors import SUMS, outputs_of, passed_of, types_of
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, implementation
from asmdnn.primitives.core.widening import multiplies_pairs_slowly, tiles_of_pairs, types_for_tiles


def plans(desc: AttentionForward, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """By tiles of AMX, or larger ones of them, where the level multiplies pairs slowly by vectors; and as it does."""
    yield from beside_tiles(plan(desc, attr, engine), desc, attr, engine)


def beside_tiles(by_vectors: Answer, desc: AttentionForward, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """A plan by vectors, and in front of it one by tiles where that takes fewer cycles."""

    def tiled() -> tuple[Plan, Types]:
        passed = passed_of(desc, attr)
        types = types_for_tiles({name: passed[name].dtype for name in ("query", "key", "value")})
        return AttentionPlan.of(desc, passed, types, engine), types

    tiles = tiles_of_pairs(engine) if multiplies_pairs_slowly(engine) else None
    yield from tiles_first(by_vectors, tiles, tiled, engine)


@implementation(NAME, f32_level)
def plan(desc: AttentionForward, attr: Attr, engine: Engine) -> Plan:
    """Plan an attention with the products of the level.  Raises Refused."""
    passed = passed_of(desc, attr)
    if 0 in desc.dst.dims:
        name = f"{NAME}:{f32_level(engine.isa)}"
        if SUMS in passed and passed[SUMS].nelems():
            raise Refused("value has no elements: leave out logsumexp")
        return Assembly(engine.tuning, engine.isa).plan(name, passed, outputs_of(passed))
    *better, last = types_of(passed, engine)
    for types in better:
        try:
            return AttentionPlan.of(desc, passed, types, engine)
        except Refused:
            continue  # odd sizes, such as a single column, that take a copy in these types
    return AttentionPlan.of(desc, passed, last, engine)
