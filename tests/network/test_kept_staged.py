"""Networks in which data decide dims, in the cache on disk: a later process reads the model, and plans nothing."""

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.jit.image_file import Image
from asmdnn.network import planned
from asmdnn.network.open import OpenNetwork
from asmdnn.network.packs import kept, saved
from asmdnn.network.packs.kept_stages import KeptPartOfData
from asmdnn.network.staged import Stages
from asmdnn.runtime.kernels import kernel_cache
from tests.network import wire
from tests.network.keeping import files, is_kept, own_directory
from tests.network.nets import engine, random
from tests.support.python import python

pytestmark = pytest.mark.isa("avx2")
directory = pytest.fixture(own_directory)
TO_F32 = 1

Feeds = dict[str, Any]


def found_rows(*after: bytes, **constants: Any) -> bytes:
    """Rows of a product whose sums are positive, and what is made of them."""
    nodes = [
        wire.node("MatMul", ["x", "w"], ["p"], "before"),
        wire.node("ReduceSum", ["p", "one"], ["sums"], keepdims=0),
        wire.node("Greater", ["sums", "none"], ["keep"]),
        wire.node("Compress", ["p", "keep"], ["rows"], axis=0),
        *after,
    ]
    known = {"w": random(5, 5), "one": np.array([1]), "none": np.float32(0), **constants}
    return wire.model(wire.graph(nodes, {"x": (8, 5)}, ["y", "p"], known))


def branches() -> bytes:
    """Of unequal dims, of which data choose one."""
    fields = []
    for name, node in (
        ("then", wire.node("MatMul", ["p", "w"], ["then"])),
        ("else", wire.node("ReduceMax", ["p"], ["else"], keepdims=1, axes=[1])),
    ):
        fields.append(wire.message([(1, node), (2, name), (12, wire.value_info(name))]))
    nodes = [
        wire.node("MatMul", ["x", "w"], ["p"]),
        wire.node("ReduceSum", ["p"], ["sum"], keepdims=0),
        wire.node("Greater", ["sum", "none"], ["is_positive"]),
        wire.node("If", ["is_positive"], ["b"], then_branch=fields[0], else_branch=fields[1]),
        wire.node("Exp", ["b"], ["y"]),
    ]
    return wire.model(wire.graph(nodes, {"x": (8, 5)}, ["y", "p"], {"w": random(5, 5), "none": np.float32(0)}))


def rounds() -> bytes:
    """A loop that data end, of products."""
    nodes = [
        wire.node("MatMul", ["now", "w"], ["h"]),
        wire.node("Tanh", ["h"], ["next"]),
        wire.node("ReduceSum", ["next"], ["sum"], keepdims=0),
        wire.node("Less", ["sum", "none"], ["on"]),
        wire.node("Identity", ["next"], ["row"]),
    ]
    body = [*((1, node) for node in nodes), (2, "round"), (11, wire.value_info("i", (), "int64"))]
    body += [(11, wire.value_info("goes", (), "bool")), (11, wire.value_info("now", (8, 5)))]
    body += [(12, wire.value_info(name)) for name in ("on", "next", "row")]
    outer = [
        wire.node("MatMul", ["x", "w"], ["p"]),
        wire.node("Loop", ["few", "", "p"], ["last", "rows"], body=wire.message(body)),
        wire.node("ReduceMax", ["rows"], ["y"], axes=[0], keepdims=0),
    ]
    known = {"w": random(5, 5), "none": np.float32(0), "few": np.array(4)}
    return wire.model(wire.graph(outer, {"x": (8, 5)}, ["y", "p", "last"], known))


MODELS = {
    "by definition": found_rows(wire.node("Exp", ["rows"], ["y"])),
    "planned": found_rows(
        wire.node("MatMul", ["rows", "v"], ["h"], "after"), wire.node("Softmax", ["h"], ["y"]), v=random(5, 7)
    ),
    "a cut after another": found_rows(
        wire.node("MatMul", ["rows", "w"], ["h"], "after"),
        wire.node("NonZero", ["h"], ["at"]),
        wire.node("Cast", ["at"], ["floats"], to=TO_F32),
        wire.node("MatMul", ["turned", "floats"], ["y"]),
        turned=random(3, 2),
    ),
    "nothing before": wire.model(
        wire.graph(
            [wire.node("NonZero", ["x"], ["at"]), wire.node("Cast", ["at"], ["y"], to=TO_F32)], {"x": (8, 5)}, ["y"]
        )
    ),
    "branches": branches(),
    "rounds": rounds(),
}


def load(model: bytes | Path, fallback: str | None = "numpy", threads: int = 1, **more: Any) -> dnn.Network:
    return dnn.load_onnx(model, engine=engine(threads), fallback=fallback, **more)


@pytest.fixture
def no_planner(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """From its call on nothing can be planned or generated."""

    def end() -> None:
        monkeypatch.setattr(planned, "plan", None)
        monkeypatch.setattr(Stages, "plan", None)
        monkeypatch.setattr(kernel_cache(), "_generate", None)

    yield end


def same(found: Feeds, wanted: Feeds) -> None:
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def given(seed: int) -> Feeds:
    return {"x": np.random.default_rng(seed).standard_normal((8, 5)).astype(np.float32)}


@pytest.mark.parametrize("name", MODELS)
def test_a_later_process_plans_nothing(directory: Path, name: str, no_planner: Callable[[], None]) -> None:
    """Several counts, each of which has come twice."""
    first = load(MODELS[name])
    assert not is_kept(first)
    feeds = [given(seed) for seed in range(4)]
    wanted = [first.run(each) for each in feeds]
    for each in feeds:
        first.run(each)
    no_planner()
    again = load(MODELS[name])
    assert is_kept(again) and isinstance(again._runnable.parts[-1], KeptPartOfData)
    assert again.outputs == first.outputs and again.inputs == first.inputs and not again.is_native
    for each, outputs in [*zip(feeds, wanted, strict=True)] * 2:
        same(again.run(each), outputs)
    again.check()
    assert again._source.explain() == first.planned().described()


def test_shapes_that_come_again(directory: Path, no_planner: Callable[[], None]) -> None:
    nodes = [wire.node("Relu", ["x"], ["r"]), wire.node("NonZero", ["r"], ["y"])]
    model = wire.model(wire.graph(nodes, {"x": ("n", 5)}, ["y", "r"]))
    first = load(model)
    assert isinstance(first, OpenNetwork)
    inputs = [{"x": random(n, 5)} for n in (3, 1)]
    wanted = [first.run(x) for x in inputs]
    assert files(directory) == []
    for x in (*inputs, inputs[0]):
        first.run(x)
    no_planner()
    second = load(model)
    assert isinstance(second, OpenNetwork)
    for x, outputs in zip(inputs, wanted, strict=True):
        same(second.run(x), outputs)
        assert is_kept(second.last)


SCRIPT = """
import sys
import numpy as np
import asmdnn as dnn
from asmdnn.network import staged
from asmdnn.runtime.kernels import kernel_cache

staged.Stages.plan = kernel_cache()._generate = None
engine = dnn.Engine(isa="avx2", threads=int(sys.argv[2]), l2_bytes=512 << 10, machine="zen3")
net = dnn.load_onnx(sys.argv[1], engine=engine, fallback="numpy")
np.savez(sys.argv[4], **net.run({"x": np.load(sys.argv[3])}))
print(sorted(name for name in sys.modules if name in ("asmdnn.network.planned", "peachpy")))
"""


def test_another_process(directory: Path, tmp_path: Path) -> None:
    """It imports no planner."""
    (path := tmp_path / "m.onnx").write_bytes(MODELS["planned"])
    net, feeds = load(path, threads=2), given(0)
    wanted = net.run(feeds)
    same(net.run(feeds), wanted)
    np.save(tmp_path / "x.npy", feeds["x"])
    said = python(SCRIPT, path, 2, tmp_path / "x.npy", tmp_path / "y.npz", ASMDNN_CACHE_DIR=str(directory))
    assert said == "[]"
    same(dict(np.load(tmp_path / "y.npz")), wanted)


def test_a_count_of_nothing_is_kept_too(directory: Path, no_planner: Callable[[], None]) -> None:
    """Parts of no elements, which have no phases."""
    feeds = {"x": np.zeros((8, 5), np.float32)}
    first = load(MODELS["a cut after another"])
    wanted = first.run(feeds)
    assert wanted["y"].size == 0
    first.run(feeds)
    no_planner()
    same(load(MODELS["a cut after another"]).run(feeds), wanted)


def test_what_is_asked_for(directory: Path) -> None:
    """Constants, precisions, names of nodes in f32, seeds: others are other networks; copies are the same."""
    model = MODELS["planned"]
    load(model).run(given(0))
    assert is_kept(load(model))
    with pytest.raises(dnn.Unimplemented, match="load the model with fallback='numpy'"):
        load(model, fallback=None)
    assert not is_kept(load(model, precision="bf16", keep_f32=["after"]))
    some = load(model, precision="bf16", keep_f32=["after"])
    wanted = some.run(given(1))
    again = load(model, precision="bf16", keep_f32=["after"])
    assert is_kept(again) and again.precision == some.precision and again.precision.keep_f32 == ("after",)
    same(again.run(given(1)), wanted)
    same(pickle.loads(pickle.dumps(again)).run(given(1)), wanted)
    fixed = given(2)
    constant = load(model, constants=fixed)
    outputs = constant.run({})
    found = load(model, constants=fixed)
    same(found.run({}), outputs)
    assert not is_kept(load(model, constants=given(3)))
    with pytest.raises(dnn.InvalidArguments, match="only a network without nodes in numpy can be bound"):
        again.bind()
    with pytest.raises(dnn.InvalidArguments, match="a network in which data decide dims cannot be saved, as"):
        again.save("nowhere")
    with pytest.raises(dnn.InvalidArguments, match="a network in which data decide dims cannot be profiled, use run"):
        again.profile(given(1))


def test_a_seed(directory: Path) -> None:
    after = (wire.node("RandomNormalLike", ["rows"], ["n"]), wire.node("Add", ["rows", "n"], ["y"]))
    model, feeds = found_rows(*after), {**given(0), "seed": 5}
    wanted = load(model, seed="seed").run(feeds)
    again = load(model, seed="seed")
    assert is_kept(again)
    same(again.run(feeds), wanted)
    assert not is_kept(load(model, seed="other"))


def test_a_model_that_changes(directory: Path, tmp_path: Path) -> None:
    """It is read at the first call: before it, another one under its name is refused, and after it nobody looks."""
    (path := tmp_path / "m.onnx").write_bytes(MODELS["planned"])
    wanted = load(path).run(given(0))
    late, early = load(path), load(path)
    same(early.run(given(0)), wanted)
    path.write_bytes(MODELS["by definition"])
    with pytest.raises(dnn.InvalidArguments, match="has changed since it was loaded: load it again"):
        late.run(given(0))
    same(early.run(given(0)), wanted)
    path.write_bytes(MODELS["planned"])
    same(late.run(given(0)), wanted)


def waiting(text: dict[str, Any]) -> dict[str, Any]:
    (part,) = (part for part in text["parts"] if "cuts" in part)
    found: dict[str, Any] = part
    return found


WRONG: list[Callable[[dict[str, Any]], Any]] = [
    lambda t: t["parts"].pop(0),
    lambda t: t["parts"].pop(),
    lambda t: t["parts"].reverse(),
    lambda t: waiting(t).update(cuts=[]),
    lambda t: waiting(t).update(cuts=[[[7], ""]]),
    lambda t: waiting(t).update(cuts=[[["rows"]]]),
    lambda t: waiting(t).update(cuts=7),
    lambda t: waiting(t).pop("late"),
    lambda t: waiting(t).update(late=[]),
    lambda t: waiting(t).update(results={}),
    lambda t: waiting(t)["results"].update(p="nothing"),
    lambda t: waiting(t)["results"].update(p=1 << 40),
    lambda t: waiting(t)["outputs"].update(p=["<f4", [3, 4]]),
    lambda t: t["outputs"].update(p=None),
    lambda t: t["outputs"].update(y=["<f4", [3, 4]]),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_nonsense_is_refused(directory: Path, number: int) -> None:
    load(MODELS["by definition"]).run(given(0))
    store, (file,) = kept.store(), files(directory)
    assert store is not None
    image = store.get_image(file.stem)
    assert image is not None
    saved.saved(image, "good", 1, stages=lambda _: None)  # type: ignore[arg-type, return-value]
    text = json.loads(json.dumps(image.text))
    WRONG[number](text)
    bad = Image(text, image.sections, image.whole, 0.0, image.apart)
    with pytest.raises(dnn.InvalidArguments, match="makes no sense") as caught:
        saved.saved(bad, "bad", 1, stages=lambda _: None)  # type: ignore[arg-type, return-value]
    assert "\n" not in str(caught.value)
    with pytest.raises(dnn.InvalidArguments, match="nobody has the model"):
        saved.saved(image, "alone", 1)


def test_parts_of_graphs(directory: Path) -> None:
    """What follows data is kept by what is in it, whoever made the model."""
    g = dnn.Graph()
    rows = g.apply("NonZero", g.apply("Relu", g.input("x", (8, 5))))
    y = g.apply("MatMul", random(3, 2), g.apply("Cast", rows, to=TO_F32))
    net = g.compile(y=y, engine=engine(), fallback="numpy")
    wanted = net.run(given(0))
    same(net.run(given(0)), wanted)
    assert len(files(directory)) == 3  # a description, a shape, and weights
