"""The plan of a pooling: kernels for layouts that they address, reorders around them for all others."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import prod
from types import MappingProxyType

from asmdnn.isa.elements import element_of
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.machine import machine_of
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import post_ops_of
from asmdnn.primitives.convolution.geometry import image_layout
from asmdnn.primitives.elementwise.behind import with_pass_behind
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.formats import of_type
from asmdnn.primitives.implementation import implementation
from asmdnn.primitives.pooling.calls import PoolCall, phases_of
from asmdnn.primitives.pooling.description import Pooling
from asmdnn.primitives.pooling.kernels import (
    Maker,
    along,
    in_two_steps,
    index_calls,
    pixel_calls,
    plane_calls,
    row_calls,
)
from asmdnn.primitives.pooling.schedule import Planes, planes_of
from asmdnn.primitives.pooling.windows import reduced_runs, single_runs, undivided
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.words import in_words
from asmdnn.types import f32, s8, s32, u8

NAME = "pool"
PLAIN = ("src", "dst")
OWN = (*PLAIN, "indices")
NO_PLACES: Mapping[str, View] = MappingProxyType({})
REDUCED, PLACES = "rows reduced", "places in rows"  # scratch


@implementation(NAME, f32_level)
def plan(desc: Pooling, attr: Attr, engine: Engine) -> Plan:
    """Plan a pooling.  Raises Refused, and InvalidArguments for post-ops that do not fit dst."""
    if attr.quantizes:
        raise Refused("scales and zero points are not implemented")
    src = format_like(desc.dst, desc.src)
    dst = format_like(src, desc.dst)
    passed = {"src": src, "dst": dst}
    if desc.indices is not None:
        passed["indices"] = format_like(dst, desc.indices)
    for name in ("dst", "indices"):
        if name in passed and passed[name].may_overlap:
            raise Refused(f"elements of {name} overlap")
    chain = post_ops_of(attr)
    passed |= chain.operands(dst)
    if chain.names or (attr.post_ops and (desc.indices or dst.padded_dims != dst.dims or dst.dtype != f32)):
        return with_post_ops(desc, passed, attr, engine)
    others = maxima_of_bytes(desc, passed, attr, engine) or converted(desc, passed, attr, engine)
    if others:
        return others
    reads = ("dst",) if attr.reads_dst() else ()
    return between_reorders(pooled(desc, passed, attr, engine), passed, engine.tuning, reads, isa=engine.isa)


def format_like(model: MemoryDesc, desc: MemoryDesc) -> MemoryDesc:
    """`desc`; if its format is any, in the order and the blocks of the model."""
    if not desc.is_any:
        return desc
    tag = model.tag if not model.is_any else None
    return MemoryDesc(desc.dims, desc.dtype, tag or LETTERS[: desc.ndims])


def maxima_of_bytes(desc: Pooling, passed: dict[str, MemoryDesc], attr: Attr, engine: Engine) -> Plan | None:
    """Maxima of s8 and u8 where channels are dense, four at a time; None for all else."""
    src, dst = passed["src"], passed["dst"]
    if not desc.is_max or src.dtype not in (s8, u8) or dst.dtype != src.dtype or attr.post_ops or len(passed) > 2:
        return None
    of_src, of_dst = in_words(src), in_words(dst)
    if of_src is None or of_dst is None or not channels_are_dense(of_src, of_dst):
        return None
    made = pooled(desc, {"src": of_src, "dst": of_dst}, attr, engine, f"_{src.dtype}")
    return replace(made, tensors=passed)


def converted(desc: Pooling, passed: dict[str, MemoryDesc], attr: Attr, engine: Engine) -> Plan | None:
    """Of elements of 1 and 2 bytes where channels are dense, brought to f32 in registers; None for all else, and for
    large windows, whose rows and columns are reduced one after the other."""
    src, dst = passed["src"], passed["dst"]
    element = element_of(src.dtype)
    if element.size_bytes == f32.size_bytes or not element.converts_alone or dst.dtype != src.dtype:
        return None
    if attr.post_ops or len(passed) > 2 or not prod(dst.dims):
        return None
    if not channels_are_dense(src, dst) or in_two_steps(desc, engine.tuning.pooling):
        return None
    isa = f32_level(engine.isa)
    maker = Maker(isa, desc, planes_of(src, dst, False), (), False, engine.tuning, dtype=src.dtype)
    assembly = Assembly(engine.tuning, engine.isa)
    add_calls(assembly, pixel_calls(maker, maker.axes()))
    return assembly.plan(f"{NAME}:{isa}", passed, ("dst",))


def with_post_ops(desc: Pooling, passed: dict[str, MemoryDesc], attr: Attr, engine: Engine) -> Plan:
    """Pooling into scratch, and an element-wise pass: for post-ops that read tensors, that make something else of the
    zeros of padding, or that stand behind maxima with indices, whose kernels have none."""
    tensors = {name: desc for name, desc in passed.items() if name in OWN} | {"dst": of_type(passed["dst"], f32)}
    first = between_reorders(pooled(desc, tensors, Attr(), engine), tensors, engine.tuning, isa=engine.isa)
    return with_pass_behind(NAME, first, passed, attr, engine)


def pooled(desc: Pooling, passed: dict[str, MemoryDesc], attr: Attr, engine: Engine, of_bytes: str = "") -> Plan:
    """The plan of kernels, for tensors in formats that they take.  of_bytes: as in Maker."""
    isa = f32_level(engine.isa)
    tensors = formats_for(desc, {name: t for name, t in passed.items() if name in OWN}, engine)
    src, dst = tensors["src"], tensors["dst"]
    outputs = ("dst", "indices") if "indices" in tensors else ("dst",)
    if not prod(dst.dims):
        return Assembly(engine.tuning, engine.isa).plan(f"{NAME}:{isa}", tensors, outputs)
    streams = sum(tensor.size_bytes for tensor in tensors.values()) > machine_of(engine.machine).caches.l3_bytes
    maker = Maker(isa, desc, planes_for(src, dst), post_ops_of(attr).on_registers({}), streams, engine.tuning, of_bytes)
    assembly = Assembly(engine.tuning, engine.isa)
    if "indices" in tensors and in_two_steps(desc, engine.tuning.pooling, engine.tuning.pooling.indexed_positions):
        add_indexed_steps(assembly, maker, src, dst)
    elif "indices" in tensors:
        add_calls(assembly, index_calls(maker, maker.axes()), (*OWN, "first"))
    elif not channels_are_dense(src, dst):
        add_calls(assembly, plane_calls(maker) or row_calls(maker) or ())
    elif in_two_steps(desc, engine.tuning.pooling):
        add_two_steps(assembly, maker, src, dst)
    else:
        add_calls(assembly, pixel_calls(maker, maker.axes()))
    return assembly.plan(f"{NAME}:{isa}", tensors, outputs)


def add_calls(
    assembly: Assembly,
    calls: Iterable[PoolCall],
    arguments: tuple[str, ...] = PLAIN,
    places: Mapping[str, View] = NO_PLACES,
) -> None:
    """Phases of the calls; `places` says what stands for an argument."""
    phases, constants = phases_of(list(calls), arguments, assembly.tuning.phases)
    assembly.add([phase.on(places) for phase in phases])
    assembly.constants |= constants


def planes_for(src: MemoryDesc, dst: MemoryDesc) -> Planes:
    return planes_of(src, dst, not channels_are_dense(src, dst))


def add_two_steps(assembly: Assembly, maker: Maker, src: MemoryDesc, dst: MemoryDesc) -> None:
    """Over all axes but the last one into scratch, and then along it; a mean is a sum until the end, so that it is
    rounded once."""
    reduced = format_like(src, MemoryDesc((*dst.dims[:-1], src.dims[-1]), f32, "any"))
    first = replace(maker, planes=planes_for(src, reduced), chain=(), streams=False)
    second = replace(maker, planes=planes_for(reduced, dst))
    *outer, along_last = maker.axes()
    sums = [undivided(runs) for runs in outer]
    calls = pixel_calls(first, [*sums, single_runs(src.dims[-1])])
    add_calls(assembly, calls, PLAIN, {"dst": View(REDUCED)})
    calls = pixel_calls(second, [*map(reduced_runs, sums if maker.desc.is_max else outer), along_last])
    add_calls(assembly, calls, PLAIN, {"src": View(REDUCED)})
    assembly.scratch[REDUCED] = reduced.size_bytes


def add_indexed_steps(assembly: Assembly, maker: Maker, src: MemoryDesc, dst: MemoryDesc) -> None:
    """Along the last axis into scratch, with places, and then over the others: of equal numbers the first one stays."""
    last = src.ndims - 3
    reduced = format_like(src, MemoryDesc((*src.dims[:-1], dst.dims[-1]), f32, "any"))
    first = replace(maker, planes=planes_for(src, reduced), streams=False)
    second = replace(maker, planes=planes_for(reduced, dst))
    calls = index_calls(first, along(maker.axes(), reduced.dims[2:], (last,)))
    add_calls(assembly, calls, (*OWN, "first"), {"dst": View(REDUCED), "indices": View(PLACES)})
    calls = index_calls(second, along(maker.axes(), dst.dims[2:], range(last)), carries=True)
    add_calls(assembly, calls, (*OWN, "carried"), {"src": View(REDUCED), "carried": View(PLACES)})
    assembly.scratch |= {REDUCED: reduced.size_bytes, PLACES: reduced.size_bytes}


def formats_for(desc: Pooling, tensors: dict[str, MemoryDesc], engine: Engine) -> dict[str, MemoryDesc]:
    """The tensors in formats that a kernel takes: as they are, or with dense channels."""
    wanted = {name: of_type(t, s32 if name == "indices" else f32) for name, t in tensors.items()}
    src, dst = wanted["src"], wanted["dst"]
    same_places = "indices" not in wanted or of_type(wanted["indices"], f32) == dst
    if src == tensors["src"] and dst == tensors["dst"] and same_places:
        if channels_are_dense(src, dst):
            return wanted
        if "indices" not in wanted and rows_are_dense(src, dst):
            maker = Maker(f32_level(engine.isa), desc, planes_for(src, dst), (), False, engine.tuning)
            if plane_calls(maker) or row_calls(maker):
                return wanted
    block = next((b for b in (src, dst) if channels_are_dense(b, b) and b.inner_blocks), None)
    tag = f"aBx{block.blocks[1]}b" if block else "axb"
    return {name: MemoryDesc(t.dims, t.dtype, tag) for name, t in wanted.items()}


def channels_are_dense(src: MemoryDesc, dst: MemoryDesc) -> bool:
    """Whether both tensors have the same stretches of channels dense in memory."""
    layouts = image_layout(src), image_layout(dst)
    if None in layouts:
        return False
    (a, b) = layouts
    assert a is not None and b is not None
    return a.block == b.block and all(
        x.block == 1 or x.channel_bytes == t.dtype.size_bytes for x, t in ((a, src), (b, dst))
    )


def rows_are_dense(src: MemoryDesc, dst: MemoryDesc) -> bool:
    """Whether lines of pixels are dense in both, and channels are not in blocks."""
    return all(not t.inner_blocks and t.strides[-1] == 1 and t.may_overlap is False for t in (src, dst))
