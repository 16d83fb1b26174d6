"""Shuffle kernels as calls: bytes instead of f32 elements, and a reference that moves them one element at a time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from asmdnn.corpus.shuffle import ShuffleKernel
from asmdnn.generators.shuffle_network import ZERO
from asmdnn.generators.shuffle_rows import ElementsSpec, RowsSpec
from tests.support.arena import Buffer, Bytes, Doubles

UNTOUCHED = 0xDB  # what is read from src is never this, so that a byte of dst that is not written shows

Move = tuple[int, int, int]  # (src, dst, bytes); src is -1 for zeros


@dataclass(frozen=True, eq=False)
class ByteBuffer(Buffer):
    """`wanted` are bytes, as many as `before`."""

    def check(self, after: Bytes, tolerance: Doubles | float, name: str) -> None:
        wrong = np.flatnonzero(after != np.where(self.written, self.wanted, self.before))
        assert not len(wrong), f"{name}: {len(wrong)} bytes wrong, the first is {wrong[0] - self.pointer_bytes}"


def moved(spec: ShuffleKernel) -> list[Move]:
    """Every move that the spec stands for."""
    if isinstance(spec, RowsSpec):
        return [(-1 if spec.zero else r * spec.src_step, r * spec.dst_step, spec.row_bytes) for r in range(spec.rows)]
    if isinstance(spec, ElementsSpec):
        steps = range(0, spec.count * spec.step, spec.step)
        return [(s + step, d + step, spec.element_bytes) for s, d in spec.moves for step in steps]
    moves = []
    for pixel in range(spec.pixels):
        for part in spec.parts:
            for i in range(part.count):
                src, dst = (pixel * spec.pixel_bytes + base for base in (part.src, part.dst))
                src, dst = src + i * part.src_step, dst + i * part.dst_step
                for at, lanes in zip(part.tile.dst, part.tile.lanes, strict=True):
                    for k, lane in enumerate(lanes):
                        window, within = divmod(lane, spec.unit_bytes)
                        origin = -1 if lane == ZERO else src + part.tile.windows[window] + within
                        moves.append((origin, dst + at + k * spec.element_bytes, spec.element_bytes))
    return moves


def read_by(spec: ShuffleKernel) -> Iterator[tuple[int, int]]:
    """(src, bytes) of what a call reads: of a unit whole windows, else what is moved."""
    if isinstance(spec, RowsSpec | ElementsSpec):
        yield from ((src, size) for src, _, size in moved(spec) if src >= 0)
        return
    for pixel in range(spec.pixels):
        for part in spec.parts:
            for i in range(part.count):
                start = pixel * spec.pixel_bytes + part.src + i * part.src_step
                yield from ((start + window, spec.unit_bytes) for window in part.tile.windows)


def shuffle_buffers(spec: ShuffleKernel, random: np.random.Generator) -> dict[str, Buffer | None]:
    """Buffers from the first byte that a call touches to the last."""
    moves, reads = moved(spec), list(read_by(spec))
    end = max((src + size for src, size in reads), default=0)
    src = random.integers(0, UNTOUCHED, end, np.uint8)
    read = np.zeros(end, bool)
    for at, size in reads:
        read[at : at + size] = True
    dst_end = max(dst + size for _, dst, size in moves)
    wanted, written = np.zeros(dst_end, np.uint8), np.zeros(dst_end, bool)
    for at, dst, size in moves:
        wanted[dst : dst + size] = src[at : at + size] if at >= 0 else 0
        written[dst : dst + size] = True
    before = np.full(dst_end, UNTOUCHED, np.uint8)
    buffers: dict[str, Buffer | None] = {"src": None}
    if end:
        first = int(read.argmax())
        cut = slice(first, end)
        nothing = np.zeros(end - first, bool)
        buffers["src"] = ByteBuffer(src[cut], -first, read[cut], nothing, src[cut])  # type: ignore[arg-type]
    first = int(written.argmax())
    cut = slice(first, dst_end)
    unread = np.zeros(dst_end - first, bool)
    buffers["dst"] = ByteBuffer(before[cut], -first, unread, written[cut], wanted[cut])  # type: ignore[arg-type]
    return buffers
