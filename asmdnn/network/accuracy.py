"""What `Network.verify` finds: each step by itself, and how far steps and outputs are from the definitions in the end.

A step by itself gets the operands that it has in the network, so that its difference is its own.  From the inputs on
the definitions are computed twice, in double precision and in f32: what the first says and the second does not is what
f32 costs anybody.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from asmdnn.network.compiled import CompiledSegment
from asmdnn.network.cuts import cut_like
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import Array
from asmdnn.network.joining.stepwise import Stepwise
from asmdnn.network.planned import NetworkPlan
from asmdnn.network.saturation import cut_off, overflown
from asmdnn.network.static import StaticGraph
from asmdnn.network.timing import segments_with_values
from asmdnn.network.verification import Difference, ExaminedGroup, differences, distance, evaluated, largest_number
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class Deviation:
    """How far a step's result or an output is from definitions that were computed from the inputs on, in float64 and in
    f32, as a share of the largest value.  by_itself: of a step, from its definition on the operands that it got.
    infinite: the share of an output of 16 bits that its type does not hold."""

    label: str
    from_f64: float
    from_f32: float
    by_itself: float | None = None
    infinite: float = 0.0

    def __str__(self) -> str:
        alone = "" if self.by_itself is None else f", {self.by_itself:.1e} by itself"
        return f"{self.label}: {self.from_f64:.1e} from float64, {self.from_f32:.1e} from f32{alone}"

    __repr__ = __str__


class Verification(list[Difference]):
    """The differences of all primitives by themselves, in order; and `steps` and `outputs`, largest deviation first.

    As text it is a line for each step and output, and what is saturated.  exact: the outputs by definitions in float64.
    """

    def __init__(
        self,
        found: Iterable[Difference],
        steps: Sequence[Deviation] = (),
        outputs: Sequence[Deviation] = (),
        exact: Mapping[str, Array] = MappingProxyType({}),
    ) -> None:
        super().__init__(found)
        self.exact = dict(exact)
        self.steps, self.outputs = largest_first(steps), largest_first(outputs)

    @property
    def saturated(self) -> list[Difference]:
        """Those whose type cuts numbers off, the largest share first."""
        return sorted((one for one in self if one.saturated), key=lambda one: -one.saturated)

    def __str__(self) -> str:
        cut = [f"  {one.label}: {one.saturated:.2%} saturated" for one in self.saturated]
        beyond = [one for one in self.outputs if one.infinite]
        cut += [f"  output {one.label}: {one.infinite:.2%} infinite, as its type ends before" for one in beyond]
        parts = [("outputs", self.outputs), ("steps", self.steps)]
        lines = [
            line
            for title, several in parts
            for line in (
                f"error of {title} as a share of the largest value, largest first:",
                *(f"  {one}" for one in several),
            )
        ]
        return "\n".join([*lines, *(cut or ["nothing is saturated"])])

    __repr__ = __str__  # a REPL shows the table


def largest_first(several: Sequence[Deviation]) -> tuple[Deviation, ...]:
    return tuple(sorted(several, key=lambda one: -one.from_f64))


def verification(plan: NetworkPlan, feeds: Mapping[str, Array], outputs: Mapping[str, Array]) -> Verification:
    """Of the primitives of a network.  outputs: what it returns for these feeds."""
    graph, found, groups, others = plan.graph, list[ExaminedGroup](), list[Group](), list[Group]()
    for segment, values in segments_with_values(plan, feeds):
        if isinstance(segment, CompiledSegment):
            groups += segment.segment.groups
            found += differences(graph, Stepwise(segment, plan.engine, values), values)
        else:
            groups += segment.groups
            others += segment.groups
    exact, single = (definitions(graph, groups, feeds, dtype) for dtype in (np.float64, np.float32))
    steps = [
        Deviation(
            f"{each.difference.label} ({each.difference.implementation})",
            share(each.native, exact[each.difference.result]),
            share(each.native, single[each.difference.result]),
            by_itself=each.difference.share,
        )
        for each in found
    ]
    ends = [
        Deviation(
            name,
            share(array, cut_like(exact[graph.outputs[name]], array)),
            share(array, cut_like(single[graph.outputs[name]], array)),
            infinite=overflown(graph, name, exact),
        )
        for name, array in outputs.items()
    ]
    kept = {name: cut_like(exact[graph.outputs[name]], array) for name, array in outputs.items()}
    return Verification([*(each.difference for each in found), *cut_by_numpy(graph, others, exact)], steps, ends, kept)


def cut_by_numpy(graph: StaticGraph, groups: Sequence[Group], exact: Mapping[str, Array]) -> list[Difference]:
    """What saturates in nodes that numpy computes, which are their definitions."""
    shares = [(group, cut_off(graph, group.nodes, exact)) for group in groups]
    return [Difference(one.label, "numpy", 0.0, 0.0, 0.0, saturated=share) for one, share in shares if share]


def definitions(
    graph: StaticGraph, groups: Sequence[Group], feeds: Mapping[str, Array], dtype: type[np.floating]
) -> dict[str, Array]:
    """All values by the operators' definitions, from the inputs on, where f32 is computed with as `dtype`."""
    known = dict(feeds) | {name: value.data for name, value in graph.values.items() if value.data is not None}
    known = {name: in_type(x, dtype) for name, x in known.items()}
    for group in groups:
        known |= {name: in_type(x, dtype) for name, x in evaluated(group, known).items()}
    return known


def in_type(x: Array, dtype: type[np.floating]) -> Array:
    return x.astype(dtype, copy=False) if x.dtype == np.float32 else x


def share(native: Array, exact: Array) -> float:
    """The largest difference over the largest value."""
    worst, largest = distance(native.reshape(exact.shape).astype(np.float64), exact), largest_number(exact)
    return worst / largest if largest and worst else float(np.inf if worst else 0.0)
