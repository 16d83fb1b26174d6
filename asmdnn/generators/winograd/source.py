"""The transform of a tile of the source: V = B^T d B for every channel, to every frequency's matrix.

    source[f, c] = sum over i, j of B[i, f // n] * B[j, f % n] * src[i, j, c]        n = m + 2, 0 <= f < n^2

| argument | dtype[shape] | what it is |
|---|---|---|
| source | source_type[n^2, vectors] | frequencies frequency_bytes apart; vectors of channels, zero after the last |
| src    | src_type[n, n, channels] | pixel (i, j) at i * row_bytes + j * pixel_bytes, vectors vector_bytes apart |

It is computed in f32.  Only pixels of `rows` and `cols` exist: others lie in the padding, are not read, and are no
operands at all.  Nothing is read past the channels.  src points to pixel (0, 0), which need not exist.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.winograd.arguments import ARGUMENTS, SOURCE, SRC, types_word
from asmdnn.generators.winograd.forms import FORMS, ResultGroup, Transforms
from asmdnn.generators.winograd.linear import Linear, Value, WidenedLanes, take_constants
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.elements import element_of, native_element
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import lanes_of, vector_of
from asmdnn.records import dataclass
from asmdnn.types import DataType, f32


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTransformSpec:
    """Everything that the bytes of the kernel depend on; rows and cols are [begin, end) of the tile's n."""

    isa: str
    m: int
    rows: tuple[int, int]
    cols: tuple[int, int]
    row_bytes: int
    pixel_bytes: int
    channels: int
    vector_bytes: int
    frequency_bytes: int
    src_type: DataType = f32
    source_type: DataType = f32
    frame = ARGUMENTS

    word: ClassVar[str] = "source"
    read: ClassVar[int] = SRC
    written: ClassVar[int] = SOURCE

    @property
    def form(self) -> Transforms:
        return FORMS[self.m]

    @property
    def groups(self) -> tuple[ResultGroup, ...]:
        """Of the transform along an axis."""
        return self.form.source

    @property
    def size(self) -> int:
        """Of what it is given, along an axis."""
        return self.form.size

    @property
    def name(self) -> str:
        (top, bottom), (left, right) = self.rows, self.cols
        words = f"{bottom - top}x{right - left}x{self.channels}_{checksum(self)}"
        types = types_word(self.src_type, self.source_type)
        return f"winograd_{self.word}_{types}_f{self.m}_{words}__{self.isa}"

    def pixel(self, i: int, j: int) -> int | None:
        """Where a pixel lies; None in the padding."""
        exists = self.rows[0] <= i < self.rows[1] and self.cols[0] <= j < self.cols[1]
        return i * self.row_bytes + j * self.pixel_bytes if exists else None

    def footprint(self) -> Footprint:
        n, lanes = self.size, lanes_of(self.isa)
        vectors, size = -(-self.channels // lanes), self.src_type.size_bytes
        whole, stored = size * lanes, vectors * lanes * self.source_type.size_bytes
        pixels = [at for i in range(n) for j in range(n) if (at := self.pixel(i, j)) is not None]
        pieces = [(k * self.vector_bytes, size * min(lanes, self.channels - k * lanes)) for k in range(vectors)]
        if self.vector_bytes == whole:  # a pixel's channels are one range
            pieces = [(0, size * self.channels)]
        reads = (Range(self.read, at + begin, at + begin + size) for at in pixels for begin, size in pieces)
        starts = (f * self.frequency_bytes for f in range(self.form.frequencies))
        return Footprint(tuple(reads), tuple(Range(self.written, at, at + stored) for at in starts))

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel."""
        v = vector_of(self.isa, asm)
        code = SourceCode(self, asm, v)
        full, rest = divmod(self.channels, v.lanes)
        if full:
            asm.role("whole vectors")
            with asm.repeated(full, "vectors left", "vectors"):
                code.transform(v)
                asm.ADD(code.src, self.vector_bytes)
                asm.ADD(code.dst, self.source_type.size_bytes * v.lanes)
        if rest:
            asm.role("tail")
            tail = v.tail(rest)
            code.transform(tail)
            tail.release()
        asm.ret()


class SourceCode:
    """The code for one vector of channels."""

    def __init__(self, spec: SourceTransformSpec, asm: Assembler, v: Vector) -> None:
        self.spec, self.v = spec, v
        self.element, self.stored = element_of(spec.src_type), native_element(spec.source_type, spec.isa)
        self.src, self.dst = asm.gp.take(ARGUMENTS[spec.read]), asm.gp.take(ARGUMENTS[spec.written])
        asm.MOV(self.src, mem(asm.frame, 8 * spec.read))
        asm.MOV(self.dst, mem(asm.frame, 8 * spec.written))

    def transform(self, part: Lanes) -> None:
        """Group by group of rows: first down the columns, then along the rows."""
        self.prefetch()
        for groups in self.batches():
            spare = self.v.registers.take("spare")
            rows = self.down(groups, part, spare)
            for i, row in rows:
                self.along(i, row, spare)
                self.v.registers.free(*row)
            self.v.registers.free(spare)

    def batches(self) -> Iterator[Sequence[ResultGroup]]:
        """Groups of rows that go down the columns together: one by one where arithmetic reads pixels from memory; where
        each pixel has to be converted before, half of the groups or all, as registers allow."""
        groups, n = self.spec.groups, self.spec.size
        size = 1
        if not self.element.stays:
            free = self.v.registers.available - len(("spare", "result", "result")) - n  # a column's pixels
            halves = len(groups) // 2
            size = next((k for k in (len(groups), halves) if free >= n * rows_of(groups[:k], groups[-k:])), 1)
        for first in range(0, len(groups), size):
            yield groups[first : first + size]

    def prefetch(self) -> None:
        """The columns that the tile to the right adds to these rows: memory takes as long as a transform."""
        spec = self.spec
        first, end = spec.size * spec.pixel_bytes, (spec.size + spec.m) * spec.pixel_bytes
        step = max(spec.pixel_bytes, LINE_BYTES)
        for i in range(*spec.rows):
            for at in (*range(first, end, step), end - 1):
                self.v.asm.PREFETCHT1(mem(self.src, i * spec.row_bytes + at))

    def down(self, groups: Sequence[ResultGroup], part: Lanes, spare: Register) -> list[tuple[int, list[Register]]]:
        """The groups' rows of B^T d by their numbers, a register for each of n columns."""
        v, n = self.v, self.spec.size
        numbers = [i for group in groups for i in group.results]
        rows: list[list[Register]] = v.registers.take("B^T d", len(numbers), n)
        held = v.registers.take("column", n) if len(groups) > 1 else ()
        # A whole vector is an operand of arithmetic where it lies, a tail or another type has to be loaded first; so
        # either the coefficient is in a register, or the pixel.
        in_place = part is v and self.element.stays
        constants = take_constants(v, groups[0]) if in_place else {}
        copy = None if in_place or held else v.registers.take("tail")
        lanes = part if self.element.stays else WidenedLanes(self.element, v, part)
        linear = Linear(v, lanes, constants, copy)
        for j in range(n):
            column = self.column(j, held, lanes)
            left = iter(rows)
            for group in groups:
                linear.group(group, column, [next(left)[j] for _ in group.results], spare)
        v.registers.free(*constants.values(), *held, *(() if copy is None else (copy,)))
        return list(zip(numbers, rows, strict=True))

    def column(self, j: int, held: Sequence[Register], lanes: Lanes) -> Sequence[Value]:
        """The pixels of a column: where they lie, or in registers, if these are given."""
        cells: list[Value] = [self.cell(i, j) for i in range(self.spec.size)]
        for i, register in enumerate(held):
            if isinstance(cell := cells[i], Pointer):
                lanes.load(register, cell)
                cells[i] = register
        return cells

    def along(self, i: int, row: Sequence[Register], spare: Register) -> None:
        """Row i of B^T d B, from row i of B^T d, and its stores."""
        v, spec = self.v, self.spec
        linear, results = Linear(v, v, {}, None), v.registers.take("B^T d B", 2)
        for group in spec.groups:
            linear.group(group, row, results, spare)
            for j, result in zip(group.results, results, strict=False):
                frequency = i * spec.form.size + j
                at = mem(self.dst, frequency * spec.frequency_bytes, size=v.bytes)
                self.stored.store(v, at, result, v, (spare,))
        v.registers.free(*results)

    def cell(self, i: int, j: int) -> Pointer | None:
        at = self.spec.pixel(i, j)
        return None if at is None else mem(self.src, at, size=self.v.bytes)


def rows_of(*batches: Sequence[ResultGroup]) -> int:
    """The most results that one of some batches of groups has."""
    return max(sum(len(group.results) for group in groups) for groups in batches)
