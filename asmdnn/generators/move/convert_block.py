"""What kernels that change the element type have in common: a block of elements, where they lie, what is touched.

| argument | dtype[shape] | what it is |
|---|---|---|
| src            | src type[rows, columns] | steps as the spec says; no other byte is read |
| dst            | dst type[...]           | the same; no other byte is written; read where the conversion has a sum |
| scales         | f32                     | read if scaled; a step of 0 is for all that share one; sum factors after |
| src_zero_point | s32[1]                  | read if the conversion has it |
| dst_zero_point | s32[1]                  | the same |

The formula is that of conversion.py.
"""

from typing import Any, Protocol

from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.move.conversion import Argument, Conversion
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

ARGUMENTS = tuple(argument.name.lower() for argument in Argument)
Steps = tuple[int, int]  # bytes from row to row, from column to column


def ranges(argument: int, rows: int, columns: int, steps: Steps, size: int) -> tuple[Range, ...]:
    """The bytes of all elements; each row as one range where columns are dense."""
    row, column = steps
    if column == size:
        return tuple(Range(argument, r * row, r * row + columns * size) for r in range(rows))
    starts = sorted({r * row + c * column for r in range(rows) for c in range(columns)})
    return tuple(Range(argument, start, start + size) for start in starts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertBlock:
    """What both kernels have: `rows` x `columns` elements, and how far apart they lie in every argument."""

    isa: str
    conversion: Conversion
    rows: int
    columns: int
    src_steps: Steps
    dst_steps: Steps
    scale_steps: Steps = (0, 0)
    frame = ARGUMENTS

    @property
    def block_name(self) -> str:
        def apart(steps: Steps, dense: int) -> str:
            return f"{steps[0]}" if steps[1] == dense else f"{steps[0]}by{steps[1]}"

        src_bytes, dst_bytes = self.conversion.sizes
        scales = f"_w{apart(self.scale_steps, 0)}" if self.conversion.scaled else ""
        steps = f"_s{apart(self.src_steps, src_bytes)}_d{apart(self.dst_steps, dst_bytes)}{scales}"
        return f"{self.conversion}_{self.rows}x{self.columns}{steps}__{self.isa}"

    def footprint(self) -> Footprint:
        conversion, shape = self.conversion, (self.rows, self.columns)
        writes = self.writes()
        reads = ranges(Argument.SRC, *shape, self.src_steps, conversion.sizes[0])
        if conversion.sum:
            reads += writes
        if conversion.scaled:
            scales = tuple(dict.fromkeys(ranges(Argument.SCALES, *shape, self.scale_steps, F32_BYTES)))
            factor_bytes = conversion.sum_factors
            factors = (
                Range(x.argument, x.begin_bytes + factor_bytes, x.end_bytes + factor_bytes)
                for x in scales
                if factor_bytes
            )
            reads += (*scales, *factors)
        for used, argument in (
            (conversion.src_zero_point, Argument.SRC_ZERO_POINT),
            (conversion.dst_zero_point, Argument.DST_ZERO_POINT),
        ):
            reads += (Range(argument, 0, 4),) * used
        return Footprint(reads, writes)

    def writes(self) -> tuple[Range, ...]:
        return ranges(Argument.DST, self.rows, self.columns, self.dst_steps, self.conversion.sizes[1])

    def pointers(self, asm: Assembler) -> dict[Argument, Any]:
        """Registers with the addresses of the arguments that move from row to row."""
        used = (Argument.SRC, Argument.DST, Argument.SCALES)[: 3 if self.conversion.scaled else 2]
        found = {argument: asm.gp.take(argument.name.lower()) for argument in used}
        for argument, pointer in found.items():
            asm.MOV(pointer, mem(asm.frame, 8 * argument))
        return found

    def steps(self, argument: Argument) -> Steps:
        return (self.src_steps, self.dst_steps, self.scale_steps)[argument]

    def at(self, argument: Argument, row: int, column: int) -> int:
        row_bytes, column_bytes = self.steps(argument)
        return row * row_bytes + column * column_bytes


class BlockCode(Protocol):
    """Emits blocks of a kernel relative to its pointers."""

    pointers: dict[Argument, Any]

    def block(self, rows: int, columns: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TransposedBlock(ConvertBlock):
    """A block whose rows are the columns of dst: dst[c, r] = src[r, c]."""

    def writes(self) -> tuple[Range, ...]:
        row, column = self.dst_steps
        return ranges(Argument.DST, self.columns, self.rows, (column, row), self.conversion.sizes[1])

    def emit_blocks(self, asm: Assembler, body: BlockCode, by_rows: bool, step: int) -> None:
        """A loop over `step` rows, or columns, at a time, and the rest."""
        blocks, rest = divmod(self.rows if by_rows else self.columns, step)
        left = asm.gp.take("blocks left")
        if blocks:
            asm.MOV(left, blocks)
            with asm.loop(left, "blocks"):
                body.block(*((step, self.columns) if by_rows else (self.rows, step)))
                for argument, pointer in body.pointers.items():
                    if distance := step * self.steps(argument)[0 if by_rows else 1]:
                        asm.ADD(pointer, distance)
        if rest:
            body.block(*((rest, self.columns) if by_rows else (self.rows, rest)))
        asm.ret()
