"""A reorder into the format of weights whose rows of the kernel are one run of elements: channels last, then panels."""

from collections.abc import Iterator

from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.memory.kernel_rows import KernelRowsDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.primitives.reorder.schedule import reorder_phases
from asmdnn.types import FLOATS

NAME = "kernel_rows"
CHANNELS_LAST = "weights, channels last"  # scratch


def plan(desc: Reorder, attr: Attr, engine: Engine) -> Answer | Iterator[Answer]:
    """Plan a reorder into a KernelRowsDesc, or say why not; nothing of others."""
    if not isinstance(desc.dst, KernelRowsDesc):
        return iter(())
    try:
        return planned(desc, desc.dst, attr, engine)
    except Refused as reason:
        return Refusal(f"{NAME}:{engine.isa}", str(reason))


def planned(desc: Reorder, dst: KernelRowsDesc, attr: Attr, engine: Engine) -> Plan:
    """Raises Refused."""
    if desc.src.storage is not desc.src or desc.src.dtype not in FLOATS:
        raise Refused(f"src is {desc.src}, only plain and blocked {', '.join(map(str, FLOATS))} are implemented")
    if attr.post_ops or attr.quantizes or desc.compensation is not None:
        raise Refused("attributes and compensation are not implemented")
    assembly = Assembly(engine.tuning, engine.isa)
    add_rows(assembly, ("src", desc.src), ("dst", dst))
    return assembly.plan(f"{NAME}:{f32_level(engine.isa)}", {"src": desc.src, "dst": dst}, ("dst",))


def add_rows(assembly: Assembly, source: tuple[str, MemoryDesc], target: tuple[str, KernelRowsDesc]) -> None:
    """Phases that bring weights, a buffer and its format, into another one."""
    (src, given), (dst, rows) = source, target
    if given != rows.plain:
        assembly.add(reorder_phases(given, rows.plain, (src, CHANNELS_LAST), assembly.tuning, isa=assembly.isa))
        assembly.scratch[CHANNELS_LAST] = rows.plain.size_bytes
        src = CHANNELS_LAST
    assembly.add(reorder_phases(rows.rows, rows.storage, (src, dst), assembly.tuning, isa=assembly.isa))
