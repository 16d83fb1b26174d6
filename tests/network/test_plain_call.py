"""Calls that ask nothing twice: the same results, the same errors, and only for networks where nothing is unusual."""

import pickle
from collections import UserDict
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments
from asmdnn.network.calls.plain_call import plain_call_of
from tests.network.nets import engine

pytestmark = pytest.mark.isa("avx2")
X = np.random.default_rng(0).standard_normal((3, 40)).astype(np.float32)


def sorted_rows() -> dnn.Network:
    """Values, and places that kernels make as f32."""
    graph = dnn.Graph()
    values, places = graph.apply("TopK", graph.input("x", X.shape), np.array([5]), results=2)
    return graph.compile(values=values, places=places, engine=engine())


def product() -> dnn.Network:
    graph = dnn.Graph()
    x, y = graph.input("x", X.shape), graph.input("y", (40, 2))
    return graph.compile(z=x @ y, engine=engine())


def test_results_are_those_of_the_first_call() -> None:
    net = sorted_rows()
    first = net.run({"x": X})
    assert net._plain is not None, "from the second call on"
    second = net.run({"x": X})
    assert [*first] == [*second] == ["values", "places"]
    for name in first:
        assert first[name].dtype == second[name].dtype == net.outputs[name][1]
        np.testing.assert_array_equal(first[name], second[name])
        assert not np.shares_memory(first[name], second[name])
    np.testing.assert_array_equal(second["places"], np.argsort(-X, axis=1, kind="stable")[:, :5])


def test_inputs_in_any_order_and_in_any_mapping() -> None:
    net, y = product(), np.ones((40, 2), np.float32)
    wanted = net.run({"x": X, "y": y})["z"]
    assert net._plain is not None
    for feeds in ({"y": y, "x": X}, UserDict(x=X, y=y)):
        np.testing.assert_array_equal(net.run(feeds)["z"], wanted)


def test_networks_out_of_files_take_it_too() -> None:
    """Types out of a file are equal to those of arrays, and other objects."""
    net, feeds = pickle.loads(pickle.dumps(product())), {"x": X, "y": np.ones((40, 2), np.float32)}
    wanted = net.run(feeds)["z"]
    assert net._plain is not None
    found = net._plain.outputs(feeds)
    assert found is not None
    np.testing.assert_array_equal(found["z"], wanted)


class Marked(np.ndarray[Any, Any]):
    """Another's array."""


@pytest.mark.parametrize(
    "x",
    [
        np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X.view(Marked), X.astype(">f4"),
        X.tolist(), np.frombuffer(b"." + X.tobytes(), np.uint8)[1:].view(np.float32).reshape(X.shape),
    ],
    ids=["columns", "strided", "subclass", "swapped", "lists", "unaligned"],
)  # fmt: skip
def test_what_lies_otherwise_is_taken_or_refused_as_before(x: Any) -> None:
    fresh, used = sorted_rows(), sorted_rows()
    used.run({"x": X})
    assert used._plain is not None
    try:
        wanted = fresh.run({"x": x})
    except InvalidArguments as error:
        with pytest.raises(InvalidArguments) as found:
            used.run({"x": x})
        assert str(found.value) == str(error)
        return
    for name, array in used.run({"x": x}).items():
        np.testing.assert_array_equal(array, wanted[name])


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, "feeds must be arrays for x, not none"),
        ({"x": X, "y": X}, "feeds must be arrays for x, not x, y"),
        ({"y": X}, "feeds must be arrays for x, not y"),
        ([X], "feeds must be arrays for x, not"),
        ({"x": X[:2]}, r"x is float32\[2, 40\], the network takes float32\[3, 40\]"),
        ({"x": X.astype(">f4")}, r"x is float32\[3, 40\] in the other byte order, .*: convert it"),
        ({"x": X.astype(np.float64)}, r"x is float64\[3, 40\], the network takes float32\[3, 40\]"),
    ],
)
def test_wrong_inputs_are_refused_after_a_first_call_too(feeds: Any, message: str) -> None:
    net = sorted_rows()
    net.run({"x": X})
    with pytest.raises(InvalidArguments, match=message):
        net.run(feeds)
    assert net.run({"x": X})["values"].shape == (3, 5)


def looked_up() -> dnn.Network:
    """Its indices are checked before each call."""
    graph = dnn.Graph()
    rows = graph.input("rows", (4,), np.int64)
    return graph.compile(y=graph.apply("Gather", np.asarray(X), rows), engine=engine())


def passed_through() -> dnn.Network:
    """An output that is an input, which callers get as a copy."""
    graph = dnn.Graph()
    x = graph.input("x", X.shape)
    return graph.compile(same=x, twice=x + x, engine=engine())


def counted() -> dnn.Network:
    """State is read and written in place."""
    graph = dnn.Graph()
    x, past = graph.input("x", (1, 4)), graph.state("past", (1, 4))
    graph.update(past, past + x)
    return graph.compile(y=past + x, engine=engine())


@pytest.mark.parametrize("make", [looked_up, passed_through, counted])
def test_unusual_networks_have_no_such_call(make: Any) -> None:
    net = make()
    feeds = {name: np.ones(dims, dtype) for name, (dims, dtype) in net.inputs.items()}
    for _ in range(2):
        net.run(feeds)
        assert net._plain is None
    assert plain_call_of(net._runnable) is None


def test_indices_are_checked_in_every_call() -> None:
    net = looked_up()
    net.run({"rows": np.arange(4) % 3})
    with pytest.raises(InvalidArguments, match="rows"):
        net.run({"rows": np.array([0, 1, 2, 9])})
