"""The specs of f32 as sums of two numbers of fewer bits: rows that touch and rows apart, whole vectors and tails."""

from collections.abc import Iterator
from functools import partial

from asmdnn.corpus.conv import CONV_LEVELS
from asmdnn.generators.functions.split import SplitSpec
from asmdnn.isa.dot import BF16, levels_of
from asmdnn.isa.levels import AVX512_CORE_AMX
from asmdnn.isa.vectors import lanes_of


def splits(isa: str) -> Iterator[SplitSpec]:
    """One row and several; a tail alone, a vector, a loop of vectors and what is left."""
    lanes = lanes_of(isa)
    sizes = ((1, 1), (1, lanes), (3, lanes - 1), (2, 2 * lanes), (3, 5 * lanes + 3), (1, 7 * lanes), (2, 2))
    for rows, elements in sizes:
        for gap in (0, 3) if rows > 1 else (0,):
            yield SplitSpec(
                isa=isa,
                kind=BF16.src.name,
                rows=rows,
                elements=elements,
                src_row_bytes=4 * (elements + gap),
                dst_row_bytes=2 * (3 * elements + gap),
            )


NATIVE = levels_of(BF16, AVX512_CORE_AMX.name)
FAMILIES = {f"split-{isa}": partial(splits, isa) for isa in (*CONV_LEVELS, *(level.name for level in NATIVE))}
