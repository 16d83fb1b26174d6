"""Memory of elements of any type around an argument's pointer, every access recorded; compared byte by byte."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.support.arena import REACH_BYTES, Bits, Buffer, Bytes, Recorded

Places = npt.NDArray[np.int64]

POISON, DST_POISON = 0xA5, 0xC3


class Octets(Recorded):
    """Bytes at any distance from an argument's pointer."""

    def gather(self, at_bytes: Places, size: int) -> Bytes:
        """Elements of `size` bytes: a row of the result for each place."""
        where = self.places(at_bytes, size)
        self.read[where] |= ~self.written[where]
        return self.values[where]

    def scatter(self, at_bytes: Places, values: Bytes) -> None:
        where = self.places(at_bytes, values.shape[1])
        self.values[where] = values
        self.written[where] = True

    def places(self, at_bytes: Places, size: int) -> Places:
        first = REACH_BYTES + at_bytes
        assert ((first >= 0) & (first <= len(self.values) - size)).all(), "an element is not within reach"
        where: Places = first[:, None] + np.arange(size)
        return where

    def place(self, at_bytes: int, count: int) -> slice:
        first = REACH_BYTES + at_bytes
        assert 0 <= first <= len(self.values) - count, f"{at_bytes} is not within reach"
        return slice(first, first + count)

    def buffer(self, size_bytes: int = 0) -> "ExactBuffer | None":
        """The buffer of what was touched, and of so many bytes from the pointer on; None if there are none."""
        touched = np.flatnonzero(self.read | self.written)
        if size_bytes:
            touched = np.arange(REACH_BYTES, REACH_BYTES + size_bytes)
        if not len(touched):
            return None
        cut = slice(int(touched[0]), int(touched[-1]) + 1)
        before = self.initial[cut].copy()
        before[~self.read[cut]] = DST_POISON if self.written.any() else POISON
        start, read, written = REACH_BYTES - cut.start, self.read[cut].copy(), self.written[cut].copy()
        return ExactBuffer(before, start, read, written, np.zeros(0), self.values[cut].copy())


@dataclass(frozen=True, eq=False)
class ExactBuffer(Buffer):
    """A buffer of which every byte is known."""

    bytes_wanted: Bytes

    def check(self, after: Bytes, tolerance: object, name: str) -> None:
        """Raise AssertionError unless `after` holds the wanted bytes, and all else is as it was."""
        for where, wanted, what in (
            (~self.written, self.before, "was changed"),
            (self.written, self.bytes_wanted, "is wrong"),
        ):
            wrong: Bits = where & (after != wanted)
            if wrong.any():
                i = int(wrong.argmax())
                raise AssertionError(
                    f"{name}: byte {i - self.pointer_bytes} {what}, as are {wrong.sum()} of {where.sum()}: "
                    f"{after[i]} not {wanted[i]}"
                )
