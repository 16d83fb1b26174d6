"""A kernel's memory as its documentation sees it: f32 elements around each argument's pointer, every access recorded.

A reference works on Elements.  What it touches is the contract: `Buffer` cuts out exactly these bytes, poisons all
that is not read, and knows what must be there afterwards.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

POISON, DST_POISON = np.uint32(0x7FC0DEAD), np.uint32(0x7FC0BEEF)  # NaN that no arithmetic makes; told apart if copied
REACH_BYTES = 1 << 16  # on either side of a pointer

Bytes = npt.NDArray[np.uint8]
Bits = npt.NDArray[np.bool_]
Doubles = npt.NDArray[np.float64]


class Elements:
    """f32 elements at multiples of 4 bytes from an argument's pointer; `values` are float64 so that references can be
    exact, all of them f32 numbers at first."""

    def __init__(self, values: Doubles) -> None:
        self.initial, self.values = values, values.copy()
        self.read, self.written = np.zeros(len(values), bool), np.zeros(len(values), bool)

    def load(self, at_bytes: int, count: int) -> Doubles:
        where = self.place(at_bytes, count)
        self.read[where] |= ~self.written[where]
        return self.values[where].copy()

    def store(self, at_bytes: int, values: Doubles) -> None:
        where = self.place(at_bytes, len(values))
        self.values[where] = values
        self.written[where] = True

    def clear(self, at_bytes: int, count: int) -> None:
        """Zeros before the call."""
        where = self.place(at_bytes, count)
        self.initial[where] = self.values[where] = 0

    def place(self, at_bytes: int, count: int) -> slice:
        first, rest = divmod(REACH_BYTES + at_bytes, 4)
        assert rest == 0 and 0 <= first <= len(self.values) - count, f"{at_bytes} is not within reach"
        return slice(first, first + count)


def elements(random: np.random.Generator, integers: bool) -> Elements:
    """Multiples of 4 up to 16, for which all sums here are exact in f32; or f32 numbers in [-1, 1)."""
    values, count = numbers(integers), 2 * REACH_BYTES // 4
    first = int(random.integers(len(values) - count))
    return Elements(values[first : first + count].copy())


@cache
def numbers(integers: bool) -> Doubles:
    """More than any call needs, so that every argument gets a piece of its own."""
    random, count = np.random.default_rng(7), 64 * REACH_BYTES
    if integers:
        return 4.0 * random.integers(-4, 4, count, endpoint=True)
    return np.float64(random.uniform(-1, 1, count).astype(np.float32))


def magnitudes(memory: dict[str, Elements]) -> dict[str, Elements]:
    """The absolute values, for the size of what a result is summed from."""
    return {name: Elements(np.abs(e.initial)) for name, e in memory.items()}


@dataclass(frozen=True, eq=False)
class Buffer:
    """The bytes of one argument from the first that a call touches to the last.

    before: their content, poison where nothing is read.  wanted: float64 where `written`, an element each.
    read, written: one bool a byte.  pointer_bytes: the argument's pointer, from the start; it may be outside.
    """

    before: Bytes
    pointer_bytes: int
    read: Bits
    written: Bits
    wanted: Doubles

    def check(self, after: Bytes, tolerance: Doubles | float, name: str) -> None:
        """Raise AssertionError unless `after` holds the wanted numbers, and all else is as it was."""
        kept = ~self.written
        changed = np.flatnonzero(kept & (after != self.before))
        assert not len(changed), f"{name}: byte {changed[0] - self.pointer_bytes} was changed"
        if not self.written.any():
            return
        where = np.flatnonzero(self.written[::4])
        result, wanted = after.view(np.float32)[where], self.wanted[where]
        allowed = np.broadcast_to(tolerance, self.wanted.shape)[where]
        wrong = ~(np.abs(result - wanted) <= allowed)  # also NaN
        if wrong.any():
            i = int(wrong.argmax())
            at = 4 * int(where[i]) - self.pointer_bytes
            raise AssertionError(f"{name}: {wrong.sum()} of {len(where)} wrong, byte {at}: {result[i]} not {wanted[i]}")


def buffer_of(memory: Elements) -> Buffer | None:
    """The buffer of what was touched; None if nothing was."""
    touched = np.flatnonzero(memory.read | memory.written)
    if not len(touched):
        return None
    cut = slice(int(touched[0]), int(touched[-1]) + 1)
    before = memory.initial[cut].astype(np.float32)
    before.view(np.uint32)[~memory.read[cut]] = DST_POISON if memory.written.any() else POISON
    read, written = (mask[cut].repeat(4) for mask in (memory.read, memory.written))
    return Buffer(before.view(np.uint8), REACH_BYTES - 4 * cut.start, read, written, memory.values[cut].copy())


def constant_buffer(values: npt.NDArray[Any]) -> Buffer:
    """Data that is read from its first byte to its last."""
    data = np.frombuffer(values.tobytes(), np.uint8)
    return Buffer(data, 0, np.ones(len(data), bool), np.zeros(len(data), bool), np.zeros(0))
