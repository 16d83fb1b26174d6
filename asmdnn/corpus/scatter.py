"""The specs of scatters: rows of every kind of size, moved and combined, some together, the rest, rows apart."""

from collections.abc import Iterator

from asmdnn.generators.move.rows import UNROLLED_BYTES
from asmdnn.generators.move.scatter import REDUCTIONS, ScatterSpec

SCATTER_ISA = "avx2"  # serves every level
ANY_BYTES = (1, 2, 4, 12, 16, 36, 68, UNROLLED_BYTES, UNROLLED_BYTES + 35, 1100)
NUMBERS = (4, 8, 20, 32, 60, UNROLLED_BYTES + 36)


def scatter_specs() -> Iterator[ScatterSpec]:
    for reduction in ("none", *REDUCTIONS):
        for row_bytes in ANY_BYTES if reduction == "none" else NUMBERS:
            for gap, index_step in ((0, 4), (12, 8)):
                yield ScatterSpec(
                    isa=SCATTER_ISA, count=7 if row_bytes <= 64 else 3, limit=3, row_bytes=row_bytes,
                    updates_step=row_bytes + 2 * gap, dst_step=row_bytes + gap, index_step=index_step,
                    reduction=reduction,
                )  # fmt: skip
    for count in (1, 2, 4, 5):
        for reduction in ("none", "add"):
            yield ScatterSpec(
                isa=SCATTER_ISA, count=count, limit=1, row_bytes=4, updates_step=4, dst_step=4, index_step=12,
                reduction=reduction,
            )  # fmt: skip


FAMILIES = {f"scatter-{SCATTER_ISA}": scatter_specs}
