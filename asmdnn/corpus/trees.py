"""The specs of walks down trees: both kinds, all joins, values in nodes and in rows of one to eight columns, and of
as many as registers hold; and of the codes of rows: whole vectors, a rest, both, twice, zeros after them."""

from collections.abc import Iterator

from asmdnn.generators.trees.codes import TreeCodesSpec, features_of
from asmdnn.generators.trees.walk import TreeWalkSpec
from asmdnn.records import replace

TREES_ISA = "avx2"  # serves every level
WIDE_ISA = "avx512_core"  # where more registers hold more columns


def walks() -> Iterator[TreeWalkSpec]:
    for along in ("rows", "trees"):
        single = TreeWalkSpec(
            isa=TREES_ISA, along=along, joins="sum", columns=1, in_nodes=True, words=8, units=16, trees=64, leaves=1,
            dst_row_bytes=4,
        )  # fmt: skip
        yield from (replace(single, joins=joins) for joins in ("sum", "min", "max"))
        several = replace(single, in_nodes=False, leaves=4, dst_row_bytes=44)
        for columns, joins in ((1, "sum"), (3, "sum"), (8, "sum"), (8, "min"), (5, "max")):
            yield replace(several, columns=columns, joins=joins)
    yield from (
        replace(several, columns=n, joins=joins, dst_row_bytes=4 * n) for n, joins in ((112, "sum"), (9, "max"))
    )
    wide = replace(several, isa=WIDE_ISA, along="rows", dst_row_bytes=100)
    yield from (
        replace(wide, columns=n, joins=joins) for n, joins in ((9, "sum"), (20, "min"), (24, "sum"), (24, "max"))
    )


def codes() -> Iterator[TreeCodesSpec]:
    for features, words in ((1, 8), (7, 8), (8, 8), (9, 32), (24, 32), (27, 64)):
        for mirrored in (False, True):
            if words >= (1 + mirrored) * features_of(features):
                yield TreeCodesSpec(
                    isa=TREES_ISA, rows=3, features=features, words=words, mirrored=mirrored,
                    src_row_bytes=4 * features + 12,
                )  # fmt: skip
    yield TreeCodesSpec(isa=TREES_ISA, rows=1, features=8, words=16, mirrored=True, src_row_bytes=32)


FAMILIES = {f"trees-{TREES_ISA}": walks, f"tree codes-{TREES_ISA}": codes}
