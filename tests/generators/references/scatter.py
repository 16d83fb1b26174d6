"""What scatters write, a loop written from the table in the generator's docstring, and indices that name all rows."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from asmdnn.generators.move.scatter import ScatterSpec
from tests.generators.case import Case, Reference
from tests.support.octets import Octets

COMBINE: dict[str, Callable[..., npt.NDArray[np.float32]]] = {
    "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
}  # fmt: skip


def scatter_case(spec: ScatterSpec, random: np.random.Generator, _: bool) -> Case:
    """Every row of dst is named; more indices are negative ones, and numbers of no row, which are taken as row 0."""
    limit = spec.limit
    memory = {name: Octets(random.integers(0, 256, 1 << 17, np.uint8)) for name in spec.frame}
    if spec.reduction != "none":
        for name in ("updates", "dst"):  # a NaN of updates is stored as all ones
            values = random.standard_normal((1 << 17) // 4).astype(np.float32)
            if spec.reduction in ("max", "min"):
                values[random.random(values.size) < 0.1] = np.nan
            memory[name] = Octets(values.view(np.uint8))
    strange = np.array([-1, limit, -limit, -limit - 1, 2**31 - 1, -(2**31)], np.int64)
    numbers = np.concatenate([np.arange(limit), np.resize(strange, spec.count)])[: spec.count].astype(np.int32)
    random.shuffle(numbers)
    place = memory["indices"]
    for i, number in enumerate(numbers):
        place.initial[place.place(i * spec.index_step, 4)] = np.array([number]).view(np.uint8)
    place.values[:] = place.initial
    for i in range(spec.count):
        number = int(place.load(i * spec.index_step, 4).view(np.int32)[0])
        number += limit * (number < 0)
        row = spec.dst_step * (number if 0 <= number < limit else 0)
        found = memory["updates"].load(i * spec.updates_step, spec.row_bytes)
        if spec.reduction != "none":
            held, x = memory["dst"].load(row, spec.row_bytes).view(np.float32), found.view(np.float32)
            combined = COMBINE[spec.reduction](held, x).view(np.uint32)
            found = np.where(np.isnan(x), np.uint32(-1 % (1 << 32)), combined).view(np.uint8)
        memory["dst"].store(row, found)
    return Case(spec, {name: octets.buffer() for name, octets in memory.items()}, {})


REFERENCES = {ScatterSpec: Reference(scatter_case, rounds=False)}
