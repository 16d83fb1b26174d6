"""What no step can be made of, or no step can do: one sentence each, and nothing has changed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import optim
from tests.network.nets import engine
from tests.network.wire import graph, model, node
from tests.support.together import at_once

pytestmark = pytest.mark.isa("avx2")
ONES = np.ones((2, 4), np.float32)


def step_of(y: Callable[[dnn.Graph, Any], Any], dims: tuple[Any, ...] = (2, 4), lr: Any = 0.1, **options: Any) -> Any:
    """Of the sum of what a function makes of x times a parameter."""
    g = dnn.Graph("mistakes", seed=0)
    x = g.input("x", dims) @ g.parameter("w", (4, 3))
    loss = g.apply("ReduceSum", y(g, x), keepdims=0)
    return g.train(loss, optim.SGD(lr), engine=engine(), **options)


def largest(g: dnn.Graph, x: Any) -> Any:
    return g.apply("Cast", g.apply("ArgMax", x, axis=1), to=1)


def shifted(g: dnn.Graph, x: Any) -> Any:
    return g.map(lambda x: x.builder.op("shl", x, immediate=1), x)


def normalized(g: dnn.Graph, x: Any) -> Any:
    ones, zeros = np.ones(3, np.float32), np.zeros(3, np.float32)
    return g.apply("BatchNormalization", x, ones, zeros, zeros, ones, results=3, training_mode=1)[0]


def same(g: dnn.Graph, x: Any) -> Any:
    return x * x


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: step_of(largest), "does not depend on 'w', or by integers alone"),
        (lambda: step_of(shifted), "'.*' has no gradient: shl has no derivative"),
        (lambda: step_of(normalized, (1, 4)), r"channels of one value each, of dims \(1, 3\): give it a larger batch"),
        (lambda: step_of(same, ("n", 4)), "input x is float32 nx4: say its dims"),
        (lambda: step_of(same, lr=lambda step: np.nan), "lr of step 1 must be a finite number from 0 on, not nan"),
    ],
)
def test_what_has_no_step(make: Any, message: str) -> None:
    with pytest.raises(dnn.AsmdnnError, match=message):
        make()


@pytest.mark.parametrize(
    ("options", "x", "message"),
    [
        ({"check_finite": True}, ONES * np.nan, "a gradient of step 1 is not finite: nothing has changed"),
        ({}, ONES[:1], r"x is float32\[1, 4\]"),
        ({}, ONES.astype(np.int64), "x is int64"),
    ],
)
def test_what_is_no_step(options: dict[str, Any], x: Any, message: str) -> None:
    step = step_of(same, **options)
    before = {name: array.tobytes() for name, array in step.state_dict().items()}
    with pytest.raises(dnn.InvalidArguments, match=message):
        step(x=x)
    assert {name: array.tobytes() for name, array in step.state_dict().items()} == before
    assert step.steps == 0


def classifier(op: str, how: str = "", **attributes: Any) -> Any:
    """A step on 2 labels of 3 classes, each of them once or twice."""
    g = dnn.Graph("labels", seed=0)
    scores, t = g.input("x", (2, 4)) @ g.parameter("w", (4, 3)), g.input("t", (2,), np.int64)
    scores = scores if op != "NegativeLogLikelihoodLoss" else g.apply("LogSoftmax", scores, axis=1)
    if how == "smoothed":
        return g.train(dnn.losses.cross_entropy(scores, t, smoothing=0.1), optim.AdamW(0.1), engine=engine())
    if how == "moved":
        scores, t = g.apply("Concat", scores, scores, axis=0), g.apply("Concat", t, t, axis=0)
    return g.train(g.apply(op, scores, t, **attributes), optim.AdamW(0.1), engine=engine())


LABELS = [
    ("SoftmaxCrossEntropyLoss", "", {}),
    ("SoftmaxCrossEntropyLoss", "smoothed", {}),
    ("SoftmaxCrossEntropyLoss", "moved", {"ignore_index": 255}),
    ("NegativeLogLikelihoodLoss", "", {"ignore_index": -100}),
    ("NegativeLogLikelihoodLoss", "", {"ignore_index": 1, "reduction": "sum"}),
]


@pytest.mark.parametrize("label", [3, -1, -(1 << 40)])
@pytest.mark.parametrize(("op", "how", "attributes"), LABELS)
def test_a_label_that_is_no_class(op: str, how: str, attributes: dict[str, Any], label: int) -> None:
    """Refused before anything is written, in a whole step and in its first half; what is ignored is taken."""
    step = classifier(op, how, **attributes)
    ignored = attributes.get("ignore_index", 0)
    for _ in range(2):  # planned, and as it comes again
        assert np.isfinite(step(x=ONES, t=np.array([2, ignored])))
        before = {name: array.tobytes() for name, array in step.state_dict().items()}
        for call in (step, step.gradients):
            with pytest.raises(dnn.InvalidArguments, match=rf"\[1\] is {label}, .*: use (0 to 2|-16777216 to)"):
                call(x=ONES, t=np.array([2, label]))
        assert {name: array.tobytes() for name, array in step.state_dict().items()} == before


def test_a_bound_step_takes_an_ignored_label() -> None:
    """One native call, as without; the bound arrays are looked at before each step."""
    step = classifier("SoftmaxCrossEntropyLoss", ignore_index=-100)
    t = np.array([2, -100])
    take = step.bind(x=ONES, t=t)
    assert step.is_native
    assert np.isfinite(take())
    t[1] = -99
    with pytest.raises(dnn.InvalidArguments, match="use 0 to 2, or -100, which is ignored"):
        take()
    assert step.steps == 1


def test_a_batch_of_two_is_normalized() -> None:
    assert np.isfinite(step_of(normalized)(x=ONES))


def test_one_graph_trained_twice() -> None:
    """Each step has states of its own."""
    g = dnn.Graph("twice", seed=0)
    total, w = g.state("total", (2, 3)), g.parameter("w", (4, 3))
    y = g.input("x", (2, 4)) @ w + total
    g.update(total, y)
    first, second = (g.train(g.apply("ReduceSum", y, keepdims=0), optim.SGD(0.1), engine=engine()) for _ in range(2))
    losses = [first(x=ONES) for _ in range(3)]
    assert [second(x=ONES) for _ in range(3)] == losses


def test_steps_at_once() -> None:
    """A second call is refused, or waits its turn; none is lost."""
    step, refused = step_of(same), list[str]()

    def several(_: int) -> None:
        for _ in range(200):
            try:
                step(x=ONES)
            except dnn.InvalidArguments as error:
                refused.append(str(error))

    at_once(several, 3)
    assert step.steps + len(refused) == 600
    assert all("another call of it runs" in message for message in refused)


@pytest.mark.parametrize(
    ("op", "dims", "operands", "attributes"),
    [
        ("Resize", (1, 2, 3, 3), (None, np.array([1, 1, 2, 2], np.float32)), {"mode": "linear"}),
        ("LRN", (1, 4, 3, 3), (), {"size": 3}),
        ("Attention", (1, 2, 4, 8), ("x", "x"), {}),
        ("Softmax", (2, 4), (), {}),
    ],
)
def test_second_derivatives_of_primitives(op: str, dims: Any, operands: Any, attributes: dict[str, Any]) -> None:
    g = dnn.Graph("second")
    x = g.input("x", dims)
    y = g.apply(op, x, *(x if isinstance(one, str) else one for one in operands), **attributes)
    (first,) = g.gradients(g.apply("ReduceSum", y * y, keepdims=0), wrt=[x])
    with pytest.raises(dnn.Unimplemented, match=rf"^the gradient of {op} '.*second derivatives end here: leave 'x'"):
        g.gradients(g.apply("ReduceSum", first, keepdims=0), wrt=[x])


def of_file(body: bytes) -> Any:
    """Of the sum of its result y, by its weight s."""
    g = dnn.Graph.from_onnx(model(body), train=["s"])
    return g.train(g.apply("ReduceSum", g.outputs["y"], keepdims=0), optim.SGD(0.1), engine=engine())


def test_a_loop_on_data_of_a_file() -> None:
    nodes = [node("Add", ["v", "v"], ["w"]), node("ReduceMax", ["w"], ["most"], keepdims=0)]
    nodes += [node("Less", ["most", "hundred"], ["on2"])]
    kinds = {"i": "int64", "on": "bool"}
    body = graph(nodes, {"i": (), "on": (), "v": (1, 3)}, ["on2", "w"], None, kinds)
    whole = [node("ReduceSum", ["x"], ["t"], keepdims=0), node("Less", ["t", "hundred"], ["go"])]
    whole += [node("Mul", ["x", "s"], ["xs"]), node("Loop", ["", "go", "xs"], ["y"], body=body)]
    constants = {"hundred": np.float32(100), "s": np.ones(3, np.float32)}
    with pytest.raises(dnn.Unimplemented, match="Loop 'y' ends when its data say so"):
        of_file(graph(whole, {"x": (1, 3)}, ["y"], constants))


def test_a_training_mode_node_of_a_file_trains() -> None:
    """By the batch's own statistics: the sum of what is normalised is that of the shifts, whatever x is."""
    nodes = [node("BatchNormalization", ["x", *"sbmv"], ["y", "rm", "rv"], training_mode=1)]
    step = of_file(graph(nodes, {"x": (2, 3)}, ["y"], dict.fromkeys("sbmv", np.ones(3, np.float32))))
    assert step(x=np.arange(6, dtype=np.float32).reshape(2, 3)) == pytest.approx(6.0, abs=1e-5)


@pytest.mark.parametrize(
    "give",
    [
        lambda step: step.parameters.__setitem__("w", np.ones((3, 3), np.float32)),
        lambda step: step.apply({"w": np.ones((3, 3), np.float32)}),
        lambda step: step.load_state_dict({**step.state_dict(), "w": np.ones((3, 3), np.float32)}),
    ],
    ids=["a parameter", "a gradient", "a state"],
)
def test_dims_that_a_step_has(give: Any) -> None:
    """There is no model that could be loaded for others."""
    said = r"float32\[3, 3\], the network takes float32\[4, 3\]: give it those dims$"
    with pytest.raises(dnn.InvalidArguments, match=said):
        give(step_of(same))
