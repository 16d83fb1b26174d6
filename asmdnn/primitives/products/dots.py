"""Products with a few vectors as dots: a lane has some steps of k, and every row of the matrix is a stream.

The vectors are the columns of weights, or the rows of src, whose matrix is weights with its columns dense.  Tiles would
fill a register with columns that do not exist: 1000 x 512 times 512 x 2 runs 5 times as fast so on Zen 4.
"""

from collections.abc import Iterator
from functools import partial

from asmdnn.generators.dot.dots import CHUNK, STRIP, DotsSpec, columns_at_once
from asmdnn.generators.dot.operands import OPERANDS
from asmdnn.isa.dot import GROUP_BYTES, Types, dot_class
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.cuts import balanced, ranges_of
from asmdnn.planning.phase import Phase, records_of
from asmdnn.planning.product_tuning import ProductTuning
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.products.matrices import Matrix, dense_matrix, matrices_desc
from asmdnn.primitives.products.partial import (
    OF_SUMS,
    PARTIAL,
    add_partial_sums,
    ones,
    partial_phase,
)
from asmdnn.primitives.products.prepare import dense_copy
from asmdnn.primitives.products.product import Product, check_whole_sums
from asmdnn.primitives.products.rounds import in_rounds, pieces_of
from asmdnn.primitives.products.schedule import schedule
from asmdnn.primitives.products.target import Target
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.records import replace
from asmdnn.types import f32

WORD = "dots"
ROW_COLUMNS = 2048  # of sums that become results at a time, where each row has a few


def check_dots(p: Product, target: Target) -> None:
    """Raise Refused unless the product, or its transpose, is a matrix of dense rows times a few vectors."""
    tuning = target.products
    check_whole_sums(p)
    if p.batch or not p.src.is_dense:
        raise Refused("it is a batch, or rows of src are not dense")
    if p.bias and not p.adds_up and dot_class(p.types, target.isa).shift:
        raise Refused(f"src is shifted for {p.types}, and has a zero point: its sums start from sums of columns")
    if not (reads_rows(p, target) or reads_columns(p, target)):
        rows, depth, least = tuning.dot_rows, tuning.dot_depth, tuning.dot_elements_least
        large = f"{rows} or more dense rows of at least {depth}, or {least} elements in fewer,"
        raise Refused(f"it is no matrix of {large} times a few vectors")


def is_worth(rows: int, depth: int, tuning: ProductTuning) -> bool:
    """Whether a matrix is large enough for dots of its rows."""
    few = tuning.dot_elements_least <= rows * depth <= tuning.dot_elements_most
    return depth >= tuning.dot_depth and (rows >= tuning.dot_rows or few)


def takes_rows(p: Product, target: Target) -> bool:
    """Whether rows of src are multiplied with the dense columns of weights, whatever its sums start from."""
    return not p.batch and p.src.is_dense and not p.types.run and reads_rows(p, target) is not None


def reads_rows(p: Product, target: Target) -> Product | None:
    """The transpose of a product whose few rows of src are multiplied with the dense columns of weights."""
    tuning = target.products
    if not (isinstance(p.weights, Matrix) and p.weights.dense_down):
        return None
    columns = columns_at_once(p.types, target.isa)
    worth = GROUP_BYTES * range_of(p, columns, target) // tuning.dot_row_bytes
    few = p.m <= max(tuning.dot_vectors, columns, worth)
    return p.transposed(p.weights) if few and p.n > 1 and is_worth(p.n, p.depth, tuning) else None


def reads_columns(p: Product, target: Target) -> bool:
    """Whether rows of src are multiplied with a few columns of plain weights, which are copied for many rows if they
    are not dense, and what becomes of the sums does not depend on their row."""
    if not (isinstance(p.weights, Matrix) and are_few((p.m, p.n, p.depth), p.types, target.isa, target.products)):
        return False
    if p.m < target.products.dot_rows and not p.weights.dense_down:
        return False
    dense = p.dst.is_dense and p.dst.row_bytes == p.n * p.dst.element_bytes
    return p.n == 1 or (dense and all(spreads(x, p.n) for x in (p.bias, *p.post_op_operands) if x))


def are_few(sizes: tuple[int, int, int], types: Types, isa: str, tuning: ProductTuning) -> bool:
    """Whether weights of a product of m, n and k are best dense columns, as dots multiply them."""
    m, n, k = sizes
    alike = types.src == types.weights and types.sums == f32  # here the matrix is src; a dot takes it as its weights
    return alike and not types.run and is_worth(m, k, tuning) and n <= columns_at_once(types, isa)


def spreads(x: Matrix, columns: int) -> bool:
    """Whether rows of an operand may be joined: it has dense ones, one for all, or one number."""
    if not x.row_bytes:
        return x.is_dense or not x.column_bytes
    return x.is_dense and x.row_bytes == columns * x.element_bytes


def add_dots(assembly: Assembly, p: Product, target: Target) -> None:
    """The sums, and where they are no results what becomes of them.  Kernels undo the shift of src."""
    if p.adds_up and p.bias:
        assembly.drop(p.bias.buffer)
        p = replace(p, bias=None, adds_up=False)
    turned = reads_rows(p, target)
    if not turned and isinstance(p.weights, Matrix) and not p.weights.dense_down:
        p = with_dense_columns(assembly, p, p.weights)
    read = turned or p
    reaches = read.dst.dense_down or (not turned and p.n > 1)
    is_result = target.epilogue.is_plain and not p.bias and p.sums_fit and reaches
    if not is_result:
        sums = dense_matrix(assembly.room(PARTIAL, p.sums_bytes), p.n, dtype=p.types.sums)
        read = replace(read, dst=sums.transposed if turned else sums)
    assembly.add(list(sums_of(read, target)), WORD)
    if not is_result:
        add_results(assembly, p, target, sums, bool(turned))


def with_dense_columns(assembly: Assembly, p: Product, weights: Matrix) -> Product:
    """The product with a copy of its weights."""
    copy = dense_copy(assembly, replace(p, m=p.n), weights.transposed, p.depth, ("weights", "pack_weights"))
    return replace(p, weights=copy.transposed)


def range_of(p: Product, columns: int, target: Target) -> int:
    """The groups of k that are summed at a time, such that L1 holds those of so many vectors."""
    step = CHUNK * target.lanes
    most = max(1, target.products.dot_near_bytes // (GROUP_BYTES * columns * step))
    return ranges_of(p.k, most, step)[0][1] if columns > 1 else p.k


def sums_of(p: Product, target: Target) -> Iterator[Phase]:
    """Rows of src times the vectors, as many at once as a kernel takes; a range of k, then the next one."""
    tuning = target.products
    step = range_of(p, min(p.n, columns_at_once(p.types, target.isa)), target)
    most = max(STRIP, tuning.dot_elements // min(p.depth, step * p.types.group))
    for number, piece in enumerate(pieces_of(p, (most, p.n), tuning.many_dots, tuning.round_records)):
        ranges = [(begin, min(p.k, begin + step)) for begin in range(0, p.k, step)]
        parts = (piece.product.depths(*k) for k in ranges) if len(ranges) > 1 else (piece.product,)
        made = [dots_phase(part, most, target, accumulate=i > 0) for i, part in enumerate(parts)]
        yield from in_rounds(made, piece, OPERANDS, is_first=number == 0)


def dots_phase(p: Product, most: int, target: Target, *, accumulate: bool) -> Phase:
    """The sums of rows, at most `most` of them a record: these are read from L2 for further vectors."""
    specs: dict[DotsSpec, int] = {}
    records, cycles, parts, at = [], [], list(columns_of(p, target)), 0
    for rows in balanced(p.m, most):
        for part in parts:
            columns = {
                "src": p.src.start_bytes + at * p.src.row_bytes,
                "weights": part.weights.start_bytes,
                "dst": part.dst.start_bytes + at * p.dst.row_bytes,
            }
            spec = replace(spec_of(part, rows, target), accumulate=accumulate)
            records.append(records_of(OPERANDS, columns, specs.setdefault(spec, len(specs))))
            cycles.append(rows * part.n * p.k // target.lanes + target.call_cycles)
        at += rows
    return replace(partial_phase(p, p.dst.buffer, tuple(specs), records, cycles), continues=accumulate)


def columns_of(p: Product, target: Target) -> Iterator[Product]:
    """The product in parts of columns, in numbers that registers hold the sums of."""
    begin = 0
    for columns in balanced(p.n, columns_at_once(p.types, target.isa)):
        yield p.columns(begin, begin + columns)
        begin += columns


def spec_of(p: Product, rows: int, target: Target) -> DotsSpec:
    assert isinstance(p.weights, Matrix)
    several = p.n > 1
    return DotsSpec(
        isa=target.isa,
        rows=rows,
        depth=p.depth,
        src_row_bytes=p.src.row_bytes,
        types=p.types,
        columns=p.n,
        column_bytes=p.weights.column_bytes if several else 0,
        dst_column_bytes=p.dst.column_bytes if several and p.dst.dense_down else 0,
    )


def add_results(assembly: Assembly, p: Product, target: Target, sums: Matrix, is_wide: bool) -> None:
    """dst = what becomes of the sums, row-major in scratch.  is_wide: few rows, of many columns."""
    if is_wide and p.m > 1:
        add_partial_sums(assembly, p, target, 1, sums.buffer)
    elif p.n > 1 and not is_wide:
        add_joined_rows(assembly, p, target, sums)
    else:
        one = ones(assembly, 0, p.types.sums)
        column = dense_matrix(sums.buffer, 1, dtype=sums.dtype)
        total = p.transposed(p.weights) if is_wide and isinstance(p.weights, Matrix) else p
        total = replace(total, k=1, missing=0, src=column, weights=one, types=OF_SUMS[p.types.sums])
        is_row = all(not x.transposed.is_strided for x in (total.dst, total.bias, *total.post_op_operands) if x)
        assembly.add(schedule(total.transposed(one) if is_row else total, target, one_range=True))


def add_joined_rows(assembly: Assembly, p: Product, target: Target, sums: Matrix) -> None:
    """Rows of a few columns as few rows of many."""
    rows = min(p.m, max(1, ROW_COLUMNS // p.n))
    spread = partial(repeated, assembly, p, rows)
    bias, operands = p.bias and spread(p.bias), tuple(map(spread, p.post_op_operands))
    made = list[Phase]()
    for begin, count, joined in ((0, p.m // rows, rows), (p.m // rows * rows, 1, p.m % rows)):
        if not joined:
            continue

        def row_by_row(x: Matrix, begin: int = begin, joined: int = joined) -> Matrix:
            start = x.start_bytes + begin * x.row_bytes
            return replace(x, start_bytes=start, batch_bytes=(joined * x.row_bytes,), row_bytes=0)

        total = Product(
            batch=(count,),
            m=1,
            n=joined * p.n,
            k=1,
            src=ones(assembly, 1, p.types.sums),
            weights=replace(row_by_row(sums), row_bytes=joined * sums.row_bytes),
            dst=row_by_row(p.dst),
            bias=bias and row_by_row(bias),
            post_op_operands=tuple(map(row_by_row, operands)),
            types=OF_SUMS[p.types.sums],
        )
        first, *others = schedule(total.folded(), target, one_range=True)
        made += [replace(first, independent=bool(made)), *others]
    assembly.add(made)


def repeated(assembly: Assembly, p: Product, rows: int, x: Matrix) -> Matrix:
    """An operand that all rows share, as many times as rows are joined."""
    if x.row_bytes or not x.column_bytes:
        return x
    source = matrices_desc(x, (), rows, p.n)
    copy = dense_matrix("", p.n, dtype=x.dtype)
    target = matrices_desc(copy, (), rows, p.n)
    buffer = assembly.room(f"repeated {x.buffer}", target.size_bytes)
    add_reorder(assembly, Reordering(x.buffer, source, buffer, target), "repeat")
    return replace(copy, buffer=buffer, row_bytes=0)
