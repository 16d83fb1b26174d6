"""The plan of backward attention: all heads that share keys are one group of records, whose scores stay in L2.

1. Keys, turned and as they are, and turned values are packed, as products read them fastest.
2. For a block of rows of a head: probabilities as in the forward pass, or by the logsumexp that it has left; their
   gradients, a product; those of scores, by the kernel of softmax's gradient, in place; then dQ of the block, and its
   shares in dK and dV, which the first block of a group writes and every other one adds to.

Rows are f32 where products take them: others are copied, and keys and values become f32 as they are packed.

So dK and dV are sums in the order of heads and rows, for any number of threads, which share images and groups.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from asmdnn.generators.functions.postops import Operand
from asmdnn.generators.functions.row_gradient import RowGradientSpec
from asmdnn.generators.functions.row_programs import RowPrograms, scaled_softmax_programs
from asmdnn.isa.dot import F32
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Phase, Repeat, View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.planning.steps import StepRecords, group_of, steps_of
from asmdnn.planning.unhindered import without_needless_barriers
from asmdnn.primitives.attention.backward_description import AttentionBackward
from asmdnn.primitives.attention.probabilities import SCORES, Recomputed
from asmdnn.primitives.attention.schedule import FUTURE, KEYS, AttentionPlan, RowBlock
from asmdnn.primitives.attention.tensors import SUMS, as_read, part_of, stride
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.attributes.post_ops import Sum
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation, try_all
from asmdnn.primitives.elementwise.schedule import check_tensors
from asmdnn.primitives.products import matmul_tiles
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.row_gradients.schedule import cost
from asmdnn.primitives.shapes.formats import of_type, row_major
from asmdnn.records import replace
from asmdnn.types import F32_BYTES, FLOAT_NAMES, f32

KEY_ROWS, VALUES, GRADIENTS = "packed rows of keys", "packed values", "gradients of scores"
OUTPUTS = ("diff_query", "diff_key", "diff_value")
INPUTS = ("query", "key", "value", "diff_dst", "mask", SUMS)
OF_ROWS = ("query", "diff_dst", "diff_query", "mask", SUMS)  # tensors that a block has rows of
PLACED = ("mask", SUMS)  # of these softmax_step has said where rows of a block begin


@implementation("attention", f32_level)
def plan(desc: AttentionBackward, attr: Attr, engine: Engine) -> Plan:
    """Plan a backward attention.  Raises Refused."""
    refuse_attr(attr, "a gradient")
    asked = {name: getattr(desc, name) for name in (*INPUTS, *OUTPUTS) if getattr(desc, name) is not None}
    passed = {name: row_major(t.dims, t) if t.is_any else t for name, t in asked.items()}
    for name in OUTPUTS:
        check_tensors(passed, name, FLOAT_NAMES)
    implementation = f"attention:{f32_level(engine.isa)}"
    if 0 in (*desc.query.dims, *desc.value.dims):
        if any(passed[name].nelems() for name in OUTPUTS):
            raise Refused("query or value has no elements, of which there are no sums")
        return Assembly(engine.tuning, engine.isa).plan(implementation, passed, OUTPUTS)
    computed = {name: t if name in ("key", "value") else of_type(t, f32) for name, t in passed.items()}
    tensors = {name: as_read(t, multiplied=name in ("query", "diff_dst")) for name, t in computed.items()}
    made = BackwardPlan(desc, tensors, engine).plan(implementation)
    return between_reorders(made, passed, engine.tuning, isa=engine.isa)


class BackwardPlan(AttentionPlan):
    """A plan as it comes together; rows of all tensors are dense."""

    score_buffers = 2  # probabilities and their gradients

    def __init__(self, desc: AttentionBackward, tensors: Mapping[str, MemoryDesc], engine: Engine) -> None:
        super().__init__(desc.forward(), {**tensors, "dst": tensors["diff_dst"]}, F32, engine)
        self.tensors = tensors
        if SUMS in tensors:
            self.softmax = Recomputed(engine, desc.scale, self.score_row, f32)

    def plan(self, name: str) -> Plan:
        packed = self.packed()
        self.pack("key", KEYS, packed[KEYS], (0, 1, 3, 2))
        self.pack("key", KEY_ROWS, packed[KEY_ROWS], (0, 1, 2, 3))
        self.pack("value", VALUES, packed[VALUES], (0, 1, 3, 2))
        rows_bytes = F32_BYTES * self.block * self.score_row
        self.assembly.scratch |= {SCORES: rows_bytes, GRADIENTS: rows_bytes}
        self.assembly.per_part = (SCORES, GRADIENTS)
        if self.desc.causal:
            self.assembly.constants[FUTURE] = self.future()
        self.assembly.add([self.group(packed)])
        return without_needless_barriers(self.assembly.plan(name, self.tensors, OUTPUTS))

    def packed(self) -> dict[str, MemoryDesc]:
        """The formats that the products of a whole block read fastest."""
        shapes = {KEYS: (self.depth, self.keys), KEY_ROWS: (self.keys, self.depth), VALUES: (self.width, self.keys)}
        return {name: matmul_tiles.in_panels(dims, self.types, self.engine) for name, dims in shapes.items()}

    def by_scores(self, block: RowBlock, weights: MemoryDesc) -> Plan:
        """diff_dst value^T."""
        src = MemoryDesc((block.rows, self.width), f32, strides=(self.tensors["diff_dst"].strides[2], 1))
        dst = MemoryDesc((block.rows, block.keys), f32, strides=(self.score_row, 1))
        return self.tiles(MatMul(src, part_of(weights, (self.width, block.keys)), dst))

    def by_query(self, block: RowBlock, weights: MemoryDesc) -> Plan:
        """dS key."""
        src = MemoryDesc((block.rows, block.keys), f32, strides=(self.score_row, 1))
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

    def group(self, packed: Mapping[str, MemoryDesc]) -> Phase:
        """All blocks of all heads of a group, one after the other, again and again for images and groups."""
        made: list[StepRecords] = []
        for head in range(self.heads // self.groups):
            for begin in reversed(range(0, self.rows, self.block)):  # first the last one, which sees all keys
                rows = min(self.block, self.rows - begin)
                keys = self.seen(begin) if self.desc.causal else self.keys
                made += self.of_block(RowBlock(begin, rows, keys), head, bool(made), packed)
        phase = group_of(made)
        return replace(phase, repeats=tuple(self.all_groups(phase.arguments)))

    def of_block(
        self, block: RowBlock, head: int, adds: bool, packed: Mapping[str, MemoryDesc]
    ) -> Iterator[StepRecords]:
        """What follows one another, moved to where the block is.  adds: to dK and dV, which are there already."""
        scores, found = self.scores(block, packed[KEYS]), self.by_scores(block, packed[VALUES])
        steps = [
            *steps_of(scores, {"src": "query", "weights": KEYS, "dst": SCORES}),
            self.softmax_step(block),
            *steps_of(found, {"src": "diff_dst", "weights": VALUES, "dst": GRADIENTS}),
            self.gradient_step(block),
            *steps_of(self.by_query(block, packed[KEY_ROWS]),
                      {"src": GRADIENTS, "weights": KEY_ROWS, "dst": "diff_query"}),
        ]  # fmt: skip
        for rows, result in (("diff_dst", "diff_value"), ("query", "diff_key")):
            steps += self.by_keys(block, rows, result, adds)
        for step in steps:
            yield self.moved(step, block, head)

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
                records[:, 1 + i] += F32_BYTES * at
        return replace(step, records=records)

    def gradient_step(self, block: RowBlock) -> StepRecords:
        """Rows of gradients by probabilities, which become those by scores, in place."""
        programs: RowPrograms = scaled_softmax_programs(self.desc.scale)
        row_bytes = F32_BYTES * self.score_row
        some, operands = self.engine.tuning.elementwise.most_rows, (Operand(2, row_bytes, 0, False),)
        specs: dict[RowGradientSpec, int] = {}
        records, cycles = [], []
        for first in range(0, block.rows, some):
            rows = min(some, block.rows - first)
            spec = RowGradientSpec(
                isa=self.isa, what="softmaxback", along="rows", rows=rows, elements=block.keys, src_row_bytes=row_bytes,
                dst_row_bytes=row_bytes, operands=operands, **programs._asdict(),
            )  # fmt: skip
            records.append([specs.setdefault(spec, len(specs)), *[first * row_bytes] * 3])
            cycles.append(cost(spec))
        views = (View(GRADIENTS), View(GRADIENTS), View(SCORES))
        return StepRecords(tuple(specs), np.array(records, np.int64), np.array(cycles, np.int64), views)

    def all_groups(self, views: Sequence[View]) -> Iterator[Repeat]:
        """Images, and groups of heads."""
        shared, moves = self.heads // self.groups, dict[str, tuple[int, int]]()
        for name, tensor in self.tensors.items():
            heads = shared if name in OF_ROWS else 1
            moves[name] = F32_BYTES * stride(tensor, 0), F32_BYTES * heads * stride(tensor, 1)
        for name in (KEYS, KEY_ROWS, VALUES):
            matrix = self.assembly.scratch[name] // (self.images * self.groups)
            moves[name] = self.groups * matrix, matrix
        for i, times in enumerate((self.images, self.groups)):
            if times > 1:
                yield Repeat(times, tuple(moves.get(view.buffer, (0, 0))[i] for view in views))
