"""From a stream of code pieces, jumps, alignments and returns to position-independent bytes.

Lengths depend on each other: a jump is short only if its target is near.  All jumps start short and only ever grow, so
the iteration ends, and at its end every short jump reaches its target.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Final

from asmdnn.errors import InvalidArguments
from asmdnn.isa.code import Code, Line
from asmdnn.isa.label import Label
from asmdnn.isa.memory_operand import Pointer
from asmdnn.isa.notes import Note, Notes
from asmdnn.isa.pool import Pool
from asmdnn.records import dataclass, field

POOL_ALIGNMENT_BYTES: Final = 64  # kernels start at multiples of 64, so no constant can be aligned more strictly
SHORT_BYTES, NEAR_BYTES = 1, 4  # of a jump's distance, the last field of its encoding
_FROM_LABEL: Final = r"\[rip[^]]*\]"
_FILLER: Final = b"\xcc"  # int3 between code and constants: never reached

# The recommended multi-byte NOPs (Intel manual, volume 2, NOP), by length.
_NOPS: Final = tuple(
    bytes.fromhex(code)
    for code in (
        "", "90", "6690", "0f1f00", "0f1f4000", "0f1f440000", "660f1f440000", "0f1f8000000000",
        "0f1f840000000000", "660f1f840000000000",
    )
)  # fmt: skip


@dataclass(slots=True, eq=False)
class Piece:
    """Instructions of fixed bytes.

    pool_fixes: (start of a 4-byte pool offset, end of its instruction).  label_fixes: the same of distances from a
    label.  notes: their numbers.
    """

    data: bytearray = field(default_factory=bytearray)
    pool_fixes: list[tuple[int, int]] = field(default_factory=list)
    label_fixes: list[tuple[int, int, Label]] = field(default_factory=list)
    notes: list[int] = field(default_factory=list)

    def add_fix(self, place: int, end: int, label: Label | None) -> None:
        """What stands at `place` of an instruction that ends at `end` counts from the pool, or from a label."""
        if label is None:
            self.pool_fixes.append((place, end))
        else:
            self.label_fixes.append((place, end, label))


@dataclass(slots=True, eq=False)
class Jump:
    """A jump to a label; `short` and `near` encode it from its displacement, either may be missing."""

    target: Label
    note: Note
    short: Callable[[int], bytes] | None
    near: Callable[[int], bytes] | None
    is_short: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_short = self.short is not None

    @property
    def length(self) -> int:
        return len(self.encode(0))

    def encode(self, displacement: int) -> bytes:
        """Raises InvalidArguments for a distance that the bytes do not hold: PeachPy would keep the low part."""
        encoder = self.short if self.is_short else self.near
        assert encoder is not None
        code = bytes(encoder(displacement))
        distance = code[-SHORT_BYTES if self.is_short else -NEAR_BYTES :]
        if int.from_bytes(distance, "little", signed=True) != displacement:
            raise InvalidArguments(f"{self.note.text} {self.target} is out of reach: it is {displacement} bytes away")
        return code


@dataclass(frozen=True, slots=True)
class Align:
    """NOPs up to the next multiple of `alignment`."""

    alignment: int
    note: Note


Item = Piece | Jump | Align


def lay_out(items: Sequence[Item], pool: Pool, notes: Notes | None) -> Code:
    """The bytes of the stream, with jumps as short as they can be; with notes, there is a listing.

    Raises InvalidArguments for an unbound label.
    """
    _check_bound(items, pool)
    offsets = _offsets(items)
    while _grow_jumps(items, offsets):
        offsets = _offsets(items)
    code = b"".join(_bytes_of(item, start, offsets) for item, start in zip(items, offsets, strict=False))
    padding = -len(code) % POOL_ALIGNMENT_BYTES if pool else 0
    data = bytearray(code)
    for item, start in zip(items, offsets, strict=False):
        if isinstance(item, Piece):
            for field_start, end in item.pool_fixes:
                _make_rip_relative(data, start + field_start, start + end, len(code) + padding)
            for field_start, end, label in item.label_fixes:
                _make_rip_relative(data, start + field_start, start + end, offsets[label.piece])
    lines = cache(partial(_listing, tuple(items), offsets, bytes(data), notes)) if notes else None
    tables = tuple(tuple(offsets[target.piece] for target in table.targets) for table in pool.tables)
    return Code(bytes(data) + _FILLER * padding + pool.data(len(code) + padding, offsets), len(code), lines, tables)


def _check_bound(items: Sequence[Item], pool: Pool) -> None:
    jumps = [(item.target, item.note.source) for item in items if isinstance(item, Jump)]
    in_tables = [(target, "") for table in pool.tables for target in table.targets]
    addressed = [(label, "") for item in items if isinstance(item, Piece) for *_, label in item.label_fixes]
    for target, source in (*jumps, *in_tables, *addressed):
        if target.piece < 0:
            where = f" ({source})" if source else ""
            raise InvalidArguments(f"label {target.name!r} is jumped to{where} but never bound: call bind() on it")


def _offsets(items: Sequence[Item]) -> list[int]:
    """The offset of every item, and the end."""
    offsets, here = [], 0
    for item in items:
        offsets.append(here)
        if isinstance(item, Piece):
            here += len(item.data)
        elif isinstance(item, Jump):
            here += item.length
        else:
            here += -here % item.alignment
    return [*offsets, here]


def _displacement(item: Jump, start: int, offsets: Sequence[int]) -> int:
    return offsets[item.target.piece] - (start + item.length)


def _grow_jumps(items: Sequence[Item], offsets: Sequence[int]) -> bool:
    grown = False
    for item, start in zip(items, offsets, strict=False):
        if isinstance(item, Jump) and item.is_short and not -128 <= _displacement(item, start, offsets) <= 127:
            if item.near is None:
                raise InvalidArguments(f"{item.note.text} {item.target.name} is out of reach: it has only a short form")
            item.is_short, grown = False, True
    return grown


def _bytes_of(item: Item, start: int, offsets: Sequence[int]) -> bytes:
    if isinstance(item, Piece):
        return bytes(item.data)
    if isinstance(item, Jump):
        return item.encode(_displacement(item, start, offsets))
    return b"".join(_nops(-start % item.alignment))


def _nops(length: int) -> Iterator[bytes]:
    longest = len(_NOPS) - 1
    while length > 0:
        yield _NOPS[min(length, longest)]
        length -= longest


def _make_rip_relative(data: bytearray, field_start: int, end: int, origin: int) -> None:
    place = slice(field_start, field_start + 4)
    offset = int.from_bytes(data[place], "little", signed=True)
    data[place] = (origin + offset - end).to_bytes(4, "little", signed=True)


def _listing(items: Sequence[Item], offsets: Sequence[int], data: bytes, notes: Notes) -> tuple[Line, ...]:
    return tuple(_lines(items, offsets, data, notes))


def _lines(items: Sequence[Item], offsets: Sequence[int], data: bytes, notes: Notes) -> Iterator[Line]:
    pool_start = offsets[-1] + -offsets[-1] % POOL_ALIGNMENT_BYTES

    def line(note: Note, start: int, end: int, text: str) -> Line:
        for pointer in note.operands:
            if isinstance(pointer, Pointer) and pointer.form.label:  # as those of constants: from the pool's start
                at = offsets[pointer.form.label.piece] + pointer.displacement - pool_start
                text = f"{re.sub(_FROM_LABEL, f'[rip{at:+d}]' if at else '[rip]', text)} <{pointer.form.label}>"
        return Line(start, data[start:end], text, note.role, note.source, notes.detail(note))

    for item, start, end in zip(items, offsets, offsets[1:], strict=False):
        if isinstance(item, Piece):
            noted = [notes.at(number) for number in item.notes]
            stops = [*(note.start for note in noted), len(item.data)][1:]
            for note, stop in zip(noted, stops, strict=False):
                yield line(note, start + note.start, start + stop, note.text)
        elif isinstance(item, Jump):
            yield line(item.note, start, end, f"{item.note.text} {offsets[item.target.piece]:#x} <{item.target.name}>")
        else:
            here = start
            for nop in _nops(end - start):
                yield line(item.note, here, here + len(nop), item.note.text)
                here += len(nop)


def check_alignment(alignment: int) -> None:
    """Raises InvalidArguments for what is no alignment of code or constants."""
    if alignment not in (1, 2, 4, 8, 16, 32, POOL_ALIGNMENT_BYTES):
        raise InvalidArguments(f"alignment {alignment} is not a power of two from 1 to {POOL_ALIGNMENT_BYTES}")
