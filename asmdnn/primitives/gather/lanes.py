"""Gathers of elements from short rows, which registers hold: kernels look up what indices name."""

from collections.abc import Iterator

from asmdnn.errors import counted
from asmdnn.generators.move.by_index import INDEX_BYTES, INDICES
from asmdnn.generators.move.gather import DST, SRC
from asmdnn.generators.move.gather_lanes import UNIT_BYTES, GatherLanesSpec, most_elements
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.planning.calls import Call
from asmdnn.planning.loops import Box, Loop, cut_loop
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.gather.request import GatherRequest

NO_LOOP = Loop(1, (0, 0, 0))
INDEX_STEPS = 1, 2  # of 4 bytes: of s32, and of s64's low halves
VECTOR_CYCLES = 3  # of a vector of results: a look-up, of which there may be several, and a store


def calls_of(request: GatherRequest) -> Iterator[Call]:
    """Of kernels that take rows of src, each with a list of indices.  Raises Refused, at once."""
    return pieces_of(request, *loops_of(request))


def pieces_of(request: GatherRequest, along: Loop, rows: Loop) -> Iterator[Call]:
    tuning = request.engine.tuning.gather
    box = request.box
    most = max(1, tuning.record_bytes // UNIT_BYTES)
    for piece, some in cut_loop(box, along, most) if along in box.loops else [(box, along)]:
        most_rows = max(1, min(tuning.most_rows, most // some.extent))
        for part, several in cut_loop(piece, rows, most_rows) if rows in piece.loops else [(piece, rows)]:
            yield call_of(request, part, some, several)


def loops_of(request: GatherRequest) -> tuple[Loop, Loop]:
    """That along the indices, and the longest one of those over rows.  Raises Refused."""
    desc, src, isa = request.desc, request.tensors["src"], f32_level(request.engine.isa)
    if src.dtype.size_bytes != UNIT_BYTES:
        raise Refused(f"elements of {src.dtype} have {src.dtype.size_bytes} bytes, lanes have {UNIT_BYTES}")
    if not desc.limit or desc.limit > most_elements(isa):
        raise Refused(f"an index chooses from {desc.limit} elements, registers hold 1 to {most_elements(isa)}")
    by_index = [x for x in request.box.loops if x.strides[INDICES]]
    along = by_index[0] if by_index else NO_LOOP
    if len(by_index) > 1 or (by_index and (along.strides[DST] != 1 or along.strides[INDICES] not in INDEX_STEPS)):
        raise Refused("indices, or what they write, are not side by side")
    if desc.limit > 1 and src.strides[desc.axis] != 1:
        raise Refused("elements that an index chooses from are not side by side")
    lanes, row_cycles = lanes_of(isa), request.engine.tuning.gather.row_cycles
    if -(-desc.limit // lanes) + VECTOR_CYCLES * -(-along.extent // lanes) > row_cycles * along.extent:
        row, results = counted(desc.limit, "element"), counted(along.extent, "result")
        raise Refused(f"a row of {row} in registers does not pay for {results}")
    others = [x for x in request.box.loops if not x.strides[INDICES]]
    return along, max(others, key=lambda x: x.extent, default=NO_LOOP)


def call_of(request: GatherRequest, box: Box, along: Loop, rows: Loop) -> Call:
    """The kernel of the rows of a box, in its other loops."""
    sizes = (UNIT_BYTES, UNIT_BYTES, INDEX_BYTES)
    src_step, dst_step = (UNIT_BYTES * rows.strides[x] for x in (SRC, DST))
    index_step = INDEX_BYTES * (along.strides[INDICES] or 1)
    if max(src_step, dst_step) > MAX_OFFSET:
        raise Refused("rows are 2 GiB or more apart")
    spec = GatherLanesSpec(
        isa=f32_level(request.engine.isa),
        rows=rows.extent,
        limit=request.desc.limit,
        count=along.extent,
        src_step=src_step,
        dst_step=dst_step,
        index_step=index_step,
    )
    outer = Box(box.starts, tuple(x for x in box.loops if x is not along and x is not rows)).in_bytes(sizes)
    turns = -(-rows.extent // spec.together)
    cycles = request.engine.tuning.gather.call_cycles + turns * (spec.tables + VECTOR_CYCLES * spec.vectors)
    return Call(spec, outer.starts, outer.loops, cycles)
