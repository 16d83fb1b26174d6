"""ONNX files as values; and whatever is none, as one clear error in bounded memory."""

import random
from pathlib import Path

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import AsmdnnError, InvalidArguments, Unimplemented
from asmdnn.jit import image_file, pack_file
from asmdnn.network.graph import Body
from asmdnn.network.onnx import messages
from asmdnn.network.onnx import wire as reading
from asmdnn.network.onnx.reader import read_model
from tests.network import wire


def test_a_model_is_what_its_file_says() -> None:
    read = read_model(wire.small())
    body = read.body
    assert (dict(read.opsets), read.producer, body.name) == ({"": 17}, "tests", "small")
    assert [(n.op, n.inputs, n.outputs, n.name) for n in body.nodes[:2]] == [
        ("Conv", ("x", "w", "bias"), ("y",), "first"),
        ("LeakyRelu", ("y",), ("z",), ""),
    ]
    assert dict(body.nodes[0].attributes) == {"pads": (1, 1, 1, 1), "group": 1, "auto_pad": "NOTSET"}
    assert body.nodes[1].get("alpha") == 0.25
    assert str(body.inputs["x"]) == "float32 1x3xhx8"
    assert body.outputs == ("z", "c2")
    assert body.constants["w"].shape == (4, 3, 3, 3)
    assert not body.constants["w"].flags.writeable
    branch = body.nodes[2].get("then_branch")
    assert isinstance(branch, Body)
    assert branch.nodes[0].inputs == ("c",)
    other = body.nodes[2].get("else_branch")
    np.testing.assert_array_equal(other.nodes[0].get("value"), np.float32([1, 2]))


def test_what_an_author_attached() -> None:
    entries = [(14, wire.message([(1, "character"), (2, "a\nb")])), (14, wire.message([(1, "empty")]))]
    assert read_model(wire.small() + wire.message(entries)).metadata == {"character": "a\nb", "empty": ""}
    assert read_model(wire.small()).metadata == {}


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.array([-1, 1 << 62, -(1 << 63)]),
        np.array([True, False]),
        np.float16([0.5, -2]),
        np.array(3.5),
        np.zeros((0, 4), np.int8),
    ],
)
def test_tensors(array: np.ndarray) -> None:
    """As raw bytes, and as numbers, packed or each by itself."""
    field, stored = {"float32": (4, "<f4"), "float64": (10, "<f8"), "int64": (7, "")}.get(array.dtype.name, (5, ""))
    values = array.ravel().view(np.uint16) if array.dtype == np.float16 else array.ravel()
    packed = values.astype(stored).tobytes() if stored else b"".join(wire.varint(int(v)) for v in values)
    forms = [{}, {"fields": [(field, packed)]}]
    if not stored:
        forms.append({"fields": [(field, int(v)) for v in values]})
    for form in forms:
        constant = wire.node("Constant", [], ["y"]) + wire.message(
            [(5, wire.message([(1, "value"), (5, wire.tensor(array, **form)), (20, 4)]))]
        )
        (node,) = read_model(wire.model(wire.graph([constant], {}, ["y"]))).body.nodes
        assert node.get("value").dtype == array.dtype
        np.testing.assert_array_equal(node.get("value"), array)


def test_nodes_come_in_an_order_in_which_they_can_be_computed() -> None:
    nodes = [wire.node("Relu", ["b"], ["c"]), wire.node("Relu", ["a"], ["b"]), wire.node("Relu", ["x"], ["a"])]
    body = read_model(wire.model(wire.graph(nodes, {"x": (4,)}, ["c"]))).body
    assert [node.outputs[0] for node in body.nodes] == ["a", "b", "c"]


def relu(inputs: list[str], outputs: list[str]) -> bytes:
    return wire.node("Relu", inputs, outputs)


OWN_NODE = wire.node("ChannelShuffle", ["x"], ["y"]) + wire.message([(7, "asmdnn")])


def claims(dims: list[int], *fields: tuple[int, object]) -> bytes:
    tensor = wire.message([*((1, n) for n in dims), (2, 1), (8, "huge"), *fields])
    return wire.model(wire.message([(5, tensor), (1, relu(["huge"], ["y"])), (12, wire.value_info("y"))]))


def entry(key: str, value: str) -> tuple[int, bytes]:
    return (13, wire.message([(1, key), (2, value)]))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "has no graph"),
        (b"\x00\x01\x02", "no intact ONNX model"),
        (wire.model(wire.graph([OWN_NODE], {"x": (1, 4)}, ["y"])), "kept for what fusion makes"),
        (wire.small()[:-40], "claims"),
        (b"\x3a\xff\xff\xff\xff\x0f", "claims"),
        (b"\x3a" + b"\xff" * 12, "has no end"),
        (b"\x08\x07\x0b", "wire type 3"),
        (wire.model(wire.graph([relu(["y"], ["y"])], {}, ["y"])), "cycle"),
        (wire.model(wire.graph([relu(["b"], ["a"]), relu(["a"], ["b"])], {}, ["a"])), "cycle"),
        (wire.model(wire.graph([relu(["nobody"], ["a"])], {}, ["a"])), "reads 'nobody'"),
        (wire.model(wire.graph([], {}, ["nothing"])), "nobody makes 'nothing'"),
        (wire.model(wire.graph([relu(["x"], ["a"]), relu(["x"], ["a"])], {"x": ()}, ["a"])), "made before"),
        (claims([1 << 30, 1 << 30], (9, b"")), "no tensor can have"),
        (claims([1 << 20, 1 << 19], (9, b"1234")), "has 4 bytes"),
        (claims([-4], (9, b"")), "no tensor can have"),
        (claims([1] * 40, (9, b"1234")), "40 dims"),
        (claims([3], (4, b"12345678")), "has 2 elements"),
        (claims([1], (14, 1), entry("location", "../../etc/passwd")), "from bytes"),
        (wire.model(wire.graph([wire.message([(1, "x")])], {"x": ()}, ["x"])), "no operator"),
        (wire.model(wire.graph([b"\x0a\x02\xff\xfe"], {"x": ()}, ["x"])), "no UTF-8"),
    ],
)  # fmt: skip
def test_what_is_no_model(data: bytes, what: str) -> None:
    with pytest.raises(InvalidArguments, match=what):
        read_model(data)


class Proto:
    """What writes itself as an onnx.ModelProto does."""

    def __init__(self, data: bytes | Exception) -> None:
        self.data = data

    def SerializeToString(self) -> bytes:
        if isinstance(self.data, Exception):
            raise self.data
        return self.data


RELU = wire.model(wire.graph([wire.node("Relu", ["x"], ["y"])], {"x": (3,)}, ["y"]))


def test_a_model_that_writes_itself() -> None:
    x = np.array([-1, 0, 2], np.float32)
    for model in (RELU, Proto(RELU)):
        np.testing.assert_array_equal(dnn.load_onnx(model)(x), [0, 0, 2])
        assert [node.op for node in read_model(model).body.nodes] == ["Relu"]
    onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
    np.testing.assert_array_equal(dnn.load_onnx(onnx.load_model_from_string(RELU))(x), [0, 0, 2])


def test_a_model_that_cannot_write_itself() -> None:
    too_large = Proto(ValueError("it exceeds 2 GiB"))
    with pytest.raises(
        InvalidArguments, match=r"the Proto cannot be written \(it exceeds 2 GiB\): .*, and give the path$"
    ):
        dnn.load_onnx(too_large)
    with pytest.raises(InvalidArguments, match="path must be that of an ONNX file"):
        dnn.load_onnx(Proto)  # type: ignore[arg-type]
    with pytest.raises(InvalidArguments, match="is no intact ONNX model"):
        dnn.load_onnx(Proto(b"\x0f"))


def test_a_pack_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "small.pack"
    dnn.load_onnx(RELU).save(path)
    for source, name in ((path, "small.pack'"), (path.read_bytes(), "the model"), (b"asmdnnPK....", "the model")):
        with pytest.raises(InvalidArguments, match=f"{name} is a pack, and no ONNX model: asmdnn.load_pack takes it"):
            dnn.load_onnx(source)
    assert image_file.MAGICS == (image_file.MAGIC, pack_file.MAGIC)


def test_what_is_not_read_yet() -> None:
    with pytest.raises(Unimplemented, match="operator set 4, 7 to 28 are read"):
        read_model(wire.model(b"", opset=4))
    with pytest.raises(Unimplemented, match=r"onnx\.inliner"):
        read_model(wire.model(b"") + wire.message([(25, wire.message([(1, "mine")]))]))


@pytest.mark.parametrize("path", ["/nowhere/model.onnx", "\0", 3, None])
def test_paths(path: object) -> None:
    with pytest.raises(InvalidArguments):
        read_model(path)


def test_external_data_stays_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights.bin").write_bytes(b"head" + np.float32([1, 2, 3]).tobytes())
    (tmp_path / "secret.bin").write_bytes(bytes(100))
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")

    def load(location: str, **more: int) -> np.ndarray:
        entries = [entry("location", location), *(entry(key, str(value)) for key, value in more.items())]
        (folder / "m.onnx").write_bytes(claims([3], (14, 1), *entries))
        return read_model(folder / "m.onnx").body.constants["huge"]

    np.testing.assert_array_equal(load("weights.bin", offset=4, length=12), [1, 2, 3])
    for bad in ("../secret.bin", "link.bin", "/etc/passwd", "", "."):
        with pytest.raises(InvalidArguments, match=r"folder|cannot be read"):
            load(bad)
    for numbers in ({"offset": 8}, {"offset": -4}, {"length": 8}):
        with pytest.raises(InvalidArguments, match=r"shorter|its dims need"):
            load("weights.bin", **numbers)


@pytest.mark.parametrize("order", [1, -1])
def test_many_nodes_in_any_order(order: int) -> None:
    nodes = [relu([f"v{i}"], [f"v{i + 1}"]) for i in range(5_000)][::order]
    assert len(read_model(wire.model(wire.graph(nodes, {"v0": ()}, ["v5000"]))).body.nodes) == 5_000


def test_too_many_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One error, as soon as it is clear; what has been read by then is all that is held."""
    monkeypatch.setattr(messages, "MOST_MESSAGES", 10_000)
    data = wire.message((1, relu(["v"], ["w"])) for _ in range(10_000)) * 100
    with pytest.raises(InvalidArguments, match="split the model"):
        read_model(wire.model(data))


def test_nesting() -> None:
    body = wire.graph([], {}, [])
    for _ in range(60):
        body = wire.graph([wire.node("If", ["c"], ["y"], then_branch=body)], {}, [])
    with pytest.raises(InvalidArguments, match="nested"):
        read_model(wire.model(body))


@pytest.mark.parametrize("seed", range(4))
def test_mutants(seed: int) -> None:
    """A file with some octets changed, cut off or doubled is read or refused; nothing else happens."""
    chance, whole = random.Random(seed), wire.small()
    refused = 0
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(data))
            kind = chance.randrange(4)
            if kind == 0:
                data[at] = chance.randrange(256)
            elif kind == 1:
                data[at] ^= 1 << chance.randrange(8)
            elif kind == 2:
                del data[at : at + chance.randint(1, 8)]
            else:
                data[at:at] = data[at : at + chance.randint(1, 30)]
        try:
            read_model(bytes(data))
        except AsmdnnError as error:
            refused += 1
            assert len(str(error)) <= 500
    assert refused > 50


def test_packed_numbers() -> None:
    values = [0, 1, 127, 128, 300, 1 << 62, -1, -(1 << 63)]
    packed = b"".join(map(wire.varint, values))
    np.testing.assert_array_equal(reading.varints(memoryview(packed)), values)
    assert len(reading.varints(memoryview(b""))) == 0
    for bad in (b"\x80", b"\x01\x80", b"\xff" * 10 + b"\x01"):
        with pytest.raises(reading.Malformed):
            reading.varints(memoryview(bad))
