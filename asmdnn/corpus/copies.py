"""The specs of reorders that keep bits: copies and transposes around what a vector, a line and the registers hold."""

from collections.abc import Iterator

from asmdnn.generators.move.rows import RowsSpec
from asmdnn.generators.move.transpose import UNITS, TransposeSpec
from asmdnn.isa.lines import LINE_BYTES

REORDER_ISA = "avx2"  # serves every level
WIDE_ISA = "avx512_core"


def copy_specs() -> Iterator[RowsSpec]:
    """Widths around one vector and around all registers; one row and several; rows apart, touching and again."""
    for zero in (False, True):
        for row_bytes in (*range(1, 34), 63, 96, 124, 480, 508, 512, 516, 544):
            yield RowsSpec(REORDER_ISA, 3, row_bytes, row_bytes + 12, row_bytes + 4, zero)
        for rows in (1, 2, 64):
            yield RowsSpec(REORDER_ISA, rows, 20, 20, 20, zero)
        yield RowsSpec(REORDER_ISA, 4, 32, 36, 200, zero)
    yield RowsSpec(REORDER_ISA, 4, 32, 0, 32)  # the same row again and again
    for row_bytes in (20, 544):
        yield RowsSpec(REORDER_ISA, 3, row_bytes, row_bytes + 12, row_bytes + 4, in_place=True)


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
                        REORDER_ISA, unit, rows, columns, unit * columns + 3 * apart, unit * rows + apart
                    )
        for rows, stored in {(3, 4), (tile, 2 * tile), (tile - 1 or 1, line), (3, line), (line - 1 or 1, line)}:
            for columns in (1, tile + 1, line + 1, 2 * line + 3) if rows < stored else ():
                apart = 0 if (rows + columns) % 2 else unit
                steps = (unit * columns + apart, unit * stored + apart)
                yield TransposeSpec(REORDER_ISA, unit, rows, columns, *steps, zero_rows=stored - rows)
    yield from by_lines(REORDER_ISA)
    yield from grouped(REORDER_ISA)


def by_lines(isa: str) -> Iterator[TransposeSpec]:
    """Rows that are read a line at a time: whole tiles and edges, both sides looped over, zeros."""
    sizes = ((4, 16, 35, 0), (4, 37, 16, 0), (4, 13, 18, 3), (1, 64, 70, 0), (8, 9, 8, 0))
    for unit, rows, columns, zero_rows in sizes:
        steps = (unit * columns + unit, unit * (rows + zero_rows))
        yield TransposeSpec(isa, unit, rows, columns, *steps, zero_rows=zero_rows, by_lines=True)


def grouped(isa: str) -> Iterator[TransposeSpec]:
    """Columns in groups: side by side in dst, as in blocks of input channels, and apart; tails; a loop over rows."""
    for unit, rows, group, groups in ((4, 8, 9, 4), (4, 3, 3, 8), (4, 21, 4, 4), (8, 5, 3, 4), (32, 2, 1, 2)):
        width, columns = unit * rows, group * groups
        yield TransposeSpec(isa, unit, rows, columns, unit * columns, groups * width, group=group, group_bytes=width)
        steps = (unit * (columns + 1), width + 2 * unit)
        yield TransposeSpec(isa, unit, rows, columns, *steps, group=group, group_bytes=group * steps[1] + unit)


def wide_copy_specs() -> Iterator[RowsSpec]:
    """What 64 bytes change: rests around them, a block of the loop, zeros, and streaming."""
    for row_bytes in (8, 33, 63, 64, 65, 96, 127, 130, 508, 512, 516, 576, 1100):
        yield RowsSpec(WIDE_ISA, 3, row_bytes, row_bytes + 12, row_bytes + 4)
    for row_bytes in (64, 1100):
        yield RowsSpec(WIDE_ISA, 2, row_bytes, 0, row_bytes, zero=True)
    for row_bytes in (64, 576, 1088):
        yield RowsSpec(WIDE_ISA, 3, row_bytes, row_bytes + 7, row_bytes + 64, streaming=True)


def wide_transpose_specs() -> Iterator[TransposeSpec]:
    """One, two and four quarters stacked, whole and with edges; both sides looped over; zeros; touching and apart."""
    for unit in UNITS[:-1]:
        line, tile = LINE_BYTES // unit, 16 // unit
        short = ((tile, 4 * tile), (tile - 1 or 1, 4 * tile + 1), (2 * tile, 2 * tile + 1), (2 * tile - 1, tile))
        long = ((line, 2 * line + 3), (line - 1, line), (2 * line + 3, tile + 1), (3 * line + 1, 2 * tile - 1))
        for i, (rows, columns) in enumerate(dict.fromkeys((*short, *long))):
            apart = unit * (i % 2)
            yield TransposeSpec(WIDE_ISA, unit, rows, columns, unit * columns + 3 * apart, unit * rows + apart)
        for rows, stored in dict.fromkeys(((3, 4), (line - 1, line))):
            steps = (unit * (line + 1), unit * stored + unit)
            yield TransposeSpec(WIDE_ISA, unit, rows, line + 1, *steps, zero_rows=stored - rows)
        yield TransposeSpec(WIDE_ISA, unit, line, line + 1, unit * (line + 1), LINE_BYTES, streaming=True)
    yield TransposeSpec(WIDE_ISA, UNITS[-1], 3, 5, 160, 96)
    yield from by_lines(WIDE_ISA)
    yield from grouped(WIDE_ISA)


FAMILIES = {
    f"copy-{REORDER_ISA}": copy_specs,
    f"transpose-{REORDER_ISA}": transpose_specs,
    f"copy-{WIDE_ISA}": wide_copy_specs,
    f"transpose-{WIDE_ISA}": wide_transpose_specs,
}
