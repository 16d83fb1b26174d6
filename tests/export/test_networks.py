"""Exported networks have the bits of Python's, for every number of threads, and refuse what Python refuses."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import AsmdnnError, InvalidArguments, Unimplemented
from asmdnn.export import tables, writing
from tests.dump.tools import need
from tests.export.programs import Library, results
from tests.network import wire
from tests.network.nets import engine, random, residual_graph

Feeds = dict[str, Any]


def residual(isa: str) -> tuple[dnn.Network, Feeds]:
    g, outputs = residual_graph()
    return g.compile(engine=engine(3, isa), **outputs), {"x": random(1, 3, 16, 16)}


def words(isa: str) -> tuple[dnn.Network, Feeds]:
    """Look-ups by indices of two types, attention-like products, a choice as int64, a truth."""
    g = dnn.Graph("words")
    ids, more = g.input("ids", (1, 7), np.int64), g.input("more", (1, 7), np.int32)
    x = g.apply("Gather", random(50, 32), ids) + g.apply("Gather", random(9, 32), more)
    scores = g.apply("MatMul", x, random(32, 40))
    best = g.apply("ArgMax", scores, axis=2, keepdims=0)
    outputs = {"scores": g.apply("Softmax", scores), "best": best, "large": g.apply("Greater", scores, 0.1)}
    net = g.compile(engine=engine(3, isa), **outputs)
    rng = np.random.default_rng(3)
    return net, {"ids": rng.integers(-50, 50, (1, 7)), "more": rng.integers(0, 9, (1, 7), np.int32)}


def truths(isa: str) -> tuple[dnn.Network, Feeds]:
    """Bytes as input; an output twice, an input as an output, a constant one, integers, an input that nobody reads."""
    g = dnn.Graph("for")
    mask, image = g.input("mask", (1, 3, 9, 11), np.bool_), g.input("image", (1, 3, 9, 11))
    scale, _ = g.input("scale", (1, 1, 1, 1)), g.input("unused", (2,))
    x = g.apply("Where", mask, image, g.apply("Cast", mask, to=1) * scale)
    y = g.apply("Relu", g.apply("Conv", x, random(5, 3, 3, 3), random(5)))
    net = g.compile(
        engine=engine(3, isa), y=y, again=y, scale_too=scale, rounded=g.apply("Cast", y * 20.0, to=6),
        truth=g.apply("Cast", y, to=9), constant=g.apply("Identity", np.arange(6, dtype=np.int64).reshape(2, 3)),
    )  # fmt: skip
    chosen = random(1, 3, 9, 11) > 0
    feeds = {"mask": chosen, "image": random(1, 3, 9, 11), "scale": random(1, 1, 1, 1), "unused": random(2)}
    return net, feeds


def narrow_ends(isa: str) -> tuple[dnn.Network, Feeds]:
    """Halves and bytes, which C passes as they lie."""
    g = dnn.Graph("narrow")
    x, q = g.input("x", (4, 8)), g.input("q", (4, 8), np.uint8)
    floats = x + g.apply("DequantizeLinear", q, np.float32(0.125), np.array(99, np.uint8))
    rounded = g.apply("QuantizeLinear", floats * 2.0, np.float32(0.25), np.array(-7, np.int8))
    net = g.compile(engine=engine(3, isa), io="f16", y=floats @ random(8, 3), rounded=rounded)
    feeds = {"x": random(4, 8).astype(np.float16), "q": np.arange(32).astype(np.uint8).reshape(4, 8) * 8}
    return net, feeds


def noise(isa: str) -> tuple[dnn.Network, Feeds]:
    """Random numbers by a seed of 64 bits, which is no index."""
    nodes = [wire.node("RandomNormalLike", ["x"], ["n"]), wire.node("Add", ["x", "n"], ["y"])]
    data = wire.model(wire.graph(nodes, {"x": (3, 50)}, ["y"]))
    return dnn.load_onnx(data, engine=engine(3, isa), seed="seed"), {"x": random(3, 50), "seed": np.array(-(2**62))}


NETS = [residual, words, truths, narrow_ends, noise]


@pytest.mark.parametrize("isa", [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in ("avx2", "avx512_core")])
@pytest.mark.parametrize("make", NETS)
def test_bits_are_those_of_python(make: Any, isa: str, tmp_path: Path) -> None:
    need("cc")
    net, feeds = make(isa)
    *_, shared = dnn.export_c(net, tmp_path, "some")
    library, wanted = Library(shared, "some"), net.run(feeds)
    for threads in (1, 2, 3):
        for name, array in results(library, feeds, wanted, threads).items():
            np.testing.assert_array_equal(array.view(np.uint8), wanted[name].view(np.uint8), name)


@pytest.mark.isa("avx2")
def test_a_primitive(tmp_path: Path) -> None:
    """In its formats, with scratch, and data that post-ops were given."""
    need("cc")
    dims = {"src": (1, 24, 10, 10), "weights": (20, 24, 3, 3), "dst": (1, 20, 10, 10)}
    descs = {name: dnn.MemoryDesc(shape, dnn.f32, "any") for name, shape in dims.items()}
    desc = dnn.ConvolutionForward(**descs, padding_l=(1, 1), padding_r=(1, 1))
    slope = dnn.Memory.from_array(random(1, 20, 1, 1))
    attr = dnn.Attr([dnn.Eltwise("relu"), dnn.PostOp(lambda x, slope: x * slope, slope=slope)])
    pd = dnn.primitive_desc(desc, attr, engine(3))
    *_, shared = dnn.export_c(pd, tmp_path)
    bound = pd.attr.data()
    tensors = {name: dnn.Memory(each) for name, each in pd.plan.tensors.items() if name not in bound}
    for name in ("src", "weights"):
        dnn.reorder(dnn.Memory.from_array(random(*dims[name])), tensors[name])
    dnn.Primitive(pd).execute(**tensors)
    wanted = tensors["dst"].array.copy()
    for threads in range(1, pd.threads + 1):
        tensors["dst"].array[...] = 0
        inputs = [memory.array for name, memory in tensors.items() if name != "dst"]
        assert Library(shared, "primitive").run(inputs, [tensors["dst"].array], threads) == ""
        np.testing.assert_array_equal(tensors["dst"].array, wanted)


@pytest.mark.isa("avx2")
def test_a_primitive_that_looks_up_rows(tmp_path: Path) -> None:
    need("cc")
    row = {"src": (10, 16), "indices": (4,), "dst": (4, 16)}
    types = {"src": dnn.f32, "indices": dnn.s32, "dst": dnn.f32}
    descs = {name: dnn.MemoryDesc(dims, types[name], "ab"[: len(dims)]) for name, dims in row.items()}
    pd = dnn.primitive_desc(dnn.Gather(**descs, axis=0), engine=engine())
    *_, shared = dnn.export_c(pd, tmp_path, "rows")
    library, src, found = Library(shared, "rows"), random(10, 16), np.zeros((4, 16), np.float32)
    assert library.run([src, np.array([3, -1, 0, 9], np.int32)], [found], 1) == ""
    np.testing.assert_array_equal(found, src[[3, -1, 0, 9]])
    said = library.run([src, np.array([3, -1, 10, 9], np.int32)], [found], 1)
    assert said == "element 2 of indices is 10, it must be from -10 to 9"


@pytest.mark.isa("avx2")
def test_labels_of_a_loss(tmp_path: Path) -> None:
    """Also the one that is ignored, which is no class."""
    need("cc")
    g = dnn.Graph("loss")
    loss = g.apply("SoftmaxCrossEntropyLoss", g.input("x", (3, 4)), g.input("t", (3,), np.int64), ignore_index=-100)
    net = g.compile(engine=engine(), y=loss)
    *_, shared = dnn.export_c(net, tmp_path, "loss")
    library, x, found = Library(shared, "loss"), random(3, 4), np.zeros((), np.float32)
    labels = np.array([3, -100, 0])
    assert library.run([x, labels], [found], 1) == ""
    assert found == net.run({"x": x, "t": labels})["y"]
    labels[2] = -1
    assert library.run([x, labels], [found], 1) == "element 2 of t is -1, it must be from 0 to 3"


@pytest.mark.isa("avx2")
def test_wrong_calls(tmp_path: Path) -> None:
    need("cc")
    net, feeds = words("avx2")
    *_, shared = dnn.export_c(net, tmp_path, "some")
    library, outputs = Library(shared, "some"), [np.empty_like(x) for x in net.run(feeds).values()]
    ids, more = feeds.values()
    wrong = ids.copy()
    wrong[0, 3] = 50
    assert library.run([wrong, more], outputs, 2) == "element 3 of ids is 50, it must be from -50 to 49"
    wrong = np.array([[0, -9, -10, 8, 1, 2, 3]], np.int32)
    assert library.run([ids, wrong], outputs, 1) == "element 2 of more is -10, it must be from -9 to 8"
    assert library.run([ids, more], outputs, 4).startswith("threads is 4, some was exported for 0 (all) to 3")
    assert "threads is -1" in library.run([ids, more], outputs, -1)
    scores, best, large = outputs
    assert library.run([ids, more], [scores.reshape(-1).view(np.uint8)[1:], best, large], 1).startswith(
        "scores is misaligned, it must start at a multiple of 4"
    )
    shared_bytes = [scores.reshape(-1), best, scores.reshape(-1)[1:].view(np.uint8)]
    assert library.run([ids, more], shared_bytes, 1) == "scores overlaps large, give it memory of its own"


@pytest.mark.isa("avx2")
def test_a_cpu_that_lacks_something(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("cc")
    net, feeds = residual("avx2")
    bits = [tables.cpu.CpuidBit("time_travel", (0x7000, 0), 0, 3, 0)]
    monkeypatch.setattr(tables.cpu, "feature_bits", lambda names: bits)
    *_, shared = dnn.export_c(net, tmp_path, "some")
    said = Library(shared, "some").run(list(feeds.values()), list(net.run(feeds).values()), 1)
    assert said == "this CPU lacks time_travel, which some needs: export it for a lower level"


def numpy_nodes() -> dnn.Network:
    g = dnn.Graph()
    x = g.input("x", (5, 3))
    y = g.apply("Det", g.apply("MatMul", x, random(3, 5)), name="odd")
    return g.compile(engine=engine(), fallback="numpy", y=y)


def with_state() -> dnn.Network:
    g = dnn.Graph()
    past = g.state("past", (1, 4))
    g.update(past, past + g.input("x", (1, 4)))
    return g.compile(engine=engine(), y=past * 2.0)


def of_open_dims() -> dnn.Network:
    g = dnn.Graph()
    return g.compile(engine=engine(), y=g.apply("Relu", g.input("x", ("n", 4))))


def nothing_to_compute() -> dnn.Network:
    g = dnn.Graph()
    return g.compile(engine=engine(), y=g.apply("Flatten", g.input("x", (2, 4))))


def of_8_bits() -> dnn.Network:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="numpy's types of 8 bits: pip install ml_dtypes")
    g = dnn.Graph()
    g.input("x", (2, 4), ml_dtypes.float8_e5m2)
    return g.compile(engine=engine(), y=g.apply("Relu", g.input("z", (2, 4))))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (numpy_nodes, "nodes in numpy cannot be exported, leave them to the caller: .*odd"),
        (with_state, "the network keeps past between calls: make them inputs and outputs"),
        (of_open_dims, r"the network has open dims, .* export net\.at\(shapes\)"),
        (nothing_to_compute, "a network that computes nothing cannot be exported: its outputs are inputs or constants"),
        (of_8_bits, "input x is float8_e5m2, for which C has no type: cast it"),
        (lambda: 5, "source must be a Network or a PrimitiveDesc, not 5"),
    ],
)
def test_what_is_not_exported(make: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises((InvalidArguments, Unimplemented), match=message):
        dnn.export_c(make(), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_dropout_is_checked_in_python(tmp_path: Path) -> None:
    dims = (2, 8)
    types = {"src": dnn.f32, "dst": dnn.f32, "mask": dnn.u8}
    descs = {name: dnn.MemoryDesc(dims, dtype, "ab") for name, dtype in types.items()}
    with pytest.raises(Unimplemented, match="Dropout is checked in Python before every call"):
        dnn.export_c(dnn.primitive_desc(dnn.Dropout(**descs), engine=engine()), tmp_path)


@pytest.mark.parametrize("name", ["for", "a b", "9", "asmdnn_x", "é", 5, None, "x" * 101])
def test_names(name: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidArguments, match="name must be a name of C"):
        dnn.export_c(residual("avx2")[0], tmp_path, name)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    for folder in (tmp_path / "file", tmp_path / "file" / "in", "\0"):
        with pytest.raises(InvalidArguments, match=r"the folder .* cannot be written"):
            dnn.export_c(residual("avx2")[0], folder)
    assert (tmp_path / "file").read_text() == "kept"


def test_compilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one there is no shared library; what a broken one says is passed on."""
    net, _ = residual("avx512_core")
    monkeypatch.setattr(writing.shutil, "which", lambda name: None)
    files = dnn.export_c(net, tmp_path)
    assert [path.name for path in files] == ["residual.o", "residual.h", "asmdnn_runtime.c", "asmdnn_runtime.h"]
    assert all(path.is_file() for path in files)
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'no space' >&2\nexit 1\n")
    broken.chmod(0o700)
    monkeypatch.setattr(writing.shutil, "which", lambda name: str(broken))
    with pytest.raises(AsmdnnError, match=r"cc cannot make libresidual\.so, .* no space"):
        dnn.export_c(net, tmp_path)


def test_objects_depend_on_the_plan_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing.shutil, "which", lambda name: None)
    net, _ = residual("avx2")
    first, *_ = dnn.export_c(net, tmp_path / "one")
    second, *_ = dnn.export_c(net, tmp_path / "two")
    assert first.read_bytes() == second.read_bytes()


def test_the_runtime_is_short() -> None:
    source = Path(writing.__file__).with_name("runtime") / "asmdnn_runtime.c"
    assert len(source.read_text().splitlines()) <= 400
