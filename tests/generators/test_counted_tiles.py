"""Which fields of a tile its counted form knows: a new one that it does not would be left out, or half done.

So sums in turn were: counted tiles took the turns, and never added them up.
"""

from typing import Any

import pytest

from asmdnn.generators.dot.counted_tile import is_countable
from asmdnn.generators.dot.matmul import MatmulTileSpec
from asmdnn.generators.dot.matmul_shape import Items, MatmulTile, PieceLoop
from asmdnn.generators.functions.postops import ReluOp
from asmdnn.primitives.attention.counted import counted
from asmdnn.records import fields, replace
from asmdnn.types import s32

TILE = MatmulTile(
    isa="avx2", rows=2, columns=8, depth=300, src_row_bytes=1200, src_depth_bytes=4, weights_row_bytes=32,
    panel_vectors=1, panel_bytes=0, padded=False, dst_row_bytes=32,
)  # fmt: skip
KEPT = {
    "isa", "rows", "columns", "depth", "src_row_bytes", "src_depth_bytes", "weights_row_bytes", "panel_vectors",
    "panel_bytes", "padded", "dst_row_bytes", "src_ahead_bytes", "types", "dst",
}  # fmt: skip
DROPPED: dict[str, Any] = {"prefetch_lines": 2, "sums": 4}  # what is computed is the same
REFUSED: dict[str, Any] = {
    "bias": "row", "accumulate": True, "scaled": True, "post_ops": (ReluOp(0.0),), "prefetch_step_bytes": 64,
    "stream_bytes": 64, "prefetches_dst": True, "streams": True, "packs": True, "near_row_bytes": 64,
    "items": Items(2, 4, 4, 0, 4), "pieces": (PieceLoop(2, 4, 4),), "operand_types": (s32,),
}  # fmt: skip
IMPLIED = {"beta"}  # of scaled ones


def test_every_field_is_kept_dropped_or_refused() -> None:
    assert {each.name for each in fields(MatmulTile)} == KEPT | {*DROPPED} | {*REFUSED} | IMPLIED
    assert is_countable(TILE)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    tile = replace(TILE, **{name: REFUSED[name]})
    assert not is_countable(tile) and counted(MatmulTileSpec(tile=tile), fills_vectors=False) is None


@pytest.mark.parametrize("name", DROPPED)
def test_dropped(name: str) -> None:
    tile = replace(TILE, **{name: DROPPED[name]})
    found, wanted = (counted(MatmulTileSpec(tile=each), fills_vectors=False) for each in (tile, TILE))
    assert found == wanted and found is not None
