"""The plan of a gather: elements that are looked up in registers, or dense rows that kernels copy by their indices."""

from collections.abc import Callable, Iterator
from functools import partial

from asmdnn.generators.move.by_index import INDEX_BYTES, INDICES
from asmdnn.generators.move.gather import ARGUMENTS, DST, GatherSpec
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import NARROWEST, f32_level
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.calls import Call, phases_of
from asmdnn.planning.loops import Box, Loop, cut_loop
from asmdnn.planning.phase import views
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.gather import lanes
from asmdnn.primitives.gather.request import GatherRequest, request_of
from asmdnn.primitives.reorder.copies import Inside, ways_as_passed_or_copied


def calls_of(request: GatherRequest) -> Iterator[Call]:
    """Of the kernels that take all elements of dst.  Raises Refused."""
    tuning, size = request.engine.tuning.gather, request.tensors["src"].dtype.size_bytes
    box = request.box
    row = next((x for x in box.loops if x.src == x.dst == 1 and not x.strides[INDICES]), Loop(1, (0, 0, 0)))
    for piece, some in cut_loop(box, row, tuning.row_bytes // size):
        by_index = [x for x in piece.loops if x.strides[INDICES]]
        most = max(1, min(tuning.most_rows, tuning.record_bytes // (some.extent * size)))
        for part, rows in cut_loop(piece, longest(by_index), most):
            yield call_of(request, (part, some, rows))


def call_of(request: GatherRequest, cut: tuple[Box, Loop, Loop]) -> Call:
    """The kernel of the rows of a box, in its other loops."""
    (box, row, rows), tuning, desc = cut, request.engine.tuning.gather, request.desc
    src = request.tensors["src"]
    size = src.dtype.size_bytes
    sizes = (size, size, INDEX_BYTES)
    row_bytes, distance = row.extent * size, src.strides[desc.axis] * size
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


def longest(loops: list[Loop]) -> Loop:
    return max(loops, key=lambda x: x.extent, default=Loop(1, (0, 0, 0)))


Calls = Callable[[GatherRequest], Iterator[Call]]
WAYS: dict[str, tuple[Calls, Callable[[str], str]]] = {
    "lanes": (lanes.calls_of, f32_level),
    "gather": (calls_of, lambda _: NARROWEST),
}


def inside_of(request: GatherRequest, way: str) -> Inside:
    """The plan of a gather.  Raises Refused."""
    (calls, level), engine, tensors = WAYS[way], request.engine, request.tensors
    assembly = Assembly(engine.tuning, engine.isa)
    made = calls(request)
    if request.desc.dst.nelems():
        assembly.add(phases_of(list(made), views(ARGUMENTS), engine.tuning.phases, along_dst=True))
    whole = assembly.plan(f"{way}:{level(engine.isa)}", tensors, ("dst",))
    return Inside(whole, request.passed, engine.tuning, engine.isa)


plans = ways_as_passed_or_copied(request_of, {way: partial(inside_of, way=way) for way in WAYS}, f32_level)
