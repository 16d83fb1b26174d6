"""A matrix product as strides in bytes: what is left of matmul, inner product and gemm when a kernel is to address it.

dst[b, m, n] = bias[b, m, n] + sum over k of src[b, m, k] * weights[b, k, n]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from asmdnn.generators.dot.matmul_shape import ARGUMENTS
from asmdnn.isa.dot import F32, Types
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.types import DataType, f32

SUM_BYTES = 4  # sums have 32 bits whatever is multiplied


@dataclass(frozen=True, slots=True)
class Matrix:
    """Element (b, r, c) of a batch of matrices; distances of 0 broadcast.  Bytes from the buffer's start.

    group: of `dtype` elements along k, if a dot takes several at once; what is called an element is such a group then.
    """

    buffer: str
    start_bytes: int
    batch_bytes: tuple[int, ...]
    row_bytes: int
    column_bytes: int
    dtype: DataType = f32
    group: int = 1

    @property
    def element_bytes(self) -> int:
        return self.group * self.dtype.size_bytes

    @property
    def is_dense(self) -> bool:
        """Whether the columns of a row touch."""
        return self.column_bytes == self.element_bytes

    @property
    def is_apart(self) -> bool:
        """Whether the columns of a row neither touch nor are one element for all."""
        return self.column_bytes not in (0, self.element_bytes)

    @property
    def dense_down(self) -> bool:
        """Whether the rows of a column touch."""
        return self.row_bytes == self.element_bytes

    def in_groups(self, group: int) -> "Matrix":
        """With so many elements of k, which are columns, as one."""
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
        """Whether the rows of a panel touch."""
        return self.row_bytes == self.columns * self.element_bytes


@dataclass(frozen=True, slots=True)
class Product:
    """k counts groups of `types`, which are single elements in f32.

    Plain weights have single elements of k as rows even where a group has several: no tile reads those.
    """

    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    src: Matrix
    weights: Matrix | Panels
    dst: Matrix
    bias: Matrix | None = None
    packed: Panels | None = None  # where the tiles leave a copy of their weights
    others: tuple[Matrix, ...] = ()  # what post-ops read, in the order of Chain.names
    types: Types = F32
    missing: int = 0  # elements of the last group of k

    @property
    def depth(self) -> int:
        """Elements of k."""
        return self.k * self.types.group - self.missing

    @property
    def sums_fit(self) -> bool:
        """Whether dst can hold sums."""
        return self.dst.dtype == self.types.sums

    @property
    def weights_step(self) -> int:
        """Bytes from the weights of a group of k to those of the next: plain ones have a row for each element."""
        rows = self.types.group if isinstance(self.weights, Matrix) else 1
        return rows * self.weights.row_bytes

    def operands(self) -> dict[str, Matrix | Panels]:
        every = {"src": self.src, "weights": self.weights, "dst": self.dst, "bias": self.bias, "packed": self.packed}
        others = dict(zip(self.other_names, self.others, strict=True))
        return {name: x for name, x in every.items() if x is not None} | others

    @property
    def other_names(self) -> tuple[str, ...]:
        return tuple(f"operand {i}" for i in range(len(self.others)))

    @property
    def arguments(self) -> tuple[str, ...]:
        """Of tiles' kernels."""
        return (*ARGUMENTS, *self.other_names)

    @property
    def matrix_bytes(self) -> int:
        """Of one matrix of the batch: src, weights and dst."""
        read = self.m * self.k * self.src.element_bytes + self.k * self.n * self.weights.element_bytes
        return read + self.m * self.n * self.dst.element_bytes

    @property
    def sums_bytes(self) -> int:
        """Of the sums of one matrix of the batch, row-major."""
        return self.m * self.n * SUM_BYTES

    def transposed(self, weights: Matrix) -> "Product":
        """dst^T = weights^T src^T."""
        bias = None if self.bias is None else self.bias.transposed
        src, dst = weights.transposed.in_groups(self.types.group), self.dst.transposed
        others = tuple(x.transposed for x in self.others)
        turned = replace(self, m=self.n, n=self.m, src=src, weights=self.src.transposed, dst=dst, bias=bias)
        return replace(turned, packed=None, others=others)

    def folded(self) -> "Product":
        """The same with fewer batch dims: none of size 1, neighbours that count on from each other as one, and a batch
        that shares its weights as more rows."""
        kept = [i for i, size in enumerate(self.batch) if size != 1]
        steps = {name: [x.batch_bytes[i] for i in kept] for name, x in self.operands().items()}
        p = self._with_batch([self.batch[i] for i in kept], steps)
        i = 0
        while i + 1 < len(p.batch):
            inner = p.batch[i + 1]
            if all(x.batch_bytes[i] == inner * x.batch_bytes[i + 1] for _, x in p.operands().items()):
                sizes = [*p.batch[:i], p.batch[i] * inner, *p.batch[i + 2 :]]
                every = p.operands().items()
                p = p._with_batch(sizes, {n: [*x.batch_bytes[:i], *x.batch_bytes[i + 1 :]] for n, x in every})
            else:
                i += 1
        return p._rows_from_batch()

    def _rows_from_batch(self) -> "Product":
        if not self.batch or self.weights.batch_bytes[-1]:
            return self
        for x in (self.src, self.dst, self.bias, *self.others):
            if x is not None and self.m > 1 and x.batch_bytes[-1] != self.m * x.row_bytes:
                return self
        p = self
        if self.m == 1:  # one row: its distance does not matter

            def moved(x: Matrix) -> Matrix:
                return replace(x, row_bytes=x.batch_bytes[-1])

            others = tuple(map(moved, self.others))
            p = replace(
                self, src=moved(self.src), dst=moved(self.dst), bias=self.bias and moved(self.bias), others=others
            )
        p = p._with_batch(p.batch[:-1], {n: x.batch_bytes[:-1] for n, x in p.operands().items()})
        return replace(p, m=self.m * self.batch[-1])._rows_from_batch()

    def _with_batch(self, sizes: Sequence[int], steps: Mapping[str, Sequence[int]]) -> "Product":
        moved = {n: replace(x, batch_bytes=tuple(steps[n])) for n, x in self.operands().items()}
        return replace(self._with(moved), batch=tuple(sizes))

    def _with(self, operands: dict[str, "Matrix | Panels"]) -> "Product":
        others = tuple(operands.pop(name) for name in self.other_names)
        return replace(self, others=others, **operands)  # type: ignore[arg-type]

    def distances(self, axis: int, size: int = 1) -> dict[str, int]:
        """Bytes that arguments of tiles move with `size` steps along an axis: a dim of the batch, rows, columns, or k.

        What has not the axis is left out.  What is prefetched, `ahead`, are weights.  Panels are taken whole.
        """
        batch_dims, every = len(self.batch), self.operands() | {"ahead": self.weights}
        if axis < batch_dims:
            return {name: size * x.batch_bytes[axis] for name, x in every.items()}
        if axis == batch_dims:
            return {name: size * x.row_bytes for name, x in every.items() if name not in ("weights", "packed", "ahead")}
        if axis == batch_dims + 1:
            return {
                name: size // x.columns * x.panel_bytes if isinstance(x, Panels) else size * x.column_bytes
                for name, x in every.items()
                if name != "src"
            }
        weights = size * self.weights_step
        found = {"src": size * self.src.column_bytes, "weights": weights, "ahead": weights}
        return found | ({"packed": size * self.packed.row_bytes} if self.packed else {})

    def part(self, axis: int, begin: int, end: int) -> "Product":
        """[begin, end) along an axis, which counts as in `distances`."""
        moves, batch_dims, size = self.distances(axis, begin), len(self.batch), end - begin
        p = self._with({n: replace(x, start_bytes=x.start_bytes + moves.get(n, 0)) for n, x in self.operands().items()})
        if axis < batch_dims:
            return replace(p, batch=(*p.batch[:axis], size, *p.batch[axis + 1 :]))
        if axis == batch_dims:
            return replace(p, m=size)
        if axis == batch_dims + 1:
            return replace(p, n=size)
        return replace(p, k=size, missing=p.missing if end == p.k else 0)

    def rows(self, begin: int, end: int) -> "Product":
        return self.part(len(self.batch), begin, end)

    def columns(self, begin: int, end: int) -> "Product":
        return self.part(len(self.batch) + 1, begin, end)

    def depths(self, begin: int, end: int) -> "Product":
        """The part of the sum over k in [begin, end)."""
        return self.part(len(self.batch) + 2, begin, end)


def matrix_of(name: str, desc: MemoryDesc) -> Matrix:
    """The last two dims of a plain desc as a matrix; dims of 1 broadcast, and their strides have no say, nor of 0."""
    size = desc.dtype.size_bytes
    *steps, row, column = (size * s if n > 1 else 0 for s, n in zip(desc.strides, desc.dims, strict=True))
    return Matrix(name, size * desc.offset0, tuple(steps), row, column, desc.dtype)


def row_of(name: str, vector: MemoryDesc) -> Matrix:
    """A vector as the one row of a matrix, which every row of a product meets."""
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


def matrices_desc(x: Matrix, batch: tuple[int, ...], rows: int, columns: int) -> MemoryDesc:
    """A batch of matrices as a tensor; batch dims that broadcast have size 1."""
    dims = [size if step else 1 for size, step in zip(batch, x.batch_bytes, strict=True)]
    steps, size = [*x.batch_bytes, x.row_bytes, x.column_bytes], x.dtype.size_bytes
    strides = [step // size for step in steps]
    return MemoryDesc((*dims, rows, columns), x.dtype, strides=strides, offset0=x.start_bytes // size)
