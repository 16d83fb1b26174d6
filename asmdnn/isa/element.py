"""What an element type is to the code that loads, computes with and stores its elements: a class for each.

A lane of a register has 32 bits.  Elements of 4 bytes fill it; smaller ones lie in its lower end as integers do, s8
with its sign and all others with zeros above, but for f16, which is f32 in a lane: the hardware converts packed ones.
All types but plain bits are computed with as f32, and rounded from it to nearest even:

    packed in memory --lanes().load--> lanes --to_f32--> f32 --round--> lanes --pack--> packed --> memory

`load` and `store` go all the way.  Programs take lanes, and their steps do what `widened` and `narrowed` say.  The
types themselves are in elements.py.
"""

from collections.abc import Callable, Sequence
from struct import pack

from asmdnn.isa.across import Combine
from asmdnn.isa.assembler import Assembler, Label, Pointer, Register
from asmdnn.isa.formula import Operations, V, bits_of, computed, emit
from asmdnn.isa.packing import packing_of
from asmdnn.isa.pieces import low_part
from asmdnn.isa.vector import Lanes, Nothing, Vector
from asmdnn.types import DataType

Instruction = Callable[..., None]
LANE_BYTES = 4
SPARE = 3  # registers that conversions may overwrite


class Element:
    """An element type.  Methods emit into the assembler of a vector; x and `spare`, SPARE registers, are overwritten.

    limits: of integers, the least and the largest number that they have and f32 has, too.
    stays: whether packed elements, lanes and what is computed with are the same bits.
    signed: whether lanes are packed as signed integers are.
    is_upper: whether the upper end of a lane is the better place for an element alone: see `from_end`.
    is_packed: whether the hardware converts packed elements, so that lanes are f32.
    cut_bits: how many lower bits of an f32 the type leaves out, where it is the same else.
    converts_alone: whether to_f32 takes no register but its own.
    rounds_by_steps: whether `round` takes several instructions.
    narrows_pairs: whether there is `narrow_pair`, and what that takes.
    results: what programs make of lanes that are stored, where that is not this type.
    """

    dtype: DataType
    limits: tuple[float, float] | None = None
    stays: bool = False
    signed: bool = False
    is_upper: bool = False
    is_packed: bool = False
    cut_bits: int = 0
    converts_alone: bool = True
    rounds_by_steps: bool = False
    narrows_pairs: bool = False
    results: DataType | None = None

    @property
    def name(self) -> str:
        return self.dtype.name

    @property
    def stored_as(self) -> str:
        """The type that programs end in: f32, which the store rounds, or this one."""
        return (self.results or self.dtype).name

    @property
    def size_bytes(self) -> int:
        return self.dtype.size_bytes

    @property
    def group(self) -> int:
        """Elements that fill a lane: of k, what a dot product multiplies at once."""
        return LANE_BYTES // self.size_bytes

    @property
    def is_byte_integer(self) -> bool:
        return self.limits is not None and self.size_bytes == 1

    @property
    def packs_lanes(self) -> bool:
        """Whether rounded lanes are wider than elements."""
        return self.size_bytes < LANE_BYTES and not self.is_packed and not self.stays

    # What the type means, in steps.

    def widened(self, ops: Operations[V], x: V) -> V:
        """A lane as f32."""
        return x

    def narrowed(self, ops: Operations[V], x: V) -> V:
        """An f32 as a lane: rounded to nearest even, integers saturated, NaN the least of these."""
        return x

    def narrowed_above(self, ops: Operations[V], x: V) -> V:
        """The same of integers, but for what is below the least."""
        raise NotImplementedError

    def lane(self, number: float) -> int:
        """The bits of a lane that holds the element nearest to a number."""
        return computed(self.narrowed, bits_of(number))

    def code(self, number: float) -> int:
        """The bits of the element nearest to a number."""
        return self.lane(number) % (1 << 8 * self.size_bytes)

    def addition(self, v: Vector) -> Combine:
        """Of what registers hold of the type: f32, but for integers of a whole lane."""
        return v.add

    # The same in registers.

    def spread(self, asm: Assembler, x: Register, source: Register | Pointer) -> None:
        """x = lanes of packed elements, which are memory or the low part of a register."""
        if self.size_bytes < LANE_BYTES:
            (asm.VPMOVZXWD if self.size_bytes == 2 else asm.VPMOVZXBD)(x, source)

    def to_f32(self, v: Vector, x: Register, spare: Sequence[Register] = ()) -> None:
        """Lanes to f32."""
        emit(v, self.widened, x, spare)

    def from_end(self, v: Vector, x: Register, spare: Sequence[Register] = ()) -> None:
        """As `to_f32`, of elements in the lower end of lanes, or the upper one if is_upper, with zeros elsewhere."""
        self.to_f32(v, x, spare)

    def widen(self, v: Vector, x: Register, source: Register | Pointer, spare: Sequence[Register] = ()) -> None:
        """x = packed elements as f32; of 4 bytes they may be in x."""
        self.spread(v.asm, x, source)
        self.to_f32(v, x, spare)

    def round(self, v: Vector, x: Register, spare: Sequence[Register]) -> None:
        """f32 to lanes, of which `pack` saturates those of small integers below the least."""
        emit(v, self.narrowed, x, spare)

    def pack(self, v: Vector, x: Register, spare: Sequence[Register]) -> None:
        """Rounded lanes to packed elements in the low part of x."""
        if self.size_bytes == 2:
            packing_of(v).to_words(x, spare[0])
        elif self.size_bytes == 1:
            packing_of(v).to_bytes(x, spare[0], self.signed)

    def load_largest(self, v: Vector, x: Register) -> None:
        """x = the largest number, of integers, in all lanes."""
        assert self.limits, f"{self.name} is no integer"
        v.broadcast(x, v.asm.const(pack("<f", self.limits[1]), 4, size=4))

    def packs(self, asm: Assembler) -> tuple[Instruction, Instruction]:
        """The saturating instructions from lanes to words, and from words to bytes; of two vectors, in each quarter."""
        return (asm.VPACKSSDW, asm.VPACKSSWB) if self.signed else (asm.VPACKUSDW, asm.VPACKUSWB)

    def narrow(self, v: Vector, x: Register, spare: Sequence[Register]) -> None:
        """f32 to packed elements in the low part of x."""
        self.round(v, x, spare)
        self.pack(v, x, spare)

    def narrow_pair(self, v: Vector, x: Register, low: Register, high: Register, otherwise: Label) -> None:
        """x = two vectors of f32 as packed elements; jumps where one of them has elements that it would not round."""
        self.find_others(v, (low, high))
        v.asm.JNZ(otherwise)
        self.narrow_both(v, x, low, high)

    def find_others(self, v: Vector, values: Sequence[Register]) -> None:
        """ZF is clear where one of the vectors has elements that `narrow_both` and `narrow_to` would not round."""
        raise NotImplementedError

    def narrow_both(self, v: Vector, x: Register, low: Register, high: Register) -> None:
        """x = packed elements of both."""
        raise NotImplementedError

    def narrow_to(self, v: Vector, x: Register, source: Register) -> None:
        """The low part of x = packed elements of one."""
        raise NotImplementedError

    def truncate(self, v: Vector, x: Register) -> None:
        """Lanes to packed elements, which have these numbers, in the low part of x."""
        packing_of(v).truncate(x, self.size_bytes, self.signed)

    # Memory.  `part` is all lanes of a vector, v itself, or a tail.

    def lanes(self, v: Vector, part: Lanes) -> Lanes:
        """Loads and stores of lanes, as `part` does them with elements of 4 bytes."""
        if self.size_bytes == LANE_BYTES or isinstance(part, Nothing):
            return part
        return ElementLanes(self, v, part)

    def repeated(self, v: Vector) -> Lanes | None:
        """Loads of one element into every lane; None, which stands for a broadcast of 4 bytes, if it has so many."""
        return None if self.size_bytes == LANE_BYTES else RepeatedElement(self, v)

    def load(self, v: Vector, x: Register, src: Pointer, part: Lanes, spare: Sequence[Register] = ()) -> None:
        """x = elements in memory as f32, zeros in the lanes that are not the part's."""
        self.lanes(v, part).load(x, src)
        self.to_f32(v, x, spare)

    def store(self, v: Vector, dst: Pointer, x: Register, part: Lanes, spare: Sequence[Register]) -> None:
        """f32 to elements in memory."""
        self.narrow(v, x, spare)
        self.store_packed(v, dst, x, part)

    def store_packed(self, v: Vector, dst: Pointer, x: Register, part: Lanes) -> None:
        """What the low part of x holds."""
        if self.size_bytes == LANE_BYTES or isinstance(part, Nothing):
            part.store_last(dst, x)
        else:
            packing_of(v).store(dst, x, part, self.size_bytes)


class ElementLanes(Lanes):
    """The lanes that `part` is of a vector, all or the first few, as elements of 1 or 2 bytes that touch."""

    def __init__(self, element: Element, v: Vector, part: Lanes) -> None:
        self.element, self.v, self.part, self.packing = element, v, part, packing_of(v)

    def load(self, dst: Register, src: Pointer) -> None:
        size = self.element.size_bytes
        source: Register | Pointer = src.sized(self.v.lanes * size)
        if self.part is not self.v:
            self.packing.load(dst, src, self.part, size)
            source = low_part(dst, size)
        self.element.spread(self.v.asm, dst, source)

    def store(self, dst: Pointer, src: Register) -> None:
        """src is overwritten."""
        self.element.truncate(self.v, src)
        self.packing.store(dst, src, self.part, self.element.size_bytes)


class RepeatedElement(Lanes):
    """One element of 1 or 2 bytes, in every lane."""

    def __init__(self, element: Element, v: Vector) -> None:
        self.element, self.v = element, v

    def load(self, dst: Register, src: Pointer) -> None:
        size, asm = self.element.size_bytes, self.v.asm
        low = low_part(dst, size)
        (asm.VPBROADCASTW if size == 2 else asm.VPBROADCASTB)(low, src.sized(size))
        self.element.spread(asm, dst, low)
