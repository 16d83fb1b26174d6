"""A matrix product as strides in bytes: the common form of matmul, inner product and gemm, as kernels address it.

dst[b, m, n] = bias[b, m, n] + sum over k of src[b, m, k] * weights[b, k, n]
"""

from collections.abc import Mapping, Sequence
from typing import Any

from asmdnn.generators.dot.matmul_shape import ARGUMENTS, PieceLoop
from asmdnn.isa.dot import F32, Types
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.planning.phase import NOTHING, View
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.products.matrices import Matrix, Panels
from asmdnn.records import dataclass, replace

SUM_BYTES = 4  # sums have 32 bits whatever is multiplied
TILE_ROWS = 24  # the most that a tile has


@dataclass(frozen=True, slots=True)
class Product:
    """k counts groups of `types`, which are single elements in f32.

    Plain weights have a row for each element of k even where a group has several: no tile reads those.
    """

    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    src: Matrix
    weights: Matrix | Panels
    dst: Matrix
    bias: Matrix | None = None
    packed: Panels | Matrix | None = None  # where tiles store a copy of their weights, in panels, or of their src
    post_op_operands: tuple[Matrix, ...] = ()  # of binary post-ops, in the order of Chain.names
    types: Types = F32
    missing: int = 0  # elements of the last group of k
    pieces: tuple[PieceLoop, ...] = ()  # over parts of k, where src or weights do not have all of it side by side
    adds_up: bool = False  # the bias is what src's shift adds, which a phase in front, or who packs weights, may write

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
        """Bytes from the weights of a group of k to those of the next: plain ones have a row for each element, but for
        those of a transposed product."""
        rows = self.types.group // self.weights.group if isinstance(self.weights, Matrix) else 1
        return rows * self.weights.row_bytes

    @property
    def packed_weights(self) -> Panels | None:
        return self.packed if isinstance(self.packed, Panels) else None

    @property
    def packed_src(self) -> Matrix | None:
        return self.packed if isinstance(self.packed, Matrix) else None

    def operands(self) -> dict[str, Matrix | Panels]:
        every = {"src": self.src, "weights": self.weights, "dst": self.dst, "bias": self.bias, "packed": self.packed}
        post_op_operands = dict(zip(self.post_op_names, self.post_op_operands, strict=True))
        return {name: x for name, x in every.items() if x is not None} | post_op_operands

    @property
    def post_op_names(self) -> tuple[str, ...]:
        return tuple(f"operand {i}" for i in range(len(self.post_op_operands)))

    @property
    def arguments(self) -> tuple[str, ...]:
        """Of tiles' kernels."""
        return (*ARGUMENTS, *self.post_op_names)

    @property
    def matrix_bytes(self) -> int:
        """Of one matrix of the batch: src, weights and dst."""
        read = self.m * self.k * self.src.element_bytes + self.k * self.n * self.weights.element_bytes
        return read + self.m * self.n * self.dst.element_bytes

    @property
    def near_items(self) -> int:
        """How many matrices of the innermost batch dim code steps over."""
        apart = max(x.batch_bytes[-1] for x in self.operands().values())
        return max(1, MAX_OFFSET // apart) if apart else self.batch[-1]

    @property
    def sums_bytes(self) -> int:
        """Of the sums of one matrix of the batch, row-major."""
        return self.m * self.n * SUM_BYTES

    def transposed(self, weights: Matrix) -> "Product":
        """dst^T = weights^T src^T."""
        bias = None if self.bias is None else self.bias.transposed
        src, dst = weights.transposed.in_groups(self.types.group), self.dst.transposed
        post_op_operands = tuple(x.transposed for x in self.post_op_operands)
        turned = replace(self, m=self.n, n=self.m, src=src, weights=self.src.transposed, dst=dst, bias=bias)
        return replace(turned, packed=None, post_op_operands=post_op_operands)

    def folded(self) -> "Product":
        """The same with fewer batch dims: those of size 1 are dropped, contiguous neighbours merged, and a batch that
        shares its weights becomes rows."""
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

    @property
    def first_matrix(self) -> "Product":
        """That of the batch.  Its start of sums is one of those that a phase in front of all matrices writes."""
        return replace(self._with_batch((), dict.fromkeys(self.operands(), ())), adds_up=False)

    def _rows_from_batch(self) -> "Product":
        if not self.batch or self.weights.batch_bytes[-1]:
            return self
        for x in (self.src, self.dst, self.bias, *self.post_op_operands):
            if x is not None and self.m > 1 and x.batch_bytes[-1] != self.m * x.row_bytes:
                return self
        p = self
        if self.m == 1:  # one row: its distance does not matter

            def moved(x: Matrix) -> Matrix:
                return replace(x, row_bytes=x.batch_bytes[-1])

            post_op_operands = tuple(map(moved, self.post_op_operands))
            p = replace(
                self,
                src=moved(self.src),
                dst=moved(self.dst),
                bias=self.bias and moved(self.bias),
                post_op_operands=post_op_operands,
            )
            if not all(map(is_near, p.operands().values())):
                return self
        p = p._with_batch(p.batch[:-1], {n: x.batch_bytes[:-1] for n, x in p.operands().items()})
        return replace(p, m=self.m * self.batch[-1])._rows_from_batch()

    def _with_batch(self, sizes: Sequence[int], steps: Mapping[str, Sequence[int]]) -> "Product":
        moved = {n: replace(x, batch_bytes=tuple(steps[n])) for n, x in self.operands().items()}
        return self._with(moved, batch=tuple(sizes))

    def _with(self, operands: dict[str, "Matrix | Panels"], **changes: Any) -> "Product":
        post_op_operands = tuple(operands.pop(name) for name in self.post_op_names)
        return replace(self, post_op_operands=post_op_operands, **operands, **changes)  # type: ignore[arg-type]

    def distances(self, axis: int, size: int = 1) -> dict[str, int]:
        """How many bytes the arguments of tiles advance by `size` steps along an axis: a batch dim, rows, columns, or
        k.

        Arguments without the axis are left out.  `prefetched` points to weights, too.  Panels are taken whole.
        """
        batch_dims, every = len(self.batch), self.operands() | {"prefetched": self.weights}
        if axis < batch_dims:
            return {name: size * x.batch_bytes[axis] for name, x in every.items()}
        if axis == batch_dims:
            fixed = ("weights", "prefetched", *("packed",) * bool(self.packed_weights))
            return {name: size * x.row_bytes for name, x in every.items() if name not in fixed}
        if axis == batch_dims + 1:
            return {
                name: size // x.columns * x.panel_bytes if isinstance(x, Panels) else size * x.column_bytes
                for name, x in every.items()
                if name != "src" and not (name == "packed" and self.packed_src)
            }
        weights = size * self.weights_step
        found = {"src": size * self.src.column_bytes, "weights": weights, "prefetched": weights}
        if self.packed:
            step = self.packed.column_bytes if isinstance(self.packed, Matrix) else self.packed.row_bytes
            found["packed"] = size * step
        return found

    def views(self, skipped: int, scaled: bool) -> tuple[View, ...]:
        """The views of the arguments, which start after `skipped` steps of k.  scaled: whether kernels read a scale."""
        names = {name: x.buffer for name, x in self.operands().items()}
        names |= {"prefetched": names["weights"]} | ({"scale": "scale"} if scaled else {})
        moves = self.distances(len(self.batch) + 2, skipped)
        return tuple(View(names[name], moves.get(name, 0)) if name in names else NOTHING for name in self.arguments)

    def part(self, axis: int, begin: int, end: int) -> "Product":
        """The part [begin, end) along an axis, numbered as in `distances`."""
        moves, sizes = self.distances(axis, begin), [*self.batch, self.m, self.n, self.k]
        of_k = axis == len(sizes) - 1
        sizes[axis] = end - begin
        *batch, m, n, k = sizes
        missing = 0 if of_k and end < self.k else self.missing
        moved = {x: replace(y, start_bytes=y.start_bytes + moves.get(x, 0)) for x, y in self.operands().items()}
        return self._with(moved, batch=tuple(batch), m=m, n=n, k=k, missing=missing)

    def rows(self, begin: int, end: int) -> "Product":
        return self.part(len(self.batch), begin, end)

    def columns(self, begin: int, end: int) -> "Product":
        return self.part(len(self.batch) + 1, begin, end)

    def depths(self, begin: int, end: int) -> "Product":
        """The part of the sum over k in [begin, end)."""
        assert not self.pieces
        return self.part(len(self.batch) + 2, begin, end)


def check_whole_sums(p: Product) -> None:
    """Raise Refused where sums are of runs of k."""
    if p.types.run:
        raise Refused(f"sums of {p.types.run} are added up in f32 by tiles alone")


def is_near(x: Matrix | Panels) -> bool:
    """Whether displacements reach all that a tile reads or writes of it."""
    column_bytes = x.column_bytes if isinstance(x, Matrix) else x.panel_bytes
    return TILE_ROWS * x.row_bytes + 16 * column_bytes <= MAX_OFFSET
