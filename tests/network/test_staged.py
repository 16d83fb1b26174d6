"""Networks in which data decide dims: beside onnxruntime, for several counts, and what is said of wrong data."""

import pickle
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.network import body_calls
from asmdnn.network.calls.running import NativePart
from asmdnn.network.folding import folding
from asmdnn.network.network import Network
from tests.network.nets import engine, random

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
onnxruntime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
pytestmark = pytest.mark.isa("avx2")
F32, S64 = 1, 7
Declared = tuple[str, int, Sequence[int | str] | None]


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return onnx.helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def model_of(
    nodes: Sequence[Any], inputs: Sequence[Declared], outputs: Sequence[Declared], opset: int = 17, **data: Any
) -> bytes:
    values = [onnx.helper.make_tensor_value_info(*declared) for declared in (*inputs, *outputs)]
    given, made = values[: len(inputs)], values[len(inputs) :]
    constants = [onnx.numpy_helper.from_array(np.asarray(x), name) for name, x in data.items()]
    graph = onnx.helper.make_graph(nodes, "staged", given, made, constants)
    imports = [onnx.helper.make_opsetid("", opset)]
    return bytes(onnx.helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString())


def compare(data: bytes, *several: dict[str, Any], shapes: Any = None, net: Network | None = None) -> Network:
    """Each twice, as the second call finds what the first has planned."""
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    net = net or dnn.load_onnx(data, shapes, engine=engine(2), fallback="numpy")
    for feeds in (*several, *several):
        for (name, found), wanted in zip(net.run(feeds).items(), session.run(None, feeds), strict=True):
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), name
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5, err_msg=name)
    net.check()
    return net


def detector() -> bytes:
    """A convolution, the positive elements of its result, and their values."""
    nodes = [
        node("Conv", "x w", "c"), node("Relu", "c", "r"), node("NonZero", "r", "at"),
        node("Transpose", "at", "rows", perm=[1, 0]), node("GatherND", "r rows", "found"),
    ]  # fmt: skip
    outputs = [("at", S64, None), ("found", F32, None), ("r", F32, None)]
    return model_of(nodes, [("x", F32, ["n", 3, 8, 8])], outputs, w=random(8, 3, 3, 3))


def suppression(**more: Any) -> tuple[list[Any], dict[str, Any]]:
    """The best boxes, and a product of theirs."""
    nodes = [
        node("Sigmoid", "s", "scores"), node("NonMaxSuppression", "b scores most share least", "chosen", **more),
        node("Slice", "chosen two three one", "column"), node("Squeeze", "column one", "places"),
        node("Squeeze", "b zero", "boxes"), node("Gather", "boxes places", "found"),
        node("MatMul", "found w", "head"), node("Softmax", "head", "p"),
    ]  # fmt: skip
    numbers = {"zero": [0], "one": [1], "two": [2], "three": [3], "most": [10]}
    data: dict[str, Any] = {name: np.array(x, np.int64) for name, x in numbers.items()}
    return nodes, {**data, "share": np.float32(0.3), "least": np.float32(0.6), "w": random(4, 16)}


OF_BOXES: list[Declared] = [("b", F32, [1, 60, 4]), ("s", F32, [1, 3, 60])]
FOUND: list[Declared] = [("chosen", S64, None), ("p", F32, None)]


def boxes(seed: int) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    return {
        "b": draw.random((1, 60, 4), np.float32) * 10,
        "s": (3 * draw.standard_normal((1, 3, 60))).astype(np.float32),
    }


def test_what_comes_before_is_native() -> None:
    feeds = [{"x": random(2, 3, 8, 8)} for _ in range(2)]
    net = compare(detector(), *feeds, {"x": random(1, 3, 8, 8)}, {"x": np.zeros((1, 3, 8, 8), np.float32)})
    assert net.outputs == {"at": (None, None), "found": (None, None), "r": ((1, 8, 6, 6), np.float32)}
    assert [type(part) for part in net.at({"x": (2, 3, 8, 8)})._runnable.parts][:1] == [NativePart]  # type: ignore[attr-defined]
    text = net.explain()
    assert "Conv 'c' + Relu: few_inputs" in text and "later  NonZero 'at': data decide its dims" in text
    assert "later  GatherND 'found': by definition when data have decided its dims" in text
    assert {use.operator: use.numpy for use in net.planned().uses()}["NonZero"] == 1


@pytest.mark.parametrize("how", [{}, {"center_point_box": 1}])
def test_boxes(how: dict[str, int]) -> None:
    """With a product behind them, which is a network of its own: its kernels are this library's."""
    nodes, data = suppression(**how)
    net = compare(model_of(nodes, OF_BOXES, FOUND, **data), *map(boxes, range(4)))
    (rest,) = net._runnable.parts[-1].rest._networks.values()  # type: ignore[attr-defined]
    assert rest.is_open and "MatMul 'head': " in rest.explain()
    assert "later  MatMul 'head': planned when data have decided its dims" in net.explain()


def test_boxes_alone() -> None:
    """Equal scores, boxes without area, corners in any order, none at all, and none wanted."""
    nodes = [node("NonMaxSuppression", "b s most share", "chosen")]
    limits: list[Declared] = [("most", S64, [1]), ("share", F32, [1])]
    data = model_of(nodes, [("b", F32, [2, "n", 4]), ("s", F32, [2, 2, "n"]), *limits], [FOUND[0]])
    draw = np.random.default_rng(5)
    feeds = [
        {
            "b": draw.integers(0, 4, (2, n, 4)).astype(np.float32),
            "s": draw.integers(0, 3, (2, 2, n)).astype(np.float32),
            "most": np.array([most]),
            "share": np.array([share], np.float32),
        }
        for n, most, share in ((30, 50, 0.5), (30, 3, 0.0), (1, 1, 1.0), (30, 0, 0.5))
    ]
    compare(data, *feeds)


@pytest.mark.parametrize("how", [{}, {"sorted": 0}, {"axis": 1}, {"axis": 0, "sorted": 0}])
def test_different_elements(how: dict[str, int]) -> None:
    outputs: list[Declared] = [("u", F32, None), ("first", S64, None), ("each", S64, None), ("count", S64, None)]
    nodes = [node("Unique", "x", "u first each count", **how), node("Exp", "u", "e")]
    data = model_of(nodes, [("x", F32, [3, 4])], [*outputs, ("e", F32, None)])
    draw = np.random.default_rng(1)
    compare(data, *({"x": draw.integers(0, most, (3, 4)).astype(np.float32)} for most in (2, 3, 9)))


def test_one_cut_after_another() -> None:
    """A rest with products that has a cut of its own."""
    nodes = [
        node("NonZero", "x", "at"), node("Cast", "at", "f", to=F32), node("MatMul", "w f", "p"),
        node("Compress", "p keep", "kept", axis=0), node("Greater", "kept half", "large"),
        node("NonZero", "large", "again"), node("MatMul", "kept kept_t", "last"), node("Transpose", "kept", "kept_t"),
    ]  # fmt: skip
    nodes[-2:] = nodes[:-3:-1]
    outputs: list[Declared] = [("again", S64, None), ("last", F32, None)]
    inputs: list[Declared] = [("x", F32, [9]), ("keep", 9, [3])]
    data = model_of(nodes, inputs, outputs, w=random(3, 1), half=np.float32(0.5))
    draw = np.random.default_rng(2)
    compare(data, *({"x": draw.integers(0, 2, 9).astype(np.float32), "keep": draw.random(3) > 0.4} for _ in range(4)))


def declared(name: str, kind: int = F32, dims: Sequence[int] | None = None) -> Any:
    return onnx.helper.make_tensor_value_info(name, kind, dims)


def test_branches_of_unequal_dims() -> None:
    """The branch that data choose is a network of its own, and the other one is not computed."""
    branches = {
        f"{name}_branch": onnx.helper.make_graph([made], name, [], [declared(name)])
        for name, made in (("then", node("Relu", "x", "then")), ("else", node("MatMul", "x w", "else")))
    }
    nodes = [
        node("ReduceSum", "x", "sum", keepdims=0), node("Greater", "sum zero", "is_positive"),
        node("If", "is_positive", "y", **branches), node("Neg", "y", "z"),
    ]  # fmt: skip
    data = model_of(nodes, [("x", F32, [3, 4])], [("z", F32, None)], zero=np.float32(0), w=random(4, 16))
    x = abs(random(3, 4))
    compare(data, {"x": x}, {"x": -x})


def rounds(*, limit: str = "", **more: Any) -> bytes:
    """A loop over products that ends when the sum of a row is large; its inputs have names of values around it."""
    body = onnx.helper.make_graph(
        [
            node("MatMul", "x w", "p"), node("Tanh", "p", "t"), node("Add", "x t", "next"),
            node("ReduceSum", "next", "sum", keepdims=0), node("Abs", "sum", "size"), node("Less", "size most", "on"),
            node("Identity", "x", "row"),
        ],
        "round", [declared("i", S64, []), declared("goes", 9, []), declared("x"), declared("w")],
        [declared("on", 9, []), *map(declared, ("next", "w", "row"))],
    )  # fmt: skip
    nodes = [
        node("Exp", "a", "x"),
        onnx.helper.make_node("Loop", [limit, "goes", "x", "w"], ["y", "same", "rows"], body=body),
        node("Neg", "y", "z"),
    ]
    constants = {"w": random(8, 8), "most": np.float32(60), "few": np.array(3), **more}
    inputs: list[Declared] = [("a", F32, [1, 8]), ("goes", 9, [])]
    read = {name: x for name, x in constants.items() if name in (limit, "w", "most")}
    return model_of(nodes, inputs, [("z", F32, None), ("rows", F32, None)], **read)


@pytest.mark.parametrize("limit", ["", "few"])
def test_rounds_that_data_end(limit: str) -> None:
    """Each round is a call of one network, in which weights that go on unchanged are constants."""
    feeds = [{"a": shift + random(1, 8), "goes": np.array(True)} for shift in (-1, 0, 1)]
    net = compare(rounds(limit=limit), *feeds)
    (calls,) = net._runnable.parts[-1].calls.values()  # type: ignore[attr-defined]
    (inner,) = calls.calls._networks.values()
    assert "MatMul 'p'" in inner.explain() and "w" not in inner.inputs


def test_wrong_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """The network goes on."""
    feeds = {"a": random(1, 8), "goes": np.array(True)}
    net = dnn.load_onnx(rounds(), engine=engine(), fallback="numpy")
    with pytest.raises(InvalidArguments, match="Loop 'y' has no rounds, so that nobody knows the dims"):
        net.run({**feeds, "goes": np.array(False)})
    wanted = net.run(feeds)
    monkeypatch.setattr(body_calls, "MOST_ROUNDS", 2)
    endless = dnn.load_onnx(rounds(most=np.float32(np.inf)), engine=engine(), fallback="numpy")
    with pytest.raises(InvalidArguments, match="Loop 'y' goes on after 2 rounds: its condition must end it"):
        endless.run(feeds)
    monkeypatch.undo()
    for name, found in net.run(feeds).items():
        np.testing.assert_array_equal(found, wanted[name])


def test_more_rounds_than_are_unrolled() -> None:
    """A loop that a constant counts, whose rounds would be too many nodes."""
    body = onnx.helper.make_graph(
        [node("MatMul", "h w", "p"), node("Tanh", "p", "t"), node("Identity", "goes", "on")], "round",
        [declared("i", S64, []), declared("goes", 9, []), declared("h")], [declared("on", 9), declared("t")],
    )  # fmt: skip
    nodes = [onnx.helper.make_node("Loop", ["many", "", "a"], ["y"], body=body)]
    data = model_of(nodes, [("a", F32, [1, 8])], [("y", F32, None)], w=random(8, 8), many=np.array(2000))
    with pytest.raises(Unimplemented, match="more than 5000 nodes together, too many to unroll"):
        dnn.load_onnx(data, engine=engine())
    compare(data, {"a": random(1, 8)})


def test_rounds_that_data_count() -> None:
    body = onnx.helper.make_graph(
        [node("Add", "sum x", "next"), node("Identity", "next", "row"), node("Identity", "goes", "on")],
        "round",
        [declared("i", S64, []), declared("goes", 9, []), declared("sum", F32, [4])],
        [declared("on", 9, []), declared("next", F32, [4]), declared("row", F32, [4])],
    )
    nodes = [node("Exp", "a", "x"), node("Loop", "n yes x", "last rows", body=body), node("ReduceSum", "rows", "y")]
    inputs: list[Declared] = [("a", F32, [4]), ("n", S64, [])]
    data = model_of(nodes, inputs, [("last", F32, [4]), ("y", F32, None)], yes=np.array(True))
    compare(data, *({"a": random(4), "n": np.array(n)} for n in (1, 5, 2)))


SCANNED = [("x", F32, [4]), ("a", F32, ["n", 4]), ("b", F32, [4, "n"])]


def scan(axis: int = 0, turned: int = 0, end: int = 1) -> bytes:
    """A state, parts along different axes, and results along an axis, as captured weights of the graph make them."""
    inner = [
        node("Mul", "p q", "pq"), node("Add", "h pq", "sum"), node("Mul", "sum scale", "h2"), node("Relu", "h2", "row"),
    ]  # fmt: skip
    names = {"h": [4], "p": [4], "q": [4], "h2": [4], "row": [4]}
    values = [onnx.helper.make_tensor_value_info(name, F32, dims) for name, dims in names.items()]
    body = onnx.helper.make_graph(inner, "body", values[:3], values[3:])
    how = {
        "scan_input_axes": [axis, 1], "scan_input_directions": [0, turned], "scan_output_axes": [end],
        "scan_output_directions": [turned],
    }  # fmt: skip
    nodes = [node("Scan", "x a b", "y rows", body=body, num_scan_inputs=2, **how)]
    return model_of(nodes, SCANNED, [("y", F32, None), ("rows", F32, None)], scale=np.float32(0.9))


@pytest.mark.parametrize(("turned", "end"), [(0, 1), (1, 0), (1, -1)])
def test_scans_of_more_elements_than_are_unrolled(turned: int, end: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "MOST_INLINED", 12)
    feeds = [{"x": random(4), "a": random(n, 4), "b": random(4, n)} for n in (7, 30, 1)]
    compare(scan(0, turned, end), *feeds)


def test_wrong_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each as it is refused where it is unrolled; the next call is as if nothing had been."""
    monkeypatch.setattr(folding, "MOST_INLINED", 2)
    net = dnn.load_onnx(scan(), engine=engine(1), fallback="numpy")
    good = {"x": random(4), "a": random(9, 4), "b": random(4, 9)}
    wanted = net.run(good)
    with pytest.raises(InvalidArguments, match=r"Scan 'y' scans axes of \[8, 9\] elements, they must have as many"):
        net.run({**good, "b": random(4, 8)})
    with pytest.raises(InvalidArguments, match=r"Scan 'y' scans axes of \[0\] elements"):
        net.run({**good, "a": random(0, 4), "b": random(4, 0)})
    for name, y in net.run(good).items():
        np.testing.assert_array_equal(y, wanted[name])


def regulator(ends: bool) -> bytes:
    """Rows, each as often as a number says, as networks of speech stretch sounds: torch's repeat_interleave.  ends: a
    product of the rows comes after."""
    inner = [
        node("Identity", "cond_in", "cond_out"), node("SequenceAt", "parts i", "row"), node("Gather", "times i", "n"),
        node("Unsqueeze", "n zero", "n1"), node("Concat", "n1 one", "dims", axis=0), node("Expand", "row dims", "rows"),
        node("SequenceInsert", "list_in rows", "list_out"),
    ]  # fmt: skip
    tensor, sequence = onnx.helper.make_tensor_value_info, onnx.helper.make_tensor_sequence_value_info
    given = [tensor("i", S64, []), tensor("cond_in", 9, []), sequence("list_in", F32, None)]
    body = onnx.helper.make_graph(inner, "body", given, [tensor("cond_out", 9, []), sequence("list_out", F32, None)])
    nodes = [
        node("Relu", "x", "r"), node("SplitToSequence", "r", "parts", axis=0, keepdims=1),
        node("SequenceEmpty", "", "none", dtype=F32), node("SequenceLength", "parts", "count"),
        node("Loop", "count yes none", "list", body=body), node("ConcatFromSequence", "list", "stretched", axis=0),
        node("SequenceLength", "list", "length"), node("Neg", "stretched", "y"),
        *[node("MatMul", "stretched w", "head"), node("Softmax", "head", "p")] * ends,
    ]  # fmt: skip
    nodes[2].input[:] = []
    outputs = [("y", F32, None), ("length", S64, []), *[("p", F32, None)] * ends]
    data = {"zero": np.array([0]), "one": np.array([1]), "yes": np.array(True), "w": random(6, 5)}
    inputs = [("x", F32, ["n", 6]), ("times", S64, ["n"])]
    return model_of(nodes, inputs, outputs, **(data if ends else {k: v for k, v in data.items() if k != "w"}))


@pytest.mark.parametrize("ends", [False, True])
def test_rows_as_often_as_data_say(ends: bool) -> None:
    """A Loop over lists is walked, and what comes after it is planned."""
    feeds = [{"x": random(len(n), 6), "times": np.array(n)} for n in ([1, 3, 2], [0, 4], [2, 2, 2, 1], [1, 3, 2])]
    whole = regulator(ends)
    net = compare(whole, *feeds)
    with pytest.raises(InvalidArguments, match=r"Expand .* cannot be computed of|Expand .* negative"):
        net.run({"x": random(2, 6), "times": np.array([1, -2])})
    compare(whole, feeds[0], net=net)


@pytest.mark.parametrize("ends", [False, True])
def test_an_element_of_a_list_that_data_choose(ends: bool) -> None:
    nodes = [
        node("SplitToSequence", "x", "parts", axis=0, keepdims=1), node("NonZero", "x", "at"),
        node("Slice", "at zero one one2", "column"), node("ReduceMax", "column", "place", keepdims=0),
        node("SequenceAt", "parts place", "part"), node("MatMul" if ends else "Add", "part w", "y"),
    ]  # fmt: skip
    numbers = {"zero": [0], "one": [1], "one2": [1]}
    data: dict[str, Any] = {name: np.array(x, np.int64) for name, x in numbers.items()}
    data["w"] = random(3, 5) if ends else random(1, 3)
    whole = model_of(nodes, [("x", F32, [4, 3])], [("y", F32, None)], **data)
    compare(whole, *({"x": np.eye(4, 3, i, dtype=np.float32)} for i in (0, -1, 1)))


EMPTY = {
    "rows": [node("Softmax", "x", "y", axis=0)],
    "means": [node("ReduceMean", "x", "y", axes=[1])],
    "products": [node("MatMul", "x w", "h"), node("Transpose", "h", "t"), node("MatMul", "h t", "y")],
    "attention": [node("Transpose", "x", "t"), node("MatMul", "x t", "s"), node("Softmax", "s", "p"),
                  node("MatMul", "p x", "y")],
    "images": [node("Reshape", "x dims", "i"), node("Conv", "i k", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "y")],
    "pooling": [node("Reshape", "x dims", "i"), node("MaxPool", "i", "y", kernel_shape=[2, 2])],
    "best": [node("ReduceSum", "x one", "sums"), node("LayerNormalization", "x g", "n"), node("Mul", "n sums", "y")],
}  # fmt: skip


@pytest.mark.parametrize("case", EMPTY)
def test_nothing_found(case: str) -> None:
    """Rows of a table, some or none; onnxruntime is asked about some alone, as it aborts the process for none."""
    nodes = [
        node("NonZero", "v", "nz"),
        node("Squeeze", "nz zero", "at"),
        node("Gather", "table at", "x"),
        *EMPTY[case],
    ]
    every = {
        "zero": np.array([0]), "one": np.array([1]), "dims": np.array([-1, 2, 2, 2]), "table": random(6, 8),
        "w": random(8, 5), "k": random(4, 2, 3, 3), "g": random(8),
    }  # fmt: skip
    read = {name for each in nodes for name in each.input}
    constants = {name: x for name, x in every.items() if name in read}
    data = model_of(nodes, [("v", F32, [6])], [("y", F32, None)], **constants)
    net = dnn.load_onnx(data, engine=engine(2), fallback="numpy")
    some, none = np.array([0, 1, 0, 2, 3, 0], np.float32), np.zeros(6, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert net(none).size == 0
    compare(data, {"v": some}, net=net)


def test_equal_bits_for_threads_and_in_pickles() -> None:
    nodes, data = suppression()
    model, feeds = model_of(nodes, OF_BOXES, FOUND, **data), boxes(7)
    wanted = dnn.load_onnx(model, engine=engine(1), fallback="numpy").run(feeds)
    several = dnn.load_onnx(model, engine=engine(3), fallback="numpy")
    for net in (several, pickle.loads(pickle.dumps(several))):
        for name, found in net.run(feeds).items():
            np.testing.assert_array_equal(found, wanted[name])


def test_kept_in_f32() -> None:
    """A name of the rest is one of the model's."""
    nodes, data = suppression()
    model = model_of(nodes, OF_BOXES, FOUND, **data)
    net = dnn.load_onnx(model, engine=engine(1), fallback="numpy", precision="bf16", keep_f32=["head"])
    assert len(net.run(boxes(3))["p"])
    with pytest.raises(InvalidArguments, match="keep_f32 has 'heads', which no node is called: did you mean head"):
        dnn.load_onnx(model, engine=engine(1), fallback="numpy", precision="bf16", keep_f32=["heads"])


@pytest.mark.parametrize("name", ["w", "ww", "www", "wwww"])
def test_weights_anywhere_in_a_file(name: str) -> None:
    """What a file has at odd places, as large weights by columns that kernels turn."""
    w, x = random(96, 256), random(3, 256)
    nodes = [node("Transpose", name, "turned"), node("MatMul", "x turned", "y")]
    data = model_of(nodes, [("x", F32, [3, 256])], [("y", F32, None)], **{name: w})
    found = dnn.load_onnx(data, engine=engine())(x)
    np.testing.assert_allclose(found, x @ w.T, rtol=1e-5, atol=1e-5)


def test_refused_without_numpy() -> None:
    with pytest.raises(
        Unimplemented, match=r"NonZero 'at' has dims .* of 'r': .* load the model with fallback='numpy'"
    ):
        dnn.load_onnx(detector(), {"x": (1, 3, 8, 8)}, engine=engine())
    net = dnn.load_onnx(detector(), {"x": (1, 3, 8, 8)}, engine=engine(), fallback="numpy")
    with pytest.raises(InvalidArguments, match="only a network without nodes in numpy can be bound"):
        net.bind()
    with pytest.raises(InvalidArguments, match="a network in which data decide dims cannot be saved, as that takes"):
        net.save("nowhere")
    done = {"verify": "verified", "profile": "profiled", "times": "timed", "analyze": "analysed", "page": "measured"}
    for name, word in done.items():
        with pytest.raises(InvalidArguments, match=f"a network in which data decide dims cannot be {word}, use run"):
            getattr(net, name)({})


def test_wrong_data() -> None:
    """Said at the call; the network goes on."""
    nodes = [node("NonMaxSuppression", "b s most share", "chosen")]
    inputs: list[Declared] = [("b", F32, [1, "n", 4]), ("s", F32, [1, 2, "m"]), ("most", S64, []), ("share", F32, [])]
    net = dnn.load_onnx(model_of(nodes, inputs, [FOUND[0]]), engine=engine(), fallback="numpy")
    feeds = {"b": random(1, 5, 4), "s": random(1, 2, 5), "most": np.array(3), "share": np.float32(0.5)}
    for wrong, said in (
        ({"share": np.float32(1.5)}, "iou_threshold is 1.5, it must be from 0 to 1"),
        ({"share": np.float32(np.nan)}, "iou_threshold is nan, it must be from 0 to 1"),
        ({"s": random(1, 2, 6)}, r"boxes must be \[images, boxes, 4\] and scores \[images, classes, boxes\]"),
    ):
        with pytest.raises(InvalidArguments, match=f"NonMaxSuppression 'chosen' cannot be computed of .*: {said}"):
            net.run({**feeds, **wrong})
    assert net.run(feeds)["chosen"].shape[1] == 3
