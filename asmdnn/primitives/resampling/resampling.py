"""The plan of a resampling: of dense channels, of dense rows, or between reorders."""

from dataclasses import replace
from math import prod

import numpy as np

from asmdnn.generators.functions.postops import PostOp
from asmdnn.isa.elements import element_of
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.calls import phases_of
from asmdnn.planning.machine import machine_of
from asmdnn.planning.phase import Int64, views
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import post_ops_of
from asmdnn.primitives.convolution.geometry import image_layout
from asmdnn.primitives.elementwise.behind import with_pass_behind
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.formats import of_type
from asmdnn.primitives.implementation import implementation
from asmdnn.primitives.pooling.formats import channels_are_dense, format_like, rows_are_dense
from asmdnn.primitives.pooling.schedule import planes_of
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.resampling.channels import DenseChannels
from asmdnn.primitives.resampling.description import ResamplingForward
from asmdnn.primitives.resampling.rows import DenseRows
from asmdnn.primitives.resampling.taps import Numbers
from asmdnn.primitives.words import in_words
from asmdnn.types import f32

NAME = "resample"


@implementation(NAME, f32_level)
def plan(desc: ResamplingForward, attr: Attr, engine: Engine) -> Plan:
    """Plan a resampling.  Raises Refused, and InvalidArguments for post-ops that do not fit dst."""
    if attr.quantizes:
        raise Refused("scales and zero points are not implemented")
    src = format_like(desc.dst, desc.src)
    passed = {"src": src, "dst": format_like(src, desc.dst)}
    if passed["dst"].may_overlap:
        raise Refused("elements of dst overlap")
    chain = post_ops_of(attr)
    operands = chain.operands(passed["dst"])
    if operands or chain.reads_dst or (chain.links and passed["dst"].padded_dims != passed["dst"].dims):
        first = between(desc, passed | {"dst": of_type(passed["dst"], f32)}, (), engine)
        return with_pass_behind(NAME, first, {**passed, **operands}, attr, engine)
    return moved_whole(desc, passed, attr, engine) or between(desc, passed, chain.on_registers({}), engine)


def moved_whole(desc: ResamplingForward, passed: dict[str, MemoryDesc], attr: Attr, engine: Engine) -> Plan | None:
    """Nearest elements of any one type where channels are dense, in words of them; None for all else."""
    src, dst = passed["src"], passed["dst"]
    if desc.alg != "nearest" or attr.post_ops or src.dtype != dst.dtype or src.dtype == f32:
        return None
    words = {"src": in_words(src), "dst": in_words(dst)}
    if words["src"] is None or words["dst"] is None or not channels_are_dense(words["src"], words["dst"]):
        return None
    return replace(resampled(desc, words["src"], words["dst"], (), engine), tensors=passed)


def between(desc: ResamplingForward, passed: dict[str, MemoryDesc], chain: tuple[PostOp, ...], engine: Engine) -> Plan:
    """Kernels for layouts that they address, reorders around them for all others."""
    if converts_in_registers(passed["src"], passed["dst"], engine):
        return resampled(desc, passed["src"], passed["dst"], chain, engine)
    tensors = {name: of_type(tensor, f32) for name, tensor in passed.items()}
    if not channels_are_dense(tensors["src"], tensors["dst"]):
        if rows_are_dense(tensors["src"], tensors["dst"]) and 0 not in desc.dst.dims:
            made = resampled_by_rows(desc, tensors["src"], tensors["dst"], chain, engine)
            if made:
                return between_reorders(made, passed, engine.tuning, isa=engine.isa)
        tensors = {name: MemoryDesc(tensor.dims, f32, "axb") for name, tensor in passed.items()}
    made = resampled(desc, tensors["src"], tensors["dst"], chain, engine)
    return between_reorders(made, passed, engine.tuning, isa=engine.isa)


def converts_in_registers(src: MemoryDesc, dst: MemoryDesc, engine: Engine) -> bool:
    """Whether kernels load and store elements of these types: vectors of channels, of f16, which is one instruction, or
    of tensors that as f32 would not stay in caches.

    An element is loaded for several results, and a vector at a time is rounded, so that conversions in phases of their
    own are faster in caches: u8 to u8 64x56x56 to 112x112 takes 158 us by them, and 243 without.
    """
    kinds = {src.dtype, dst.dtype} - {f32}
    if not kinds or not channels_are_dense(src, dst):
        return False
    far = of_type(src, f32).size_bytes + of_type(dst, f32).size_bytes >= engine.tuning.moves.streaming_bytes
    layout = image_layout(src)
    if layout is None or layout.block < lanes_of(f32_level(engine.isa)):
        return False
    elements = [element_of(kind) for kind in kinds]
    return (far and all(each.converts_alone for each in elements)) or all(each.is_packed for each in elements)


def resampled_by_rows(
    desc: ResamplingForward, src: MemoryDesc, dst: MemoryDesc, chain: tuple[PostOp, ...], engine: Engine
) -> Plan | None:
    """For tensors with dense rows; None where there would be much code."""
    isa = f32_level(engine.isa)
    axes = [desc.taps(axis) for axis in range(src.ndims - 2)]
    record_cycles = engine.tuning.resampling.record_cycles
    maker = DenseRows(isa, planes_of(src, dst, True), axes, streams(dst, engine), record_cycles, chain)
    calls, assembly = maker.calls(), Assembly(engine.tuning, engine.isa)
    if calls is None:
        return None
    assembly.constants = maker.constants()
    buffers = (name if name in assembly.constants else "" for name in ("weights", "factors"))
    assembly.add(phases_of(calls, views(("src", "dst", *buffers)), engine.tuning.phases, along_dst=True))
    return assembly.plan(f"{NAME}:{isa}", {"src": src, "dst": dst}, ("dst",))


def streams(dst: MemoryDesc, engine: Engine) -> bool:
    """Whether dst goes past the caches."""
    return engine.tuning.resampling.streaming_share * dst.size_bytes > machine_of(engine.machine).caches.l3_bytes


def resampled(
    desc: ResamplingForward, src: MemoryDesc, dst: MemoryDesc, chain: tuple[PostOp, ...], engine: Engine
) -> Plan:
    """For tensors with dense channels."""
    isa = f32_level(engine.isa)
    name, tensors, assembly = f"{NAME}:{isa}", {"src": src, "dst": dst}, Assembly(engine.tuning, engine.isa)
    if not prod(dst.dims):
        return assembly.plan(name, tensors, ("dst",))
    axes = [desc.taps(axis) for axis in range(src.ndims - 2)]
    record_cycles = engine.tuning.resampling.record_cycles
    kinds = src.dtype.name, dst.dtype.name
    maker = DenseChannels(isa, planes_of(src, dst, False), axes, streams(dst, engine), record_cycles, chain, kinds)
    buffers = []
    for axis, taps in enumerate(axes):
        several = taps.each > 1
        buffers.append(f"weights{axis}" if several else "")
        if several:
            assembly.constants[f"weights{axis}"] = words_of(taps.weights)
    assembly.add(maker.phases(views(("src", "dst", *buffers)), engine.tuning.phases))
    return assembly.plan(name, tensors, ("dst",))


def words_of(weights: Numbers) -> Int64:
    """As f32 numbers in int64 words."""
    flat = weights.astype(np.float32).ravel()
    return np.pad(flat, (0, flat.size % 2)).view(np.int64)
