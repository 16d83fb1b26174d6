"""Phases of a backward local response normalization across channels, dense or in blocks: kernels of pixels."""

from collections.abc import Mapping

from asmdnn.generators.functions.lrn_channels import ARGUMENTS, MOST_VECTORS, LrnChannelsSpec, vectors_of
from asmdnn.isa.elements import narrowing_level
from asmdnn.isa.vectors import NARROWEST, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.calls import Call, phases_of
from asmdnn.planning.loops import Box, Loop, cut_loop
from asmdnn.planning.phase import MOST_CYCLES, Phase, View
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.normalization.lrn_backward_description import LRNBackward
from asmdnn.primitives.normalization.lrn_description import ACROSS
from asmdnn.primitives.normalization.lrn_layout import block_of, loops

MOST_REACH = 64  # channels from one to those in its window: zeros on the stack
VECTOR_CYCLES = 25  # of a vector, beside its window


def check(desc: LRNBackward, src: MemoryDesc, isa: str) -> None:
    """Raise Refused unless kernels of pixels take tensors that lie so."""
    blocks = src.inner_blocks
    if desc.alg != ACROSS:
        raise Refused("windows are within channels")
    if src.may_overlap or src.has_padding or len(blocks) > 1 or any(dim != 1 for dim, _ in blocks):
        raise Refused(f"src is {src}, it must be plain or in whole blocks of channels")
    if not blocks and src.strides[1] != 1:
        raise Refused(f"src is {src}, whose channels are not dense")
    count, block = counted(src)
    vectors, window = vectors_of(level_of(block, isa), count, block), desc.window
    reach = max(-window.start, window.stop - 1)
    if vectors > MOST_VECTORS or reach > MOST_REACH:
        raise Refused(f"{vectors} vectors of channels that reach {reach} far are more than the stack has room for")


def counted(src: MemoryDesc) -> tuple[int, int]:
    """(blocks, channels of each), one of all channels where they are plain."""
    block = block_of(src, 1) if src.inner_blocks else src.dims[1]
    return src.dims[1] // block, block


def level_of(block: int, isa: str) -> str:
    """Of kernels: that of the narrowest vectors where a block fills no other."""
    return NARROWEST if block < lanes_of(isa) else isa


def phases(desc: LRNBackward, tensors: Mapping[str, MemoryDesc], base: View, engine: Engine) -> list[Phase]:
    """Of tensors that lie alike, by ARGUMENTS; base: where that is."""
    src, kinds = tensors["src"], tuple(tensors[name].dtype for name in ARGUMENTS)
    blocks, block = counted(src)
    kept = loops(src, [dim for dim in range(src.ndims) if dim != 1])
    row = min(kept, key=lambda loop: loop.strides, default=Loop(1, (0,)))
    most, calls = max(1, engine.tuning.normalization.lrn_record // src.dims[1]), []
    window = desc.window
    for piece, pixels in cut_loop(Box((0,), kept or (row,)), row, most):
        spec = LrnChannelsSpec(
            isa=level_of(block, narrowing_level(kinds[ARGUMENTS.index("dst")].name, engine.isa)),
            pixels=pixels.extent,
            blocks=blocks,
            block=block,
            pixel_step=row.strides[0],
            block_step=src.strides[1] if blocks > 1 else 0,
            window=(window.start, window.stop),
            factor=2 * desc.beta * desc.forward().factor,
            beta=desc.beta,
            kinds=tuple(kind.name for kind in kinds),
        )
        starts = tuple(
            (piece.starts[0] + tensors[name].offset0) * kind.size_bytes
            for name, kind in zip(ARGUMENTS, kinds, strict=True)
        )
        outer = tuple(
            Loop(loop.extent, tuple(loop.strides[0] * kind.size_bytes for kind in kinds))
            for loop in piece.loops
            if loop is not pixels
        )
        vectors = pixels.extent * vectors_of(spec.isa, blocks, block)
        cycles = engine.tuning.normalization.call_cycles + vectors * (VECTOR_CYCLES + len(window))
        calls.append(Call(spec, starts, outer, min(MOST_CYCLES, cycles)))
    places = {"src": View("src"), "dst": View("diff_src"), "diff": View("diff_dst"), "base": base}
    return phases_of(calls, tuple(places[name] for name in ARGUMENTS), engine.tuning.phases)
