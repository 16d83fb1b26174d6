"""Elements in the order of their numbers, by which kernels draw random ones: a record for every piece of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from asmdnn.generators.contract import KernelSpec
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.planning.assembly import WORD_BYTES, Assembly
from asmdnn.planning.phase import Phase, records_of, views
from asmdnn.records import dataclass

FIRSTS: Final = "first"  # the constant with the number of every piece's first element


@dataclass(frozen=True, slots=True, eq=False)
class NumberedKernels:
    """Of pieces: that of so many elements, and the cycles of a vector.  arguments: of all, one of which is FIRSTS;
    size_bytes: of an element, of those that have one for each."""

    arguments: Sequence[str]
    size_bytes: Mapping[str, int]
    spec_of: Callable[[int], KernelSpec]
    vector_cycles: int


def add_pieces(assembly: Assembly, count: int, kernels: NumberedKernels, first: int = 0) -> None:
    """Of `count` elements, whose numbers begin with `first`."""
    if not count:
        return
    tuning, lanes = assembly.tuning.dropout, lanes_of(f32_level(assembly.isa))
    starts = np.arange(0, count, tuning.record_elements)
    assembly.constants[FIRSTS] = (starts + first).astype(np.int64)
    sizes, kernel = np.unique(np.minimum(tuning.record_elements, count - starts), return_inverse=True)
    columns = {name: size * starts for name, size in kernels.size_bytes.items()}
    columns[FIRSTS] = WORD_BYTES * np.arange(len(starts))
    cycles = tuning.call_cycles + kernels.vector_cycles * -(-sizes[kernel] // lanes)
    specs = tuple(kernels.spec_of(int(size)) for size in sizes)
    records = records_of(kernels.arguments, columns, kernel)
    assembly.add([Phase(specs, views(kernels.arguments), records, cycles.astype(np.int32))])
