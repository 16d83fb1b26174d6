"""What rows have in common whose lanes multiply several elements at once: the types, and what sums become."""

from asmdnn.generators.contract import Range
from asmdnn.generators.dot.grouped_shape import SRC, GroupedRows
from asmdnn.isa.dot import Types
from asmdnn.isa.vectors import lanes_of
from asmdnn.records import dataclass
from asmdnn.types import HALF_FLOATS, DataType, f32, s32


@dataclass(frozen=True, slots=True, kw_only=True)
class DotRows(GroupedRows):
    """Rows of pairs of floats, whose sums are f32, or of bytes, whose sums are s32."""

    @property
    def types(self) -> Types:
        return types_of_dots(self.src_type, self.weights_type)

    @property
    def src_vector_bytes(self) -> int:
        return self.src_type.size_bytes * lanes_of(self.isa)

    def src_ranges(self, places: set[int]) -> list[Range]:
        """Whole vectors, or the real channels."""
        return [Range(SRC, at, at + self.width_bytes(self.src_whole, self.src_type)) for at in sorted(places)]


def types_of_dots(src: DataType, weights: DataType) -> Types:
    """Of factors and sums."""
    return Types(src, weights, f32 if src in HALF_FLOATS else s32)
