"""A further shape gets the plan that a network of the shape alone has, though what was decided is not decided again."""

import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.memory import MemoryDesc
from asmdnn.memory.traced import Decided, NumberTrace, TracedNumber
from asmdnn.network import asking
from asmdnn.network.asking import Asking
from asmdnn.network.compiled import CompiledSegment
from asmdnn.network.folding.traced_constants import of_traced
from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.table import operator_of
from asmdnn.network.template import store
from asmdnn.network.template.asking import Asked, AskingOnce
from asmdnn.network.template.template import Template, template_of
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.reorder.reorder import Reorder
from tests.network.nets import engine
from tests.network.test_random_open import OpenGraph


def facts_of(net: dnn.Network) -> Iterator[Any]:
    """All that a plan says."""
    plan = net.planned()
    yield {name: (value.shape, value.dtype, value.data is None) for name, value in plan.graph.values.items()}
    yield [(str(node), node.inputs, [repr(x) for x in node.attributes.items()]) for node in plan.graph.nodes]
    for segment in plan.segments:
        assert isinstance(segment, CompiledSegment)
        yield [(step.label, step.pd.desc, step.pd.attr, dict(step.buffers), step.result) for step in segment.steps]
        yield segment.way.changes, segment.way.cycles, segment.way.by_themselves
        yield dict(segment.layout.arena), dict(segment.layout.weights), segment.limits, segment.checked
        for joined in (segment.joined.plan, segment.plan):
            yield dict(joined.tensors), dict(joined.scratch_bytes), joined.per_part, joined.outputs
            yield {name: array.tobytes() for name, array in joined.constants.items()}
            for phase in joined.phases:
                yield phase.kernels, phase.arguments, phase.repeats, phase.records.tobytes(), phase.cycles.tobytes()
                yield phase.continues, phase.independent, phase.alone, phase.backwards, phase.flushes
                yield None if phase.groups is None else phase.groups.tobytes()
        yield {name: (weight.desc, weight.array.tobytes()) for name, weight in segment.weights.items()}


def check_equal(net: Any, alone: dnn.Network, shape: Any) -> None:
    for found, wanted in zip(facts_of(net.at(shape)), facts_of(alone), strict=True):
        assert found == wanted


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether each template that was made is of use, and whether each one that was tried fitted."""
    outcomes, apply = list[bool](), Template.apply

    def making(*arguments: Any) -> Template | None:
        made = template_of(*arguments)
        assert made is not None, "lowering asked too much of a number"
        return made

    def applying(self: Template, graph: Any, asking: Asking) -> Any:
        result = apply(self, graph, asking)
        outcomes.append(result is not None)
        return result

    monkeypatch.setattr(store, "template_of", making)
    monkeypatch.setattr(Template, "apply", applying)
    yield outcomes


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
@pytest.mark.parametrize("seed", range(100, 106))
@pytest.mark.one_in(2)
def test_a_template_has_the_plans_of_shapes_alone(seed: int, isa: str, applied: list[bool]) -> None:
    made = OpenGraph(seed, 10)
    net = made.graph.compile(engine=engine(2, isa), **made.outputs)
    for n, h, w in made.random.integers((1, 5, 5), (4, 24, 60), (6, 3)).tolist():
        shape = {"x": (n, 3, h, w)}
        check_equal(net, made.graph.compile(shape, engine=engine(2, isa), **made.outputs), shape)
    assert any(applied)


@pytest.mark.parametrize("graph", ["encoder", "convolutions"])
def test_one_template_serves_further_shapes(graph: str, applied: list[bool]) -> None:
    """Whose dims are multiples or not, and larger and smaller than the fixed ones."""
    made, end = encoder() if graph == "encoder" else convolutions()
    net: Any = made.compile(y=end, engine=engine(1))
    shapes = [{"x": (1, n, 24)} if graph == "encoder" else {"x": (1, 3, 8, n)} for n in (8, 16, 19, 33, 64, 9)]
    for shape in shapes:
        check_equal(net, made.compile(shape, y=end, engine=engine(1)), shape)
    assert applied == [True] * 5


def test_norms_by_units_and_others(applied: list[bool]) -> None:
    """From 52 columns on a channel is large enough to be a unit."""
    graph, (scale, shift) = dnn.Graph("norms"), np.random.default_rng(0).standard_normal((2, 16)).astype(np.float32)
    x = graph.input("x", (1, 16, 40, "width"))
    end = graph.apply("Relu", graph.apply("InstanceNormalization", x, scale, shift))
    net: Any = graph.compile(y=end, engine=engine(2))
    grouped = []
    for n in (8, 64, 33, 52):
        shape = {"x": (1, 16, 40, n)}
        alone = graph.compile(shape, y=end, engine=engine(2))
        check_equal(net, alone, shape)
        (segment,) = alone.planned().segments
        assert isinstance(segment, CompiledSegment)
        grouped.append(any(phase.groups is not None for phase in segment.plan.phases))
        data = np.random.default_rng(n).standard_normal((1, 16, 40, n)).astype(np.float32)
        wanted = (data - data.mean((2, 3), keepdims=True)) / np.sqrt(data.var((2, 3), keepdims=True) + np.float32(1e-5))
        wanted = np.maximum(wanted * scale[:, None, None] + shift[:, None, None], 0)
        np.testing.assert_allclose(net(data), wanted, 1e-5, 1e-5)
    assert grouped == [False, True, False, True]
    assert applied == [True] * 3


def test_a_shape_that_decides_otherwise_has_its_own_plan(applied: list[bool]) -> None:
    """Rows of one element broadcast, and 24 tokens of 24 channels may be another's transpose."""
    made, end = encoder()
    net: Any = made.compile(y=end, engine=engine(1))
    for tokens in (8, 16, 1, 24, 0, 12):
        shape = {"x": (1, tokens, 24)}
        check_equal(net, made.compile(shape, y=end, engine=engine(1)), shape)
    assert applied[0] and not all(applied)


def encoder() -> tuple[dnn.Graph, Any]:
    """A layer of attention over the second axis."""
    graph, random = dnn.Graph("encoder"), np.random.default_rng(0)
    x = graph.input("x", ("batch", "tokens", 24))
    heads = [
        graph.apply("Transpose", graph.apply("Reshape", x @ weights(random, 24, 24), np.array((0, 0, 4, 6))), perm=perm)
        for perm in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))
    ]
    scores = graph.apply("Softmax", heads[0] @ heads[1] / np.float32(6**0.5), axis=-1)
    mixed = graph.apply("Transpose", scores @ heads[2], perm=(0, 2, 1, 3))
    y = x + graph.apply("Reshape", mixed, np.array((0, 0, 24)))
    return graph, graph.apply("LayerNormalization", y, np.ones(24, np.float32), np.zeros(24, np.float32), axis=-1)


def convolutions() -> tuple[dnn.Graph, Any]:
    graph, random = dnn.Graph("convolutions"), np.random.default_rng(0)
    x = graph.input("x", (1, 3, 8, "width"))
    y = graph.apply("Relu", graph.apply("Conv", x, weights(random, 16, 3, 3, 3), pads=(1,) * 4))
    y = graph.apply("MaxPool", y, kernel_shape=(2, 2), strides=(1, 1))
    y = graph.apply("Conv", y, weights(random, 16, 1, 3, 3), group=16, pads=(1,) * 4)
    y = graph.apply("Slice", y, np.array((1,)), np.array((4,)), np.array((2,)))
    return graph, graph.apply("Flatten", graph.apply("GlobalAveragePool", y) + graph.apply("Concat", y, y, axis=2))


def weights(random: np.random.Generator, *dims: int) -> np.ndarray[Any, Any]:
    return random.standard_normal(dims).astype(np.float32)


def test_what_is_computed_of_a_traced_number_is_written_down() -> None:
    trace = NumberTrace()
    n = trace.leaf(10)
    assert [int_of(x) for x in (n + 1, 1 + n, 7 - n, n * n, -(-n // 4), n % 3, -n, abs(3 - n))] == [
        11, 11, -3, 100, 3, 1, -10, 7
    ]  # fmt: skip
    assert max(n, 3) is n and (n, 2) == (10, 2) and n in (1, 10) and bool(n) and not n < 10
    assert np.prod(np.array((n, 2), object)) == 20 and sum((n, n)) == 20 and not trace.spoiled
    outcomes = [step.outcome for step in trace.steps if isinstance(step, Decided)]
    assert outcomes and len(outcomes) == len({(step.function, step.left, step.right) for step in decided(trace)})


@pytest.mark.parametrize("question", [int, float, range, hex, operator.index, lambda n: [0] * n, lambda n: n.real])
def test_a_traced_number_does_not_become_a_plain_one(question: Any) -> None:
    trace = NumberTrace()
    with pytest.raises((TypeError, AttributeError)):
        question(trace.leaf(10))
    assert trace.spoiled


def test_a_division_that_is_none_spoils_the_trace() -> None:
    trace = NumberTrace()
    with pytest.raises(ZeroDivisionError):
        1 // trace.leaf(0)
    assert trace.spoiled


def test_lowering_asks_for_primitives_in_one_way() -> None:
    """A trace sees what `Asking` is asked."""
    folder = Path(asking.__file__).parent
    files = [*folder.glob("lowering/*.py"), *folder.glob("fusion/*.py"), *folder.glob("*.py")]
    assert len(files) > 60
    # What the first one asks is passed to Asking.whether; the last one packs weights when all is planned.
    allowed = {"pairs.py", "asking.py", "weights.py"}
    assert {x.name for x in files if "primitive_desc" in x.read_text()} <= allowed


def int_of(traced: Any) -> int:
    assert isinstance(traced, TracedNumber)
    return int(traced.value)


def decided(trace: NumberTrace) -> list[Decided]:
    return [step for step in trace.steps if isinstance(step, Decided)]


def test_a_folded_graph_has_a_template_where_its_inputs_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dims are halved by Div, which is not traced: integers are divided in another way by numpy than by Python."""
    made = list[bool]()

    def making(*arguments: Any) -> Template | None:
        found = template_of(*arguments)
        made.append(found is not None)
        return found

    monkeypatch.setattr(store, "template_of", making)
    graph = dnn.Graph("halved")
    x = graph.input("x", (1, "rows", 24))
    rows = graph.apply("Slice", graph.apply("Shape", x), np.array((1,)), np.array((2,)), np.array((0,)))
    dims = graph.apply("Concat", np.array((1,)), graph.apply("Div", rows, np.array((2,))), np.array((48,)), axis=0)
    y = graph.apply("Reshape", x, dims) @ weights(np.random.default_rng(0), 48, 16)
    net: Any = graph.compile(y=y, engine=engine(1))
    for n in (4, 8, 12, 20, 30):
        shape = {"x": (1, n, 24)}
        check_equal(net, graph.compile(shape, y=y, engine=engine(1)), shape)
    assert made == [False, True]


def test_what_folding_may_compute_with_traced_numbers() -> None:
    """A sum that leaves its type would wrap around in numpy."""
    for op, number, spoils in (("Add", 5, False), ("Add", 2**31 - 1, True), ("Div", 2, True), ("Concat", 2, False)):
        trace = NumberTrace()
        dims = Value((1,), np.dtype(np.int32), np.array([trace.leaf(10)], object))
        other = Value((1,), np.dtype(np.int32), np.array([number], np.int32))
        node = Node(op, ("a", "b"), ("y",), {"axis": 0} if op == "Concat" else {}, opset=22)
        operator = operator_of(node)
        assert operator is not None
        found = of_traced(node, operator, [dims, other])
        assert bool(trace.spoiled) == spoils and found[0].dtype == np.int32


def test_what_templates_ask_is_asked_once() -> None:
    """Equal requests have one answer, those of another description or attribute their own."""
    asked = []

    def question(desc: Any, attr: Attr, engine: dnn.Engine) -> bool:
        asked.append((desc, attr))
        return desc.dst.dims[0] > 2

    once, plain, relu = AskingOnce(engine()), Attr(), Attr(dnn.Eltwise("relu"))
    for n in (2, 3, 2, 3):
        desc = reorder_of(n)
        assert once.whether(question, desc, plain) == (n > 2)
        assert once.planned(desc) is once.planned(reorder_of(n))
    assert len(asked) == 2
    once.whether(question, reorder_of(2), relu)
    assert len(asked) == 3


def reorder_of(n: int) -> Reorder:
    return Reorder(MemoryDesc((n, 5), dnn.f32, "ab"), MemoryDesc((n, 5), dnn.f32, "ba"))


def test_equal_layers_of_a_template_are_one_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where their weights, biases and what is added are objects of their own."""
    made = list[Template | None]()
    monkeypatch.setattr(store, "template_of", lambda *arguments: made.append(template_of(*arguments)) or made[-1])
    asked = []
    for layers in (3, 6):
        graph = dnn.Graph("layers")
        x: Any = graph.input("x", ("rows", 48))
        for layer in range(layers):
            inner = graph.apply("Gelu", x @ np.full((48, 96), layer, np.float32) + np.ones(96, np.float32))
            x = x + (inner @ np.full((96, 48), layer, np.float32) + np.ones(48, np.float32)) * np.float32(0.5)
        net: Any = graph.compile(y=x, engine=engine(1))
        for rows in (16, 24):
            net.at({"x": (rows, 48)})
        template = made[-1]
        assert template is not None
        asked.append(sum(type(step) is Asked for step in template.trace.steps))
    assert asked[0] == asked[1] < 6
