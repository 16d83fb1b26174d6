"""The specs of gradients that need sums over a row: rows of all lengths, lanes, gaps, operands of every kind."""

from collections.abc import Iterator
from typing import Any

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.functions.postops import Operand
from asmdnn.generators.functions.row_gradient import RowGradientSpec
from asmdnn.generators.functions.row_programs import (
    centred_sums,
    norm_programs,
    prelu_program,
    row_sums_program,
    same_program,
    softmax_programs,
)
from asmdnn.generators.functions.row_sums import RowSumsSpec
from asmdnn.isa.levels import AVX512_CORE_BF16

GAP = 3  # elements between rows


def softmaxes(isa: str) -> Iterator[RowGradientSpec]:
    """Around whole vectors, and the loop's turn; one row and some; the logarithm."""
    lanes = LANES[isa]
    for along in ("rows", "lanes"):
        for rows, elements in ((1, 1), (3, lanes - 1), (2, lanes), (1, 2 * lanes), (2, 5 * lanes + 2)):
            row_bytes = 4 * (elements + GAP)
            operands = (Operand(2, row_bytes, 0, False),)
            for log in (False, True):
                programs = softmax_programs(log)._asdict()
                steps: dict[str, Any] = {"src_row_bytes": 4 * elements, "dst_row_bytes": row_bytes}
                yield RowGradientSpec(
                    isa=isa, what="softmaxback", along=along, rows=rows, elements=elements, operands=operands, **steps,
                    **programs,
                )  # fmt: skip


def norms(isa: str) -> Iterator[RowGradientSpec]:
    """Statistics of a row, and a scale of columns; with and without a mean."""
    lanes = LANES[isa]
    for elements in (lanes + 3, 4 * lanes):
        row_bytes = 4 * elements
        dy, mean, factor = Operand(2, row_bytes, 0, False), Operand(3, 4, 0, True), Operand(4, 4, 0, True)
        scale = Operand(5, 0, 0, False)
        steps: dict[str, Any] = {"src_row_bytes": row_bytes, "dst_row_bytes": row_bytes}
        every = norm_programs(elements, True, True)._asdict() | {"operands": (dy, mean, factor, scale)}
        yield RowGradientSpec(isa=isa, what="layernormback", along="rows", rows=3, elements=elements, **steps, **every)
        alone = norm_programs(elements, False, False)._asdict() | {"operands": (dy, Operand(3, 4, 0, True))}
        yield RowGradientSpec(isa=isa, what="rmsnormback", along="rows", rows=2, elements=elements, **steps, **alone)


def shape_of(*sizes: str | int) -> dict[str, Any]:
    """Of sums, the fields between their name and their operands."""
    return dict(zip(("along", "rows", "elements", "src_row_bytes", "result_row_bytes"), sizes, strict=True))


def sums(isa: str) -> Iterator[RowSumsSpec]:
    """Of dense rows and of lanes: one vector, some and a tail, and rows that come several at once; statistics of a row,
    of lanes; what is stored beside; results that are merged."""
    lanes = LANES[isa]
    for along in ("rows", "lanes"):
        for rows, elements in ((1, 1), (5, lanes), (3, lanes - 1), (2, 5 * lanes + 2), (3, 18 * lanes + 2)):
            size = 4 * (elements + GAP)
            dy, is_row = Operand(1, size, 0, False), along == "rows"
            shape = shape_of(along, rows, elements, size, 4 * is_row)
            statistic = [Operand(i, 4 * is_row, 0, is_row) for i in (2, 3)]
            yield RowSumsSpec(
                isa=isa, what="batchnormback", **shape, operands=(dy, statistic[0]), program=centred_sums()
            )
            program, place = prelu_program((0, 1)), Operand(3, size, 0, False)
            yield RowSumsSpec(
                isa=isa, what="preluback", **shape, operands=(dy, statistic[0]), program=program, place=place
            )
    of_row = (Operand(1, 4 * elements, 0, False), Operand(2, 4, 0, True), Operand(3, 4, 0, True))
    shape = shape_of("lanes", 7, elements, 4 * elements, 0)
    yield RowSumsSpec(isa=isa, what="layernormback", **shape, operands=of_row, program=row_sums_program(2, True))
    yield RowSumsSpec(isa=isa, what="layernormback", **shape, operands=of_row[:2], program=row_sums_program(1, False))
    yield RowSumsSpec(isa=isa, what="merged", **shape, operands=of_row[:1], program=same_program(2))
    yield from sums_in_memory(isa)


def sums_in_memory(isa: str) -> Iterator[RowSumsSpec]:
    """A tail alone, several vectors, many and a tail; one row and some; one sum and two, and what is stored beside."""
    lanes = LANES[isa]
    for rows, elements in ((1, lanes - 1), (3, 5 * lanes), (4, 18 * lanes + 2)):
        size = 4 * (elements + GAP)
        dy, of_lanes, place = Operand(1, size, 0, False), Operand(2, 0, 0, False), Operand(3, size, 0, False)
        shape = shape_of("lanes", rows, elements, size, 0) | {"operands": (dy, of_lanes), "row_by_row": True}
        yield RowSumsSpec(isa=isa, what="batchnormback", **shape, program=centred_sums())
        yield RowSumsSpec(isa=isa, what="preluback", **shape, program=prelu_program((0, 1)), place=place)


def typed(isa: str) -> Iterator[RowGradientSpec | RowSumsSpec]:
    """Elements of 2 bytes, of both sizes, and a mask of bytes; rows and lanes with tails."""
    lanes = LANES[isa]
    for along in ("rows", "lanes"):
        rows, elements, is_row = 3, 3 * lanes + 2, along == "rows"
        narrow, wide, bytewise = (size * (elements + GAP) for size in (2, 4, 1))
        for kinds, steps in ((("bf16", "bf16", "f32"), (narrow, narrow, wide)), (("f16",) * 3, (narrow,) * 3)):
            beside = (Operand(2, steps[2], 0, False),)
            yield RowGradientSpec(
                isa=isa, what="softmaxback", along=along, rows=rows, elements=elements, src_row_bytes=steps[0],
                dst_row_bytes=steps[1], operands=beside, types=kinds, **softmax_programs(False)._asdict(),
            )  # fmt: skip
        dy, mask = Operand(1, narrow, 0, False), Operand(2, bytewise, 0, False)
        mean, place = Operand(3, 4 * is_row, 0, is_row), Operand(4, narrow, 0, False)
        shape, types = shape_of(along, rows, elements, wide, 4 * is_row), ("f32", "bf16", "u8", "f32", "bf16")
        found = (dy, mask, mean)
        for row_by_row in (False, True)[: 1 + (not is_row)]:
            more: dict[str, Any] = {"place": place, "types": types, "row_by_row": row_by_row}
            yield RowSumsSpec(
                isa=isa, what="maskedback", **shape, operands=found, program=centred_sums(True, True), **more
            )
    shape = shape_of("lanes", 4, lanes + 1, 2 * lanes + 2, 0)
    slopes = (Operand(1, 2 * lanes + 2, 0, False), Operand(2, 0, 0, True))
    place = Operand(3, 2 * lanes + 2, 0, False)
    more = {"place": place, "types": ("bf16",) * 4}
    yield RowSumsSpec(isa=isa, what="preluback", **shape, operands=slopes, program=prelu_program((0, 1)), **more)


def rounded_scores() -> Iterator[RowGradientSpec]:
    """As those of attention's scores, rounded to what products take: one vector and less, some and a tail."""
    for elements in (1, 16, 70):
        wide, narrow = (size * (elements + GAP) for size in (4, 2))
        yield RowGradientSpec(
            isa=AVX512_CORE_BF16.name, what="softmaxback", along="rows", rows=3, elements=elements, src_row_bytes=wide,
            dst_row_bytes=narrow, operands=(Operand(2, wide, 0, False),), types=("f32", "bf16", "f32"),
            **softmax_programs(False)._asdict(),
        )  # fmt: skip


FAMILIES = {
    **of_levels("row-gradients", softmaxes=softmaxes, norms=norms, sums=sums, typed=typed),
    "row-gradients-rounded": rounded_scores,
}
