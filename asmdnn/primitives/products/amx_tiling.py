"""How tiles of AMX multiply: the block of a product, the matrices of a call, and the kernel of a tile."""

from functools import partial
from math import prod

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.dot.amx import AmxTileSpec
from asmdnn.generators.dot.matmul_shape import MatmulTile
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.tiles import NEAR, TILE_COLUMNS, TILE_ROWS, Far
from asmdnn.planning.cuts import balanced
from asmdnn.planning.order import TileOrder
from asmdnn.planning.product_tuning import ProductTuning
from asmdnn.primitives.products.amx import (
    BLOCK_COLUMNS,
    BLOCK_ROWS,
    SrcDistances,
    call_cycles,
    joined_rows,
    most_items,
    near_panels,
    src_distances,
    tile_block,
    whole_groups,
)
from asmdnn.primitives.products.blocks import Block
from asmdnn.primitives.products.cut import NO_PREFETCH, Cut, DepthStep, order_of, steps_of
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.target import Target
from asmdnn.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class AmxTiling:
    """What all pieces of a product share.  step: all of k.  along_rows: dst is written along its rows, before the next
    ones."""

    target: Target
    block: Block
    step: DepthStep
    along_rows: bool

    def cut(self, p: Product) -> Cut:
        """A piece in tiles.  They prefetch nothing: they read whole panels from L2, and were slower with panels in
        L1."""
        target, block, width = self.target, self.block, self.block.vectors * self.target.lanes
        sizes, groups = balanced(p.m, block.rows), -(-p.n // width)
        order = TileOrder(groups, len(sizes)) if self.along_rows else order_of(p, p.k, len(sizes), width, target)
        items = most_items(p, target) if len(sizes) == 1 else 1
        return Cut(
            p=p,
            block=block,
            target=target,
            kernel=partial(amx_kernel, distances=src_distances(p), is_far=results_bytes(p) > self.target.l2_bytes),
            steps=(self.step,),
            sizes=sizes,
            groups=groups,
            at_once=order.panels_at_once,
            chunk=-(-len(sizes) // order.chunks),
            items=balanced(p.batch[-1], items) if p.batch else [],
            prefetch=NO_PREFETCH,
        )


def amx_tiling(p: Product, target: Target) -> AmxTiling:
    """That of a whole product.  Weights that stay in L2 do so in any order, so dst is written along its rows."""
    weights_bytes = p.weights.element_bytes * p.k * p.n
    along_rows = target.products.weights_share * weights_bytes <= target.l2_bytes
    (step,) = steps_of(p, p.k, target)
    return AmxTiling(target, tile_block(p, target), step, along_rows)


def results_bytes(p: Product) -> int:
    """Of dst, and of what post-ops read beside it row by row."""
    operands = [x for x in p.post_op_operands if x.row_bytes]
    return p.m * p.n * prod(p.batch) * sum(x.element_bytes for x in (p.dst, *operands))


def amx_kernel(tile: MatmulTile, target: Target, distances: SrcDistances, is_far: bool) -> tuple[KernelSpec, int]:
    """The kernel of a tile, and the expected cycles of a call.

    is_far: results leave L2.  Their lines are asked for while the block before is multiplied: 1x1 layers with a
    residual sum were 1.2 to 1.6 times as fast so on an Emerald Rapids."""
    tuning, items = target.products, tile.items
    joined = joined_rows(tile.rows, tile.steps, items.count, distances, tuning)
    size = (joined, 1) if joined else (tile.rows, items.count)
    cycles = int(call_cycles(size[0], tile.columns, whole_groups(tile.steps, tile.pieces), tuning, size[1]))
    # Tiles read dense groups; of a single group src may say no distance.
    depth_bytes = tile.types.group * tile.types.src.size_bytes
    ahead = is_far and items.count == 1 and tile.rows > BLOCK_ROWS
    tile = replace(tile, src_depth_bytes=depth_bytes, items=replace(items, joined=joined > 0), prefetches_dst=ahead)
    return AmxTileSpec(tile=tile, far=far_operands(tile, tuning), panels_at_once=panels_at_once(tile, tuning)), cycles


def far_operands(tile: MatmulTile, tuning: ProductTuning) -> Far:
    """What a call reads past L1.

    A block's src and a panel of weights are both read once for a block.  Where they do not fit L1 together, weights
    stay there for the next rows; of rows that are one block src stays for the next panel.  Pieces of src overlap.
    """
    depth_bytes = tile.depth * tile.types.src.size_bytes
    rows = tile.rows * tile.items.count
    together = depth_bytes * (min(rows, BLOCK_ROWS) + BLOCK_COLUMNS)
    if rows <= TILE_ROWS:
        return Far(weights=depth_bytes * rows <= tuning.amx_near_bytes // 2)
    split = tile.src_row_bytes % LINE_BYTES  # lines would be read twice
    if rows <= BLOCK_ROWS or tile.pieces or split or together <= tuning.amx_near_bytes:
        return NEAR
    return Far(src=True, weights=depth_bytes * BLOCK_COLUMNS > tuning.amx_near_bytes)


def panels_at_once(tile: MatmulTile, tuning: ProductTuning) -> int:
    """As many whole ones of a call as stay in L1, if they are read for several blocks."""
    whole = max(1, tile.columns // (tile.panel_vectors * TILE_COLUMNS))
    several = tile.rows * tile.items.count > BLOCK_ROWS and not tile.items.joined
    most = near_panels(tile.steps, tuning) if several else 1
    return max(n for n in range(1, whole + 1) if n <= most and whole % n == 0)
