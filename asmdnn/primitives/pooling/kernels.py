"""Which kernel makes the windows of a pooling, and its register block."""

from collections.abc import Iterator, Sequence
from math import prod

from asmdnn.generators.functions.postops import OLD_DST, PostOp
from asmdnn.generators.pooling.indices import PoolIndicesSpec
from asmdnn.generators.pooling.pixel_words import is_walked
from asmdnn.generators.pooling.pixels import PoolPixelsSpec
from asmdnn.generators.pooling.planes import PoolPlanesSpec
from asmdnn.generators.pooling.window import PixelLoop
from asmdnn.isa.lines import lines_that_stay
from asmdnn.isa.vectors import NARROWEST, lanes_of, vector_bytes, vector_class
from asmdnn.planning.refusal import Refused
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.pooling.calls import PoolCall
from asmdnn.primitives.pooling.schedule import Planes, WindowNest, calls_of, in_windows, lanes_in, pieces_of
from asmdnn.primitives.pooling.windows import WindowRun, Windows
from asmdnn.records import dataclass, replace
from asmdnn.types import F32_BYTES, DataType, f32, s32

LINE_ELEMENTS = 16
OTHER_REGISTERS = 4  # what is loaded, -infinity, a tail's mask
INDEXED_ELEMENTS = 128  # unrolled


@dataclass(frozen=True, slots=True)
class PoolKernels:
    """What all kernels of a pooling have in common."""

    isa: str
    windows: Windows
    planes: Planes
    chain: tuple[PostOp, ...]
    streams: bool
    tuning: Tuning
    places: str = "s32"  # the type of indices
    of_bytes: str = ""  # the ending of maxima of bytes, where elements are words of four
    dtype: DataType = f32  # in memory

    @property
    def alg(self) -> str:
        return f"max{self.of_bytes}" if self.windows.is_max else "avg"


def pixel_calls(maker: PoolKernels, runs: Sequence[Sequence[WindowRun]]) -> Iterator[PoolCall]:
    """Of kernels whose lanes are channels."""
    elements = maker.planes.src.block
    for piece in pieces_of(maker.planes, runs, maker.windows.steps):
        calls = list(pixels_of(maker, piece, elements))
        tuning = maker.tuning.pooling
        if sum(call.count for call in calls) < tuning.few_calls and elements > tuning.fewest_elements:
            parts = parts_of(piece, elements, tuning.fewest_elements, maker.dtype.size_bytes)
            calls = [call for part in parts for call in pixels_of(maker, *part)]
        yield from calls


def parts_of(
    piece: WindowNest, elements: int, most: int, size: int = f32.size_bytes
) -> Iterator[tuple[WindowNest, int]]:
    """The piece for some channels after the others."""
    for first in range(0, elements, most):
        part = piece._replace(src=piece.src + size * first, dst=piece.dst + size * first)
        yield part, min(most, elements - first)


def pixels_of(maker: PoolKernels, piece: WindowNest, elements: int) -> Iterator[PoolCall]:
    """The calls for so many channels."""
    pixels, vectors = block_of(piece, elements, maker.isa, maker.tuning)
    positions = prod(taps.positions for taps in piece.window)

    def make(piece: WindowNest, loops: tuple[PixelLoop, ...], _: tuple[int, ...]) -> PoolPixelsSpec:
        streams = streams_pixels(maker, elements, loops)
        return PoolPixelsSpec(
            isa=maker.isa, alg=maker.alg, loops=loops, window=piece.window, elements=elements,
            pixels=min(pixels, loops[-1].times), vectors=vectors, divisor=piece.divisor, chain=maker.chain,
            streaming=streams and not reads_dst(maker.chain), kind=maker.dtype.name,
        )  # fmt: skip

    return calls_of(maker.planes, piece, lanes_in(elements, maker.isa) * (2 + positions * 0.75), make, maker.tuning)


def streams_pixels(maker: PoolKernels, elements: int, loops: Sequence[PixelLoop]) -> bool:
    """Whether results go past the caches: lines of dst are written at once, in whole vectors."""
    lanes, touch = lanes_of(maker.isa), loops[-1].dst_bytes == F32_BYTES * elements
    whole = elements % lanes == 0 and (touch or elements % LINE_ELEMENTS == 0)
    return maker.streams and whole and all(loop.dst_bytes % vector_bytes(maker.isa) == 0 for loop in loops)


def block_of(piece: WindowNest, elements: int, isa: str, tuning: Tuning) -> tuple[int, int]:
    """(pixels, vectors) in registers at a time."""
    row, columns, pooling = piece.loops[-1], piece.window[-1], tuning.pooling
    vectors = lanes_in(elements, isa)
    if is_walked(piece.window):
        return 1, min(vectors, pooling.walked_vectors)
    shares = columns.bytes > 0 and row.src_bytes % columns.bytes == 0 and row.src_bytes // columns.bytes == 1
    if not shares:
        most = min(vectors, pooling.most_vectors)
        return max(1, min(row.times, pooling.most_vectors // most // 2)), most

    def block(few: int) -> tuple[int, int]:
        room = vector_class(isa).count - OTHER_REGISTERS - few
        return max(1, min(row.times, room // few, pooling.most_pixels)), few

    pixels, few = block(min(vectors, pooling.few_vectors))
    rows = prod(taps.positions for taps in piece.window[:-1])
    if rows * (pixels + columns.positions - 1) > lines_that_stay(columns.bytes, tuning.moves.set_lines):
        return block(min(vectors, pooling.conflict_vectors))
    return pixels, few


def reads_dst(chain: Sequence[PostOp]) -> bool:
    return any(operand is OLD_DST for op in chain for operand in op.operands)


def index_calls(maker: PoolKernels, runs: Sequence[Sequence[WindowRun]], carries: bool = False) -> Iterator[PoolCall]:
    """Of kernels that write the places of the maxima, too.  carries: src is maxima already, whose places are known."""
    count = None if maker.places == s32.name else in_windows(maker.windows.rows)
    for piece in pieces_of(maker.planes, runs, maker.windows.steps, count):
        for part, elements in parts_of(piece, maker.planes.src.block, INDEXED_ELEMENTS):

            def make(
                piece: WindowNest, loops: tuple[PixelLoop, ...], numbers: tuple[int, ...], elements: int = elements
            ) -> PoolIndicesSpec:
                together = maker.tuning.pooling.indexed_vectors
                vectors = min(together, lanes_in(elements, maker.isa))
                pixels = min(together // vectors, loops[-1].times)
                return PoolIndicesSpec(
                    isa=maker.isa,
                    loops=loops,
                    window=piece.window,  # where places are carried, one kernel for windows of all places
                    loop_numbers=(0,) * len(numbers) if carries else numbers,
                    window_numbers=(0,) * len(piece.window) if carries else piece.window_numbers,
                    elements=elements,
                    pixels=pixels,
                    vectors=vectors,
                    carries=carries,
                    streaming=streams_pixels(maker, elements, loops) and maker.places == s32.name,
                    places=maker.places,
                )

            positions = prod(taps.positions for taps in piece.window)
            yield from calls_of(
                maker.planes, part, lanes_in(elements, maker.isa) * (6 + positions * 3), make, maker.tuning
            )


def at_plane_level(maker: PoolKernels) -> PoolKernels:
    """For the lower level if the CPU class wants it for f32 planes of so few elements."""
    is_small = prod(maker.planes.sizes) <= maker.tuning.pooling.narrow_plane
    return replace(maker, isa=NARROWEST) if is_small and maker.dtype == f32 else maker


def check_planes(maker: PoolKernels) -> None:
    """Raise Refused unless each window is a dense plane."""
    planes, axes = maker.planes, maker.windows.axes
    single = all(sum(run.outputs for run in runs) == 1 for runs in axes)
    if not single or any(runs[0].window.inside != size for runs, size in zip(axes, planes.sizes, strict=True)):
        raise Refused("windows are no whole planes")
    if planes.numbers() != tuple(step // maker.dtype.size_bytes for step in planes.src.axis_bytes):
        raise Refused("planes are not dense")


def plane_calls(maker: PoolKernels) -> Iterator[PoolCall]:
    """Of kernels that make one number of a dense plane."""
    sizes, axes = maker.planes.sizes, maker.windows.axes
    elements, divisor = prod(sizes), prod(run.window.divisor for (run,) in axes)

    def make(_: WindowNest, loops: tuple[PixelLoop, ...], __: tuple[int, ...]) -> PoolPlanesSpec:
        (loop,) = loops
        return PoolPlanesSpec(
            isa=maker.isa, alg=maker.alg, planes=loop.times, elements=elements, src_plane_bytes=loop.src_bytes,
            dst_step_bytes=loop.dst_bytes, divisor=divisor, chain=maker.chain, kind=maker.dtype.name,
        )  # fmt: skip

    planes = maker.planes
    together = len(planes.loops()) == 1
    image = planes if together else replace(planes, images=1)
    tuning = maker.tuning.pooling
    cycles = tuning.plane_cycles + elements / lanes_of(maker.isa) * tuning.plane_vector_cycles
    firsts = ((i * planes.src.image_bytes, i * planes.dst.image_bytes) for i in range(1 if together else planes.images))
    starts = ((planes.src.start_bytes + src, planes.dst.start_bytes + dst) for src, dst in firsts)
    pieces = (
        WindowNest(*start, 0, loops=(), window=(), loop_numbers=(), window_numbers=(), divisor=divisor)
        for start in starts
    )
    return (call for piece in pieces for call in calls_of(image, piece, cycles, make, maker.tuning))
