"""The specs of two and of four rows that are interleaved, and of three planes and their pixels."""

from collections.abc import Iterator
from itertools import product

from asmdnn.corpus.conv import of_levels
from asmdnn.corpus.copies import REORDER_ISA
from asmdnn.generators.move.conversion import Conversion
from asmdnn.generators.move.interleave import ROWS, InterleaveSpec
from asmdnn.generators.move.triples import PLANES, ROUNDED, TriplesDeinterleaveSpec, TriplesInterleaveSpec, fewest
from asmdnn.isa.dense import QUARTER_BYTES
from asmdnn.isa.vectors import lanes_of


def rows_mixed(isa: str) -> Iterator[InterleaveSpec]:
    """Of all units that quarters hold: a vector and several, and parts of them; steps along a row, and apart; zeros
    after rows, after columns, and after both."""
    vector = 4 * lanes_of(isa)
    for rows, unit in product(ROWS, (1, 2, 4, 8)):
        if rows * unit > QUARTER_BYTES:
            continue
        for size, steps in ((vector, 3), (3 * vector, 1), (vector - unit, 2), (unit, 3), (2 * vector + 3 * unit, 2)):
            yield interleave(isa, unit, (rows, 0), (size // unit, 0), steps, along=True)
            yield interleave(isa, unit, (rows, 0), (size // unit, size // vector + 1), steps)
            yield interleave(isa, unit, (rows - 1, 1), (size // unit, 0), steps)
        yield interleave(isa, unit, (1, rows - 1), (3, vector), 2)


def interleave(
    isa: str, unit: int, rows: tuple[int, int], columns: tuple[int, int], steps: int, *, along: bool = False
) -> InterleaveSpec:
    """rows, columns: those of src, and zeros after.  along: steps go on in rows that are far apart, else down rows."""
    row, stored = unit * columns[0], unit * sum(rows) * sum(columns)
    far = 3 * row + 5 * unit if along else row + 7
    return InterleaveSpec(
        isa=isa,
        unit_bytes=unit,
        rows=rows[0],
        columns=columns[0],
        src_row_bytes=far,
        steps=steps,
        src_step_bytes=row if along else rows[0] * far,
        dst_step_bytes=stored if along else stored + 9,
        zero_rows=rows[1],
        zero_columns=columns[1],
    )


def triples() -> Iterator[TriplesInterleaveSpec | TriplesDeinterleaveSpec]:
    """Every conversion; one group of pixels, with one more, the loop with one less; planes that touch and lie apart."""
    for conversion in (*(Conversion(bits, bits) for bits in ("b8", "b16")), *ROUNDED):
        (src, dst), least = conversion.sizes, fewest(conversion)
        for i, pixels in enumerate((least, least + 1, 4 * least - 1, 6 * least)):
            apart = pixels + 5 * (i % 2)
            yield TriplesInterleaveSpec(
                isa=REORDER_ISA, conversion=conversion, rows=PLANES, columns=pixels, src_steps=(src * apart, src),
                dst_steps=(dst, PLANES * dst),
            )  # fmt: skip
            yield TriplesDeinterleaveSpec(
                isa=REORDER_ISA, conversion=conversion, rows=pixels, columns=PLANES, src_steps=(PLANES * src, src),
                dst_steps=(dst, dst * apart),
            )  # fmt: skip


FAMILIES = of_levels("interleave", rows=rows_mixed) | {f"triples-{REORDER_ISA}": triples}
