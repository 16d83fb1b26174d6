"""Where the packed weights of a plan lie: it has one tensor of them, whose bytes are pieces of memory that shapes of a
model share.

Imported without planners, as what runs needs it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from asmdnn.network.arrays import Array
from asmdnn.records import dataclass, field


class WeightPiece(NamedTuple):
    """`size` bytes of the tensor, which are those of `blob`, u8[bytes], from `at` on."""

    blob: Array
    at: int
    size: int

    @property
    def data(self) -> Array:
        return self.blob[self.at : self.at + self.size]


@dataclass(frozen=True, eq=False)
class WeightPieces:
    """The tensor, read-only, as pieces one after another; a weight lies within one of them.  starts: of the pieces;
    origins: for each, the address at which the tensor would begin."""

    pieces: Sequence[WeightPiece]
    starts: Sequence[int] = field(init=False, repr=False)
    origins: Sequence[int] = field(init=False, repr=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        (*starts, end) = accumulate((piece.size for piece in self.pieces), initial=0)
        origins = [int(blob.ctypes.data) + at - start for start, (blob, at, _) in zip(starts, self.pieces, strict=True)]
        for name, value in {"starts": tuple(starts), "origins": tuple(origins), "size": end}.items():
            object.__setattr__(self, name, value)

    def number(self, offset: int) -> int:
        """Of the piece that a byte of the tensor lies in."""
        return bisect_right(self.starts, offset) - 1

    def address(self, offset: int) -> int:
        """Of a byte of the tensor."""
        return self.origins[self.number(offset)] + offset

    def holds(self, offset: int, size: int) -> bool:
        """Whether so many bytes from there on are of one piece."""
        number = self.number(offset)
        return number >= 0 and offset + size <= self.starts[number] + self.pieces[number].size

    def part(self, offset: int, size: int) -> Array:
        """So many bytes of one piece, u8[size]."""
        number = self.number(offset)
        begin = offset - self.starts[number]
        return self.pieces[number].data[begin : begin + size]

    def whole(self) -> Array:
        """All bytes in one array, u8[size]: a copy if there are several pieces."""
        if len(self.pieces) == 1:
            return self.pieces[0].data
        return np.concatenate([np.empty(0, np.uint8), *(piece.data for piece in self.pieces)])


def in_one(blob: Array) -> WeightPieces:
    """Weights that are the bytes of an array, u8[size]."""
    return WeightPieces((WeightPiece(blob, 0, len(blob)),))


def in_pieces(parts: Iterable[WeightPiece]) -> WeightPieces:
    """Weights that are these bytes in turn; those that follow one another in memory are one piece."""
    found = list[WeightPiece]()
    for part in parts:
        blob, at, size = found[-1] if found else part
        if found and blob is part.blob and at + size == part.at:
            found[-1] = WeightPiece(blob, at, size + part.size)
        else:
            found.append(part)
    return WeightPieces(tuple(found))


def checked_piece(blob: Array, at: Any, size: Any) -> WeightPiece:
    """What a file says of a piece.  Raises ValueError for what is none."""
    if not (type(at) is type(size) is int and 0 <= at <= at + size <= len(blob)):
        raise ValueError("the weights lie outside of the file")
    return WeightPiece(blob, at, size)
