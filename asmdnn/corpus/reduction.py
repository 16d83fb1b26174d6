"""The specs of reductions: tails, one accumulator and all; along rows and down them; functions before and after."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels, rounded
from asmdnn.generators.functions.postops import BinaryOp, EltwiseOp, Operand
from asmdnn.generators.functions.reduce import AT_ONCE, NEUTRAL, SHORT, ReduceSpec, TypedReduceSpec
from asmdnn.isa.elements import NUMBERS, size_of

GAP = 3  # elements between rows


def along(isa: str) -> Iterator[ReduceSpec]:
    """One row and some, of parts of a vector, and around the turn of the loop."""
    lanes = LANES[isa]
    for elements in (1, lanes, 2 * lanes + 1, 2 * AT_ONCE * lanes + lanes + 2):
        yield ReduceSpec(
            isa=isa, along="rows", op="sum", rows=3, elements=elements, src_row_bytes=4 * (elements + GAP),
            dst_row_bytes=8,
        )  # fmt: skip
    for op in NEUTRAL:
        yield ReduceSpec(
            isa=isa, along="rows", op=op, rows=2, elements=lanes + 3, src_row_bytes=4 * (lanes + 3), dst_row_bytes=4
        )


def down(isa: str) -> Iterator[ReduceSpec]:
    """One row and some, of parts of a vector, and around the turn of the loop."""
    lanes = LANES[isa]
    for rows, elements in ((1, 3), (3, lanes), (2, 2 * AT_ONCE * lanes + lanes + 2)):
        yield ReduceSpec(
            isa=isa, along="lanes", op="sum", rows=rows, elements=elements, src_row_bytes=4 * (elements + GAP),
            dst_row_bytes=0,
        )  # fmt: skip
    for op in NEUTRAL:
        yield ReduceSpec(
            isa=isa, along="lanes", op=op, rows=3, elements=lanes + 3, src_row_bytes=4 * (lanes + 3), dst_row_bytes=0
        )


def functions(isa: str) -> Iterator[ReduceSpec]:
    """Before and after, with an operand that is as dst is."""
    lanes = LANES[isa]
    linear = EltwiseOp("linear", 0.5, -0.25, 1.0)
    for along_or_down, operand in (("rows", Operand(2, 8, 0, True)), ("lanes", Operand(2, 0, 0, False))):
        before, after = (linear, BinaryOp("sub", operand)), (BinaryOp("mul", operand), linear)
        yield ReduceSpec(
            isa=isa, along=along_or_down, op="max", rows=3, elements=lanes + 3, src_row_bytes=4 * (lanes + 3),
            dst_row_bytes=8, before=before, after=after,
        )  # fmt: skip
        yield ReduceSpec(
            isa=isa, along=along_or_down, op="sum", rows=3, elements=lanes + 3, src_row_bytes=4 * (lanes + 3),
            dst_row_bytes=8, before=before,
        )  # fmt: skip


def prefetched(isa: str) -> Iterator[ReduceSpec]:
    """In the loop, and without one."""
    for count, kind, made in ((9, "f32", "f32"), (9, "bf16", "f32"), (AT_ONCE, "f32", "f32"), (9, "f32", "bf16")):
        elements = count * LANES[isa] + 2
        yield TypedReduceSpec(
            isa=isa, along="rows", op="sum", rows=2, elements=elements, src_row_bytes=size_of(kind) * elements,
            dst_row_bytes=size_of(made), prefetches=True, kind=kind, made=made,
        )  # fmt: skip


def typed(isa: str) -> Iterator[TypedReduceSpec]:
    """Of every type, in the loop and with a tail; before, with an operand."""
    lanes = LANES[isa]
    for i, kind in enumerate(NUMBERS):
        size = size_of(kind)
        elements = 2 * AT_ONCE * lanes + lanes + 2 if i % 2 else lanes + 3
        row = size * (elements + GAP)
        before = (BinaryOp("sub", Operand(2, 8, 0, True)),) if i % 2 else ()
        if kind != "f32":
            yield TypedReduceSpec(
                isa=isa, along="rows", op="sum", rows=3, elements=elements, src_row_bytes=row, dst_row_bytes=8,
                before=before, kind=kind,
            )  # fmt: skip
            yield TypedReduceSpec(
                isa=isa, along="lanes", op="max", rows=3, elements=elements, src_row_bytes=row, dst_row_bytes=0,
                kind=kind,
            )  # fmt: skip
    before = (BinaryOp("sub", Operand(2, 0, 0, False)),)
    for kind in ("u8", "bf16"):
        elements = 2 * AT_ONCE * lanes + lanes + 2
        yield TypedReduceSpec(
            isa=isa, along="lanes", op="sum", rows=2, elements=elements, src_row_bytes=size_of(kind) * elements,
            dst_row_bytes=0, before=before, kind=kind,
        )  # fmt: skip


def results(isa: str) -> Iterator[TypedReduceSpec]:
    """Of the type that is read: dense ones, which wait for a vector, and those of long rows, which do not; one alone;
    apart; of lanes; functions after, with an operand."""
    lanes = LANES[isa]
    after = (BinaryOp("mul", Operand(2, 4, 0, True)),)
    for kind in ("bf16", "f16", "s32", "s8", "u8"):
        size = size_of(kind)
        for rows, apart in ((lanes + 3, size), (1, size), (2, 3 * size)):
            yield TypedReduceSpec(
                isa=isa, along="rows", op="sum", rows=rows, elements=lanes + 3, src_row_bytes=size * (lanes + 3),
                dst_row_bytes=apart, after=after if apart == size else (), kind=kind, made=kind,
            )  # fmt: skip
        elements = 2 * AT_ONCE * lanes + lanes + 2
        yield TypedReduceSpec(
            isa=isa, along="lanes", op="max", rows=3, elements=elements, src_row_bytes=size * elements,
            dst_row_bytes=0, kind=kind, made=kind,
        )  # fmt: skip
    for rows, elements in ((2 * lanes + 1, 3), (2, SHORT * lanes + 1)):
        yield TypedReduceSpec(
            isa=isa, along="rows", op="max", rows=rows, elements=elements, src_row_bytes=4 * elements, dst_row_bytes=2,
            made="bf16",
        )  # fmt: skip


FAMILIES = {
    **of_levels(
        "reduce", along=along, down=down, functions=functions, typed=typed, prefetched=prefetched, results=results
    ),
    "reduce-rounded": rounded(results),
}
