"""The plan of a gather: rows that are dense in src and dst, copied by kernels that read the indices."""

from collections.abc import Iterator

from asmdnn.generators.move.by_index import INDEX_BYTES
from asmdnn.generators.move.gather import ARGUMENTS, DST, INDICES, GatherSpec
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import NARROWEST
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.calls import Call, phases_of
from asmdnn.planning.loops import Box, Loop, cut_loop, merge
from asmdnn.planning.phase import views
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.gather.description import Gather
from asmdnn.primitives.reorder.copies import Inside, as_passed_or_copied
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.primitives.shapes.tensors import refuse_overlap

NAME = "gather"


def inside_of(desc: Gather, attr: Attr, engine: Engine) -> Inside:
    """The plan of a gather.  Raises Refused."""
    refuse_attr(attr, "a gather")
    passed = {"src": desc.src, "dst": desc.dst, "indices": desc.indices}
    if desc.dst.is_any:
        passed["dst"] = row_major(desc.dst.dims, desc.dst)
    refuse_overlap(dst=passed["dst"])
    tensors = {name: row_major(x.dims, x) if x.inner_blocks else x for name, x in passed.items()}
    assembly = Assembly(engine.tuning, engine.isa)
    if desc.dst.nelems():
        calls = list(calls_of(desc, tensors, engine))
        assembly.add(phases_of(calls, views(ARGUMENTS), engine.tuning.phases, along_dst=True))
    whole = assembly.plan(f"{NAME}:{NARROWEST}", tensors, ("dst",))
    return Inside(whole, passed, engine.tuning, engine.isa)


plans = as_passed_or_copied(NAME, inside_of, lambda _: NARROWEST)


def calls_of(desc: Gather, tensors: dict[str, MemoryDesc], engine: Engine) -> Iterator[Call]:
    """Of the kernels that take all elements of dst.  Raises Refused."""
    src, dst, tuning = tensors["src"], tensors["dst"], engine.tuning.gather
    size = src.dtype.size_bytes
    box = Box((src.offset0, dst.offset0, tensors["indices"].offset0), tuple(loops_of(desc, tensors)))
    row = next((x for x in box.loops if x.src == x.dst == 1 and not x.strides[INDICES]), Loop(1, (0, 0, 0)))
    for piece, some in cut_loop(box, row, tuning.row_bytes // size):
        by_index = [x for x in piece.loops if x.strides[INDICES]]
        most = max(1, min(tuning.most_rows, tuning.record_bytes // (some.extent * size)))
        for part, rows in cut_loop(piece, longest(by_index), most):
            yield call_of(desc, tensors, (part, some, rows), engine)


def call_of(desc: Gather, tensors: dict[str, MemoryDesc], cut: tuple[Box, Loop, Loop], engine: Engine) -> Call:
    """The kernel of the rows of a box, in its other loops."""
    (box, row, rows), tuning = cut, engine.tuning.gather
    size = tensors["src"].dtype.size_bytes
    sizes = (size, size, INDEX_BYTES)
    row_bytes, distance = row.extent * size, tensors["src"].strides[desc.axis] * size
    dst_step, index_step = rows.strides[DST] * size, rows.strides[INDICES] * INDEX_BYTES
    if max(distance, dst_step, index_step) > MAX_OFFSET:
        raise Refused("rows are 2 GiB or more apart")
    spec = GatherSpec(
        isa=NARROWEST,  # zmm: rows of 64 to 4000 bytes 0.89 to 1.03x on a Zen 4, median 0.99
        count=rows.extent,
        limit=desc.limit,
        row_bytes=row_bytes,
        src_step=distance,
        dst_step=dst_step,
        index_step=index_step,
    )
    outer = Box(box.starts, tuple(x for x in box.loops if x is not row and x is not rows)).in_bytes(sizes)
    cycles = tuning.call_cycles + rows.extent * (tuning.row_cycles + row_bytes // tuning.bytes_per_cycle)
    return Call(spec, outer.starts, outer.loops, cycles)


def loops_of(desc: Gather, tensors: dict[str, MemoryDesc]) -> list[Loop]:
    """Those over dst, in elements: what src does along the indices is data."""
    src, dst, indices = (tensors[name] for name in ARGUMENTS)
    end = desc.axis + indices.ndims
    distances = list[tuple[int, int, int]]()
    for dim, step in enumerate(dst.strides):
        if desc.axis <= dim < end:
            distances.append((0, step, indices.strides[dim - desc.axis]))
        else:
            distances.append((src.strides[dim if dim < desc.axis else dim - indices.ndims + 1], step, 0))
    return merge(Loop(extent, steps) for extent, steps in zip(dst.dims, distances, strict=True) if extent > 1)


def longest(loops: list[Loop]) -> Loop:
    return max(loops, key=lambda x: x.extent, default=Loop(1, (0, 0, 0)))
