"""Networks with nodes in numpy in the cache on disk: these are written down, and no later process plans."""

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.aten.kept import network_of
from asmdnn.aten.options import CompileOptions
from asmdnn.errors import NotPackable
from asmdnn.jit.image_file import Image
from asmdnn.network.calls.numpy_part import NumpyPart
from asmdnn.network.calls.running import NativePart
from asmdnn.network.graph import Node
from asmdnn.network.looked_at_first import IntegersAgain
from asmdnn.network.onnx import reader
from asmdnn.network.open import OpenNetwork
from asmdnn.network.packs import kept, saved
from asmdnn.network.packs.node_text import node_read, node_text
from asmdnn.runtime.kernels import kernel_cache
from asmdnn.runtime.networks import networks
from tests.network import wire
from tests.network.keeping import files, is_kept, own_directory
from tests.network.nets import engine, random
from tests.support.python import python

pytestmark = pytest.mark.isa("avx2")
directory = pytest.fixture(own_directory)

NODES = [
    wire.node("MatMul", ["x", "w"], ["p"], "before"),
    wire.node("Det", ["p"], ["d"]),  # of no kernel
    wire.node("Mul", ["p", "column"], ["q"], "after"),
    wire.node("Add", ["q", "d"], ["s"]),
    wire.node("Softmax", ["s"], ["y"]),
]
CONSTANTS = {"w": random(5, 5), "column": random(5, 1)}


def model_of(nodes: list[bytes], inputs: dict[str, Any], outputs: list[str], **constants: Any) -> bytes:
    return wire.model(wire.graph(nodes, inputs, outputs, constants))


MODEL = model_of(NODES, {"x": (5, 5)}, ["y", "d"], **CONSTANTS)
OPEN = model_of(
    [wire.node("Relu", ["x"], ["r"]), wire.node("Det", ["r"], ["d"]), wire.node("Exp", ["d"], ["y"])],
    {"x": ("n", 5, 5)},
    ["y"],
)


def load(model: bytes = MODEL, fallback: str | None = "numpy", threads: int = 1) -> dnn.Network:
    return dnn.load_onnx(model, engine=engine(threads), fallback=fallback)


@pytest.fixture
def no_planner(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """From its call on, nothing can be read, planned or generated."""

    def end() -> None:
        monkeypatch.setattr(reader, "read_model", None)
        monkeypatch.setattr(kernel_cache(), "_generate", None)

    yield end


def same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_found_after_the_first_run(directory: Path, no_planner: Callable[[], None]) -> None:
    first, feeds = load(), {"x": random(5, 5)}
    assert [type(part) for part in first._runnable.parts] == [NativePart, NumpyPart, NativePart]
    assert files(directory) == []
    wanted = first.run(feeds)
    assert len(files(directory)) == 1
    no_planner()
    again = load()
    assert is_kept(again) and not again.is_native
    same(again.run(feeds), wanted)
    again.check()
    assert len(files(directory)) == 1


def test_it_is_planned_where_it_is_looked_at(directory: Path) -> None:
    first, feeds = load(), {"x": random(5, 5)}
    wanted = first.run(feeds)
    for look in (
        lambda net: net.explain() == first.explain(),
        lambda net: [step.fits for step in net.verify(feeds)],
        lambda net: "in numpy" in net.profile(feeds, 1),
        lambda net: len(net.segments) == 3,
    ):
        again = load()
        assert is_kept(again) and look(again) and not is_kept(again)
        same(again.run(feeds), wanted)
    same(pickle.loads(pickle.dumps(load())).run(feeds), wanted)
    with pytest.raises(dnn.InvalidArguments, match="only a network without nodes in numpy can be bound"):
        load().bind()


def test_who_asks_for_kernels_alone_does_not_find_it(directory: Path) -> None:
    load().run({"x": random(5, 5)})
    with pytest.raises(dnn.Unimplemented, match="1 of the nodes has no kernel"):
        load(fallback=None)
    net = load(OPEN)
    assert isinstance(net, OpenNetwork)
    net.prepare([{"x": (2, 5, 5)}])
    with pytest.raises(dnn.Unimplemented, match="1 of the nodes has no kernel"):
        load(OPEN, fallback=None)(random(2, 5, 5))


SCRIPT = """
import sys
import numpy as np
import asmdnn as dnn
from asmdnn.network import keeping
from asmdnn.network.onnx import reader
from asmdnn.runtime.kernels import kernel_cache

reader.read_model = kernel_cache()._generate = None
x = np.load(sys.argv[3])
engine = dnn.Engine(isa="avx2", threads=int(sys.argv[2]), l2_bytes=512 << 10, machine="zen3")
net = dnn.load_onnx(sys.argv[1], engine=engine, fallback="numpy")
np.savez(sys.argv[4], **net.run({"x": x}))
print(sorted(name for name in sys.modules if name in ("asmdnn.network.planned", "peachpy")))
"""


@pytest.mark.parametrize("model", [MODEL, OPEN])
def test_another_process(directory: Path, tmp_path: Path, model: bytes) -> None:
    """It plans nothing, and imports no planner."""
    (path := tmp_path / "m.onnx").write_bytes(model)
    net, x = dnn.load_onnx(path, engine=engine(2), fallback="numpy"), random(5, 5)
    x = random(2, 5, 5) if net.is_open else x
    wanted = net.run({"x": x})
    same(net.run({"x": x}), wanted)
    np.save(tmp_path / "x.npy", x)
    said = python(SCRIPT, path, 2, tmp_path / "x.npy", tmp_path / "y.npz", ASMDNN_CACHE_DIR=str(directory))
    assert said == "[]"
    same(dict(np.load(tmp_path / "y.npz")), wanted)


@pytest.fixture
def own_limit() -> Iterator[None]:
    before = networks.limit_bytes
    yield
    dnn.set_memory_limits(networks=before)


@pytest.mark.usefixtures("own_limit")
def test_shapes_that_come_again(directory: Path, no_planner: Callable[[], None]) -> None:
    """Whatever the limit of memory keeps of them."""
    first = load(OPEN)
    assert isinstance(first, OpenNetwork)
    inputs = [random(n, 5, 5) for n in (1, 2, 5)]
    wanted = [first(x) for x in inputs]
    assert files(directory) == []
    first.prepare([{"x": x.shape} for x in inputs])
    many = len(files(directory))
    no_planner()
    dnn.set_memory_limits(networks=1)
    second = load(OPEN)
    assert isinstance(second, OpenNetwork)
    for x, y in [*zip(inputs, wanted, strict=True)] * 2:
        np.testing.assert_array_equal(second(x), y)
        assert is_kept(second.last) and len(second.shapes) <= 1
    assert len(files(directory)) == many


def test_numpy_alone(directory: Path, no_planner: Callable[[], None]) -> None:
    """A network without kernels is kept when it is made."""
    model = model_of([wire.node("Det", ["x"], ["y"])], {"x": (2, 5, 5)}, ["y"])
    first, x = load(model), random(2, 5, 5)
    assert [type(part) for part in first._runnable.parts] == [NumpyPart] and len(files(directory)) == 1
    no_planner()
    again = load(model)
    assert is_kept(again)
    np.testing.assert_array_equal(again(x), first(x))


def test_graphs_of_torch(directory: Path) -> None:
    """What torch's graphs become is kept so, too, for those who take numpy."""
    g = dnn.Graph()
    y = g.apply("Det", g.apply("Relu", g.input("x", (2, 5, 5)))) * 2

    def made(fallback: str | None) -> dnn.Network:
        options = CompileOptions.of(engine=engine(1), fallback=fallback)
        return network_of(g, {"y": y}, options, holds=True, keeps=True)

    x = random(2, 5, 5)
    wanted = made("numpy")(x)
    again = made("numpy")
    assert is_kept(again)
    np.testing.assert_array_equal(again(x), wanted)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(again))(x), wanted)
    for word, error in ((None, dnn.Unimplemented), ("Numpy", dnn.InvalidArguments)):
        with pytest.raises(error):
            made(word)


def test_integers(directory: Path, no_planner: Callable[[], None]) -> None:
    """Indices that one native part makes, and another one reads."""
    nodes = [
        wire.node("MatMul", ["x", "w"], ["p"]),
        wire.node("ArgMax", ["p"], ["at"], axis=1, keepdims=0),
        wire.node("Det", ["p"], ["d"]),
        wire.node("Add", ["p", "d"], ["s"]),
        wire.node("Gather", ["s", "at"], ["z"]),
    ]
    model = model_of(nodes, {"x": (6, 6)}, ["at", "z"], w=random(6, 6))
    first, feeds = load(model), {"x": random(6, 6)}
    assert IntegersAgain in [type(part) for part in first._runnable.parts]
    wanted = first.run(feeds)
    no_planner()
    again = load(model)
    assert is_kept(again)
    same(again.run(feeds), wanted)


def test_attributes() -> None:
    """Each comes back with its type and its bits."""
    arrays = list[np.ndarray]()

    def shelve(array: np.ndarray) -> int:
        arrays.append(array)
        return len(arrays) - 1

    values: dict[str, Any] = {
        "number": -0.0, "nan": np.nan, "large": -(1 << 63), "truth": True, "text": "a\udcff\n", "octets": b"\xff\0",
        "list": (1, 2.5, "x", ()), "nothing": None, "tensor": random(2, 3), "single": np.float32(0.1), "empty": (),
    }  # fmt: skip
    node = Node("Det", ("x", ""), ("y",), values, "name", "", 22)
    read = node_read(json.loads(json.dumps(node_text(node, shelve))), arrays.__getitem__)
    assert (read.op, read.inputs, read.outputs, read.name, read.opset) == ("Det", ("x", ""), ("y",), "name", 22)
    assert read.attributes.keys() == values.keys()
    for name, value in values.items():
        assert type(read.get(name)) is type(value)
        assert repr(read.get(name)) == repr(value)
    for value in (len, Node("Det", (), (), {}), [1]):
        with pytest.raises(NotPackable):
            node_text(Node("Det", ("x",), ("y",), {"value": value}), shelve)


def test_damaged_files_count_as_absent(directory: Path) -> None:
    feeds = {"x": random(5, 5)}
    wanted = load().run(feeds)
    (file,) = files(directory)
    image = file.read_bytes()
    for bad in (image[:100], image[:-1] + bytes([image[-1] ^ 1]), image[:5000] + b"?" + image[5001:], b""):
        file.write_bytes(bad)
        net = load()
        assert not is_kept(net)
        same(net.run(feeds), wanted)
        assert file.read_bytes() == image


def of_numpy(text: dict[str, Any]) -> dict[str, Any]:
    (part,) = (part for part in text["parts"] if "nodes" in part)
    found: dict[str, Any] = part
    return found


WRONG: list[Callable[[dict[str, Any]], Any]] = [
    lambda t: t["parts"].pop(0),
    lambda t: t["parts"].pop(1),
    lambda t: t["parts"].reverse(),
    lambda t: of_numpy(t).pop("values"),
    lambda t: of_numpy(t).update(nodes=[[]]),
    lambda t: of_numpy(t).update(nodes=7),
    lambda t: of_numpy(t)["nodes"][0].__setitem__(0, "PythonMap"),
    lambda t: of_numpy(t)["nodes"][0].__setitem__(0, ["Det"]),
    lambda t: of_numpy(t)["nodes"][0].__setitem__(1, ["nothing"]),
    lambda t: of_numpy(t)["nodes"][0].__setitem__(2, ["nothing"]),
    lambda t: of_numpy(t)["nodes"][0].__setitem__(3, []),
    lambda t: of_numpy(t)["nodes"][0].__setitem__(3, {"axis": {"array": 1 << 40}}),
    lambda t: of_numpy(t)["nodes"][0].__setitem__(3, {"axis": {"array": -1}}),
    lambda t: of_numpy(t)["nodes"][0].__setitem__(3, {"axis": {"function": 0}}),
    lambda t: of_numpy(t)["nodes"][0].__setitem__(6, "13"),
    lambda t: of_numpy(t)["values"]["d"].__setitem__(0, "O"),
    lambda t: of_numpy(t)["values"]["d"].__setitem__(1, [-3]),
    lambda t: of_numpy(t)["values"]["d"].__setitem__(1, [3]),
    lambda t: of_numpy(t)["values"]["d"].__setitem__(2, 0),
    lambda t: of_numpy(t)["values"]["p"].__setitem__(1, [3, 4]),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_nonsense_is_refused(directory: Path, number: int) -> None:
    load().run({"x": random(5, 5)})
    store, (file,) = kept.store(), files(directory)
    assert store is not None
    image = store.get_image(file.stem)
    assert image is not None
    saved.saved(image, "good", 1)
    text = json.loads(json.dumps(image.text))
    WRONG[number](text)
    with pytest.raises(dnn.InvalidArguments, match="makes no sense") as caught:
        saved.saved(Image(text, image.sections, image.whole, 0.0, image.apart), "bad", 1)
    assert "\n" not in str(caught.value)
