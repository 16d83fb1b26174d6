"""Nodes in order, computed by their definitions on arrays that are there, as soon as data have decided their dims.

What specialisation finds out of nodes that wait for data, it would find out again in each call.  Here it is found once:
the definition of each node, what depends on constants alone, the bodies of branches.  A call is then a walk.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Final

import numpy as np

from asmdnn.errors import AsmdnnError, InvalidArguments
from asmdnn.network.decompositions.table import foreign
from asmdnn.network.folding.bounds import VIEWS, FoldingBounds
from asmdnn.network.folding.remembered import LARGEST_RESULT_BYTES
from asmdnn.network.folding.traced_constants import SEE_DIMS, seen_dims
from asmdnn.network.graph import NOTHING, Array, Body, Node
from asmdnn.network.late.lists import OPERATORS, inputs_of, tensor
from asmdnn.network.late.rounds import BODIES, BRANCHES, Step, Values
from asmdnn.network.operators.checks import check_node, check_outputs, without_empty_end
from asmdnn.network.operators.definition import Operator, Value, ints
from asmdnn.network.operators.evaluation import raise_own
from asmdnn.network.operators.table import operator_of
from asmdnn.network.splitting import reads_of_node

# Operators whose results have at most as many elements as there are ways to take one of each operand.
OF_SIZES: Final = VIEWS - {"Expand"} | {
    "Abs", "Add", "And", "Cast", "Ceil", "Clip", "Compress", "Concat", "Div", "Equal", "Exp", "Flatten", "Floor",
    "Gather", "GatherElements", "GatherND", "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Log",
    "Max", "Min", "Mul", "NonMaxSuppression", "NonZero", "Not", "Or", "ReduceMax", "ReduceMin", "ReduceSum",
    "Reshape", "Round", "Sigmoid", "Sqrt", "Sub", "TopK", "Unique", "Where",
}  # fmt: skip
SMALL_ELEMENTS: Final = 1 << 20  # of results that nobody counts
OF_DIMS: Final = {"ConstantOfShape": 0, "Expand": 1}  # and the operand that says dims of the result
HALF_BYTES: Final = 2
ELSEWHERE: Final = {"Dropout", "Scan", "SequenceMap"}  # which folding knows, by bodies, or as no definitions
Results = Callable[..., Sequence[Array]]


class LateNodes:
    """Steps that make `outputs` of values by name.  native: operators that kernels compute."""

    def __init__(self, steps: Sequence[Step], constants: Mapping[str, Array]) -> None:
        self._steps, self._constants = steps, constants

    def run(self, known: Mapping[str, Array], outputs: Iterable[str]) -> dict[str, Array]:
        """Raises InvalidArguments for operands that do not fit together, Unimplemented, OutOfMemory."""
        values = {**self._constants, **known}
        bounds = FoldingBounds(sum(array.nbytes for array in values.values()))
        with np.errstate(all="ignore"):
            for step in self._steps:
                step(values, bounds)
        return {name: values[name] for name in outputs}


def late_nodes(
    nodes: Sequence[Node], constants: Mapping[str, Array], outputs: Iterable[str], native: Mapping[str, Results]
) -> LateNodes | None:
    """Of those nodes that outputs need; None if one is of an operator that folding alone knows."""
    if not all(is_defined(node) for node in nodes):
        return None
    made = dict(constants)
    return LateNodes(steps_of(needed(nodes, outputs), made, native), made)


def is_defined(node: Node) -> bool:
    if node.op in BODIES and not node.domain:
        bodies = [node.get(name) for name in (BRANCHES if node.op == "If" else ("body",))]
        return all(isinstance(body, Body) and all(map(is_defined, body.nodes)) for body in bodies)
    if node.op in OPERATORS and not node.domain:
        return True
    return node.op not in ELSEWHERE and foreign(node) is None and operator_of(node) is not None


def needed(nodes: Sequence[Node], outputs: Iterable[str]) -> list[Node]:
    wanted, found = set(outputs), list[Node]()
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.outputs):
            wanted |= reads_of_node(node)
            found.append(node)
    return found[::-1]


def steps_of(nodes: Sequence[Node], made: Values, native: Mapping[str, Results]) -> list[Step]:
    """made: constants, to which short results of constants alone are added."""
    steps, bounds = list[Step](), FoldingBounds(sum(array.nbytes for array in made.values()))
    for node in nodes:
        step = step_of(node, native)
        if node.op in BODIES or node.op in OPERATORS or not made.keys() >= set(node.inputs) - {NOTHING}:
            steps.append(step)
            continue
        found = dict(made)
        try:
            with np.errstate(all="ignore"):
                step(found, bounds)
        except AsmdnnError:  # which is said where it is computed: nobody may choose this branch
            steps.append(step)
            continue
        results = {name: found[name] for name in node.outputs if name in found}
        if sum(array.nbytes for array in results.values()) <= LARGEST_RESULT_BYTES:
            made |= results
        else:
            steps.append(step)
    return steps


def step_of(node: Node, native: Mapping[str, Results]) -> Step:
    check_node(node)
    if node.op in BODIES and not node.domain:
        return BODIES[node.op](node, lambda nodes, made: steps_of(nodes, made, native))
    node = without_empty_end(node)
    if node.op in OPERATORS and not node.domain:
        return partial(with_lists, node)
    if node.op == "Identity":
        return partial(passed_on, node)
    operator = operator_of(node)
    assert operator is not None, "is_defined has looked"
    if node.op in SEE_DIMS:
        return partial(see_dims, node)
    return Defined(node, operator, None if node.domain else native.get(node.op))


class Defined:
    """A node that its definition computes, or `native` in its place."""

    __slots__ = ("dims", "evaluate", "inputs", "is_of_sizes", "native", "node", "operator", "outputs")

    def __init__(self, node: Node, operator: Operator, native: Results | None) -> None:
        self.node, self.operator, self.native, self.evaluate = node, operator, native, operator.evaluate
        self.inputs, self.outputs = node.inputs, node.outputs
        self.is_of_sizes, self.dims = node.op in OF_SIZES or node.op in OF_DIMS, OF_DIMS.get(node.op)

    def __call__(self, values: Values, bounds: FoldingBounds) -> None:
        try:
            inputs = [values[name] if name else None for name in self.inputs]
        except KeyError:
            inputs = inputs_of(self.node, values)  # says which one
        try:
            found = self.results(inputs, bounds)
            if len(found) < len(self.outputs):
                check_outputs(self.node, len(found))
        except Exception as error:
            if any(isinstance(x, tuple) for x in inputs):
                raise InvalidArguments(f"{self.node} reads a list: {self.node.op} takes tensors") from None
            raise_own(error, self.node, inputs)
        for name, array in zip(self.outputs, found, strict=False):
            values[name] = array if type(array) is np.ndarray else np.asarray(array)

    def results(self, inputs: Sequence[Array | None], bounds: FoldingBounds) -> Sequence[Array]:
        elements, is_plain = 1, True
        for x in inputs:
            if x is not None:
                elements *= x.size + 1
                is_plain &= x.dtype.itemsize != HALF_BYTES
        if self.dims is not None:
            elements *= abs(prod(ints(inputs[self.dims])))
        if not (self.is_of_sizes and elements <= SMALL_ELEMENTS) and self.operator.infer is not None:
            known = [None if x is None else Value(x.shape, x.dtype, x) for x in inputs]
            bounds.spend(self.node, known, self.operator.types(self.node, *known))
        if self.native is not None:
            return self.native(self.node, *inputs)
        if not is_plain:  # floats of 16 bits are computed with in f32
            return self.operator.results(self.node, *inputs)
        found = self.evaluate(self.node, *inputs)
        return found if isinstance(found, tuple) else (found,)


def with_lists(node: Node, values: Values, bounds: FoldingBounds) -> None:
    inputs = inputs_of(node, values)
    try:
        values[node.outputs[0]] = OPERATORS[node.op](node, inputs)
    except AsmdnnError:
        raise
    except Exception as error:
        raise_own(error, node, [x for x in inputs if not isinstance(x, tuple)])


def passed_on(node: Node, values: Values, bounds: FoldingBounds) -> None:
    """Of a list, too."""
    (values[node.outputs[0]],) = inputs_of(node, values)


def see_dims(node: Node, values: Values, bounds: FoldingBounds) -> None:
    x = tensor(node, node.inputs[0], values)
    values[node.outputs[0]] = seen_dims(node, Value(x.shape, x.dtype))
