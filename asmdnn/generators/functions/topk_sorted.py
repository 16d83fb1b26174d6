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

from asmdnn.generators.functions.topk_sorted_code import SortedTopK
from asmdnn.generators.functions.topk_sorted_shape import SortedTopKShape
from asmdnn.isa.assembler import Assembler
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedTopKSpec(SortedTopKShape):
    """Everything that the bytes of such a kernel depend on."""

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 frame[])."""
        code = SortedTopK(self, asm)
        getattr(code, self.call)()
        asm.ret()
