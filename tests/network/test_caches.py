"""Caches of keys and values that are states: rows are written into their memory, and nothing is copied."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.calls.running import input_name
from tests.network.nets import engine, random

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
pytestmark = pytest.mark.isa("avx2")
DOMAIN = "com.microsoft"
GROUPS, D, ROOM = 2, 16, 12  # of keys: 4 heads share them
KEYS, HEADS = GROUPS * D, 2 * GROUPS * D  # elements of a row
STATES = {"present_key": "past_key", "present_value": "past_value"}
TABLES = {"cos": random(ROOM, D // 2), "sin": random(ROOM, D // 2)}


def check_in_place(net: dnn.Network, *states: str) -> None:
    """A state that is not made where it lies is copied at the end, by a step that says so."""
    net.check()
    segments: Any = net.segments
    assert not [step.label for one in segments for step in one.steps if step.label.endswith("is written")]
    assert {state.old for one in segments for state in one.joined.states} == {input_name(name) for name in states}


def check_refused(net: Any, feeds: dict[str, Any], said: str) -> None:
    """In one sentence, with no state written."""
    before = {name: state.copy() for name, state in net.state.items()}
    with pytest.raises(dnn.InvalidArguments, match=said):
        net.run(feeds)
    assert all(np.array_equal(net.state[name], state) for name, state in before.items())


def model_of(nodes: list[Any], inputs: dict[str, Any], outputs: tuple[str, ...]) -> bytes:
    """Inputs by name: dims of float32, or dims and a type."""
    from onnx import helper

    declared = []
    for name, given in inputs.items():
        dims, dtype = given if isinstance(given[1], type) else (given, np.float32)
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        declared.append(helper.make_tensor_value_info(name, kind, list(dims)))
    made = [helper.make_tensor_value_info(name, 1, None) for name in outputs]
    opsets = [helper.make_opsetid("", 24), helper.make_opsetid(DOMAIN, 1)]
    graph = helper.make_graph(nodes, "cached", declared, made)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("rows", [1, 3])
def test_rows_of_a_tensor_scatter(mode: str, rows: int) -> None:
    """Each sequence has its own place; the product reads what the state has become."""
    from onnx import helper

    nodes = [
        helper.make_node("TensorScatter", ["past", "new", "at"], ["present"], mode=mode),
        helper.make_node("Transpose", ["present"], ["turned"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["query", "turned"], ["y"]),
    ]
    new, past = (2, GROUPS, rows, D), (2, GROUPS, ROOM, D)
    inputs = {"new": new, "past": past, "at": ((2,), np.int64), "query": (2, GROUPS, 1, D)}
    data = model_of(nodes, inputs, ("y", "present"))
    net = dnn.load_onnx(data, engine=engine(2), state={"present": "past"})
    check_in_place(net, "past")
    wanted = np.zeros(past, np.float32)
    for at in ([0, 3], [4, 5], [ROOM - rows, 0], [ROOM - 1, 7] if mode == "circular" else [1, 7]):
        x, query = random(*new), random(2, GROUPS, 1, D)
        put(wanted, x, at)
        y = net.run({"new": x, "at": np.array(at), "query": query})["y"]
        assert np.array_equal(net.state["past"], wanted)
        np.testing.assert_allclose(y, query @ wanted.transpose(0, 1, 3, 2), rtol=1e-5, atol=1e-5)
    if mode == "linear":
        with pytest.raises(dnn.InvalidArguments, match=rf"at\[1\] is {ROOM - rows + 1}, axis 2"):
            net.run({"new": x, "at": np.array([0, ROOM - rows + 1]), "query": query})
    feeds = {"past": wanted, "new": x, "at": np.array([1, 2]), "query": query}
    found = dnn.load_onnx(data, engine=engine(1)).run(feeds)["present"]
    put(wanted, x, (1, 2))
    assert np.array_equal(found, wanted)


def put(cache: Any, new: Any, at: Any) -> None:
    """What the operator does."""
    for item, first in enumerate(at):
        cache[item][:, (first + np.arange(new.shape[2])) % cache.shape[2]] = new[item]


def test_elements_by_places() -> None:
    """As exports of static caches have them."""
    from onnx import helper

    nodes = [
        helper.make_node("ScatterElements", ["past", "places", "new"], ["present"], axis=2),
        helper.make_node("ReduceSum", ["present"], ["y"]),
    ]
    new, past = (1, GROUPS, 1, D), (1, GROUPS, ROOM, D)
    data = model_of(nodes, {"past": past, "places": (new, np.int64), "new": new}, ("y", "present"))
    net = dnn.load_onnx(data, engine=engine(2), state={"present": "past"})
    check_in_place(net, "past")
    wanted = np.zeros(past, np.float32)
    for at in (0, 5, -1):
        x = random(*new)
        wanted[:, :, at] = x[:, :, 0]
        net.run({"places": np.full(new, at), "new": x})
        assert np.array_equal(net.state["past"], wanted)


def attention(rows: Any, n: int = 1, **attributes: Any) -> bytes:
    """GroupQueryAttention with a buffer; with tables to turn by if it has do_rotary."""
    from onnx import helper

    turns = ["cos", "sin"] * ("do_rotary" in attributes)
    names = ["query", "key", "value", "past_key", "past_value", "last", "total", *turns]
    heads = {"num_heads": 2 * GROUPS, "kv_num_heads": GROUPS}
    node = helper.make_node("GroupQueryAttention", names, ["y", *STATES], domain=DOMAIN, **heads, **attributes)
    past = (n, GROUPS, ROOM, D)
    inputs = {"query": (n, rows, HEADS), **dict.fromkeys(("key", "value"), (n, rows, KEYS))}
    inputs |= dict.fromkeys(STATES.values(), past)
    ends = {"last": ((n,), np.int32), "total": ((1,), np.int32), **dict.fromkeys(turns, (ROOM, D // 2))}
    return model_of([node], inputs | ends, ("y", *STATES))


def rows_of(n: int, count: int) -> dict[str, Any]:
    return {"query": random(n, count, HEADS), "key": random(n, count, KEYS), "value": random(n, count, KEYS)}


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize(
    "attributes", [{}, {"do_rotary": 1}, {"local_window_size": 3}, {"softcap": 0.7, "scale": 0.3}], ids=str
)
def test_tokens_one_by_one_as_in_onnxruntime(n: int, attributes: dict[str, Any]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
    data = attention(1, n, **attributes)
    net, session = dnn.load_onnx(data, engine=engine(2), state=STATES), onnxruntime.InferenceSession(data)
    check_in_place(net, *STATES.values())
    pasts = [np.zeros((n, GROUPS, ROOM, D), np.float32)] * 2
    for step in range(ROOM):
        feeds = {**rows_of(n, 1), "last": np.full(n, step, np.int32), "total": np.array([step + 1], np.int32)}
        feeds |= TABLES if "do_rotary" in attributes else {}
        wanted, *pasts = session.run(None, {**feeds, **dict(zip(STATES.values(), pasts, strict=True))})
        np.testing.assert_allclose(net.run(feeds)["y"], wanted, rtol=1e-5, atol=3e-6)
        for name, past in zip(STATES.values(), pasts, strict=True):
            np.testing.assert_allclose(net.state[name], past, rtol=1e-5, atol=3e-6)
    for wrong in (ROOM, -1):
        bad = {**feeds, "last": np.full(n, wrong, np.int32)}
        check_refused(net, bad, rf"last\[0\] is {wrong}, axis 2 of src has 12: use 0 to 11")


def masked(n: int, dtype: Any) -> bytes:
    """As onnxruntime-genai and optimum write it: a mask of what is there, as integers, says where sequences end."""
    from onnx import helper, load_model_from_string, numpy_helper

    names = ["query", "key", "value", "past_key", "past_value", "last", "total"]
    nodes = [
        helper.make_node("ReduceSum", ["mask", "one"], ["sums"]),
        helper.make_node("Sub", ["sums", "one as mask"], ["less"]),
        helper.make_node("Cast", ["less"], ["last"], to=6),
        helper.make_node("Shape", ["mask"], ["dims"]),
        helper.make_node("Gather", ["dims", "one"], ["length"], axis=0),
        helper.make_node("Cast", ["length"], ["total"], to=6),
        helper.make_node(
            "GroupQueryAttention", names, ["y", *STATES], domain=DOMAIN, num_heads=2 * GROUPS, kv_num_heads=GROUPS
        ),
    ]
    inputs: dict[str, Any] = {"query": (n, 1, HEADS), **dict.fromkeys(("key", "value"), (n, 1, KEYS))}
    inputs |= dict.fromkeys(STATES.values(), (n, GROUPS, ROOM, D)) | {"mask": ((n, "total"), dtype)}
    model = load_model_from_string(model_of(nodes, inputs, ("y", *STATES)))
    constants = {"one": np.array([1]), "one as mask": np.array([1], dtype)}
    model.graph.initializer.extend(numpy_helper.from_array(x, name) for name, x in constants.items())
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_a_mask_says_where_sequences_end(dtype: Any) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
    n, data = 2, masked(2, dtype)
    net = dnn.load_onnx(data, {"mask": (n, "total")}, engine=engine(2), state=STATES)
    session = onnxruntime.InferenceSession(data)
    pasts = [np.zeros((n, GROUPS, ROOM, D), np.float32)] * 2
    for step in range(4):
        mask = np.ones((n, step + 3), dtype)
        mask[0, :2] = 0  # padded at its front
        feeds = {**rows_of(n, 1), "mask": mask}
        wanted, *pasts = session.run(None, {**feeds, **dict(zip(STATES.values(), pasts, strict=True))})
        np.testing.assert_allclose(net.run(feeds)["y"], wanted, rtol=1e-5, atol=3e-6)
        for name, past in zip(STATES.values(), pasts, strict=True):
            np.testing.assert_allclose(net.state[name], past, rtol=1e-5, atol=3e-6)
    check_in_place(net.at({"mask": (n, 3)}), *STATES.values())  # type: ignore[attr-defined]
    for bad, said in (
        (np.zeros_like(mask), r"GroupQueryAttention 'y'\[0, 0\] is -1, axis 2 of src has 12: use 0 to 11"),
        (3 * np.ones_like(mask), r"GroupQueryAttention 'y'\[0, 0\] is 17, axis 2 of src has 12: use 0 to 11"),
        (mask + (1 << 29), r"mask\[0, 0\] is 536870912, .*: use -2097152 to 2097151"),
    ):
        check_refused(net, {**feeds, "mask": bad}, said)
    assert np.isfinite(net.run(feeds)["y"]).all()


def test_places_that_kernels_make_are_looked_at_before_rows_are_written() -> None:
    graph = dnn.Graph("step")
    new, at = graph.input("new", (1, D)), graph.input("at", (1, 1), np.int64)
    past = graph.state("past", (ROOM, D))
    now = graph.update(past, graph.apply("ScatterND", past, graph.apply("Add", at, np.array(1)), new))
    table = graph.apply("Gather", random(9, D), graph.apply("Mul", at, np.array(2)), axis=0)
    net = graph.compile(y=graph.apply("ReduceSum", now) + table, engine=engine(2))
    check_in_place(net, "past")
    x = random(1, D)
    for place in (3, -2):
        net.run({"new": x, "at": np.array([[place]])})
    assert np.array_equal(net.state["past"][[4, -1]], [x[0], x[0]])
    check_refused(net, {"new": x, "at": np.array([[11]])}, r"of ScatterND .* is 12, axis 0 of src has 12: use -12")
    check_refused(net, {"new": x, "at": np.array([[5]])}, "is 10, axis 0 of src has 9: use -9 to 8")
    good = {"new": x, "at": np.array([[1]])}
    assert all(one.fits for one in net.verify(good))
    assert net.profile(good, 1).count("\n") == sum(len(one.steps) for one in net.segments)  # type: ignore[union-attr]
    assert "Part 1: one native call" in net.page(good, 1)


def test_a_prompt_and_then_tokens() -> None:
    """Of sequences that differ in length: what is padded in the cache is hidden, and then written over."""
    n, count, steps, lengths = 2, 5, 3, np.array([3, 5])
    net, every = prompted(n), rows_of(n, count + steps)
    prompt = {name: x[:, :count] for name, x in every.items()}
    y = net.run({**prompt, **ends(lengths)})["y"]
    found = [[*y[item, :length]] for item, length in enumerate(lengths)]
    for step in range(steps):
        rows = {name: x[range(n), lengths + step][:, None] for name, x in every.items()}
        y = net.run({**rows, **ends(lengths + step + 1)})["y"]
        for item in range(n):
            found[item].append(y[item, 0])
    for item, length in enumerate(lengths + steps):
        alone = {name: x[item : item + 1, :length] for name, x in every.items()}
        wanted = prompted(1).run({**alone, **ends([length])})["y"][0]
        np.testing.assert_allclose(found[item], wanted, rtol=1e-5, atol=3e-6)


def prompted(n: int) -> dnn.Network:
    """Of as many rows as come; all of them share the states."""
    rows = {"query": (n, "rows", HEADS), **dict.fromkeys(("key", "value"), (n, "rows", KEYS))}
    return dnn.load_onnx(attention("rows", n, do_rotary=1), rows, engine=engine(2), state=STATES)


def ends(lengths: Any) -> dict[str, Any]:
    return {"last": np.array(lengths, np.int32) - 1, "total": np.array([ROOM], np.int32), **TABLES}


def test_more_rows_than_there_is_room_for() -> None:
    with pytest.raises(dnn.InvalidArguments, match="has 13 new rows, and its past has room for 12: give it more"):
        dnn.load_onnx(attention(ROOM + 1), engine=engine(), state=STATES)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("how", ["turned", "repeated"])
def test_rows_as_exports_of_torch_put_them(how: str, rows: int) -> None:
    """Tokens become the first axis and go back (`cache[:, :, at] = new`), or places are repeated (`index_copy_`)."""
    from onnx import helper, load_model_from_string, numpy_helper

    new, past = (2, GROUPS, rows, D), (2, GROUPS, ROOM, D)
    if how == "turned":
        nodes = [
            helper.make_node("Unsqueeze", ["at", "axis"], ["index"]),
            helper.make_node("Transpose", ["past"], ["turned"], perm=[2, 0, 1, 3]),
            helper.make_node("Transpose", ["new"], ["first"], perm=[2, 0, 1, 3]),
            helper.make_node("ScatterND", ["turned", "index", "first"], ["put"]),
            helper.make_node("Transpose", ["put"], ["present"], perm=[1, 2, 0, 3]),
        ]
    else:
        nodes = [
            helper.make_node("Reshape", ["at", "column"], ["index"]),
            helper.make_node("Expand", ["index", "dims"], ["places"]),
            helper.make_node("ScatterElements", ["past", "places", "new"], ["present"], axis=2),
        ]
    nodes.append(helper.make_node("ReduceSum", ["present"], ["y"]))
    inputs = {"past": past, "at": ((rows,), np.int64), "new": new}
    model = load_model_from_string(model_of(nodes, inputs, ("y", "present")))
    constants = {"axis": [-1], "column": [1, 1, rows, 1], "dims": new}
    model.graph.initializer.extend(numpy_helper.from_array(np.array(x), name) for name, x in constants.items())
    net = dnn.load_onnx(model.SerializeToString(), engine=engine(2), state={"present": "past"})
    check_in_place(net, "past")
    (segment,) = net.segments  # of places that are an input nothing has to be looked at first
    (scatter,) = [step for step in segment.steps if "Scatter" in step.label]  # type: ignore[union-attr]
    assert scatter.pd.plan.tensors["indices"].dims == (2 * GROUPS * rows,), "whole rows are moved"
    wanted, places = np.zeros(past, np.float32), np.arange(rows)
    for first in (0, 4, -3):
        x = random(*new)
        wanted[:, :, places + first] = x
        net.run({"at": places + first, "new": x})
        assert np.array_equal(net.state["past"], wanted)
    check_refused(net, {"at": places + ROOM, "new": x}, r"at\[0\] is 12, axis \d of src has 12: use -12 to 11")
