"""Shuffle blocks whose units are whole vectors of 4-byte elements: permutations of lanes.

| argument | dtype[shape] | what it is |
|---|---|---|
| src | any 4 byte elements | pixels `pixel_bytes` apart; of each, the vectors that the spec lists |
| dst | the same, never overlapping | of each pixel the units that the spec lists; no other byte is written |

A unit is a vector of dst; its lanes come from the vectors of src in any order.  Where small pixels touch, several of
them that fill a vector count as one pixel here.  The orders stand in registers, as many as there are, the others in
the constant pool.  shuffle.py builds units of 16 bytes instead, of any element.
"""

from collections import Counter
from functools import partial
from typing import Any, ClassVar

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.stores import emit_stored
from asmdnn.generators.stretches import merged
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.permute import Lanes, permutes_of, steps_of
from asmdnn.isa.vectors import vector_bytes, vector_class, vector_of
from asmdnn.records import dataclass

SRC, DST = range(2)
ARGUMENTS = ("src", "dst")
IN_FLIGHT = 4  # units
TEMPORARIES = IN_FLIGHT + 2  # registers that hold no orders for good
TOGETHER = 16  # instructions that an iteration has at least, if there are pixels for it


@dataclass(frozen=True, slots=True)
class Unit:
    """A vector of dst: its displacement, and those of the vectors of src with the lanes that each gives."""

    dst: int
    sources: tuple[tuple[int, Lanes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteSpec:
    """For each of `pixels` pixels all units.

    streaming: stores go past the caches if dst is aligned to a vector, which the kernel looks at when called; all
    displacements must be multiples of a vector then.
    """

    isa: str
    pixels: int
    pixel_bytes: int
    units: tuple[Unit, ...]
    streaming: bool = False
    pixels_together: ClassVar[int] = 1  # of those that are counted, a vector has room for one
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        block = f"{self.pixels}x{self.stored_bytes}"
        return f"permute_b32_{block}_{checksum(self)}__{self.isa}"

    @property
    def stored_bytes(self) -> int:
        """For a pixel."""
        return len(self.units) * self.vector_bytes

    @property
    def vector_bytes(self) -> int:
        return vector_bytes(self.isa)

    @property
    def operations(self) -> int:
        """Vector instructions for a pixel: moves, loads of orders that no register holds, stores."""
        orders = Counter((lanes, i == 0) for unit in self.units for i, (_, lanes) in enumerate(unit.sources))
        loaded = sum(list(orders.values())[vector_class(self.isa).count - TEMPORARIES :])
        return loaded + sum(steps_of(self.vector_bytes, len(unit.sources)) + 1 for unit in self.units)

    @property
    def permutations(self) -> int:
        """How many of them are permutations."""
        return sum(len(unit.sources) for unit in self.units)

    @property
    def sources(self) -> int:
        """From how many vectors of src a unit comes, at most."""
        return max(len(unit.sources) for unit in self.units)

    def footprint(self) -> Footprint:
        return Footprint(
            self.ranges(SRC, [at for unit in self.units for at, _ in unit.sources]),
            self.ranges(DST, [unit.dst for unit in self.units]),
        )

    def ranges(self, argument: int, starts: list[int]) -> tuple[Range, ...]:
        one = merged((at, at + self.vector_bytes) for at in starts)
        shifts = range(0, self.pixels * self.pixel_bytes, self.pixel_bytes)
        return tuple(Range(argument, b, e) for b, e in merged((b + s, e + s) for s in shifts for b, e in one))

    def generate(self, asm: Assembler) -> None:
        src, dst, left = (asm.gp.take(name) for name in ("src", "dst", "pixels left"))
        body = PermuteCode(self, asm, src, dst)
        asm.MOV(src, mem(asm.frame, 8 * SRC))
        asm.MOV(dst, mem(asm.frame, 8 * DST))
        body.load_controls()
        emit_stored(body.v, dst, partial(self.all_pixels, body, left), self.streaming, scratch=left)

    def all_pixels(self, body: "PermuteCode", left: Any, store: Any) -> None:
        """Some pixels in each iteration, and the rest."""
        together = min(self.pixels, -(-TOGETHER // self.operations))
        groups, rest = divmod(self.pixels, together)
        asm = body.v.asm
        asm.MOV(left, groups)
        with asm.loop(left, "pixels"):
            for pixel in range(together):
                body.pixel(pixel, store)
            for pointer in (body.src, body.dst):
                asm.ADD(pointer, together * self.pixel_bytes)
        for pixel in range(rest):
            body.pixel(pixel, store)


class PermuteCode:
    """Emits the units of a pixel."""

    def __init__(self, spec: PermuteSpec, asm: Assembler, src: Any, dst: Any) -> None:
        self.spec, self.src, self.dst, self.v = spec, src, dst, vector_of(spec.isa, asm)
        registers = self.v.registers
        self.data, self.spare, self.control = (
            registers.take("units", IN_FLIGHT), registers.take("spare"), registers.take("order"),
        )  # fmt: skip
        self.permutes = permutes_of(self.v, self.spare)
        moves = (x for unit in spec.units for x in enumerate(lanes for _, lanes in unit.sources))
        controls = dict.fromkeys(self.permutes.control(lanes, number == 0) for number, lanes in moves)
        self.held = {each: registers.take("order") for each in list(controls)[: registers.available]}

    def load_controls(self) -> None:
        for control, register in self.held.items():
            self.load_control(register, control)

    def load_control(self, register: Any, control: bytes) -> None:
        self.v.load(register, self.v.asm.const(control, self.v.bytes, size=self.v.bytes))

    def pixel(self, number: int, store: Any) -> None:
        """All units of a pixel, counted from where the pointers are."""
        shift = number * self.spec.pixel_bytes
        for i, unit in enumerate(self.spec.units):
            x = self.data[i % IN_FLIGHT]
            self.v.asm.role(f"unit at {unit.dst}")
            for vector, (at, lanes) in enumerate(unit.sources):
                control = self.permutes.control(lanes, vector == 0)
                register = self.held.get(control)
                if register is None:
                    register = self.control
                    self.load_control(register, control)
                source = mem(self.src, at + shift, size=self.v.bytes)
                self.permutes.move(x, register, source, lanes, vector == 0)
            store(mem(self.dst, unit.dst + shift, size=self.v.bytes), x)
