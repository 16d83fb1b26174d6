"""Primitives that work along one axis: kernels for dense rows, or for lanes side by side with the axis across.

Three implementations, best first: `rows`, `lanes`, and rows of a copy in which the axis is the last dim.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from asmdnn.generators.contract import KernelSpec
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import views
from asmdnn.planning.plan import Plan
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.description import Description
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, implementations_of
from asmdnn.primitives.reorder.copies import WORD, between_reorders
from asmdnn.primitives.shapes.nests import check_copied
from asmdnn.primitives.shapes.row_calls import Calls, phases_of
from asmdnn.records import dataclass

ROWS, LANES = "rows", "lanes"  # the implementations
Tensors = Mapping[str, MemoryDesc]
AnySpec = TypeVar("AnySpec", bound=KernelSpec)
Desc = TypeVar("Desc", bound=Description)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AlongAxis(Generic[AnySpec]):
    """What is asked of such a primitive.

    passed: its tensors as a caller passes them; tensors: of the types that kernels take.
    """

    passed: Tensors
    tensors: Tensors
    isa: str
    tuning: Tuning

    def rows(self, tensors: Tensors) -> Calls[AnySpec]:
        """The calls on dense rows along the axis.  Raises Refused."""
        raise NotImplementedError

    def lanes(self, tensors: Tensors) -> Calls[AnySpec]:
        """The calls on vectors of a dense loop, with the axis across.  Raises Refused."""
        raise NotImplementedError

    def axis_last(self) -> Tensors:
        """The tensors in formats with dense rows along the axis."""
        raise NotImplementedError

    def cost(self, spec: AnySpec) -> int:
        """Expected cycles of a call."""
        raise NotImplementedError

    def arguments(self, tensors: Tensors) -> Tensors:
        """What the plan calls these tensors."""
        return tensors

    def in_place(self, tensors: Tensors) -> bool:
        """Whether src may be the memory of dst."""
        return tensors["src"] == tensors["dst"]

    def planned(self, way: str, calls: Calls[AnySpec], tensors: Tensors) -> Plan:
        """The plan of these calls, between reorders of tensors that are passed otherwise."""
        costs = {spec: self.cost(spec) for spec in dict.fromkeys(spec for spec, *_ in calls)}
        sizes = [tensor.dtype.size_bytes for tensor in tensors.values()]
        plan = Plan(
            implementation=f"{way}:{self.isa}",
            phases=phases_of(calls, costs, views(tuple(tensors)), self.tuning.phases, sizes),
            tensors=self.arguments(tensors),
            constants={},
            scratch_bytes={},
            outputs=results(tensors),
            in_place=(("src", "dst"),) if self.in_place(tensors) else (),
        )
        return between_reorders(plan, self.arguments(self.passed), self.tuning, isa=self.isa)


def results(tensors: Tensors) -> tuple[str, ...]:
    """The names of those that are written."""
    return tuple(name for name in tensors if name in ("dst", "values"))


def along_rows(request: AlongAxis[AnySpec]) -> Plan:
    if 0 in request.passed["src"].dims:
        empty = Assembly(request.tuning, request.isa)
        return empty.plan(f"{ROWS}:{request.isa}", request.arguments(request.passed), results(request.passed))
    return request.planned(ROWS, request.rows(request.tensors), request.tensors)


def across_lanes(request: AlongAxis[AnySpec]) -> Plan:
    return request.planned(LANES, request.lanes(request.tensors), request.tensors)


def along_copied_rows(request: AlongAxis[AnySpec]) -> Plan:
    check_copied(lambda: request.rows(request.tensors), lambda: request.lanes(request.tensors))
    tensors = request.axis_last()
    return request.planned(ROWS, request.rows(tensors), tensors)


def implementations_along(
    request_of: Callable[[Desc, Attr, Engine], AlongAxis[AnySpec]],
) -> Callable[[Desc, Attr, Engine], Iterator[Answer]]:
    """The planner of such a primitive."""
    ways = {ROWS: along_rows, LANES: across_lanes, f"{WORD}+{ROWS}": along_copied_rows}
    return implementations_of(request_of, ways, f32_level)
