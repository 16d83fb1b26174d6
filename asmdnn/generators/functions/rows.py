"""What kernels share that work along dense rows: the walk over a row's vectors, and what rows touch."""

from collections.abc import Callable, Sequence

from asmdnn.generators.contract import Range
from asmdnn.generators.functions.chain import operands_read
from asmdnn.generators.functions.postops import OLD_DST, Operand, PostOp
from asmdnn.generators.functions.values import Source
from asmdnn.isa.assembler import Pointer, Register, mem
from asmdnn.isa.elements import element_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

F32_TYPES = ("f32", "f32")  # of src and dst


@dataclass(frozen=True, slots=True)
class Vectors:
    """Consecutive vectors of a row: how each is accessed, and where the first one begins: bytes of f32, and a register
    that counts elements of `unit` bytes, in bytes."""

    v: Vector
    parts: Sequence[Lanes]
    offset_bytes: int
    index: Register | None
    unit: int = F32_BYTES

    @property
    def count(self) -> int:
        return len(self.parts)

    def some(self, first: int, count: int) -> "Vectors":
        """At most so many of them."""
        parts = self.parts[first : first + count]
        return Vectors(self.v, parts, self.offset_bytes + first * self.v.bytes, self.index, self.unit)

    def at(self, pointer: Register, j: int, further_bytes: int = 0, size: int = F32_BYTES) -> Pointer:
        """Vector j of the row, of elements of so many bytes, that begins so many bytes after the pointer."""
        offset = (self.offset_bytes + j * self.v.bytes) * size // F32_BYTES + further_bytes
        scale = size // self.unit if self.index is not None else 1
        return mem(pointer, offset, size=self.v.bytes, index=self.index, scale=scale)

    def load(self, x: Register, pointer: Register, j: int, further_bytes: int = 0, kind: str = "f32") -> None:
        """x = vector j of elements of that type, which convert alone, as f32."""
        of = element_of(kind)
        of.load(self.v, x, self.at(pointer, j, further_bytes, of.size_bytes), self.parts[j])

    def places(self, pointer: Register, kind: str, further_bytes: int = 0) -> list[tuple[Pointer, Lanes]]:
        """Where every vector of elements of that type is stored, and how."""
        size = element_of(kind).size_bytes
        return [(self.at(pointer, j, further_bytes, size), part) for j, part in enumerate(self.parts)]

    def store_last(self, pointer: Register, j: int, x: Register, further_bytes: int = 0, kind: str = "f32") -> None:
        """Lanes of that type to vector j; x may be overwritten."""
        of = element_of(kind)
        of.lanes(self.v, self.parts[j]).store_last(self.at(pointer, j, further_bytes, of.size_bytes), x)

    def sources(
        self, pointer: Callable[[], Register], element: bool = False, further_bytes: int = 0, kind: str = "f32"
    ) -> list[Source]:
        """Of every vector, of elements of that type, or of the one that counts for all of the row."""
        of = element_of(kind)
        if element:
            return [Source(lambda: mem(pointer(), further_bytes, size=of.size_bytes), of.repeated(self.v))] * self.count
        return [
            Source(
                lambda j=j: self.at(pointer(), j, further_bytes, of.size_bytes),  # type: ignore[misc]
                of.lanes(self.v, part),
            )
            for j, part in enumerate(self.parts)
        ]


class Walk:
    """Over all vectors of rows of so many elements, the smallest of which have `unit` bytes.  Takes a register for the
    place, and what a tail needs."""

    def __init__(self, v: Vector, elements: int, unit: int = F32_BYTES) -> None:
        self.v, self.unit = v, unit
        self.full, rest = divmod(elements, v.lanes)
        self.tail = v.tail(rest) if rest else None
        self.place = v.asm.gp.take("bytes into the row")

    @property
    def parts(self) -> list[Lanes]:
        """All vectors of a row."""
        return [*[self.v] * self.full, *[self.tail] * (self.tail is not None)]  # type: ignore[list-item]

    def each(self, together: int, name: str, body: Callable[[Vectors], None]) -> None:
        """`body` for every vector, so many at a time: in a loop, then the rest, the tail among them."""
        v, asm = self.v, self.v.asm
        groups, step = self.full // together, together * v.lanes * self.unit
        if groups > 1:
            start = asm.new_label(name)
            asm.XOR(self.place, self.place)
            asm.bind(start)
            body(Vectors(v, [v] * together, 0, self.place, self.unit))
            asm.ADD(self.place, step)
            asm.CMP(self.place, groups * step)
            asm.JB(start)
        parts, done = self.parts, groups * together if groups > 1 else 0
        for first in range(done, len(parts), together):
            body(Vectors(v, parts[first : first + together], first * v.bytes, None, self.unit))


def words_of_types(types: Sequence[str]) -> str:
    """Those of src and dst in a kernel's name."""
    return "".join(dict.fromkeys(types))


def rows_touched(
    argument: int, rows: int, row_bytes: int, elements: int, element_bytes: int = F32_BYTES
) -> tuple[Range, ...]:
    """`rows` rows of so many elements, of f32 if nothing else is said."""
    size = element_bytes * elements
    if rows == 1 or row_bytes == size:
        return (Range(argument, 0, (rows - 1) * row_bytes + size),)
    return tuple(dict.fromkeys(Range(argument, r * row_bytes, r * row_bytes + size) for r in range(rows)))


def operands_touched(chain: tuple[PostOp, ...], rows: int, elements: int) -> tuple[Range, ...]:
    """What a chain reads beside its vectors and the destination."""
    return tuple(
        found
        for operand in tensors_read(chain)
        for found in rows_touched(operand.argument, rows, operand.row_bytes, 1 if operand.element else elements)
    )


def tensors_read(chain: tuple[PostOp, ...]) -> tuple[Operand, ...]:
    """Of operands_read(chain) those that are not the destination."""
    return tuple(operand for operand in operands_read(chain) if operand is not OLD_DST)


class TypedRows:
    """What specs of rows have in common whose arguments have `types`, all f32 if these are not given."""

    __slots__ = ()
    rows: int
    elements: int
    operands: tuple[Operand, ...]
    types: tuple[str, ...]

    def type_of(self, argument: int) -> str:
        return self.types[argument] if self.types else "f32"

    def size_of(self, argument: int) -> int:
        return element_of(self.type_of(argument)).size_bytes

    def operands_read(self) -> list[Range]:
        read: list[Range] = []
        for operand in self.operands:
            argument, elements = operand.argument, 1 if operand.element else self.elements
            read += rows_touched(argument, self.rows, operand.row_bytes, elements, self.size_of(argument))
        return read
