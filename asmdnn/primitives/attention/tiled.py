"""Attention by tiles of AMX, where products of pairs by vectors are slow: what its plan is expected to take."""

from asmdnn.generators.dot.matmul_shape import TileKernel
from asmdnn.isa.tiles import BLOCK_TILES, TILE_ROWS
from asmdnn.planning.plan import Plan
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.uses import inside
from asmdnn.types import IsaName

WHOLE_ROWS = BLOCK_TILES * TILE_ROWS


def is_tiled(plan: Plan, level: IsaName | None) -> bool:
    """Whether some of its products take tiles, those of this level."""
    return any(spec.isa == level for spec in plan.specs)


def expected_cycles(plan: Plan, level: IsaName | None, engine: Engine) -> float:
    """Those of a plan that multiplies pairs by tiles of this level, or by vectors, of which plans count one each."""
    found = 0.0
    for spec, _, cycles in (use for phase in plan.phases for use in phase.uses()):
        by_vectors = isinstance(inside(spec), TileKernel) and spec.isa != level
        found += cycles * (engine.tuning.products.bf16_cycles if by_vectors else 1)
    return found


def whole_blocks(rows: int) -> int:
    """As many rows as fill blocks of tiles, if there are some."""
    return rows // WHOLE_ROWS * WHOLE_ROWS or rows
