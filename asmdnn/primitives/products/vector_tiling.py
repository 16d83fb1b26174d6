"""How vectors multiply: the block of a product, its ranges of k, the order of its tiles, and what they prefetch."""

from functools import partial
from math import gcd, prod
from typing import Final

from asmdnn.generators.dot.matmul import UNROLL, MatmulTileSpec
from asmdnn.generators.dot.matmul_shape import MatmulTile
from asmdnn.generators.functions.chain import operands_read
from asmdnn.generators.functions.postops import OLD_DST
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.planning.cuts import balanced
from asmdnn.planning.order import TileOrder
from asmdnn.planning.product_tuning import ProductTuning
from asmdnn.primitives.products.blocks import DEPTH_STEP, Block, choose_block
from asmdnn.primitives.products.cut import Cut, DepthStep, Prefetch, lines_a_step, order_of, steps_of
from asmdnn.primitives.products.matrices import Matrix, Panels
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.target import Target
from asmdnn.records import dataclass, replace

LEAST_TURNS: Final = 16  # rounds of the loop that are worth adding several sums up


@dataclass(frozen=True, slots=True)
class VectorTiling:
    """What all pieces of a product share.

    steps: ranges of k.  along_rows: dst is written along its rows, before the next ones.  src_ahead_bytes: lines of src
    are prefetched so far ahead of their use, if not 0.  dst_ahead: those of dst are, before they are written.
    """

    target: Target
    block: Block
    steps: tuple[DepthStep, ...]
    along_rows: bool
    src_ahead_bytes: int
    dst_ahead: bool

    def cut(self, p: Product) -> Cut:
        """A piece in tiles."""
        target, block, width = self.target, self.block, self.block.vectors * self.target.lanes
        sizes, groups, depth = balanced(p.m, block.rows), -(-p.n // width), self.steps[0].end
        order = TileOrder(groups, len(sizes)) if self.along_rows else order_of(p, depth, len(sizes), width, target)
        chunk, items = -(-len(sizes) // order.chunks), self.items(p, sizes, groups)
        next_panel = groups > 1 and set(items) <= {1} and chunk <= target.tuning.phases.tiles_to_hide
        in_panels = isinstance(p.weights, Panels) and block.vectors == block.panel_vectors
        prefetch = Prefetch(
            lines=lines_a_step(p.weights.element_bytes * width, chunk) if next_panel and in_panels else 0,
            stream_bytes=stream_bytes(p, block, target, sizes == [1]),
            src_bytes=self.src_ahead_bytes,
            dst=self.dst_ahead,
        )
        return Cut(
            p=p,
            block=block,
            target=target,
            kernel=partial(vector_kernel, sums=sums_in_turn(p, target)),
            steps=self.steps,
            sizes=sizes,
            groups=groups,
            at_once=order.panels_at_once,
            chunk=chunk,
            items=items,
            prefetch=prefetch,
        )

    def items(self, p: Product, sizes: list[int], groups: int) -> list[int]:
        """How many matrices of the innermost batch dim each call computes: more if their tiles are small."""
        if not p.batch:
            return []
        vectors = min(self.block.vectors, -(-p.n // self.target.lanes))
        cycles, tuning = p.k * self.target.step_cycles(sizes[0], vectors, p.types), self.target.products
        if len(self.steps) > 1 or p.post_op_operands or cycles > tuning.small_tile_cycles:
            return [1] * p.batch[-1]
        most = min(p.near_items, int(tuning.call_target_cycles // max(cycles, 1)))
        if len(sizes) * groups > 1:
            most = min(most, tuning.near_bytes // p.matrix_bytes)
        return balanced(p.batch[-1], max(1, most))


def vector_tiling(p: Product, target: Target, one_range: bool) -> VectorTiling:
    """That of a whole product.  one_range: of k.

    Weights that stay in L2 do so in any order, so dst is written along its rows.  If that is so large that it comes
    from beyond L2, it pays to read more weights again for each tile of rows.  Rows of src that come from there are more
    streams than the CPU follows by itself."""
    tuning, l2_bytes, block = target.products, target.l2_bytes, choose_block(p, target)
    most = most_steps(p, block, target, one_range or not target.epilogue.may_split or not p.sums_fit)
    *steps, last = steps_of(p, most, target)
    depth = steps[0].end if steps else last.end
    weights_bytes, matrices = p.weights.element_bytes * depth * p.n, prod(p.batch)
    src_bytes, dst_bytes = (matrices * p.m * n for n in (p.src.element_bytes * p.k, p.dst.element_bytes * p.n))
    steps.append(replace(last, streams=dst_bytes >= tuning.streaming_dst_bytes and writes_lines(p, last, target)))
    rereads = dst_bytes >= tuning.far_dst_l2 * l2_bytes and weights_bytes <= tuning.along_rows_l2 * l2_bytes
    return VectorTiling(
        target=target,
        block=block,
        steps=tuple(step.from_views if len(steps) > tuning.many_ranges else step for step in steps),
        along_rows=(rereads and depth == p.k) or tuning.weights_share * weights_bytes <= l2_bytes,
        src_ahead_bytes=tuning.src_ahead_bytes if src_bytes >= tuning.far_src_l2 * l2_bytes and p.m > 1 else 0,
        dst_ahead=dst_bytes >= tuning.dst_ahead_l2 * l2_bytes and p.m > 1,
    )


def writes_lines(p: Product, last: DepthStep, target: Target) -> bool:
    """Whether tiles of several rows write whole lines of dst in the last range of k, and do not read them."""
    is_line = p.dst.element_bytes * target.lanes == LINE_BYTES and p.dst.row_bytes % LINE_BYTES == 0 and p.dst.is_dense
    reads = last.accumulate or last.beta or OLD_DST in operands_read(last.post_ops)
    return p.m > 1 and is_line and not reads and all(step % LINE_BYTES == 0 for step in p.dst.batch_bytes)


def most_steps(p: Product, b: Block, target: Target, whole: bool) -> int:
    """How many DEPTH_STEPs a range of k has at most: so many that the rows of a panel fill its share of L2.

    The share is larger than in convolutions, as partial sums cost more: rows of dst are strided.  A single tile of rows
    reads its panel once, so it takes all of k at once.  whole: all of k is one range.
    """
    tuning = target.products
    if whole or p.packed_weights:
        return -(-p.k // DEPTH_STEP)
    if prefetches_columns(p, b, tuning):
        return tuning.columns_depth // DEPTH_STEP
    if p.m <= b.rows:
        return -(-p.k // DEPTH_STEP)
    if isinstance(p.weights, Matrix):
        return tuning.plain_depth.of(p.weights.row_bytes) // DEPTH_STEP
    row_bytes = p.weights.element_bytes * target.lanes * b.vectors
    return max(target.l2_bytes // tuning.panel_share // row_bytes, target.tuning.phases.least_depth) // DEPTH_STEP


def prefetches_columns(p: Product, b: Block, tuning: ProductTuning) -> bool:
    """Whether plain weights are read a few columns at a time, from rows in many pages, and do not fit L2."""
    is_plain = isinstance(p.weights, Matrix) and not p.packed_weights and p.weights.is_dense
    few = b.rows > 2 and p.m <= tuning.few_row_tiles * b.rows
    return is_plain and few and p.k * p.n > tuning.far_elements


def stream_bytes(p: Product, block: Block, target: Target, one_row: bool) -> int:
    """The distance in bytes at which a tile prefetches its own weights, where no earlier tile has brought them."""
    tuning = target.products
    if isinstance(p.weights, Panels):
        far = p.k * p.n * p.weights.element_bytes >= tuning.memory_weights_bytes
        ahead = tuning.memory_stream_bytes if far else tuning.stream_bytes
        return ahead if one_row and block.vectors > block.panel_vectors else 0
    if prefetches_columns(p, block, tuning):  # further columns of the same rows, whose pages are in the TLB
        return max(LINE_BYTES, p.weights.element_bytes * block.vectors * target.lanes)
    ahead = tuning.stream_rows * p.weights.row_bytes
    return ahead if p.k * p.n >= tuning.few_weights and ahead <= tuning.most_stream_bytes else 0


def sums_in_turn(p: Product, target: Target) -> int:
    """How many sums of each result steps of k take in turn: several where one tile is all, and has so few accumulators
    that each step would wait for the one before."""
    accumulators = p.m * -(-p.n // target.lanes)
    few = 0 < accumulators < target.products.latency_sums and not p.batch and p.types.run is None
    if not few or p.packed_weights is not None or p.packed_src is not None or p.k < LEAST_TURNS * UNROLL:
        return 1
    return gcd(UNROLL, 1 << (target.products.latency_sums // accumulators).bit_length() - 1)


def vector_kernel(tile: MatmulTile, target: Target, sums: int = 1) -> tuple[MatmulTileSpec, int]:
    """The kernel of a tile, and the expected cycles of a call."""
    step = target.step_cycles(tile.rows * sums, tile.vectors, tile.types) / sums
    cycles = tile.steps * step + target.call_cycles
    return MatmulTileSpec(tile=replace(tile, sums=sums)), int(tile.items.count * cycles)
