"""A product cut into tiles: what each call of a kernel computes, and in which order.

vector_tiling.py and amx_tiling.py choose; schedule.py makes phases of what they have chosen.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.dot.matmul_shape import MatmulTile
from asmdnn.generators.functions.postops import PostOp
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.planning.cuts import make_depths, ranges_of, share_of_lines
from asmdnn.planning.order import TileOrder, choose_order
from asmdnn.primitives.products.blocks import DEPTH_STEP, Block
from asmdnn.primitives.products.matrices import Panels
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.target import Target
from asmdnn.records import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class DepthStep:
    """What the calls of one range of k do.  streams: dst goes past the caches.  skipped: steps of k before the start of
    its views; ranges that differ only in this have equal records."""

    begin: int
    end: int
    missing: int  # elements of its last group
    bias: bool
    accumulate: bool
    scaled: bool
    beta: bool
    post_ops: tuple[PostOp, ...]
    streams: bool = False
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


NO_PREFETCH = Prefetch()


@dataclass(frozen=True, eq=False)
class Cut:
    """A product cut into tiles.

    kernel: that of a tile, and the expected cycles of a call.  steps: ranges of k, in order.  sizes: rows of each tile.
    groups: groups of columns, each `width` wide except the last.  at_once, chunk: how many groups and how many tiles of
    rows are computed before the next ones.  items: how many matrices of the innermost batch dim each call computes;
    empty: one."""

    p: Product
    block: Block
    target: Target
    kernel: Callable[[MatmulTile, Target], tuple[KernelSpec, int]]
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


class ProductTiling(Protocol):
    """What all pieces of a product share; see vector_tiling.py and amx_tiling.py."""

    @property
    def block(self) -> Block: ...

    def cut(self, p: Product) -> Cut:
        """A piece in tiles."""


def steps_of(p: Product, most: int, target: Target) -> Iterator[DepthStep]:
    """k in ranges of at most so many DEPTH_STEPs: the first starts from the bias (or beta * dst), later ones from dst,
    post-ops run in the last."""
    ranges, epilogue = ranges_of(p.k, most, DEPTH_STEP, target.products.most_ranges), target.epilogue
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


def order_of(p: Product, depth: int, tiles: int, width: int, target: Target) -> TileOrder:
    """That of so many tiles of rows and groups of `width` columns, whose weights have ranges of `depth` steps of k."""
    src_bytes, group_bytes = p.src.element_bytes * p.m * depth, p.weights.element_bytes * depth * width
    return choose_order(src_bytes, group_bytes, -(-p.n // width), tiles, target.l2_bytes, target.tuning.phases)


def lines_a_step(row_bytes: int, tiles: int) -> int:
    """Cache lines that each of `tiles` tiles prefetches for 8 steps of k, of rows of `row_bytes`."""
    return share_of_lines(DEPTH_STEP * -(-row_bytes // LINE_BYTES), tiles)
