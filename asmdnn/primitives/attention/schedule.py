"""The plan of attention: a block of rows of a head is one group of records, whose scores stay in L2.

1. Keys, transposed, and values are packed for all heads, as products read them fastest.
2. For every block: scores = query key^T, rows of softmax in place, dst = scores value.  Tiles of both products are
   those of the matmul plans of a block; the records of one block come again for every other one, each thread has scores
   of its own, and no thread waits for another.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from asmdnn.generators.functions.postops import BinaryOp, EltwiseOp, Operand, PostOp
from asmdnn.generators.functions.softmax import SoftmaxSpec
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Int64, Phase, Repeat, View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.planning.rounds import apart
from asmdnn.planning.steps import StepRecords, group_of, step_of
from asmdnn.primitives.attention.description import AttentionForward
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.elementwise.schedule import check_tensors
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.formats import row_major
from asmdnn.primitives.implementation import implementation, try_all
from asmdnn.primitives.products import matmul_tiles
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.reorder.copies import Reordering, add_reorder, between_reorders
from asmdnn.primitives.softmax.schedule import cost as softmax_cost
from asmdnn.types import F32_BYTES, f32

NAME = "attention"
KEYS, VALUES, SCORES, FUTURE = "packed keys", "packed values", "scores", "causal mask"
INPUTS = ("query", "key", "value", "dst", "mask")
PANEL_COLUMNS = 32  # of any level


@implementation(NAME, f32_level)
def plan(desc: AttentionForward, attr: Attr, engine: Engine) -> Plan:
    """Plan an attention.  Raises Refused."""
    if attr.post_ops or attr.quantizes:
        raise Refused("post-ops, scales and zero points are not implemented")
    asked = {name: getattr(desc, name) for name in INPUTS if getattr(desc, name) is not None}
    passed = {name: row_major(t.dims, t) if t.is_any else t for name, t in asked.items()}
    check_tensors(passed, "dst")
    name = f"{NAME}:{f32_level(engine.isa)}"
    if 0 in desc.dst.dims:
        return Assembly(engine.tuning, engine.isa).plan(name, passed, ("dst",))
    tensors = {name: t if is_read(name, t) else row_major(t.dims, t) for name, t in passed.items()}
    made = AttentionPlan(desc, tensors, engine).plan(name)
    return between_reorders(made, passed, engine.tuning, isa=engine.isa)


def is_read(name: str, tensor: MemoryDesc) -> bool:
    """Whether kernels read rows of the tensor where they are."""
    dense = tensor.strides[3] == 1 or tensor.dims[3] == 1
    return not tensor.inner_blocks and (dense or name in ("key", "value"))


@dataclass(frozen=True, slots=True)
class RowBlock:
    """`rows` rows of a head from `begin` on, and how many keys they see."""

    begin: int
    rows: int
    keys: int


class AttentionPlan:
    """A plan as it comes together; rows of query, dst and the mask are dense."""

    def __init__(self, desc: AttentionForward, tensors: Mapping[str, MemoryDesc], engine: Engine) -> None:
        self.desc, self.tensors, self.engine = desc, tensors, engine
        self.isa, self.tuning = f32_level(engine.isa), engine.tuning.attention
        self.images, self.heads, self.rows, self.depth = desc.query.dims
        _, self.groups, self.keys, self.width = desc.value.dims
        lanes = lanes_of(self.isa)
        self.score_row = (-(-self.keys // lanes) + 1) * lanes  # one vector more, so that rows do not share sets of L1
        room = engine.l2_bytes // self.tuning.scores_share // (F32_BYTES * self.score_row)
        self.block = min(self.rows, self.tuning.most_rows, max(room, self.tuning.least_rows))
        self.last_begin = (self.rows - 1) // self.block * self.block
        self.assembly = Assembly(engine.tuning, engine.isa)

    def plan(self, name: str) -> Plan:
        packed = self.packed()
        self.pack("key", KEYS, packed[KEYS], (0, 1, 3, 2))
        self.pack("value", VALUES, packed[VALUES], (0, 1, 2, 3))
        self.assembly.scratch[SCORES] = F32_BYTES * self.block * self.score_row
        self.assembly.per_part = (SCORES,)
        if self.desc.causal:
            self.assembly.constants[FUTURE] = self.future()
        for i, (blocks, count) in enumerate(self.blocks()):
            phase = self.phase(blocks, count, packed)
            self.assembly.add(apart([phase]) if i else [phase])
        return self.assembly.plan(name, self.tensors, ("dst",))

    def blocks(self) -> list[tuple[RowBlock, int]]:
        """Blocks that differ, and how often each comes: causal ones have no use for keys behind their own rows."""
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
        whole = RowBlock(0, self.block, self.keys)
        free = (MemoryDesc(dims, f32, "any") for dims in ((self.depth, self.keys), (self.keys, self.width)))
        products = (self.scores(whole, next(free)), self.results(whole, next(free)))
        return {name: x.tensors["weights"] for name, x in zip((KEYS, VALUES), products, strict=True)}

    def scores(self, block: RowBlock, weights: MemoryDesc) -> Plan:
        """query key^T."""
        src = MemoryDesc((block.rows, self.depth), f32, strides=(self.tensors["query"].strides[2], 1))
        dst = MemoryDesc((block.rows, block.keys), f32, strides=(self.score_row, 1))
        return self.tiles(MatMul(src, part_of(weights, (self.depth, block.keys)), dst))

    def results(self, block: RowBlock, weights: MemoryDesc) -> Plan:
        """scores value."""
        src = MemoryDesc((block.rows, block.keys), f32, strides=(self.score_row, 1))
        dst = MemoryDesc((block.rows, self.width), f32, strides=(self.tensors["dst"].strides[2], 1))
        return self.tiles(MatMul(src, part_of(weights, (block.keys, self.width)), dst))

    def tiles(self, desc: MatMul) -> Plan:
        """The plan of one thread that needs nothing but its tensors."""
        for answer in try_all((matmul_tiles.plan,), desc, Attr(), replace(self.engine, threads=1)):
            if isinstance(answer, Plan) and not answer.scratch_bytes and not answer.constants:
                return answer
        raise Refused(f"no tiles for {desc}")

    def pack(self, name: str, buffer: str, packed: MemoryDesc, order: Sequence[int]) -> None:
        """A phase that brings all matrices of a tensor, its dims in that order, into a format, one after another."""
        tensor, size = self.tensors[name], packed.size_bytes // F32_BYTES
        dims, strides = ([values[dim] for dim in order] for values in (tensor.dims, tensor.strides))
        matrices = MemoryDesc(dims, f32, strides=strides, offset0=tensor.offset0)
        blocks = [(dim + 2, block) for dim, block in packed.inner_blocks]
        target = MemoryDesc(dims, f32, strides=(self.groups * size, size, *packed.strides), inner_blocks=blocks)
        self.assembly.scratch[buffer] = F32_BYTES * self.images * self.groups * size
        add_reorder(self.assembly, Reordering(name, matrices, buffer, target))

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
        steps = (
            step_of(scores, {"src": "query", "weights": KEYS, "dst": SCORES}),
            self.softmax_step(block),
            step_of(results, {"src": SCORES, "weights": VALUES, "dst": "dst"}),
        )
        group = group_of(steps)
        views, together = group.arguments, group.records.copy()
        for name in ("query", "dst"):
            move = F32_BYTES * (self.tensors[name].offset0 + block.begin * self.tensors[name].strides[2])
            together[:, [1 + i for i, view in enumerate(views) if view.buffer == name]] += move
        repeats = tuple(self.repeats(views, block.rows, blocks))
        return replace(group, records=together, repeats=repeats, flushes=scores.phases[0].flushes)

    def softmax_step(self, block: RowBlock) -> StepRecords:
        """The rows of scores in place, in some records."""
        operands = [name for name in ("mask", FUTURE) if name in self.tensors or name in self.assembly.constants]
        moves = {name: self.operand_rows(name) for name in operands}
        starts = {"mask": 0, FUTURE: F32_BYTES * (self.last_begin - block.begin)}
        if "mask" in self.tensors:
            starts["mask"] = F32_BYTES * self.tensors["mask"].offset0 + block.begin * moves["mask"]
        before: list[PostOp] = [EltwiseOp("linear", self.desc.scale, 0.0, 1.0)]
        for argument, name in enumerate(operands, 2):
            element = name == "mask" and self.tensors[name].dims[3] == 1 < self.keys
            before.append(BinaryOp("add", Operand(argument, moves[name], 0, element)))
        row_bytes, some = F32_BYTES * self.score_row, self.engine.tuning.elementwise.most_rows
        specs: dict[SoftmaxSpec, int] = {}
        records, cycles = [], []
        for first in range(0, block.rows, some):
            rows = min(some, block.rows - first)
            spec = SoftmaxSpec(self.isa, rows, block.keys, row_bytes, row_bytes, tuple(before))
            offsets = [starts[name] + first * moves[name] for name in operands]
            records.append([specs.setdefault(spec, len(specs)), first * row_bytes, first * row_bytes, *offsets])
            cycles.append(softmax_cost(spec, self.engine.tuning.softmax))
        views = tuple(View(name) for name in (SCORES, SCORES, *operands))
        return StepRecords(tuple(specs), np.array(records, np.int64), np.array(cycles, np.int64), views)

    def operand_rows(self, name: str) -> int:
        """Bytes from a row of a mask to the next one."""
        return self.future_row_bytes if name == FUTURE else F32_BYTES * stride(self.tensors[name], 2)

    def repeats(self, views: Sequence[View], rows: int, blocks: int) -> Iterator[Repeat]:
        """Images, groups of heads, heads of a group, blocks of rows."""
        together = self.heads // self.groups
        moves = {name: self.moves_of(name, together, rows) for name in ("query", "dst", "mask") if name in self.tensors}
        for name, plane in ((KEYS, self.assembly.scratch[KEYS]), (VALUES, self.assembly.scratch[VALUES])):
            matrix = plane // (self.images * self.groups)
            moves[name] = (self.groups * matrix, matrix, 0, 0)
        moves[FUTURE] = (0, 0, 0, -F32_BYTES * rows)
        for i, times in enumerate((self.images, self.groups, together, blocks)):
            if times > 1:
                yield Repeat(times, tuple(moves[view.buffer][i] if view.buffer in moves else 0 for view in views))

    def moves_of(self, name: str, together: int, rows: int) -> tuple[int, int, int, int]:
        tensor = self.tensors[name]
        head = stride(tensor, 1)
        image, step = stride(tensor, 0), stride(tensor, 2)
        return (F32_BYTES * image, F32_BYTES * together * head, F32_BYTES * head, F32_BYTES * rows * step)


def part_of(packed: MemoryDesc, dims: tuple[int, int]) -> MemoryDesc:
    """The first rows and columns of packed weights."""
    if packed.is_any or packed.dims == dims:
        return packed
    return MemoryDesc(dims, f32, strides=packed.strides, inner_blocks=packed.inner_blocks)


def stride(tensor: MemoryDesc, dim: int) -> int:
    """0 where a dim is repeated."""
    return tensor.strides[dim] if tensor.dims[dim] > 1 else 0
