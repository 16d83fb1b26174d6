"""The specs of normalizations: tails, one row, two together and long ones; statistics; scale, shift and post-ops."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels, rounded
from asmdnn.generators.functions.layer_norm import SHORT, LayerNormSpec, Statistics
from asmdnn.generators.functions.merge_moments import MergeMomentsSpec
from asmdnn.generators.functions.moments import MomentsSpec
from asmdnn.generators.functions.moments_code import CHAINS, TOGETHER
from asmdnn.generators.functions.postops import BinaryOp, Operand
from asmdnn.isa.elements import size_of

GAP = 3  # elements between rows
EPSILON = 2.0**-10
TYPES = (("bf16", "bf16"), ("f16", "f16"), ("bf16", "f32"), ("f32", "bf16"))


def rows(isa: str) -> Iterator[LayerNormSpec]:
    """Parts of a vector, and around the turns of the loops of short and of long rows."""
    lanes = LANES[isa]
    for elements in (1, lanes - 1, lanes, 4 * lanes + 1, SHORT * lanes + lanes + 2):
        for count in (1, 3):
            yield LayerNormSpec(
                isa=isa, rows=count, elements=elements, src_row_bytes=4 * elements, dst_row_bytes=4 * (elements + GAP),
                epsilon=EPSILON,
            )  # fmt: skip
    yield LayerNormSpec(
        isa=isa, rows=3, elements=4 * lanes + 2, src_row_bytes=4 * (4 * lanes + 2), dst_row_bytes=32 * lanes,
        epsilon=EPSILON, streams=True,
    )  # fmt: skip


def statistics(isa: str) -> Iterator[LayerNormSpec]:
    """Written and given, with a mean and without, and chains after them."""
    lanes = LANES[isa]
    for elements in (lanes + 3, SHORT * lanes + 5):
        row_bytes = 4 * elements
        for centred in (True, False):
            for given in (True, False):
                kept = Statistics(8 if centred else None, 4, given)
                first = 2 + len(kept.names)
                scale, each = Operand(first, 0, 0, False), Operand(first + 1, 12, 0, True)
                after = (BinaryOp("mul", scale), BinaryOp("add", each))
                yield LayerNormSpec(
                    isa=isa, rows=3, elements=elements, src_row_bytes=row_bytes, dst_row_bytes=row_bytes,
                    epsilon=EPSILON, centred=centred, statistics=kept, after=after,
                )  # fmt: skip
        yield LayerNormSpec(
            isa=isa, rows=2, elements=elements, src_row_bytes=row_bytes, dst_row_bytes=row_bytes, epsilon=EPSILON,
            centred=False,
        )  # fmt: skip


def chunks(isa: str) -> Iterator[MomentsSpec | MergeMomentsSpec]:
    """Along rows and down them, and merged: parts of a vector, and around the turns of the loops; short rows together,
    several rows of few lanes at a time."""
    lanes = LANES[isa]
    for along in ("rows", "lanes"):
        for count, elements in ((1, 1), (3, lanes + 3), (2, 9 * lanes + 2), (4, 2 * lanes)):
            yield MomentsSpec(
                isa=isa, along=along, rows=count, elements=elements, src_row_bytes=4 * (elements + GAP),
                dst_row_bytes=8, divides=elements > lanes + 3,
            )  # fmt: skip
    for count, elements in ((1, 1), (7, lanes - 1), (2 * TOGETHER, lanes), (TOGETHER + 2, 6 * lanes + 1)):
        yield MomentsSpec(
            isa=isa, along="rows", rows=count, elements=elements, src_row_bytes=4 * elements, dst_row_bytes=4,
            divides=count > TOGETHER,
        )  # fmt: skip
    for count, elements in ((2 * CHAINS + 3, lanes), (5, 2 * lanes - 1)):
        yield MomentsSpec(
            isa=isa, along="lanes", rows=count, elements=elements, src_row_bytes=4 * elements, dst_row_bytes=0
        )
    for count, elements in ((1, 3), (2, lanes + 3), (5, 5 * lanes)):
        yield MergeMomentsSpec(
            isa=isa, rows=count, elements=elements, row_bytes=4 * (elements + GAP), count=8, last=5, divides=count == 5
        )


def typed_rows(isa: str) -> Iterator[LayerNormSpec]:
    """Elements of other types, also of two sizes, in the loop and with a tail; alone, two rows together, a scale."""
    lanes = LANES[isa]
    for types in TYPES:
        of_src, of_dst = map(size_of, types)
        for elements in (lanes - 3, 2 * lanes, SHORT * lanes + 4 * lanes + 3):
            yield LayerNormSpec(
                isa=isa, rows=3, elements=elements, src_row_bytes=of_src * (elements + GAP),
                dst_row_bytes=of_dst * elements, epsilon=EPSILON, centred=elements > lanes,
                after=(BinaryOp("mul", Operand(2, 0, 0, False)),), types=types,
            )  # fmt: skip


def typed_chunks(isa: str) -> Iterator[MomentsSpec]:
    """Long and short rows, lanes, of other types."""
    lanes = LANES[isa]
    for kind in ("bf16", "f16"):
        for along, count, elements, dst_bytes in (
            ("rows", 2, 9 * lanes + 2, 8),
            ("rows", TOGETHER + 3, lanes + 1, 4),
            ("lanes", 2 * CHAINS + 1, 2 * lanes - 1, 0),
        ):
            yield MomentsSpec(
                isa=isa, along=along, rows=count, elements=elements, src_row_bytes=size_of(kind) * (elements + GAP),
                dst_row_bytes=dst_bytes, kind=kind,
            )  # fmt: skip


FAMILIES = {
    **of_levels("layernorm", rows=rows, statistics=statistics, typed=typed_rows),
    **of_levels("moments", chunks=chunks, typed=typed_chunks),
    "layernorm-rounded": rounded(typed_rows),
}
