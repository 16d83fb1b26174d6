"""The specs of non-maximum suppression: every tail alone, whole vectors with and without one, few results and many."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.functions.suppression import SuppressionSpec
from asmdnn.generators.functions.suppression_shape import CALLS, VECTORS_OF_BLOCK


def sizes(isa: str) -> Iterator[SuppressionSpec]:
    lanes = LANES[isa]
    few = [(boxes, min(boxes, 2)) for boxes in range(1, lanes + 1)]
    more = [(3 * lanes, 1), (3 * lanes, lanes), (5 * lanes - 1, 2 * lanes + 3), (40, 40), (17 * lanes + 1, 5)]
    for boxes, most in (*few, *more):
        yield from (SuppressionSpec(isa=isa, call=call, boxes=boxes, most=most) for call in CALLS)


def many(isa: str) -> Iterator[SuppressionSpec]:
    """The highest scores of blocks are in a loop."""
    boxes = (2 * LANES[isa] + 1) * VECTORS_OF_BLOCK * LANES[isa]
    yield from (SuppressionSpec(isa=isa, call=call, boxes=boxes, most=3) for call in CALLS)


FAMILIES = of_levels("suppression", sizes=sizes, many=many)
