"""The records of a reorder: boxes of loops become calls of kernels.

Two loops of a box run inside the kernel that reorder_blocks.py chooses; the others become records.
"""

from asmdnn.generators.move.conversion import Conversion
from asmdnn.memory import MemoryDesc
from asmdnn.planning.calls import Call, phases_of
from asmdnn.planning.loops import Box, Loop, boxes
from asmdnn.planning.phase import Phase, views
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.reorder.blocks import Blocks
from asmdnn.primitives.reorder.cost import Cost
from asmdnn.primitives.reorder.padding import with_zeros
from asmdnn.primitives.reorder.shape import Shape
from asmdnn.primitives.reorder.style import MoveStyle
from asmdnn.records import dataclass
from asmdnn.types import f32

PLAIN = MoveStyle()


@dataclass(frozen=True, slots=True)
class ScaledConversion:
    """What elements become; scales: the stride of each dim in buffers[2], if they are multiplied."""

    conversion: Conversion
    scales: tuple[int, ...] | None = None


def reorder_phases(
    src: MemoryDesc,
    dst: MemoryDesc,
    buffers: tuple[str, ...],
    tuning: Tuning,
    scaled: ScaledConversion | None = None,
    style: MoveStyle = PLAIN,
    *,
    isa: str,
) -> list[Phase]:
    """Kernels and records that bring buffers[0] into the format of buffers[1].

    scaled: a conversion by what the types say, if None.  isa: the level of the kernels.
    """
    moves = tuning.moves
    scaled = scaled or ScaledConversion(Conversion(src.dtype.name, dst.dtype.name))
    maker, scales = Blocks(isa, scaled.conversion, style, moves), scaled.scales
    cost = Cost(maker, far=src.size_bytes + dst.size_bytes >= moves.streaming_bytes)
    tensors = [src, dst] if scales is None else [src, dst, MemoryDesc(src.dims, f32, strides=scales)]
    calls = []
    for whole, zeros in with_zeros(maker, [maker.in_bytes(box) for box in boxes(tensors)]):
        for box, shape in maker.cut(whole, zeros):
            calls.append(Call(maker.kernel(box, shape), box.starts, outer_loops(box, shape), cost.cycles(box, shape)))
    return phases_of(calls, views(buffers), tuning.phases, along_dst=True)


def outer_loops(box: Box, shape: Shape) -> tuple[Loop, ...]:
    """The loops outside of kernels, the outermost in dst first: dst is written as nearly in order as can be, and lines
    that two calls share are still in a cache."""
    return tuple(sorted((x for x in box.loops if not shape.has(x)), key=lambda x: -x.dst))
