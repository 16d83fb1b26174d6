"""Networks as files: the same answers without PeachPy, and errors for whatever is no intact file of ours."""

import hashlib
import json
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments
from asmdnn.jit import image_file
from asmdnn.network.packs import saved
from tests.network.nets import engine, random, residual
from tests.support.python import IMPORTED, NO_PEACHPY, python

ROOT = Path(__file__).parents[2]
HEADER_BYTES = 64

SCRIPT = (
    NO_PEACHPY
    + """
import numpy as np
import asmdnn as dnn

net = dnn.load_pack(sys.argv[1], threads=int(sys.argv[2]))
found = net.run({"x": np.load(sys.argv[3])})
np.savez(sys.argv[4], **found)
print(json.dumps(sorted(name for name in sys.modules if name.startswith("asmdnn.primitives."))))
"""
    + IMPORTED
)


@pytest.fixture(scope="module")
def net() -> dnn.Network:
    return residual()


@pytest.fixture(scope="module")
def file(net: dnn.Network, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("networks") / "net.pack"
    net.save(path)
    return path


def loaded(path: Path, threads: int = 1) -> dnn.Network:
    found = dnn.load_pack(path, threads)
    assert isinstance(found, dnn.Network)
    return found


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_loaded_network_has_the_same_bits(net: dnn.Network, file: Path, threads: int) -> None:
    x = random(1, 3, 16, 16)
    other = loaded(file, threads)
    assert other.engine.threads == threads
    wanted, found = net.run({"x": x}), other.run({"x": x})
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)
    assert (other.inputs, other.outputs, other.explain()) == (net.inputs, net.outputs, net.explain())
    assert repr(other) == repr(net)


@pytest.mark.isa("avx2")
def test_bound_and_proved(net: dnn.Network, file: Path) -> None:
    other, x = loaded(file), random(1, 3, 16, 16)
    other.check()
    arrays = {"x": x, "y": np.empty((1, 10), np.float32), "joined": np.empty((1, 16, 8, 8), np.float32)}
    other.bind(**arrays)()
    for name, array in net.run({"x": x}).items():
        np.testing.assert_array_equal(arrays[name], array)


@pytest.mark.isa("avx2")
def test_weights_are_used_where_the_file_has_them(file: Path) -> None:
    part = loaded(file)._runnable.native
    assert part is not None
    weights = part.runner.weights.whole()
    assert not weights.flags.owndata
    assert not weights.flags.writeable
    assert weights.ctypes.data % mmap.PAGESIZE == 0
    with open("/proc/self/maps") as maps:
        inside = [line for line in maps if line.rstrip().endswith(str(file))]
    assert any(
        begin <= weights.ctypes.data < end and line.split()[1] == "r--p" for begin, end, line in map(ends, inside)
    )


def ends(line: str) -> tuple[int, int, str]:
    begin, end = line.split()[0].split("-")
    return int(begin, 16), int(end, 16), line


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_process_without_peachpy_and_planners(net: dnn.Network, file: Path, tmp_path: Path, threads: int) -> None:
    x = random(1, 3, 16, 16)
    np.save(tmp_path / "x.npy", x)
    said = python(SCRIPT, file, threads, tmp_path / "x.npy", tmp_path / "y.npz", ASMDNN_CACHE="0")
    primitives, imported = said.splitlines()
    assert json.loads(primitives) == ["asmdnn.primitives.core", "asmdnn.primitives.core.engine"]
    assert imported == "[]"
    found = np.load(tmp_path / "y.npz")
    for name, array in net.run({"x": x}).items():
        np.testing.assert_array_equal(found[name], array)


def test_saved_for_a_level_that_this_machine_may_lack(tmp_path: Path) -> None:
    other = residual(isa="avx512_core")
    other.save(tmp_path / "a.pack")
    other.save(tmp_path / "b.pack")
    assert (tmp_path / "a.pack").read_bytes() == (tmp_path / "b.pack").read_bytes()
    with dnn.max_cpu_isa("avx2"), pytest.raises(dnn.Unimplemented, match="isa avx512_core cannot be executed here"):
        dnn.load_pack(tmp_path / "a.pack")
    image = image_file.read(tmp_path / "a.pack")
    found = saved.read(image, 1)
    found.check()
    assert [spec.name for spec in found.natives[0].plan.specs] == [spec.name for spec in other.segments[0].plan.specs]  # type: ignore[union-attr]


@pytest.mark.isa("avx2")
def test_outputs_that_are_inputs_or_constants(tmp_path: Path) -> None:
    g = dnn.Graph()
    x = g.input("x", (2, 3))
    shape = g.apply("Shape", x)
    net = g.compile(engine=engine(), y=g.apply("Relu", x), same=x, shape=shape, again=g.apply("Relu", x))
    net.save(tmp_path / "n.pack")
    values = random(2, 3)
    for found in (net.run({"x": values}), loaded(tmp_path / "n.pack").run({"x": values})):
        np.testing.assert_array_equal(found["y"], np.maximum(values, 0))
        np.testing.assert_array_equal(found["same"], values)
        assert found["same"] is not values
        assert found["shape"].tolist() == [2, 3]
        assert found["shape"].dtype == np.int64
    with pytest.raises(InvalidArguments, match="use run"):
        net.bind(x=values, y=values, same=values, shape=found["shape"], again=values)


@pytest.mark.isa("avx2")
def test_indices_are_checked_as_ever(tmp_path: Path) -> None:
    g = dnn.Graph()
    x = g.input("x", (2, 5), np.int64)
    g.compile(engine=engine(), y=g.apply("Gather", random(9, 12), x)).save(tmp_path / "n.pack")
    net, indices = loaded(tmp_path / "n.pack"), np.random.default_rng(0).integers(-9, 9, (2, 5))
    y = np.empty((2, 5, 12), np.float32)
    run = net.bind(x=indices, y=y)
    run()
    np.testing.assert_array_equal(y, net(indices))
    indices[1, 2] = 9
    for call in (run, lambda: net(indices)):
        with pytest.raises(InvalidArguments, match=r"x\[1, 2\] is 9"):
            call()


@pytest.mark.isa("avx2")
def test_labels_are_checked_as_ever(tmp_path: Path) -> None:
    g = dnn.Graph()
    loss = g.apply("SoftmaxCrossEntropyLoss", g.input("x", (3, 4)), g.input("t", (3,), np.int64), ignore_index=-100)
    planned = g.compile(engine=engine(), y=loss)
    planned.save(tmp_path / "n.pack")
    net, feeds = loaded(tmp_path / "n.pack"), {"x": random(3, 4), "t": np.array([3, -100, 0])}
    assert net.run(feeds)["y"] == planned.run(feeds)["y"]
    with pytest.raises(InvalidArguments, match=r"t\[1\] is 4, axis 1 of src has 4: use 0 to 3, or -100"):
        net.run({**feeds, "t": np.array([3, 4, -100])})


@pytest.mark.isa("avx2")
def test_numbers_without_a_sign_are_no_indices(tmp_path: Path) -> None:
    g = dnn.Graph()
    x = g.input("x", (3,), np.uint32)
    net, given = g.compile(engine=engine(1), y=g.apply("Add", x, x)), np.array([1, 70000, 3], np.uint32)
    net.save(tmp_path / "net.pack")
    np.testing.assert_array_equal(loaded(tmp_path / "net.pack")(given), given * 2)


@pytest.mark.isa("avx2")
def test_saved_again_it_is_the_same_file(file: Path, tmp_path: Path) -> None:
    loaded(file).save(tmp_path / "copy.pack")
    assert (tmp_path / "copy.pack").read_bytes() == file.read_bytes()


@pytest.mark.isa("avx2")
def test_what_a_pack_does_not_have(file: Path) -> None:
    net = loaded(file)
    calls: list[Callable[[], Any]] = [
        lambda: net.profile({"x": random(1, 3, 16, 16)}),
        lambda: net.verify({"x": random(1, 3, 16, 16)}),
        lambda: net.segments,
    ]
    for call in calls:
        with pytest.raises(InvalidArguments, match=r"a network from a pack cannot be .*: load its model"):
            call()


def with_numpy(*dims: Any) -> tuple[dnn.Graph, dict[str, Any]]:
    """Native parts with weights of their own in front of a node in numpy, and after it."""
    g = dnn.Graph("with numpy")
    first = g.apply("Relu", g.input("x", dims) @ random(8, 6))
    bits = g.apply("Cast", first * 100.0, to=7)
    masked = g.apply("Cast", g.apply("BitwiseAnd", bits, np.array([7], np.int64)), to=1)
    return g, {"y": (first + masked) @ random(6, 10), "masked": masked, "bits": bits}


@pytest.mark.parametrize("source", ["planned", "kept"])
def test_nodes_in_numpy_are_saved(source: str, tmp_path: Path) -> None:
    """With the parts around them, and again of what is loaded."""
    g, outputs = with_numpy(3, 8)
    net = g.compile(engine=engine(1), fallback="numpy", **outputs)
    feeds = {"x": random(3, 8)}
    wanted = net.run(feeds)
    assert len(net._runnable.natives) == 2
    net.save(tmp_path / "one.pack")
    if source == "kept":
        dnn.load_network(tmp_path / "one.pack", 1).save(tmp_path / "two.pack")
    loaded = dnn.load_network(tmp_path / ("two.pack" if source == "kept" else "one.pack"), 2)
    loaded.check()
    for name, array in loaded.run(feeds).items():
        np.testing.assert_array_equal(array, wanted[name])
        assert array.dtype == wanted[name].dtype
    np.testing.assert_array_equal(wanted["masked"], wanted["bits"] & 7)


def test_nodes_in_numpy_of_several_shapes_are_saved(tmp_path: Path) -> None:
    g, outputs = with_numpy("n", 8)
    net = g.compile(engine=engine(1), fallback="numpy", **outputs)
    feeds = {n: {"x": random(n, 8)} for n in (2, 5, 9)}
    wanted = {n: net.run(each) for n, each in feeds.items()}
    net.save(tmp_path / "net.pack")
    loaded = dnn.load_network(tmp_path / "net.pack", 1)
    for n, each in feeds.items():
        for name, array in loaded.run(each).items():
            np.testing.assert_array_equal(array, wanted[n][name])


def test_what_computes_nothing_is_neither_saved_nor_bound(tmp_path: Path) -> None:
    """Nor is it said to have nodes in numpy."""
    g = dnn.Graph()
    net = g.compile(engine=engine(), y=g.apply("Flatten", g.input("x", (2, 3))))
    with pytest.raises(InvalidArguments, match="a network that computes nothing cannot be saved"):
        net.save(tmp_path / "x.pack")
    with pytest.raises(InvalidArguments, match="a network that computes nothing cannot be bound"):
        net.bind(x=np.zeros((2, 3), np.float32), y=np.zeros((2, 3), np.float32))


@pytest.mark.parametrize("path", [None, 3, "", "no/such/folder/x.pack", "a\0b"])
def test_paths_that_cannot_be_written(net: dnn.Network, path: Any) -> None:
    with pytest.raises(InvalidArguments, match=r"path|pack"):
        net.save(path)


def refused(path: Path, image: bytes) -> str:
    path.write_bytes(image)
    with pytest.raises(InvalidArguments) as caught:
        dnn.load_pack(path)
    text = str(caught.value)
    assert str(path)[:60] in text
    assert text.count("\n") == 0
    return text


def sealed(image: bytes) -> bytes:
    """With a checksum that holds."""
    return image[:32] + hashlib.sha256(image[:32] + image[HEADER_BYTES:]).digest() + image[HEADER_BYTES:]


def rewritten(image: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """With another text, and a checksum that holds."""
    length = int.from_bytes(image[12:16], "little")
    text = json.loads(image[HEADER_BYTES : HEADER_BYTES + length])
    change(text)
    head = json.dumps(text).encode()
    head += b" " * (length - len(head)) if len(head) <= length else b" " * (-(HEADER_BYTES + len(head)) % 4096)
    rest = image[HEADER_BYTES + length :]
    sizes = len(head).to_bytes(4, "little") + (HEADER_BYTES + len(head) + len(rest)).to_bytes(8, "little") * 2
    return sealed(image[:12] + sizes + bytes(32) + head + rest)


@pytest.mark.isa("avx2")
def test_damage_is_noticed(file: Path, tmp_path: Path) -> None:
    image = file.read_bytes()
    bad = tmp_path / "bad.pack"
    for length in (8, 20, 55, 56, 100, len(image) // 2, len(image) - 1):
        assert "truncated" in (text := refused(bad, image[:length])) or "instead of" in text
    for at in (9, 13, 17, 30, 60, 5000, len(image) // 2, len(image) - 1):
        refused(bad, image[:at] + bytes([image[at] ^ 1]) + image[at + 1 :])
    assert "instead of" in refused(bad, image + b"x")
    assert "format 3" in refused(bad, sealed(image[:8] + b"\x03" + image[9:]))
    assert "larger than the file" in refused(bad, sealed(image[:31] + b"\x01" + image[32:]))
    assert "larger than the file" in refused(bad, sealed(image[:15] + b"\x01" + image[16:]))


CHANGES: list[Callable[[dict[str, Any]], Any]] = [
    lambda t: t.clear(),
    lambda t: t.update(sections=3),
    lambda t: t["sections"].update(weights=[0, 1 << 60]),
    lambda t: t["sections"].update(code=[-64, 64]),
    lambda t: t["sections"].pop("arrays"),
    lambda t: t.update(asmdnn="0.0.1"),
    lambda t: t.update(sources=None),
    lambda t: t.update(isa="mmx"),
    lambda t: t.update(title=3),
    lambda t: t.update(explanation=None),
    lambda t: t["inputs"].update(x=["<f4", [1, 3, 16, 17]]),
    lambda t: t["inputs"].update(x=["O", [1, 3, 16, 16]]),
    lambda t: t["inputs"].update(x=["<f4", [1 << 40] * 4]),
    lambda t: t["outputs"].update(y=["<f4", [1, 11]]),
    lambda t: t["results"].update(y="nothing"),
    lambda t: t["results"].update(y=0),
    lambda t: t["results"].pop("y"),
    lambda t: t["parts"][0]["makes"].clear(),
    lambda t: t["parts"][0].update(reads=[]),
    lambda t: t["parts"][0].update(limits={"x": [9, 0]}),
    lambda t: t["parts"][0]["layout"].update(arena_bytes=1 << 60),
    lambda t: t["parts"][0]["layout"].update(arena_bytes=64),
    lambda t: t["parts"][0]["layout"]["arena"].popitem(),
    lambda t: t["parts"][0]["layout"]["arena"].update({next(iter(t["parts"][0]["layout"]["arena"])): -64}),
    lambda t: t["parts"][0]["layout"]["weights"].update({next(iter(t["parts"][0]["layout"]["weights"])): 1 << 40}),
    lambda t: t["parts"][0]["layout"]["weights"].popitem(),
    lambda t: t.update(parts=[]),
    lambda t: t["parts"].append({}),
    lambda t: t["parts"].append({"integers": {"nothing": "<i8"}}),
    lambda t: t["parts"][0]["kernels"].clear(),
    lambda t: t["parts"][0]["kernels"].__setitem__(0, -1),
    lambda t: t["parts"][0].update(sum="0" * 64, apart=[0, 1 << 60]),
    lambda t: t["arrays"].pop(),
    lambda t: t["arrays"][0].__setitem__(0, "O"),
    lambda t: t["arrays"][0].__setitem__(0, "<f4"),
    lambda t: t["arrays"][0].__setitem__(1, [1 << 50, 7]),
    lambda t: t["arrays"][0].__setitem__(2, -8),
    lambda t: t["kernels"].pop(0),
    lambda t: t["kernels"].clear(),
    lambda t: t["kernels"][0].update(name=7),
    lambda t: t["kernels"][0].update(isa="avx512_core"),
    lambda t: t["kernels"][0].update(code=[1 << 40, 8]),
    lambda t: t["kernels"][0].update(code=[0, 0]),
    lambda t: t["parts"][0]["plan"]["phases"][0].update(kernels=[999]),
    lambda t: t["parts"][0]["plan"]["phases"][0]["arguments"].pop(),
    lambda t: t["parts"][0]["plan"]["phases"][0].update(repeats=[[1 << 40, [0]]]),
    lambda t: t["parts"][0]["plan"]["phases"].clear(),
    lambda t: t["parts"][0]["plan"]["tensors"].popitem(),
    lambda t: t["parts"][0]["plan"].update(
        scratch_bytes=dict.fromkeys(t["parts"][0]["plan"]["scratch_bytes"], 1 << 60)
    ),
]


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_nonsense_after_a_good_checksum(file: Path, tmp_path: Path, number: int) -> None:
    refused(tmp_path / "bad.pack", rewritten(file.read_bytes(), CHANGES[number]))


@pytest.mark.isa("avx2")
def test_what_is_no_file(tmp_path: Path, file: Path) -> None:
    for path in (tmp_path, tmp_path / "none", "a\0b", 3, None):
        with pytest.raises(InvalidArguments):
            dnn.load_pack(path)  # type: ignore[arg-type]
    for threads in (-1, 1.5, "2", None, 10**9):
        with pytest.raises(InvalidArguments, match="thread"):
            dnn.load_pack(file, threads)  # type: ignore[arg-type]
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(InvalidArguments, match="regular file"):
        dnn.load_pack(tmp_path / "fifo")


def test_networks_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    (tmp_path / "text.pack").write_text("no network")
    with pytest.raises(InvalidArguments, match=r"text\.pack' is no saved network: make one with Network\.save"):
        dnn.load_network(tmp_path / "text.pack")
    with pytest.raises(InvalidArguments, match=r"none\.pack' cannot be read \(No such file or directory\)"):
        dnn.load_network(tmp_path / "none.pack")
    with pytest.raises(InvalidArguments, match="is not a regular file"):
        dnn.load_network(tmp_path)
