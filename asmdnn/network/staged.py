"""Networks in which data decide dims: how many boxes are found, which elements are not zero.

What does not depend on that is planned as any network.  After it the nodes whose dims data decide are computed by their
definitions, and then there are data for the rest.  A rest without products or windows is computed by definitions, too,
so that no call waits for a plan; any other is a network with open dims of its own, planned for what it meets.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from asmdnn.forking import importing
from asmdnn.network.body_calls import CALLS
from asmdnn.network.calls.running import Runnable
from asmdnn.network.declaring import check_kept, constant_of, mapping, names_of
from asmdnn.network.folding.folding import specialise
from asmdnn.network.folding.remembered import RememberedNodes
from asmdnn.network.graph import NOTHING, Array, Body, Model, Node, TensorType
from asmdnn.network.known import nodes_of
from asmdnn.network.narrow.storage import Precision
from asmdnn.network.network import Network
from asmdnn.network.operators.evaluation import results_of
from asmdnn.network.operators.table import operator_of
from asmdnn.network.operators.work import PRODUCTS
from asmdnn.network.packs.kept_stages import Cuts, WaitingPart
from asmdnn.network.splitting import DecidedByData, SplitBody, reads_of_node, split
from asmdnn.network.static import StaticGraph
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import replace

if TYPE_CHECKING:  # what is kept on disk runs without planners
    from asmdnn.network.planned import NetworkPlan
    from asmdnn.network.shared import SharedByShapes

MOST_CUTS: Final = 64  # of one part: each is found by planning up to it
MOST_KEPT: Final = 16  # networks of a rest, one for each choice that data have made
UNKNOWN: Final = (None, None)  # dims and type of an output, before there are data
MakeNetwork = Callable[[Model, Precision], Network]
Outputs = tuple[str, ...]
Made = TypeVar("Made")


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

    def plan(self, shapes: Any) -> "NetworkPlan":
        """For inputs of these dims.  Raises as `plan`, and DecidedByData unless nodes may be computed in numpy."""
        found = list[DecidedByData]()
        try:
            return self.planned(self.model, shapes, self.precision, found)
        except DecidedByData as error:
            if self.fallback is None or self.model.states or self.precision.io != "file":
                raise
            found.append(error)
        nodes = {node.outputs for node in self.model.body.nodes}
        check_kept(self.model, self.precision)
        while found[-1].outputs in nodes:
            parts = split_at(self.model.body, found)
            before = replace(self.model, body=parts.first, borders={})
            try:
                first = self.planned(before, shapes, within(self.precision, before), found)
                return self.with_rest(parts, first, found)
            except DecidedByData as error:
                if len(found) == MOST_CUTS or error.outputs in [one.outputs for one in found]:
                    raise
                found.append(error)
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
        rest = RestOfModel(self.model, parts, choices, {*before.cuts}, self.precision, self.make)
        cuts = tuple((one.outputs, one.value) for one in found)
        return PartOfData(parts, before, constants, rest=rest, calls=self.calls(parts), found=cuts)

    def calls(self, parts: SplitBody) -> dict[Node, Callable[..., Sequence[Array]]]:
        """Of cuts with bodies."""

        def make(model: Model) -> Network:
            return self.make(model, within(self.precision, model))

        return {node: CALLS[node.op](self.model, node, make) for node in parts.cuts if is_called(node)}


def within(precision: Precision, model: Model) -> Precision:
    """What of it is said of the nodes of this model."""
    known = names_of(model)
    return replace(precision, keep_f32=tuple(name for name in precision.keep_f32 if name in known))


def split_at(body: Body, found: Sequence[DecidedByData]) -> SplitBody:
    nodes = {node.outputs: node for node in body.nodes}
    cuts = {one.outputs for one in found}
    return split(body, cuts, {outputs for outputs in cuts if operator_of(nodes[outputs]) or is_called(nodes[outputs])})


def is_called(node: Node) -> bool:
    """Whether its bodies are networks of their own."""
    return node.op in CALLS and not node.domain


def data_of(graph: StaticGraph, output: str) -> Array:
    """Of a graph in which all is constant."""
    data = graph.values[graph.outputs[output]].data
    assert data is not None, "a rest without products keeps no integers"
    return data


class PartOfData(WaitingPart):
    """What waits for data, as a part of a network: the nodes whose dims they decide, then the rest."""

    def __init__(
        self,
        parts: SplitBody,
        before: Runnable,
        constants: Mapping[str, Array],
        *,
        rest: "RestOfModel",
        calls: Mapping[Node, Callable[..., Sequence[Array]]],
        found: Cuts,
    ) -> None:
        self.parts, self.before, self.constants, self.rest, self.calls = parts, before, constants, rest, calls
        self.found, self.late = found, parts.late_outputs

    def prepare(self) -> None:
        """Nothing is known before there are data."""

    def run(self, values: dict[str, Array], into: Mapping[str, Array] | None = None) -> None:
        """Raises InvalidArguments for data that a definition does not take, Unimplemented, OutOfMemory."""
        known = {name: self.value(name, values) for name in self.parts.crossing}
        fixed = {name: x for name, x in known.items() if name in self.constants or self.is_constant(name)}
        given = self.parts.first.constants
        for node in self.parts.cuts:
            if node in self.calls:
                results = self.calls[node]({**given, **known}, {**given, **fixed})
            else:
                results = results_of(node, [None if x == NOTHING else known.get(x, given.get(x)) for x in node.inputs])
            known |= zip(node.outputs, results, strict=False)
        values |= self.rest.run(known, {*fixed})

    def is_constant(self, name: str) -> bool:
        is_known = not isinstance(self.before.results.get(name, name), str)
        return is_known and name not in self.before.cuts

    def value(self, name: str, values: Mapping[str, Array]) -> Array:
        """One that was made before, as the model declares it, or that is given."""
        if name in self.before.results:
            return self.before.output(name, values, {})
        return self.constants[name] if name in self.constants else values[name]


class RestOfModel:
    """What follows data.  choices: values whose data decide what there is to be planned; counted: those that come with
    as many places as data decide."""

    def __init__(
        self,
        model: Model,
        parts: SplitBody,
        choices: set[str],
        counted: set[str],
        precision: Precision,
        make: MakeNetwork,
    ) -> None:
        self.model, self.parts, self.choices, self.counted = model, parts, choices, counted
        self.precision, self.make = precision, make
        whole = Body("", {}, (), parts.rest, {})
        self.is_light = not any(node.op in PRODUCTS or node.domain for node in nodes_of(whole))
        self._networks: dict[object, Network] = {}
        self._models: dict[object, tuple[Model, RememberedNodes]] = {}

    def run(self, known: Mapping[str, Array], fixed: set[str]) -> dict[str, Array]:
        """The outputs, of values by name; fixed: those that are the same in every call."""
        outputs = {name: known[name] for name in self.parts.late_outputs if name in known}
        missing = tuple(name for name in self.parts.late_outputs if name not in known)
        if missing and self.is_light:
            model, remembered = kept(self._models, kinds_of(known), lambda: self.light(missing, known))
            graph = specialise(model, {}, known, remembered)
            outputs |= {name: data_of(graph, name) for name in missing}
        elif missing:
            choices = {name: known[name] for name in sorted(self.choices) if name in known}
            key = (kinds_of(known), tuple(x.tobytes() for x in choices.values()))
            net = kept(self._networks, key, lambda: self.network(missing, known, fixed | choices.keys()))
            outputs |= net.run({name: known[name] for name in net.inputs})
        return outputs

    def light(self, outputs: Outputs, known: Mapping[str, Array]) -> tuple[Model, RememberedNodes]:
        """What definitions compute, all that is known being constants."""
        body = self.body(outputs, known, set())
        return replace(self.model, body=body, borders={}), RememberedNodes()

    def network(self, outputs: Outputs, known: Mapping[str, Array], fixed: set[str]) -> Network:
        """Of nodes whose choices are made."""
        model = replace(self.model, body=self.body(outputs, known, fixed), borders={})
        return self.make(model, within(self.precision, model))

    def body(self, outputs: Outputs, known: Mapping[str, Array], fixed: set[str]) -> Body:
        """The nodes on what is known: what is fixed is a constant, the rest inputs, whose dims are open where they are
        data's."""
        early = {*self.parts.crossing} - self.counted
        inputs = {
            name: TensorType(x.dtype, x.shape if name in early else (None,) * x.ndim)
            for name, x in known.items()
            if name not in fixed
        }
        read = {*outputs, *(name for node in self.parts.rest for name in reads_of_node(node))}
        constants = {name: x for name, x in self.model.body.constants.items() if name in read}
        constants |= {name: known[name] for name in fixed}
        return Body(self.model.body.name, inputs, outputs, self.parts.rest, constants)


def kinds_of(arrays: Mapping[str, Array]) -> object:
    """Types and numbers of dims: by these networks are open, or not."""
    return tuple((name, x.dtype, x.ndim) for name, x in arrays.items())


def kept(found: dict[object, Made], key: object, make: Callable[[], Made]) -> Made:
    """What was made for a key, of MOST_KEPT at most."""
    if key not in found:
        if len(found) >= MOST_KEPT:
            found.clear()
        found[key] = make()
    return found[key]
