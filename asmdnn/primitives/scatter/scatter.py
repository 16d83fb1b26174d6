"""The plan of a scatter: src is copied into dst, then kernels that read the indices write rows of it.

All indices are taken by one call, in their order.  So threads share what lies beside the axis, not the indices, and
the bits do not depend on their number.
"""

from collections.abc import Iterator
from math import prod

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.move.by_index import INDEX_BYTES
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.generators.move.scatter import ARGUMENTS, ScatterSpec
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import NARROWEST
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.calls import Call, phases_of
from asmdnn.planning.loops import Box, Loop, cut_loop, merge
from asmdnn.planning.phase import Phase, views
from asmdnn.planning.plan import alike
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.copies import Inside, as_passed_or_copied
from asmdnn.primitives.reorder.schedule import reorder_phases
from asmdnn.primitives.scatter.description import MOVES, Scatter
from asmdnn.primitives.shapes.formats import of_type, row_major
from asmdnn.primitives.shapes.tensors import refuse_overlap
from asmdnn.records import dataclass, replace
from asmdnn.types import FLOATS, f32

NAME = "scatter"


def inside_of(desc: Scatter, attr: Attr, engine: Engine) -> Inside:
    """The plan of a scatter.  Raises Refused."""
    refuse_attr(attr, "a scatter")
    if desc.alg != MOVES and desc.src.dtype not in FLOATS:
        raise Refused(f"src is {desc.src.dtype}, alg {desc.alg} combines f32, bf16 and f16: use alg none")
    passed = {"src": desc.src, "dst": desc.dst, "indices": desc.indices, "updates": desc.updates}
    if desc.dst.is_any:
        passed["dst"] = row_major(desc.dst.dims, desc.dst)
    refuse_overlap(dst=passed["dst"])
    dtype = desc.src.dtype if desc.alg == MOVES else f32
    tensors = {name: row_major(x.dims, x) for name, x in passed.items()} | {"src": desc.src}
    tensors = {name: x if name == "indices" else of_type(x, dtype) for name, x in tensors.items()}
    if is_even(desc.indices):
        tensors["indices"] = desc.indices
    assembly = Assembly(engine.tuning, engine.isa)
    if desc.dst.nelems():
        assembly.add(copy_of_src(tensors["src"], tensors["dst"], engine))
    if desc.updates.nelems():
        calls = list(calls_of(ScatterSizes.of(desc, tensors), engine))
        assembly.add(phases_of(calls, views(ARGUMENTS), engine.tuning.phases, along_dst=True))
    whole = assembly.plan(f"{NAME}:{NARROWEST}", tensors, ("dst",), alike(tensors, ["src"], "dst"))
    return Inside(whole, passed, engine.tuning, engine.isa)


def copy_of_src(src: MemoryDesc, dst: MemoryDesc, engine: Engine) -> list[Phase]:
    """Into dst.  What is one memory, as the state of a network is, stays as it is, whatever its size."""
    copies = reorder_phases(src, dst, ("src", "dst"), engine.tuning, isa=engine.isa)
    if src != dst:
        return copies
    return [replace(phase, kernels=tuple(map(unless_there, phase.kernels))) for phase in copies]


def unless_there(kernel: KernelSpec) -> KernelSpec:
    return replace(kernel, in_place=True) if isinstance(kernel, RowsSpec) else kernel


plans = as_passed_or_copied(NAME, inside_of, lambda _: NARROWEST)


def is_even(indices: MemoryDesc) -> bool:
    """Whether all of them, in row-major order, are equally far apart."""
    return not indices.inner_blocks and len(merge(index_loops(indices))) <= 1


def index_loops(indices: MemoryDesc) -> list[Loop]:
    """In elements, beside their number in row-major order."""
    numbers = row_major(indices.dims, indices).strides
    strides = zip(indices.dims, indices.strides, numbers, strict=True)
    return [Loop(extent, (step, number)) for extent, step, number in strides if extent > 1]


@dataclass(frozen=True, slots=True)
class ScatterSizes:
    """The sizes of a scatter: `outer` tables of `limit` rows of `row_bytes`, each written by `count` indices that are
    index_step bytes apart; starts: where updates, dst and indices begin, in bytes."""

    alg: str
    element_bytes: int
    outer: int
    limit: int
    count: int
    row_bytes: int
    index_step: int
    starts: tuple[int, int, int]

    @classmethod
    def of(cls, desc: Scatter, tensors: dict[str, MemoryDesc]) -> "ScatterSizes":
        dst, indices = tensors["dst"], tensors["indices"]
        step = merge(index_loops(indices))
        size = dst.dtype.size_bytes
        return cls(
            alg=desc.alg,
            element_bytes=size,
            outer=prod(dst.dims[: desc.axis]),
            limit=desc.limit,
            count=indices.nelems(),
            row_bytes=size * prod(dst.dims[desc.axis + 1 :]),
            index_step=INDEX_BYTES * step[0].strides[0] if step else INDEX_BYTES,
            starts=(0, 0, INDEX_BYTES * indices.offset0),
        )


def calls_of(rows: ScatterSizes, engine: Engine) -> Iterator[Call]:
    """Of pieces of rows, each for all indices.  Raises Refused."""
    tuning, row_bytes = engine.tuning.gather, rows.row_bytes
    if max(row_bytes, rows.index_step) > MAX_OFFSET:
        raise Refused("rows are 2 GiB or more apart")
    tables = Loop(rows.outer, (rows.count * row_bytes, rows.limit * row_bytes, 0))
    row = Loop(row_bytes // rows.element_bytes, (rows.element_bytes, rows.element_bytes, 0))
    most = row.extent
    if max(rows.limit, rows.count) <= tuning.scattered_rows:
        piece_bytes = max(tuning.scattered_bytes, tuning.record_bytes // rows.count)
        most = min(tuning.row_bytes, piece_bytes) // rows.element_bytes
    for piece, some in cut_loop(Box(rows.starts, (tables, row)), row, most):
        piece_bytes = some.extent * rows.element_bytes
        spec = ScatterSpec(
            isa=NARROWEST,  # zmm: rows of 64 to 4096 bytes 0.84 to 1.10x on a Zen 4, median 1.01
            count=rows.count,
            limit=rows.limit,
            row_bytes=piece_bytes,
            updates_step=row_bytes,
            dst_step=row_bytes,
            index_step=rows.index_step,
            reduction=rows.alg,
        )
        outer = tuple(loop for loop in piece.loops if loop is not some)
        cycles = tuning.call_cycles + rows.count * (tuning.row_cycles + piece_bytes // tuning.bytes_per_cycle)
        yield Call(spec, piece.starts, outer, cycles)
