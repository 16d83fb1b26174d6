"""What waits for data, as a part of a network: the nodes whose dims they decide, and what follows them."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final, TypeVar

from asmdnn.errors import Unimplemented
from asmdnn.network.calls.running import Runnable
from asmdnn.network.declaring import names_of
from asmdnn.network.folding.folding import specialise
from asmdnn.network.folding.remembered import RememberedNodes
from asmdnn.network.graph import NOTHING, Array, Body, Model, Node, TensorType
from asmdnn.network.known import nodes_of
from asmdnn.network.late.nodes import LateNodes, Results, is_defined, late_nodes
from asmdnn.network.narrow.storage import Precision
from asmdnn.network.network import Network
from asmdnn.network.operators.work import PRODUCTS
from asmdnn.network.packs.kept_stages import Cuts, WaitingPart
from asmdnn.network.splitting import SplitBody, reads_of_node
from asmdnn.network.static import StaticGraph
from asmdnn.records import replace

MOST_KEPT: Final = 16  # networks of a rest, one for each choice that data have made
MakeNetwork = Callable[[Model, Precision], Network]
Outputs = tuple[str, ...]
Native = Mapping[str, Results]  # operators of nodes that wait for data, which kernels compute
Made = TypeVar("Made")


def within(precision: Precision, model: Model) -> Precision:
    """What of it is said of the nodes of this model."""
    known = names_of(model)
    return replace(precision, keep_f32=tuple(name for name in precision.keep_f32 if name in known))


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
        native: Native,
    ) -> None:
        self.parts, self.before, self.constants, self.rest, self.calls = parts, before, constants, rest, calls
        self.found, self.late, self.native = found, parts.late_outputs, native

    def prepare(self) -> None:
        """Nothing is known before there are data."""

    def run(self, values: dict[str, Array], into: Mapping[str, Array] | None = None) -> None:
        """Raises InvalidArguments for data that a definition does not take, Unimplemented, OutOfMemory."""
        known = {name: self.value(name, values) for name in self.parts.crossing}
        fixed = {name: x for name, x in known.items() if name in self.constants or self.is_constant(name)}
        given = self.parts.first.constants
        for node, call in self.calls.items():
            known |= zip(node.outputs, call({**given, **known}, {**given, **fixed}), strict=False)
        known |= self.cuts.run(known, self.cut_names)
        values |= self.rest.run(known, {*fixed})

    @cached_property
    def cuts(self) -> LateNodes:
        """Those that no body computes, none of which waits for another one."""
        found = late_nodes(self.defined, self.parts.first.constants, self.cut_names, self.native)
        if found is None:
            node = next(node for node in self.defined if not is_defined(node))
            raise Unimplemented(
                f"{node} waits for data, and goes through lists or bodies with operators that have no definition here: "
                "pass what decides it in constants="
            )
        return found

    @cached_property
    def defined(self) -> list[Node]:
        return [node for node in self.parts.cuts if node not in self.calls]

    @cached_property
    def cut_names(self) -> list[str]:
        """Of tensors: lists stay among the cuts."""
        made = [name for node in self.defined for name in node.outputs if name != NOTHING]
        return [name for name in made if name not in self.parts.lists]

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
        precision: Precision,
        make: MakeNetwork,
        *,
        choices: set[str],
        counted: set[str],
        native: Native,
    ) -> None:
        self.model, self.parts, self.choices, self.counted, self.native = model, parts, choices, counted, native
        self.precision, self.make = precision, make
        whole = Body("", {}, (), parts.rest, {})
        self.is_light = not any(node.op in PRODUCTS or node.domain for node in nodes_of(whole))
        self._networks: dict[object, Network] = {}
        self._models: dict[object, tuple[Model, RememberedNodes]] = {}

    def run(self, known: Mapping[str, Array], fixed: set[str]) -> dict[str, Array]:
        """The outputs, of values by name; fixed: those that are the same in every call."""
        outputs = {name: known[name] for name in self.parts.late_outputs if name in known}
        missing = tuple(name for name in self.parts.late_outputs if name not in known)
        if missing and self.is_light and self.walk is not None:
            outputs |= self.walk.run(known, missing)
        elif missing and self.is_light:
            model, remembered = kept(self._models, kinds_of(known), lambda: self.light(missing, known))
            graph = specialise(model, {}, known, remembered)
            outputs |= {name: data_of(graph, name) for name in missing}
        elif missing:
            choices = {name: known[name] for name in sorted(self.choices) if name in known}
            key = (kinds_of(known), tuple(x.tobytes() for x in choices.values()))
            net = kept(self._networks, key, lambda: self.network(missing, known, fixed | choices.keys()))
            outputs |= net.run({name: known[name] for name in net.inputs})
        return outputs

    @cached_property
    def walk(self) -> LateNodes | None:
        """All nodes by definitions; None if some are no definitions, such as loops and lists."""
        return late_nodes(self.parts.rest, self.model.body.constants, self.parts.late_outputs, self.native)

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
