"""Before any strategy: a dst with dense columns, and a bias and operands of post-ops with dense columns."""

from collections.abc import Callable, Sequence

from asmdnn.isa.dot import F32
from asmdnn.isa.lines import LINE_BYTES, odd_lines
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.products.blocks import src_needs_pack
from asmdnn.primitives.products.matrices import Matrix, Panels, matrices_desc
from asmdnn.primitives.products.product import Product, is_near
from asmdnn.primitives.products.target import Target
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.records import dataclass, replace

ALIAS_BYTES = 2048  # rows so far apart, or a multiple, share few sets of L1


@dataclass(frozen=True, slots=True)
class Prepared:
    """A product for strategies, None if dst is empty; after: the reorders of its result into the caller's format."""

    product: Product | None
    after: tuple[Reordering, ...] = ()

    def finish(self, assembly: Assembly) -> None:
        for step in self.after:
            add_reorder(assembly, step, "unpack_dst")


def prepare(assembly: Assembly, p: Product, target: Target) -> Prepared:
    """Add the phases that must run before a product.  Raises Refused if tiles cannot address its elements."""
    check_reach(p)
    if min(p.m, p.n, *p.batch) == 0:
        return Prepared(None)
    p, after = p.folded(), tuple[Reordering, ...]()
    is_column = p.n == 1 < p.k and p.src.dense_down
    if is_column or (not p.dst.is_dense and p.n > 1):
        rows_are_dense = p.dst.dense_down and all(x.row_bytes == 0 or x.dense_down for x in p.post_op_operands)
        if rows_are_dense and isinstance(p.weights, Matrix) and p.types == F32:
            assembly.add((), "swap")
            p = p.transposed(p.weights)
        elif not is_column:
            dst, into, back = dense_dst(assembly, p)
            if target.epilogue.reads_dst:
                add_reorder(assembly, into, "pack_dst")
            p, after = replace(p, dst=dst), (back,)
    return Prepared(with_dense_operands(assembly, p), after)


def check_reach(p: Product) -> None:
    """Refuse tiles whose displacements do not fit into 32 bits."""
    for name, x in p.operands().items():
        if isinstance(x, Panels) and not x.is_dense:
            raise Refused(f"the rows of a panel of {name} are not dense")
        if not is_near(x):
            raise Refused(f"the rows of a tile of {name} are more than 2 GiB apart")


def dense_dst(assembly: Assembly, p: Product) -> tuple[Matrix, Reordering, Reordering]:
    """A row-major dst in scratch, and how to bring what dst holds into it, and back."""
    size = p.dst.element_bytes
    steps = tuple(size * step for step in strides_of(p.batch, p.m * p.n))
    dst = replace(p.dst, start_bytes=0, batch_bytes=steps, row_bytes=size * p.n, column_bytes=size)
    outer, inner = (matrices_desc(x, p.batch, p.m, p.n) for x in (p.dst, dst))
    dst = replace(dst, buffer=assembly.room("row-major dst", inner.size_bytes))
    into = Reordering(p.dst.buffer, outer, dst.buffer, inner)
    return dst, into, into.back


def with_dense_operands(assembly: Assembly, p: Product) -> Product:
    """The product with dense copies of bias and operands whose columns are strided."""
    if p.bias is not None and p.bias.is_strided:
        p = replace(p, bias=dense_copy(assembly, p, p.bias, p.n, ("bias", "pack_bias")))
    strided = [x.is_strided for x in p.post_op_operands]
    if not any(strided):
        return p
    dense = [
        dense_copy(assembly, p, x, p.n, (x.buffer, "pack_operands")) if a else x
        for x, a in zip(p.post_op_operands, strided, strict=True)
    ]
    return replace(p, post_op_operands=tuple(dense))


def with_near_src(assembly: Assembly, p: Product, *, panels: bool = False) -> Product:
    """The product with a copy of src, where reading it in place costs more.  panels: as of src_needs_pack()."""
    if not src_needs_pack(p, assembly.tuning.products, panels=panels):
        return p
    copy = dense_copy(assembly, p, elements_of(p.src), p.depth, ("src", "pack_src"))
    return replace(p, src=copy.in_groups(p.src.group))


def with_apart_src(assembly: Assembly, p: Product) -> Product:
    """The product with a copy of src whose rows are an odd number of lines apart, as tiles of AMX read them fastest."""
    copy = dense_copy(assembly, p, elements_of(p.src), p.depth, ("src", "pack_src"), odd_lines)
    return replace(p, src=copy.in_groups(p.src.group))


def elements_of(x: Matrix) -> Matrix:
    """With single elements of k as columns."""
    return replace(x, column_bytes=x.dtype.size_bytes, group=1) if x.group > 1 else x


def unlike_sets(row_bytes: int) -> int:
    """At least so many bytes, at which rows do not share sets of L1."""
    return row_bytes + LINE_BYTES if row_bytes % ALIAS_BYTES == 0 else row_bytes


def dense_copy(
    assembly: Assembly,
    p: Product,
    x: Matrix,
    columns: int,
    names: tuple[str, str],
    apart: Callable[[int], int] = unlike_sets,
) -> Matrix:
    """A copy of an operand in scratch whose columns are dense.

    names: what is packed, and the word for that.  apart: how far rows of so many bytes are apart.
    """
    source, copy, target = near_matrix(assembly, p, x, columns, names[0], apart)
    add_reorder(assembly, Reordering(x.buffer, source, copy.buffer, target), names[1])
    return copy


def near_matrix(
    assembly: Assembly, p: Product, x: Matrix, columns: int, name: str, apart: Callable[[int], int] = unlike_sets
) -> tuple[MemoryDesc, Matrix, MemoryDesc]:
    """Room for such a copy, between the descriptors of the operand and of the copy."""
    rows = p.m if x.row_bytes else 1
    size = x.dtype.size_bytes
    row = apart(size * columns) // size
    kept = [size if step else 1 for size, step in zip(p.batch, x.batch_bytes, strict=True)]
    strides = strides_of(kept, rows * row)
    source = matrices_desc(x, p.batch, rows, columns)
    target = MemoryDesc((*kept, rows, columns), x.dtype, strides=(*strides, row, 1))
    buffer = assembly.room(f"packed {name}", target.size_bytes)
    steps = tuple(size * s if step else 0 for s, step in zip(strides, x.batch_bytes, strict=True))
    return source, Matrix(buffer, 0, steps, size * row if x.row_bytes else 0, size, x.dtype), target


def strides_of(sizes: Sequence[int], innermost: int) -> list[int]:
    """The strides of dense dims, in elements."""
    strides = [innermost] * len(sizes)
    for i in reversed(range(len(sizes) - 1)):
        strides[i] = strides[i + 1] * sizes[i + 1]
    return strides
