"""The specs of cumulative sums and products: tails, loops, one row and some; both ways."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.functions.cumulative import AT_ONCE, CumulativeSumSpec
from asmdnn.records import replace

GAP = 3  # elements between rows


def along(isa: str) -> Iterator[CumulativeSumSpec]:
    for elements in (3, LANES[isa], 2 * LANES[isa] + 1):
        for reverse in (False, True):
            yield CumulativeSumSpec(
                isa=isa,
                along="rows",
                rows=2,
                elements=elements,
                src_row_bytes=4 * (elements + GAP),
                dst_row_bytes=4 * elements,
                reverse=reverse,
            )


def down(isa: str) -> Iterator[CumulativeSumSpec]:
    for rows, elements in ((1, 3), (5, 2 * AT_ONCE * LANES[isa] + LANES[isa] + 2)):
        for reverse in (False, True):
            yield CumulativeSumSpec(
                isa=isa,
                along="lanes",
                rows=rows,
                elements=elements,
                src_row_bytes=4 * (elements + GAP),
                dst_row_bytes=4 * elements,
                reverse=reverse,
            )


def products(isa: str) -> Iterator[CumulativeSumSpec]:
    for spec in (*along(isa), *down(isa)):
        yield replace(spec, alg="mul")


FAMILIES = of_levels("cumsum", along=along, down=down, products=products)
