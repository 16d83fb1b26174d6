"""Recurrent layers in graphs that train: against finite differences of the float64 definitions, and against torch."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import optim
from tests.network.nets import engine, random
from tests.network.test_gradients import check, i64, values_of, weighed

pytestmark = pytest.mark.isa("avx2")
STEPS, BATCH, INPUTS, UNITS = 5, 3, 6, 4
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "lstm": ("LSTM", {}),
    "lstm reverse": ("LSTM", {"direction": "reverse"}),
    "lstm both": ("LSTM", {"direction": "bidirectional"}),
    "gru": ("GRU", {}),
    "gru both": ("GRU", {"direction": "bidirectional"}),
    "lbr gru": ("GRU", {"linear_before_reset": 1}),
    "lbr gru reverse": ("GRU", {"linear_before_reset": 1, "direction": "reverse"}),
    "rnn": ("RNN", {}),
    "rnn relu": ("RNN", {"activations": ["Relu"]}),
    "rnn both leaky": ("RNN", {
        "activations": ["LeakyRelu"] * 2, "activation_alpha": [0.25] * 2, "direction": "bidirectional",
    }),
    "rnn sigmoid": ("RNN", {"activations": ["Sigmoid"]}),
}  # fmt: skip


def operands(op: str, directions: int, first: bool = False) -> dict[str, tuple[int, ...]]:
    """Dims by name, as ONNX orders the inputs; of sequence_lens none."""
    rows, state = GATES[op] * UNITS, (BATCH, directions, UNITS) if first else (directions, BATCH, UNITS)
    found = {
        "x": (BATCH, STEPS, INPUTS) if first else (STEPS, BATCH, INPUTS),
        "w": (directions, rows, INPUTS), "r": (directions, rows, UNITS), "b": (directions, 2 * rows), "h": state,
    }  # fmt: skip
    return found | ({"c": state, "p": (directions, 3 * UNITS)} if op == "LSTM" else {})


def layer(graph: dnn.Graph, op: str, symbols: dict[str, Any], lengths: Any = None, **attributes: Any) -> list[Any]:
    """The results; symbols: operands by the names above."""
    results = 3 if op == "LSTM" else 2
    given = [*map(symbols.get, "xwrb"), lengths, *map(symbols.get, "hcp" if op == "LSTM" else "h")]
    while given[-1] is None:
        given.pop()
    return [*graph.apply(op, *given, hidden_size=UNITS, results=results, **attributes)]


def total(graph: dnn.Graph, results: list[Any], dims: list[tuple[int, ...]]) -> Any:
    """One number of which each element of each result has another share."""
    first, *rest = (weighed(graph, y, shape) for y, shape in zip(results, dims, strict=True))
    for one in rest:
        first = first + one
    return first


def dims_of_results(op: str, directions: int, first: bool = False) -> list[tuple[int, ...]]:
    state = (BATCH, directions, UNITS) if first else (directions, BATCH, UNITS)
    y = (BATCH, STEPS, directions, UNITS) if first else (STEPS, directions, BATCH, UNITS)
    return [y, state, state][: 3 if op == "LSTM" else 2]


@pytest.mark.parametrize("kind", KINDS)
def test_all_operands(kind: str) -> None:
    op, attributes = KINDS[kind]
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    shapes, graph = operands(op, directions), dnn.Graph(kind)
    symbols = {name: graph.input(name, shape) for name, shape in shapes.items()}
    loss = total(graph, layer(graph, op, symbols, **attributes), dims_of_results(op, directions))
    check(graph, loss, {name: 2 * random(*shape) for name, shape in shapes.items()}, [*shapes], 1e-4)


@pytest.mark.parametrize("op", ["LSTM", "GRU"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_sequences_first(op: str, direction: str) -> None:
    directions = 1 + (direction == "bidirectional")
    shapes, graph = operands(op, directions, first=True), dnn.Graph("layout")
    symbols = {name: graph.input(name, shape) for name, shape in shapes.items()}
    results = layer(graph, op, symbols, layout=1, direction=direction)
    loss = total(graph, results, dims_of_results(op, directions, first=True))
    check(graph, loss, {name: random(*shape) for name, shape in shapes.items()}, [*shapes], 1e-4)


@pytest.mark.parametrize("op", GATES)
def test_lengths(op: str) -> None:
    """Shorter sequences: what is after their ends has no gradient."""
    names = ("x", "w", "r", "b", "h")
    shapes, graph = {name: operands(op, 1)[name] for name in names}, dnn.Graph("lengths")
    symbols = {name: graph.input(name, shape) for name, shape in shapes.items()}
    results = layer(graph, op, symbols, lengths=np.array([2, 5, 3], np.int32))
    loss = total(graph, results, dims_of_results(op, 1))
    given = {name: random(*shape) for name, shape in shapes.items()}
    check(graph, loss, given, [*names], 1e-4)
    (dx,) = graph.gradients(loss, wrt=[symbols["x"]])
    found = graph.compile(dx=dx, engine=engine()).run(given)["dx"]
    assert not found[2:, 0].any()
    assert found[2:, 1].all()


@pytest.mark.parametrize("op", GATES)
def test_the_last_state_alone(op: str) -> None:
    """Nobody reads the sequence; there are no biases and no first states."""
    shapes, graph = {name: operands(op, 1)[name] for name in "xwr"}, dnn.Graph("last")
    symbols = {name: graph.input(name, shape) for name, shape in shapes.items()}
    results = layer(graph, op, symbols)
    loss = weighed(graph, results[-1], dims_of_results(op, 1)[-1])
    check(graph, loss, {name: random(*shape) for name, shape in shapes.items()}, [*shapes], 1e-4)


@pytest.mark.parametrize("op", GATES)
def test_weights_that_are_constants(op: str) -> None:
    shapes, graph = operands(op, 1), dnn.Graph("constants")
    symbols: dict[str, Any] = {name: random(*shape) for name, shape in shapes.items() if name != "x"}
    symbols["x"] = graph.input("x", shapes["x"])
    loss = total(graph, layer(graph, op, symbols), dims_of_results(op, 1))
    check(graph, loss, {"x": random(*shapes["x"])}, ["x"], 1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_are_data(kind: str) -> None:
    """Inference, too: the results are those of constant weights."""
    op, attributes = KINDS[kind]
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    shapes = operands(op, directions)
    given = {name: random(*shape) for name, shape in shapes.items()}
    found = []
    for names in ([*shapes], ["x"]):
        graph = dnn.Graph(kind)
        symbols = given | {name: graph.input(name, shapes[name]) for name in names}
        results = layer(graph, op, symbols, **attributes)
        net = graph.compile(engine=engine(), **{f"y{i}": y for i, y in enumerate(results)})
        net.check()
        assert net.is_native
        feeds = {name: given[name] for name in names}
        assert all(difference.fits for difference in net.verify(feeds))
        found.append(net.run(feeds))
    for name, array in found[0].items():
        np.testing.assert_allclose(array, found[1][name], rtol=1e-5, atol=1e-6)


def classifier(graph: dnn.Graph, op: str, size: int = 8) -> Any:
    """A table of vectors, a layer that reads them, and a class for every sequence."""
    words, t = graph.input("words", (7, 5), np.int64), graph.input("t", (5,), np.int64)
    table = graph.parameter("table", (11, 6))
    rows = GATES[op] * size
    w, r = graph.parameter("w", (1, rows, 6), "glorot_uniform"), graph.parameter("r", (1, rows, size), "glorot_uniform")
    b, head = graph.parameter("b", (1, 2 * rows), "zeros"), graph.parameter("head", (size, 4))
    rest = {"linear_before_reset": 1} if op == "GRU" else {}
    x = graph.apply("Gather", table, words)
    y = graph.apply(op, x, w, r, b, hidden_size=size, results=3 if op == "LSTM" else 2, **rest)
    return graph.apply("SoftmaxCrossEntropyLoss", graph.apply("Squeeze", y[1], i64(0)) @ head, t)


@pytest.mark.parametrize("op", GATES)
def test_steps(op: str) -> None:
    """A whole training step: native, proved, verified by its definitions, equal for every number of threads."""
    random_ = np.random.default_rng(3)
    feeds = {"words": random_.integers(0, 11, (7, 5)), "t": random_.integers(0, 4, 5)}
    found = []
    for threads in (1, 2, 3):
        graph = dnn.Graph("classes", seed=1)
        step = graph.train(classifier(graph, op), optim.Adam(0.03), engine=engine(threads))
        step.check()
        assert step.is_native
        assert all(difference.fits for difference in step.verify(feeds))
        losses = [step(**feeds) for _ in range(20)]
        assert losses[-1] < 0.5 * losses[0]
        found.append((losses, {name: array.tobytes() for name, array in step.state_dict().items()}))
    assert found[0] == found[1] == found[2]


def test_the_layer_is_computed_once() -> None:
    graph = dnn.Graph("once")
    step = graph.train(classifier(graph, "LSTM"), optim.SGD(0.1), engine=engine())
    for name in ("  Recurrent 'LSTM", "  RecurrentGradient 'gradient of LSTM"):
        assert step.explain().count(name) == 1
    assert step.explain().count("floats:avx2") == 2


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"clip": 3.0}, "LSTM '.*' has no gradient: clip=3.0 has no kernel"),
        ({"input_forget": 1}, "has no gradient: input_forget=1 has no kernel"),
        ({"activations": ["Tanh"] * 3}, "has no gradient: activations tanh, tanh, tanh have no kernel, sigmoid, tanh"),
    ],
)
def test_what_has_no_gradient(attributes: dict[str, Any], message: str) -> None:
    graph = dnn.Graph("none")
    symbols = {name: graph.input(name, operands("LSTM", 1)[name]) for name in "xwr"}
    y, *_ = layer(graph, "LSTM", symbols, **attributes)
    with pytest.raises(dnn.Unimplemented, match=message):
        graph.gradients(graph.apply("ReduceSum", y, keepdims=0), wrt=[symbols["w"]])


def test_lengths_that_are_data() -> None:
    graph = dnn.Graph("lengths")
    symbols = {name: graph.input(name, operands("GRU", 1)[name]) for name in "xwr"}
    y, *_ = layer(graph, "GRU", symbols, lengths=graph.input("lengths", (BATCH,), np.int32))
    with pytest.raises(dnn.Unimplemented, match="its sequence_lens 'lengths' is no constant"):
        graph.gradients(graph.apply("ReduceSum", y, keepdims=0), wrt=[symbols["w"]])


def test_slopes_below_zero() -> None:
    graph = dnn.Graph("slope")
    symbols = {name: graph.input(name, operands("RNN", 1)[name]) for name in "xwr"}
    y, *_ = layer(graph, "RNN", symbols, activations=["LeakyRelu"], activation_alpha=[-0.5])
    with pytest.raises(dnn.Unimplemented, match="hides which side of 0 a result comes from"):
        graph.gradients(graph.apply("ReduceSum", y, keepdims=0), wrt=[symbols["w"]])


def test_second_derivatives_end() -> None:
    graph = dnn.Graph("second")
    symbols = {name: graph.input(name, operands("GRU", 1)[name]) for name in "xwr"}
    y, *_ = layer(graph, "GRU", symbols)
    (dw,) = graph.gradients(graph.apply("ReduceSum", y * y, keepdims=0), wrt=[symbols["w"]])
    with pytest.raises(dnn.Unimplemented, match="second derivatives end here"):
        graph.gradients(graph.apply("ReduceSum", dw * dw, keepdims=0), wrt=[symbols["w"]])


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("both", [False, True])
def test_gradients_are_those_of_torch(op: str, both: bool) -> None:
    """By torch's own weights, brought to ONNX's order and back."""
    torch = pytest.importorskip("torch", reason="the torch extra")
    from asmdnn import recurrent

    cell = {"LSTM": "lstm", "GRU": "lbr_gru", "RNN": "rnn"}[op]
    module = getattr(torch.nn, op)(INPUTS, UNITS, bidirectional=both).double()
    state = {name: x.detach().numpy().astype(np.float32) for name, x in module.state_dict().items()}
    module.load_state_dict({name: torch.tensor(x, dtype=torch.float64) for name, x in state.items()})
    given = {"x": random(STEPS, BATCH, INPUTS)}
    given |= {name.lower(): x for name, x in recurrent.to_onnx(cell, recurrent.from_torch(cell, state)).items()}
    x = torch.tensor(given["x"].astype(np.float64), requires_grad=True)
    share = random(STEPS, BATCH, UNITS * (1 + both))
    (module(x)[0] * torch.tensor(share.astype(np.float64))).sum().backward()

    graph = dnn.Graph(op)
    symbols = {name: graph.input(name, array.shape) for name, array in given.items()}
    rest = {"linear_before_reset": 1} if op == "GRU" else {}
    y, *_ = layer(graph, op, symbols, direction="bidirectional" if both else "forward", **rest)
    flat = graph.apply("Reshape", graph.apply("Transpose", y, perm=(0, 2, 1, 3)), i64(*share.shape))
    loss = graph.apply("ReduceSum", flat * share, keepdims=0)
    gradients = dict(zip(given, graph.gradients(loss, wrt=[*symbols.values()]), strict=True))
    found = graph.compile(engine=engine(), **{f"d{name}": d for name, d in gradients.items()}).run(given)
    np.testing.assert_allclose(found["dx"], x.grad.numpy(), rtol=1e-4, atol=1e-5)
    theirs = {name: p.grad.numpy().astype(np.float32) for name, p in module.named_parameters()}
    wanted = recurrent.to_onnx(cell, recurrent.from_torch(cell, theirs))
    for name in ("W", "R"):
        np.testing.assert_allclose(found[f"d{name.lower()}"], wanted[name], rtol=1e-4, atol=1e-5)
    assert values_of(graph, given, loss.name).shape == ()
