"""How a reorder stores, and into what sizes its loops are cut."""

from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class MoveStyle:
    """streams: stores go past the caches, where a kernel writes whole lines.  few_sizes: rows that are transposed, and
    padding, come in powers of two, so that a few kernels serve every extent."""

    streams: bool = False
    few_sizes: bool = False
