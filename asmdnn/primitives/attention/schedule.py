"""The plan of attention: a block of rows of a head is one group of records, whose scores stay in L2.

1. Keys, transposed, and values are packed for all heads, as products read them fastest.
2. For every block: scores = query key^T, rows of softmax in place, dst = scores value.  Tiles of both products are
   those of the matmul plans of a block; the records of one block come again for every other one, each thread has scores
   of its own, and no thread waits for another.

Scores are f32.  Where a level multiplies bf16, their powers are rounded into rows of their own, which are src of the
second product, and its sums are divided in the end; else keys and values become f32 as they are packed.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from asmdnn.isa.dot import Types, dot_level
from asmdnn.isa.tiles import BLOCK_TILES, TILE_ROWS
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Int64, Phase, Repeat, View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.planning.rounds import without_barrier
from asmdnn.planning.steps import StepRecords, group_of, step_of
from asmdnn.primitives.attention.counted import KernelNumbers, counted_product, counted_softmax, fill_vectors
from asmdnn.primitives.attention.description import AttentionForward
from asmdnn.primitives.attention.probabilities import SCORES, Mask, Softmax, SoftmaxInParts
from asmdnn.primitives.attention.tensors import SUMS, as_read, outputs_of, part_of, stride
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import try_all
from asmdnn.primitives.core.widening import level_of_tiles
from asmdnn.primitives.products import matmul_tiles
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.reorder.copies import Reordering, add_reorder, between_reorders
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.records import dataclass, replace
from asmdnn.types import F32_BYTES, IsaName, f32

NAME = "attention"
KEYS, VALUES, FUTURE = "packed keys", "packed values", "causal mask"
PANEL_COLUMNS = 32  # of any level
BLOCK_ROWS = BLOCK_TILES * TILE_ROWS  # of tiles of AMX


def is_tiled(plan: Plan, level: IsaName | None) -> bool:
    """Whether some of its products take tiles, those of this level."""
    return any(spec.isa == level for spec in plan.specs)


@dataclass(frozen=True, slots=True)
class RowBlock:
    """`rows` rows of a head from `begin` on, and how many keys they see."""

    begin: int
    rows: int
    keys: int


class AttentionPlan:
    """A plan as it comes together; rows of query, dst and mask are dense; query is of the type that is multiplied."""

    name = NAME
    score_buffers = 1  # of a block, that share L2

    @classmethod
    def of(cls, desc: AttentionForward, passed: Mapping[str, MemoryDesc], types: Types, engine: Engine) -> Plan:
        """The whole plan, of these products; tensors that kernels do not read are copied.  Raises Refused."""
        converted = {"query": types.src, "mask": f32}
        of_types = {name: of_type(t, converted.get(name, t.dtype)) for name, t in passed.items()}
        tensors = {name: as_read(t, name not in ("key", "value"), name == "query") for name, t in of_types.items()}
        made = cls(desc, tensors, types, engine).plan(f"{cls.name}:{dot_level(types, engine.isa)}")
        if is_tiled(made, tiles := level_of_tiles(types, engine)):
            made = replace(made, implementation=f"{cls.name}:{tiles}")
        return between_reorders(made, passed, engine.tuning, isa=engine.isa)

    def __init__(self, desc: AttentionForward, tensors: Mapping[str, MemoryDesc], types: Types, engine: Engine) -> None:
        self.desc, self.tensors, self.engine = desc, tensors, engine
        self.of_one_thread = engine if engine.threads == 1 else replace(engine, threads=1)
        self.types, self.dtype = types, types.src
        self.isa, self.tuning = f32_level(engine.isa), engine.tuning.attention
        self.images, self.heads, self.rows, self.depth = desc.query.dims
        _, self.groups, self.keys, self.width = desc.value.dims
        lanes = lanes_of(self.isa)
        self.score_row = (-(-self.keys // lanes) + 1) * lanes  # one vector more, so that rows do not share sets of L1
        softmax = Softmax if self.dtype == f32 else SoftmaxInParts
        self.softmax = softmax(engine, desc.scale, self.score_row, self.dtype)
        self.block = self.rows_of_block()
        self.last_begin = (self.rows - 1) // self.block * self.block
        self.assembly = Assembly(engine.tuning, engine.isa)
        self.numbers = KernelNumbers()

    def rows_of_block(self) -> int:
        room = self.engine.l2_bytes // self.tuning.scores_share // (F32_BYTES * self.score_row * self.score_buffers)
        most = min(self.tuning.most_rows, max(room, self.tuning.least_rows))
        if level_of_tiles(self.types, self.engine):
            most = most // BLOCK_ROWS * BLOCK_ROWS or most
        return min(self.rows, most)

    def plan(self, name: str) -> Plan:
        packed = self.packed()
        self.pack("key", KEYS, packed[KEYS], (0, 1, 3, 2))
        self.pack("value", VALUES, packed[VALUES], (0, 1, 2, 3))
        self.assembly.scratch |= {name: self.block * size for name, size in self.softmax.scratch.items()}
        self.assembly.per_part = tuple(self.softmax.scratch)
        if self.desc.causal:
            self.assembly.constants[FUTURE] = self.future()
        for i, (blocks, count) in enumerate(self.blocks()):
            phase = self.phase(blocks, count, packed)
            self.assembly.add(without_barrier([phase]) if i else [phase])
        self.assembly.constants |= self.numbers.constants()
        return self.assembly.plan(name, self.tensors, outputs_of(self.tensors))

    def blocks(self) -> list[tuple[RowBlock, int]]:
        """Blocks that differ, and how often each comes: causal ones have no use for keys after their own rows."""
        if self.desc.causal:
            begins = range(0, self.rows, self.block)
            return [(RowBlock(begin, min(self.block, self.rows - begin), self.seen(begin)), 1) for begin in begins]
        count, rest = divmod(self.rows, self.block)
        last = [(RowBlock(count * self.block, rest, self.keys), 1)] if rest else []
        return [(RowBlock(0, self.block, self.keys), count), *last]

    def seen(self, begin: int) -> int:
        """Keys that the block which begins there sees, and some more, to whole panels."""
        needed = begin + self.block + self.keys - self.rows
        return min(self.keys, -(-needed // PANEL_COLUMNS) * PANEL_COLUMNS)

    def packed(self) -> dict[str, MemoryDesc]:
        """The formats that the products of a whole block read fastest."""
        shapes = {KEYS: (self.depth, self.keys), VALUES: (self.keys, self.width)}
        return {name: matmul_tiles.in_panels(dims, self.types, self.engine) for name, dims in shapes.items()}

    def scores(self, block: RowBlock, weights: MemoryDesc) -> Plan:
        """query key^T."""
        src = MemoryDesc((block.rows, self.depth), self.dtype, strides=(self.tensors["query"].strides[2], 1))
        dst = MemoryDesc((block.rows, block.keys), f32, strides=(self.score_row, 1))
        return self.tiles(MatMul(src, part_of(weights, (self.depth, block.keys)), dst))

    def results(self, block: RowBlock, weights: MemoryDesc) -> Plan:
        """Of rows of probabilities, and values."""
        src = MemoryDesc((block.rows, block.keys), self.dtype, strides=(self.score_row, 1))
        whole = self.tensors["dst"]
        dst = MemoryDesc((block.rows, self.width), whole.dtype, strides=(whole.strides[2], 1))
        return self.tiles(MatMul(src, part_of(weights, (block.keys, self.width)), dst), self.softmax.attr(block.rows))

    def tiles(self, desc: MatMul, attr: Attr = NO_ATTR) -> Plan:
        """The plan of one thread that needs nothing but its tensors."""
        for answer in try_all((matmul_tiles.plan,), desc, attr, self.of_one_thread):
            if isinstance(answer, Plan) and not answer.scratch_bytes and not answer.constants:
                return answer
        raise Refused(f"no tiles for {desc}")

    def pack(self, name: str, buffer: str, packed: MemoryDesc, order: Sequence[int]) -> None:
        """A phase that brings all matrices of a tensor, its dims in that order, into a format, one after another."""
        tensor, size = self.tensors[name], packed.size_bytes // packed.dtype.size_bytes
        dims, strides = ([values[dim] for dim in order] for values in (tensor.dims, tensor.strides))
        matrices = MemoryDesc(dims, tensor.dtype, strides=strides, offset0=tensor.offset0)
        blocks = [(dim + 2, block) for dim, block in packed.inner_blocks]
        steps = (tensor.dims[1] * size, size, *packed.strides)
        target = MemoryDesc(dims, packed.dtype, strides=steps, inner_blocks=blocks)
        self.assembly.scratch[buffer] = packed.size_bytes * self.images * tensor.dims[1]
        add_reorder(self.assembly, Reordering(name, matrices, buffer, target, few_sizes=True))

    def future(self) -> Int64:
        """Rows of a mask that a block reads from where its own future begins: f32[block, ..], 0 and then -infinity."""
        width = self.last_begin + self.keys
        visible = self.last_begin + self.keys - self.rows + np.arange(self.block)[:, None]
        table = np.where(np.arange(width + width % 2) <= visible, 0.0, -np.inf).astype(np.float32)
        return table.reshape(-1).view(np.int64)

    @property
    def future_row_bytes(self) -> int:
        width = self.last_begin + self.keys
        return F32_BYTES * (width + width % 2)

    def phase(self, block: RowBlock, blocks: int, packed: Mapping[str, MemoryDesc]) -> Phase:
        """So many blocks of all heads, from the first one on: one group of records again and again."""
        scores, results = self.scores(block, packed[KEYS]), self.results(block, packed[VALUES])
        of_scores = self.product(scores, {"src": "query", "weights": KEYS, "dst": SCORES})
        softmax = self.softmax_step(block)
        steps = (
            *of_scores,
            counted_softmax(softmax, self.numbers) if fill_vectors(of_scores) else softmax,
            *self.product(results, {"weights": VALUES, "dst": "dst", **self.softmax.places}),
        )
        group = group_of(steps)
        views, together = group.arguments, group.records.copy()
        for name, start in self.starts(block).items():
            together[:, [1 + i for i, view in enumerate(views) if view.buffer == name]] += start
        repeats = tuple(self.repeats(views, block.rows, blocks))
        return replace(group, records=together, repeats=repeats, flushes=scores.phases[0].flushes)

    def product(self, plan: Plan, places: Mapping[str, str]) -> Sequence[StepRecords]:
        """The steps of a product; `places` says what its buffers are."""
        return [counted_product(step_of(plan, places), self.numbers, fills_vectors=places["dst"] == SCORES)]

    def starts(self, block: RowBlock) -> dict[str, int]:
        """Where the block's rows begin in a head, in bytes."""
        tensors = {name: self.tensors[name] for name in ("query", "dst")}
        return {name: t.dtype.size_bytes * (t.offset0 + block.begin * t.strides[2]) for name, t in tensors.items()}

    def softmax_step(self, block: RowBlock) -> StepRecords:
        """The rows of scores."""
        masks = []
        if "mask" in self.tensors:
            mask, row_bytes = self.tensors["mask"], F32_BYTES * stride(self.tensors["mask"], 2)
            start = F32_BYTES * mask.offset0 + block.begin * row_bytes
            masks.append(Mask("mask", start, row_bytes, is_one=mask.dims[3] == 1 < self.keys))
        if FUTURE in self.assembly.constants:
            start = F32_BYTES * (self.last_begin - block.begin)
            masks.append(Mask(FUTURE, start, self.future_row_bytes, is_one=False))
        sums = None
        if SUMS in self.tensors:
            left, row_bytes = self.tensors[SUMS], F32_BYTES * stride(self.tensors[SUMS], 2)
            sums = Mask(SUMS, F32_BYTES * left.offset0 + block.begin * row_bytes, row_bytes, is_one=True)
        return self.softmax.step(block.rows, block.keys, masks, sums)

    def repeats(self, views: Sequence[View], rows: int, blocks: int) -> Iterator[Repeat]:
        """Images, groups of heads, heads of a group, blocks of rows."""
        together = self.heads // self.groups
        of_rows = [name for name in ("query", "dst", "mask", SUMS) if name in self.tensors]
        moves: dict[str, tuple[int, ...]] = {name: self.moves_of(name, together, rows) for name in of_rows}
        moves |= {name: (*steps, 0, 0) for name, steps in self.matrices().items()}
        moves[FUTURE] = (0, 0, 0, -F32_BYTES * rows)
        for i, times in enumerate((self.images, self.groups, together, blocks)):
            if times > 1:
                yield Repeat(times, tuple(moves[view.buffer][i] if view.buffer in moves else 0 for view in views))

    def matrices(self) -> dict[str, tuple[int, int]]:
        """Bytes from image to image, and from group to group, of what products take as weights."""
        return {name: self.packed_matrices(name) for name in (KEYS, VALUES)}

    def packed_matrices(self, name: str) -> tuple[int, int]:
        size = self.assembly.scratch[name] // (self.images * self.groups)
        return self.groups * size, size

    def moves_of(self, name: str, together: int, rows: int) -> tuple[int, int, int, int]:
        tensor = self.tensors[name]
        head = stride(tensor, 1)
        image, step = stride(tensor, 0), stride(tensor, 2)
        size = tensor.dtype.size_bytes
        return (size * image, size * together * head, size * head, size * rows * step)
