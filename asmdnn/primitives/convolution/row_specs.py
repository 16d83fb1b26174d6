"""Kernels of rows as a phase numbers them, and the words that they read, one after another."""

from collections.abc import Mapping, Sequence

import numpy as np

from asmdnn.generators.dot.grouped_shape import GroupedRows
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.planning.phase import Int64

WORD_BYTES = 8
LINE_WORDS = LINE_BYTES // WORD_BYTES
SHAPES = "shape"  # the argument, and the constant of plans that holds the words of all kernels


class RowSpecs:
    """Specs, numbered as they come."""

    def __init__(self) -> None:
        self.numbers: dict[GroupedRows, int] = {}
        self.starts: list[int] = []
        self.words: list[int] = []

    def number(self, spec: GroupedRows) -> int:
        """Of a spec, which may be new."""
        number = self.numbers.setdefault(spec, len(self.numbers))
        if number == len(self.starts):
            self.starts.append(WORD_BYTES * len(self.words))
            self.words += spec.words()
            if spec.numbers:  # vectors of them are to lie in one line
                self.words += [0] * (-len(self.words) % LINE_WORDS)
        return number

    def starts_of(self, kernels: Int64) -> Int64:
        """Byte offsets of the words of numbered kernels."""
        starts: Int64 = np.array(self.starts, np.int64)[kernels]
        return starts

    def constants(self) -> Mapping[str, Int64]:
        """Of a plan with these kernels; none where all numbers are in the code."""
        return {SHAPES: in_lines([np.array(self.words, np.int64)])} if self.words else {}


def in_lines(arrays: Sequence[Int64]) -> Int64:
    """All of them in one, which begins where a line does."""
    count = sum(map(len, arrays))
    room = np.empty(count + LINE_WORDS, np.int64)
    first = -(room.ctypes.data // WORD_BYTES) % LINE_WORDS
    return np.concatenate(arrays, out=room[first : first + count])
