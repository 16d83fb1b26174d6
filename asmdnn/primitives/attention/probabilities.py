"""What becomes of the rows of scores of a block before values are multiplied by them."""

from collections.abc import Sequence

import numpy as np

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.functions.elementwise import ElementwiseSpec
from asmdnn.generators.functions.postops import BinaryOp, EltwiseOp, Operand, PostOp
from asmdnn.generators.functions.softmax import SoftmaxSpec
from asmdnn.generators.functions.softmax_parts import ROWS, SoftmaxPartsSpec
from asmdnn.isa.elements import narrowing_level
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import View
from asmdnn.planning.steps import StepRecords
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.post_ops import Binary
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.elementwise.schedule import cost as elementwise_cost
from asmdnn.primitives.softmax.schedule import cost
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES, DataType, f32

SCORES, ROUNDED, FACTORS = "scores", "rounded scores", "factors of rows"


@dataclass(frozen=True, slots=True)
class Mask:
    """Numbers that are added to rows: in which buffer, where those of the block's first row begin, how far rows lie
    apart; is_one: a number for all keys."""

    buffer: str
    start_bytes: int
    row_bytes: int
    is_one: bool


class Softmax:
    """Probabilities, of the type that is multiplied, take the place of scores, in rows of `row` elements.

    scratch: bytes of a row in each buffer.  result: what the second product reads.  Kernels may leave the logsumexp of
    rows, too.
    """

    result = SCORES
    first_operand = 2  # of masks, in the frame

    def __init__(self, engine: Engine, scale: float, row: int, dtype: DataType) -> None:
        self.engine, self.scale, self.row, self.dtype = engine, scale, row, dtype
        self.scratch = {SCORES: F32_BYTES * row}

    def attr(self, rows: int) -> Attr:
        """What the second product does in the end."""
        return Attr()

    @property
    def places(self) -> dict[str, str]:
        """Where it finds src, and what that takes."""
        return {"src": self.result}

    def kernel(self, rows: int, keys: int, masks: tuple[PostOp, ...], sums: Operand | None) -> tuple[KernelSpec, int]:
        """Of some rows, and its expected cycles."""
        scaling = EltwiseOp("linear", self.scale, 0.0, 1.0)
        src_row, dst_row = self.rows_bytes
        spec = SoftmaxSpec(
            isa=f32_level(self.engine.isa), rows=rows, elements=keys, src_row_bytes=src_row, dst_row_bytes=dst_row,
            before=(scaling, *masks), logsumexp=sums,
        )  # fmt: skip
        return spec, cost(spec, self.engine.tuning.softmax)

    @property
    def rows_bytes(self) -> tuple[int, int]:
        """Of scores, and of what is made of them."""
        return F32_BYTES * self.row, self.dtype.size_bytes * self.row

    def step(self, rows: int, keys: int, masks: Sequence[Mask], sums: Mask | None = None) -> StepRecords:
        """All rows of a block, some in each record.  sums: where the logsumexp of rows lie, if they are kept."""
        beside = [*masks, *([sums] if sums else [])]
        operands = [Operand(i, x.row_bytes, 0, x.is_one) for i, x in enumerate(beside, self.first_operand)]
        added = tuple(BinaryOp("add", operand) for operand in operands[: len(masks)])
        last = operands[-1] if sums else None
        some = self.engine.tuning.elementwise.most_rows
        specs: dict[KernelSpec, int] = {}
        records, cycles = [], []
        for first in range(0, rows, some):
            count = min(some, rows - first)
            spec, taken = self.kernel(count, keys, added, last)
            offsets = (x.start_bytes + first * x.row_bytes for x in beside)
            moved = (first * row_bytes for row_bytes in self.moves)
            records.append([specs.setdefault(spec, len(specs)), *moved, *offsets])
            cycles.append(taken)
        views = tuple(View(name) for name in (*self.buffers, *(x.buffer for x in beside)))
        return StepRecords(tuple(specs), np.array(records, np.int64), np.array(cycles, np.int64), views)

    @property
    def buffers(self) -> tuple[str, ...]:
        """The kernel's arguments in front of masks."""
        return SCORES, self.result

    @property
    def moves(self) -> tuple[int, ...]:
        """Bytes from row to row in each of these."""
        return self.rows_bytes


class Recomputed(Softmax):
    """Probabilities of rows whose logsumexp the forward pass has left: e^(masks(scores * scale) - logsumexp)."""

    def kernel(self, rows: int, keys: int, masks: tuple[PostOp, ...], sums: Operand | None) -> tuple[KernelSpec, int]:
        assert sums is not None
        src_row_bytes, dst_row_bytes = self.rows_bytes
        scaling, power = EltwiseOp("linear", self.scale, 0.0, 1.0), EltwiseOp("exp", 0.0, 0.0, 1.0)
        chain = (scaling, *masks, BinaryOp("sub", sums), power)
        src = Operand(0, src_row_bytes, 0, False)
        spec = ElementwiseSpec(
            isa=f32_level(self.engine.isa), rows=rows, elements=keys, src=src, dst_row_bytes=dst_row_bytes, chain=chain
        )
        return spec, elementwise_cost(spec, self.engine.tuning.elementwise)


class SoftmaxInParts(Softmax):
    """Rounded rows before they are divided by their sums, which the second product does to its rows."""

    result = ROUNDED
    first_operand = 3

    def __init__(self, engine: Engine, scale: float, row: int, dtype: DataType) -> None:
        super().__init__(engine, scale, row, dtype)
        self.scratch = {ROUNDED: dtype.size_bytes * row, **self.scratch, FACTORS: F32_BYTES}

    def attr(self, rows: int) -> Attr:
        return Attr([Binary("mul", MemoryDesc((rows, 1), f32, "ab"))])

    @property
    def places(self) -> dict[str, str]:
        return {"src": ROUNDED, "binary_0": FACTORS}

    def kernel(self, rows: int, keys: int, masks: tuple[PostOp, ...], sums: Operand | None) -> tuple[KernelSpec, int]:
        level, (src_row, dst_row) = narrowing_level(self.dtype.name, self.engine.isa), self.rows_bytes
        spec = SoftmaxPartsSpec(
            isa=level, rows=rows, elements=keys, src_row_bytes=src_row, dst_row_bytes=dst_row, scale=self.scale,
            kind=self.dtype.name, masks=masks, logsumexp=sums,
        )  # fmt: skip
        tuning, vectors = self.engine.tuning.softmax, -(-keys // lanes_of(level))
        return spec, tuning.call_cycles + rows * (vectors * tuning.vector_cycles + tuning.row_cycles // ROWS)

    @property
    def buffers(self) -> tuple[str, ...]:
        return SCORES, ROUNDED, FACTORS

    @property
    def moves(self) -> tuple[int, ...]:
        return (*self.rows_bytes, F32_BYTES)
