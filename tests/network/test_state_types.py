"""States of other types than float32: integers, truths, and floats of 16 bits, rounded as they are written."""

import copy
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments
from tests.network import wire
from tests.network.nets import engine, random

pytestmark = pytest.mark.isa("avx2")
HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
INTEGERS = [np.dtype(x) for x in (np.int64, np.int32, np.int8, np.uint8)]


def counting(dtype: Any = np.int64, threads: int = 1) -> dnn.Network:
    """A position that each call moves, rows of a buffer at it, and what has been written so far."""
    g = dnn.Graph()
    x = g.input("x", (1, 8))
    at, rows, seen = g.state("at", (), dtype), g.state("rows", (6, 8)), g.state("seen", (6,), bool)
    now = g.update(rows, x * 2.0, at=at)
    places = g.apply("Cast", g.apply("Range", 0, 6, 1), to=7)
    is_seen = g.apply("Or", seen, g.apply("Equal", places, g.apply("Cast", at, to=7)))
    g.update(seen, is_seen)
    after = g.update(at, at + np.array(1, dtype))
    sums = g.apply("Where", is_seen, g.apply("ReduceSum", now, np.array([1]), keepdims=0), -1.0)
    return g.compile(sums=sums, after=after, seen_before=seen, engine=engine(threads))


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_counter_and_a_mask(dtype: Any, threads: int) -> None:
    net = counting(dtype, threads)
    net.check()
    arrays = dict(net.state)
    assert {name: x.dtype.name for name, x in arrays.items()} == {
        "at": np.dtype(dtype).name, "rows": "float32", "seen": "bool"
    }  # fmt: skip
    for _ in range(2):
        rows, seen = np.zeros((6, 8), np.float32), np.zeros(6, bool)
        for i in range(6):
            x = random(1, 8)
            found = net.run({"x": x})
            np.testing.assert_array_equal(found["seen_before"], seen)
            rows[i], seen[i] = x * 2, True
            assert found["after"].dtype == dtype and found["after"] == i + 1 == net.state["at"]
            np.testing.assert_array_equal(net.state["seen"], seen)
            np.testing.assert_array_equal(net.state["rows"], rows)
            np.testing.assert_allclose(found["sums"], np.where(seen, rows.sum(1), -1), rtol=1e-5, atol=1e-6)
        with pytest.raises(InvalidArguments, match="state rows is written at 6, which at says: it must be from 0 to 5"):
            net.run({"x": x})
        assert net.state["at"] == 6 and net.state["seen"].all()
        net.reset()
        assert not any(array.any() for array in net.state.values())
    assert all(net.state[name] is array for name, array in arrays.items())


def test_pickles_copies_and_looks() -> None:
    net = counting()
    for _ in range(2):
        net.run({"x": random(1, 8)})
    feeds = {"x": random(1, 8)}
    others = [pickle.loads(pickle.dumps(net)), copy.copy(net)]
    assert all(one.fits for one in net.verify(feeds))
    assert "cycles" in net.explain() and "<html" in net.page(feeds, 1)
    assert net.state["at"] == 2
    wanted = net.run(feeds)
    for other in others:
        assert other.state["at"] == 2 and other.state["at"].dtype == np.int64
        for name, array in other.run(feeds).items():
            np.testing.assert_array_equal(array, wanted[name])
        for name, array in other.state.items():
            np.testing.assert_array_equal(array, net.state[name])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers(dtype: Any) -> None:
    """What does not depend on the state, constants too, and states that become one another."""
    g = dnn.Graph()
    x = g.input("x", (3,), dtype)
    a, b, c, d = (g.state(name, (3,), dtype, initial=i) for i, name in enumerate("abcd", 1))
    g.update(a, b)
    g.update(b, a)
    g.update(c, np.array([7, 8, 9], dtype))
    g.update(d, x)
    net = g.compile(s=a + c, old=b, engine=engine())
    for call in range(3):
        given = np.array([5, 6, call], dtype)
        found = net.run({"x": given})
        one, two = (1, 2) if call % 2 == 0 else (2, 1)
        third = np.array([7, 8, 9], dtype) if call else np.full(3, 3, dtype)
        np.testing.assert_array_equal(found["s"], third + np.array(one, dtype))
        np.testing.assert_array_equal(found["old"], np.full(3, two, dtype))
        assert found["s"].dtype == found["old"].dtype == dtype
        np.testing.assert_array_equal(net.state["a"], np.full(3, two))
        np.testing.assert_array_equal(net.state["c"], [7, 8, 9])
        np.testing.assert_array_equal(net.state["d"], given)
        assert net.state["d"] is not given


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("threads", [1, 2])
def test_halves_round_where_they_are_written(dtype: Any, threads: int) -> None:
    """A ring of rows, of which each call writes one and reads all; and a mean that moves."""
    g = dnn.Graph()
    q, at = g.input("q", (1, 2, 1, 8)), g.input("at", (), np.int64)
    k, mean = g.state("k", (1, 2, 16, 8), dtype), g.state("mean", (1, 2, 1, 8), dtype, initial=0.3)
    keys = g.update(k, q * 2.0, at=at)
    g.update(mean, mean * 0.75 + q * 0.25)
    net = g.compile(s=q @ g.apply("Transpose", keys, perm=(0, 1, 3, 2)), engine=engine(threads))
    net.check()
    array, past = net.state["k"], np.zeros((1, 2, 16, 8), dtype)
    assert net.state["mean"].dtype == dtype and (net.state["mean"] == np.array(0.3, dtype)).all()
    moved = np.full((1, 2, 1, 8), 0.3, dtype)
    for place in (0, 1, 5, 15, 5):
        x = random(1, 2, 1, 8)
        past[:, :, place : place + 1] = (x * 2).astype(dtype)
        feeds = {"q": x, "at": np.int64(place)}
        assert all(one.fits for one in net.verify(feeds))
        found = net.run(feeds)["s"]
        np.testing.assert_array_equal(net.state["k"], past)
        wanted = x @ past.astype(np.float32).transpose(0, 1, 3, 2)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
        exact = moved.astype(np.float64) * 0.75 + x * 0.25
        step = 2.0 ** -(10 if dtype == np.float16 else 7)
        np.testing.assert_allclose(net.state["mean"].astype(np.float64), exact, rtol=step * 0.501, atol=1e-6)
        moved = net.state["mean"].copy()
    assert net.state["k"] is array
    again = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(again.state["k"], past)
    own = np.zeros((1, 2, 16, 8), dtype)
    net.state["k"] = own
    net.run(feeds)
    assert own[:, :, 5].any()


@pytest.mark.parametrize("dtype", [np.float32, *HALVES], ids=str)
def test_states_that_become_one_another(dtype: Any) -> None:
    g = dnn.Graph()
    a, b = g.state("a", (40,), dtype, initial=1), g.state("b", (40,), dtype, initial=2)
    g.update(a, b)
    g.update(b, a)
    net = g.compile(s=a - b, old=a, engine=engine())
    net.check()
    for sign in (-1, 1, -1):
        result = net.run({})
        assert (result["s"] == sign).all()
        assert (result["old"] == (1 if sign < 0 else 2)).all()


@pytest.mark.parametrize("dtype", ["int64", "int32", "float16"])
def test_outputs_of_a_file(dtype: str) -> None:
    """Of the type that the file says."""
    nodes = [
        wire.node("Add", ["past", "step"], ["present"]),
        wire.node("Cast", ["past"], ["floats"], to=1),
        wire.node("Mul", ["x", "floats"], ["y"]),
    ]
    inputs = [(11, wire.value_info("x", (4,))), (11, wire.value_info("past", (1,), dtype))]
    outputs = [(12, wire.value_info("y")), (12, wire.value_info("present", (1,), dtype))]
    step = wire.tensor(np.array([3], dtype), "step")
    body = [*((1, node) for node in nodes), (2, "g"), (5, step), *inputs, *outputs]
    net = dnn.load_onnx(wire.model(wire.message(body)), engine=engine(), state={"present": "past"})
    for i in range(3):
        x = random(4)
        np.testing.assert_array_equal(net(x), x * np.float32(3 * i))
        assert net.state["past"].dtype.name == dtype and net.state["past"] == 3 * i + 3


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_training_steps(tmp_path: Any, ending: str) -> None:
    """States of a graph stay with its step, and go through its files."""
    g = dnn.Graph()
    x, t, w = g.input("x", (4, 3)), g.input("t", (4, 2)), g.parameter("w", (3, 2))
    steps, is_odd = g.state("steps", (), np.int64), g.state("is odd", (1,), bool)
    g.update(steps, steps + np.int64(1))
    g.update(is_odd, g.apply("Not", is_odd))
    for dtype in HALVES:
        mean = g.state(f"mean {dtype}", (2,), dtype)
        g.update(mean, mean * 0.5 + g.apply("ReduceMean", x @ w, np.array([0]), keepdims=0))
    loss = dnn.losses.mean_squared_error(x @ w, t)
    step, other = (g.train(loss, dnn.optim.SGD(0.1), {"old": steps}, engine=engine()) for _ in range(2))
    for i in range(3):
        assert step.run({"x": random(4, 3), "t": random(4, 2)})["old"] == i
    state = step.state_dict()
    assert state["steps"] == 3 and state["is odd"].all()
    step.save(tmp_path / f"s.{ending}")
    other.load(tmp_path / f"s.{ending}")
    for name, array in other.state_dict().items():
        assert array.dtype == state[name].dtype
        np.testing.assert_array_equal(array, state[name])
    with pytest.raises(InvalidArguments, match=r"steps is float32\[\]"):
        other.load_state_dict({**state, "steps": np.float32(3)})


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_halves_in_training_steps(dtype: Any) -> None:
    """Without integers, a step's states are placed once."""
    g = dnn.Graph()
    x, t, w = g.input("x", (4, 3)), g.input("t", (4, 2)), g.parameter("w", (3, 2), "zeros")
    mean = g.state("mean", (3,), dtype)
    g.update(mean, mean * 0.5 + g.apply("ReduceMean", x, np.array([0]), keepdims=0))
    step = g.train(dnn.losses.mean_squared_error(x @ w, t), dnn.optim.SGD(0.1), engine=engine())
    wanted = np.zeros(3, dtype)
    for _ in range(3):
        given = random(4, 3)
        step.run({"x": given, "t": random(4, 2)})
        exact = wanted.astype(np.float64) * 0.5 + given.mean(0, dtype=np.float64)
        wanted = step.state_dict()["mean"]
        np.testing.assert_allclose(wanted.astype(np.float64), exact, rtol=2.0**-8 * 1.01, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.uint32, np.uint64, np.int16, ml_dtypes.float8_e5m2, ml_dtypes.int4])
def test_types_that_no_state_has(dtype: Any) -> None:
    name = np.dtype(dtype).name
    with pytest.raises(InvalidArguments, match=f"state 's' is {name}, it must be one of float32, .*bool, .*int64"):
        dnn.Graph().state("s", (3,), dtype)


def test_what_does_not_fit() -> None:
    g = dnn.Graph()
    for dtype, initial in ((np.int64, 0.5), (np.int8, 200), (bool, 2), (np.int32, np.nan), (np.uint8, -1)):
        with pytest.raises(InvalidArguments, match=r"initial of state 's' must be .* numbers, not"):
            g.state("s", (3,), dtype, initial=initial)
    with pytest.raises(InvalidArguments, match="parameter p is int64, only float32 is learned"):
        g.state("p", (3,), np.int64, trainable=True)
    x, count, rows = g.input("x", (3,)), g.state("count", (3,), np.int64), g.state("rows", (6,))
    with pytest.raises(InvalidArguments, match="state count is int64, and written whole: leave out at"):
        g.update(count, np.array([1]), at=0)
    with pytest.raises(InvalidArguments, match="at must be None, an integer from 0 on, or an input or a state of one"):
        g.update(rows, x, at=rows)
    g.update(count, x)
    net = g.compile(y=x * 2.0, engine=engine())
    net.run({"x": np.array([1.9, -2.1, 3], np.float32)})
    assert net.state["count"].tolist() == [1, -2, 3], "a Cast to integers cuts"
    with pytest.raises(InvalidArguments, match=r"state 'count' is int32\[3\], the network takes int64\[3\]"):
        net.state["count"] = np.zeros(3, np.int32)
