"""What is computed when data have decided dims: by a walk, as folding would compute it, and boxes by a primitive."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.graph import Body, Node, TensorType
from asmdnn.network.late import nodes as late_module
from asmdnn.network.late.boxes import NativeBoxes
from asmdnn.network.late.nodes import late_nodes
from asmdnn.network.late.parts import RestOfModel
from asmdnn.network.planned import ModelLowering
from tests.network import wire
from tests.network.nets import engine, random

pytestmark = pytest.mark.isa("avx2")

S64 = np.int64


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> Node:
    names = tuple("" if name == "_" else name for name in inputs.split())
    return Node(op, names, tuple(outputs.split()), attributes, opset=17)


def boxes_by(native: Any, one: Node, inputs: list[Any]) -> Any:
    walk = late_nodes([one], {}, ["y"], native)
    assert walk is not None
    return walk.run(dict(zip(one.inputs, inputs, strict=False)), ["y"])["y"]


@pytest.mark.parametrize("seed", range(40))
def test_boxes_are_those_of_the_definition(seed: int) -> None:
    """Ties, empty boxes, numbers that are none, and every kind of limit."""
    draw = np.random.default_rng(seed)
    images, classes, count = int(draw.integers(1, 3)), int(draw.integers(1, 5)), int(draw.integers(1, 200))
    places, sizes = draw.random((2, images, count, 2), np.float32)
    boxes = np.concatenate((places, places + sizes * draw.choice([0.0, 0.1, 0.5])), -1).astype(np.float32)
    scores = draw.integers(0, 40, (images, classes, count)).astype(np.float32) / 40
    boxes[draw.random(boxes.shape) < 0.02] = draw.choice([np.nan, np.inf, -np.inf, 0.0])
    scores[draw.random(scores.shape) < 0.05] = draw.choice([np.nan, np.inf, -np.inf, 0.5])
    most = np.array(draw.choice([0, 1, 7, count, 1 << 40]), S64)
    overlap, least = np.float32(draw.choice([0.0, 0.3, 1.0])), np.float32(draw.choice([-np.inf, 0.0, 0.7, np.nan]))
    inputs = [boxes, scores, most, np.asarray(overlap), np.asarray(least)][: draw.choice([3, 4, 5])]
    names = " ".join("bsmol"[: len(inputs)])
    one = node("NonMaxSuppression", names, "y", center_point_box=int(draw.integers(2)))
    found, wanted = (boxes_by(how, one, inputs) for how in ({"NonMaxSuppression": NativeBoxes(engine(1))}, {}))
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    np.testing.assert_array_equal(found, wanted)


def test_boxes_of_a_level_that_this_machine_lacks() -> None:
    """A definition computes them; what does not fit is refused as by it."""
    native = {"NonMaxSuppression": NativeBoxes(dnn.Engine(isa="avx512_core_amx", threads=1))}
    inputs = [random(1, 30, 4), random(1, 2, 30), np.array(5)]
    one = node("NonMaxSuppression", "b s m", "y")
    np.testing.assert_array_equal(boxes_by(native, one, inputs), boxes_by({}, one, inputs))
    with pytest.raises(dnn.InvalidArguments, match=r"boxes must be \[images, boxes, 4\]"):
        boxes_by(native, one, [inputs[0], inputs[1][:, :, 1:], inputs[2]])


def scores_of_classes(classes: int) -> bytes:
    """Of each class the places of its best scores, as torchvision's SSD ends."""
    nodes, names = [wire.node("Softmax", ["x"], ["scores"], axis=-1)], []
    data: dict[str, Any] = {"least": np.float32(1 / classes), "few": np.array([3]), "zero": np.array([0])}
    for i in range(classes):
        data[f"class {i}"] = np.array(i)
        nodes += [
            wire.node("Gather", ["scores", f"class {i}"], [f"of {i}"], axis=1),
            wire.node("Greater", [f"of {i}", "least"], [f"is {i}"]),
            wire.node("NonZero", [f"is {i}"], [f"at {i}"]),
            wire.node("Transpose", [f"at {i}"], [f"rows {i}"], perm=(1, 0)),
            wire.node("GatherND", [f"of {i}", f"rows {i}"], [f"found {i}"]),
            wire.node("Shape", [f"found {i}"], [f"count {i}"]),
            wire.node("Concat", [f"count {i}", "few"], [f"two {i}"], axis=0),
            wire.node("ReduceMin", [f"two {i}"], [f"k {i}"], keepdims=1),
            wire.node("TopK", [f"found {i}", f"k {i}"], [f"best {i}", f"place {i}"]),
        ]
        names.append(f"best {i}")
    nodes.append(wire.node("Concat", names, ["y"], axis=0))
    return wire.model(wire.graph(nodes, {"x": (20, classes)}, ["y"], data))


def test_many_choices_are_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than there may be one behind the other; each was found by planning up to it, and 65 were refused."""
    passes = []
    before = ModelLowering.of
    monkeypatch.setattr(ModelLowering, "of", lambda *args: (passes.append(0), before(*args))[1])
    data, x = scores_of_classes(90), random(20, 90)
    with pytest.raises(dnn.Unimplemented, match="so it is with 89 nodes more, NonZero 89 times") as error:
        dnn.load_onnx(data, engine=engine(1))
    assert "NonZero 'at 0' has dims that depend on the data of 'is 0'" in str(error.value)
    passes.clear()
    net = dnn.load_onnx(data, engine=engine(1), fallback="numpy")
    assert len(passes) == 2
    scores = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    best = [-np.sort(-row[row > 1 / 90])[:3] for row in scores.T]
    np.testing.assert_allclose(net(x), np.concatenate(best), rtol=2e-6)


def rest_of(net: dnn.Network) -> RestOfModel:
    rest: RestOfModel = net._runnable.parts[-1].rest  # type: ignore[attr-defined]
    return rest


def test_a_walk_computes_what_folding_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASMDNN_CACHE", "0")
    data, x = scores_of_classes(5), random(20, 5)
    net = dnn.load_onnx(data, engine=dnn.Engine(isa="avx2", threads=1), fallback="numpy")
    assert rest_of(net).walk is not None
    walked = net(x)
    monkeypatch.setattr(RestOfModel, "walk", None)
    np.testing.assert_array_equal(walked, net(x))


def branch(inner: Node, constants: dict[str, Any]) -> Body:
    return Body("branch", {}, inner.outputs, (inner,), constants)


def test_branches_and_constants_of_a_walk() -> None:
    """Only the branch that is chosen is computed; what constants decide is there before the first call."""
    then = branch(node("Add", "x two", "sum"), {"two": np.array([2.0], np.float32)})
    other = branch(node("Gather", "x far", "wrong"), {"far": np.array([9])})
    nodes = [
        node("Shape", "x", "dims"), node("Size", "x", "count"), node("Greater", "count few", "is more"),
        node("Add", "few few", "twice"), node("Mul", "twice dims", "z"),
        node("If", "more", "y", then_branch=then, else_branch=other),
    ]  # fmt: skip
    nodes[2] = Node("Greater", ("count", "few"), ("more",), {}, opset=17)
    walk = late_nodes(nodes, {"few": np.array(1)}, ["y", "z"], {})
    assert walk is not None and walk._constants["twice"] == 2
    found = walk.run({"x": np.ones(3, np.float32)}, ["y", "z"])
    assert found["y"].tolist() == [3, 3, 3] and found["z"].tolist() == [6]
    with pytest.raises(dnn.InvalidArguments, match="Gather 'wrong' cannot be computed of"):
        walk.run({"x": np.ones(1, np.float32)}, ["y"])
    assert walk.run({"x": np.ones(2, np.float32)}, ["y"])["y"].tolist() == [3, 3]


def test_what_is_wrong_in_a_branch_that_is_not_chosen() -> None:
    """Though constants alone would say so before."""
    wrong = branch(node("Gather", "two far", "wrong"), {"two": np.ones(2), "far": np.array([9])})
    fine = branch(node("Add", "two two", "sum"), {"two": np.ones(2)})
    walk = late_nodes([node("If", "c", "y", then_branch=wrong, else_branch=fine)], {}, ["y"], {})
    assert walk is not None and walk.run({"c": np.array(False)}, ["y"])["y"].tolist() == [2, 2]
    with pytest.raises(dnn.InvalidArguments, match="Gather 'wrong'"):
        walk.run({"c": np.array(True)}, ["y"])


def loop(condition: str, inputs: str = "most yes x", outputs: str = "y rows") -> Node:
    nodes = (
        node("Add", "v one", "w"), node("ReduceMax", "w", "top", keepdims=0), node(condition, "top limit", "go"),
        node("Neg", "w", "row"),
    )  # fmt: skip
    given = {name: TensorType(np.dtype(np.float32), None) for name in ("i", "c", "v")}
    body = Body("body", given, ("go", "w", "row"), nodes, {"one": np.float32([1]), "limit": np.float32(14)})
    return node("Loop", inputs, outputs, body=body)


X = np.arange(12, dtype=np.float32).reshape(4, 3)
PARTS = node("SplitToSequence", "x", "parts", axis=0, keepdims=1)
LISTS: dict[str, tuple[list[Node], dict[str, Any], Any]] = {
    "of ones": ([node("SplitToSequence", "x", "l", axis=1, keepdims=0)], {}, [X[:, 0], X[:, 1], X[:, 2]]),
    "by a number": ([node("SplitToSequence", "x n", "l", axis=0)], {"n": np.array(3)}, [X[:3], X[3:]]),
    "by sizes": ([node("SplitToSequence", "x n", "l")], {"n": np.array([1, 0, 3])}, [X[:1], X[:0], X[1:]]),
    "put at the end": ([PARTS, node("SequenceInsert", "parts x", "l")], {}, [*np.split(X, 4), X]),
    "put from the end": (
        [PARTS, node("SequenceInsert", "parts x at", "l")], {"at": np.array(-1)}, [X[:1], X[1:2], X[2:3], X, X[3:]],
    ),
    "without the last": ([PARTS, node("SequenceErase", "parts", "l")], {}, [X[:1], X[1:2], X[2:3]]),
    "without one": ([PARTS, node("SequenceErase", "parts at", "l")], {"at": np.array(-4)}, [X[1:2], X[2:3], X[3:]]),
    "of several": ([node("SequenceConstruct", "x x", "m"), node("Identity", "m", "l")], {}, [X, X]),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_lists(name: str) -> None:
    nodes, more, wanted = LISTS[name]
    nodes = [*nodes, node("SequenceLength", "l", "count"), node("SequenceAt", "l last", "end")]
    same = all(x.shape[1:] == wanted[0].shape[1:] and x.ndim == 2 for x in wanted)
    nodes += [node("ConcatFromSequence", "l", "joined", axis=0)] * same
    walk = late_nodes(nodes, {"last": np.array(-1)}, ["count", "end", *["joined"] * same], {})
    assert walk is not None
    found = walk.run({"x": X, **more}, ["count", "end", *["joined"] * same])
    assert found["count"] == len(wanted) and found["count"].dtype == S64
    np.testing.assert_array_equal(found["end"], wanted[-1])
    if same:
        np.testing.assert_array_equal(found["joined"], np.concatenate(wanted))


@pytest.mark.parametrize(
    ("nodes", "more", "said"),
    [
        ([PARTS, node("SequenceAt", "parts at", "y")], {"at": np.array(4)}, "takes place 4 of a list of 4 elements"),
        ([PARTS, node("SequenceErase", "parts at", "l"), node("SequenceLength", "l", "y")], {"at": np.array(-5)},
         "takes place -5 of a list of 4 elements"),
        ([node("SequenceAt", "x at", "y")], {"at": np.array(0)}, "SequenceAt 'y' reads 'x', which is no list"),
        ([PARTS, node("Relu", "parts", "y")], {}, "Relu 'y' reads a list: Relu takes tensors"),
        ([PARTS, node("Shape", "parts", "y")], {}, "'parts', which Shape 'y' reads, is a list: Shape takes tensors"),
        ([PARTS, loop("Less", "most parts x", "y rows")], {"most": np.array(2)},
         "'parts', which Loop 'y' reads, is a list"),
        ([node("SequenceEmpty", "", "l"), node("ConcatFromSequence", "l", "y", axis=0)], {}, "has no elements"),
        ([node("SplitToSequence", "x at", "l"), node("SequenceLength", "l", "y")], {"at": np.array([3, 3])},
         "has parts of .* elements, axis 0 has 4"),
        ([node("SplitToSequence", "x at", "l"), node("SequenceLength", "l", "y")], {"at": np.array(0)},
         "has parts of 0 elements: of 1 at least"),
        ([node("SequenceConstruct", "x at", "l"), node("ConcatFromSequence", "l", "y", axis=0)], {"at": np.array([1])},
         "ConcatFromSequence 'y' cannot be computed of"),
    ],
)  # fmt: skip
def test_lists_that_do_not_fit(nodes: list[Node], more: dict[str, Any], said: str) -> None:
    walk = late_nodes(nodes, {}, ["y"], {})
    assert walk is not None
    with pytest.raises(dnn.InvalidArguments, match=said):
        walk.run({"x": X, **more}, ["y"])


def test_rounds_of_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    walk = late_nodes([loop("Less")], {"most": np.array(9), "yes": np.array(True)}, ["y", "rows"], {})
    assert walk is not None
    found = walk.run({"x": X}, ["y", "rows"])
    np.testing.assert_array_equal(found["y"], X + 3)
    np.testing.assert_array_equal(found["rows"], [-(X + 1), -(X + 2), -(X + 3)])
    assert walk.run({"x": X, "most": np.array(2)}, ["rows"])["rows"].shape == (2, 4, 3)
    with pytest.raises(dnn.InvalidArguments, match="Loop 'y' has no rounds, so that nobody knows"):
        walk.run({"x": X, "most": np.array(0)}, ["y"])
    monkeypatch.setattr("asmdnn.network.late.rounds.MOST_ROUNDS", 20)
    endless = late_nodes([loop("Greater", "_ _ x")], {}, ["y"], {})
    assert endless is not None
    with pytest.raises(dnn.InvalidArguments, match="Loop 'y' goes on after 20 rounds: its condition must end it"):
        endless.run({"x": X + 14}, ["y"])


@pytest.mark.parametrize("op", ["Scan", "SequenceMap", "Dropout", "Mystery"])
def test_what_folding_alone_knows(op: str) -> None:
    assert late_nodes([node(op, "x", "y")], {}, ["y"], {}) is None


@pytest.mark.parametrize(
    ("nodes", "known"),
    [
        ([node("Expand", "x dims", "y")], {"x": np.ones(1, np.float32), "dims": np.array([1 << 20, 1 << 20])}),
        ([node("ConstantOfShape", "dims", "y")], {"dims": np.array([1 << 20, 1 << 20])}),
        ([node("Add", "x z", "y")], {"x": np.ones((1 << 18, 1), np.float32), "z": np.ones((1, 1 << 18), np.float32)}),
        ([node("Gather", "x at", "y")], {"x": np.ones((1, 1 << 18), np.float32), "at": np.zeros(1 << 18, S64)}),
    ],
)
def test_what_data_make_too_large(nodes: list[Node], known: dict[str, Any]) -> None:
    walk = late_nodes(nodes, {}, ["y"], {})
    assert walk is not None
    with pytest.raises((dnn.Unimplemented, dnn.OutOfMemory, dnn.InvalidArguments)):
        walk.run(known, ["y"])


def test_operators_whose_results_are_counted() -> None:
    """What numbers among their operands, or attributes, may make as large as they like."""
    for op in ("Expand", "Tile", "Range", "Pad", "Resize", "OneHot", "EyeLike", "CenterCropPad"):
        assert op not in late_module.OF_SIZES
    assert late_module.OF_DIMS == {"ConstantOfShape": 0, "Expand": 1}


def test_wrong_data_leave_the_network_as_it_was() -> None:
    nodes = [
        wire.node("NonZero", ["x"], ["at"]), wire.node("Add", ["at", "far"], ["wrong"]),
        wire.node("Transpose", ["wrong"], ["rows"], perm=(1, 0)), wire.node("GatherND", ["x", "rows"], ["y"]),
    ]  # fmt: skip
    data = wire.model(wire.graph(nodes, {"x": (4,), "far": ()}, ["y"], dtypes={"far": "int64"}))
    net = dnn.load_onnx(data, engine=engine(1), fallback="numpy")
    x = np.array([0, 5, 0, 7], np.float32)
    for far in (0, 1, 0):
        if far:
            with pytest.raises(dnn.InvalidArguments, match="GatherND 'y' cannot be computed of"):
                net.run({"x": x, "far": np.int64(far)})
        else:
            assert net.run({"x": x, "far": np.int64(far)})["y"].tolist() == [5, 7]
