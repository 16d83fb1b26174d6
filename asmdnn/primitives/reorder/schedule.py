"""The records of a reorder: boxes of loops become calls of kernels.

Two loops of a box run inside the kernel that reorder_blocks.py chooses; the others become records.
"""

from asmdnn.generators.move.conversion import Conversion
from asmdnn.memory import MemoryDesc
from asmdnn.planning.calls import Call, phases_of
from asmdnn.planning.loops import Box, Loop, boxes, merge
from asmdnn.planning.phase import Phase, views
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.reorder.blocks import SINGLE, Blocks, Shape
from asmdnn.primitives.reorder.cost import Cost
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


def with_zeros(maker: Blocks, found: list[Box]) -> list[tuple[Box, int]]:
    """The boxes, and how many steps of padding the transpose takes that writes the same rows of dst, so that lines are
    written once.

    That is padding after all rows of a transpose, over the same other loops, and short enough to be unrolled.
    """
    taken: set[int] = set()
    result = []
    for box in found:
        shape = maker.shape(box, zeros=1)
        if box.padding or maker.style.few_sizes or maker.most_zeros(shape) <= 0:
            result.append((box, 0))
            continue
        unit = shape.rows.dst
        outer = sorted((x.extent, x.dst) for x in merge([Loop(x.extent, (0, x.dst)) for x in others_of(box, shape)]))
        zeros = 0
        for i, padding in enumerate(found):
            if padding.padding and padding.dst == box.dst + shape.rows.extent * unit:
                count = zeros_of(padding, outer, maker.sizes[1], unit)
                if 0 < count <= maker.most_zeros(shape):
                    zeros = count
                    taken.add(i)
        result.append((box, zeros))
    return [each for i, each in enumerate(result) if i not in taken]


def others_of(box: Box, shape: Shape) -> list[Loop]:
    """The loops that padding after the rows shares with them."""
    return [x for x in box.loops if x is not shape.rows and x is not shape.inner]


def zeros_of(padding: Box, outer: list[tuple[int, int]], size: int, unit: int) -> int:
    """How many units the padding has in every step of the loops `outer`; 0 if it has others than these."""
    dense = next((x for x in padding.loops if x.dst == size), SINGLE)
    rest = sorted((x.extent, x.dst) for x in padding.loops if x is not dense)
    return dense.extent * size // unit if rest == outer and dense.extent * size % unit == 0 else 0


def outer_loops(box: Box, shape: Shape) -> tuple[Loop, ...]:
    """The loops outside of kernels, the outermost in dst first: dst is written as nearly in order as can be, and lines
    that two calls share are still in a cache."""
    return tuple(sorted((x for x in box.loops if not shape.has(x)), key=lambda x: -x.dst))
