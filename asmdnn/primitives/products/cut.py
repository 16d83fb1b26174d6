"""First stage of planning a product: ranges of k, tiles, their order, and what they prefetch.

tile_calls.py chooses the kernels of a cut; records.py computes the addresses of each call.
"""

from collections.abc import Iterator, Sequence
from math import prod

from asmdnn.generators.functions.postops import PostOp
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.planning.cuts import balanced, make_depths, ranges_of, share_of_lines
from asmdnn.planning.order import TileOrder, choose_order
from asmdnn.planning.product_tuning import ProductTuning
from asmdnn.primitives.products.amx import most_items
from asmdnn.primitives.products.blocks import DEPTH_STEP, Block
from asmdnn.primitives.products.matrices import Matrix, Panels
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.target import Target
from asmdnn.records import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class DepthStep:
    """What the calls of one range of k do.  skipped: steps of k before the start of its views; ranges that differ only
    in this have equal records."""

    begin: int
    end: int
    missing: int  # elements of its last group
    bias: bool
    accumulate: bool
    scaled: bool
    beta: bool
    post_ops: tuple[PostOp, ...]
    skipped: int = field(default=0, compare=False)

    @property
    def from_views(self) -> "DepthStep":
        """The same range with offsets from its own start: views begin there."""
        return replace(self, begin=0, end=self.end - self.begin, skipped=self.begin)


@dataclass(frozen=True, slots=True)
class Prefetch:
    """What tiles prefetch.

    lines: cache lines of the next panel for every 8 steps of k; together the tiles of a chunk prefetch all of it.
    row_bytes: nonzero if it is the next block of plain weights instead, whose rows are so far apart.  stream_bytes: the
    distance of prefetches of the tile's own weights, where no earlier tile has brought them into the cache.  src_bytes:
    that of src.  dst: its lines, before they are written.
    """

    lines: int = 0
    row_bytes: int = 0
    stream_bytes: int = 0
    src_bytes: int = 0
    dst: bool = False


@dataclass(frozen=True, eq=False)
class Cut:
    """A product cut into tiles.

    steps: ranges of k, in order.  sizes: rows of each tile.  groups: groups of columns, each `width` wide except the
    last.  at_once, chunk: how many groups and how many tiles of rows are computed before the next ones.  items: how
    many matrices of the innermost batch dim each call computes; empty: one."""

    p: Product
    block: Block
    target: Target
    steps: tuple[DepthStep, ...]
    sizes: list[int]
    groups: int
    at_once: int
    chunk: int
    items: list[int]
    prefetch: Prefetch

    @property
    def width(self) -> int:
        """Columns of a group."""
        return self.block.vectors * self.target.lanes

    @property
    def panel_bytes(self) -> int:
        """The distance of panels of weights; for plain weights, the bytes of a panel's columns."""
        x = self.p.weights
        vectors = self.block.panel_vectors
        return x.panel_bytes if isinstance(x, Panels) else x.element_bytes * vectors * self.target.lanes

    @property
    def group_bytes(self) -> int:
        """The distance of the weights of neighbouring groups."""
        return self.panel_bytes * (self.block.vectors // self.block.panel_vectors)

    @property
    def row_bytes(self) -> int:
        """The size of one row of a group's weights."""
        return self.p.weights.element_bytes * self.width


def cut(p: Product, block: Block, target: Target, ranges: Sequence[tuple[int, int]], far: "BeyondL2") -> Cut:
    """Cut a product into tiles of a block, summed over these ranges of k.  far: of what it may be a piece of."""
    x, tuning, (_, depth), width = p.weights, target.products, ranges[0], block.vectors * target.lanes
    sizes, groups = balanced(p.m, block.rows), -(-p.n // width)
    if far.along_rows:
        order = TileOrder(groups, len(sizes))
    else:
        read = (p.src.element_bytes * p.m * depth, x.element_bytes * depth * width)
        order = choose_order(*read, groups, len(sizes), target.l2_bytes, target.tuning.phases)
    chunk, items = -(-len(sizes) // order.chunks), [1] * (p.batch[-1] if p.batch else 0)
    if len(ranges) == 1 and p.batch and not p.post_op_operands and not target.tiled:
        cycles = p.k * target.step_cycles(sizes[0], min(block.vectors, -(-p.n // target.lanes)), p.types)
        items = choose_items(p, len(sizes) * groups, cycles, tuning)
    if target.tiled and items and len(sizes) == 1:
        items = balanced(p.batch[-1], most_items(p, target))
    next_panel = groups > 1 and set(items) <= {1} and chunk <= target.tuning.phases.tiles_to_hide
    in_panels = isinstance(x, Panels) and block.vectors == block.panel_vectors
    lines = lines_a_step(x.element_bytes * width, chunk) if next_panel and in_panels else 0
    prefetch = Prefetch()  # none for AMX: its tiles read whole panels from L2, and prefetches into L1 made them slower
    if not target.tiled:
        prefetch = Prefetch(
            lines,
            stream_bytes=stream_bytes(p, block, target, sizes == [1]),
            src_bytes=far.src_ahead_bytes,
            dst=far.dst_ahead,
        )
    steps = tuple(steps_of(p, ranges, target))
    return Cut(
        p=p,
        block=block,
        target=target,
        steps=tuple(step.from_views for step in steps) if len(steps) > tuning.many_ranges else steps,
        sizes=sizes,
        groups=groups,
        at_once=order.panels_at_once,
        chunk=chunk,
        items=items,
        prefetch=prefetch,
    )


@dataclass(frozen=True, slots=True)
class BeyondL2:
    """How all pieces of a product read src and write dst.

    along_rows: dst is written along its rows, before the next ones.  dst_ahead: its lines are prefetched.
    src_ahead_bytes: those of src are so far ahead of their use, if not 0.
    """

    along_rows: bool
    dst_ahead: bool
    src_ahead_bytes: int


def beyond_l2(p: Product, target: Target, ranges: Sequence[tuple[int, int]]) -> BeyondL2:
    """Weights that stay in L2 do so in any order, so dst is written along its rows.  If that is so large that it comes
    from beyond L2, it pays to read more weights again for each tile of rows.  Rows of src that come from there are more
    streams than the CPU follows by itself."""
    tuning, l2_bytes, depth = target.products, target.l2_bytes, ranges[0][1]
    weights_bytes, matrices = p.weights.element_bytes * depth * p.n, prod(p.batch)
    src_bytes, dst_bytes = (matrices * p.m * n for n in (p.src.element_bytes * p.k, p.dst.element_bytes * p.n))
    far = dst_bytes >= tuning.far_dst_l2 * l2_bytes and depth == p.k and not target.tiled
    rereads = far and weights_bytes <= tuning.along_rows_l2 * l2_bytes
    return BeyondL2(
        along_rows=rereads or tuning.weights_share * weights_bytes <= l2_bytes,
        dst_ahead=dst_bytes >= tuning.dst_ahead_l2 * l2_bytes and p.m > 1,
        src_ahead_bytes=tuning.src_ahead_bytes if src_bytes >= tuning.far_src_l2 * l2_bytes and p.m > 1 else 0,
    )


def choose_ranges(p: Product, b: Block, target: Target) -> list[tuple[int, int]]:
    """Ranges of k, so long that the rows of a panel fill its share of L2.

    The share is larger than in convolutions, as partial sums cost more: rows of dst are strided.  A single tile of rows
    reads its panel once, so it takes all of k at once.
    """
    tuning = target.products
    if p.packed_weights:
        return [(0, p.k)]
    if prefetches_columns(p, b, tuning):
        return depths_of(p.k, tuning.columns_depth // DEPTH_STEP, tuning)
    if p.m <= b.rows:
        return [(0, p.k)]
    if isinstance(p.weights, Matrix):
        return depths_of(p.k, tuning.plain_depth.of(p.weights.row_bytes) // DEPTH_STEP, tuning)
    row_bytes = p.weights.element_bytes * target.lanes * b.vectors
    rows = max(target.l2_bytes // tuning.panel_share // row_bytes, target.tuning.phases.least_depth)
    return depths_of(p.k, rows // DEPTH_STEP, tuning)


def prefetches_columns(p: Product, b: Block, tuning: ProductTuning) -> bool:
    """Whether plain weights are read a few columns at a time, from rows in many pages, and do not fit L2."""
    is_plain = isinstance(p.weights, Matrix) and not p.packed_weights and p.weights.is_dense
    few = b.rows > 2 and p.m <= tuning.few_row_tiles * b.rows
    return is_plain and few and p.k * p.n > tuning.far_elements


def depths_of(k: int, most_steps: int, tuning: ProductTuning) -> list[tuple[int, int]]:
    """[0, k) in nearly equal ranges of at most `most_steps` DEPTH_STEPs, longer ones if there would be too many."""
    return ranges_of(k, max(most_steps, -(-k // (DEPTH_STEP * tuning.most_ranges))), DEPTH_STEP)


def choose_items(p: Product, tiles: int, cycles: float, tuning: ProductTuning) -> list[int]:
    """How many matrices of the innermost batch dim each call computes, if one tile takes `cycles`."""
    if not p.batch:
        return []
    size = p.batch[-1]
    if cycles > tuning.small_tile_cycles:
        return [1] * size
    most = min(p.near_items, int(tuning.call_target_cycles // max(cycles, 1)))
    if tiles > 1:
        most = min(most, tuning.near_bytes // p.matrix_bytes)
    return balanced(size, max(1, most))


def steps_of(p: Product, ranges: Sequence[tuple[int, int]], target: Target) -> Iterator[DepthStep]:
    """The first range starts from the bias (or beta * dst), later ones from dst, post-ops run in the last."""
    epilogue = target.epilogue
    for depth in make_depths(ranges, p.bias is not None, epilogue.on_registers(p.post_op_operands, target.lanes)):
        first = depth.begin == 0
        yield DepthStep(
            begin=depth.begin,
            end=depth.end,
            missing=p.missing if depth.end == p.k else 0,
            bias=depth.bias,
            accumulate=depth.accumulate or (first and epilogue.beta == "one"),
            scaled=epilogue.scaled,
            beta=first and epilogue.beta == "any",
            post_ops=depth.post_ops,
        )


def lines_a_step(row_bytes: int, tiles: int) -> int:
    """Cache lines that each of `tiles` tiles prefetches for 8 steps of k, of rows of `row_bytes`."""
    return share_of_lines(DEPTH_STEP * -(-row_bytes // LINE_BYTES), tiles)


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
