"""A product cut into tiles: sizes of tiles of rows, groups of columns, runs of matrices, and their order."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from asmdnn.generators.dot.matmul_shape import ARGUMENTS
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.planning.cuts import balanced
from asmdnn.planning.order import TileOrder, choose_order
from asmdnn.planning.phase import Int64
from asmdnn.primitives.products.blocks import Block, choose_items
from asmdnn.primitives.products.product import Panels, Product
from asmdnn.primitives.products.target import Target


@dataclass(frozen=True, eq=False)
class Cut:
    """sizes: of the tiles of rows.  groups: of columns, each `width` wide but for the last.  at_once, chunk: groups and
    tiles of rows that are computed before the next ones.  items: how many matrices of the innermost batch dim each
    call takes.  ahead_row_bytes: of plain weights whose next block tiles prefetch; 0: the next panel."""

    p: Product
    block: Block
    target: Target
    sizes: list[int]
    groups: int
    at_once: int
    chunk: int
    items: list[int]
    ahead_row_bytes: int = 0

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
    def arguments(self) -> tuple[str, ...]:
        return (*ARGUMENTS, *self.p.other_names)

    def ahead_lines(self) -> int:
        """Cache lines of the next panel or block that each 8 steps prefetch, so that the tiles of a chunk bring all."""
        if self.ahead_row_bytes:
            return -(-8 * self.row_lines // self.chunk)
        packed = isinstance(self.p.weights, Panels) and self.block.vectors == self.block.panel_vectors
        few = self.chunk <= self.target.tuning.phases.tiles_to_hide
        if not packed or self.groups == 1 or not few or set(self.items) - {1}:
            return 0
        return -(-8 * self.row_lines // self.chunk)

    @property
    def row_bytes(self) -> int:
        """Of a group's row of weights."""
        return self.p.weights.element_bytes * self.width

    @property
    def row_lines(self) -> int:
        """Of a group's row of weights."""
        return -(-self.row_bytes // LINE_BYTES)

    def ahead_shares(self, depth: int) -> Int64:
        """int64[tiles]: where in what is prefetched the share of each tile begins."""
        tiles, lines = np.arange(len(self.sizes)), self.ahead_lines() * (depth // 8)
        if not self.ahead_row_bytes or not lines:
            return tiles % self.chunk * (lines * LINE_BYTES)
        line, row = np.divmod(tiles * lines % (self.row_lines * depth), depth)  # all rows' first line, then the next
        begins: Int64 = line * LINE_BYTES + row * self.ahead_row_bytes
        return begins

    def ahead_groups(self) -> Int64:
        """int64[groups]: where what each group of columns prefetches begins."""
        step_bytes = self.panel_bytes * (self.block.vectors // self.block.panel_vectors)
        number = np.arange(self.groups)
        begins: Int64 = self.row_bytes * number if self.ahead_row_bytes else (number + 1) % self.groups * step_bytes
        return begins


def cut(p: Product, block: Block, target: Target, ranges: Sequence[tuple[int, int]]) -> Cut:
    """The tiles of a product that is summed over these ranges of k."""
    sizes, width = balanced(p.m, block.rows), block.vectors * target.lanes
    groups, depth = -(-p.n // width), ranges[0][1]
    read = (p.src.element_bytes * p.m * depth, p.weights.element_bytes * depth * width)
    order = choose_order(*read, groups, len(sizes), target.l2_bytes, target.tuning.phases)
    if target.products.weights_share * p.weights.element_bytes * depth * p.n <= target.l2_bytes:
        # Weights stay whatever the order; what counts is to write dst along its rows.
        order = TileOrder(groups, len(sizes))
    items = [1] if len(ranges) == 1 and p.batch and not p.others else []
    if items:
        cycles = p.k * target.step_cycles(sizes[0], min(block.vectors, -(-p.n // target.lanes)))
        items = choose_items(p, len(sizes) * groups, cycles, target.products)
    elif p.batch:
        items = [1] * p.batch[-1]
    return Cut(
        p=p,
        block=block,
        target=target,
        sizes=sizes,
        groups=groups,
        at_once=order.panels_at_once,
        chunk=-(-len(sizes) // order.chunks),
        items=items,
    )
