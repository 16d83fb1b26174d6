"""What scatters write, a loop written from the table in the generator's docstring, and indices that name all rows."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from asmdnn.generators.move.scatter import ScatterSpec
from tests.generators.case import Case, Reference
from tests.generators.references.gather import rows_named
from tests.support.octets import Octets

COMBINE: dict[str, Callable[..., npt.NDArray[np.float32]]] = {
    "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
}  # fmt: skip


def scatter_case(spec: ScatterSpec, random: np.random.Generator, _: bool) -> Case:
    memory = {name: Octets(random.integers(0, 256, 1 << 17, np.uint8)) for name in spec.frame}
    if spec.reduction != "none":
        for name in ("updates", "dst"):  # a NaN of updates is stored as all ones
            values = random.standard_normal((1 << 17) // 4).astype(np.float32)
            if spec.reduction in ("max", "min"):
                values[random.random(values.size) < 0.1] = np.nan
            memory[name] = Octets(values.view(np.uint8))
    for i, number in enumerate(rows_named(spec, memory["indices"], random)):
        row = spec.dst_step * number
        found = memory["updates"].load(i * spec.updates_step, spec.row_bytes)
        if spec.reduction != "none":
            held, x = memory["dst"].load(row, spec.row_bytes).view(np.float32), found.view(np.float32)
            combined = COMBINE[spec.reduction](held, x).view(np.uint32)
            found = np.where(np.isnan(x), np.uint32(-1 % (1 << 32)), combined).view(np.uint8)
        memory["dst"].store(row, found)
    return Case(spec, {name: octets.buffer() for name, octets in memory.items()}, {})


REFERENCES = {ScatterSpec: Reference(scatter_case, rounds=False)}
