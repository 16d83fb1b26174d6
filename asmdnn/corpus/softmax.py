"""The specs of softmax: rows that registers hold, alone and together, longer ones, lanes side by side; chains."""

from collections.abc import Iterator
from typing import Any

from asmdnn.corpus.conv import LANES, of_levels, rounded
from asmdnn.generators.functions.postops import BinaryOp, EltwiseOp, Operand, PostOp
from asmdnn.generators.functions.softmax import SoftmaxSpec
from asmdnn.generators.functions.softmax_code import REGISTERS_OF_VECTOR, rows_held
from asmdnn.generators.functions.softmax_counted import CountedSoftmaxSpec
from asmdnn.generators.functions.softmax_counted_long import CountedLongSoftmaxSpec
from asmdnn.generators.functions.softmax_lanes import SoftmaxLanesSpec
from asmdnn.generators.functions.softmax_parts import AT_ONCE, ROWS, SoftmaxPartsSpec
from asmdnn.isa.elements import size_of
from asmdnn.isa.levels import AVX512_CORE_BF16
from asmdnn.isa.vectors import vector_class

GAP = 3  # elements between rows
TYPES = (("bf16", "bf16"), ("f16", "f16"), ("u8", "f32"), ("f32", "bf16"))  # of src and dst


def chains(elements: int) -> tuple[tuple[PostOp, ...], tuple[PostOp, ...]]:
    """A scale and a mask before; after a tensor, and a number a row."""
    row_bytes = 4 * elements
    before = (EltwiseOp("linear", 0.25, 0.0, 1.0), BinaryOp("add", Operand(2, row_bytes, 0, False)))
    return before, (BinaryOp("mul", Operand(3, row_bytes + 4, 0, False)), BinaryOp("add", Operand(4, 8, 0, True)))


def around(elements: int) -> dict[str, Any]:
    """Of dense rows with both."""
    before, after = chains(elements)
    return {"src_row_bytes": 4 * elements, "dst_row_bytes": 4 * elements, "before": before, "after": after}


def held(isa: str) -> Iterator[SoftmaxSpec]:
    """Parts of a vector, one, several and an end; one row, as many as fit, and one more; logarithms, too."""
    lanes = LANES[isa]
    for log in (False, True):
        for elements in (1, lanes - 1, lanes, lanes + 1, 3 * lanes - 2, lanes * rows_held(isa, 1, log)):
            some = rows_held(isa, elements, log)
            for rows in dict.fromkeys((1, some + 1)):
                yield SoftmaxSpec(
                    isa=isa, rows=rows, elements=elements, src_row_bytes=4 * elements,
                    dst_row_bytes=4 * (elements + GAP), log=log,
                )  # fmt: skip
        for elements in (lanes - 2, lanes + 2):
            yield SoftmaxSpec(isa=isa, rows=3, elements=elements, **around(elements), log=log)


def long(isa: str) -> Iterator[SoftmaxSpec]:
    """Around the loop's turn; logarithms, which registers hold of fewer vectors."""
    lanes, turn = LANES[isa], LANES[isa] * rows_held(isa, 1)
    for elements in (turn + 1, 2 * turn, 2 * turn + lanes + 2):
        yield SoftmaxSpec(
            isa=isa, rows=2, elements=elements, src_row_bytes=4 * (elements + GAP), dst_row_bytes=4 * elements,
            prefetches=elements == 2 * turn,
        )  # fmt: skip
    for elements in (turn // 2 + 3, turn, turn + 3):
        yield SoftmaxSpec(
            isa=isa, rows=2, elements=elements, src_row_bytes=4 * (elements + GAP), dst_row_bytes=4 * elements, log=True
        )
    for log in (False, True):
        yield SoftmaxSpec(isa=isa, rows=2, elements=turn + 2, **around(turn + 2), log=log)


def left_sums(isa: str) -> Iterator[SoftmaxSpec]:
    """Rows that leave their logsumexp: part of a vector, around the loop's turn; dense, and apart after a mask."""
    lanes, turn = LANES[isa], LANES[isa] * rows_held(isa, 1)
    for elements, apart in ((lanes - 1, 4), (turn + 3, 4), (2 * turn, 12)):
        before = chains(elements)[0] if apart > 4 else ()
        sums = Operand(2 + len(before[1:]), apart, 0, True)
        yield SoftmaxSpec(
            isa=isa, rows=3, elements=elements, src_row_bytes=4 * elements, dst_row_bytes=4 * (elements + GAP),
            before=before, logsumexp=sums,
        )  # fmt: skip


def counted(isa: str) -> Iterator[CountedSoftmaxSpec]:
    """One element, a whole vector, one more, as many as registers hold; one row, as many as fit, some more."""
    lanes = LANES[isa]
    for elements in (1, lanes, lanes + 1, 3 * lanes - 2, lanes * rows_held(isa, 1)):
        row_bytes = 4 * lanes * (-(-elements // lanes) + 1)
        for rows in dict.fromkeys((1, rows_held(isa, elements) + 6)):
            yield CountedSoftmaxSpec(
                isa=isa, rows=rows, elements=elements, src_row_bytes=row_bytes, dst_row_bytes=row_bytes,
                before=chains(elements)[0][:1],
            )  # fmt: skip


def counted_long(isa: str) -> Iterator[CountedLongSoftmaxSpec]:
    """No whole round and several, one vector after them and as many as a round has, whole ones and parts."""
    lanes = LANES[isa]
    held, together = rows_held(isa, 1), vector_class(isa).count // REGISTERS_OF_VECTOR
    for elements in (held * lanes + 1, (held + together) * lanes, (held + 3) * lanes - 2):
        row_bytes = 4 * lanes * (-(-elements // lanes) + 1)
        for rows, before in ((1, chains(elements)[0][:1]), (3, ())):
            yield CountedLongSoftmaxSpec(
                isa=isa, rows=rows, elements=elements, src_row_bytes=row_bytes, dst_row_bytes=row_bytes, before=before
            )


def apart(isa: str) -> Iterator[SoftmaxLanesSpec]:
    """Lanes of part of a vector, and around a group of vectors; one row and some."""
    lanes = LANES[isa]
    group = lanes * rows_held(isa, 2 * lanes)
    for rows, elements in ((1, 3), (5, lanes - 1), (3, lanes), (2, group * 2 + lanes + 1)):
        for log in (False, True):
            yield SoftmaxLanesSpec(
                isa=isa, rows=rows, elements=elements, src_row_bytes=4 * (elements + GAP), dst_row_bytes=4 * elements,
                log=log,
            )  # fmt: skip
    for log in (False, True):
        yield SoftmaxLanesSpec(isa=isa, rows=3, elements=lanes + 2, **around(lanes + 2), log=log)


def typed(isa: str) -> Iterator[SoftmaxSpec | SoftmaxLanesSpec]:
    """Elements of other types, also of two sizes: rows that registers hold, long ones, lanes; logarithms, a mask."""
    lanes, turn = LANES[isa], LANES[isa] * rows_held(isa, 1)
    for i, types in enumerate(TYPES):
        of_src, of_dst = map(size_of, types)
        for elements in (lanes - 1, lanes + 2, 2 * turn + lanes + 2):
            before = chains(elements)[0] if i % 2 else ()
            steps = {"src_row_bytes": of_src * (elements + GAP), "dst_row_bytes": of_dst * elements}
            rows: dict[str, Any] = steps | {"rows": 3, "elements": elements, "before": before, "types": types}
            yield SoftmaxSpec(isa=isa, **rows, log=elements == lanes + 2 and i == 0)
            yield SoftmaxLanesSpec(isa=isa, **rows, log=i > 1)


def left_parts() -> Iterator[SoftmaxPartsSpec]:
    """Rows that leave their logsumexp: dense, and apart after a mask; some of those at a time, and more; a negative
    scale."""
    isa, lanes = AVX512_CORE_BF16.name, LANES["avx512_core"]
    for rows, elements, apart, scale in ((1, 1, 4, 0.25), (ROWS + 3, lanes + 5, 4, -0.5), (ROWS, 2 * lanes, 12, 0.25)):
        masks = (BinaryOp("add", Operand(3, 4 * elements, 0, False)),) if apart > 4 else ()
        yield SoftmaxPartsSpec(
            isa=isa, rows=rows, elements=elements, src_row_bytes=4 * elements, dst_row_bytes=2 * (elements + GAP),
            scale=scale, kind="bf16", masks=masks, logsumexp=Operand(3 + len(masks), apart, 0, True),
        )  # fmt: skip


def parts() -> Iterator[SoftmaxPartsSpec]:
    """Part of a vector, an odd number, around the loop's turn; rows alone, some of those at a time, and more; a
    negative scale; a mask, and a number a row."""
    isa, lanes, turn = AVX512_CORE_BF16.name, LANES["avx512_core"], AT_ONCE * LANES["avx512_core"]
    for rows, elements in ((1, 1), (3, lanes - 1), (ROWS, 2 * lanes), (2, turn), (ROWS + 1, 2 * turn + lanes + 3)):
        for scale in (0.25, -0.5):
            yield SoftmaxPartsSpec(
                isa=isa, rows=rows, elements=elements, src_row_bytes=4 * (elements + GAP), dst_row_bytes=2 * elements,
                scale=scale, kind="bf16",
            )  # fmt: skip
    for elements in (lanes + 5, 2 * turn):
        row, number = Operand(3, 4 * elements, 0, False), Operand(4, 8, 0, True)
        masks = BinaryOp("add", row), BinaryOp("add", number)
        yield SoftmaxPartsSpec(
            isa=isa, rows=ROWS + 3, elements=elements, src_row_bytes=4 * elements, dst_row_bytes=2 * (elements + GAP),
            scale=0.25, kind="bf16", masks=masks,
        )  # fmt: skip


FAMILIES = {
    **of_levels("softmax", held=held, long=long, lanes=apart, typed=typed, sums=left_sums),
    **of_levels("softmax", counted=counted, counted_long=counted_long),
    "softmax-rounded": rounded(typed),
    "softmax-parts-avx512_core_bf16": parts,
    "softmax-parts-sums-avx512_core_bf16": left_parts,
}
