"""What the kernels of non-maximum suppression depend on, and how their state lies, see suppression.py."""

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.isa.vectors import lanes_of
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

ARGUMENTS = ("corners", "scores", "numbers", "state", "dst")
CORNERS, SCORES, NUMBERS, STATE, DST = range(5)
SHARE, LEAST = 0, F32_BYTES  # where they are among the numbers
AXES = 2
KEPT = 2 * AXES + 1  # the row of the numbers of boxes that were kept, after those of their corners and area
CALLS = ("admit", "keep", "deliver")
VECTORS_OF_BLOCK = 16  # at most: of 25200 boxes with AVX-512 there are 99 blocks, in 7 vectors


@dataclass(frozen=True, slots=True)
class StateLayout:
    """lanes: of a vector; vectors: of a block, a power of two.  Places are bytes."""

    lanes: int
    boxes: int
    most: int

    @property
    def vector_bytes(self) -> int:
        return F32_BYTES * self.lanes

    @property
    def vectors(self) -> int:
        needed = -(-self.boxes // self.lanes)
        return min(VECTORS_OF_BLOCK, 1 << (needed - 1).bit_length())

    @property
    def block(self) -> int:
        """Boxes of a block."""
        return self.lanes * self.vectors

    @property
    def blocks(self) -> int:
        return -(-self.boxes // self.block)

    @property
    def block_vectors(self) -> int:
        """That the highest scores of blocks fill."""
        return -(-self.blocks // self.lanes)

    @property
    def kept_vectors(self) -> int:
        """Of a row of what was kept."""
        return -(-self.most // self.lanes)

    @property
    def highest(self) -> int:
        """Where the highest scores of blocks begin."""
        return F32_BYTES * self.block * self.blocks

    def row(self, i: int) -> int:
        """Where a row of what was kept begins."""
        return self.highest + self.vector_bytes * (self.block_vectors + i * self.kept_vectors)

    @property
    def size_bytes(self) -> int:
        return self.row(KEPT + 1)


def layout_of(isa: str, boxes: int, most: int) -> StateLayout:
    return StateLayout(lanes_of(isa), boxes, most)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressionShape:
    """call: one of CALLS.  Of so many boxes `most` at most are kept, 1 or more of both."""

    isa: str
    call: str
    boxes: int
    most: int
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        return f"suppression_{self.call}_f32_{self.most}of{self.boxes}_{checksum(self)}__{self.isa}"

    @property
    def layout(self) -> StateLayout:
        return layout_of(self.isa, self.boxes, self.most)

    @property
    def plane_bytes(self) -> int:
        """Of a coordinate of all corners."""
        return F32_BYTES * self.boxes

    def footprint(self) -> Footprint:
        at, state = self.layout, Range(STATE, 0, self.layout.size_bytes)
        if self.call == "admit":
            scores, least = Range(SCORES, 0, self.plane_bytes), Range(NUMBERS, LEAST, LEAST + F32_BYTES)
            return Footprint((scores, least), (state,))
        if self.call == "deliver":
            numbers = Range(STATE, at.row(KEPT), at.row(KEPT) + F32_BYTES * self.most)
            return Footprint((numbers,), (Range(DST, 0, F32_BYTES * self.most),))
        reads = (Range(CORNERS, 0, 2 * AXES * self.plane_bytes), Range(NUMBERS, SHARE, SHARE + F32_BYTES), state)
        places = [(0, self.boxes), (at.highest, at.blocks), *((at.row(i), self.most) for i in range(KEPT + 1))]
        writes = tuple(Range(STATE, begin, begin + F32_BYTES * count) for begin, count in places)
        return Footprint(reads, writes, partial=True)
