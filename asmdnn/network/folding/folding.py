"""Specialisation: with the dims of inputs known, everything that depends on dims and constants is computed.

What is left are the nodes that see data of the caller.  Shape and Size become constants, a constant condition chooses
the branch of an If, a loop is its body as often as constants say (bodies.py), nodes that change nothing are renamed
away.
"""

from collections.abc import Collection, Mapping
from functools import cached_property

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, shown
from asmdnn.network.counted.axes import counted_axes
from asmdnn.network.declaring import Shapes, check_names, constant_of, integer_dims, shape_of
from asmdnn.network.decompositions.halves import in_type_of, in_types
from asmdnn.network.decompositions.table import decomposed, decomposed_foreign, foreign
from asmdnn.network.element_types import ELEMENTS
from asmdnn.network.folding.bodies import BODIES, scope_of, scoped
from asmdnn.network.folding.bounds import FoldingBounds, check_room
from asmdnn.network.folding.no_elements import is_nothing, nothing
from asmdnn.network.folding.prepared import PreparedBody, prepared
from asmdnn.network.folding.remembered import LARGEST_RESULT_BYTES, Remembered
from asmdnn.network.folding.sequences import SEQUENCES, taken
from asmdnn.network.folding.traced_constants import SEE_DIMS, is_traced, of_traced, seen_dims
from asmdnn.network.graph import NOTHING, Array, Body, Model, Node
from asmdnn.network.known import sentence_of_unknown
from asmdnn.network.operators.checks import check_node, check_outputs, without_empty_end
from asmdnn.network.operators.definition import Operator, Value
from asmdnn.network.operators.evaluation import raise_own
from asmdnn.network.operators.own import DRAWN, OWN
from asmdnn.network.operators.sources import mask_of_all
from asmdnn.network.operators.table import operator_of
from asmdnn.network.quantized.blocks import with_blocked_products
from asmdnn.network.splitting import DecidedByData, WaitingNodes, decided_by_data
from asmdnn.network.static import StaticGraph, needed
from asmdnn.records import replace

MOST_INLINED = 5_000  # nodes of the bodies of a graph with loops, each as often as it comes
RENAMED = {"Identity", "Dropout"}  # nodes whose first result is their first input


def specialise(
    model: Model, shapes: Shapes, constants: Mapping[str, Array], remembered: Remembered | None = None
) -> StaticGraph:
    """The graph for inputs of these shapes; inputs among `constants` are no inputs any more.

    remembered: what is known of the model from other shapes, and learns more.

    Raises InvalidArguments for a name that is no input, a shape that does not fit or is missing, and nodes whose
    operands do not fit together; Unimplemented for unknown operators and dims that depend on data.
    """
    remembered = remembered or Remembered()
    prepared_body = remembered.body(lambda: prepared(with_blocked_products(model.body)))
    body = prepared_body.whole
    check_names(body.inputs, shapes, constants)
    folding = Folding(prepared_body, remembered)
    for name, declared in body.inputs.items():
        if name in constants:
            data = constant_of(name, declared, constants[name])
            folding.values[name] = Value(data.shape, data.dtype, data)
        else:
            folding.values[name] = Value(shape_of(name, declared, shapes.get(name)), declared.dtype)
    with np.errstate(all="ignore"):  # whatever constants are
        folding.add_all()
    outputs = {name: folding.known(name) for name in body.outputs}
    if folding.counted is not None:
        outputs |= folding.counted.counts(outputs)
    for name, known in outputs.items():
        if known in folding.sequences:
            raise Unimplemented(
                f"output {name} is a list, only tensors leave a network: join it, or take elements of it"
            )
    nodes = needed(folding.nodes, outputs.values())
    inputs = tuple(name for name in body.inputs if name not in constants)
    used = {*inputs, *outputs.values(), *(x for node in nodes for x in (*node.inputs, *node.outputs))} - {NOTHING}
    return StaticGraph(inputs, outputs, nodes, {name: folding.values[name] for name in folding.values if name in used})


class Folding:
    """Values and nodes as they come together."""

    def __init__(self, body: PreparedBody, remembered: Remembered | None = None) -> None:
        self.body, self.remembered = body, remembered or Remembered()
        self.bounds = FoldingBounds(body.constant_bytes)
        self.values: dict[str, Value] = {}
        self.sequences: dict[str, tuple[str, ...]] = {}
        self.nodes: list[Node] = []
        self.renamed: dict[str, str] = {}
        self.branches = self.inlined_nodes = 0
        self.has_loops = False
        self.kept_integers: set[str] = set()  # floats of constants that stay integers
        self.counted = counted_axes(self, body.whole)

    def add_all(self) -> None:
        """All nodes of the model's body, whose names are known here."""
        self.values |= self.body.constants
        self.kept_integers.update(self.body.kept_integers)
        take = self.node if self.counted is None else self.counted.node
        waiting = WaitingNodes()
        for node in self.body.nodes:
            if waiting.has(node):
                continue
            try:
                take(self.with_known_names(node))
            except DecidedByData as error:
                waiting.add(node, error)
                if self.counted is not None:  # it has taken in half of the node
                    break
        waiting.check()

    def with_known_names(self, node: Node) -> Node:
        inputs = tuple(map(self.known, node.inputs))
        return self.remembered.renamed(node, inputs, lambda: replace(node, inputs=inputs))

    def known(self, name: str) -> str:
        """The name under which a value is kept."""
        while name in self.renamed:
            name = self.renamed[name]
        return name

    def node(self, node: Node) -> None:
        if node.op in BODIES and not node.domain:
            check_node(node)
            self.take(BODIES[node.op](self, node))
            return
        if node.op in SEQUENCES and not node.domain:
            check_node(node)
            self.take(taken(self, without_empty_end(node)))
            return
        if node.op in RENAMED and node.inputs[:1] and node.inputs[0] in self.sequences:
            self.rename(node.outputs[0], node.inputs[0])
            return
        operator, other = operator_of(node), foreign(node)
        if other is not None:
            node = without_empty_end(node)
            self.check_tensors(node)
            self.take(in_type_of(self, node, decomposed_foreign(self, node, other)))
            return
        if operator is None:
            raise Unimplemented(sentence_of_unknown(node, self.body.whole))
        self.remembered.check(node, check_node)
        node = without_empty_end(node)
        if node.op in RENAMED or self.is_cast_to_itself(node):
            self.pass_on(node)
            return
        self.check_tensors(node)
        inputs = [self.values[name] if name != NOTHING else None for name in node.inputs]
        try:
            self.compute(node, operator, inputs)
        except Exception as error:
            raise_own(error, node, inputs)

    def check_tensors(self, node: Node) -> None:
        """Raise InvalidArguments for lists."""
        if self.sequences:
            for name in node.inputs:
                if name in self.sequences:
                    raise InvalidArguments(f"{node} reads {shown(name)}, which is a list: {node.op} takes tensors")

    def take(self, results: Mapping[str, str]) -> None:
        """Values under other names, too."""
        for name, known in results.items():
            self.rename(name, known)

    def pass_on(self, node: Node) -> None:
        """The first input as the first result; of Dropout, a mask that keeps all as the second."""
        if node.op == "Dropout" and self.is_training(*node.inputs[1:3]):
            raise Unimplemented(f"{node} has training_mode true: networks are run, not trained")
        self.rename(node.outputs[0], node.inputs[0])
        for name in node.outputs[1:]:
            kept = mask_of_all(node, self.values[node.inputs[0]])
            self.values[name] = Value(kept.shape, kept.dtype, kept)

    def is_training(self, ratio: str = NOTHING, training: str = NOTHING) -> bool:
        if training == NOTHING:
            return False
        share, mode = (self.values[name].data if name != NOTHING else None for name in (ratio, training))
        return (mode is None or bool(np.any(mode))) and (share is None or bool(np.any(share)))

    def is_cast_to_itself(self, node: Node) -> bool:
        return (
            node.op == "Cast"
            and node.get("to") in ELEMENTS
            and self.values[node.inputs[0]].dtype == ELEMENTS[node.get("to")]
        )

    def compute(self, node: Node, operator: Operator, inputs: list[Value | None]) -> None:
        """The results if they are known, or else their types."""
        is_own = node.domain == OWN and (node.op == "Written" or (node.op == DRAWN and not inputs))
        is_known = all(value is None or value.data is not None for value in inputs) and not is_own
        if (is_known and node.outputs[0] not in self.kept_integers) or node.op in SEE_DIMS:
            results = self.computed(node, operator, inputs)
            check_outputs(node, len(results))
            self.values |= zip(node.outputs, results, strict=False)
            return
        for i in operator.needs:
            if i < len(inputs) and inputs[i] is not None and inputs[i].data is None:  # type: ignore[union-attr]
                raise decided_by_data(node, node.inputs[i])
        types = operator.types(node, *inputs)
        check_room(node, types)
        check_outputs(node, len(types))
        if is_nothing(node, types):
            self.values |= zip(node.outputs, nothing(types), strict=False)
            return
        known = decomposed(self, node)
        if known is not None:
            declared = {name: dtype for name, (_, dtype) in zip(node.outputs, types, strict=False)}
            self.take(in_types(self, known, declared))
            return
        for name, (shape, dtype) in zip(node.outputs, types, strict=False):
            self.values[name] = Value(integer_dims(shape), np.dtype(dtype))
        self.nodes.append(node)

    def computed(self, node: Node, operator: Operator, inputs: list[Value | None]) -> list[Value]:
        """The results of a node whose operands are constants, or of which it sees the dims alone."""
        if node.op in SEE_DIMS:
            dims = seen_dims(node, inputs[0])
            return [Value(dims.shape, np.dtype(np.int64), dims)]
        data = [value and value.data for value in inputs]
        if any(map(is_traced, data)):
            return of_traced(node, operator, inputs)

        def make() -> tuple[Array, ...]:
            types = operator.types(node, *inputs) if operator.infer else []
            self.bounds.spend(node, inputs, types)
            results = tuple(map(np.asarray, operator.results(node, *data)))
            if not operator.infer:
                self.bounds.spend(node, (), [(array.shape, array.dtype) for array in results])
            return results

        most = None if node.op == "Constant" else LARGEST_RESULT_BYTES
        arrays = self.remembered.arrays((node,), data, make, most)
        return [Value(array.shape, array.dtype, array) for array in arrays]

    @cached_property
    def scope(self) -> str:
        return scope_of(self.body.whole)

    def inlined(self, body: Body, inputs: Mapping[str, str]) -> list[str]:
        """The nodes of a body in the place of its node; returns its results.  inputs: values for the body's own."""
        self.branches += 1
        self.inlined_nodes += 1 + len(body.nodes)
        self.has_loops |= bool(inputs)
        if self.has_loops and self.inlined_nodes > MOST_INLINED:
            what = f"the rounds of loops have more than {MOST_INLINED} nodes together, too many to unroll"
            raise DecidedByData(f"{what}: load the model with fallback='numpy', which calls each round")
        outer, own = dict(self.renamed), scoped(body, f"{self.scope}{self.branches}/")
        inputs = self.apart(inputs, {*own, *inputs})
        for name, inside in {**own, **inputs}.items():
            self.renamed[name] = inside
        for name, data in body.constants.items():
            self.values[own[name]] = Value(data.shape, data.dtype, data)
        for inner in body.nodes:
            known = self.with_known_names(inner)
            outputs = tuple(own.get(name, name) for name in inner.outputs)
            self.node(
                Node(
                    known.op,
                    known.inputs,
                    outputs,
                    attributes=known.attributes,
                    name=known.name,
                    domain=known.domain,
                    opset=known.opset,
                )
            )
        found = [self.known(name) for name in body.outputs]
        self.renamed = {**outer, **{k: v for k, v in self.renamed.items() if k.startswith(self.scope)}}
        return found

    def apart(self, inputs: Mapping[str, str], inside: Collection[str]) -> dict[str, str]:
        """Values for a body; those of which it calls a value of its own the same get other names."""
        found = dict(inputs)
        for name, given in inputs.items():
            if given in inside:
                data = self.values[given].data if given in self.values else None
                if data is None:
                    raise InvalidArguments(f"{shown(given)} names a value of a body and one that the body is given")
                found[name] = self.constant(f"given {self.branches}/{given}", data)
        return found

    def maker(self, name: str) -> Node | None:
        """The node that makes a value; none of constants and inputs."""
        return next((node for node in reversed(self.nodes) if name in node.outputs), None)

    def constant(self, name: str, data: Array) -> str:
        """A value of its own with this data."""
        self.values[name] = Value(data.shape, data.dtype, data)
        return name

    def rename(self, name: str, known: str) -> None:
        """Whoever reads `name` from now on reads `known`."""
        if name == NOTHING:
            return
        if known not in self.values and known not in self.sequences:
            raise InvalidArguments(f"{shown(known)} is read before it is made")
        self.renamed[name] = known
