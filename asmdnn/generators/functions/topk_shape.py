"""What kernels of top-k depend on, and what they touch, see topk.py."""

from typing import Final

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.row_code import DST, SRC
from asmdnn.generators.functions.rows import rows_touched
from asmdnn.generators.functions.topk_lists import Order
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

ARGUMENTS: Final = ("src", "dst", "values")
VALUES: Final = 2
AT_ONCE: Final = 4  # vectors, each with lists of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKShape:
    """Everything that the bytes of such a kernel depend on.  along: "rows" or "lanes", see topk.py."""

    isa: str
    along: str
    k: int
    rows: int
    elements: int
    src_row_bytes: int
    dst_row_bytes: int
    dst_step_bytes: int = F32_BYTES
    order: Order = Order()
    has_values: bool = False

    @property
    def name(self) -> str:
        what = "largest" if self.order.largest else "smallest"
        size = f"{self.along}{self.rows}x{self.elements}"
        return f"top{self.k}_{what}_f32_{size}_{checksum(self)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return ARGUMENTS if self.has_values else ARGUMENTS[:VALUES]

    def footprint(self) -> Footprint:
        src = rows_touched(SRC, self.rows, self.src_row_bytes, self.elements)
        writes = [found for argument in range(DST, len(self.frame)) for found in self.written(argument)]
        return Footprint(src, tuple(writes))

    def written(self, argument: int) -> tuple[Range, ...]:
        """Of a result."""
        if self.along == "lanes":
            return rows_touched(argument, self.k, self.dst_row_bytes, self.elements)
        if self.dst_step_bytes == F32_BYTES:
            return rows_touched(argument, self.rows, self.dst_row_bytes, self.k)
        places = (r * self.dst_row_bytes + t * self.dst_step_bytes for r in range(self.rows) for t in range(self.k))
        return tuple(Range(argument, at, at + F32_BYTES) for at in places)
