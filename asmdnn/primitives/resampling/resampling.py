"""The plans of a resampling: of words, of dense channels, of dense rows, a view by strides, or of copies with dense
channels."""

from math import prod

import numpy as np

from asmdnn.generators.functions.postops import PostOp
from asmdnn.isa.elements import element_of, narrowing_level, storing_element
from asmdnn.isa.vectors import NARROWEST, f32_level, lanes_of, vector_class
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly, constant_words
from asmdnn.planning.calls import phases_of
from asmdnn.planning.machine import machine_of
from asmdnn.planning.phase import views
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr, refuse_scales
from asmdnn.primitives.attributes.chain import post_ops_of
from asmdnn.primitives.convolution.geometry import image_layout
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementations_of
from asmdnn.primitives.elementwise.around_kernels import AroundKernels, Surrounded
from asmdnn.primitives.pooling.formats import channels_are_dense, format_like, rows_are_dense
from asmdnn.primitives.pooling.schedule import planes_of
from asmdnn.primitives.reorder.copies import WORD, Reordering, add_reorder
from asmdnn.primitives.resampling.channels import F32, DenseChannels
from asmdnn.primitives.resampling.description import ResamplingForward
from asmdnn.primitives.resampling.rows import DenseRows
from asmdnn.primitives.resampling.taps import RESERVED, ResampleTaps, registers_of
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.primitives.shapes.tensors import refuse_overlap
from asmdnn.primitives.shapes.words import in_words
from asmdnn.records import dataclass, replace
from asmdnn.types import DATA_TYPES, f32

NAME = "resample"  # in the name of what is between it and post-ops


@dataclass(frozen=True, slots=True, eq=False)
class ResampleRequest(Surrounded):
    """What is asked of a resampling.  tensors: src and dst as they are resampled.  chain: post-ops on registers."""

    desc: ResamplingForward
    chain: tuple[PostOp, ...]
    around: AroundKernels

    @property
    def in_f32(self) -> dict[str, MemoryDesc]:
        return {name: of_type(tensor, f32) for name, tensor in self.tensors.items()}


def request_of(desc: ResamplingForward, attr: Attr, engine: Engine) -> ResampleRequest:
    """Raises Refused, and InvalidArguments for post-ops that do not fit dst."""
    refuse_scales(attr)
    src = format_like(desc.dst, desc.src)
    tensors = {"src": src, "dst": format_like(src, desc.dst)}
    refuse_overlap(dst=tensors["dst"])
    chain = post_ops_of(attr)
    operands = chain.operands(tensors["dst"], DATA_TYPES.values())
    is_separate = operands or chain.reads_dst or (chain.links and tensors["dst"].padded_dims != tensors["dst"].dims)
    around = AroundKernels(
        name=NAME,
        passed={**tensors, **operands},
        tensors=tensors | {"dst": of_type(tensors["dst"], f32)} if is_separate else tensors,
        separate_attr=attr if is_separate else None,
        engine=engine,
    )
    return ResampleRequest(desc, () if is_separate else chain.on_registers({}), around)


def moves(request: ResampleRequest) -> bool:
    """Whether results are elements of src as they are."""
    is_computed = request.chain or request.around.separate_attr or request.desc.alg != "nearest"
    return not is_computed and request.tensors["src"].dtype == request.tensors["dst"].dtype


def words(request: ResampleRequest) -> Plan:
    """Nearest elements of any one type where channels are dense, moved whole in words."""
    src, dst = request.tensors["src"], request.tensors["dst"]
    if request.desc.alg != "nearest" or request.chain or request.around.separate_attr:
        raise Refused("it moves nearest elements, without post-ops")
    if not moves(request) or src.dtype == f32:
        raise Refused("src and dst are f32, or of two types")
    of_src, of_dst = in_words(src), in_words(dst)
    if of_src is None or of_dst is None or not channels_are_dense(of_src, of_dst):
        raise Refused("channels are not dense in words of four bytes")
    return replace(resampled("words", request, of_src, of_dst), tensors=request.tensors)


def channels(request: ResampleRequest) -> Plan:
    """Vectors of channels, which are dense."""
    src, dst = request.tensors["src"], request.tensors["dst"]
    if not converts_in_registers(src, dst, request.engine):
        src, dst = request.in_f32["src"], request.in_f32["dst"]
        if not channels_are_dense(src, dst):
            raise Refused("channels are not dense")
    return resampled("channels", request, src, dst)


def rows(request: ResampleRequest) -> Plan:
    """Vectors of pixels of dense rows."""
    src, dst = row_tensors(request)
    if channels_are_dense(src, dst) or not rows_are_dense(src, dst):
        raise Refused("rows are not dense, or channels are")
    if 0 in dst.dims:
        raise Refused("there are no elements")
    return resampled_by_rows(request, src, dst)


def strided(request: ResampleRequest) -> Plan:
    """A copy of the elements of src that lie at one distance along each axis: all others are never read."""
    src, dst = request.tensors["src"], request.tensors["dst"]
    if request.chain or src.dtype != dst.dtype or 0 in dst.dims:
        raise Refused("it copies elements of one type, without post-ops")
    steps = [request.desc.taps(axis).steps() for axis in range(src.ndims - 2)]
    if None in steps or any(dim > 1 for dim, _ in src.inner_blocks):
        raise Refused("results are not elements of src at one distance along each axis")
    places = [(0, 1), (0, 1), *(step for step in steps if step)]
    picked = MemoryDesc(
        dst.dims,
        src.dtype,
        strides=[stride * step for stride, (_, step) in zip(src.strides, places, strict=True)],
        inner_blocks=src.inner_blocks,
        offset0=src.offset0 + sum(stride * first for stride, (first, _) in zip(src.strides, places, strict=True)),
    )
    assembly = Assembly(request.engine.tuning, request.isa)
    add_reorder(assembly, Reordering("src", picked, "dst", dst))
    return assembly.plan(f"strided:{request.isa}", {"src": src, "dst": dst}, ("dst",))


def copied_channels(request: ResampleRequest) -> Plan:
    """Vectors of channels, which copies have side by side."""
    if channels_are_dense(request.in_f32["src"], request.in_f32["dst"]):
        raise Refused("channels are dense already")
    src, dst = (MemoryDesc(tensor.dims, f32, "axb") for tensor in request.tensors.values())
    return resampled("channels", request, src, dst)


def converts_in_registers(src: MemoryDesc, dst: MemoryDesc, engine: Engine) -> bool:
    """Whether kernels load and store elements of these types: vectors of channels, of types that an instruction rounds
    to, or of tensors that as f32 would not stay in caches.

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
    elements = [storing_element(kind.name, engine.isa) for kind in kinds]
    by_instruction = all(each.is_packed or each.narrows_pairs for each in elements)
    return by_instruction or (far and all(each.converts_alone for each in elements))


def resampled_by_rows(request: ResampleRequest, src: MemoryDesc, dst: MemoryDesc) -> Plan:
    """For tensors with dense rows.  Raises Refused where there would be much code."""
    engine, isa = request.engine, request.isa
    axes = [request.desc.taps(axis) for axis in range(src.ndims - 2)]
    record_cycles = engine.tuning.resampling.record_cycles
    maker = DenseRows(
        isa=level_of_rows(axes[-1], isa, engine.tuning.resampling.wide_row),
        planes=planes_of(src, dst, True),
        axes=axes,
        streams=streams(dst, engine),
        record_cycles=record_cycles,
        chain=request.chain,
        types=row_types(request, src, dst),
    )
    calls, assembly = maker.calls(), Assembly(engine.tuning, engine.isa)
    if calls is None:
        raise Refused("rows differ so that there would be much code, or lie too far apart")
    assembly.constants = maker.constants()
    buffers = (name if name in assembly.constants else "" for name in ("weights", "factors"))
    assembly.add(phases_of(calls, views(("src", "dst", *buffers)), engine.tuning.phases, along_dst=True))
    return assembly.plan(f"rows:{isa}", {"src": src, "dst": dst}, ("dst",))


def row_tensors(request: ResampleRequest) -> tuple[MemoryDesc, MemoryDesc]:
    """src and dst as rows' kernels have them, f32 where a pass of its own converts.

    Rounding is such a pass where lanes are packed by several instructions: u8 64x28x28 to 56x56, linear, takes 30 us by
    AVX2 with it and 39 without, and by AVX-512 33 with it and 21 without.
    """
    src, dst = request.tensors.values()
    if moves(request):
        return src, dst
    loads = element_of(src.dtype).converts_alone
    rounds = request.isa != NARROWEST or element_of(dst.dtype).is_packed
    return src if loads else of_type(src, f32), dst if rounds else of_type(dst, f32)


def row_types(request: ResampleRequest, src: MemoryDesc, dst: MemoryDesc) -> tuple[str, str]:
    """Of what rows' kernels load and store: plain bits where these are moved."""
    if moves(request) and src.dtype != f32:
        return (f"b{8 * src.dtype.size_bytes}",) * 2
    return src.dtype.name, dst.dtype.name


def level_of_rows(taps: ResampleTaps, isa: str, wide_row: int) -> str:
    """The lower level for short rows that would end in a half-empty wide vector, unless they only copy."""
    row, lanes = len(taps.weights), lanes_of(isa)
    is_half_empty = 0 < row % lanes <= lanes // 2
    return NARROWEST if taps.each > 1 and is_half_empty and row < wide_row else isa


def streams(dst: MemoryDesc, engine: Engine) -> bool:
    """Whether dst goes past the caches."""
    return engine.tuning.resampling.streaming_share * dst.size_bytes > machine_of(engine.machine).caches.l3_bytes


def resampled(way: str, request: ResampleRequest, src: MemoryDesc, dst: MemoryDesc) -> Plan:
    """For tensors with dense channels."""
    desc, engine, isa = request.desc, request.engine, request.isa
    name, tensors, assembly = f"{way}:{isa}", {"src": src, "dst": dst}, Assembly(engine.tuning, engine.isa)
    if not prod(dst.dims):
        return assembly.plan(name, tensors, ("dst",))
    axes = [desc.taps(axis) for axis in range(src.ndims - 2)]
    planes = planes_of(src, dst, False)
    kinds = src.dtype.name, dst.dtype.name
    fits = kinds == F32 and registers_of(axes) + RESERVED <= vector_class(NARROWEST).count
    is_half = planes.src.block == lanes_of(NARROWEST)  # of a zmm register
    maker = DenseChannels(
        isa=NARROWEST if is_half and fits else narrowing_level(dst.dtype.name, engine.isa),
        planes=planes,
        axes=axes,
        streams=streams(dst, engine),
        tuning=engine.tuning.resampling,
        chain=request.chain,
        kinds=kinds,
    )
    buffers = []
    for axis, taps in enumerate(axes):
        several = taps.each > 1
        buffers.append(f"weights{axis}" if several else "")
        if several:
            assembly.constants[f"weights{axis}"] = constant_words(taps.weights.astype(np.float32))
    assembly.add(maker.phases(views(("src", "dst", *buffers)), engine.tuning.phases))
    return assembly.plan(name, tensors, ("dst",))


plans = implementations_of(
    request_of,
    {"words": words, "channels": channels, "rows": rows, "strided": strided, f"{WORD}+channels": copied_channels},
    f32_level,
    finish=lambda request, made: request.around.finished(made),
)
