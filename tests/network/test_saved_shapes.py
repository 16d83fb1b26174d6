"""Open networks as files: the shapes that were held, with equal bits, and no others."""

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.jit import image_file
from asmdnn.network.narrow.storage import Precision
from asmdnn.network.open import OpenNetwork
from asmdnn.network.packs.saved_shapes import open_network
from asmdnn.runtime.kernels import kernel_cache
from tests.network.nets import engine, random
from tests.network.test_saved import SCRIPT
from tests.support.python import python

pytestmark = pytest.mark.isa("avx2")

SHAPES = [(1, 3, 9, 16), (2, 3, 8, 24), (1, 3, 40, 8)]


def network() -> OpenNetwork:
    g = dnn.Graph("reader")
    x = g.input("x", ("batch", 3, None, "width"))
    y = g.apply("Relu", g.apply("Conv", x, random(16, 3, 3, 3), random(16), pads=(1, 1, 1, 1)))
    y = g.apply("Flatten", g.apply("GlobalAveragePool", y)) @ random(16, 7)
    net = g.compile(engine=engine(1), shapes={"x": (None, 3, None, dnn.Dim("width", 8, 64, multiple=8))}, y=y)
    assert isinstance(net, OpenNetwork)
    return net


@pytest.fixture(scope="module")
def net() -> OpenNetwork:
    made = network()
    made.prepare({"x": dims} for dims in SHAPES)
    return made


@pytest.fixture(scope="module")
def file(net: OpenNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shapes") / "net.pack"
    net.save(path)
    return path


def loaded(path: Path, threads: int = 1) -> OpenNetwork:
    found = dnn.load_network(path, threads)
    assert isinstance(found, OpenNetwork)
    return found


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_shape_has_its_bits_and_no_kernel_is_generated(
    net: OpenNetwork, file: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeds = [random(*dims) for dims in (*SHAPES, *SHAPES)]
    wanted = [net(x) for x in feeds]
    monkeypatch.setattr(kernel_cache(), "_generate", None)
    before, other = kernel_cache().counts, loaded(file, threads)
    assert (repr(other), other.inputs) == (repr(net), net.inputs)
    for x, y in zip(feeds, wanted, strict=True):
        np.testing.assert_array_equal(other(x), y)
        other.check()
        assert other.last.explain() == net.at({"x": x.shape}).explain()
    assert kernel_cache().counts == before
    assert other.shapes == [{"x": dims} for dims in SHAPES]
    weights = {other.at({"x": dims})._native("looked at").runner.weights.address(0) for dims in SHAPES}
    assert len(weights) == 1, "read where the file has them"


def test_saved_again_pickled_and_copied(file: Path, tmp_path: Path) -> None:
    other, x = loaded(file), random(*SHAPES[1])
    y = other(x)
    other.prepare({"x": dims} for dims in SHAPES)
    other.save(tmp_path / "again.pack")
    for one in (loaded(tmp_path / "again.pack"), pickle.loads(pickle.dumps(other)), copy.deepcopy(other)):
        assert len(one.shapes) == len(SHAPES)
        np.testing.assert_array_equal(one(x), y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(other.last))(x), y)


def test_a_process_without_peachpy_and_planners(net: OpenNetwork, file: Path, tmp_path: Path) -> None:
    x = random(*SHAPES[2])
    np.save(tmp_path / "x.npy", x)
    said = python(SCRIPT, file, 1, tmp_path / "x.npy", tmp_path / "y.npz", ASMDNN_CACHE="0")
    primitives, imported = said.splitlines()
    assert json.loads(primitives) == ["asmdnn.primitives.core", "asmdnn.primitives.core.engine"]
    assert imported == "[]"
    np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["y"], net(x))


def test_shapes_that_were_not_saved(file: Path) -> None:
    other = loaded(file)
    message = r"has 3 shapes, x 1x3x9x16; x 2x3x8x24, \.\.\., and none for x 1x3x9x24: prepare that one, too"
    with pytest.raises(dnn.InvalidArguments, match=message):
        other(random(1, 3, 9, 24))
    with pytest.raises(dnn.InvalidArguments, match="width is a multiple of 8"):
        other(random(1, 3, 9, 17))
    assert other(random(*SHAPES[0])).shape == (1, 7)
    for look in (lambda: other.model, lambda: other.segments):
        with pytest.raises(dnn.InvalidArguments, match="pack"):
            look()
    assert other.precision == Precision()
    with pytest.raises(dnn.InvalidArguments, match="no shape is known yet"):
        network().save("nowhere")


def test_nonsense_is_refused(file: Path) -> None:
    image = image_file.read(file)
    text = image.text
    for change in (
        {"shapes": 3}, {"shapes": [{"dims": {"x": [1, -3]}, "weights": [[0, 64]]}]}, {"shapes": [{}]},
        {"shapes": [{"dims": {"y": [1]}, "weights": [[0, 64]]}]}, {"declared": [["x", ["f32", [{"dim": []}]]]]},
        {"given": [["x", [2.5]]]}, {"title": None}, {"isa": "avx3"},
    ):  # fmt: skip
        bad = image_file.Image({**text, **change}, image.sections, image.whole, 0.0)
        with pytest.raises(dnn.AsmdnnError, match=r"makes no sense|avx3"):
            open_network(bad, "bad", 1)
    end = len(image.sections["weights"])
    for change in (
        {"kernels": []},
        *({"shapes": [{**each, "weights": places} for each in text["shapes"]]}
          for places in ([], [[0, end + 64]], [[-64, end]], [[0, 64]] * (end // 64 + 1), "weights", [["0", end]])),
    ):  # fmt: skip
        other = open_network(image_file.Image({**text, **change}, image.sections, image.whole, 0.0), "bad", 1)
        with pytest.raises(dnn.InvalidArguments, match="makes no sense"):
            other(random(*SHAPES[0]))
