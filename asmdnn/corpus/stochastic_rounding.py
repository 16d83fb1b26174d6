"""The specs of stochastic rounding: every kind of rest, a loop with and without one."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.functions.stochastic_rounding import StochasticRoundingSpec


def counts(isa: str) -> Iterator[StochasticRoundingSpec]:
    lanes = LANES[isa]
    for count in (1, lanes - 1, lanes, lanes + 3, 2 * lanes - 1, 2 * lanes, 6 * lanes, 6 * lanes + 5):
        yield StochasticRoundingSpec(isa, count)


FAMILIES = of_levels("stochastic rounding", counts=counts)
