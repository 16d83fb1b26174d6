"""Plans for gradients that need sums over an axis: kernels for dense rows, or for lanes side by side."""

from collections.abc import Callable, Mapping

from asmdnn.generators.functions.row_gradient import RowGradientSpec
from asmdnn.generators.functions.row_programs import RowPrograms
from asmdnn.isa.elements import narrowing_level
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.loops import MAX_STEP, Loop, cut_loop
from asmdnn.planning.phase import views
from asmdnn.planning.plan import Plan, alike
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reduction.along_axis import LANES, ROWS
from asmdnn.primitives.reorder.copies import WORD, between_reorders
from asmdnn.primitives.shapes.formats import of_type, row_major
from asmdnn.primitives.shapes.nests import Nest, check_copied, lanes_in, read_nest, row_in, with_last
from asmdnn.primitives.shapes.row_calls import Calls, operands_along, phases_of, row_calls, widest
from asmdnn.records import dataclass
from asmdnn.types import f32

SRC, DST = range(2)
OUTPUTS = ("diff_src",)
View = Callable[[MemoryDesc], MemoryDesc | None]  # of a tensor as one of diff_src's rank; None if it cannot be


@dataclass(frozen=True, slots=True, eq=False)
class RowRequest:
    """What is computed.

    passed: the tensors by argument name, that of the kernel's src first, diff_src second.  views: how tensors of fewer
    dims move along diff_src's.  axis: over which is summed.
    """

    what: str
    passed: Mapping[str, MemoryDesc]
    views: Mapping[str, View]
    axis: int
    programs: RowPrograms
    engine: Engine


def row_plan(request: RowRequest) -> Plan:
    """The first of the ways that takes the tensors.  Raises Refused."""
    last = Refused("")
    for way in WAYS.values():
        try:
            return way(request)
        except Refused as reason:
            last = reason
    raise last


def along_rows(request: RowRequest) -> Plan:
    """Of rows that are dense.  Raises Refused."""
    if 0 in request.passed["diff_src"].dims:
        engine = request.engine
        return Assembly(engine.tuning, engine.isa).plan(f"{ROWS}:{f32_level(engine.isa)}", request.passed, OUTPUTS)
    return planned(request, ROWS, request.passed, calls_of_rows(request, request.passed))


def across_lanes(request: RowRequest) -> Plan:
    """Of lanes side by side.  Raises Refused."""
    return planned(request, LANES, request.passed, calls_of_lanes(request, request.passed))


def along_copied_rows(request: RowRequest) -> Plan:
    """Of copies: all with the axis innermost, those of fewer dims dense.  Raises Refused."""
    passed = request.passed
    check_copied(lambda: calls_of_rows(request, passed), lambda: calls_of_lanes(request, passed))
    model = with_last(passed["diff_src"], (request.axis,))
    plain = {name: row_major(t.dims, t) for name, t in passed.items() if name in request.views}
    tensors = {name: plain.get(name) or of_type(model, t.dtype) for name, t in passed.items()}
    return planned(request, ROWS, tensors, calls_of_rows(request, tensors))


WAYS = {ROWS: along_rows, LANES: across_lanes, f"{WORD}+{ROWS}": along_copied_rows}


def planned(request: RowRequest, way: str, tensors: Mapping[str, MemoryDesc], calls: Calls[RowGradientSpec]) -> Plan:
    """The plan of these calls, between reorders of what is passed otherwise."""
    engine = request.engine
    costs = {spec: cost(spec) for spec, *_ in calls}
    sizes = [tensor.dtype.size_bytes for tensor in tensors.values()]
    phases = phases_of(calls, costs, views(tuple(tensors)), engine.tuning.phases, sizes)
    in_place = alike(tensors, (name for name in tensors if name not in OUTPUTS), "diff_src")
    plan = Plan(f"{way}:{f32_level(engine.isa)}", phases, tensors, {}, {}, outputs=OUTPUTS, in_place=in_place)
    return between_reorders(plan, request.passed, engine.tuning, isa=f32_level(engine.isa))


def as_it_is(tensor: MemoryDesc) -> MemoryDesc:
    return tensor


def level_of(request: RowRequest) -> str:
    """Of the code that stores the result."""
    return narrowing_level(request.passed["diff_src"].dtype.name, request.engine.isa)


def wide(request: RowRequest, tensors: Mapping[str, MemoryDesc]) -> Mapping[str, MemoryDesc]:
    """All of diff_src's rank.  Raises Refused."""
    found = {name: request.views.get(name, as_it_is)(tensor) for name, tensor in tensors.items()}
    if blocked := [name for name, tensor in found.items() if tensor is None]:
        raise Refused(f"{blocked[0]} is blocked, it must be plain")
    return {name: tensor for name, tensor in found.items() if tensor is not None}


def nest_of(request: RowRequest, tensors: Mapping[str, MemoryDesc]) -> Nest:
    """Raises Refused."""
    return read_nest(tuple(tensors.values()), tensors["diff_src"].dims, (request.axis,), DST)


def calls_of_rows(request: RowRequest, tensors: Mapping[str, MemoryDesc]) -> Calls[RowGradientSpec]:
    """Raises Refused."""
    tensors, isa = wide(request, tensors), level_of(request)
    nest = nest_of(request, tensors)
    axis = row_in(nest)
    return [
        (spec_of(request, tensors, isa, ROWS, axis, some), box, outer)
        for box, some, outer in row_calls(nest, axis.extent, request.engine.tuning.elementwise, widest(tensors))
    ]


def calls_of_lanes(request: RowRequest, tensors: Mapping[str, MemoryDesc]) -> Calls[RowGradientSpec]:
    """Vectors of a dense loop, each summed along the axis.  Raises Refused."""
    tensors, isa = wide(request, tensors), level_of(request)
    nest = nest_of(request, tensors)
    lanes, axis = lanes_in(nest), nest.row
    if max(axis.strides) > MAX_STEP:
        raise Refused("neighbours along the axis are more than 2 GiB apart")
    vector = lanes_of(isa)
    whole = max(1, request.engine.tuning.elementwise.record_elements // axis.extent // vector) * vector
    return [
        (
            spec_of(request, tensors, isa, LANES, some, axis),
            box,
            tuple(loop for loop in box.loops if loop is not some),
        )
        for box, some in cut_loop(nest.box, lanes, whole)
    ]


def spec_of(
    request: RowRequest, tensors: Mapping[str, MemoryDesc], isa: str, along: str, row: Loop, rows: Loop
) -> RowGradientSpec:
    """The kernel of `rows` with the elements of `row`."""
    operands = tuple(operands_along(tensors, row, rows).values())
    dtypes = [tensor.dtype for tensor in tensors.values()]
    types = () if {*dtypes} == {f32} else tuple(dtype.name for dtype in dtypes)
    sums, result = request.programs
    return RowGradientSpec(
        isa=isa, what=request.what, along=along, rows=rows.extent, elements=row.extent,
        src_row_bytes=dtypes[SRC].size_bytes * rows.strides[SRC],
        dst_row_bytes=dtypes[DST].size_bytes * rows.strides[DST], operands=operands[DST + 1 :], sums=sums,
        result=result, types=types,
    )  # fmt: skip


def cost(spec: RowGradientSpec) -> int:
    """Expected cycles: of the steps of both programs, two a cycle, and of loads."""
    vectors = -(-spec.elements // lanes_of(spec.isa))
    steps = len(spec.sums.steps) + len(spec.result.steps)
    return 40 + spec.rows * (20 + vectors * (2 * len(spec.operands) + steps // 2))
