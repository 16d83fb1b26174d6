"""The specs of gathers: rows of every kind of size, some together, the rest, rows apart, indices of 4 and 8 bytes; in
registers tables of all sizes, indices that stay and that pass, rows that are taken as one."""

from collections.abc import Iterator
from functools import partial

from asmdnn.corpus.conv import LANES
from asmdnn.generators.move.gather import GatherSpec
from asmdnn.generators.move.gather_lanes import GatherLanesSpec
from asmdnn.generators.move.rows import UNROLLED_BYTES
from asmdnn.isa.vectors import lanes_of

GATHER_ISA = "avx2"  # serves every level


def gather_specs() -> Iterator[GatherSpec]:
    for row_bytes in (1, 2, 4, 8, 12, 16, 32, 36, 64, 68, 300, UNROLLED_BYTES, UNROLLED_BYTES + 36, 1100):
        for gap, index_step in ((0, 4), (12, 8)):
            count = 5 if row_bytes <= 64 else 3
            yield GatherSpec(
                isa=GATHER_ISA, count=count, limit=3, row_bytes=row_bytes, src_step=row_bytes + gap,
                dst_step=row_bytes + 2 * gap, index_step=index_step,
            )  # fmt: skip
    for count in (1, 2, 3, 4, 8, 9):
        yield GatherSpec(isa=GATHER_ISA, count=count, limit=1, row_bytes=4, src_step=4, dst_step=4, index_step=4)
        yield GatherSpec(
            isa=GATHER_ISA, count=count, limit=min(count, 7), row_bytes=20, src_step=28, dst_step=20, index_step=12
        )


def lanes_specs(isa: str) -> Iterator[GatherLanesSpec]:
    lanes = lanes_of(isa)
    sizes = [(1, 1), (3, 3), (lanes // 4, lanes // 4), (2, lanes // 2), (lanes, lanes - 1), (lanes + 1, 2 * lanes)]
    sizes += [(3 * lanes - 1, lanes + 3), (4 * lanes, 3), (4 * lanes, 20 * lanes + 5)]
    for number, (limit, count) in enumerate(sizes):
        for rows in (1, 2, 37):
            for gap in (0, 4):
                yield GatherLanesSpec(
                    isa=isa,
                    rows=rows,
                    limit=limit,
                    count=count,
                    src_step=4 * limit + gap,
                    dst_step=4 * count + 2 * gap,
                    index_step=8 if (number + rows) % 2 else 4,
                )


FAMILIES = {
    f"gather-{GATHER_ISA}": gather_specs,
    **{f"gather-lanes-{isa}": partial(lanes_specs, isa) for isa in LANES},
}
