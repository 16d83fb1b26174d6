"""Kernels of attention that read how many keys there are: the same ones serve any number of them.

What they read are constants of the plan, one list of numbers after the other.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.dot.counted_tile import CountedTileSpec, is_countable
from asmdnn.generators.dot.matmul import MatmulTileSpec
from asmdnn.generators.functions import softmax_counted, softmax_counted_long
from asmdnn.generators.functions.softmax import SoftmaxSpec
from asmdnn.generators.functions.softmax_counted import CountedSoftmaxSpec
from asmdnn.generators.functions.softmax_counted_long import CountedLongSoftmaxSpec
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.phase import Int64, View
from asmdnn.planning.steps import StepRecords
from asmdnn.records import replace

WORD_BYTES = 8
NUMBERS = "numbers of kernels"
CountedSoftmax = CountedSoftmaxSpec | CountedLongSoftmaxSpec
SOFTMAX_FORMS: Sequence[tuple[type[CountedSoftmax], Callable[[SoftmaxSpec], bool]]] = (
    (CountedSoftmaxSpec, softmax_counted.is_countable),  # of rows that registers hold
    (CountedLongSoftmaxSpec, softmax_counted_long.is_countable),
)


class KernelNumbers:
    """What kernels read, as a constant of a plan."""

    def __init__(self) -> None:
        self.values: list[int] = []
        self.places: dict[tuple[int, ...], int] = {}

    def place_of(self, numbers: tuple[int, ...]) -> int:
        """The byte where a list of numbers begins, which may be new."""
        if numbers not in self.places:
            self.places[numbers] = WORD_BYTES * len(self.values)
            self.values += numbers
        return self.places[numbers]

    def constants(self) -> Mapping[str, Int64]:
        return {NUMBERS: np.array(self.values, np.int64)} if self.values else {}


def counted_product(step: StepRecords, numbers: KernelNumbers, fills_vectors: bool) -> StepRecords:
    """The step with kernels that read their numbers, where all of its kernels have such a form.  fills_vectors: dst has
    room for whole vectors of columns, and nobody minds what is stored after the last column."""
    found = [spec for spec in (counted(spec, fills_vectors) for spec in step.kernels) if spec is not None]
    return with_numbers(step, found, numbers) if len(found) == len(step.kernels) else step


def counted_softmax(step: StepRecords, numbers: KernelNumbers) -> StepRecords:
    """The same of softmax, of rows of whole vectors."""
    found = [
        form(
            isa=x.isa,
            rows=x.rows,
            elements=x.elements,
            src_row_bytes=x.src_row_bytes,
            dst_row_bytes=x.dst_row_bytes,
            before=x.before,
        )
        for x in step.kernels
        if isinstance(x, SoftmaxSpec)
        for form, is_countable in SOFTMAX_FORMS
        if is_countable(x)
    ]
    return with_numbers(step, found, numbers) if len(found) == len(step.kernels) else step


def with_numbers(
    step: StepRecords, kernels: Sequence[CountedTileSpec | CountedSoftmax], numbers: KernelNumbers
) -> StepRecords:
    """The step with these kernels, which have one more argument."""
    places = np.array([numbers.place_of(spec.numbers) for spec in kernels], np.int64)
    records = np.column_stack((step.records, places[step.records[:, 0]]))
    return StepRecords(tuple(kernels), records, step.cycles, (*step.views, View(NUMBERS)))


def fill_vectors(steps: Sequence[StepRecords]) -> bool:
    """Whether tiles store whole vectors."""
    kernels = [spec for step in steps for spec in step.kernels]
    return all(isinstance(x, CountedTileSpec) and x.tile.columns % lanes_of(x.isa) == 0 for x in kernels)


def counted(spec: KernelSpec, fills_vectors: bool) -> CountedTileSpec | None:
    if not isinstance(spec, MatmulTileSpec) or not is_countable(spec.tile):
        return None
    tile = replace(spec.tile, prefetch_lines=0, sums=1)  # in one order, whatever the number of keys is
    if fills_vectors and tile.padded and tile.dst is None:
        tile = replace(tile, columns=tile.vectors * lanes_of(tile.isa))
    return CountedTileSpec(tile=tile)
