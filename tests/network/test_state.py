"""States: what calls write stays for the next one, nothing reads it too early or too late, one caller at a time."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import PlanError
from asmdnn.network.joining.state_proof import check_states
from tests.network import wire
from tests.network.nets import compiled, engine, random

pytestmark = pytest.mark.isa("avx2")


def reorders(net: dnn.Network) -> int:
    return sum(step.is_reorder for step in compiled(net).steps)


def trained(threads: int = 1) -> dnn.Network:
    """A product with weights that each call moves by what it is given."""
    g = dnn.Graph()
    x, d, w = g.input("x", (3, 16)), g.input("d", (16, 32)), g.state("w", (16, 32), initial=np.ones((16, 32)))
    y = x @ w
    g.update(w, w - d * 0.5)
    return g.compile(y=y, engine=engine(threads))


def cached(tokens: int | str = 1, at: int | None = None) -> dnn.Network:
    """Products with a ring buffer, a part of which has been written by the same call."""
    g = dnn.Graph()
    q, k = g.input("q", (1, 2, tokens, 8)), g.state("k", (1, 2, 16, 8))
    keys = g.update(k, q * 2.0, at=g.input("at", (), np.int64) if at is None else at)
    return g.compile(s=q @ g.apply("Transpose", keys, perm=(0, 1, 3, 2)), engine=engine())


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_weights_are_written_where_they_are_read(threads: int) -> None:
    net, w = trained(threads), np.ones((16, 32), np.float32)
    net.check()
    assert reorders(net) == 0
    array = net.state["w"]
    for _ in range(3):
        x, d = random(3, 16), random(16, 32)
        np.testing.assert_allclose(net.run({"x": x, "d": d})["y"], x @ w, rtol=0, atol=1e-4)
        w -= d * np.float32(0.5)
        assert np.array_equal(net.state["w"], w)
    assert net.state["w"] is array
    assert set(net.inputs) == {"x", "d"}
    assert set(net.outputs) == {"y"}


def test_looking_changes_no_state() -> None:
    for net, feeds in (
        (trained(), {"x": random(3, 16), "d": random(16, 32)}),
        (cached(), {"q": random(1, 2, 1, 8), "at": np.int64(3)}),
    ):
        net.run(feeds)
        before = {name: array.copy() for name, array in net.state.items()}
        assert all(difference.fits for difference in net.verify(feeds))
        assert "eltwise" in net.profile(feeds, 1)
        assert "<html" in net.page(feeds, 1)
        assert all(np.array_equal(before[name], array) for name, array in net.state.items())


def test_a_ring_buffer_is_written_where_an_input_says() -> None:
    net, keys = cached(), np.zeros((1, 2, 16, 8), np.float32)
    net.check()
    for at in (0, 1, 5, 15, 5):
        q = random(1, 2, 1, 8)
        keys[:, :, at : at + 1] = q * 2
        result = net.run({"q": q, "at": np.int64(at)})["s"]
        np.testing.assert_allclose(result, q @ keys.transpose(0, 1, 3, 2), rtol=0, atol=1e-5)
        assert np.array_equal(net.state["k"], keys)
    for at in (-1, 16):
        with pytest.raises(dnn.InvalidArguments, match=f"written at {at}, which at says: it must be from 0 to 15"):
            net.run({"q": q, "at": np.int64(at)})
    assert np.array_equal(net.state["k"], keys)
    net.reset()
    assert not net.state["k"].any()


def test_shapes_of_an_open_network_share_states() -> None:
    net, keys = cached("tokens"), np.zeros((1, 2, 16, 8), np.float32)
    for at, tokens in ((0, 7), (7, 1), (8, 1), (0, 16), (9, 3)):
        q = random(1, 2, tokens, 8)
        keys[:, :, at : at + tokens] = q * 2
        result = net.run({"q": q, "at": np.int64(at)})["s"]
        np.testing.assert_allclose(result, q @ keys.transpose(0, 1, 3, 2), rtol=0, atol=1e-5)
        net.check()
    assert np.array_equal(net.state["k"], keys)
    with pytest.raises(dnn.InvalidArguments, match=r"state k is .*, and .* are written to it"):
        net.run({"q": random(1, 2, 17, 8), "at": np.int64(0)})


def test_what_reads_both_sides_in_the_wrong_order_is_refused() -> None:
    g = dnn.Graph()
    x, k = g.input("x", (1, 8)), g.state("k", (8, 8))
    now = g.update(k, x, at=0)
    with pytest.raises(dnn.InvalidArguments, match="reads what state k was, and needs what it becomes"):
        g.compile(y=k * g.apply("ReduceSum", now), engine=engine())


def test_the_proof_finds_writes_that_come_too_early() -> None:
    joined = compiled(trained()).joined
    check_states(joined)
    backwards = replace(joined.plan, phases=tuple(reversed(joined.plan.phases)))
    with pytest.raises(PlanError, match="state w is written before its last reader is done"):
        check_states(replace(joined, plan=backwards))
    joined = compiled(cached()).joined
    backwards = replace(joined.plan, phases=tuple(reversed(joined.plan.phases)))
    with pytest.raises(PlanError, match="state k is read before it is written"):
        check_states(replace(joined, plan=backwards))


def test_one_caller_at_a_time() -> None:
    net = trained()
    feeds = {"x": random(3, 16), "d": np.zeros((16, 32), np.float32)}
    with net.state, pytest.raises(dnn.InvalidArguments, match="another call of it runs"):
        net.run(feeds)
    with net.state, pytest.raises(dnn.InvalidArguments, match="another call of it runs"):
        net.reset()
    net.run(feeds)

    def attempt(_: int) -> bool:
        try:
            net.run(feeds)
        except dnn.InvalidArguments:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert any(pool.map(attempt, range(64)))
    assert (net.state["w"] == 1).all()


def test_inputs_in_the_memory_of_a_state_are_read_before_it_changes() -> None:
    """The state itself, a part of it, and a view that overlaps it: the sum reads them after the state is written."""
    g = dnn.Graph()
    x, s = g.input("x", (64,)), g.state("s", (64,), initial=1.0)
    after = g.update(s, s * 0.5 + 4.0)
    net = g.compile(y=x + g.apply("ReduceSum", after, keepdims=1) * (1 / 64), engine=engine())
    room = np.full(200, 2, np.float32)
    for part in (slice(60, 124), slice(0, 64), slice(100, 164), slice(50, 178, 2), slice(123, 59, -1)):
        net.state["s"], room[:] = room[60:124], 2
        assert np.array_equal(net.run({"x": room[part]})["y"], np.full(64, 7)), part
    assert np.array_equal(net.run({"x": net.state["s"]})["y"], np.full(64, 11.5))


def test_copies_have_states_of_their_own() -> None:
    net = trained()
    feeds = {"x": random(3, 16), "d": random(16, 32)}
    net.run(feeds)
    for other in (copy.deepcopy(net), copy.copy(net), pickle.loads(pickle.dumps(net))):
        assert np.array_equal(other.state["w"], net.state["w"])
        other.run(feeds)
        assert not np.array_equal(other.state["w"], net.state["w"])


def test_arrays_of_the_caller() -> None:
    net, own = trained(), random(16, 32)
    net.state["w"] = own
    before, d = own.copy(), random(16, 32)
    net.run({"x": random(3, 16), "d": d})
    assert np.array_equal(own, before - d * np.float32(0.5))
    fixed = own.copy()
    fixed.setflags(write=False)
    for wrong in (own[:8], own.astype(np.float64), own.T.copy().T, fixed, own.tolist(), None):
        with pytest.raises(dnn.InvalidArguments):
            net.state["w"] = wrong
    with pytest.raises(dnn.InvalidArguments, match="'v' is no state of the network: these are w"):
        net.state["v"]


def looping(dims: Any = (2, 4)) -> bytes:
    """y = h' = x + h."""
    nodes = [wire.node("Add", ["x", "h"], ["next"]), wire.node("Relu", ["next"], ["y"])]
    return wire.model(wire.graph(nodes, {"x": (2, 4), "h": dims}, ["y", "next"], {}))


@pytest.mark.parametrize("dims", [(2, 4), ("batch", 4)])
def test_outputs_of_a_file_tied_to_inputs(dims: Any) -> None:
    shapes = None if dims == (2, 4) else {"h": (2, 4)}
    net = dnn.load_onnx(looping(dims), shapes, engine=engine(), state={"next": "h"})
    total = np.zeros((2, 4), np.float32)
    for _ in range(3):
        x = random(2, 4)
        total += x
        assert np.array_equal(net(x), np.maximum(total, 0))
        assert np.array_equal(net.state["h"], total)


@pytest.mark.parametrize(
    "state", [{"next": "z"}, {"z": "h"}, {"y": "h", "next": "h"}, 5, {"next": 3}, {3: "h"}, {"next": ["h"]}]
)
def test_ties_that_do_not_fit(state: Any) -> None:
    with pytest.raises(dnn.InvalidArguments):
        dnn.load_onnx(looping(), engine=engine(), state=state)


def test_open_dims_of_a_state_are_asked_for() -> None:
    with pytest.raises(dnn.InvalidArguments, match="say its dims, as in shapes="):
        dnn.load_onnx(looping(("n", 4)), engine=engine(), state={"next": "h"})


@pytest.mark.parametrize(
    "make",
    [
        lambda g: g.state("s", (2, "n")),
        lambda g: g.state("s", (0, 2)),
        lambda g: g.state("s", (2,), np.float64),
        lambda g: g.state("s", (2,), initial=(1, 2, 3)),
        lambda g: g.state("s", (2,), initial="one"),
        lambda g: g.state("x", (2,)),
        lambda g: g.update(g.input("z", (2,)), 1.0),
        lambda g: g.update("s", 1.0),
        lambda g: g.update(g.state("s", (4,)), None),
        lambda g: g.update(g.state("s", (4,)), np.ones(4), at=-1),
        lambda g: g.update(g.state("s", (4,)), np.ones(4), at=1.5),
        lambda g: g.update(g.state("s", (4,)), np.ones(4), at=g.apply("Relu", g.input("i", (1,)))),
    ],
)
def test_states_that_are_none(make: Any) -> None:
    g = dnn.Graph()
    g.input("x", (2,))
    with pytest.raises(dnn.InvalidArguments):
        make(g)


def test_updates_that_do_not_fit() -> None:
    for value, at in ((np.ones(5), 0), (np.ones((2, 2)), None), (np.ones(2), 3)):
        g = dnn.Graph()
        s = g.state("s", (4,))
        g.update(s, value, at=at)
        with pytest.raises(dnn.InvalidArguments, match="state s is"):
            g.compile(y=s * 1.0, engine=engine()).run({})
        with pytest.raises(dnn.InvalidArguments, match="state s is updated twice"):
            g.update(s, s)


def test_what_a_network_with_state_does_not_do() -> None:
    net = trained()
    with pytest.raises(dnn.InvalidArguments, match="a network with state cannot be bound"):
        net.bind(y=random(3, 32))
    plain = dnn.load_onnx(looping(), engine=engine())
    with pytest.raises(dnn.InvalidArguments, match="the network has no state"):
        plain.reset()
