"""Networks in which data decide dims: how many boxes are found, which elements are not zero.

What does not depend on that is planned as any network.  After it the nodes whose dims data decide are computed by their
definitions, and then there are data for the rest.  A rest without products or windows is computed by definitions, too,
so that no call waits for a plan; any other is a network with open dims of its own, planned for what it meets.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from asmdnn.forking import importing
from asmdnn.network.body_calls import CALLS
from asmdnn.network.calls.running import Runnable
from asmdnn.network.declaring import check_kept, constant_of, mapping
from asmdnn.network.graph import NOTHING, Array, Body, Model, Node
from asmdnn.network.late.boxes import NativeBoxes
from asmdnn.network.late.lists import OPERATORS
from asmdnn.network.late.parts import MakeNetwork, Native, Outputs, PartOfData, RestOfModel, within
from asmdnn.network.narrow.storage import Precision
from asmdnn.network.network import Network
from asmdnn.network.operators.table import operator_of
from asmdnn.network.splitting import DecidedByData, SplitBody, is_of_lists, split
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import replace

if TYPE_CHECKING:  # what is kept on disk runs without planners
    from asmdnn.network.planned import NetworkPlan
    from asmdnn.network.shared import SharedByShapes

MOST_CUTS: Final = 64  # of one part, one behind the other: each is found by planning up to it
UNKNOWN: Final = (None, None)  # dims and type of an output, before there are data


class Stages:
    """Plans of a model, whole or in stages; what they share of weights.  The arguments are those of `load_onnx`; make:
    the network of a rest, whose dims may be open."""

    def __init__(
        self,
        model: Model,
        constants: Any,
        engine: Engine,
        fallback: str | None,
        precision: Precision,
        make: MakeNetwork,
    ) -> None:
        self.model, self.constants, self.engine, self.fallback = model, constants, engine, fallback
        self.precision, self.make = precision, make
        self.shared = dict[tuple[Outputs, ...], "SharedByShapes"]()
        self.native: Native = {"NonMaxSuppression": NativeBoxes(engine)}

    def plan(self, shapes: Any) -> "NetworkPlan":
        """For inputs of these dims.  Raises as `plan`, and DecidedByData unless nodes may be computed in numpy."""
        found = list[DecidedByData]()
        try:
            return self.planned(self.model, shapes, self.precision, found)
        except DecidedByData as error:
            if self.fallback is None or self.model.states or self.precision.io != "file":
                raise
            found += [error, *error.others]
            passes = 1
        nodes = {node.outputs for node in self.model.body.nodes}
        check_kept(self.model, self.precision)
        while nodes.issuperset(one.outputs for one in found):
            parts = split_at(self.model.body, found)
            before = replace(self.model, body=parts.first, borders={})
            try:
                first = self.planned(before, shapes, within(self.precision, before), found)
                return self.with_rest(parts, first, found)
            except DecidedByData as error:
                passes += 1
                if passes > MOST_CUTS or error.outputs in [one.outputs for one in found]:
                    raise
                found += [error, *error.others]
        raise found[-1]

    def planned(self, model: Model, shapes: Any, precision: Precision, cut: Sequence[DecidedByData]) -> "NetworkPlan":
        with importing():
            from asmdnn.network.planned import plan
            from asmdnn.network.shared import SharedByShapes

        shared = self.shared.setdefault(tuple(one.outputs for one in cut), SharedByShapes())
        return plan(
            model,
            shapes,
            self.constants,
            engine=self.engine,
            fallback=self.fallback,
            precision=precision,
            shared=shared,
        )

    def with_rest(self, parts: SplitBody, first: "NetworkPlan", found: Sequence[DecidedByData]) -> "NetworkPlan":
        """The plan of the first part, as one of the whole model."""
        body, before = self.model.body, first.runnable
        last = self.part(parts, before, found)
        outputs: dict[str, Any] = {**before.outputs, **dict.fromkeys(parts.late_outputs, UNKNOWN)}
        results = {**before.results, **{name: name for name in parts.late_outputs}}
        late = len(parts.cuts) + len(parts.rest)
        whole = replace(
            before,
            title=f"{body.name!r}: {len(body.nodes)} nodes, {late} of them where data decide dims",
            outputs={name: outputs[name] for name in body.outputs},
            results={name: results[name] for name in body.outputs},
            parts=(*before.parts, last),
            borders=self.model.borders,
            cuts={name: cut for name, cut in before.cuts.items() if name in body.outputs},
        )
        later = [((node,), "data decide its dims") for node in parts.cuts]
        way = "by definition" if last.rest.is_light else "planned"
        later += [((node,), f"{way} when data have decided its dims") for node in parts.rest]
        return replace(first, model=self.model, runnable=whole, precision=self.precision, later=tuple(later))

    def part_at(self, found: Sequence[DecidedByData], before: Runnable) -> "PartOfData":
        """What waits for data, of cuts that were found earlier."""
        return self.part(split_at(self.model.body, found), before, found)

    def part(self, parts: SplitBody, before: Runnable, found: Sequence[DecidedByData]) -> "PartOfData":
        """before: what runs up to there."""
        given, inputs = mapping("constants", self.constants), self.model.body.inputs
        constants = {name: constant_of(name, inputs[name], data) for name, data in given.items()}
        evaluated = {node.outputs for node in parts.cuts}
        choices = {one.value for one in found if one.outputs not in evaluated} - {NOTHING}
        rest = RestOfModel(
            self.model, parts, self.precision, self.make,
            choices=choices, counted={*before.cuts}, native=self.native,
        )  # fmt: skip
        cuts = tuple((one.outputs, one.value) for one in found)
        return PartOfData(parts, before, constants, rest=rest, calls=self.calls(parts), found=cuts, native=self.native)

    def calls(self, parts: SplitBody) -> dict[Node, Callable[..., Sequence[Array]]]:
        """Of cuts with bodies."""

        def make(model: Model) -> Network:
            return self.make(model, within(self.precision, model))

        called = (node for node in parts.cuts if is_called(node) and not is_of_lists(node, parts.lists))
        return {node: CALLS[node.op](self.model, node, make) for node in called}


def split_at(body: Body, found: Sequence[DecidedByData]) -> SplitBody:
    nodes = {node.outputs: node for node in body.nodes}
    cuts = {one.outputs for one in found}
    return split(body, cuts, {outputs for outputs in cuts if is_evaluated(nodes[outputs])})


def is_evaluated(node: Node) -> bool:
    """Whether it is computed as soon as there are data: by a definition, by networks of its bodies, or as a list."""
    return operator_of(node) is not None or is_called(node) or (node.op in OPERATORS and not node.domain)


def is_called(node: Node) -> bool:
    """Whether its bodies are networks of their own."""
    return node.op in CALLS and not node.domain
