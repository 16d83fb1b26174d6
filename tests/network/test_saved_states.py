"""Networks with state in files: in packs, and in the cache on disk; errors for states that make no sense."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.primitives.core.implementation import plans
from tests.network import wire
from tests.network.keeping import files, is_kept, own_directory
from tests.network.nets import engine, random
from tests.network.test_saved import loaded, refused, rewritten
from tests.network.test_state import cached, trained
from tests.network.test_state_types import counting

pytestmark = pytest.mark.isa("avx2")
directory = pytest.fixture(own_directory)


def halved() -> dnn.Network:
    """A state of bf16 that nothing but itself reads, and one that nothing writes."""
    g = dnn.Graph()
    h, fixed = g.state("h", (3, 8), ml_dtypes.bfloat16, initial=0.5), g.state("fixed", (8,), initial=np.arange(8))
    g.update(h, h * g.input("x", (3, 8)))
    return g.compile(y=fixed + 1.0, engine=engine())


NETS: dict[str, tuple[Callable[[], dnn.Network], Callable[[int], dict[str, Any]]]] = {
    "weights": (trained, lambda i: {"x": random(3, 16), "d": random(16, 32)}),
    "ring buffer": (cached, lambda i: {"q": random(1, 2, 1, 8), "at": np.int64(i)}),
    "halves": (halved, lambda i: {"x": random(3, 8)}),
}


def check_alike(net: dnn.Network, other: dnn.Network, feeds: Callable[[int], dict[str, Any]]) -> None:
    """Outputs and states of five calls."""
    assert (other.inputs, other.outputs, [*other.state]) == (net.inputs, net.outputs, [*net.state])
    for i in range(5):
        given = feeds(i)
        wanted, found = net.run(given), other.run(given)
        for name, array in [*wanted.items(), *net.state.items()]:
            np.testing.assert_array_equal(found[name] if name in found else other.state[name], array)


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_loaded_network_goes_on_alike(name: str, threads: int, tmp_path: Path) -> None:
    make, feeds = NETS[name]
    net = make()
    net.save(tmp_path / "net.pack")
    other = loaded(tmp_path / "net.pack", threads)
    other.check()
    check_alike(net, other, feeds)
    other.reset()
    for state, array in make().state.items():
        np.testing.assert_array_equal(other.state[state], array)


def test_a_place_outside_is_refused_as_ever(tmp_path: Path) -> None:
    cached().save(tmp_path / "net.pack")
    other = loaded(tmp_path / "net.pack")
    with pytest.raises(dnn.InvalidArguments, match="state k is written at 16, which at says: it must be from 0 to 15"):
        other.run({"q": random(1, 2, 1, 8), "at": np.int64(16)})


def model() -> bytes:
    nodes = [wire.node("MatMul", ["past", "w"], ["m"]), wire.node("Add", ["m", "x"], ["present"])]
    tensors = {"x": (4, 8), "past": (4, 8)}
    return wire.model(wire.graph(nodes, tensors, ["m", "present"], {"w": random(8, 8)}))


def test_states_of_a_file_are_kept_on_disk(directory: Path) -> None:
    """A later process plans nothing; other ties are another network."""
    data = model()

    def load(**more: Any) -> dnn.Network:
        return dnn.load_onnx(data, engine=engine(), **more)

    first, feeds = load(state={"present": "past"}), lambda i: {"x": random(4, 8)}
    planned = set(plans.entries)
    first.run(feeds(0))
    first.reset()
    assert set(plans.entries) == planned
    assert len(files(directory)) == 1
    again = load(state={"present": "past"})
    assert is_kept(again)
    check_alike(first, again, feeds)
    assert is_kept(again)
    assert not is_kept(load())
    assert all(difference.fits for difference in again.verify(feeds(0)))


def test_integers_that_say_where_are_kept(tmp_path: Path) -> None:
    """They are written whole, after a call."""
    net = counting()
    net.save(tmp_path / "net.pack")
    check_alike(net, loaded(tmp_path / "net.pack"), lambda i: {"x": random(1, 8)})


CHANGES: list[Callable[[dict[str, Any]], Any]] = [
    lambda t: t.pop("states"),
    lambda t: t.update(states=[{}]),
    lambda t: t["states"][0].update(name=7),
    lambda t: t["states"][0].update(name="q"),
    lambda t: t["states"][0].update(now=t["states"][0]["name"]),
    lambda t: t["states"][0].update(room=[1, 2, -16, 8]),
    lambda t: t["states"][0].update(room=[1, 2, 8, 16]),
    lambda t: t["states"][0].update(room=[1, 3, 16, 8]),
    lambda t: t["states"][0].update(dims=[1, 2, 17, 8]),
    lambda t: t["states"][0].update(dims=[1, 1, 1, 8]),
    lambda t: t["states"][0].update(at=None),
    lambda t: t["states"][0].update(at="q"),
    lambda t: t["states"][0].update(at="nothing"),
    lambda t: t["states"][0].update(value="nothing"),
    lambda t: t["states"][0].update(value=0),
    lambda t: t["states"][0].update(initial=99),
    lambda t: t["states"][0].update(initial=0),
    lambda t: t["states"].append(t["states"][0]),
    lambda t: t["parts"][0].update(states=[[1, 2, 3]]),
]


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_nonsense_after_a_good_checksum(tmp_path: Path, number: int) -> None:
    cached().save(tmp_path / "net.pack")
    refused(tmp_path / "bad.pack", rewritten((tmp_path / "net.pack").read_bytes(), CHANGES[number]))


def test_shapes_of_a_file_with_states_are_kept(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an open network: a later process reads the model for a new shape only, and all shapes share the states."""
    nodes = [
        wire.node("MatMul", ["x", "past"], ["m"]),
        wire.node("ReduceSum", ["x"], ["s"], keepdims=0, noop_with_empty_axes=0),
        wire.node("Add", ["past", "s"], ["present"]),
    ]
    data = wire.model(wire.graph(nodes, {"x": ("n", 8), "past": (8, 4)}, ["m", "present"]))

    def load() -> dnn.Network:
        return dnn.load_onnx(data, engine=engine(), state={"present": "past"})

    first = load()
    for n in (3, 5, 3, 5, 3, 5):
        first.run({"x": random(n, 8)})
    assert len(files(directory)) >= 3
    again = load()
    assert type(again).__name__ == "KeptOpenNetwork"
    assert set(again.state) == {"past"}
    first.reset()
    for n in (5, 3, 5, 7, 3):  # 7 is planned
        x = random(n, 8)
        wanted, found = first.run({"x": x}), again.run({"x": x})
        np.testing.assert_array_equal(found["m"], wanted["m"])
        np.testing.assert_array_equal(again.state["past"], first.state["past"])
    again.reset()
    assert not again.state["past"].any()


def test_shapes_with_states_are_saved(tmp_path: Path) -> None:
    """All of them share the states of the network that is loaded."""
    g = dnn.Graph()
    x, past = g.input("x", ("n", 8)), g.state("past", (8, 4), initial=0.25)
    g.update(past, past * 0.5 + g.apply("ReduceSum", x, keepdims=0))
    net = g.compile(y=x @ past, engine=engine())
    net.prepare([{"x": (3, 8)}, {"x": (5, 8)}])
    net.save(tmp_path / "net.pack")
    other = loaded(tmp_path / "net.pack")
    np.testing.assert_array_equal(other.state["past"], np.full((8, 4), 0.25, np.float32))
    for n in (3, 5, 3):
        x = random(n, 8)
        np.testing.assert_array_equal(other.run({"x": x})["y"], net.run({"x": x})["y"])
    np.testing.assert_array_equal(other.state["past"], net.state["past"])
    with pytest.raises(dnn.InvalidArguments, match="has 2 shapes"):
        other.run({"x": random(4, 8)})
    changes: list[Callable[[dict[str, Any]], Any]] = [
        lambda t: t.update(states=[]), lambda t: t.pop("states"), lambda t: t["states"][0].update(room=[4, 8]),
    ]  # fmt: skip
    for change in changes:
        image = rewritten((tmp_path / "net.pack").read_bytes(), change)
        (tmp_path / "bad.pack").write_bytes(image)
        with pytest.raises(dnn.InvalidArguments, match="makes no sense"):
            loaded(tmp_path / "bad.pack").run({"x": random(3, 8)})
