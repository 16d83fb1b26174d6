"""First stage of a product: it is cut into ranges of k and tiles.  What they do, in which order, what they prefetch.

The kernels of a cut are those of tile_calls.py; where each call finds its operands stands in records.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from asmdnn.generators.functions.postops import PostOp
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.planning.cuts import balanced, ranges_of
from asmdnn.planning.depths import make_depths
from asmdnn.planning.order import TileOrder, choose_order
from asmdnn.planning.product_tuning import ProductTuning
from asmdnn.primitives.products.blocks import DEPTH_STEP, Block
from asmdnn.primitives.products.product import Matrix, Panels, Product
from asmdnn.primitives.products.target import Target


@dataclass(frozen=True, slots=True)
class DepthStep:
    """What the calls of one range of k do.  skipped: steps of k that lie before its views; steps that differ in nothing
    else have equal records."""

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
        """The same, whose views begin where it does."""
        return replace(self, begin=0, end=self.end - self.begin, skipped=self.begin)


@dataclass(frozen=True, slots=True)
class Prefetch:
    """What tiles bring into caches.

    lines: of the next panel for every 8 steps of k, so that the tiles of a chunk bring all of it.  row_bytes: not of a
    panel but of the next block of plain weights, whose rows are so far apart.  stream_bytes: how far ahead of their use
    weights are brought that no tile before has.
    """

    lines: int = 0
    row_bytes: int = 0
    stream_bytes: int = 0


@dataclass(frozen=True, eq=False)
class Cut:
    """steps: ranges of k, in order.  sizes: of the tiles of rows.  groups: of columns, each `width` wide but for the
    last.  at_once, chunk: groups and tiles of rows that are computed before the next ones.  items: how many matrices of
    the innermost batch dim each call takes; empty: one by one."""

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
        """From a panel of weights to the next one; of plain weights, the bytes of its columns."""
        x = self.p.weights
        vectors = self.block.panel_vectors
        return x.panel_bytes if isinstance(x, Panels) else x.element_bytes * vectors * self.target.lanes

    @property
    def group_bytes(self) -> int:
        """From a group's weights to those of the next."""
        return self.panel_bytes * (self.block.vectors // self.block.panel_vectors)

    @property
    def row_bytes(self) -> int:
        """Of a group's row of weights."""
        return self.p.weights.element_bytes * self.width


def cut(p: Product, block: Block, target: Target, ranges: Sequence[tuple[int, int]]) -> Cut:
    """A product that is summed over these ranges of k, in tiles of a block."""
    x, by, (_, depth), width = p.weights, target.products, ranges[0], block.vectors * target.lanes
    sizes, groups = balanced(p.m, block.rows), -(-p.n // width)
    if by.weights_share * x.element_bytes * depth * p.n <= target.l2_bytes:
        # Weights stay whatever the order; what counts is to write dst along its rows.
        order = TileOrder(groups, len(sizes))
    else:
        read = (p.src.element_bytes * p.m * depth, x.element_bytes * depth * width)
        order = choose_order(*read, groups, len(sizes), target.l2_bytes, target.tuning.phases)
    chunk, items = -(-len(sizes) // order.chunks), [1] * (p.batch[-1] if p.batch else 0)
    if len(ranges) == 1 and p.batch and not p.others and not target.tiled:
        cycles = p.k * target.step_cycles(sizes[0], min(block.vectors, -(-p.n // target.lanes)))
        items = choose_items(p, len(sizes) * groups, cycles, by)
    next_panel = groups > 1 and set(items) <= {1} and chunk <= target.tuning.phases.tiles_to_hide
    in_panels = isinstance(x, Panels) and block.vectors == block.panel_vectors
    lines = lines_a_step(x.element_bytes * width, chunk) if next_panel and in_panels else 0
    prefetch = Prefetch()  # of tiles: they take whole panels from L2, and prefetches into L1 made them slower
    if not target.tiled:
        prefetch = Prefetch(lines, stream_bytes=stream_bytes(p, block, target, sizes == [1]))
    steps = tuple(steps_of(p, ranges, target))
    return Cut(
        p=p,
        block=block,
        target=target,
        steps=tuple(step.from_views for step in steps) if len(steps) > by.many_ranges else steps,
        sizes=sizes,
        groups=groups,
        at_once=order.panels_at_once,
        chunk=chunk,
        items=items,
        prefetch=prefetch,
    )


def choose_ranges(p: Product, b: Block, target: Target) -> list[tuple[int, int]]:
    """Ranges of k that are summed at a time: the rows of a panel that fill its share of L2.

    Convolutions take a smaller one; here rows of dst lie apart, and partial sums cost more.  A single tile of rows
    reads its panel once, so it takes all of k.
    """
    by = target.products
    if p.packed:
        return [(0, p.k)]
    if prefetches_columns(p, b, by):
        return depths_of(p.k, by.columns_depth // DEPTH_STEP, by)
    if p.m <= b.rows:
        return [(0, p.k)]
    if isinstance(p.weights, Matrix) and not p.packed:
        return depths_of(p.k, by.plain_depth.of(p.weights.row_bytes) // DEPTH_STEP, by)
    row_bytes = p.weights.element_bytes * target.lanes * b.vectors
    rows = max(target.l2_bytes // by.panel_share // row_bytes, target.tuning.phases.least_depth)
    return depths_of(p.k, rows // DEPTH_STEP, by)


def prefetches_columns(p: Product, b: Block, tuning: ProductTuning) -> bool:
    """Whether plain weights are read a few columns at a time, from rows that lie in many pages, and from behind L2."""
    is_plain = isinstance(p.weights, Matrix) and not p.packed and p.weights.is_dense
    few = b.rows > 2 and p.m <= tuning.few_row_tiles * b.rows
    return is_plain and few and p.k * p.n > tuning.far_elements


def depths_of(k: int, most_steps: int, tuning: ProductTuning) -> list[tuple[int, int]]:
    """[0, k) in nearly equal ranges of at most `most_steps` DEPTH_STEPs, of more where they would be too many."""
    return ranges_of(k, max(most_steps, -(-k // (DEPTH_STEP * tuning.most_ranges))), DEPTH_STEP)


def choose_items(p: Product, tiles: int, cycles: float, tuning: ProductTuning) -> list[int]:
    """How many matrices of the innermost batch dim the calls take, in turn, if one of its tiles takes `cycles`."""
    if not p.batch:
        return []
    size = p.batch[-1]
    if cycles > tuning.small_tile_cycles:
        return [1] * size
    most = int(tuning.call_target_cycles // max(cycles, 1))
    if tiles > 1:
        most = min(most, tuning.near_bytes // p.matrix_bytes)
    return balanced(size, max(1, most))


def steps_of(p: Product, ranges: Sequence[tuple[int, int]], target: Target) -> Iterator[DepthStep]:
    """The first range starts from the bias (or beta * dst), later ones from dst, post-ops run in the last."""
    ending = target.ending
    for depth in make_depths(ranges, p.bias is not None, ending.on_registers(p.others, target.lanes)):
        first = depth.begin == 0
        yield DepthStep(
            begin=depth.begin,
            end=depth.end,
            missing=p.missing if depth.end == p.k else 0,
            bias=depth.bias,
            accumulate=depth.accumulate or (first and ending.beta == "one"),
            scaled=ending.scaled,
            beta=first and ending.beta == "any",
            post_ops=depth.post_ops,
        )


def lines_a_step(row_bytes: int, tiles: int) -> int:
    """Cache lines that each of so many tiles prefetches for 8 steps of k, if rows of weights have so many bytes."""
    lines = -(-row_bytes // LINE_BYTES)
    return -(-DEPTH_STEP * lines // tiles)


def stream_bytes(p: Product, block: Block, target: Target, one_row: bool) -> int:
    """How far ahead of their use weights are prefetched that no tile before has brought."""
    by = target.products
    if isinstance(p.weights, Panels):
        far = p.k * p.n * p.weights.element_bytes >= by.memory_weights_bytes
        ahead = by.memory_stream_bytes if far else by.stream_bytes
        return ahead if one_row and block.vectors > block.panel_vectors else 0
    if prefetches_columns(p, block, by):  # of the same rows: in pages in use
        return max(LINE_BYTES, p.weights.element_bytes * block.vectors * target.lanes)
    ahead = by.stream_rows * p.weights.row_bytes
    return ahead if p.k * p.n >= by.few_weights and ahead <= by.most_stream_bytes else 0
