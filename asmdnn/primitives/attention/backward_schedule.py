"""The plan of backward attention: all heads that share keys are one group of records, whose scores stay in L2.

1. Keys, turned and as they are, and turned values are packed, as products read them fastest.
2. For a block of rows of a head: probabilities as in the forward pass, or by the logsumexp that it has left; their
   gradients, a product; those of scores, by the kernel of softmax's gradient, in place; then dQ of the block, and its
   shares in dK and dV, which the first block of a group writes and every other one adds to.

Rows are f32 where products take them: others are copied, and keys and values become f32 as they are packed.  What
differs where tiles of AMX take bf16 is in backward_tiles.py.

So dK and dV are sums in the order of heads and rows, for any number of threads, which share images and groups.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from asmdnn.generators.functions.postops import Operand
from asmdnn.generators.functions.row_gradient import RowGradientSpec
from asmdnn.generators.functions.row_programs import RowPrograms, scaled_softmax_programs
from asmdnn.isa.dot import Types
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import Phase, Repeat, View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.planning.steps import StepRecords, group_of, steps_of
from asmdnn.planning.unhindered import without_needless_barriers
from asmdnn.primitives.attention.backward_description import AttentionBackward
from asmdnn.primitives.attention.probabilities import SCORES, Recomputed, Softmax
from asmdnn.primitives.attention.schedule import FUTURE, KEYS, VALUES, AttentionPlan, RowBlock, is_tiled
from asmdnn.primitives.attention.tensors import SUMS, as_read, part_of, stride
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.post_ops import Sum
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import try_all
from asmdnn.primitives.core.widening import level_of_tiles, level_that_rounds
from asmdnn.primitives.products import matmul_tiles
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.row_gradients.schedule import cost
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.records import replace
from asmdnn.types import F32_BYTES, f32

KEY_ROWS, GRADIENTS = "packed rows of keys", "gradients of scores"
OUTPUTS = ("diff_query", "diff_key", "diff_value")
OF_ROWS = ("query", "diff_dst", "diff_query", "mask", SUMS)  # tensors that a block has rows of
PLACED = ("mask", SUMS)  # of these softmax_step has said where rows of a block begin


class PackedTensor(NamedTuple):
    """A tensor that is packed, turned or as it is."""

    tensor: str
    turned: bool


class BackwardPlan(AttentionPlan):
    """A plan as it comes together; rows of all tensors are dense."""

    score_buffers = 2  # probabilities and their gradients
    packs: ClassVar[Mapping[str, PackedTensor]] = {
        KEYS: PackedTensor("key", turned=True),
        KEY_ROWS: PackedTensor("key", turned=False),
        VALUES: PackedTensor("value", turned=True),
    }
    of_scores, rows_of_scores = GRADIENTS, f32  # what gradients of scores become, of that type

    @classmethod
    def whole(cls, desc: AttentionBackward, passed: Mapping[str, MemoryDesc], types: Types, engine: Engine) -> Plan:
        """The whole plan, of these products; tensors that kernels do not read are copied.  Raises Refused."""
        read = dict.fromkeys(("query", "diff_dst"), types.src)
        of_types = {
            name: t if name in ("key", "value") else of_type(t, read.get(name, f32)) for name, t in passed.items()
        }
        tensors = {name: as_read(t, multiplied=name in read) for name, t in of_types.items()}
        made = cls(desc, tensors, types, engine).plan(f"{cls.name}:{f32_level(engine.isa)}")
        if is_tiled(made, tiles := level_of_tiles(types, engine)):
            made = replace(made, implementation=f"{cls.name}:{tiles}")
        return between_reorders(made, passed, engine.tuning, isa=engine.isa)

    def __init__(
        self, desc: AttentionBackward, tensors: Mapping[str, MemoryDesc], types: Types, engine: Engine
    ) -> None:
        super().__init__(desc.forward(), {**tensors, "dst": tensors["diff_dst"]}, types, engine)
        self.tensors = tensors
        self.softmax = (Recomputed if SUMS in tensors else Softmax)(engine, desc.scale, self.score_row, f32)
        self.formats = self.packed()

    def plan(self, name: str) -> Plan:
        for buffer, pack in self.packs.items():
            self.pack(pack.tensor, buffer, self.formats[buffer], (0, 1, 3, 2) if pack.turned else (0, 1, 2, 3))
        rooms = self.rooms()
        self.assembly.scratch |= rooms
        self.assembly.per_part = (*rooms,)
        if self.desc.causal:
            self.assembly.constants[FUTURE] = self.future()
        self.assembly.add([self.group()])
        return without_needless_barriers(self.assembly.plan(name, self.tensors, OUTPUTS))

    def rooms(self) -> dict[str, int]:
        """What each part has of its own, in bytes."""
        return dict.fromkeys((SCORES, GRADIENTS), F32_BYTES * self.block * self.score_row)

    def packed(self) -> dict[str, MemoryDesc]:
        """The formats that the products of a whole block read fastest."""
        found = {}
        for buffer, pack in self.packs.items():
            rows, columns = self.tensors[pack.tensor].dims[2:]
            dims = (columns, rows) if pack.turned else (rows, columns)
            found[buffer] = matmul_tiles.in_panels(dims, self.types, self.engine)
        return found

    def by_scores(self, block: RowBlock, weights: MemoryDesc) -> Plan:
        """diff_dst value^T."""
        src = MemoryDesc((block.rows, self.width), self.dtype, strides=(self.tensors["diff_dst"].strides[2], 1))
        dst = MemoryDesc((block.rows, block.keys), f32, strides=(self.score_row, 1))
        return self.tiles(MatMul(src, part_of(weights, (self.width, block.keys)), dst))

    def by_query(self, block: RowBlock, weights: MemoryDesc) -> Plan:
        """dS key."""
        src = MemoryDesc((block.rows, block.keys), self.rows_of_scores, strides=(self.score_row, 1))
        dst = MemoryDesc((block.rows, self.depth), f32, strides=(self.tensors["diff_query"].strides[2], 1))
        return self.tiles(MatMul(src, part_of(weights, (block.keys, self.depth)), dst))

    def by_keys(self, block: RowBlock, rows: str, result: str, adds: bool) -> list[StepRecords]:
        """The block's share in dK or dV: scores turned, times rows of `rows`."""
        keys = block.keys
        into, of = self.tensors[result], self.tensors[rows]
        columns = into.dims[3]
        src = MemoryDesc((keys, block.rows), f32, strides=(1, self.score_row))
        weights = MemoryDesc((block.rows, columns), f32, strides=(of.strides[2], 1))
        dst = MemoryDesc((keys, columns), f32, strides=(into.strides[2], 1))
        made = self.added(MatMul(src, weights, dst), Attr([Sum(1.0)] if adds else []))
        self.assembly.scratch |= {
            name: max(size, self.assembly.scratch.get(name, 0)) for name, size in made.scratch_bytes.items()
        }
        self.assembly.per_part = tuple(dict.fromkeys((*self.assembly.per_part, *made.scratch_bytes)))
        scores = SCORES if rows == "diff_dst" else GRADIENTS
        return steps_of(made, {"src": scores, "weights": rows, "dst": result})

    def added(self, desc: MatMul, attr: Attr) -> Plan:
        """The plan of one thread that may have a copy of src."""
        for answer in try_all((matmul_tiles.plan,), desc, attr, replace(self.engine, threads=1)):
            if isinstance(answer, Plan) and not answer.constants and {*answer.scratch_bytes} <= {"packed src"}:
                return answer
        raise Refused(f"no tiles for {desc}")

    def group(self) -> Phase:
        """All blocks of all heads of a group, one after the other, again and again for images and groups."""
        made: list[StepRecords] = []
        for head in range(self.heads // self.groups):
            for begin in reversed(range(0, self.rows, self.block)):  # first the last one, which sees all keys
                rows = min(self.block, self.rows - begin)
                keys = self.seen(begin) if self.desc.causal else self.keys
                made += self.of_block(RowBlock(begin, rows, keys), head, bool(made))
        phase = group_of(made)
        return replace(phase, repeats=tuple(self.all_groups(phase.arguments)))

    def of_block(self, block: RowBlock, head: int, adds: bool) -> Iterator[StepRecords]:
        """What follows one another, moved to where the block is.  adds: to dK and dV, which are there already."""
        for step in (*self.to_scores(block), *self.from_scores(block, adds)):
            yield self.moved(step, block, head)

    def to_scores(self, block: RowBlock) -> Sequence[StepRecords]:
        """Probabilities, and what their gradients are made of."""
        scores, found = self.scores(block, self.formats[KEYS]), self.by_scores(block, self.formats[VALUES])
        return (
            *steps_of(scores, {"src": "query", "weights": KEYS, "dst": SCORES}),
            self.softmax_step(block),
            *steps_of(found, {"src": "diff_dst", "weights": VALUES, "dst": GRADIENTS}),
        )

    def from_scores(self, block: RowBlock, adds: bool) -> Sequence[StepRecords]:
        """Gradients of scores, and the products that go on from these."""
        return (
            self.gradient_step(block),
            *self.of_query(block),
            *self.by_keys(block, "diff_dst", "diff_value", adds),
            *self.by_keys(block, "query", "diff_key", adds),
        )

    def of_query(self, block: RowBlock) -> Sequence[StepRecords]:
        places = {"src": self.of_scores, "weights": KEY_ROWS, "dst": "diff_query"}
        return steps_of(self.by_query(block, self.formats[KEY_ROWS]), places)

    def moved(self, step: StepRecords, block: RowBlock, head: int) -> StepRecords:
        """Records of a step of the block of that head of its group."""
        records = step.records.copy()
        for i, view in enumerate(step.views):
            if view.buffer in self.tensors:
                tensor = self.tensors[view.buffer]
                at = 0 if view.buffer in PLACED else tensor.offset0
                if view.buffer in OF_ROWS:
                    at += head * stride(tensor, 1)
                    at += 0 if view.buffer in PLACED else block.begin * tensor.strides[2]
                records[:, 1 + i] += tensor.dtype.size_bytes * at
        return replace(step, records=records)

    def gradient_step(self, block: RowBlock) -> StepRecords:
        """Rows of gradients by probabilities, which become those by scores."""
        programs: RowPrograms = scaled_softmax_programs(self.desc.scale)
        row_bytes, dtype = F32_BYTES * self.score_row, self.rows_of_scores
        moves = row_bytes, dtype.size_bytes * self.score_row, row_bytes
        types = () if dtype == f32 else (f32.name, dtype.name, f32.name)
        isa = level_that_rounds([dtype], self.engine).isa
        some, operands = self.engine.tuning.elementwise.most_rows, (Operand(2, row_bytes, 0, False),)
        specs: dict[RowGradientSpec, int] = {}
        records, cycles = [], []
        for first in range(0, block.rows, some):
            rows = min(some, block.rows - first)
            spec = RowGradientSpec(
                isa=isa, what="softmaxback", along="rows", rows=rows, elements=block.keys, src_row_bytes=row_bytes,
                dst_row_bytes=moves[1], operands=operands, types=types, **programs._asdict(),
            )  # fmt: skip
            records.append([specs.setdefault(spec, len(specs)), *[first * move for move in moves]])
            cycles.append(cost(spec))
        views = (View(GRADIENTS), View(self.of_scores), View(SCORES))
        return StepRecords(tuple(specs), np.array(records, np.int64), np.array(cycles, np.int64), views)

    def all_groups(self, views: Sequence[View]) -> Iterator[Repeat]:
        """Images, and groups of heads."""
        shared, moves = self.heads // self.groups, dict[str, tuple[int, int]]()
        for name, tensor in self.tensors.items():
            heads = shared if name in OF_ROWS else 1
            size = tensor.dtype.size_bytes
            moves[name] = size * stride(tensor, 0), size * heads * stride(tensor, 1)
        for name in self.packs:
            image = self.assembly.scratch[name] // self.images
            moves[name] = image, image // self.groups
        for i, times in enumerate((self.images, self.groups)):
            if times > 1:
                yield Repeat(times, tuple(moves.get(view.buffer, (0, 0))[i] for view in views))
