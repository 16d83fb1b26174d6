"""A kernel's memory as its documentation sees it: elements around each argument's pointer, every access recorded.

A reference works on Elements.  What it touches is the contract: `Buffer` cuts out exactly these bytes, poisons all
that is not read, and knows what must be there afterwards.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from asmdnn.types import DataType, bf16, f8_e4m3, f8_e5m2, f32, s8, s16, s32, u8

POISON, DST_POISON = np.uint32(0x7FC0DEAD), np.uint32(0x7FC0BEEF)  # NaN that no arithmetic makes; told apart if copied
SMALL_POISON = {2: np.uint16(0x7FDE), 1: np.uint8(0xA5)}  # of elements of 2 bytes, NaN in bf16, and of 1
FLOAT8 = {f8_e5m2: ml_dtypes.float8_e5m2, f8_e4m3: ml_dtypes.float8_e4m3fn}
LIMITS = {u8: (0, 255), s8: (-128, 127), s16: (-128, 255)}  # of integers that are multiplied
BF16_SHIFT = np.uint32(16)
REACH_BYTES = 1 << 16  # on either side of a pointer

Bytes = npt.NDArray[np.uint8]
Bits = npt.NDArray[np.bool_]
Doubles = npt.NDArray[np.float64]


def encode(values: Doubles, kind: DataType) -> Bytes:
    """The bytes of numbers that the type has."""
    if kind in FLOAT8:
        return values.astype(FLOAT8[kind]).view(np.uint8)
    if kind == bf16:
        return (values.astype(np.float32).view(np.uint32) >> BF16_SHIFT).astype(np.uint16).view(np.uint8)
    return values.astype(kind.numpy).view(np.uint8)


def decode(data: Bytes, kind: DataType) -> npt.NDArray[Any]:
    """The numbers of such bytes."""
    if kind in FLOAT8:
        return data.view(FLOAT8[kind]).astype(np.float32)
    if kind == bf16:
        return (data.view(np.uint16).astype(np.uint32) << BF16_SHIFT).view(np.float32)
    return data.view(kind.numpy)


class Recorded:
    """Values around an argument's pointer, and which of them were read before they were written."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self.initial, self.values = values, values.copy()
        self.read, self.written = np.zeros(len(values), bool), np.zeros(len(values), bool)

    def load(self, at_bytes: int, count: int) -> npt.NDArray[Any]:
        where = self.place(at_bytes, count)
        self.read[where] |= ~self.written[where]
        return self.values[where].copy()

    def store(self, at_bytes: int, values: npt.NDArray[Any]) -> None:
        where = self.place(at_bytes, len(values))
        self.values[where] = values
        self.written[where] = True

    def place(self, at_bytes: int, count: int) -> slice:
        """Of so many values.  Raises AssertionError for what is not there."""
        raise NotImplementedError


class Elements(Recorded):
    """Elements of type `kind`, which a call may leave as `result`, of the same size, at multiples of it from an
    argument's pointer; `values` are float64 so that references can be exact, all of them of that type at first."""

    def __init__(self, values: Doubles, kind: DataType = f32, result: DataType | None = None) -> None:
        super().__init__(values)
        self.kind, self.result = kind, result or kind

    def clear(self, at_bytes: int, count: int) -> None:
        """Zeros before the call."""
        where = self.place(at_bytes, count)
        self.initial[where] = self.values[where] = 0

    def place(self, at_bytes: int, count: int) -> slice:
        first, rest = divmod(REACH_BYTES + at_bytes, self.kind.size_bytes)
        assert rest == 0 and 0 <= first <= len(self.values) - count, f"{at_bytes} is not within reach"
        return slice(first, first + count)


def elements(
    random: np.random.Generator, integers: bool, kind: DataType = f32, result: DataType | None = None
) -> Elements:
    """Multiples of 4 up to 16, for which all sums here are exact in f32; or numbers in [-1, 1).

    Of u8 and s8 anything that they have, of s16 what both have, and of s32 integers, whatever is asked for.
    """
    count = 2 * REACH_BYTES // kind.size_bytes
    if kind in LIMITS:
        return Elements(np.float64(random.integers(*LIMITS[kind], count, endpoint=True)), kind, result)
    values = numbers(integers or kind == s32)
    first = int(random.integers(len(values) - count))
    piece = values[first : first + count].copy()
    return Elements(np.float64(decode(encode(piece, kind), kind)), kind, result)


@cache
def numbers(integers: bool) -> Doubles:
    """More than any call needs, so that every argument gets a piece of its own."""
    random, count = np.random.default_rng(7), 64 * REACH_BYTES
    if integers:
        return 4.0 * random.integers(-4, 4, count, endpoint=True)
    return np.float64(random.uniform(-1, 1, count).astype(np.float32))


def magnitudes(memory: dict[str, Elements]) -> dict[str, Elements]:
    """The absolute values, for the size of what a result is summed from."""
    return {name: Elements(np.abs(e.initial), e.kind, e.result) for name, e in memory.items()}


@dataclass(frozen=True, eq=False)
class Buffer:
    """The bytes of one argument from the first that a call touches to the last.

    before: their content, poison where nothing is read.  wanted: float64 where `written`, for each element of type
    `kind`.  read, written: one bool a byte.  pointer_bytes: the argument's pointer, from the start; it may be outside.
    """

    before: Bytes
    pointer_bytes: int
    read: Bits
    written: Bits
    wanted: Doubles
    kind: DataType = field(default=f32, kw_only=True)

    def check(self, after: Bytes, tolerance: Doubles | float, name: str) -> None:
        """Raise AssertionError unless `after` holds the wanted numbers, and all else is as it was."""
        kept = ~self.written
        changed = np.flatnonzero(kept & (after != self.before))
        assert not len(changed), f"{name}: byte {changed[0] - self.pointer_bytes} was changed"
        if not self.written.any():
            return
        size = self.kind.size_bytes
        where = np.flatnonzero(self.written[::size])
        result, wanted = decode(after, self.kind)[where], self.wanted[where]
        allowed = np.broadcast_to(tolerance, self.wanted.shape)[where]
        with np.errstate(invalid="ignore"):  # of equal infinities
            wrong = ~((result == wanted) | (np.abs(result - wanted) <= allowed))  # also NaN
        if wrong.any():
            i = int(wrong.argmax())
            at = size * int(where[i]) - self.pointer_bytes
            raise AssertionError(f"{name}: {wrong.sum()} of {len(where)} wrong, byte {at}: {result[i]} not {wanted[i]}")


def buffer_of(memory: Elements) -> Buffer | None:
    """The buffer of what was touched; None if nothing was."""
    touched = np.flatnonzero(memory.read | memory.written)
    if not len(touched):
        return None
    cut, size = slice(int(touched[0]), int(touched[-1]) + 1), memory.kind.size_bytes
    before = encode(memory.initial[cut], memory.kind)
    poison = SMALL_POISON.get(size, DST_POISON if memory.written.any() else POISON)
    before.view(poison.dtype)[~memory.read[cut]] = poison
    read, written = (mask[cut].repeat(size) for mask in (memory.read, memory.written))
    start = REACH_BYTES - size * cut.start
    return Buffer(before, start, read, written, memory.values[cut].copy(), kind=memory.result)


def constant_buffer(values: npt.NDArray[Any], unread: slice = slice(0)) -> Buffer:
    """Data that is read from its first byte to its last, but for some."""
    data = np.frombuffer(values.tobytes(), np.uint8)
    read = np.ones(len(data), bool)
    read[unread] = False
    return Buffer(data, 0, read, np.zeros(len(data), bool), np.zeros(0))
