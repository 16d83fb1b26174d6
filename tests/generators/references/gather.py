"""What gathers copy, as a loop written from the table in the generator's docstring, and indices that name all rows."""

from collections.abc import Iterator

import numpy as np

from asmdnn.generators.move.gather import GatherSpec
from asmdnn.generators.move.gather_lanes import GatherLanesSpec
from asmdnn.generators.move.scatter import ScatterSpec
from tests.generators.case import Case, Reference
from tests.support.octets import Octets


def rows_named(
    spec: GatherSpec | ScatterSpec | GatherLanesSpec, place: Octets, random: np.random.Generator, stray: int = 0
) -> Iterator[int]:
    """By indices that are written there: every row, then negative numbers, and those of no row, which are `stray`'s."""
    limit = spec.limit
    strange = np.array([-1, limit, -limit, -limit - 1, 2**31 - 1, -(2**31)], np.int64)
    numbers = np.concatenate([np.arange(limit), np.resize(strange, spec.count)])[: spec.count].astype(np.int32)
    random.shuffle(numbers)
    for i, number in enumerate(numbers):
        place.initial[place.place(i * spec.index_step, 4)] = np.array([number]).view(np.uint8)
    place.values[:] = place.initial
    for i in range(spec.count):
        number = int(place.load(i * spec.index_step, 4).view(np.int32)[0])
        number += limit * (number < 0)
        yield number if 0 <= number < limit else stray


def gather_case(spec: GatherSpec, random: np.random.Generator, _: bool) -> Case:
    memory = {name: Octets(random.integers(0, 256, 1 << 17, np.uint8)) for name in spec.frame}
    for i, row in enumerate(rows_named(spec, memory["indices"], random)):
        memory["dst"].store(i * spec.dst_step, memory["src"].load(row * spec.src_step, spec.row_bytes))
    return Case(spec, {name: octets.buffer() for name, octets in memory.items()}, {})


def lanes_case(spec: GatherLanesSpec, random: np.random.Generator, _: bool) -> Case:
    memory = {name: Octets(random.integers(0, 256, 1 << 17, np.uint8)) for name in spec.frame}
    elements = [*rows_named(spec, memory["indices"], random, stray=spec.limit - 1)]
    for row in range(spec.rows):
        found = memory["src"].load(row * spec.src_step, 4 * spec.limit).reshape(spec.limit, 4)
        memory["dst"].store(row * spec.dst_step, found[elements].ravel())
    return Case(spec, {name: octets.buffer() for name, octets in memory.items()}, {})


REFERENCES = {
    GatherSpec: Reference(gather_case, rounds=False),
    GatherLanesSpec: Reference(lanes_case, rounds=False),
}
