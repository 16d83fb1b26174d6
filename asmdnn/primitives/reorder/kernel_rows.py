"""A reorder into the format of weights whose rows of the kernel are one run of elements: channels last, then panels."""

from asmdnn.memory import MemoryDesc
from asmdnn.memory.kernel_rows import KernelRowsDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.primitives.reorder.schedule import reorder_phases

CHANNELS_LAST = "weights, channels last"  # scratch


def add_rows(assembly: Assembly, source: tuple[str, MemoryDesc], target: tuple[str, KernelRowsDesc]) -> None:
    """Phases that bring weights, a buffer and its format, into another one."""
    (src, given), (dst, rows) = source, target
    if given != rows.plain:
        assembly.add(reorder_phases(given, rows.plain, (src, CHANNELS_LAST), assembly.tuning, isa=assembly.isa))
        assembly.scratch[CHANNELS_LAST] = rows.plain.size_bytes
        src = CHANNELS_LAST
    assembly.add(reorder_phases(rows.rows, rows.storage, (src, dst), assembly.tuning, isa=assembly.isa))
