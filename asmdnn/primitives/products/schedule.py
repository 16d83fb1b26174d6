"""The phases of a matrix product, in three stages: it is cut, tiles get kernels, calls get records.

There is a phase for each range of k, in rounds where there are many tiles.
"""

from asmdnn.generators.contract import KernelSpec
from asmdnn.planning.phase import Phase
from asmdnn.primitives.products.amx import tile_block
from asmdnn.primitives.products.blocks import choose_block
from asmdnn.primitives.products.cut import beyond_l2, choose_ranges, cut
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.records import phases_of
from asmdnn.primitives.products.rounds import in_rounds, pieces_of
from asmdnn.primitives.products.target import Target
from asmdnn.primitives.products.tile_calls import tile_calls


def schedule(p: Product, target: Target, one_range: bool = False) -> list[Phase]:
    """A phase for each range of k; each continues the one before.  dst's columns are dense."""
    epilogue, tuning = target.epilogue, target.products
    block = tile_block(p, target) if target.tiled else choose_block(p, target)
    tile = (block.rows, block.vectors * target.lanes)
    pieces = pieces_of(p, tile, tuning.written_out, tuning.round_records)
    whole = one_range or target.tiled or not epilogue.may_split or not p.sums_fit
    ranges = [(0, p.k)] if whole else choose_ranges(p, block, target)
    far = beyond_l2(p, target, ranges)
    phases: list[Phase] = []
    for piece in pieces:
        tiles, specs = cut(piece.product, block, target, ranges, far), dict[KernelSpec, int]()
        calls = tile_calls(tiles, specs)
        phases += in_rounds(phases_of(tiles, tuple(specs), calls), piece, p.arguments, is_first=not phases)
    return phases
