"""Reorders into formats that hold no elements: what Winograd's convolution reads, rows of the kernel, sums of two."""

from collections.abc import Iterator
from typing import Final

from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.memory.kernel_rows import KernelRowsDesc
from asmdnn.memory.split import SplitDesc
from asmdnn.memory.winograd import WinogradDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer
from asmdnn.primitives.reorder.kernel_rows import add_rows
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.primitives.reorder.split import add_split
from asmdnn.primitives.reorder.winograd import LEAST_LANES, add_transform, level_of
from asmdnn.types import FLOATS

NAMES: Final = {WinogradDesc: "winograd", KernelRowsDesc: "kernel_rows", SplitDesc: "split"}


def plan(desc: Reorder, attr: Attr, engine: Engine) -> Answer | Iterator[Answer]:
    """Plan a reorder into such a format, or say why not; nothing of others."""
    if desc.dst.holds_elements:
        return iter(())
    name = name_of(desc.dst)
    try:
        return planned(name, desc, attr, engine)
    except Refused as reason:
        return Refusal(f"{name}:{engine.isa}", str(reason))


def name_of(dst: MemoryDesc) -> str:
    return NAMES[type(dst)]


def planned(name: str, desc: Reorder, attr: Attr, engine: Engine) -> Plan:
    """Raises Refused."""
    dst = desc.dst
    if desc.src.storage is not desc.src or desc.src.dtype not in (*FLOATS, dst.dtype):
        of = ", ".join(map(str, dict.fromkeys((*FLOATS, dst.dtype))))
        raise Refused(f"src is {desc.src}, only plain and blocked {of} are implemented")
    if isinstance(dst, WinogradDesc) and dst.panel % LEAST_LANES:
        raise Refused(f"dst has panels of {dst.panel} channels, no multiple of {LEAST_LANES}")
    if attr.post_ops or attr.quantizes or desc.compensation is not None:
        raise Refused("attributes and compensation are not implemented")
    assembly = Assembly(engine.tuning, engine.isa)
    add_transformed(assembly, ("src", desc.src), ("dst", dst))
    level = level_of(dst, engine.isa) if isinstance(dst, WinogradDesc) else f32_level(engine.isa)
    return assembly.plan(f"{name}:{level}", {"src": desc.src, "dst": dst}, ("dst",))


def add_transformed(assembly: Assembly, source: tuple[str, MemoryDesc], target: tuple[str, MemoryDesc]) -> None:
    """Phases that bring weights, a buffer and its format, into another one, of these formats."""
    buffer, dst = target
    if isinstance(dst, WinogradDesc):
        add_transform(assembly, source, (buffer, dst))
    elif isinstance(dst, SplitDesc):
        add_split(assembly, source, (buffer, dst))
    else:
        assert isinstance(dst, KernelRowsDesc)
        add_rows(assembly, source, (buffer, dst))
