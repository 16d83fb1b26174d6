"""The specs of gradients of maxima that are scattered: rounds and what is left of them, one axis and several.

Windows along the first axis begin at one place, so that all cells and all positions can be named.
"""

from collections.abc import Iterator

from asmdnn.corpus.scatter import SCATTER_ISA
from asmdnn.generators.pooling.scattered_maxima import ScatteredMaximaSpec
from asmdnn.records import replace


def scattered_maxima() -> Iterator[ScatteredMaximaSpec]:
    yield ScatteredMaximaSpec(isa=SCATTER_ISA, cells=1, positions=1, outputs=(1,), steps=(4,))
    for count in (3, 4, 9):
        yield ScatteredMaximaSpec(isa=SCATTER_ISA, cells=count, positions=count - 1, outputs=(2, count), steps=(0, 4))
    several = ScatteredMaximaSpec(isa=SCATTER_ISA, cells=12, positions=5, outputs=(2, 3, 4), steps=(0, 16, 4))
    yield several
    yield replace(several, pixels=(-7, 0, 5, 1))
    yield replace(several, outputs=(2, 12), steps=(0, 4), positions=40, pixels=(0, 0, 3))
    yield ScatteredMaximaSpec(isa=SCATTER_ISA, cells=300, positions=256, outputs=(2, 50, 6), steps=(0, 24, 4))


FAMILIES = {f"scattered-maxima-{SCATTER_ISA}": scattered_maxima}
