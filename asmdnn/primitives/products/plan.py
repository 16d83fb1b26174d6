"""The plan of a matrix product: what is packed before, whether the sum over k is split, and what happens at the end.

The words of an implementation's name say what the plan does: `pack_src`, `pack_weights`, `tiles`, `split_k`,
`outer`, `dots`, `unpack_dst`, and `swap` if it computes dst^T = weights^T src^T.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from math import prod

import numpy as np

from asmdnn.generators.dot.matmul_shape import ARGUMENTS
from asmdnn.isa.dot import F32, dot_level
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import Int64, Phase, flushing, of_one_width, views
from asmdnn.planning.plan import Plan
from asmdnn.primitives.convolution.tiles import balanced
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.implementation import Refusal
from asmdnn.primitives.products.blocks import (
    FEW_ROW_TILES,
    L1_SETS_BYTES,
    choose_block,
    choose_splits,
    needs_pack,
    packs_aliases,
    panel_columns,
)
from asmdnn.primitives.products.outer import is_outer, outer_phases, src_aliases, weights_alias
from asmdnn.primitives.products.partial import dots, reads_dots, reads_rows, rows_of_weights, split
from asmdnn.primitives.products.product import Matrix, Panels, Product, matrices_desc, panels_of, panels_tag
from asmdnn.primitives.products.rounds import runs_of
from asmdnn.primitives.products.schedule import Ending, schedule
from asmdnn.primitives.reorder.schedule import reorder_phases
from asmdnn.types import f32

MAX_OFFSET = 2**31 - 1  # displacements in code are 32 bits
TILE_ROWS = 24  # the most that a tile has
ALIAS_BYTES = 2048  # rows so far apart, or a multiple, share few sets of L1
ALIAS_ROWS, ALIAS_COLUMNS = 16, 512  # of products that gain 2 to 7% from a copy of src whose rows do not
ALIAS_COPY_BYTES = 64 << 20  # more memory than that is not worth the gain
GROUP_L2 = 4  # weights are packed a group at a time that fills so many L2s; twice that where packing takes longest


class Refused(Exception):
    """Why a product cannot be planned; caught by `plan_product`."""


def plan_product(
    p: Product, ending: Ending, tensors: Mapping[str, MemoryDesc], engine: Engine, outputs: tuple[str, ...] = ("dst",)
) -> Plan | Refusal:
    """The plan for resolved tensors, or a refusal with its reason.  `p` names the tensors as its buffers."""
    assembly = Assembly(engine, ending)
    try:
        assembly.product(p)
    except Refused as reason:
        return Refusal(f"tiles:{assembly.engine.isa}", str(reason))
    return assembly.plan(tensors, outputs)


def reach(p: Product) -> None:
    """Refuse tiles whose displacements do not fit into 32 bits."""
    for name, x in p.operands().items():
        if isinstance(x, Panels) and x.row_bytes != 4 * x.columns:
            raise Refused(f"the rows of a panel of {name} are not dense")
        row = TILE_ROWS * x.row_bytes + 16 * (x.column_bytes if isinstance(x, Matrix) else x.panel_bytes)
        if row > MAX_OFFSET:
            raise Refused(f"the rows of a tile of {name} are more than 2 GiB apart")


class Assembly:
    """Phases, kernels and scratch as they come together; the only thing here that changes."""

    def __init__(self, engine: Engine, ending: Ending) -> None:
        self.engine, self.ending = replace(engine, isa=dot_level(F32, engine.isa)), ending
        self.lanes = lanes_of(self.engine.isa)
        self.words: list[str] = []
        self.phases: list[Phase] = []
        self.scratch: dict[str, int] = {}
        self.constants: dict[str, Int64] = {}

    def plan(self, tensors: Mapping[str, MemoryDesc], outputs: tuple[str, ...]) -> Plan:
        name = f"{'+'.join(dict.fromkeys(self.words)) or 'nothing'}:{self.engine.isa}"
        nothing = [""] * len(ARGUMENTS)
        empty = Phase((), views(nothing), np.zeros((0, 1 + len(nothing)), np.int64), np.zeros(0, np.int32))
        phases = flushing(of_one_width(self.phases or [empty]))
        return Plan(name, phases, tensors, self.constants, self.scratch, outputs)

    def add(self, phases: list[Phase]) -> None:
        self.phases += phases

    def room(self, name: str, size_bytes: int) -> str:
        """The name of a scratch buffer of that size; phases that do not need it at the same time share it."""
        names = (name if i == 1 else f"{name} {i}" for i in count(1))
        free = next(x for x in names if self.scratch.get(x, size_bytes) == size_bytes)
        self.scratch[free] = size_bytes
        return free

    def reorder(self, source: str, src: MemoryDesc, target: str, dst: MemoryDesc, word: str) -> None:
        """A phase that brings `source` into the format of the scratch or tensor `target`."""
        self.words.append(word)
        self.add(reorder_phases(src, dst, (source, target)))

    def product(self, p: Product) -> None:
        """Everything for a product; nothing if dst is empty."""
        reach(p)
        if min(p.m, p.n, *p.batch) > 0:
            self.multiply(p.folded())

    def multiply(self, p: Product) -> None:
        """Everything for a product whose batch is folded."""
        if p.dst.column_bytes != 4 and p.n > 1:
            rows_are_dense = p.dst.row_bytes == 4 and all(x.row_bytes in (0, 4) for x in p.others)
            if rows_are_dense and isinstance(p.weights, Matrix) and not p.batch:
                self.words.append("swap")
                p = p.transposed(p.weights)
            else:
                self.with_dst_in_scratch(p)
                return
        if p.bias is not None and p.bias.column_bytes not in (0, 4):
            p = replace(p, bias=self.dense_copy(p, p.bias, p.n, "bias", "pack_bias"))
        apart = [x.column_bytes not in (0, 4) for x in p.others]
        if any(apart):
            others = zip(p.others, apart, strict=True)
            dense = [self.dense_copy(p, x, p.n, x.buffer, "pack_operands") if a else x for x, a in others]
            p = replace(p, others=tuple(dense))
        self.tiles(p)

    def with_dst_in_scratch(self, p: Product) -> None:
        dense = [4 * p.m * p.n]
        for size in reversed(p.batch[1:]):
            dense.insert(0, dense[0] * size)
        dst = Matrix("", 0, tuple(dense[: len(p.batch)]), 4 * p.n, 4)
        outer, inner = (matrices_desc(x, p.batch, p.m, p.n) for x in (p.dst, dst))
        dst = replace(dst, buffer=self.room("row-major dst", inner.size_bytes))
        if self.ending.reads_dst:
            self.reorder(p.dst.buffer, outer, dst.buffer, inner, "pack_dst")
        self.multiply(replace(p, dst=dst))
        self.reorder(dst.buffer, inner, p.dst.buffer, outer, "unpack_dst")

    def dense_copy(self, p: Product, x: Matrix, columns: int, name: str, word: str) -> Matrix:
        """A copy of an operand in scratch whose columns are dense, and whose rows do not alias."""
        rows = p.m if x.row_bytes else 1
        row = columns + 16 if 4 * columns % ALIAS_BYTES == 0 else columns
        kept = [size if step else 1 for size, step in zip(p.batch, x.batch_bytes, strict=True)]
        strides = [rows * row] * len(kept)
        for i in reversed(range(len(kept) - 1)):
            strides[i] = strides[i + 1] * kept[i + 1]
        source = matrices_desc(x, p.batch, rows, columns)
        target = MemoryDesc((*kept, rows, columns), f32, strides=(*strides, row, 1))
        buffer = self.room(f"packed {name}", target.size_bytes)
        self.reorder(x.buffer, source, buffer, target, word)
        steps = tuple(4 * s if step else 0 for s, step in zip(strides, x.batch_bytes, strict=True))
        return Matrix(buffer, 0, steps, 4 * row if x.row_bytes else 0, 4)

    def tiles(self, p: Product) -> None:
        """src and weights packed where that pays, and the tiles."""
        isa, l2 = self.engine.isa, self.engine.l2_bytes
        if isinstance(p.weights, Matrix) and reads_dots(turned := p.transposed(p.weights), self.lanes):
            dots(self, turned)
            return
        if reads_dots(p, self.lanes):
            dots(self, p)
            return
        if is_outer(p, isa) and self.ending == Ending():
            self.outer(p)
            return
        if src_needs_pack(p):
            p = replace(p, src=self.dense_copy(p, p.src, p.k, "src", "pack_src"))
        if reads_rows(p):
            rows_of_weights(self, p)
            return
        splits = choose_splits(p, isa)
        if not needs_pack(p, choose_block(p, isa)):
            self.split_or_not(p, splits)
            return
        apart = isinstance(p.weights, Matrix) and (p.weights.column_bytes != 4 or shares_weights(p))
        for part, columns in self.groups(p, at_once=splits > 1 or bool(p.batch)):
            if apart:
                self.pack(part, columns)
                self.split_or_not(replace(part, weights=columns), splits)
                continue
            packing = replace(part, packed=columns)
            sizes = runs_of(p.m, choose_block(packing, isa).rows)
            tiles = sum(times for _, times in sizes)
            first, at_once = packing.rows(0, sizes[0][0]), tiles > FEW_ROW_TILES or not packs_aliases(packing)
            self.words += ["packing_tiles", "tiles"]
            self.add(schedule(first, self.ending, isa, l2, one_range=at_once))
            if first.m < p.m:
                self.add(schedule(replace(part.rows(first.m, p.m), weights=columns), self.ending, isa, l2))

    def outer(self, p: Product) -> None:
        """A product of few steps of depth, dst row after row."""
        if src_aliases(p):
            p = replace(p, src=self.dense_copy(p, p.src, p.k, "src", "pack_src"))
        if weights_alias(p, self.engine.isa):
            ((part, columns),) = self.groups(p, at_once=True)
            self.pack(part, columns)
            p = replace(p, weights=columns)
        self.words.append("outer")
        self.add(outer_phases(p, self.engine.isa))

    def split_or_not(self, p: Product, splits: int) -> None:
        if splits > 1:
            split(self, p, splits)
        else:
            self.words.append("tiles")
            self.add(schedule(p, self.ending, self.engine.isa, self.engine.l2_bytes))

    def groups(self, p: Product, at_once: bool) -> Iterator[tuple[Product, Panels]]:
        """The product in groups of columns, and where in scratch each group's weights are to be packed."""
        x, width = p.weights, panel_columns(p.n, self.lanes)
        assert isinstance(x, Matrix)
        panels, panel_bytes = -(-p.n // width), 4 * p.k * width
        few = p.m <= FEW_ROW_TILES * choose_block(p, self.engine.isa).rows
        group = GROUP_L2 * (1 + few) * self.engine.l2_bytes
        most = panels if at_once else max(1, group // max(panel_bytes, 1))
        begin = 0
        for size in balanced(panels, most):
            end = min(p.n, begin + size * width)
            part = p.columns(begin, end, replace(x, start_bytes=x.start_bytes + begin * x.column_bytes))
            dims = matrices_desc(x, p.batch, p.k, end - begin).dims
            target = MemoryDesc(dims, f32, panels_tag(len(dims), width))
            packed = panels_of(self.room("packed weights", target.size_bytes), target)
            assert packed
            yield part, packed
            begin = end

    def pack(self, p: Product, panels: Panels) -> None:
        """A phase of its own that packs the weights."""
        assert isinstance(p.weights, Matrix)
        source = matrices_desc(p.weights, p.batch, p.k, p.n)
        target = MemoryDesc(source.dims, f32, panels_tag(source.ndims, panels.columns))
        self.reorder(p.weights.buffer, source, panels.buffer, target, "pack_weights")


def shares_weights(p: Product) -> bool:
    """Whether several matrices of the batch have the same weights, which one of them alone may pack."""
    return any(size > 1 and not step for size, step in zip(p.batch, p.weights.batch_bytes, strict=True))


def src_needs_pack(p: Product) -> bool:
    """Whether reading src in place costs more than a copy: its elements of a row lie apart, and it is read often, or
    all rows of a tile share the sets of L1, and it is read more often still."""
    apart = p.src.column_bytes not in (0, 4) and p.k > 8 and p.n >= 64
    alias = p.src.column_bytes == 4 and p.src.row_bytes > 0 and p.src.row_bytes % L1_SETS_BYTES == 0
    size = 4 * p.m * p.k * prod(p.batch)
    return apart or (alias and p.m >= ALIAS_ROWS and p.n >= ALIAS_COLUMNS and size <= ALIAS_COPY_BYTES)
