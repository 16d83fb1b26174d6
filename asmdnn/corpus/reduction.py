"""The specs of reductions: tails, one accumulator and all; along rows and down them; functions before and after."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.functions.postops import BinaryOp, EltwiseOp, Operand
from asmdnn.generators.functions.reduce import AT_ONCE, NEUTRAL, ReduceSpec

GAP = 3  # elements between rows


def along(isa: str) -> Iterator[ReduceSpec]:
    """One row and some, of parts of a vector, and around the turn of the loop."""
    lanes = LANES[isa]
    for elements in (1, lanes, 2 * lanes + 1, 2 * AT_ONCE * lanes + lanes + 2):
        yield ReduceSpec(isa, "rows", "sum", 3, elements, 4 * (elements + GAP), 8)
    for op in NEUTRAL:
        yield ReduceSpec(isa, "rows", op, 2, lanes + 3, 4 * (lanes + 3), 4)


def down(isa: str) -> Iterator[ReduceSpec]:
    """One row and some, of parts of a vector, and around the turn of the loop."""
    lanes = LANES[isa]
    for rows, elements in ((1, 3), (3, lanes), (2, 2 * AT_ONCE * lanes + lanes + 2)):
        yield ReduceSpec(isa, "lanes", "sum", rows, elements, 4 * (elements + GAP), 0)
    for op in NEUTRAL:
        yield ReduceSpec(isa, "lanes", op, 3, lanes + 3, 4 * (lanes + 3), 0)


def functions(isa: str) -> Iterator[ReduceSpec]:
    """Before and after, with an operand that is as dst is."""
    lanes = LANES[isa]
    linear = EltwiseOp("linear", 0.5, -0.25, 1.0)
    for along_or_down, operand in (("rows", Operand(2, 8, 0, True)), ("lanes", Operand(2, 0, 0, False))):
        before, after = (linear, BinaryOp("sub", operand)), (BinaryOp("mul", operand), linear)
        yield ReduceSpec(isa, along_or_down, "max", 3, lanes + 3, 4 * (lanes + 3), 8, before, after)
        yield ReduceSpec(isa, along_or_down, "sum", 3, lanes + 3, 4 * (lanes + 3), 8, before)


FAMILIES = of_levels("reduce", along=along, down=down, functions=functions)
