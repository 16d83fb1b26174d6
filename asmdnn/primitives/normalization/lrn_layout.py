"""Where windows of local response normalization lie in memory: along dense rows, and along axes apart from them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final, NamedTuple, Protocol

from asmdnn.generators.functions.tap_rows import Tap
from asmdnn.memory import MemoryDesc
from asmdnn.planning.loops import Loop, merge
from asmdnn.primitives.normalization.lrn_description import ACROSS
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

WITHIN_CHANNELS = "windows are within channels"


class LrnWindows(Protocol):
    """What a description says of windows."""

    @property
    def alg(self) -> str: ...

    @property
    def window(self) -> range:
        """How far from an element its neighbours are along an axis."""
        ...


class NeighbourAxis(NamedTuple):
    """One along which rows have neighbours, `stride` elements apart."""

    extent: int
    stride: int
    window: range


class LikePlaces(NamedTuple):
    """Places along an axis that have the same neighbours."""

    start: int
    times: int
    shifts: range


@dataclass(frozen=True, slots=True)
class LrnLayout:
    """Loops have the stride of one tensor, all of which lie alike.

    row: a loop whose steps, of `unit` dense elements, are rows in parts of any size; None: a row has `unit` elements.
    piece: elements of the pieces of a row, 0 for all of it.  axes: with neighbours.  kept: all other loops.
    taps: of a row of so many elements, with neighbours along the axes so many steps away.
    """

    row: Loop | None
    unit: int
    piece: int
    axes: tuple[NeighbourAxis, ...]
    kept: tuple[Loop, ...]
    taps: Callable[[int, tuple[int, ...]], list[Tap]]


def runs_of(axis: NeighbourAxis) -> Iterator[LikePlaces]:
    """All places of an axis; those with a whole window as one run."""
    start = 0
    while start < axis.extent:
        shifts = shifts_at(axis, start)
        times = 1
        while start + times < axis.extent and shifts_at(axis, start + times) == shifts:
            times += 1
        yield LikePlaces(start, times, shifts)
        start += times


def shifts_at(axis: NeighbourAxis, place: int) -> range:
    """To neighbours that exist."""
    return range(max(axis.window.start, -place), min(axis.window.stop, axis.extent - place))


def taps_of(layout: LrnLayout, elements: int, shifts: Sequence[range]) -> tuple[Tap, ...]:
    """Of rows with these neighbours along the axes."""
    strides = [axis.stride for axis in layout.axes]
    found = []
    for at in product(*shifts):
        away = F32_BYTES * sum(step * stride for step, stride in zip(at, strides, strict=True))
        found += [tap._replace(offset_bytes=tap.offset_bytes + away) for tap in layout.taps(elements, at)]
    return tuple(found)


def layouts_of(desc: LrnWindows, src: MemoryDesc) -> Mapping[str, LrnLayout | str]:
    """For each way to walk along rows its layout, or the reason why there is none."""
    blocks = src.inner_blocks
    if src.may_overlap:
        return dict.fromkeys(ALONG, "elements of src overlap")
    if len(blocks) > 1 or any(dim != 1 for dim, _ in blocks):
        return dict.fromkeys(ALONG, "src has blocks of more than channels")
    return {name: along(desc, src) for name, along in ALONG.items()}


def loops(src: MemoryDesc, dims: Sequence[int]) -> tuple[Loop, ...]:
    """Over some dims, channels in blocks, merged."""
    counts = [-(-src.padded_dims[dim] // block_of(src, dim)) for dim in dims]
    found = [Loop(n, (src.strides[dim],)) for n, dim in zip(counts, dims, strict=True) if n > 1]
    return tuple(merge(found, model=0))


def block_of(src: MemoryDesc, dim: int) -> int:
    return src.inner_blocks[0][1] if dim == 1 and src.inner_blocks else 1


def clipped(window: range, size: int, step: int) -> list[Tap]:
    """Neighbours along a row of `size` times `step` elements, steps away."""
    taps = [Tap(F32_BYTES * t * step, max(0, -t) * step, (size - max(0, t)) * step) for t in window]
    return [tap for tap in taps if tap.first < tap.last]


def along_channels(desc: LrnWindows, src: MemoryDesc) -> LrnLayout | str:
    """Rows of all channels of a pixel."""
    if desc.alg != ACROSS:
        return WITHIN_CHANNELS
    if src.inner_blocks or src.strides[1] != 1:
        return "src's channels are not dense"
    channels = src.dims[1]
    kept = loops(src, [dim for dim in range(src.ndims) if dim != 1])
    return LrnLayout(None, channels, 0, (), kept, lambda _, at: clipped(desc.window, channels, 1))


def along_pixels(desc: LrnWindows, src: MemoryDesc) -> LrnLayout | str:
    """Rows of pixels of a channel, channels apart."""
    if desc.alg != ACROSS:
        return WITHIN_CHANNELS
    kept = loops(src, [dim for dim in range(src.ndims) if dim != 1])
    row = next((loop for loop in kept if loop.src == 1), None)
    if src.inner_blocks or row is None:
        return "src's pixels are not dense"
    axis = NeighbourAxis(src.dims[1], src.strides[1], desc.window)
    kept = tuple(loop for loop in kept if loop is not row)
    return LrnLayout(row, 1, 0, (axis,), kept, lambda elements, at: [Tap(0, 0, elements)])


def along_blocks(desc: LrnWindows, src: MemoryDesc) -> LrnLayout | str:
    """Rows of pixels, each a block of channels, and blocks apart."""
    if desc.alg != ACROSS:
        return WITHIN_CHANNELS
    if not src.inner_blocks:
        return "src's channels are in no blocks"
    block, window = block_of(src, 1), desc.window
    kept = loops(src, [dim for dim in range(src.ndims) if dim != 1])
    row = next((loop for loop in kept if loop.src == block), Loop(1, (block,)))
    farthest = range(window.start // block, (block + window.stop - 2) // block + 1)

    def taps(elements: int, at: tuple[int, ...]) -> list[Tap]:
        """Those channels of the block so many further on that are in the window."""
        (shift,) = at
        found = []
        for t in window:
            away = t - shift * block  # from a channel to the same place of the other block
            first, last = max(0, -away), min(block, block - away)
            if first < last:
                found.append(Tap(F32_BYTES * away, first, last, shift != 0))
        return found

    axis = NeighbourAxis(src.padded_dims[1] // block, src.strides[1], farthest)
    return LrnLayout(row, block, block, (axis,), tuple(loop for loop in kept if loop is not row), taps)


def along_windows(desc: LrnWindows, src: MemoryDesc) -> LrnLayout | str:
    """Rows along the last axis, with what is dense inside of it; the other spatial axes are apart."""
    if desc.alg == ACROSS:
        return "windows are across channels"
    columns, block = src.dims[-1], block_of(src, 1)
    has_channels = block == 1 and src.strides[1] == 1 < src.dims[1]
    inside = src.dims[1] if has_channels else block
    if columns > 1 and src.strides[-1] != inside:
        return "src's last axis is not dense"
    axes = tuple(NeighbourAxis(src.dims[dim], src.strides[dim], desc.window) for dim in range(2, src.ndims - 1))
    kept = loops(src, [0] if has_channels else [0, 1])
    return LrnLayout(None, columns * inside, 0, axes, kept, lambda _, at: clipped(desc.window, columns, inside))


ALONG: Final[Mapping[str, Callable[[LrnWindows, MemoryDesc], LrnLayout | str]]] = {
    "channels": along_channels,
    "pixels": along_pixels,
    "blocks": along_blocks,
    "windows": along_windows,
}
