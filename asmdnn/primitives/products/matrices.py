"""The operands of a product as strides in bytes: matrices, and weights in panels."""

from math import prod

from asmdnn.isa.dot import Types
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.records import dataclass, replace
from asmdnn.types import DataType, f32

PANEL_VECTORS = 2  # of panels that this library packs


@dataclass(frozen=True, slots=True)
class Matrix:
    """Element (b, r, c) of a batch of matrices; distances of 0 broadcast.  Bytes from the buffer's start.

    group: of `dtype` elements along k, if a dot takes several at once; an "element" is then such a group.
    has_gaps: rows that may lie between two matrices are perhaps not of this tensor.
    """

    buffer: str
    start_bytes: int
    batch_bytes: tuple[int, ...]
    row_bytes: int
    column_bytes: int
    dtype: DataType = f32
    group: int = 1
    has_gaps: bool = False

    @property
    def element_bytes(self) -> int:
        return self.group * self.dtype.size_bytes

    @property
    def is_dense(self) -> bool:
        """Whether the columns of a row are contiguous."""
        return self.column_bytes == self.element_bytes

    @property
    def is_strided(self) -> bool:
        """Whether the columns of a row are neither contiguous nor broadcast."""
        return self.column_bytes not in (0, self.element_bytes)

    @property
    def dense_down(self) -> bool:
        """Whether the rows of a column are contiguous."""
        return self.row_bytes == self.element_bytes

    def in_groups(self, group: int) -> "Matrix":
        """With groups of so many elements of k, which are columns, as elements."""
        return replace(self, column_bytes=group // self.group * self.column_bytes, group=group)

    @property
    def transposed(self) -> "Matrix":
        return replace(self, row_bytes=self.column_bytes, column_bytes=self.row_bytes)


@dataclass(frozen=True, slots=True)
class Panels:
    """Weights in panels of `columns` columns, zero padded: row k of a panel at k * row_bytes, dense.

    group: elements of k that each column of such a row has, side by side, as a dot takes them.
    """

    buffer: str
    start_bytes: int
    batch_bytes: tuple[int, ...]
    row_bytes: int
    panel_bytes: int
    columns: int
    dtype: DataType = f32
    group: int = 1

    @property
    def element_bytes(self) -> int:
        return self.group * self.dtype.size_bytes

    @property
    def is_dense(self) -> bool:
        """Whether the rows of a panel are contiguous."""
        return self.row_bytes == self.columns * self.element_bytes


def matrix_of(name: str, desc: MemoryDesc) -> Matrix:
    """The last two dims of a plain desc as a matrix; dims of size 1 broadcast, whatever their strides."""
    size = desc.dtype.size_bytes
    *steps, row, column = (size * s if n > 1 else 0 for s, n in zip(desc.strides, desc.dims, strict=True))
    return Matrix(name, size * desc.offset0, tuple(steps), row, column, desc.dtype, has_gaps=has_gaps(desc))


def has_gaps(desc: MemoryDesc) -> bool:
    """Whether there may be bytes of others between the elements, or in front of them."""
    return desc.size_bytes != desc.dtype.size_bytes * prod(desc.padded_dims)


def row_of(name: str, vector: MemoryDesc) -> Matrix:
    """A vector as the one row of a matrix, which all rows of a product share."""
    size = vector.dtype.size_bytes
    return Matrix(name, size * vector.offset0, (), 0, size * vector.strides[0], vector.dtype)


def dense_matrix(
    buffer: str, columns: int, start_bytes: int = 0, batch_bytes: tuple[int, ...] = (), dtype: DataType = f32
) -> Matrix:
    """Row-major sums in scratch."""
    return Matrix(buffer, start_bytes, batch_bytes, columns * dtype.size_bytes, dtype.size_bytes, dtype)


def panels_of(name: str, desc: MemoryDesc, group: int = 1) -> Panels | None:
    """Weights in panels of such groups, as panels_tag has them; None for other formats."""
    rows, columns = desc.ndims - 2, desc.inner_blocks[0][1] if desc.inner_blocks else 0
    if desc.inner_blocks != ((rows + 1, columns), *[(rows, group)] * (group > 1)):
        return None
    size = desc.dtype.size_bytes
    *steps, row, panel = (size * s for s in desc.strides)
    batch = tuple(s if n > 1 else 0 for s, n in zip(steps, desc.dims, strict=False))
    row = row if desc.dims[rows] > group else size * group * columns  # a single row has no distance from the next
    panel = panel if desc.dims[-1] > columns else row
    return Panels(
        buffer=name,
        start_bytes=size * desc.offset0,
        batch_bytes=batch,
        row_bytes=row,
        panel_bytes=panel,
        columns=columns,
        dtype=desc.dtype,
        group=group,
    )


def panels_tag(ndims: int, columns: int, group: int = 1) -> str:
    """Batch, panels of the last dim, rows of the dim before, the columns of a panel: "Ba16b", "aCb16c"; and for each
    column the elements of a group: "BA16b4a"."""
    batch, row, column = LETTERS[: ndims - 2], LETTERS[ndims - 2], LETTERS[ndims - 1]
    if group == 1:
        return f"{batch}{column.upper()}{row}{columns}{column}"
    return f"{batch}{column.upper()}{row.upper()}{columns}{column}{group}{row}"


def panel_columns(n: int, lanes: int, vectors: int = PANEL_VECTORS) -> int:
    """The width of the panels that this library packs."""
    return lanes * min(vectors, -(-n // lanes))


@dataclass(frozen=True, slots=True)
class WeightsPanels:
    """What formats are chosen for: what is multiplied, the lanes of a vector, and vectors of a panel."""

    types: Types
    lanes: int
    vectors: int = PANEL_VECTORS

    def tag(self, ndims: int, columns: int) -> str:
        """Of weights in panels."""
        return panels_tag(ndims, panel_columns(columns, self.lanes, self.vectors), self.types.group)

    def takes(self, weights: MemoryDesc) -> bool:
        """Whether the format is one of panels that blocks of registers can be made of."""
        panels = panels_of("weights", weights, self.types.group)
        return panels is not None and panels.columns in (self.lanes, 2 * self.lanes) and panels.is_dense


def matrices_desc(x: Matrix, batch: tuple[int, ...], rows: int, columns: int) -> MemoryDesc:
    """A batch of matrices as a tensor; batch dims that broadcast have size 1."""
    dims = [size if step else 1 for size, step in zip(batch, x.batch_bytes, strict=True)]
    steps, size = [*x.batch_bytes, x.row_bytes, x.column_bytes], x.dtype.size_bytes
    strides = [step // size for step in steps]
    return MemoryDesc((*dims, rows, columns), x.dtype, strides=strides, offset0=x.start_bytes // size)
