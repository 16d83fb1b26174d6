"""The records of a matrix product: tiles for every matrix of the batch, in the order that reads least."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import numpy.typing as npt

from asmdnn.generators.dot.matmul import MatmulTileSpec
from asmdnn.generators.dot.matmul_shape import ARGUMENTS, Bias, Items
from asmdnn.generators.functions.postops import Operand, PostOp
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.phase import NOTHING, Phase, View, records_of, views
from asmdnn.primitives.attributes.chain import NO_CHAIN, Chain
from asmdnn.primitives.convolution.schedule import lay_out, make_depths
from asmdnn.primitives.convolution.tiles import Int64, balanced
from asmdnn.primitives.convolution.tiling import CALL_CYCLES, TILES_TO_HIDE, Order, choose_order, step_cycles
from asmdnn.primitives.products.blocks import (
    Block,
    choose_block,
    choose_items,
    choose_ranges,
    packs_aliases,
    prefetches_columns,
)
from asmdnn.primitives.products.product import Matrix, Panels, Product
from asmdnn.primitives.products.rounds import in_rounds, pieces_of

LINE_BYTES = 64
STREAM_BYTES = 1024  # panels that a single row of dst reads are prefetched so far ahead
STREAM_ROWS = 16  # and weights that are not packed so many rows ahead
MAX_STREAM_BYTES = 1 << 24
FEW_WEIGHTS = 64 * 64  # which stay in L1
MANY_RANGES = 64  # of k, whose records are written out once for all equal ones
WEIGHTS_SHARE = 8  # of L2: weights that stay there whatever the order


@dataclass(frozen=True, slots=True)
class Ending:
    """What happens to the sums: a chain, or the scales of gemm (`beta`: "" none, "one", "any")."""

    chain: Chain = NO_CHAIN
    scaled: bool = False
    beta: str = ""

    @property
    def may_split(self) -> bool:
        """Whether dst may hold partial sums."""
        return self.chain.may_split

    @property
    def reads_dst(self) -> bool:
        return bool(self.beta) or self.chain.reads_dst

    def on_registers(self, others: Sequence[Matrix], lanes: int) -> tuple[PostOp, ...]:
        """The post-ops on registers, whose operands lie as `others` says: columns dense, or one for all."""
        operands = [
            Operand(number, x.row_bytes, 4 * lanes if x.column_bytes else 0, not x.column_bytes)
            for number, x in enumerate(others, len(ARGUMENTS))
        ]
        return self.chain.on_registers(dict(zip(self.chain.names, operands, strict=True)))


@dataclass(frozen=True, slots=True)
class Step:
    """What the kernels of one range of k do."""

    begin: int
    end: int
    bias: bool
    accumulate: bool
    scaled: bool
    beta: bool
    post_ops: tuple[PostOp, ...]


def steps_of(ranges: list[tuple[int, int]], bias: bool, ending: Ending, chain: tuple[PostOp, ...]) -> Iterator[Step]:
    """The first range starts from the bias (or beta * dst), later ones from dst, post-ops run in the last."""
    for depth in make_depths(ranges, bias, chain):
        first = depth.begin == 0
        accumulate = depth.accumulate or (first and ending.beta == "one")
        beta = first and ending.beta == "any"
        yield Step(depth.begin, depth.end, depth.bias, accumulate, ending.scaled, beta, depth.post_ops)


def schedule(p: Product, ending: Ending, isa: str, l2_bytes: int, one_range: bool = False) -> list[Phase]:
    """A phase for each range of k; each continues the one before.  dst's columns are dense."""
    lanes, block = lanes_of(isa), choose_block(p, isa)
    whole = one_range or not ending.may_split
    ranges = [(0, p.k)] if whole else choose_ranges(p, block, lanes, l2_bytes)
    steps = list(steps_of(ranges, p.bias is not None, ending, ending.on_registers(p.others, lanes)))
    phases: list[Phase] = []
    for piece in pieces_of(p, block.rows, block.vectors * lanes):
        cut = Cut.of(piece.product, block, lanes, ranges, l2_bytes)
        made = cut.phases(steps, isa, ending.scaled)
        phases += in_rounds(made, piece, cut.arguments, is_first=not phases)
    return phases


@dataclass(frozen=True, eq=False)
class Cut:
    """A product cut into tiles: `sizes` of tiles of rows, groups of columns, and their order."""

    p: Product
    block: Block
    lanes: int
    sizes: list[int]
    groups: int
    at_once: int
    chunk: int
    items: list[int]

    @classmethod
    def of(cls, p: Product, block: Block, lanes: int, ranges: list[tuple[int, int]], l2_bytes: int) -> "Cut":
        sizes, width = balanced(p.m, block.rows), block.vectors * lanes
        groups, depth = -(-p.n // width), ranges[0][1]
        order = choose_order(4 * p.m * depth, 4 * depth * width, groups, len(sizes), l2_bytes)
        if WEIGHTS_SHARE * 4 * depth * p.n <= l2_bytes:  # they stay; what counts is to write dst along its rows
            order = Order(groups, len(sizes))
        items = [1] if len(ranges) == 1 and p.batch and not p.others else []
        if items:
            cycles = p.k * step_cycles(sizes[0], min(block.vectors, -(-p.n // lanes)), lanes)
            items = choose_items(p, len(sizes) * groups, cycles)
        elif p.batch:
            items = [1] * p.batch[-1]
        return cls(p, block, lanes, sizes, groups, order.panels_at_once, -(-len(sizes) // order.chunks), items)

    def phases(self, steps: Sequence[Step], isa: str, scaled: bool) -> list[Phase]:
        """A phase for each range of k; where there are very many, equal ones share records, and only views differ."""
        specs: dict[MatmulTileSpec, int] = {}
        made: dict[Step, tuple[Int64, npt.NDArray[np.int32]]] = {}
        starts = []
        for step in steps:
            key = replace(step, begin=0, end=step.end - step.begin) if len(steps) > MANY_RANGES else step
            if key not in made:
                made[key] = self.records(key, isa, specs)
            starts.append((made[key], step.begin - key.begin))
        kernels, arguments = tuple(specs), self.views(scaled)
        return [
            Phase(kernels, self.further(arguments, begin), *laid_out, continues=i > 0, flushes=True)
            for i, (laid_out, begin) in enumerate(starts)
        ]

    def further(self, arguments: tuple[View, ...], steps: int) -> tuple[View, ...]:
        """The views behind so many steps of k."""
        if not steps:
            return arguments
        p = self.p
        moves = {"src": p.src.column_bytes, "weights": p.weights.row_bytes, "ahead": p.weights.row_bytes}
        moves |= {"packed": p.packed.row_bytes} if p.packed else {}
        return tuple(
            View(view.buffer, steps * moves[name]) if name in moves and view is not NOTHING else view
            for name, view in zip(self.arguments, arguments, strict=True)
        )

    def views(self, scaled: bool) -> tuple[View, ...]:
        """What the arguments point into."""
        names = {name: x.buffer for name, x in self.p.operands().items()}
        names |= {"ahead": names["weights"]} | ({"scale": "scale"} if scaled else {})
        return views([names.get(name, "") for name in self.arguments])

    @property
    def arguments(self) -> tuple[str, ...]:
        return (*ARGUMENTS, *self.p.other_names)

    def records(self, step: Step, isa: str, specs: dict[MatmulTileSpec, int]) -> tuple[Int64, npt.NDArray[np.int32]]:
        """All records of a range of k: matrix after matrix, or runs of `items` of them."""
        matrices = self.matrices()
        rows, columns = self.tile_rows(step), self.group_rows(step)
        pattern = max(self.sizes) - np.array(self.sizes, np.int64)  # sizes differ by at most one
        parts = []
        for items in sorted(set(self.items or [1])):
            spec_of, cycles = self.specs(step, items, isa, specs)
            parts.append((items, *lay_out(rows, columns, pattern, spec_of, cycles, self.at_once, self.chunk)))
        base = {items: (records, cost) for items, records, cost in parts}
        if not self.p.batch:
            return base[1]
        starts, runs = np.concatenate(([0], np.cumsum(self.items)))[:-1], []
        for size, run in groupby(zip(self.items, starts, strict=True), key=lambda pair: pair[0]):
            where = np.array([start for _, start in run])
            runs.append((size, matrices.reshape(-1, self.p.batch[-1], matrices.shape[1])[:, where]))
        records = [(base[size][0] + at[:, :, None]).reshape(-1, matrices.shape[1]) for size, at in runs]
        costs = [np.broadcast_to(base[size][1], (*at.shape[:2], len(base[size][1]))).ravel() for size, at in runs]
        return np.ascontiguousarray(np.concatenate(records)), np.concatenate(costs)

    def matrices(self) -> Int64:
        """int64[batch, 1 + arguments]: what each matrix adds to the records."""
        grid = np.zeros((1, 1 + len(self.arguments)), np.int64)
        for axis, size in enumerate(self.p.batch):
            step = np.zeros(grid.shape[1], np.int64)
            for name, x in self.p.operands().items():
                step[1 + self.arguments.index(name)] = x.batch_bytes[axis]
            step[1 + ARGUMENTS.index("ahead")] = self.p.weights.batch_bytes[axis]
            grid = (grid[:, None] + np.arange(size)[:, None] * step).reshape(-1, grid.shape[1])
        return grid

    def tile_rows(self, step: Step) -> Int64:
        """int64[tiles, 1 + arguments]: what each tile of rows adds."""
        p, zero = self.p, np.zeros(len(self.sizes), np.int64)
        first = np.concatenate(([0], np.cumsum(self.sizes)))[:-1]
        src = p.src.start_bytes + step.begin * p.src.column_bytes + first * p.src.row_bytes
        weights = p.weights.start_bytes + step.begin * p.weights.row_bytes + zero
        bias = zero if p.bias is None else p.bias.start_bytes + first * p.bias.row_bytes
        dst = p.dst.start_bytes + first * p.dst.row_bytes
        lines = self.ahead_lines()
        share = np.arange(len(first)) % self.chunk * (lines * LINE_BYTES * ((step.end - step.begin) // 8))
        packed = zero + (p.packed.start_bytes + step.begin * p.packed.row_bytes if p.packed else 0)
        others = {n: x.start_bytes + first * x.row_bytes for n, x in zip(p.other_names, p.others, strict=True)}
        columns = {"src": src, "weights": weights, "bias": bias, "dst": dst, "ahead": weights + share, "packed": packed}
        return records_of(self.arguments, columns | others)

    def group_rows(self, step: Step) -> Int64:
        """int64[groups, 1 + arguments]: what each group of columns adds; ahead of it lies the next one."""
        p, number = self.p, np.arange(self.groups)
        width, zero = self.block.vectors * self.lanes, np.zeros(self.groups, np.int64)
        panel = p.weights.panel_bytes if isinstance(p.weights, Panels) else 4 * self.block.panel_vectors * self.lanes
        step_bytes = panel * (self.block.vectors // self.block.panel_vectors)
        bias = zero if p.bias is None else number * width * p.bias.column_bytes
        columns = {
            "weights": number * step_bytes,
            "bias": bias,
            "dst": number * 4 * width,
            "ahead": (number + 1) % self.groups * step_bytes,
            "packed": number * (p.packed.panel_bytes if p.packed else 0),
        }
        others = {n: number * width * x.column_bytes for n, x in zip(p.other_names, p.others, strict=True)}
        return records_of(self.arguments, columns | others)

    def ahead_lines(self) -> int:
        """Cache lines of the next panel that each 8 steps prefetch, so that the tiles of a chunk bring all of it."""
        packed = isinstance(self.p.weights, Panels) and self.block.vectors == self.block.panel_vectors
        if not packed or self.groups == 1 or self.chunk > TILES_TO_HIDE or set(self.items) - {1}:
            return 0
        return -(-8 * 4 * self.block.vectors * self.lanes // LINE_BYTES // self.chunk)

    def specs(self, step: Step, items: int, isa: str, specs: dict[MatmulTileSpec, int]) -> tuple[Int64, Int64]:
        """int64[groups, sizes]: the number of the spec in `specs`, and the cycles that a call is expected to take."""
        p, lanes = self.p, self.lanes
        sizes = sorted(set(self.sizes), reverse=True)
        spec_of, cycles = (np.empty((self.groups, len(sizes)), np.int64) for _ in range(2))
        width = self.block.vectors * lanes
        last = p.n - (self.groups - 1) * width
        for users, columns in ((slice(0, self.groups - 1), width), (slice(self.groups - 1, self.groups), last)):
            for i, rows in enumerate(sizes):
                spec = self.spec(step, rows, columns, items, isa)
                one = spec.depth * step_cycles(rows, spec.vectors, lanes) + CALL_CYCLES
                cycles[users, i] = items * one
                if users.start < users.stop:
                    spec_of[users, i] = specs.setdefault(spec, len(specs))
        return spec_of, cycles

    def spec(self, step: Step, rows: int, columns: int, items: int, isa: str) -> MatmulTileSpec:
        p, b = self.p, self.block
        padded = isinstance(p.weights, Panels)
        panel = p.weights.panel_bytes if isinstance(p.weights, Panels) else 4 * b.panel_vectors * self.lanes
        several = b.vectors > b.panel_vectors
        bias = None
        if p.bias is not None and step.bias:
            bias = Bias(p.bias.row_bytes if rows > 1 else 0, p.bias.column_bytes == 4)
        return MatmulTileSpec(
            isa=isa,
            rows=rows,
            columns=columns,
            depth=step.end - step.begin,
            src_row_bytes=p.src.row_bytes if rows > 1 else 0,
            src_depth_bytes=p.src.column_bytes,
            weights_row_bytes=p.weights.row_bytes,
            panel_vectors=b.panel_vectors,
            panel_bytes=panel if several else 0,
            padded=padded,
            dst_row_bytes=p.dst.row_bytes if rows > 1 else 0,
            bias=bias,
            accumulate=step.accumulate,
            scaled=step.scaled,
            beta=step.beta,
            post_ops=step.post_ops,
            ahead_lines=self.ahead_lines(),
            stream_bytes=self.stream_bytes(step.end - step.begin),
            packs=p.packed is not None,
            items=self.item_steps(items, bias is not None),
        )

    def stream_bytes(self, depth: int) -> int:
        """How far ahead of their use weights are prefetched that no tile before has brought."""
        p = self.p
        if isinstance(p.weights, Panels):
            return STREAM_BYTES if self.sizes == [1] and self.block.vectors > self.block.panel_vectors else 0
        if prefetches_columns(p, self.block) or (packs_aliases(p) and depth < p.k):
            return max(LINE_BYTES, 4 * self.block.vectors * self.lanes)  # of the same rows: in pages in use
        ahead = STREAM_ROWS * p.weights.row_bytes
        return ahead if p.k * p.n >= FEW_WEIGHTS and ahead <= MAX_STREAM_BYTES else 0

    def item_steps(self, items: int, bias: bool) -> Items:
        if items == 1:
            return Items(1, 0, 0, 0, 0)
        p = self.p
        bias_bytes = p.bias.batch_bytes[-1] if bias and p.bias is not None else 0
        return Items(items, p.src.batch_bytes[-1], p.weights.batch_bytes[-1], bias_bytes, p.dst.batch_bytes[-1])
