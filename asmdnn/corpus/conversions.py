"""The specs of reorders to other types: of rows, transposed, of pixels and of f8; quotients; compensation."""

from collections.abc import Iterator
from functools import partial
from itertools import product

from asmdnn.corpus.copies import REORDER_ISA, WIDE_ISA
from asmdnn.generators.functions.quotient import QuotientSpec
from asmdnn.generators.move.compensation import CompensationSpec
from asmdnn.generators.move.conversion import Conversion
from asmdnn.generators.move.convert import ConvertSpec
from asmdnn.generators.move.convert_block import ConvertBlock
from asmdnn.generators.move.convert_narrow import ConvertNarrowSpec
from asmdnn.generators.move.convert_pixels import ConvertDeinterleaveSpec, ConvertInterleaveSpec
from asmdnn.generators.move.convert_transpose import ConvertTransposeSpec
from asmdnn.generators.move.words import WordsSpec
from asmdnn.isa.elements import size_of
from asmdnn.isa.vectors import lanes_of

TYPES = ("f32", "bf16", "f16", "s32", "s8", "u8")


def conversion_specs() -> Iterator[ConvertSpec | ConvertTransposeSpec]:
    """All pairs of types, with nothing and with everything; dense, short and strided rows; scales by row and column."""
    scale_steps = ((0, 0), (4, 0), (0, 4), (8, 12))
    for i, (src, dst) in enumerate(product(TYPES, TYPES)):
        if src != dst:
            yield from blocks(Conversion(src, dst), (0, 0))
        yield from blocks(Conversion(src, dst, True, True, True, 0.5), scale_steps[i % len(scale_steps)])
    pairs = (("f32", "s8"), ("u8", "f32"), ("bf16", "u8"), ("s8", "s32"))
    for (src, dst), scales in zip(pairs, scale_steps, strict=True):
        yield from blocks(Conversion(src, dst, True, True, True, 1.0, sum_factors=1200), scales)
    for kind in ("s8", "bf16"):
        for columns in (8, 24, 136):
            steps = (size_of(kind) * columns + 3, size_of(kind)), (4 * columns, 4)
            yield ConvertSpec(
                isa=REORDER_ISA, conversion=Conversion(kind, "f32", True), rows=3, columns=columns, src_steps=steps[0],
                dst_steps=steps[1], scale_steps=(0, 4), streaming=True,
            )  # fmt: skip
        yield ConvertSpec(
            isa=REORDER_ISA, conversion=Conversion(kind, "f32"), rows=2, columns=300, src_steps=(1200, size_of(kind)),
            dst_steps=(1204, 4),
        )  # fmt: skip
    for bits in ("b8", "b16", "b32"):
        size = size_of(bits)
        for count in range(1, 10):
            yield ConvertSpec(
                isa=REORDER_ISA, conversion=Conversion(bits, bits), rows=2, columns=count, src_steps=(size, 3 * size),
                dst_steps=(size, 5 * size),
            )  # fmt: skip


def wide_conversion_specs() -> Iterator[ConvertSpec]:
    """All pairs of types, columns around a vector, the packs and the loop in turn; strided; streaming."""
    for i, (src, dst) in enumerate(product(TYPES, TYPES)):
        terms = (True, True, True, 0.5) if i % 2 or src == dst else (False, False, False)
        sizes, columns = (size_of(src), size_of(dst)), (5, 16, 21, 64, 83, 130, 300)[i % 7]
        src_steps, dst_steps = ((size * (columns + i % 3), size) for size in sizes)
        scales = ((0, 0), (4, 0), (0, 4), (8, 12))[i // 2 % 4]
        yield ConvertSpec(
            isa=WIDE_ISA, conversion=Conversion(src, dst, *terms), rows=2, columns=columns, src_steps=src_steps,
            dst_steps=dst_steps, scale_steps=scales,
        )  # fmt: skip
    for src, dst in (("f32", "u8"), ("bf16", "f32")):
        sizes = (size_of(src), size_of(dst))
        steps = ((2 * sizes[0], 5 * sizes[0]), (sizes[1], 3 * sizes[1]))
        yield ConvertSpec(
            isa=WIDE_ISA, conversion=Conversion(src, dst), rows=2, columns=21, src_steps=steps[0], dst_steps=steps[1]
        )
    for columns in (16, 144):
        yield ConvertSpec(
            isa=WIDE_ISA, conversion=Conversion("s8", "f32"), rows=3, columns=columns, src_steps=(columns, 1),
            dst_steps=(4 * columns, 4), streaming=True,
        )  # fmt: skip
    for columns in (32, 83, 400):
        steps = (4 * columns + 4, 4), (2 * columns + 2, 2)
        yield ConvertSpec(
            isa="avx512_core_bf16", conversion=Conversion("f32", "bf16", columns == 83), rows=2, columns=columns,
            src_steps=steps[0], dst_steps=steps[1], scale_steps=(4, 0),
        )  # fmt: skip


def wide_convert_transpose_specs() -> Iterator[ConvertTransposeSpec]:
    """All pairs of types, every second one with all terms; one vector of rows and a rest, fewer columns than 16 bytes
    have, a rest of them after whole ones, both sides looped over; scales by row and column, dense and apart."""
    shapes = ((16, 16), (5, 3), (16, 17), (37, 9), (13, 38), (33, 4))
    for i, (src, dst) in enumerate(product(TYPES, TYPES)):
        terms = (True, True, True, 0.5) if (i + i // 6) % 2 or src == dst else (False, False, False)
        (rows, columns), sizes = shapes[(i + i // 6) % 6], (size_of(src), size_of(dst))
        steps = (sizes[0] * (columns + i % 3), sizes[0]), (sizes[1], sizes[1] * (rows + i % 2))
        scales = ((0, 0), (4, 0), (0, 4), (8, 12))[i // 2 % 4]
        yield ConvertTransposeSpec(
            isa=WIDE_ISA, conversion=Conversion(src, dst, *terms), rows=rows, columns=columns, src_steps=steps[0],
            dst_steps=steps[1], scale_steps=scales,
        )  # fmt: skip
    conversion = Conversion("f32", "f32", True, True, True, 1.0, sum_factors=1200)
    yield ConvertTransposeSpec(
        isa=WIDE_ISA, conversion=conversion, rows=17, columns=16, src_steps=(64, 4), dst_steps=(4, 68),
        scale_steps=(0, 4),
    )  # fmt: skip


def narrow_specs(isa: str) -> Iterator[ConvertNarrowSpec]:
    """One group and all numbers of them, rests of rows and columns, both sides looped over; columns that touch; types
    in turn, with nothing and with everything; scales by row and column, dense and apart."""
    vector = lanes_of(isa)
    shapes = [(rows, vector + 1) for rows in range(1, 17)] + [(17, 3), (40, 2), (64, 16), (8, 2 * vector), (4, vector)]
    for i, (rows, columns) in enumerate(shapes):
        src, terms = TYPES[i % len(TYPES)], (True, True, True) if i % 3 == 2 else (False, False, False)
        scales = ((0, 0), (4, 0), (0, 4), (8, 12))[i // 3 % 4]
        size, apart = size_of(src), i % 2 if columns > vector or i > 16 else 0
        steps = (size * (columns + apart), size), (1, rows + 3 * apart)
        yield ConvertNarrowSpec(
            isa=isa, conversion=Conversion(src, ("s8", "u8")[i % 2], *terms), rows=rows, columns=columns,
            src_steps=steps[0], dst_steps=steps[1], scale_steps=scales,
        )  # fmt: skip
    for rows, columns in ((16, 2 * vector), (8, vector + 3), (37, 5)):
        yield ConvertNarrowSpec(
            isa=isa, conversion=Conversion("f32", "s8"), rows=rows, columns=columns, src_steps=(4 * columns, 4),
            dst_steps=(1, rows),
        )  # fmt: skip
    for rows, columns in ((1, 2), (2, vector), (3, vector + 1), (4, 2 * vector), (5, 3), (8, vector + 3), (19, 2)):
        steps = (4 * columns + 4 * (rows % 2), 4), (2, 2 * rows)
        terms = (True, True, True) if rows == 5 else (False, False, False)
        yield ConvertNarrowSpec(
            isa=isa, conversion=Conversion("f32", "bf16", *terms), rows=rows, columns=columns, src_steps=steps[0],
            dst_steps=steps[1], scale_steps=(4, 0),
        )  # fmt: skip
    for i, (rows, zero_rows) in enumerate(((3, 1), (1, 3), (5, 3), (2, 1), (1, 1), (6, 2))):
        columns, terms = (2 * vector, vector + 3, 5)[i % 3], (True, True, True) if i == 2 else (False, False, False)
        for kind, size in (("bf16", 2), ("u8", 1)):
            steps = (4 * columns, 4), (size, size * (rows + zero_rows + i % 2))
            yield ConvertNarrowSpec(
                isa=isa, conversion=Conversion("f32", kind, *terms), rows=rows, columns=columns, src_steps=steps[0],
                dst_steps=steps[1], scale_steps=(4, 0), zero_rows=zero_rows,
            )  # fmt: skip


def pixel_specs() -> Iterator[ConvertInterleaveSpec | ConvertDeinterleaveSpec]:
    """2 to 4 channels; pixels around one vector and the loop; types in turn, with nothing and with everything."""
    plain, everything = (False, False, False), (True, True, True)
    for channels in (2, 3, 4):
        bytes_alone = Conversion("u8", "u8")
        yield ConvertInterleaveSpec(
            isa=REORDER_ISA, conversion=bytes_alone, rows=channels, columns=75, src_steps=(80, 1),
            dst_steps=(1, channels),
        )  # fmt: skip
        yield ConvertDeinterleaveSpec(
            isa=REORDER_ISA, conversion=bytes_alone, rows=75, columns=channels, src_steps=(channels, 1),
            dst_steps=(1, 80),
        )  # fmt: skip
        for i, pixels in enumerate((1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 31, 32, 33, 70)):
            other, byte = TYPES[i % len(TYPES)], ("u8", "s8")[i % 2]
            size, terms = size_of(other), everything if i % 3 == 2 or other == byte else plain
            planes, scales = (size * (pixels + i % 2), size), ((0, 0), (4, 0), (0, 4), (8, 12))[i % 4]
            to, back = Conversion(other, byte, *terms), Conversion(byte, other, *terms)
            yield ConvertInterleaveSpec(
                isa=REORDER_ISA, conversion=to, rows=channels, columns=pixels, src_steps=planes,
                dst_steps=(1, channels), scale_steps=scales,
            )  # fmt: skip
            yield ConvertDeinterleaveSpec(
                isa=REORDER_ISA, conversion=back, rows=pixels, columns=channels, src_steps=(channels, 1),
                dst_steps=planes[::-1], scale_steps=scales,
            )  # fmt: skip


def float8_specs(isa: str) -> Iterator[ConvertBlock]:
    """Each kernel of conversions once, to f8 and back; of rows with everything, where fewest registers are left."""
    for kind, other in (("f8_e5m2", "f32"), ("f8_e4m3", "bf16")):
        size, columns = size_of(other), 2 * lanes_of(isa) + 5
        wide, narrow = (size * columns, size), (columns, 1)
        across, along = (size, 4 * size), (1, 4)
        everything = (True, True, True, 0.5)
        yield ConvertSpec(
            isa=isa, conversion=Conversion(other, kind, *everything), rows=2, columns=columns, src_steps=wide,
            dst_steps=narrow, scale_steps=(0, 4),
        )  # fmt: skip
        yield ConvertSpec(
            isa=isa, conversion=Conversion(kind, other, *everything), rows=2, columns=columns, src_steps=narrow,
            dst_steps=wide, scale_steps=(4, 0),
        )  # fmt: skip
        yield ConvertNarrowSpec(
            isa=isa, conversion=Conversion(other, kind), rows=4, columns=columns, src_steps=wide, dst_steps=along
        )
        yield ConvertTransposeSpec(
            isa=isa, conversion=Conversion(kind, other), rows=4, columns=columns, src_steps=narrow, dst_steps=across
        )
        if isa == REORDER_ISA:
            yield ConvertInterleaveSpec(
                isa=isa, conversion=Conversion(other, kind), rows=3, columns=columns, src_steps=wide, dst_steps=(1, 3)
            )
            yield ConvertDeinterleaveSpec(
                isa=isa, conversion=Conversion(kind, other), rows=columns, columns=3, src_steps=(3, 1),
                dst_steps=(size, wide[0]),
            )  # fmt: skip


def words_specs() -> Iterator[ConvertBlock]:
    """Bytes as words: columns around a register, its parts and the loop; and those that lie apart, or change places."""
    for i, src in enumerate(("u8", "s8")):
        conversion = Conversion(src, "s16")
        for columns in (*range(1, 18), 31, 32, 127, 128, 255, 256, 259):
            yield WordsSpec(
                isa=REORDER_ISA, conversion=conversion, rows=1 + columns % 3, columns=columns,
                src_steps=(columns + i, 1), dst_steps=(2 * columns + 4, 2),
            )  # fmt: skip
        yield ConvertSpec(
            isa=REORDER_ISA, conversion=conversion, rows=3, columns=11, src_steps=(40, 3), dst_steps=(60, 4)
        )
        for rows, columns, zero_rows in ((3, 17, 1), (16, 9, 0), (5, 33, 3)):
            steps = (columns + 2, 1), (2, 2 * (rows + zero_rows))
            yield ConvertNarrowSpec(
                isa=REORDER_ISA, conversion=conversion, rows=rows, columns=columns, src_steps=steps[0],
                dst_steps=steps[1], zero_rows=zero_rows,
            )  # fmt: skip
        yield ConvertDeinterleaveSpec(
            isa=REORDER_ISA, conversion=conversion, rows=21, columns=3, src_steps=(3, 1), dst_steps=(2, 60)
        )


def quotient_specs() -> Iterator[QuotientSpec]:
    """One scale and several of src and dst, with and without a sum."""
    for src_step in (None, 0, 4):
        for dst_step in (0, 4):
            for count in (1, 21):
                yield QuotientSpec(isa=REORDER_ISA, count=count, src_step_bytes=src_step, dst_step_bytes=dst_step)
                yield QuotientSpec(
                    isa=REORDER_ISA, count=count, src_step_bytes=src_step, dst_step_bytes=dst_step, sum=-0.5
                )


def compensation_specs() -> Iterator[CompensationSpec]:
    """A lane or a register for each output, dense rows around a vector and the loop; all counts; repeats and steps;
    sums of columns in words."""
    for dense in (1, 2, 4):
        for outputs in (*range(1, 9), 9, 16, 31, 64):
            repeats = 1 + outputs % 3
            yield CompensationSpec(
                isa=REORDER_ISA, outputs=outputs, dense=dense, src_step=dense, repeats=repeats,
                repeat_step=dense * outputs + 3,
            )  # fmt: skip
    for dense in (*range(2, 34), 63, 64, 127, 128, 129, 160, 287, 300):
        outputs = 1 + dense % 8
        repeats = 2 if dense <= 64 else 1
        yield CompensationSpec(
            isa=REORDER_ISA, outputs=outputs, dense=dense, src_step=dense + 1, repeats=repeats,
            repeat_step=outputs * (dense + 1) + 7,
        )  # fmt: skip
    for outputs in range(1, 9):
        yield CompensationSpec(
            isa=REORDER_ISA, outputs=outputs, dense=8, src_step=8, repeats=4, repeat_step=64, dst_step=12
        )
        yield CompensationSpec(isa=REORDER_ISA, outputs=outputs, dense=4, src_step=4, factor=1)
        yield CompensationSpec(isa=REORDER_ISA, outputs=outputs, dense=270, src_step=270)
    for outputs in (1, 5, 8, 13):
        yield CompensationSpec(
            isa=REORDER_ISA, outputs=outputs, dense=1, src_step=3, repeats=2, repeat_step=50, dst_step=20
        )
    for outputs, repeats, step in ((32, 2, 40), (64, 8, 67), (32, 3, -35), (32, 255, 1), (32, 256, 1)):
        yield CompensationSpec(isa=REORDER_ISA, outputs=outputs, dense=1, src_step=1, repeats=repeats, repeat_step=step)


def blocks(conversion: Conversion, scales: tuple[int, int]) -> Iterator[ConvertSpec | ConvertTransposeSpec]:
    src, dst = conversion.sizes
    for columns in (1, 2, 3, 5, 7, 8, 11, 137):
        steps = (src * columns + src, src), (dst * columns + 2 * dst, dst)
        yield ConvertSpec(
            isa=REORDER_ISA, conversion=conversion, rows=2, columns=columns, src_steps=steps[0], dst_steps=steps[1],
            scale_steps=scales,
        )  # fmt: skip
    yield ConvertSpec(
        isa=REORDER_ISA, conversion=conversion, rows=3, columns=9, src_steps=(src, 3 * src),
        dst_steps=(2 * dst, 6 * dst), scale_steps=scales,
    )  # fmt: skip
    for rows, columns in ((8, 8), (3, 11), (13, 6), (16, 17)):
        steps = (src * columns, src), (dst, dst * rows)
        yield ConvertTransposeSpec(
            isa=REORDER_ISA, conversion=conversion, rows=rows, columns=columns, src_steps=steps[0], dst_steps=steps[1],
            scale_steps=scales,
        )  # fmt: skip


FAMILIES = {
    f"convert-{REORDER_ISA}": conversion_specs,
    f"convert-{WIDE_ISA}": wide_conversion_specs,
    f"convert-transpose-{WIDE_ISA}": wide_convert_transpose_specs,
    f"narrow-{REORDER_ISA}": partial(narrow_specs, REORDER_ISA),
    f"narrow-{WIDE_ISA}": partial(narrow_specs, WIDE_ISA),
    f"float8-{REORDER_ISA}": partial(float8_specs, REORDER_ISA),
    f"float8-{WIDE_ISA}": partial(float8_specs, WIDE_ISA),
    f"pixels-{REORDER_ISA}": pixel_specs,
    f"words-{REORDER_ISA}": words_specs,
    f"quotient-{REORDER_ISA}": quotient_specs,
    f"compensation-{REORDER_ISA}": compensation_specs,
}
