"""The records of a pooling: kernels for the interior and the edges of planes, in loops over rows, planes and images.

Windows of the same positions inside src share a kernel: along each axis those are runs of neighbours (windows.py).  A
record takes whole planes, or images, while they are small, and some lines of a plane where it is large.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.pooling.window import PixelLoop, Taps
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import MOST_CYCLES
from asmdnn.planning.refusal import Refused
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.convolution.geometry import ImageLayout, image_layout
from asmdnn.primitives.pooling.calls import PoolCall
from asmdnn.primitives.pooling.formats import channels_are_dense
from asmdnn.primitives.pooling.windows import Row, WindowRun
from asmdnn.records import dataclass, replace


class WindowNest(NamedTuple):
    """What one kernel makes again and again: a nest of loops with one window.

    src, dst: byte offsets of its first window's first position and result.  number: that position's.
    loop_numbers, window_numbers: how it grows with a step of each loop and axis.  divisors: of each result of the last
    loop, which is the whole last axis where lanes are pixels.
    """

    src: int
    dst: int
    number: int
    loops: tuple[PixelLoop, ...]
    window: tuple[Taps, ...]
    loop_numbers: tuple[int, ...]
    window_numbers: tuple[int, ...]
    divisor: int


@dataclass(frozen=True, slots=True)
class Planes:
    """Both tensors as planes of pixels: images times blocks of channels."""

    src: ImageLayout
    dst: ImageLayout
    images: int
    blocks: int
    sizes: tuple[int, ...]  # of src's axes

    def loops(self) -> list[PixelLoop]:
        """Over images and blocks, as one loop where memory allows it."""
        images = PixelLoop(self.images, self.src.image_bytes, self.dst.image_bytes)
        blocks = PixelLoop(self.blocks, self.src.block_bytes, self.dst.block_bytes)
        together = (blocks.times * blocks.src_bytes, blocks.times * blocks.dst_bytes)
        if images.times == 1 or blocks.times == 1 or together != images[1:]:
            return [loop for loop in (images, blocks) if loop.times > 1] or [PixelLoop(1, 0, 0)]
        return [PixelLoop(images.times * blocks.times, *blocks[1:])]

    def numbers(self) -> tuple[int, ...]:
        """How the number of an element in its plane grows with a step along each axis."""
        return tuple(prod(self.sizes[axis + 1 :]) for axis in range(len(self.sizes)))


def planes_for(src: MemoryDesc, dst: MemoryDesc) -> Planes:
    """The planes of two tensors, of blocks of channels where both have these dense."""
    return planes_of(src, dst, not channels_are_dense(src, dst))


def planes_of(src: MemoryDesc, dst: MemoryDesc, each: bool) -> Planes:
    """The planes of two tensors that kernels take as they are.  each: of one channel, not of a block of them."""
    of_src, of_dst = image_layout(src), image_layout(dst)
    assert of_src is not None and of_dst is not None
    if each:
        of_src, of_dst = single(of_src), single(of_dst)
    blocks = src.dims[1] if each else -(-src.padded_dims[1] // of_src.block)
    return Planes(of_src, of_dst, src.dims[0], blocks, src.dims[2:])


def single(layout: ImageLayout) -> ImageLayout:
    """A plain layout in blocks of one channel."""
    return replace(layout, block=1, block_bytes=layout.channel_bytes, channel_bytes=layout.element_bytes)


class Counting(NamedTuple):
    """The numbers of positions along an axis: of the first one of a run, and what is added in a step of the run and of
    the window."""

    first: int
    of_step: int
    of_position: int


Count = Callable[[int, WindowRun], Counting]  # of an axis, and a run of it


def in_planes(planes: Planes, steps: Sequence[int]) -> Count:
    """As elements of a plane."""
    numbers = planes.numbers()

    def count(axis: int, run: WindowRun) -> Counting:
        return Counting(run.window.first * numbers[axis], run.step * numbers[axis], steps[axis] * numbers[axis])

    return count


def in_windows(rows: Sequence[Row]) -> Count:
    """As positions of a window, those in the padding included."""

    def count(axis: int, run: WindowRun) -> Counting:
        row, number = rows[axis], prod(other.columns for other in rows[axis + 1 :])
        first, last = row.outside(run.output), row.outside(run.output + run.outputs - 1)
        step = (last - first) // max(1, run.outputs - 1)
        return Counting(first * number, step * number, number)

    return count


def pieces_of(
    planes: Planes, runs: Sequence[Sequence[WindowRun]], steps: Sequence[int], count: Count | None = None
) -> Iterator[WindowNest]:
    """A piece for every combination of runs of the axes, without the loops over planes; steps: between positions.
    count: positions are counted as elements of a plane if it is None."""
    count = count or in_planes(planes, steps)
    for combined in product(*runs):
        axes = list(zip(combined, steps, planes.src.axis_bytes, planes.dst.axis_bytes, strict=True))
        if sum(run.window.inside * step * at for run, step, at, _ in axes) > MAX_OFFSET:
            raise Refused("a window spans more than 2 GiB")
        src = sum(run.window.first * at for run, _, at, _ in axes)
        dst = sum(run.output * at for run, _, _, at in axes)
        counts = [count(axis, run) for axis, run in enumerate(combined)]
        yield WindowNest(
            src=planes.src.start_bytes + src,
            dst=planes.dst.start_bytes + dst,
            number=sum(counted.first for counted in counts),
            loops=tuple(PixelLoop(run.outputs, run.step * at, to) for run, _, at, to in axes),
            window=tuple(
                Taps(run.window.inside, step * at if run.window.inside > 1 else 0) for run, step, at, _ in axes
            ),
            loop_numbers=tuple(counted.of_step for counted in counts),
            window_numbers=tuple(counted.of_position for counted in counts),
            divisor=prod(run.window.divisor for run, *_ in axes),
        )


MakeSpec = Callable[[WindowNest, tuple[PixelLoop, ...], tuple[int, ...]], KernelSpec]


def calls_of(
    planes: Planes, piece: WindowNest, result_cycles: float, make: MakeSpec, tuning: Tuning
) -> Iterator[PoolCall]:
    """Calls for a piece in all planes.  result_cycles: of one step of the innermost loop; make: the kernel's spec."""
    loops = [*planes.loops(), *piece.loops]
    numbers = [0] * (len(loops) - len(piece.loops)) + list(piece.loop_numbers)
    inner, most_cycles = len(loops) - 1, tuning.pooling.record_cycles
    cycles = loops[inner].times * result_cycles
    while inner and cycles * loops[inner - 1].times <= most_cycles and is_near(loops[inner - 1]):
        inner -= 1
        cycles *= loops[inner].times
    outer, kept = loops[:inner], loops[inner:]
    cut = min(kept[0].times, max(1, int(most_cycles / (cycles / kept[0].times))))
    if outer and cut == kept[0].times and is_near(outer[-1]):  # some steps of the next loop, too
        kept.insert(0, outer.pop())
        cut = max(1, int(most_cycles / cycles))
    numbers_kept = numbers[len(outer) :]
    whole, rest = divmod(kept[0].times, cut)
    for first, times, count in ((0, whole, cut), (whole * cut, 1, rest)):
        if times and count:
            repeats = PixelLoop(times, count * kept[0].src_bytes, count * kept[0].dst_bytes)
            start = (first * kept[0].src_bytes, first * kept[0].dst_bytes, first * numbers_kept[0])
            walked = (*zip(outer, numbers, strict=False), (repeats, count * numbers_kept[0]))
            place = (piece.src + start[0], piece.dst + start[1], piece.number + start[2])
            inside = (kept[0]._replace(times=count), *kept[1:])
            loops_of, numbers_of = without_single(inside, numbers_kept)
            cost = prod(loop.times for loop in inside) * result_cycles + tuning.phases.call_cycles
            yield PoolCall(make(piece, loops_of, numbers_of), place, walked, min(int(cost), MOST_CYCLES))


def is_near(loop: PixelLoop) -> bool:
    """Whether code can go through it."""
    return loop.times * max(loop[1:]) <= MAX_OFFSET


def without_single(loops: Sequence[PixelLoop], numbers: Sequence[int]) -> tuple[tuple[PixelLoop, ...], tuple[int, ...]]:
    """Loops of one step left out, but for the last loop.  Raises Refused where steps exceed what code can say."""
    kept = [i for i, loop in enumerate(loops) if loop.times > 1 or i == len(loops) - 1]
    if not all(is_near(loops[i]) for i in kept):
        raise Refused("a row spans more than 2 GiB")
    return tuple(loops[i] for i in kept), tuple(numbers[i] for i in kept)


def lanes_in(elements: int, isa: str) -> int:
    """Vectors of so many elements."""
    return -(-elements // lanes_of(isa))
