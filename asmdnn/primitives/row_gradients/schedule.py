"""Plans for gradients that need sums over an axis: kernels for dense rows, or for lanes side by side."""

from collections.abc import Callable, Iterator, Mapping

from asmdnn.generators.functions.row_gradient import RowGradientSpec
from asmdnn.generators.functions.row_programs import RowPrograms
from asmdnn.isa.elements import narrowing_level
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.loops import MAX_STEP, Loop, cut_loop
from asmdnn.planning.phase import views
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.elementwise.schedule import check_tensors, operands_along, phases_of
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.shapes.formats import of_type, row_major
from asmdnn.primitives.shapes.nests import Calls, Nest, lanes_in, read_nest, row_calls, row_in, with_last
from asmdnn.records import dataclass
from asmdnn.types import FLOAT_NAMES, f32

SRC, DST = range(2)
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


def row_plan(request: RowRequest, engine: Engine) -> Plan:
    """The plan, between reorders of what kernels cannot read.  Raises Refused."""
    isa, passed = f32_level(engine.isa), request.passed
    check_tensors(passed, "diff_src", FLOAT_NAMES)
    name = f"rows:{isa}"
    if 0 in passed["diff_src"].dims:
        return Assembly(engine.tuning, engine.isa).plan(name, passed, ("diff_src",))
    last = Refused("")
    for tensors in formats(request):
        wide = {name: request.views.get(name, as_it_is)(tensor) for name, tensor in tensors.items()}
        found = {name: tensor for name, tensor in wide.items() if tensor is not None}
        if len(found) < len(wide):
            continue
        try:
            calls = calls_of(request, found, narrowing_level(tensors["diff_src"].dtype.name, engine.isa), engine)
        except Refused as reason:
            last = reason
            continue
        costs = {spec: cost(spec) for spec, *_ in calls}
        sizes = [tensor.dtype.size_bytes for tensor in tensors.values()]
        phases = phases_of(calls, costs, views(tuple(tensors)), engine.tuning.phases, sizes)
        alike = (name for name, tensor in tensors.items() if tensor == tensors["diff_src"])
        in_place = tuple(name for name in alike if name != "diff_src")
        plan = Plan(name, phases, tensors, {}, {}, outputs=("diff_src",), in_place=in_place)
        return between_reorders(plan, passed, engine.tuning, isa=isa)
    raise last


def as_it_is(tensor: MemoryDesc) -> MemoryDesc:
    return tensor


def formats(request: RowRequest) -> Iterator[Mapping[str, MemoryDesc]]:
    """The tensors as they are, then as copies: all with the axis innermost, those of fewer dims dense."""
    passed = request.passed
    yield passed
    model = with_last(passed["diff_src"], (request.axis,))
    plain = {name: row_major(t.dims, t) for name, t in passed.items() if name in request.views}
    yield {name: plain.get(name) or of_type(model, t.dtype) for name, t in passed.items()}


def calls_of(
    request: RowRequest, tensors: Mapping[str, MemoryDesc], isa: str, engine: Engine
) -> Calls[RowGradientSpec]:
    """Of kernels along rows, or down lanes.  Raises Refused."""
    nest = read_nest(tuple(tensors.values()), tensors["diff_src"].dims, (request.axis,), DST)
    if nest.is_row:
        axis = row_in(nest)
        return [
            (spec_of(request, tensors, isa, "rows", axis, some), box, outer)
            for box, some, outer in row_calls(nest, axis.extent, engine.tuning.elementwise)
        ]
    return lane_calls(request, tensors, isa, engine, nest)


def lane_calls(
    request: RowRequest, tensors: Mapping[str, MemoryDesc], isa: str, engine: Engine, nest: Nest
) -> Calls[RowGradientSpec]:
    """Vectors of a dense loop, each summed along the axis.  Raises Refused."""
    lanes, axis = lanes_in(nest), nest.row
    if max(axis.strides) > MAX_STEP:
        raise Refused("neighbours along the axis are more than 2 GiB apart")
    vector = lanes_of(isa)
    whole = max(1, engine.tuning.elementwise.record_elements // axis.extent // vector) * vector
    return [
        (
            spec_of(request, tensors, isa, "lanes", some, axis),
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
