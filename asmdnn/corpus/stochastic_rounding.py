"""The specs of stochastic rounding: every kind of rest, a loop with and without one."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.functions.stochastic_grid import STEPS
from asmdnn.generators.functions.stochastic_rounding import StochasticRoundingSpec
from asmdnn.types import f32


def counts(isa: str) -> Iterator[StochasticRoundingSpec]:
    lanes = LANES[isa]
    for count in (1, lanes - 1, lanes, lanes + 3, 2 * lanes - 1, 2 * lanes, 6 * lanes, 6 * lanes + 5):
        yield StochasticRoundingSpec(isa=isa, count=count)


def types(isa: str) -> Iterator[StochasticRoundingSpec]:
    """A rest, and a loop with one, of every type that is stored as it is."""
    lanes = LANES[isa]
    for dst in (each for each in STEPS if each != f32):
        for count in (lanes - 1, 4 * lanes + lanes // 2 + 1):
            yield StochasticRoundingSpec(isa=isa, count=count, dst=dst)


FAMILIES = of_levels("stochastic rounding", counts=counts, types=types)
