"""The k best of a row in order, by sorting: one call for a short row, calls one after the other for a longer one.

    dst[t] = the column of the t-th best of src[:];  values[t] = that number

| argument | dtype[shape] | what it is |
|---|---|---|
| src    | f32[elements] | the elements of a row that the call takes; dense, only read |
| dst    | s32[k] | dst_step_bytes apart; only written, by the calls "whole" and "last" |
| state  | bytes | of a row: what was found so far, see below |
| values | f32[k] | as dst; not there unless the spec says so |

Ties, -0 and NaN are as in topk.py.  state: s32 counts, the pairs that wait and the next index; `size` pairs, the best
ones, sorted; then, but for "whole", `size` pairs and a vector: those that wait.

| call | what it does |
|---|---|
| whole | sorts up to `size` elements, and writes the results |
| first | sorts `size` elements, and prepares the state |
| choose | elements that are better than the k-th best are appended to those that wait, without an order |
| merge | where no `room` elements more can wait: those that wait are sorted, the best of both are kept |
| last | the same in any case, and writes the results |

Whatever is appended goes to one of `size` places, by the bits of a number that is kept in the state.
"""

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.topk_lists import Order
from asmdnn.generators.functions.topk_sorted_code import (
    ARGUMENTS,
    BEST,
    COUNT_BYTES,
    DST,
    NEXT,
    SRC,
    STATE,
    VALUES,
    SortedTopK,
    place_of,
    state_bytes,
)
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.pairs import PAIR_BYTES
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedTopKSpec:
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

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 frame[])."""
        code = SortedTopK(self, asm)
        getattr(code, self.call)()
        asm.ret()
