"""Products whose sums come together in a second phase: partial sums in scratch, then their sum.

They are added as a product with ones, in their order, so that bias and post-ops follow as behind every product, and
results do not depend on the threads.
"""

from dataclasses import replace
from itertools import groupby

import numpy as np

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.dot.dots import STRIP, DotsSpec
from asmdnn.generators.dot.gemv import GemvSpec
from asmdnn.generators.dot.operands import OPERANDS
from asmdnn.generators.dot.skinny import SkinnySpec
from asmdnn.isa.dot import F32
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.cuts import balanced
from asmdnn.planning.phase import Int64, Phase, records_of, views
from asmdnn.planning.phases import merged
from asmdnn.planning.product_tuning import ProductTuning
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.products.blocks import DEPTH_STEP, depths_of
from asmdnn.primitives.products.product import SUM_BYTES, Matrix, Panels, Product, dense_matrix
from asmdnn.primitives.products.rounds import in_rounds, pieces_of
from asmdnn.primitives.products.schedule import schedule
from asmdnn.primitives.products.target import NO_ENDING, Target

PARTIAL, ONE = "partial sums", "one"
ONE_BITS = 0x3F800000  # 1.0f


def split(assembly: Assembly, p: Product, target: Target, splits: int) -> None:
    """Partial sums over ranges of k into scratch, side by side; then their sum."""
    ranges = depths_of(p.k, -(-p.k // DEPTH_STEP // splits), target.products)
    size, at = p.sums_bytes, 0
    partial = assembly.room(PARTIAL, len(ranges) * size)
    parts = list[Phase]()
    for (k, _), run in groupby(ranges, key=lambda r: (r[1] - r[0], r[1] == p.k and p.missing)):
        begin, count = ranges[at][0], len(list(run))
        part = p.depths(begin, begin + k)
        src = replace(part.src, batch_bytes=(k * p.src.column_bytes,))
        weights = replace(part.weights, batch_bytes=(k * p.weights.row_bytes,))
        dst = dense_matrix(partial, p.n, at * size, (size,))
        missing = part.missing
        part = Product((count,), p.m, p.n, k, src, weights, dst, types=p.types, missing=missing)
        parts += schedule(part, replace(target, ending=NO_ENDING), one_range=True)
        at += count
    assembly.add([merged(parts)], "split_k")
    add_partial_sums(assembly, p, target, len(ranges), partial)


def rows_of_weights(assembly: Assembly, p: Product, target: Target) -> None:
    """A few rows times row-major weights: ranges of whole rows, as partial sums, then their sum."""
    by = target.products
    widths = balanced(p.n, by.vector_near // p.m)
    parts = by.few_tiles if p.m == 1 else -(-by.few_tiles // len(widths))
    ranges = depths_of(p.k, max(by.vector_rows // DEPTH_STEP, -(-p.k // DEPTH_STEP // parts)), by)
    specs: dict[KernelSpec, int] = {}
    records, cycles = [], []
    for i, (begin, end) in enumerate(ranges):
        part, at = p.depths(begin, end), 0
        for width in widths:
            spec = rows_spec(p, width, end - begin, target)
            columns = {
                "src": part.src.start_bytes,
                "weights": part.weights.start_bytes + p.weights.element_bytes * at,
                "dst": i * p.sums_bytes + SUM_BYTES * at,
            }
            records.append(records_of(OPERANDS, columns, specs.setdefault(spec, len(specs))))
            cycles.append(p.m * width * (end - begin) // 8 + target.call_cycles)
            at += width
    partial = assembly.room(PARTIAL, len(ranges) * p.sums_bytes)
    assembly.add([partial_phase(p, partial, tuple(specs), records, cycles)], "rows")
    add_partial_sums(assembly, p, target, len(ranges), partial)


def rows_spec(p: Product, columns: int, depth: int, target: Target) -> KernelSpec:
    """The kernel for some rows of weights."""
    src, row_bytes = p.src, p.weights.row_bytes
    if p.m == 1:
        return GemvSpec(target.isa, columns, depth, src.column_bytes, row_bytes)
    return SkinnySpec(target.isa, p.m, columns, depth, src.row_bytes, src.column_bytes, row_bytes, SUM_BYTES * p.n)


def dots(assembly: Assembly, p: Product, target: Target) -> None:
    """Rows of src times a vector: what every lane sums, then the sum of the lanes."""
    sums, by = dense_matrix(PARTIAL, target.lanes), target.products
    sums = replace(sums, buffer=assembly.room(PARTIAL, p.m * sums.row_bytes))
    most = max(STRIP, by.dot_elements // p.k)
    phases: list[Phase] = []
    for piece in pieces_of(replace(p, dst=sums), (most, 1), by.many_dots, by.round_records):
        made = dots_phase(piece.product, most, target)
        phases += in_rounds([made], piece, OPERANDS, is_first=not phases)
    assembly.add(phases, "dots")
    total = replace(p, k=target.lanes, src=sums, weights=ones(assembly, 0))
    assembly.add(schedule(total, target, one_range=True))


def dots_phase(p: Product, most: int, target: Target) -> Phase:
    """What every lane sums of at most `most` rows a record."""
    specs: dict[DotsSpec, int] = {}
    records, cycles, at = [], [], 0
    for rows in balanced(p.m, most):
        spec = DotsSpec(target.isa, rows, p.k, p.src.row_bytes)
        columns = {
            "src": p.src.start_bytes + at * p.src.row_bytes,
            "weights": p.weights.start_bytes,
            "dst": p.dst.start_bytes + at * p.dst.row_bytes,
        }
        records.append(records_of(OPERANDS, columns, specs.setdefault(spec, len(specs))))
        cycles.append(rows * p.k // target.lanes + target.call_cycles)
        at += rows
    return partial_phase(p, p.dst.buffer, tuple(specs), records, cycles)


def partial_phase(
    p: Product, partial: str, kernels: tuple[KernelSpec, ...], records: list[Int64], cycles: list[int]
) -> Phase:
    """Kernels that read src and weights of a product and write partial sums."""
    arguments = views([p.src.buffer, p.weights.buffer, partial])
    return Phase(kernels, arguments, np.concatenate(records), np.array(cycles, np.int32))


def add_partial_sums(assembly: Assembly, p: Product, target: Target, count: int, partial: str) -> None:
    """dst = the sum of `count` partial results, in their order: a product with a row of ones."""
    row = dense_matrix(partial, p.n)
    factors, sums = ones(assembly, 1), replace(row, batch_bytes=(row.row_bytes,), row_bytes=p.sums_bytes)

    def row_by_row(x: Matrix) -> Matrix:
        return replace(x, batch_bytes=(x.row_bytes,), row_bytes=0)

    bias, others = p.bias and row_by_row(p.bias), tuple(map(row_by_row, p.others))
    total = Product((p.m,), 1, p.n, count, factors, sums, row_by_row(p.dst), bias, None, others).folded()
    assembly.add(schedule(total, target, one_range=True))


def ones(assembly: Assembly, batch_dims: int) -> Matrix:
    """A matrix of ones, of any size."""
    assembly.constants[ONE] = np.array([ONE_BITS], np.int64)
    return Matrix(ONE, 0, (0,) * batch_dims, 0, 0)


def sum_of_rows(assembly: Assembly, x: Matrix, rows: int, columns: int, dst: Matrix) -> Product:
    """dst = the sum of the rows of x, as a product with a row of ones."""
    return Product((), 1, columns, rows, ones(assembly, 0), x, dst)


def check_rows(p: Product, tuning: ProductTuning) -> None:
    """Raise Refused unless it is a few rows of dst times many row-major weights."""
    if p.types != F32:
        raise Refused(f"rows of weights are streams in f32 only, types are {p.types}")
    if p.m > tuning.few_vectors or p.batch:
        raise Refused(f"dst is more than {tuning.few_vectors} rows")
    if p.m > 1 and p.k * p.n <= tuning.far_elements:
        raise Refused(f"weights of {p.k} x {p.n} stay in L2, where tiles read them")
    if isinstance(p.weights, Panels) or not p.weights.is_dense:
        raise Refused("rows of weights are not dense")
    rows, columns = tuning.vector_rows, tuning.vector_columns
    if p.k < rows or p.n < columns:
        raise Refused(f"weights are {p.k} rows of {p.n}, this is for {rows} of {columns} or more")


def as_dots(p: Product, target: Target) -> Product:
    """The product, or its transpose, as many rows of src, each a stream, times one vector.  Raises Refused."""
    if isinstance(p.weights, Matrix) and reads_dots(turned := p.transposed(p.weights), target):
        return turned
    if not reads_dots(p, target):
        rows, depth = target.products.dot_rows, target.products.dot_depth
        raise Refused(f"it is no matrix of {rows} or more dense rows of at least {depth} times a dense vector")
    return p


def reads_dots(p: Product, target: Target) -> bool:
    x, by = p.weights, target.products
    vector = p.types == F32 and isinstance(x, Matrix) and x.dense_down and p.n == 1 and not p.batch
    return vector and p.src.is_dense and p.k >= by.dot_depth and p.m >= by.dot_rows
