"""The specs of gathers: rows of every kind of size, some together, the rest, rows apart, indices of 4 and 8 bytes."""

from collections.abc import Iterator

from asmdnn.generators.move.gather import GatherSpec
from asmdnn.generators.move.rows import UNROLLED_BYTES

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


FAMILIES = {f"gather-{GATHER_ISA}": gather_specs}
