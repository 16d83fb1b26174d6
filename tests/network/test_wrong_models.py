"""Models with something wrong in them are run or refused by the library's own errors, in bounded time and memory."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.cli.guard import guarded
from asmdnn.network import model_request
from asmdnn.network.folding import bounds
from asmdnn.network.folding.bodies import BODIES
from asmdnn.network.folding.sequences import SEQUENCES
from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import Value, listed
from asmdnn.network.operators.mapped import MAP
from asmdnn.network.operators.signatures import signatures
from asmdnn.network.operators.table import operators
from asmdnn.network.operators.work import nanoseconds
from tests.network import wire
from tests.network.nets import engine
from tests.network.valid_nodes import NODES, ValidNode
from tests.network.wrong_models import RAN
from tests.support.python import python
from tests.test_imports import ROOT

QUICK, SLOW, CHUNK = 300, 10_000, 2_500


def tried(first: int, count: int) -> Counter[str]:
    """What became of so many models, tried in a process of bounded memory, where a warning is an error."""
    command = [sys.executable, "-m", "tests.network.wrong_models", str(first), str(count)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "passive"}
    process = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=3000)
    last = (process.stdout.splitlines() or ["nothing"])[-1]
    assert process.returncode == 0, f"model {last}: {process.stderr[-500:]}"
    found, failures = json.loads(last)
    assert failures == {}
    return Counter(found)


def check(found: Counter[str]) -> None:
    """Enough of them run, or are refused, that either could go wrong."""
    assert found[RAN] > found.total() / 8
    assert found["InvalidArguments"] > found.total() / 4
    assert found["Unimplemented"] > found.total() / 60


@pytest.mark.isa("avx2")
def test_wrong_models() -> None:
    check(tried(0, QUICK))


@pytest.mark.slow
@pytest.mark.isa("avx2")
@pytest.mark.parametrize("first", range(QUICK, SLOW, CHUNK))
def test_more_wrong_models(first: int) -> None:
    check(tried(first, CHUNK))


def loaded(node: ValidNode, opset: int) -> dnn.Network:
    names = [f"x{i}" for i in range(len(node.operands))]
    outputs = [f"y{i}" for i in range(node.outputs)]
    given = {name: x for name, x in zip(names, node.operands, strict=True) if x.data is None}
    constants = {name: x.data for name, x in zip(names, node.operands, strict=True) if x.data is not None}
    shapes, types = {name: x.shape for name, x in given.items()}, {name: x.dtype for name, x in given.items()}
    body = wire.graph([wire.node(node.op, names, outputs, **node.attributes)], shapes, outputs, constants, types)
    return dnn.load_onnx(wire.model(body, opset), engine=engine(), fallback="numpy")


@pytest.mark.isa("avx2")
def test_what_they_are_made_of_is_right() -> None:
    """Every operator in little: what is wrong with a model is what was done to it."""
    assert {node.op for node in NODES} | BODIES.keys() | {MAP, *SEQUENCES} == signatures().keys()
    for node in NODES:
        net = loaded(node, 9 if node.op in ("Scatter", "Upsample") else 22)
        net.run({name: np.ones(shape, dtype) for name, (shape, dtype) in net.inputs.items()})


def test_what_is_inferred_of_them_is_what_is_computed() -> None:
    """Dims and types, and an estimate of the time."""
    for valid in NODES:
        arrays = [np.ones(x.shape, x.dtype) if x.data is None else x.data for x in valid.operands]
        names = tuple(f"x{i}" for i in range(len(arrays)))
        outputs = tuple(f"y{i}" for i in range(valid.outputs))
        node, operator = Node(valid.op, names, outputs, valid.attributes, "", "", 22), operators()[valid.op]
        values = [Value(x.shape, x.dtype, x) for x in arrays]
        with np.errstate(all="ignore"):
            types, results = operator.types(node, *values), listed(operator.evaluate(node, *arrays))
        found = [(tuple(shape), np.dtype(dtype)) for shape, dtype in types]
        assert found[: len(results)] == [(x.shape, x.dtype) for x in results], str(node)
        assert nanoseconds(node, values, types) > 0


def of_constants(nodes: list[bytes], result: str, constants: dict[str, Any]) -> bytes:
    return wire.model(wire.graph([*nodes, wire.node("Add", ["x", result], ["y"])], {"x": (1,)}, ["y"], constants))


def filled(name: str, *dims: int) -> list[bytes]:
    """A constant that is small in a file."""
    shape = wire.node("Constant", [], [f"{name} dims"], value=np.array(dims))
    return [shape, wire.node("ConstantOfShape", [f"{name} dims"], [name])]


DOUBLED = wire.graph([wire.node("Concat", ["v", "v"], ["w"], axis=0)], {"i": (), "on": (), "v": ()}, ["on", "w"])
PRODUCTS = [wire.node("MatMul", ["a", "a"], ["b"]), wire.node("MatMul", ["b", "b"], ["z"])]
HUGE: dict[str, tuple[list[bytes], str]] = {
    "product": ([*filled("a", 4096, 4096), *PRODUCTS], "MatMul 'b' computes with constants, which takes more time"),
    "doubled": ([wire.node("Concat", [f"c{i}", f"c{i}"], [f"c{i + 1}"], axis=0) for i in range(40)]
                + [wire.node("Identity", ["c40"], ["z"])], "Concat 'c[0-9]+' computes with .* more memory"),
    "in a loop": ([wire.node("Loop", ["rounds", "", "c0"], ["z"], body=DOUBLED)], "Concat .* more memory"),
    "one hot": ([wire.node("OneHot", ["rounds", "depth", "values"], ["z"])], "OneHot 'z' cannot be computed"),
    "windows": ([*filled("a", 1, 1, 2000, 2000), *filled("w", 1, 1, 999, 999), wire.node("Conv", ["a", "w"], ["z"])],
                "Conv 'z' computes with constants, which takes more time"),
    "expanded": ([wire.node("Expand", ["c0", "dims"], ["z"])], "Expand 'z' computes with .* more memory"),
    "tiled": ([wire.node("Tile", ["c0", "depth"], ["z"])], "Tile 'z' cannot be computed .*elements"),
}  # fmt: skip


@pytest.mark.parametrize("name", HUGE)
def test_constants_that_are_no_ends(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds, lowered so that the test is short, hold for everything that is computed of constants."""
    monkeypatch.setattr(bounds, "FOLDED_BYTES", 300 << 20)
    monkeypatch.setattr(bounds, "FOLDED_NANOSECONDS", 2e9)
    nodes, said = HUGE[name]
    constants = {
        "c0": np.ones(4, np.float32), "rounds": np.array(60), "depth": np.array([1 << 40]),
        "values": np.float32([0, 1]), "dims": np.array([1 << 30, 4]),
    }  # fmt: skip
    with pytest.raises(dnn.AsmdnnError, match=said):
        dnn.load_onnx(of_constants(nodes, "z", constants), engine=engine(), fallback="numpy")


def test_a_model_may_compute_with_its_own_constants() -> None:
    """What it is given grows with them: weights of eight bits that become f32 through several operators."""
    weights = np.ones((1 << 10, 1 << 10), np.int8)
    nodes = [
        wire.node("Cast", ["w"], ["a"], to=1),
        wire.node("Sub", ["a", "zero"], ["b"]),
        wire.node("Mul", ["b", "zero"], ["c"]),
        wire.node("Transpose", ["c"], ["z"]),
    ]
    constants = {"w": weights, "zero": np.float32([1])}
    net = dnn.load_onnx(of_constants(nodes, "z", constants), engine=engine())
    assert net.outputs["y"][0] == (1 << 10, 1 << 10)
    allowed = bounds.FoldingBounds(bounds.constant_bytes(net.model.body))
    assert allowed.bytes_left > bounds.FOLDED_BYTES + 10 * weights.nbytes
    assert allowed.nanoseconds_left > bounds.FOLDED_NANOSECONDS


COUNTS = wire.graph([], {"i": (), "on": ()}, ["on", "i"])
WRONG: list[tuple[list[bytes], list[str], str]] = [
    ([wire.node("Cast", [], ["y"], to=1)], ["y"], "Cast 'y' has 0 inputs, and Cast takes 1"),
    ([wire.node("Cast", ["x"], [], to=1)], ["x"], "has 0 outputs, and Cast makes 1"),
    ([wire.node("Identity", [], ["y"])], ["y"], "Identity 'y' has 0 inputs"),
    ([wire.node("Identity", ["x"], [])], ["x"], "has 0 outputs, and Identity makes 1"),
    ([wire.node("Identity", ["x"], [""]), wire.node("Clip", ["x", "", "x"], ["y"])], ["y"], "no name for its output 0"),
    ([wire.node("Relu", ["x"], ["y"])], ["y", ""], "output without a name"),
    ([wire.node("Re\nlu", ["x"], ["y"])], ["y"], r"'Re\\nlu' 'y' is an operator that is not known"),
    ([wire.node("Relu", ["x"], ["y"])], ["y", "y"], "output without a name, or two of one"),
    ([wire.node("GatherElements", ["x", "i"], ["y"], axis=32)], ["y"], "axis 32 is none of 2"),
    ([wire.node("Gather", ["s", "i"], ["y"])], ["y"], "a tensor without dims has no axis"),
    ([wire.node("Gather", ["x", "x"], ["y"])], ["y"], "indices of type float32"),
    ([wire.node("Greater", ["i", "i", "i"], ["y"])], ["y"], "has 3 inputs, and Greater takes 2"),
    ([wire.node("If", [], ["y"], then_branch=wire.graph([], {}, []))], ["y"], "lacks the attribute else_branch"),
    ([wire.node("Loop", ["nan", ""], ["y"], body=COUNTS)], ["y"], "must be one number, not array"),
    ([wire.node("BatchNormalization", ["x", *["v"] * 4], ["y", "m"])], ["y", "m"], "output 'm', and 1 are defined"),
    ([wire.node("BatchNormalization", ["x", *["s"] * 4], ["y"])], ["y"], r"\(3,\) channels, and parameters of dims"),
]  # fmt: skip


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(
    "node",
    [wire.node("Split", ["x", ""], ["y", "z"], axis=1), wire.node("LayerNormalization", ["x", "v", ""], ["y"])],
)
def test_inputs_at_the_end_may_be_left_out_by_an_empty_name(node: bytes) -> None:
    body = wire.graph([node], {"x": (2, 4)}, ["y"], {"v": np.ones(4, np.float32)})
    net = dnn.load_onnx(wire.model(body), engine=engine())
    assert net.run({"x": np.ones((2, 4), np.float32)})["y"].shape[0] == 2


@pytest.mark.parametrize(("nodes", "outputs", "said"), WRONG, ids=[said for *_, said in WRONG])
@pytest.mark.parametrize("fallback", [None, "numpy"])
def test_nodes_that_are_none(nodes: list[bytes], outputs: list[str], said: str, fallback: str | None) -> None:
    constants = {"i": np.array([[0, 1]]), "s": np.float32(1), "v": np.float32([1, 2, 3]), "nan": np.float32("nan")}
    data = wire.model(wire.graph(nodes, {"x": (2, 3)}, outputs, constants), 13)
    with pytest.raises(dnn.AsmdnnError, match=said):
        dnn.load_onnx(data, engine=engine(), fallback=fallback)


@pytest.mark.isa("avx2")
def test_an_output_that_nobody_reads_names_nothing() -> None:
    """An output left out must not become what other nodes read where they leave an input out."""
    nodes = [wire.node("MaxPool", ["x"], ["m", ""], kernel_shape=[1]), wire.node("Clip", ["m", "", "most"], ["y"])]
    body = wire.graph(nodes, {"x": (1, 1, 3)}, ["y"], {"most": np.float32(2)})
    net = dnn.load_onnx(wire.model(body), engine=engine(), fallback="numpy")
    np.testing.assert_array_equal(net(np.float32([[[-5, 1, 7]]])), [[[-5, 1, 2]]])


def test_data_that_a_definition_does_not_take() -> None:
    """What numpy says to it when the network runs is an error of the library, too."""
    nodes = [wire.node("GatherElements", ["x", "i"], ["y"])]
    body = wire.graph(nodes, {"x": (2,), "i": (1,)}, ["y"], None, {"i": "int64", "x": "float64"})
    net = dnn.load_onnx(wire.model(body), engine=engine(), fallback="numpy")
    feeds = {"x": np.zeros(2), "i": np.array([7])}
    with pytest.raises(dnn.InvalidArguments, match=r"GatherElements 'y' cannot be computed of .*7 is out of"):
        net.run(feeds)


WITHOUT_MEMORY = """
import resource
import numpy as np
import asmdnn as dnn
graph = dnn.Graph()
x, y = graph.input("x", (8192, 1)), graph.input("y", (1, 8192))
feeds = {"x": np.ones((8192, 1), np.float32), "y": np.ones((1, 8192), np.float32)}
made = graph.apply("MatMul", x, y)
large = {"native": made, "numpy": graph.apply("Cast", made, to=11)}
nets = [graph.compile(z=graph.apply("Relu", z), fallback="numpy") for z in large.values()]
small = graph.compile(z=graph.apply("Add", graph.apply("MatMul", y, x), 1.0))
small.run(feeds)
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20), resource.RLIM_INFINITY))
for net in nets:
    for call in (net.run, net.profile):
        try:
            call(feeds)
        except dnn.OutOfMemory as error:
            print("OutOfMemory")
print(small.run(feeds)["z"])
"""


@pytest.mark.isa("avx2")
def test_results_that_memory_does_not_hold() -> None:
    """In native parts, in numpy's, and where each primitive is called by itself; another network still runs."""
    said = python(WITHOUT_MEMORY, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="1")
    assert said.split() == ["OutOfMemory"] * 4 + ["[[8193.]]"]


def test_files_that_are_none(tmp_path: Path) -> None:
    """A pipe has its reader wait, a device may never end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    tensor = wire.tensor(
        np.ones(3, np.float32), "w", fields=[(14, 1), (13, wire.message([(1, "location"), (2, "pipe")]))]
    )
    body = wire.graph([wire.node("Add", ["x", "w"], ["y"])], {"x": (3,)}, ["y"]) + wire.message([(5, tensor)])
    model = tmp_path / "model.onnx"
    model.write_bytes(wire.model(body))
    with pytest.raises(dnn.InvalidArguments, match="lies in 'pipe', which cannot be read: it is no regular file"):
        dnn.load_onnx(model)
    for path in (pipe, Path("/dev/zero"), tmp_path):
        with pytest.raises(dnn.InvalidArguments, match="cannot be read"):
            dnn.load_onnx(path)


@pytest.mark.parametrize("operand", [1e39, [1.0, -1e300], np.float64(4e38)])
@pytest.mark.filterwarnings("error")
def test_constants_beyond_f32(operand: Any) -> None:
    graph = dnn.Graph()
    x = graph.input("x", (2,))
    with pytest.raises(dnn.InvalidArguments, match="too large for f32"):
        x + operand
    graph.compile(y=graph.apply("Add", x, [float("inf"), float("nan")]), engine=engine())


def test_a_system_without_memory(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """While a file is read, or a key made of it: one sentence."""

    def full(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(model_request, "key_with", full)
    with pytest.raises(dnn.OutOfMemory, match="the system has no more memory: free memory"):
        dnn.load_onnx(b"")
    assert guarded("asmdnn", full) == 2
    assert capsys.readouterr().err == (
        "asmdnn: the system has no more memory: free some, or take a smaller model or problem\n"
    )
