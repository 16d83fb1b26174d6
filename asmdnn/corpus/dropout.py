"""The specs of dropouts: every kind of rest, a loop with and without one."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.functions.dropout import DropoutSpec


def counts(isa: str) -> Iterator[DropoutSpec]:
    lanes = LANES[isa]
    for count in (1, lanes - 1, lanes, lanes + 3, 2 * lanes - 1, 2 * lanes, 6 * lanes, 6 * lanes + 5):
        yield DropoutSpec(isa=isa, count=count)


FAMILIES = of_levels("dropout", counts=counts)
