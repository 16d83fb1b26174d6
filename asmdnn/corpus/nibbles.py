"""Bytes to nibbles and back: loops, rests, tails of a vector."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.functions.nibbles import NibblesSpec


def pieces(isa: str) -> Iterator[NibblesSpec]:
    """One byte, a vector, turns of a loop with a rest; signed and not, both ways."""
    lanes = LANES[isa]
    for packs in (True, False):
        for signed in (True, False):
            for count in (1, lanes, 9 * lanes + 3):
                yield NibblesSpec(isa=isa, count=count, signed=signed, packs=packs)


FAMILIES = of_levels("nibble-bytes", pieces=pieces)
