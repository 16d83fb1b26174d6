"""Products in two phases: partial sums in scratch, then their sum.

They are added as a product with ones, in their order, so that bias and post-ops follow as after every product, and
results do not depend on the threads.
"""

from itertools import groupby

import numpy as np

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.dot.gemv import GemvSpec
from asmdnn.generators.dot.operands import OPERANDS
from asmdnn.generators.dot.skinny import SkinnySpec, vectors_at_once
from asmdnn.isa.dot import F32, GROUP_BYTES, S32, dot_class
from asmdnn.isa.elements import element_of
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.cuts import balanced, ranges_of
from asmdnn.planning.phase import Int64, Phase, records_of, views
from asmdnn.planning.phases import merged
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.products.blocks import DEPTH_STEP, weights_need_packing
from asmdnn.primitives.products.matrices import Matrix, Panels, dense_matrix
from asmdnn.primitives.products.product import SUM_BYTES, Product, check_whole_sums
from asmdnn.primitives.products.schedule import schedule
from asmdnn.primitives.products.target import NO_EPILOGUE, Target
from asmdnn.records import replace
from asmdnn.types import DataType, f32, s32

PARTIAL = "partial sums"
OF_SUMS = {f32: F32, s32: S32}


def split(assembly: Assembly, p: Product, target: Target, splits: int) -> None:
    """Partial sums over ranges of k into scratch, side by side; then their sum."""
    ranges = ranges_of(p.k, -(-p.k // DEPTH_STEP // splits), DEPTH_STEP, target.products.most_ranges)
    size, at = p.sums_bytes, 0
    partial = assembly.room(PARTIAL, len(ranges) * size)
    parts = list[Phase]()
    for (k, _), run in groupby(ranges, key=lambda r: (r[1] - r[0], r[1] == p.k and p.missing)):
        begin, count = ranges[at][0], len(list(run))
        part = p.depths(begin, begin + k)
        src = replace(part.src, batch_bytes=(k * p.src.column_bytes,))
        weights = replace(part.weights, batch_bytes=(k * p.weights_step,))
        dst = dense_matrix(partial, p.n, at * size, (size,), p.types.sums)
        missing = part.missing
        part = Product(
            batch=(count,), m=p.m, n=p.n, k=k, src=src, weights=weights, dst=dst, types=p.types, missing=missing
        )
        parts += schedule(part, replace(target, epilogue=NO_EPILOGUE), one_range=True)
        at += count
    assembly.add([merged(parts)], "split_k")
    add_partial_sums(assembly, p, target, len(ranges), partial)


def rows_of_weights(assembly: Assembly, p: Product, target: Target) -> None:
    """A few rows times row-major weights: ranges of whole rows, as partial sums, then their sum."""
    tuning = target.products
    widths = balanced(p.n, tuning.vector_near // p.m)
    parts = tuning.few_tiles if p.m == 1 else -(-tuning.few_tiles // len(widths))
    most = max(tuning.vector_rows // DEPTH_STEP, -(-p.k // DEPTH_STEP // parts))
    ranges = ranges_of(p.k, most, DEPTH_STEP, tuning.most_ranges)
    specs: dict[KernelSpec, int] = {}
    records, cycles = [], []
    for i, (begin, end) in enumerate(ranges):
        part, at = p.depths(begin, end), 0
        for width in widths:
            spec = rows_spec(part, width, target)
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


def rows_spec(p: Product, columns: int, target: Target) -> KernelSpec:
    """The kernel for some rows of weights."""
    src, row_bytes = p.src, p.weights.row_bytes
    if p.m == 1:
        return GemvSpec(
            isa=target.isa, columns=columns, depth=p.depth, src_depth_bytes=src.column_bytes,
            weights_row_bytes=row_bytes, types=p.types,
        )  # fmt: skip
    dst_bytes = SUM_BYTES * p.n
    return SkinnySpec(
        isa=target.isa, rows=p.m, columns=columns, depth=p.depth, src_row_bytes=src.row_bytes,
        src_depth_bytes=src.column_bytes, weights_row_bytes=row_bytes, dst_row_bytes=dst_bytes, types=p.types,
    )  # fmt: skip


def partial_phase(
    p: Product, partial: str, kernels: tuple[KernelSpec, ...], records: list[Int64], cycles: list[int]
) -> Phase:
    """Kernels that read src and weights of a product and write partial sums."""
    arguments = views([p.src.buffer, p.weights.buffer, partial])
    return Phase(kernels, arguments, np.concatenate(records), np.array(cycles, np.int32))


def add_partial_sums(assembly: Assembly, p: Product, target: Target, count: int, partial: str) -> None:
    """dst = the sum of `count` partial results, in their order: a product with a row of ones."""
    dtype = p.types.sums
    row = dense_matrix(partial, p.n, dtype=dtype)
    factors, sums = ones(assembly, 1, dtype), replace(row, batch_bytes=(row.row_bytes,), row_bytes=p.sums_bytes)

    def row_by_row(x: Matrix) -> Matrix:
        return replace(x, batch_bytes=(x.row_bytes,), row_bytes=0)

    bias, post_op_operands = p.bias and row_by_row(p.bias), tuple(map(row_by_row, p.post_op_operands))
    total = Product(
        batch=(p.m,),
        m=1,
        n=p.n,
        k=count,
        src=factors,
        weights=sums,
        dst=row_by_row(p.dst),
        bias=bias,
        packed=None,
        post_op_operands=post_op_operands,
        types=OF_SUMS[dtype],
    )
    assembly.add(schedule(total.folded(), target, one_range=True))


def ones(assembly: Assembly, batch_dims: int, dtype: DataType = f32) -> Matrix:
    """A matrix of ones, or of groups of them, of any size."""
    name, one = f"one of {dtype}", element_of(dtype.name).code(1.0)
    bits = sum(one << shift for shift in range(0, 8 * GROUP_BYTES, 8 * dtype.size_bytes))
    assembly.constants[name] = np.array([bits], np.int64)
    return Matrix(name, 0, (0,) * batch_dims, 0, 0, dtype)


def sum_of_rows(assembly: Assembly, x: Matrix, rows: int, columns: int, dst: Matrix) -> Product:
    """dst = the sum of the rows of x, as a product with a row of ones."""
    return Product(batch=(), m=1, n=columns, k=rows, src=ones(assembly, 0), weights=x, dst=dst)


def check_rows(p: Product, target: Target) -> None:
    """Raise Refused unless it is a few rows of dst times many row-major weights."""
    tuning = target.products
    check_whole_sums(p)
    if p.m > tuning.few_vectors or p.batch:
        raise Refused(f"dst is more than {tuning.few_vectors} rows")
    if isinstance(p.weights, Panels) or not p.weights.is_dense:
        raise Refused("rows of weights are not dense")
    most = (tuning.few_tiles_elements if p.m > 1 else tuning.tiles_elements).of(p.weights.row_bytes)
    if p.k * p.n <= most and p.weights.row_bytes <= tuning.tiles_apart and not weights_need_packing(p):
        raise Refused(f"weights of {p.k} x {p.n} are so few that tiles read them as fast")
    rows, columns = tuning.vector_rows, tuning.packed_columns if weights_need_packing(p) else tuning.vector_columns
    if p.depth < rows or p.n < columns:
        raise Refused(f"weights are {p.depth} rows of {p.n}, this is for {rows} of {columns} or more")
    if p.types.group > 1 and p.types.weights_bytes < GROUP_BYTES:
        raise Refused(f"weights of {p.types} are widened as they come from panels, rows are joined as they lie")
    if dot_class(p.types, target.isa).shift:
        raise Refused(f"src is shifted for {p.types}, and weights would be read for the sums of columns, too")
    if p.m > 1 and not vectors_at_once(p.types, target.isa, p.m):
        raise Refused(f"registers of {target.isa} do not hold {p.m} rows of sums of {p.types}")
