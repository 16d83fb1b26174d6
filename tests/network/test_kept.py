"""Networks in the cache on disk: found again for the same model, dims, constants and engine, and for no others."""

import os
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.cli.main import main
from asmdnn.generators.dot.byte_sums import BLOCK_BYTES
from asmdnn.jit.store import DiskStore
from asmdnn.network.onnx import reader
from asmdnn.network.open import OpenNetwork
from asmdnn.network.packs import kept
from asmdnn.primitives.core.implementation import plans
from asmdnn.runtime.kernels import kernel_cache
from tests.network import wire
from tests.network.keeping import files, is_kept, own_directory
from tests.network.nets import engine, random
from tests.support.python import IMPORTED, python

pytestmark = pytest.mark.isa("avx2")


def model_of(name: str) -> bytes:
    """A model with a node of that name."""
    nodes = [
        wire.node("Conv", ["x", "w"], ["c"], name, pads=[1, 1, 1, 1]),
        wire.node("Relu", ["c"], ["r"]),
        wire.node("Mul", ["r", "s"], ["y"]),
    ]
    return wire.model(wire.graph(nodes, {"x": (1, 3, "h", "w"), "s": ()}, ["y"], {"w": WEIGHTS}))


WEIGHTS = random(8, 3, 3, 3)
MODEL = model_of("first")


directory = pytest.fixture(own_directory)


def load(size: int = 6, scale: float = 2.0, threads: int = 1, model: Any = MODEL, **more: Any) -> dnn.Network:
    return dnn.load_onnx(model, {"x": (1, 3, size, 7)}, constants={"s": scale}, engine=engine(threads), **more)


def test_found_after_the_first_run(directory: Path) -> None:
    first, x = load(), random(1, 3, 6, 7)
    assert not is_kept(first)
    assert not is_kept(load())
    assert files(directory) == []
    planned = set(plans.entries)
    y = first(x)
    assert set(plans.entries) == planned  # to be kept, nothing is planned again
    (file,) = files(directory)
    assert file.stat().st_mode & 0o777 == 0o600
    again = load()
    assert is_kept(again)
    np.testing.assert_array_equal(again(x), y)
    again.check()
    assert is_kept(again)
    assert again.explain() == first.explain()  # planned for that: what batches do to bits is not kept
    assert all(difference.fits for difference in again.verify({"x": x}))
    assert [step.label for step in again.segments[0].steps] == ["Conv 'first' + Relu, Mul", "reorder y"]  # type: ignore[union-attr]


SCRIPT = f"""
import sys
import numpy as np
import asmdnn as dnn

engine = dnn.Engine(isa="avx2", threads=1, l2_bytes=512 << 10, machine="zen3")
net = dnn.load_onnx(sys.argv[1], engine=engine)
np.save(sys.argv[3], net(np.load(sys.argv[2])))
{IMPORTED}
"""


def test_another_process(directory: Path, tmp_path: Path) -> None:
    """It imports nothing that plans or generates, though the sum of the model needs a kernel."""
    weights = random(128, 256)
    assert weights.nbytes > BLOCK_BYTES
    nodes = [wire.node("MatMul", ["x", "w"], ["y"])]
    (path := tmp_path / "m.onnx").write_bytes(wire.model(wire.graph(nodes, {"x": (3, 128)}, ["y"], {"w": weights})))
    net, x = dnn.load_onnx(path, engine=engine()), random(3, 128)
    y = net(x)
    np.save(tmp_path / "x.npy", x)
    arguments = path, tmp_path / "x.npy", tmp_path / "y.npy"
    python(SCRIPT, *arguments, ASMDNN_CACHE_DIR=str(directory))  # this one makes that kernel
    assert python(SCRIPT, *arguments, ASMDNN_CACHE_DIR=str(directory)) == "[]"
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), y)


def test_a_large_model_is_read_rather_than_searched(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the files that it names; what is no model is refused as ever."""
    load()(random(1, 3, 6, 7))
    monkeypatch.setattr(kept, "SEARCHED_BYTES", 0)
    assert is_kept(load())
    with pytest.raises(dnn.InvalidArguments, match="is no intact ONNX model"):
        load(model=b"location")


@pytest.mark.parametrize("more", [{"shapes": (1, 4)}, {"shapes": "x"}, {"shapes": 5}, {"constants": ["s"]}], ids=str)
def test_words_that_are_wrong_find_nothing(directory: Path, more: dict[str, Any]) -> None:
    """Where a network is kept for the same model without them."""
    model = wire.model(wire.graph([wire.node("Relu", ["x"], ["y"])], {"x": (1, 4)}, ["y"]))
    dnn.load_onnx(model, engine=engine())(random(1, 4))
    assert is_kept(dnn.load_onnx(model, engine=engine()))
    with pytest.raises(dnn.InvalidArguments, match=r"must map names of inputs to values, not"):
        dnn.load_onnx(model, engine=engine(), **more)


def test_what_is_another_network(directory: Path, tmp_path: Path) -> None:
    load()(random(1, 3, 6, 7))
    (tmp_path / "m.onnx").write_bytes(MODEL)
    assert is_kept(load(model=tmp_path / "m.onnx")), "by content, wherever it is"
    others = [
        load(size=7), load(scale=3.0), load(threads=2), load(model=model_of("other")),
        dnn.load_onnx(MODEL, {"x": (1, 3, 6, 7)}, constants={"s": 2.0}, engine=dnn.Engine("cpu", "avx2", 1, 1 << 20)),
    ]  # fmt: skip
    assert not any(map(is_kept, others))


def test_a_network_that_may_have_parts_in_numpy(directory: Path) -> None:
    """One that has none is the one without; other words are refused as ever."""
    y = load(fallback="numpy")(x := random(1, 3, 6, 7))
    assert len(files(directory)) == 1
    for net in (load(), load(fallback="numpy")):
        assert is_kept(net)
        np.testing.assert_array_equal(net(x), y)
    with pytest.raises(dnn.InvalidArguments, match="fallback"):
        load(fallback="Numpy")


def test_damaged_files_count_as_absent(directory: Path) -> None:
    y = load()(x := random(1, 3, 6, 7))
    (file,) = files(directory)
    image = file.read_bytes()
    other = file.with_name(f"{'0' * 64}.network")
    other.write_bytes(image)
    os.chmod(other, 0o600)
    assert DiskStore(directory).get_image("0" * 64) is None, "another key"
    for bad in (image[:100], image[:-1] + b"x", b""):
        file.write_bytes(bad)
        net = load()
        assert not is_kept(net)
        np.testing.assert_array_equal(net(x), y)
        assert file.read_bytes() == image
    os.chmod(file, 0o666)
    assert not is_kept(load())


def test_not_kept(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = random(1, 3, 6, 7)
    for name, value in (
        ("ASMDNN_CACHE", "0"),
        ("ASMDNN_CHECK", "1"),
        ("ASMDNN_DUMP", str(directory)),
        ("ASMDNN_CACHE_SIZE", "25K"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            kept.store.cache_clear()
            load()(x)
            assert files(directory) == [], name
    kept.store.cache_clear()


def beside(folder: Path, where: str = "w.bin", weights: np.ndarray = WEIGHTS, inside: bool = False) -> Path:
    """The model with weights in another file; inside: in a branch alone."""
    entries = [(13, wire.message([(1, key), (2, value)])) for key, value in (("location", where), ("offset", "4"))]
    outside = wire.tensor(WEIGHTS, "w", fields=[*entries, (14, 1)])
    if inside:
        taken = wire.message(
            [(1, wire.node("Identity", ["w"], ["k"])), (2, "b"), (5, outside), (12, wire.value_info("k"))]
        )
        choice = [wire.node("If", ["is"], ["w2"], then_branch=taken, else_branch=taken)]
        graph = [*choice, wire.node("Conv", ["x", "w2"], ["c"])]
        tensors = [(5, wire.tensor(np.array(True), "is"))]
    else:
        graph, tensors = [wire.node("Conv", ["x", "w"], ["c"], "location")], [(5, outside)]
    nodes = [*graph, wire.node("Relu", ["c"], ["r"]), wire.node("Mul", ["r", "s"], ["y"])]
    ends = [(11, wire.value_info("x", (1, 3, "h", "w"))), (11, wire.value_info("s")), (12, wire.value_info("y"))]
    body = wire.message([*((1, node) for node in nodes), (2, "small"), *tensors, *ends])
    (folder / "w.bin").write_bytes(b"head" + weights.tobytes())
    (path := folder / "m.onnx").write_bytes(wire.model(body))
    return path


@pytest.mark.parametrize("inside", [False, True])
def test_weights_in_other_files_are_part_of_the_key(directory: Path, tmp_path: Path, inside: bool) -> None:
    x, path = random(1, 3, 6, 7), beside(tmp_path, inside=inside)
    y = load(model=path)(x)
    again = load(model=path)
    assert is_kept(again)
    np.testing.assert_array_equal(again(x), y)
    (elsewhere := tmp_path / "elsewhere").mkdir()
    assert is_kept(load(model=beside(elsewhere, inside=inside))), "by content, wherever it is"
    changed = load(model=beside(tmp_path, weights=WEIGHTS * 2, inside=inside))
    assert not is_kept(changed)
    np.testing.assert_allclose(changed(x), 2 * y, rtol=1e-6)
    (tmp_path / "w.bin").unlink()
    with pytest.raises(dnn.InvalidArguments, match=r"lies in 'w\.bin', which cannot be read"):
        load(model=path)
    with pytest.raises(dnn.InvalidArguments, match="load the model by its path"):
        load(model=path.read_bytes())


def test_a_word_in_a_model_is_no_file(directory: Path, tmp_path: Path) -> None:
    load(model=model_of("location"))(random(1, 3, 6, 7))
    assert is_kept(load(model=model_of("location")))
    for where in ("../w.bin", "", "."):
        with pytest.raises(dnn.InvalidArguments, match=r"which (is not in the model's folder|cannot be read)"):
            load(model=beside(tmp_path, where))


def test_an_open_model_whose_other_file_changes(directory: Path, tmp_path: Path) -> None:
    path = beside(tmp_path)
    given = {"shapes": {"x": (1, 3, "h", 7)}, "constants": {"s": 2.0}, "engine": engine(1)}
    first = dnn.load_onnx(path, **given)
    assert isinstance(first, OpenNetwork)
    first.prepare([{"x": (1, 3, 6, 7)}])
    again = dnn.load_onnx(path, **given)
    again(random(1, 3, 6, 7))
    assert isinstance(again, OpenNetwork) and is_kept(again.last)
    beside(tmp_path, weights=WEIGHTS * 2)
    with pytest.raises(dnn.InvalidArguments, match="has changed since it was loaded"):
        again(random(1, 3, 8, 7))


def product(rows: int | str = 1) -> bytes:
    """A row by a matrix beyond L2, which is f16 if that may be."""
    matrix = random(700, 700) / np.float32(26)
    nodes = [wire.node("MatMul", ["x", "w"], ["y"], "head")]
    return wire.model(wire.graph(nodes, {"x": (rows, 700)}, ["y"], {"w": matrix}))


PRODUCT, OPEN_PRODUCT = product(), product("rows")
ROW = {"x": random(1, 700)}


def near(model: bytes = PRODUCT, most: float = 2e-6, feeds: dict[str, Any] = ROW) -> dnn.Network:
    """What stays f32 is found by calibration."""
    return dnn.load_onnx(model, engine=engine(1), precision="f16", max_error=most, feeds=feeds)


def test_what_calibration_found_is_kept_with_the_network(directory: Path) -> None:
    first = near()
    assert first.precision.keep_f32 == ("head",)
    y = first.run(ROW)["y"]
    again = near()
    assert is_kept(again), "at once, as calibration has run it"
    assert again.precision == first.precision
    np.testing.assert_array_equal(again.run(ROW)["y"], y)
    assert is_kept(again)
    assert again.explain() == first.explain()
    assert again.planned().precision == first.precision
    assert all(one.fits for one in again.verify(ROW))
    loose = near(most=1e-2)
    assert not is_kept(loose) and loose.precision.keep_f32 == ()
    assert not is_kept(near(feeds={"x": ROW["x"] * 2}))
    assert not is_kept(dnn.load_onnx(PRODUCT, engine=engine(1), precision="f16"))
    assert not is_kept(dnn.load_onnx(PRODUCT, engine=engine(1)))


def test_shapes_of_a_calibrated_network_are_kept(directory: Path) -> None:
    """Whatever a caller writes into its arrays later."""
    given = {"x": ROW["x"].copy()}
    first = near(OPEN_PRODUCT, feeds=given)
    assert isinstance(first, OpenNetwork)
    first.prepare([{"x": (1, 700)}, {"x": (2, 700)}])
    again = near(OPEN_PRODUCT, feeds=given)
    np.testing.assert_array_equal(again.run(ROW)["y"], first.run(ROW)["y"])
    assert isinstance(again, OpenNetwork) and is_kept(again.last)
    assert again.precision.keep_f32 == ("head",)
    given["x"][:] = np.nan
    assert again.at({"x": (2, 700)}).precision.keep_f32 == ("head",)
    assert again.at({"x": (3, 700)}).precision.keep_f32 == ("head",)


def opened(**more: Any) -> OpenNetwork:
    net = dnn.load_onnx(MODEL, {"x": (1, 3, "h", dnn.Dim("w", 4, 12))}, constants={"s": 2.0}, engine=engine(1), **more)
    assert isinstance(net, OpenNetwork)
    return net


def test_shapes_that_come_again_are_found_by_others(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, inputs = opened(), [random(1, 3, 6, 7), random(1, 3, 5, 12), random(1, 3, 7, 9)]
    results = [first(x) for x in inputs]
    assert files(directory) == [], "what comes once only is not worth the time"
    for x in inputs[:2]:
        first(x)
    assert len(files(directory)) == 4, "two shapes, weights, and what inputs may be"
    first.prepare([{"x": inputs[2].shape}])
    assert len(files(directory)) == 5

    monkeypatch.setattr(reader, "read_model", None)
    monkeypatch.setattr(kernel_cache(), "_generate", None)
    second = opened()
    assert (repr(second), second.inputs) == (repr(first), first.inputs)
    for x, y in zip(inputs, results, strict=True):
        assert is_kept(second.at({"x": x.shape}))
        np.testing.assert_array_equal(second(x), y)
        second.check()
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(second.last))(x), y)
    weights = {second.at({"x": x.shape})._native("looked at").runner.weights.address(0) for x in inputs}
    assert len(weights) == 1, "mapped once"
    monkeypatch.undo()
    assert "1x3x7x9" in second.explain()
    np.testing.assert_array_equal(second(x := random(1, 3, 9, 9)), first(x))
    assert not is_kept(second.last)


def test_a_range_that_was_prepared_needs_no_kernels(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    widths = range(4, 13)
    opened().prepare([{"x": (1, 3, 6, width)} for width in widths])
    monkeypatch.setattr(kernel_cache(), "_generate", None)
    before, net = kernel_cache().counts, opened()
    for width in widths:
        net(random(1, 3, 6, width))
    assert kernel_cache().counts == before
    assert len(net.shapes) == len(widths)


def test_a_model_that_changes_after_it_was_loaded(directory: Path, tmp_path: Path) -> None:
    path, x = tmp_path / "m.onnx", random(1, 3, 6, 7)
    path.write_bytes(MODEL)
    load = partial(dnn.load_onnx, path, constants={"s": 2.0}, engine=engine(1))
    load().prepare([{"x": x.shape}])  # type: ignore[attr-defined]
    second = load()
    path.write_bytes(model_of("other"))
    assert second(x).shape == (1, 8, 6, 7)
    with pytest.raises(dnn.InvalidArguments, match="has changed since it was loaded: load it again"):
        second(random(1, 3, 7, 7))
    path.write_bytes(MODEL)
    assert second(random(1, 3, 7, 7)).shape == (1, 8, 7, 7)
    assert pickle.loads(pickle.dumps(second))(x).shape == (1, 8, 6, 7)
    assert second.model.body.nodes[0].name == "first"


def test_shapes_whose_weights_are_gone_are_planned(directory: Path) -> None:
    net, x = opened(), random(1, 3, 6, 7)
    net.prepare([{"x": x.shape}])
    inputs, *others = sorted(files(directory), key=lambda file: file.stat().st_size)
    for file in others:
        whole = file.read_bytes()
        file.write_bytes(whole[:-1] + b"?")
        other = opened()
        np.testing.assert_array_equal(other(x), net(x))
        assert not is_kept(other.last)
        other.prepare([{"x": x.shape}])
        assert file.read_bytes() == whole
    inputs.write_bytes(b"")
    np.testing.assert_array_equal(opened()(x), net(x))


def test_the_command_knows_them(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for size in (6, 7):
        load(size)(random(1, 3, size, 7))
    os.utime(files(directory)[0], (1, 1))
    assert main(["cache", "list"]) == 0
    listed = capsys.readouterr().out
    assert listed.count("'small': 3 nodes, 2 primitives") == 2
    assert "0 kernels and 2 networks, " in listed
    _, new = files(directory)
    assert main(["cache", "prune", f"{new.stat().st_size}B"]) == 0
    assert capsys.readouterr().out.startswith("1 kernels and networks, ")
    assert files(directory) == [new]
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.startswith("1 kernels and networks removed")
    assert files(directory) == []
