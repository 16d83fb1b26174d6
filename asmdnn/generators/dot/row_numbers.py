"""Numbers of post-ops among the words that kernels of rows read."""

from collections.abc import Sequence

from asmdnn.generators.contract import Range, joined
from asmdnn.generators.functions.numbers import WORD_BYTES, numbers_of, without_numbers
from asmdnn.generators.functions.postops import PostOp
from asmdnn.isa.vectors import vector_class
from asmdnn.types import DataType, f32


class RowNumbers:
    """Of specs with these fields, in front of all other words; none where everything is in the code."""

    __slots__ = ()

    isa: str
    post_ops: tuple[PostOp, ...]
    dst_type: DataType
    operand_types: tuple[DataType, ...]

    @property
    def is_in_code(self) -> bool:
        """Whether sizes and bands of an image are in the code, and no words are read."""
        return False

    @property
    def numbers(self) -> tuple[int, ...]:
        """Their bits: where everything after the sums is f32."""
        is_plain = self.dst_type == f32 and not self.operand_types
        return numbers_of(self.post_ops) if is_plain and not self.is_in_code else ()

    @property
    def number_places(self) -> range:
        """Where each begins, in bytes."""
        size = vector_class(self.isa).splat_bytes
        return range(0, size * len(self.numbers), size)

    @property
    def chain(self) -> tuple[PostOp, ...]:
        """The post-ops as they are in the code."""
        return without_numbers(self.post_ops) if self.numbers else self.post_ops

    def ranges_of_words(self, argument: int, words: Sequence[int]) -> tuple[Range, ...]:
        """What the code reads of them all: after an odd number half a word is left."""
        end = self.number_places.stop
        after = -(-end // WORD_BYTES) * WORD_BYTES
        ranges = (Range(argument, 0, end), Range(argument, after, WORD_BYTES * len(words)))
        return joined(x for x in ranges if x.begin_bytes < x.end_bytes)
