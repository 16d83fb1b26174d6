"""The body of a shuffle kernel: tiles of units, built in vector registers for a group of pixels."""

from collections.abc import Sequence
from typing import Any

from asmdnn.generators.move.shuffle_network import (
    DWORD_BYTES,
    ZERO,
    GatherUnits,
    Lanes,
    Network,
    best,
    byte_control,
    dword_steps,
    is_whole,
    windows_of,
)
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.dense import QUARTER_BYTES, dense_of, view_of
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class Tile:
    """Units that are built together.  windows: displacements in src.  dst: the displacement of each unit.  lanes: for
    each unit the origin of its elements, as shuffle_network numbers them."""

    windows: tuple[int, ...]
    dst: tuple[int, ...]
    lanes: tuple[Lanes, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """`count` times the same tile: number i at src + i * src_step, dst + i * dst_step."""

    tile: Tile
    src: int = 0
    dst: int = 0
    count: int = 1
    src_step: int = 0
    dst_step: int = 0


class ShuffleCode:
    """Emits the tiles for a group of pixels; vector registers hold a unit of each."""

    def __init__(self, asm: Assembler, isa: str, element_bytes: int, unit_bytes: int, pixel_bytes: int) -> None:
        self.asm, self.v = asm, vector_of(isa, asm)
        self.element_bytes, self.unit_bytes, self.pixel_bytes = element_bytes, unit_bytes, pixel_bytes
        self.registers = self.v.registers
        self.dense = dense_of(self.v, self.registers.registers[-1])  # whose spare register whole quarters do not need
        self.src_tile, self.dst_tile, self.tiles_left = (
            asm.gp.take(name) for name in ("src of tile", "dst of tile", "tiles left")
        )
        self.streaming = False
        self.held: dict[int, Any] = {}  # windows in registers, the one used last at the end

    def pixel_group(self, parts: Sequence[Part], group: int, src: Any, dst: Any) -> None:
        """All parts for `group` pixels, a power of two."""
        asm = self.asm
        for part in parts:
            if part.count == 1:
                self.tile(part.tile, group, (src, part.src), (dst, part.dst))
                continue
            asm.LEA(self.src_tile, mem(src, part.src))
            asm.LEA(self.dst_tile, mem(dst, part.dst))
            asm.MOV(self.tiles_left, part.count)
            with asm.loop(self.tiles_left, "tiles"):
                self.tile(part.tile, group, (self.src_tile, 0), (self.dst_tile, 0))
                asm.ADD(self.src_tile, part.src_step)
                asm.ADD(self.dst_tile, part.dst_step)

    def tile(self, tile: Tile, group: int, src: tuple[Any, int], dst: tuple[Any, int]) -> None:
        """Build the units of one tile and store them; a pure gather stores each at once, to need few registers."""
        self.window_at = [(src[0], src[1] + at) for at in tile.windows]
        self.group = group
        network = best(tile.lanes, self.element_bytes, self.unit_bytes)
        if isinstance(network, GatherUnits):
            for at, lanes in zip(tile.dst, tile.lanes, strict=True):
                x = self.gather(lanes)
                self.store(dst[0], dst[1] + at, x)
                self.registers.free(x)
        else:
            units = self.build(network)
            for at, x in zip(tile.dst, units, strict=True):
                self.store(dst[0], dst[1] + at, x)
            self.registers.free(*units)
        self.registers.free(*self.held.values())
        self.held.clear()

    def build(self, network: Network) -> list[Any]:
        """A register for each unit of the network."""
        if isinstance(network, GatherUnits):
            return [self.gather(lanes) for lanes in network.units]
        evens, odds = self.build(network.evens), self.build(network.odds)
        low, high = {
            1: (self.asm.VPUNPCKLBW, self.asm.VPUNPCKHBW),
            2: (self.asm.VPUNPCKLWD, self.asm.VPUNPCKHWD),
            4: (self.asm.VUNPCKLPS, self.asm.VUNPCKHPS),
        }[self.element_bytes]
        units: list[Any] = [None] * (2 * len(evens))
        for (a, b), even, odd in zip(network.pairs, evens, odds, strict=True):
            units[a] = self.take("unit")
            low(units[a], even, odd)
            high(even, even, odd)
            units[b] = even
            self.registers.free(odd)
        return units

    def gather(self, lanes: Lanes) -> Any:
        """A register with one unit, from its windows."""
        asm = self.asm
        windows = windows_of(lanes, self.unit_bytes)
        x = self.take("unit")
        if not windows:
            self.dense.zero(x)
        elif is_whole(lanes, self.element_bytes, self.unit_bytes):
            self.load(x, windows[0])
        elif self.element_bytes == DWORD_BYTES and self.unit_bytes == QUARTER_BYTES:
            self.gather_dwords(x, lanes)
        else:
            for window in windows:
                control = self.in_quarters(byte_control(lanes, window, self.element_bytes, self.unit_bytes))
                if window == windows[0]:
                    asm.VPSHUFB(x, self.window(window), control)
                    continue
                piece = self.take("piece", x)
                asm.VPSHUFB(piece, self.window(window), control)
                self.dense.unite(x, piece)
                self.registers.free(piece)
        return x

    def gather_dwords(self, x: Any, lanes: Lanes) -> None:
        asm = self.asm
        *before, last = dword_steps(lanes)
        results: list[Any] = []
        for step in before:
            a = self.window(step.a)
            results.append(self.take("pair", a))
            asm.VSHUFPS(results[-1], a, self.window(step.b, a), step.control)
        a, b = (self.window(op) if op >= 0 else results[~op] for op in (last.a, last.b))
        asm.VSHUFPS(x, a, b, last.control)
        if results:
            self.registers.free(*results)
        if ZERO in lanes:
            kept = b"".join(bytes(DWORD_BYTES) if lane == ZERO else b"\xff" * DWORD_BYTES for lane in lanes)
            asm.VANDPS(x, x, self.in_quarters(kept))

    def in_quarters(self, data: bytes) -> Any:
        """The same 16 bytes in every quarter."""
        size = self.v.bytes
        return self.asm.const(data * (size // QUARTER_BYTES), size, size=size)

    def window(self, index: int, *pinned: Any) -> Any:
        """The register with a window, loaded unless it still is there."""
        x = self.held.pop(index, None)
        if x is None:
            x = self.take("window", *pinned)
            self.load(x, index)
        self.held[index] = x
        return x

    def take(self, purpose: str, *pinned: Any) -> Any:
        """A free register; if there is none, that of the window that was used least recently."""
        if not self.registers.available:
            oldest = next(i for i, x in self.held.items() if x not in pinned)
            self.registers.free(self.held.pop(oldest))
        return self.registers.take(purpose)

    def load(self, x: Any, window: int) -> None:
        base, at = self.window_at[window]
        for quarter, (start, size) in enumerate(self.places(at)):
            source = mem(base, start, size=size)
            if size > QUARTER_BYTES:
                self.dense.load_run(x, source, size)
            else:
                self.dense.load(x, source, size, quarter)

    def store(self, base: Any, at: int, x: Any) -> None:
        """Store and overwrite a register."""
        places = self.places(at)
        for quarter, (start, size) in enumerate(places):
            target = mem(base, start, size=size)
            if not self.streaming or size < QUARTER_BYTES:
                if quarter:
                    self.dense.extract(target, x, quarter)
                else:
                    self.dense.store(target, x, size)
                continue
            part = x if quarter in (0, len(places) - 1) else self.take("part")
            if quarter:
                self.dense.extract(part.xmm, x, quarter)
            self.asm.VMOVNTDQ(target, view_of(part, size))
            if part is not x:
                self.registers.free(part)

    def places(self, at: int) -> list[tuple[int, int]]:
        """Where the pixels of a group lie, and how many bytes: all together, or a quarter of a register each."""
        if self.pixel_bytes == self.unit_bytes or self.group == 1:
            return [(at, self.group * self.unit_bytes)]
        return [(at + pixel * self.pixel_bytes, self.unit_bytes) for pixel in range(self.group)]
