"""What a step is told about the formats of its operand and its result."""

from typing import NamedTuple

from asmdnn.memory import MemoryDesc
from asmdnn.network.descriptors import any_format, channels_last, row_major
from asmdnn.types import DataType, f32

CHANNELS_LAST = 3  # axes that a tensor has at least whose channels may lie after its pixels
PLAIN, LAST = "row-major", "channels last"


class FormatChoice(NamedTuple):
    """result: the format of the result, "" being the one that the primitive prefers, PLAIN row-major, LAST with
    channels last; copies: whether to read the operand in the format that the primitive prefers, of which others have
    use, too, whatever it costs by itself."""

    result: str = ""
    copies: bool = False

    def of_result(self, dims: tuple[int, ...], dtype: DataType = f32) -> MemoryDesc:
        """A result of these dims in that format."""
        if not self.result:
            return any_format(dims, dtype)
        is_plain = self.result == PLAIN or len(dims) < CHANNELS_LAST
        return row_major(dims, dtype) if is_plain else channels_last(dims, dtype)


BY_ITSELF = FormatChoice()
