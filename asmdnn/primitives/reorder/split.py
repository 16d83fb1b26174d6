"""f32 as sums of two bf16: rows of a product in every call, and the format of weights, once.

A kernel makes all parts of a row at once.  It takes src and parts whose innermost dims are dense, else src is copied in
front; so are floats of other types, which become f32.
"""

from collections.abc import Iterator

from asmdnn.generators.functions.split import ARGUMENTS, SplitSpec
from asmdnn.isa.elements import narrowing_level, native_element
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.memory import MemoryDesc
from asmdnn.memory.split import HIGH, LOW, PARTS, SplitDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.calls import Call, phases_of
from asmdnn.planning.loops import Box, Loop, boxes, cut_loop
from asmdnn.planning.phase import views
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.reorder.schedule import reorder_phases
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.types import F32_BYTES, f32

WHOLE = "weights in parts"  # scratch
ORDER_OF_WEIGHTS = (*HIGH, LOW)  # where along the depth the parts `high`, `again` and `low` lie
ORDER_OF_SRC = (0, 2, 1)  # so that every part meets another one


def add_split(assembly: Assembly, source: tuple[str, MemoryDesc], target: tuple[str, SplitDesc]) -> None:
    """Phases that bring weights, a buffer and its format, into another one."""
    dst, split = target
    whole = row_major(split.storage.dims, split.storage)
    assembly.scratch[WHOLE] = whole.size_bytes
    add_parts(assembly, source, (WHOLE, whole), split.depth, ORDER_OF_WEIGHTS)
    assembly.add(reorder_phases(whole, split.storage, (WHOLE, dst), assembly.tuning, isa=assembly.isa))


def add_parts(
    assembly: Assembly,
    source: tuple[str, MemoryDesc],
    target: tuple[str, MemoryDesc],
    depth: int,
    order: tuple[int, int, int],
) -> None:
    """Phases that fill a plain tensor, which along a dim has the parts of another one, in that order."""
    (src, given), (dst, whole) = source, target
    parts = parts_of(whole, depth)
    if not are_alike(given, parts[0]):
        alike = dense_as(parts[0], given.dims)
        copy = assembly.room(f"{src} in one piece", alike.size_bytes)
        assembly.add(reorder_phases(given, alike, (src, copy), assembly.tuning, isa=assembly.isa))
        src, given = copy, alike
    tensors = (given, *(parts[number] for number in order))
    calls = [call for box in boxes(tensors) for call in calls_of(box, tensors, assembly)]
    places = (src, *[dst] * PARTS)
    assert len(places) == len(ARGUMENTS)
    assembly.add(phases_of(calls, views(places), assembly.tuning.phases))


def parts_of(whole: MemoryDesc, depth: int) -> list[MemoryDesc]:
    """Equal parts of a plain tensor, one after another along a dim."""
    dims = list(whole.dims)
    dims[depth] //= PARTS
    begins = [[0] * whole.ndims for _ in range(PARTS)]
    for part, begin in enumerate(begins):
        begin[depth] = part * dims[depth]
    return [whole.submemory(dims, begin) for begin in begins]


def are_alike(given: MemoryDesc, part: MemoryDesc) -> bool:
    """Whether kernels take f32 as they lie: what is dense in a part is dense in them."""
    dense = [dim for dim, size in enumerate(part.dims) if size > 1 and part.strides[dim] == 1]
    return given.dtype == f32 and not given.inner_blocks and all(given.strides[dim] == 1 for dim in dense)


def dense_as(plain: MemoryDesc, dims: tuple[int, ...]) -> MemoryDesc:
    """f32 of these dims in the order of a plain tensor, without gaps."""
    order = sorted(range(plain.ndims), key=lambda dim: (-plain.strides[dim], dim))
    last = MemoryDesc(tuple(dims[dim] for dim in order), f32, LETTERS[: plain.ndims])
    return last.permute_axes(order)


def calls_of(box: Box, tensors: tuple[MemoryDesc, ...], assembly: Assembly) -> Iterator[Call]:
    """Calls of some rows each, of a record's bytes."""
    sizes = tuple(tensor.dtype.size_bytes for tensor in tensors)
    moves, kind = assembly.tuning.moves, tensors[1].dtype.name
    isa, most = narrowing_level(kind, assembly.isa), moves.record_bytes // F32_BYTES
    box = box.in_bytes(sizes)
    once = Loop(1, sizes)
    dense = next((loop for loop in box.loops if loop.strides == sizes), once)
    for piece, inner in cut_loop(box, dense, most):
        others = [loop for loop in piece.loops if loop is not inner]
        is_near = bool(others) and max(others[-1].strides) <= MAX_OFFSET  # which steps in code are
        rows = others[-1] if is_near else once
        for part, outer in cut_loop(piece, rows, max(1, most // inner.extent)):
            spec = SplitSpec(
                isa=isa,
                kind=kind,
                rows=outer.extent,
                elements=inner.extent,
                src_row_bytes=outer.src,
                dst_row_bytes=outer.dst,
            )
            loops = tuple(loop for loop in part.loops if loop is not inner and loop is not outer)
            yield Call(spec, part.starts, loops, cycles_of(spec, assembly.tuning))


def cycles_of(spec: SplitSpec, tuning: Tuning) -> int:
    """What a call is expected to take: its bytes, and rounding by steps."""
    moves, element = tuning.moves, native_element(spec.kind, spec.isa)
    elements = spec.rows * spec.elements
    of_bytes = elements * (F32_BYTES + PARTS * element.size_bytes) / moves.near_bytes_per_cycle
    by_steps = 0 if element.narrows_pairs else 2 * elements * moves.round_cycles
    return int(moves.call_cycles + of_bytes + by_steps)
