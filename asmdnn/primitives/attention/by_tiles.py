"""Attention by tiles of AMX, in front of that by vectors where it takes fewer cycles."""

from collections.abc import Callable, Iterator

from asmdnn.generators.dot.matmul_shape import TileKernel
from asmdnn.isa.dot import Types
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attention.schedule import NAME, is_tiled
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer
from asmdnn.primitives.core.widening import cycles_beside_tiles, level_of_tiles


def tiles_first(
    by_vectors: Answer, tiles: str | None, tiled: Callable[[], tuple[Plan, Types]], engine: Engine
) -> Iterator[Answer]:
    """What `tiled` plans, with the types of its products, if it pays; and the plan by vectors.

    tiles: the level that has them, or None.  tiled: only asked beside a plan with work in it; it raises Refused.
    """
    if tiles and isinstance(by_vectors, Plan) and by_vectors.phases:
        try:
            yield paying(*tiled(), by_vectors, engine)
        except Refused as reason:
            yield Refusal(f"{NAME}:{tiles}", str(reason))
    yield by_vectors


def paying(found: Plan, types: Types, by_vectors: Plan, engine: Engine) -> Plan:
    """A plan whose products take tiles, and fewer cycles than another one.  Raises Refused."""
    if not is_tiled(found, level_of_tiles(types, engine)):
        raise Refused("vectors are expected to multiply so few rows in less time")
    if (cycles := cycles_beside_tiles(found, (TileKernel,), engine)) >= by_vectors.cycles:
        raise Refused(f"{cycles:.0f} cycles are expected, {by_vectors.cycles} of vectors")
    return found
