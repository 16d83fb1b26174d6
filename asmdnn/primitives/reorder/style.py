"""How a reorder stores, and into what sizes its loops are cut."""

from asmdnn.primitives.reorder.shape import Shape
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class MoveStyle:
    """streams: stores go past the caches, where a kernel writes whole lines.  few_sizes: rows that are transposed, and
    padding, come in powers of two, so that a few kernels serve every extent."""

    streams: bool = False
    few_sizes: bool = False

    def limited(self, limits: dict[str, int], shape: Shape, is_padding: bool) -> dict[str, int]:
        """The most steps of loops, of which one is a power of two if kernels are to have few sizes."""
        if not self.few_sizes or not (shape.transposes or is_padding):
            return limits
        role, loop = ("rows", shape.rows) if shape.transposes else ("columns", shape.columns)
        most = min(limits.get(role, loop.extent), loop.extent)
        return {**limits, role: 1 << most.bit_length() - 1}
