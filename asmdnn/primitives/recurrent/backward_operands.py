"""The operands of products whose depth is all rows, of all steps: a^T b, and the sum of the rows of b.

f32 is read where it lies.  Of bf16 two neighbouring rows are multiplied at once: a^T is copied, its rows an odd number
of lines apart, and b is packed in panels of pairs of rows, once for all products with it.
"""

from typing import NamedTuple

from asmdnn.isa.lines import odd_lines
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.primitives.products.matrices import Matrix, Panels, panel_columns, panels_of, panels_tag
from asmdnn.primitives.products.multiplier import Multiplier
from asmdnn.primitives.products.partial import ones
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.recurrent.rows import BufferRows
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.records import replace


class Columns(NamedTuple):
    """Columns [first, first + taken) of rows that have `every` one."""

    rows: BufferRows
    every: int
    first: int
    taken: int


class RowsAsDepth:
    """Products over `count` rows, with operands where they lie."""

    def __init__(self, assembly: Assembly, multiplier: Multiplier, count: int) -> None:
        self.assembly, self.multiplier, self.types, self.count = assembly, multiplier, multiplier.types, count

    def multiply(self, a: BufferRows, m: int, b: Columns, dst: Matrix) -> None:
        """dst = a^T b, of m rows."""
        self._add(self.turned(a, m), m, b, dst)

    def sum(self, b: Columns, dst: Matrix) -> None:
        """dst = the sum of rows, as a product with a row of ones."""
        one = ones(self.assembly, 0, self.types.src)
        self._add(one.in_groups(self.types.group), 1, b, dst)

    def _add(self, src: Matrix, m: int, b: Columns, dst: Matrix) -> None:
        group = self.types.group
        k = -(-self.count // group)
        product = Product(
            batch=(),
            m=m,
            n=b.taken,
            k=k,
            src=src,
            weights=self.weights(b),
            dst=dst,
            types=self.types,
            missing=k * group - self.count,
        )
        self.multiplier.add(self.assembly, product)

    def turned(self, a: BufferRows, m: int) -> Matrix:
        """The first m columns of a, as rows."""
        return a.matrix().transposed

    def weights(self, b: Columns) -> Matrix | Panels:
        return b.rows.element(b.first).matrix()


class PairsAsDepth(RowsAsDepth):
    """Of pairs of bf16: copies."""

    def __init__(self, assembly: Assembly, multiplier: Multiplier, count: int) -> None:
        super().__init__(assembly, multiplier, count)
        self.packed: dict[tuple[str, int], Panels] = {}  # by the buffer, and the first column

    def turned(self, a: BufferRows, m: int) -> Matrix:
        dtype, group = self.types.src, self.types.group
        row_bytes = odd_lines(self.count * dtype.size_bytes)
        source = MemoryDesc((m, self.count), a.dtype, strides=(1, a.row_bytes // a.dtype.size_bytes), offset0=a.offset0)
        target = MemoryDesc((m, self.count), dtype, strides=(row_bytes // dtype.size_bytes, 1))
        buffer = self.assembly.room("turned rows", m * row_bytes)
        add_reorder(self.assembly, Reordering(a.buffer, source, buffer, target))
        return Matrix(buffer, 0, (), row_bytes, dtype.size_bytes, dtype).in_groups(group)

    def weights(self, b: Columns) -> Panels:
        """Panels of all columns, if b begins with one of them, else of its own."""
        width = panel_columns(b.every, self.multiplier.target.lanes)
        if b.first % width == 0:
            whole = self.panels(Columns(b.rows, b.every, 0, b.every))
            return replace(whole, start_bytes=b.first // width * whole.panel_bytes)
        return self.panels(b)

    def panels(self, b: Columns) -> Panels:
        """Packed once."""
        rows, group = b.rows.element(b.first), self.types.group
        known = self.packed.get((rows.buffer, b.first))
        if known is not None:
            return known
        dims, steps = (self.count, b.taken), (rows.row_bytes // rows.dtype.size_bytes, 1)
        source = MemoryDesc(dims, rows.dtype, strides=steps, offset0=rows.offset0)
        target = MemoryDesc(
            dims, rows.dtype, panels_tag(2, panel_columns(b.taken, self.multiplier.target.lanes), group)
        )
        buffer = self.assembly.room(f"pairs of {rows.buffer} from {b.first}", target.size_bytes)
        add_reorder(self.assembly, Reordering(rows.buffer, source, buffer, target))
        found = panels_of(buffer, target, group)
        assert found is not None
        self.packed[rows.buffer, b.first] = found
        return found
