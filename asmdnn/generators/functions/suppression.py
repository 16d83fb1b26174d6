"""Boxes of one class that overlap none of a better score too much, the best first: greedy non-maximum suppression.

    best = the box that is left of the highest score, of equal ones the first;  it is not left any more
    kept, unless shared(best, a box that was kept) > share;  until none is left, or `most` are kept

    shared(a, b) = area(a and b) / (area(a) + area(b) - area(a and b)),  0 where an area is not positive

| argument | dtype[shape] | what it is |
|---|---|---|
| corners | f32[4, boxes] | both lower coordinates, then both upper ones; only read |
| scores  | f32[boxes]    | only read; a box whose score is not above `least` is not there, nor is one of NaN |
| numbers | f32[2]        | share, from 0 to 1, and least |
| state   | bytes         | what is between calls, see below |
| dst     | s32[most]     | numbers of boxes, -1 after the last; only written |

Three calls make the results of a class: `admit` writes the state, `keep` does the rest there, `deliver` copies them.

The state has the scores of boxes that are left, -inf of others, in blocks; then the highest score of each block; then
of the boxes that were kept the corners and the area, a row for each, NaN after the last, and their numbers.  So the
next best box is found in two steps, among the blocks and in one of them, and is compared with those that were kept, a
vector at a time.

All is f32, and every operation is rounded as it stands.  A box's number, and that of a block, are cut to those that
there are before anything is touched by them, which is what the proof follows.
"""

from typing import Final

from asmdnn.generators.functions.suppression_choice import BoxChoice
from asmdnn.generators.functions.suppression_code import Admission, Delivery
from asmdnn.generators.functions.suppression_shape import CALLS, SuppressionShape
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressionSpec(SuppressionShape):
    """The kernel of a call."""

    def generate(self, asm: Assembler) -> None:
        CODE[self.call](self, vector_of(self.isa, asm)).emit()
        asm.ret()


CODE: Final = dict(zip(CALLS, (Admission, BoxChoice, Delivery), strict=True))
