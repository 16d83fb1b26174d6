"""Dot products: what one multiply-accumulate computes, for each triple of types.

    acc[n] += sum over the k of one group of src[k] * weights[k, n]

A group is the consecutive k that are multiplied at once: 1 element of f32, 2 of bf16, 4 of u8.  It has GROUP_BYTES of
src and fills one lane, so src is broadcast a group at a time, and a vector of weights holds the same group of k for
each of its columns ("VNNI order").  Sums have 32 bits whatever is multiplied, so that bodies written for f32 hold for
all: an element of k there is a group here.  dot_native.py has those that are an instruction, dot_widened.py the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import ClassVar, Final

from asmdnn.isa.across import Combine
from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.dot_runs import OneRun
from asmdnn.isa.elements import element_of
from asmdnn.isa.pieces import broadcast_bytes
from asmdnn.isa.registers import Shaped, flat
from asmdnn.isa.vector import Lanes, Row, Vector
from asmdnn.records import dataclass, field
from asmdnn.types import DataType, bf16, f16, f32, s8, s16, s32, u8

GROUP_BYTES: Final = 4

MULTIPLIES: Final = 2  # that start in a cycle, of vectors

Blocks = Mapping[int, int]  # the most rows for each number of vectors of accumulators


@dataclass(frozen=True, slots=True)
class Types:
    """Of the elements that are multiplied, and of their sums.

    group: elements of k in a group.  weights_bytes: of a group of one column of weights; fewer than of src, if they are
    widened as they are loaded.  run: what products are summed in first, in runs of k, if not in the type of sums.
    """

    src: DataType
    weights: DataType
    sums: DataType
    run: DataType | None = None
    group: int = field(init=False, repr=False, compare=False)  # fields, as planning asks hundreds of times
    weights_bytes: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        group = GROUP_BYTES // self.src.size_bytes
        object.__setattr__(self, "group", group)
        object.__setattr__(self, "weights_bytes", group * self.weights.size_bytes)

    def __hash__(self) -> int:
        return hash((self.src.name, self.weights.name, self.sums.name))  # planning takes hundreds a step

    def groups_of(self, depth: int) -> list[int]:
        """The groups of `depth` elements of src, by their sizes in bytes: the last one may be cut."""
        whole, rest = divmod(depth, self.group)
        return [GROUP_BYTES] * whole + [rest * self.src.size_bytes] * bool(rest)

    def __str__(self) -> str:
        """As in the name of a kernel."""
        return "f32" if self == F32 else f"{self.src}{self.weights}{self.run or ''}{self.sums}"


F32: Final = Types(f32, f32, f32)
BF16: Final = Types(bf16, bf16, f32)
F16: Final = Types(f16, f16, f32, run=f16)
U8S8: Final = Types(u8, s8, s32)
S8S8: Final = Types(s8, s8, s32)
S16S8: Final = Types(s16, s8, s32)  # of bytes that a phase in front has made words of
F32_BF16: Final = Types(f32, bf16, f32)
F32_F16: Final = Types(f32, f16, f32)
F32_S8: Final = Types(f32, s8, f32)
F32_U8: Final = Types(f32, u8, f32)
S16: Final = Types(s16, s16, s32)  # of bytes that are words in registers
S32: Final = Types(s32, s32, s32)  # of sums that are themselves summed, or multiplied by few numbers


@dataclass(frozen=True, slots=True)
class GroupPart:
    """The bytes [first, end) of a group exist, the others are neither read nor multiplied; with `follows` those of a
    group in front of it do, too."""

    end: int = GROUP_BYTES
    first: int = 0
    follows: bool = False


WHOLE: Final = GroupPart()


class Dot:
    """The dot product of one triple of types, emitted with the registers of `v`.

    blocks: the most rows for each number of vectors, by the registers of a level: accumulators, a row of weights, a
    group of src that is broadcast, and the mask of a tail must fit.  is_native: whether an instruction multiplies these
    types as they are.  tile_product: the one of AMX that does so with tiles, "" for none.  shift: what is added to
    every element of src; sums have to start that many times the sums of weights' columns lower.
    """

    row_registers: ClassVar[int] = 1  # of a vector of weights
    copy_registers: ClassVar[int] = 1  # of a group of src that is kept for many vectors of weights
    spare_registers: ClassVar[int] = 1  # at least: of a group of src, and what `ready` keeps
    product_registers: ClassVar[int] = 0  # that `accumulate` overwrites
    shift: ClassVar[int] = 0
    is_native: ClassVar[bool] = True
    tile_product: ClassVar[str] = ""
    has_halves: ClassVar[bool] = False  # whether half a register may be multiplied beside whole ones
    reads_memory: ClassVar[bool] = True  # whether a multiply takes weights from there, as they lie
    blocks: ClassVar[Mapping[int, Blocks]] = MappingProxyType(
        {16: {1: 12, 2: 6, 4: 2, 8: 1}, 32: {1: 24, 2: 14, 4: 6, 8: 2, 16: 1}}
    )

    def __init__(self, types: Types, v: Vector) -> None:
        self.types, self.v, self.asm = types, v, v.asm

    @classmethod
    def busy_cycles(cls, rows: int, vectors: int) -> float:
        """That a step of k keeps the ports of arithmetic busy, of a block of so many rows and vectors."""
        return rows * vectors / MULTIPLIES

    @classmethod
    def end_cycles(cls, rows: int, vectors: int, steps: int) -> float:
        """That ends of runs take beside so many steps of k."""
        return 0.0

    def runs(self, acc: Sequence[Row]) -> OneRun:
        """How the steps of k of a tile are summed, whose accumulators hold what its sums start from."""
        return OneRun(self.v, acc)

    @property
    def row_bytes(self) -> int:
        """Of a vector of weights in memory."""
        return self.types.weights_bytes * self.v.lanes

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Around the code that multiplies: what that needs in registers all the time."""
        yield

    def load(self, row: Row, part: Lanes, at: Pointer) -> None:
        """A vector of weights, or a part of one, into its registers."""
        part.load(row[0], at)

    def multiply(self, acc: Register, copy: Register, row: Register | Pointer) -> None:
        """acc += copy . row in every lane: a group of src, broadcast, and a group of weights for each column."""
        raise NotImplementedError

    def broadcast(self, copy: Register, group: Pointer, group_bytes: int = GROUP_BYTES) -> None:
        """A group of src in every lane; of the last group of a row maybe `group_bytes` only, with zeros after."""
        broadcast_bytes(self.v, copy, group, group_bytes)

    def keep(self, copy: Row, group: Pointer, group_bytes: int = GROUP_BYTES) -> None:
        """A group of src in every lane, as `accumulate` takes it."""
        self.broadcast(copy[-1], group, group_bytes)
        self.arrange_src(copy)

    def arrange_src(self, copy: Row) -> None:
        """Groups of src as memory has them, in the last register, as they are multiplied, in all of them."""

    def arrange(self, row: Row) -> None:
        """The same for weights."""

    def accumulate(self, acc: Register, copy: Row, row: Row | Sequence[Pointer], spare: Register) -> None:
        """acc += copy . row, which are arranged.  Only where weights are read as they lie, the row may be memory."""
        self.multiply(acc, copy[0], row[0])

    def accumulate_shift(self, acc: Register, row: Row | Sequence[Pointer], spare: Register) -> None:
        """acc += shift * row: what a product with the row has too much, of dots that shift src."""
        raise NotImplementedError

    def accumulate_first(self, acc: Register, copy: Row, row: Row | Sequence[Pointer], spare: Register) -> None:
        """acc = copy . row."""
        self.v.zero(acc)
        self.accumulate(acc, copy, row, spare)

    def add(self, sums: Register, more: Register) -> None:
        """sums += more."""
        self.addition(sums, sums, more)

    def add_up(self, sums: Sequence[Shaped]) -> None:
        """All sums in the first ones, in a tree of one order; the registers of the others are free then."""
        self.asm.role("add sums")
        while len(sums) > 1:
            half = -(-len(sums) // 2)
            for into, other in zip(sums, sums[half:], strict=False):
                for x, y in zip(flat(into), flat(other), strict=True):
                    self.add(x, y)
                    self.v.registers.free(y)
            sums = sums[:half]

    @property
    def addition(self) -> Combine:
        """Of sums."""
        return element_of(self.types.sums).addition(self.v)

    def to_f32(self, sums: Register) -> None:
        """The sums as f32, each rounded to nearest even."""
        element_of(self.types.sums).widen(self.v, sums, sums)

    def outer_product(
        self, acc: Sequence[Row], row: Row, column: Sequence[Pointer], spare: Row, group_bytes: int = GROUP_BYTES
    ) -> None:
        """acc[i][j] += column[i] . row[j], column[i] being a group in memory of which `group_bytes` exist.

        row: the registers of all vectors.  Spare registers take turns, so that a broadcast does not wait for the
        multiplies of the one before.
        """
        for i, group in enumerate(column):
            copy = spare[i % len(spare)]
            self.broadcast(copy, group, group_bytes)
            for j, factor in enumerate(row):
                self.multiply(acc[i][j], copy, factor)

    def outer_product_of_parts(
        self, acc: Sequence[Row], row: Row, column: Sequence[Pointer], spare: Row, part: GroupPart = WHOLE
    ) -> None:
        """The same of groups of which a part exists; one that lacks its first bytes is for dots of two elements."""
        self.outer_product(acc, row, column, spare, part.end)

    def one_row(
        self, acc: Row, group: tuple[Pointer, int], weights: Sequence[tuple[Lanes, Pointer]], row: Row, spare: Row
    ) -> None:
        """acc[j] += group . weights[j]: each vector is used once, so the multiply reads it from memory where it can.

        group: where it is, and its bytes.  row: the registers of one vector.
        """
        self.broadcast(spare[0], *group)
        for sums, (part, at) in zip(acc, weights, strict=True):
            self.multiply_once(sums, spare[0], row, part, at)

    def multiply_once(self, acc: Register, copy: Register, row: Row, part: Lanes, at: Pointer) -> None:
        """acc += copy . a vector in memory, or a part of one, which goes through `row`."""
        self.multiply(acc, copy, self.read(row, part, at)[0])

    def read(self, row: Row, part: Lanes, at: Pointer) -> Row | Sequence[Pointer]:
        """A vector of weights that is used once: in memory, if it is multiplied from there, else loaded into `row`."""
        if self.reads_memory and part is self.v:
            return (at,)
        self.load(row, part, at)
        return row
