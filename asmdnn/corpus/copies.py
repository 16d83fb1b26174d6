"""The specs of reorders that keep bits: copies and transposes around what a vector, a line and the registers hold."""

from collections.abc import Iterator

from asmdnn.generators.move.im2col import ABREAST, Im2colSpec
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.generators.move.spread import STEPS, SpreadSpec
from asmdnn.generators.move.transpose import UNITS, TransposeSpec
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vectors import vector_bytes

REORDER_ISA = "avx2"  # serves every level
WIDE_ISA = "avx512_core"


def copy_specs() -> Iterator[RowsSpec]:
    """Widths around one vector and around all registers; one row and several; rows apart, touching and again."""
    for zero in (False, True):
        for row_bytes in (*range(1, 34), 63, 96, 124, 480, 508, 512, 516, 544):
            yield RowsSpec(
                isa=REORDER_ISA, rows=3, row_bytes=row_bytes, src_step=row_bytes + 12, dst_step=row_bytes + 4, zero=zero
            )
        for rows in (1, 2, 64):
            yield RowsSpec(isa=REORDER_ISA, rows=rows, row_bytes=20, src_step=20, dst_step=20, zero=zero)
        yield RowsSpec(isa=REORDER_ISA, rows=4, row_bytes=32, src_step=36, dst_step=200, zero=zero)
    yield RowsSpec(isa=REORDER_ISA, rows=4, row_bytes=32, src_step=0, dst_step=32)  # the same row again and again
    for row_bytes in (20, 544):
        step = row_bytes + 12
        yield RowsSpec(isa=REORDER_ISA, rows=3, row_bytes=row_bytes, src_step=step, dst_step=step, in_place=True)


def spread_specs() -> Iterator[SpreadSpec]:
    """Rows of every size to every distance; one row, those of a register and some, many."""
    for step in STEPS:
        whole = vector_bytes(REORDER_ISA) // step
        for row_bytes in range(1, step):
            for rows in (1, 2 * whole - 1, 5 * whole + 3):
                yield SpreadSpec(isa=REORDER_ISA, rows=rows, row_bytes=row_bytes, dst_step=step)


def transpose_specs() -> Iterator[TransposeSpec]:
    """Units of all sizes; one tile and its edges, a line and its edges, both sides looped over; touching and apart."""
    for unit in UNITS:
        line, tile = LINE_BYTES // unit, max(1, 16 // unit)
        short = sorted({1, 2, 3, tile - 1 or 1, tile, tile + 1, 2 * tile, 2 * tile + 1, line})
        for a in short:
            for b in (*short, line + 1, 2 * line + 3):
                for rows, columns in {(a, b), (b, a)} if a <= line else ():
                    apart = 0 if (a + b) % 2 else unit
                    yield TransposeSpec(
                        isa=REORDER_ISA, unit_bytes=unit, rows=rows, columns=columns,
                        src_row_bytes=unit * columns + 3 * apart, dst_row_bytes=unit * rows + apart,
                    )  # fmt: skip
        for rows, stored in {(3, 4), (tile, 2 * tile), (tile - 1 or 1, line), (3, line), (line - 1 or 1, line)}:
            for columns in (1, tile + 1, line + 1, 2 * line + 3) if rows < stored else ():
                apart = 0 if (rows + columns) % 2 else unit
                yield TransposeSpec(
                    isa=REORDER_ISA, unit_bytes=unit, rows=rows, columns=columns, src_row_bytes=unit * columns + apart,
                    dst_row_bytes=unit * stored + apart, zero_rows=stored - rows,
                )  # fmt: skip
    yield from by_lines(REORDER_ISA)
    yield from grouped(REORDER_ISA)


def by_lines(isa: str) -> Iterator[TransposeSpec]:
    """Rows that are read a line at a time: whole tiles and edges, both sides looped over, zeros."""
    sizes = ((4, 16, 35, 0), (4, 37, 16, 0), (4, 13, 18, 3), (1, 64, 70, 0), (8, 9, 8, 0))
    for unit, rows, columns, zero_rows in sizes:
        yield TransposeSpec(
            isa=isa, unit_bytes=unit, rows=rows, columns=columns, src_row_bytes=unit * columns + unit,
            dst_row_bytes=unit * (rows + zero_rows), zero_rows=zero_rows, by_lines=True,
        )  # fmt: skip


def grouped(isa: str) -> Iterator[TransposeSpec]:
    """Columns in groups: side by side in dst, as in blocks of input channels, and apart; tails; a loop over rows."""
    for unit, rows, group, groups in ((4, 8, 9, 4), (4, 3, 3, 8), (4, 21, 4, 4), (8, 5, 3, 4), (32, 2, 1, 2)):
        width, columns = unit * rows, group * groups
        beside = (unit * columns, groups * width, width)
        apart = (unit * (columns + 1), width + 2 * unit, group * (width + 2 * unit) + unit)
        for src_row, dst_row, group_bytes in (beside, apart):
            yield TransposeSpec(
                isa=isa, unit_bytes=unit, rows=rows, columns=columns, src_row_bytes=src_row, dst_row_bytes=dst_row,
                group=group, group_bytes=group_bytes,
            )  # fmt: skip


def wide_copy_specs() -> Iterator[RowsSpec]:
    """What 64 bytes change: rests around them, a block of the loop, zeros, and streaming."""
    for row_bytes in (8, 33, 63, 64, 65, 96, 127, 130, 508, 512, 516, 576, 1100):
        yield RowsSpec(isa=WIDE_ISA, rows=3, row_bytes=row_bytes, src_step=row_bytes + 12, dst_step=row_bytes + 4)
    for row_bytes in (64, 1100):
        yield RowsSpec(isa=WIDE_ISA, rows=2, row_bytes=row_bytes, src_step=0, dst_step=row_bytes, zero=True)
    for row_bytes in (64, 576, 1088):
        yield RowsSpec(
            isa=WIDE_ISA, rows=3, row_bytes=row_bytes, src_step=row_bytes + 7, dst_step=row_bytes + 64, streaming=True
        )


def wide_transpose_specs() -> Iterator[TransposeSpec]:
    """One, two and four quarters stacked, whole and with edges; both sides looped over; zeros; touching and apart."""
    for unit in UNITS[:-1]:
        line, tile = LINE_BYTES // unit, 16 // unit
        short = ((tile, 4 * tile), (tile - 1 or 1, 4 * tile + 1), (2 * tile, 2 * tile + 1), (2 * tile - 1, tile))
        long = ((line, 2 * line + 3), (line - 1, line), (2 * line + 3, tile + 1), (3 * line + 1, 2 * tile - 1))
        for i, (rows, columns) in enumerate(dict.fromkeys((*short, *long))):
            apart = unit * (i % 2)
            yield TransposeSpec(
                isa=WIDE_ISA, unit_bytes=unit, rows=rows, columns=columns, src_row_bytes=unit * columns + 3 * apart,
                dst_row_bytes=unit * rows + apart,
            )  # fmt: skip
        for rows, stored in dict.fromkeys(((3, 4), (line - 1, line))):
            yield TransposeSpec(
                isa=WIDE_ISA, unit_bytes=unit, rows=rows, columns=line + 1, src_row_bytes=unit * (line + 1),
                dst_row_bytes=unit * stored + unit, zero_rows=stored - rows,
            )  # fmt: skip
        yield TransposeSpec(
            isa=WIDE_ISA, unit_bytes=unit, rows=line, columns=line + 1, src_row_bytes=unit * (line + 1),
            dst_row_bytes=LINE_BYTES, streaming=True,
        )  # fmt: skip
    yield TransposeSpec(isa=WIDE_ISA, unit_bytes=UNITS[-1], rows=3, columns=5, src_row_bytes=160, dst_row_bytes=96)
    yield from by_lines(WIDE_ISA)
    yield from grouped(WIDE_ISA)


def im2col_specs() -> Iterator[Im2colSpec]:
    """Runs that fill a part of a line, lines, and more; more masks than registers; whole windows, which overlap or are
    apart; pixels around those that go abreast."""
    shapes = ((1, 42, 44, 7), (42, 44, 44, 7), (21, 24, 24, 7), (64, 64, 64, 2), (96, 96, 96, 3), (9, 12, 12, 3))
    for src_step, run, piece, runs in (*shapes, (3, 1, 4, 5), (200, 130, 132, 2), (12, 66, 68, 11), (5, 30, 32, 20)):
        for pixels in (1, ABREAST, 2 * ABREAST + 3):
            lines = -(-runs * piece // LINE_BYTES)
            yield Im2colSpec(
                isa=WIDE_ISA, pixels=pixels, offsets=tuple(r * (run + 37) for r in range(runs)), run_bytes=run,
                piece_bytes=piece, src_step=src_step, dst_step=LINE_BYTES * (lines + 1 - lines % 2),
            )  # fmt: skip


FAMILIES = {
    f"copy-{REORDER_ISA}": copy_specs,
    f"transpose-{REORDER_ISA}": transpose_specs,
    f"spread-{REORDER_ISA}": spread_specs,
    f"copy-{WIDE_ISA}": wide_copy_specs,
    f"im2col-{WIDE_ISA}": im2col_specs,
    f"transpose-{WIDE_ISA}": wide_transpose_specs,
}
