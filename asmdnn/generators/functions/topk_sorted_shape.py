"""What kernels of sorted top-k depend on, and what they keep of a row between calls, see topk_sorted.py."""

from typing import Final

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.topk_lists import Order
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.pairs import PAIR_BYTES
from asmdnn.isa.vectors import vector_bytes
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

ARGUMENTS: Final = ("src", "dst", "state", "values")
SRC, DST, STATE, VALUES = range(4)
WAITING, NEXT, COUNT_BYTES = 0, 8, 8  # in the state
BEST: Final = LINE_BYTES
COPIED: Final = 4  # results of a turn of the loop


def state_bytes(isa: str, size: int, waits: bool) -> int:
    """Of a row."""
    return BEST + PAIR_BYTES * size + (PAIR_BYTES * size + vector_bytes(isa) if waits else 0)


def place_of(isa: str, size: int, rank: int) -> int:
    """Where the pair of this rank is among sorted ones, in bytes."""
    lanes = vector_bytes(isa) // PAIR_BYTES
    lane, row = divmod(rank, size // lanes)
    return PAIR_BYTES * (row * lanes + lane)


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedTopKShape:
    """Everything that the bytes of such a kernel depend on.

    call: of the table.  size: a power of two, at least 64 and k.  elements: that the call reads, at most size; room: of
    "merge".
    """

    isa: str
    call: str
    k: int
    size: int
    elements: int = 0
    room: int = 0
    dst_step_bytes: int = F32_BYTES
    order: Order = Order()
    has_values: bool = False

    @property
    def name(self) -> str:
        what = "largest" if self.order.largest else "smallest"
        return f"sort_{self.call}_top{self.k}_{what}_f32_{self.elements}of{self.size}_{checksum(self)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return ARGUMENTS if self.has_values else ARGUMENTS[:VALUES]

    @property
    def waits(self) -> int:
        """Where the pairs that wait begin in the state."""
        return BEST + PAIR_BYTES * self.size

    def footprint(self) -> Footprint:
        src = (Range(SRC, 0, F32_BYTES * self.elements),) if self.elements else ()
        waiting, counts = Range(STATE, 0, NEXT), Range(STATE, 0, NEXT + COUNT_BYTES)
        best = Range(STATE, BEST, self.waits)
        pairs = Range(STATE, self.waits, self.waits + PAIR_BYTES * self.size)
        places = Range(STATE, self.waits, state_bytes(self.isa, self.size, waits=True))
        worst = BEST + place_of(self.isa, self.size, self.k - 1)
        if self.call == "whole":
            return Footprint(src, (best, *self.results), rereads=True)
        if self.call == "first":
            return Footprint(src, (counts, best, places), rereads=True)
        if self.call == "choose":
            return Footprint((*src, counts, Range(STATE, worst, worst + PAIR_BYTES)), (counts, places), partial=True)
        if self.call == "merge":
            return Footprint((waiting, best, pairs), (waiting, best, pairs), partial=True)
        return Footprint((best, pairs), (best, pairs, *self.results))

    @property
    def results(self) -> tuple[Range, ...]:
        step = self.dst_step_bytes
        found = []
        for argument in (DST, VALUES)[: 1 + self.has_values]:
            if step == F32_BYTES:
                found.append(Range(argument, 0, F32_BYTES * self.k))
            else:
                found += [Range(argument, t * step, t * step + F32_BYTES) for t in range(self.k)]
        return tuple(found)
