"""The specs of random numbers: every kind of rest, a loop with and without one."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.functions.random_numbers import DISTRIBUTIONS, RandomNumbersSpec


def counts(isa: str) -> Iterator[RandomNumbersSpec]:
    lanes = LANES[isa]
    for distribution in DISTRIBUTIONS:
        for count in (1, 2, lanes - 1, lanes, lanes + 3, 2 * lanes - 1, 2 * lanes, 6 * lanes, 6 * lanes + 5):
            yield RandomNumbersSpec(isa=isa, count=count, distribution=distribution)


FAMILIES = of_levels("random_numbers", counts=counts)
