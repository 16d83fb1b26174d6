"""The transform of a tile of diff_dst, for gradients of weights: W = A D A^T for every channel.

    weights[f, k] = sum over y, x of A[f // n, y] * A[f % n, x] * dst[y, x, k]        n = m + 2, 0 <= f < n^2

| argument | dtype[shape] | what it is |
|---|---|---|
| weights | f32[n^2, vectors] | frequencies frequency_bytes apart; vectors of channels, zero after the last |
| dst     | f32[m, m, channels] | pixel (y, x) at y * row_bytes + x * pixel_bytes, vectors vector_bytes apart |

The code is that of the source's transform, with another matrix.  Only pixels of `rows` and `cols` exist; others count
as zeros, and are not read.
"""

from typing import ClassVar

from asmdnn.generators.winograd.arguments import DST, WEIGHTS
from asmdnn.generators.winograd.forms import GRADIENTS, ResultGroup
from asmdnn.generators.winograd.source import SourceTransformSpec
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffDstTransformSpec(SourceTransformSpec):
    """With the fields of the source's transform; rows and cols are [begin, end) of the tile's m."""

    word: ClassVar[str] = "diff_dst"
    read: ClassVar[int] = DST
    written: ClassVar[int] = WEIGHTS

    @property
    def groups(self) -> tuple[ResultGroup, ...]:
        return GRADIENTS[self.m].diff_dst

    @property
    def size(self) -> int:
        return self.m
