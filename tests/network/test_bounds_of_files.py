"""Files whose data decide dims, planned within bounds: as onnxruntime, for no places, some and all, and no more."""

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.cli.main import main
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.network.network import Network
from tests.network.keeping import is_kept, own_directory
from tests.network.nets import engine, random

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
onnxruntime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
from tests.network.test_staged import F32, S64, Declared, model_of, node  # noqa: E402 (they need onnx)

pytestmark = pytest.mark.isa("avx2")
BOOL = 9
SHARES = (0.0, 0.1, 0.5, 1.0)
Feeds = dict[str, Any]
Bounds = dict[str, int]


def within(
    data: bytes, bounds: Bounds | None, *several: Feeds, threads: int = 2, is_native: bool = True, **how: Any
) -> Network:
    """Loaded and compared."""
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    net = dnn.load_onnx(data, engine=engine(threads), bounds=bounds, **how)
    for feeds in several:
        for (name, found), wanted in zip(net.run(feeds).items(), session.run(None, feeds), strict=True):
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), name
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5, err_msg=name)
    net.check()
    assert net.is_native == is_native
    return net


def dims_of(net: Network, name: str) -> Any:
    return net.outputs[name][0]


def sparse(*dims: int, dtype: Any = np.float32) -> Iterator[Feeds]:
    draw = np.random.default_rng(0)
    for share in SHARES:
        yield {"x": np.where(draw.random(dims) < share, draw.integers(1, 9, dims), 0).astype(dtype)}


def of_rows(seed: int = 1) -> Iterator[Feeds]:
    """A first row that is no number, and is left out unless all are there."""
    draw = np.random.default_rng(seed)
    for share in SHARES:
        x, keep = draw.standard_normal((7, 6)).astype(np.float32), draw.random(7) < share
        if not keep[0]:
            x[0] = [np.nan, np.inf, -np.inf, np.nan, 0, np.inf]
        yield {"x": x, "keep": keep}


def rows(*after: Any, outputs: Sequence[Declared] = (("y", F32, None),), opset: int = 17, **data: Any) -> bytes:
    """What is made of rows that data choose."""
    nodes = [node("Compress", "x keep", "kept", axis=0), *after]
    return model_of(nodes, [("x", F32, [7, 6]), ("keep", BOOL, [7])], outputs, opset, **data)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("most", [24, 100])
@pytest.mark.parametrize("kind, dtype", [(F32, np.float32), (S64, np.int64), (BOOL, np.bool_)])
def test_non_zero(most: int, threads: int, kind: int, dtype: Any) -> None:
    """Places, and what lies there, as exporters write a choice by a mask."""
    nodes = [
        node("NonZero", "x", "at"), node("Transpose", "at", "rows", perm=[1, 0]), node("GatherND", "v rows", "found"),
        node("Exp", "found", "e"), node("Split", "at zero_one", "row column", axis=0),
        node("Squeeze", "column zero", "columns"), node("Gather", "v columns", "picked", axis=1),
    ]  # fmt: skip
    outputs = [("at", S64, None), ("e", F32, None), ("columns", S64, None), ("picked", F32, None)]
    known: dict[str, Any] = {"v": random(4, 6), "zero_one": np.array([1, 1]), "zero": np.array([0])}
    data = model_of(nodes, [("x", kind, [4, 6])], outputs, **known)
    net = within(data, {"at": most}, *sparse(4, 6, dtype=dtype), threads=threads)
    assert dims_of(net, "at") == (2, dnn.Dim("at", 0, 24))


@pytest.mark.parametrize("dims", [(), (5,), (0,), (2, 0, 3), (3, 4, 5), (1, 1)])
def test_non_zero_of_any_dims(dims: tuple[int, ...]) -> None:
    data = model_of([node("NonZero", "x", "at")], [("x", F32, dims)], [("at", S64, None)])
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    net = dnn.load_onnx(data, engine=engine(), bounds={"at": 60})
    for feeds in sparse(*dims):
        np.testing.assert_array_equal(net.run(feeds)["at"], session.run(None, feeds)[0])


def test_what_is_no_number_is_not_zero() -> None:
    data = model_of([node("NonZero", "x", "at")], [("x", F32, [5])], [("at", S64, None)])
    net = dnn.load_onnx(data, engine=engine(), bounds={"at": 5})
    found = net.run({"x": np.array([np.nan, 0, -0.0, np.inf, 1], np.float32)})
    assert found["at"].tolist() == [[0, 3, 4]]


@pytest.mark.parametrize("axis", [0, 1, -1, None])
@pytest.mark.parametrize("kind, dtype", [(F32, np.float32), (S64, np.int64), (BOOL, np.bool_)])
def test_compress(axis: int | None, kind: int, dtype: Any) -> None:
    """A condition may be shorter than the axis."""
    how = {} if axis is None else {"axis": axis}
    size = {0: 4, 1: 5, -1: 6, None: 20}[axis]
    data = model_of(
        [node("Compress", "x keep", "y", **how)], [("x", kind, [4, 6]), ("keep", BOOL, [size])], [("y", kind, None)]
    )
    draw = np.random.default_rng(2)
    feeds = [{"x": draw.integers(0, 3, (4, 6)).astype(dtype), "keep": draw.random(size) < share} for share in SHARES]
    within(data, {"y": size}, *feeds)


@pytest.mark.parametrize("how", [{}, {"sorted": 0}])
@pytest.mark.parametrize("kind, dtype", [(F32, np.float32), (S64, np.int64)])
@pytest.mark.parametrize("threads", [1, 2])
def test_unique(how: Any, kind: int, dtype: Any, threads: int) -> None:
    outputs = [("u", kind, None), ("first", S64, None), ("each", S64, None), ("count", S64, None)]
    data = model_of([node("Unique", "x", "u first each count", **how)], [("x", kind, [3, 7])], outputs)
    draw = np.random.default_rng(3)
    feeds = [{"x": draw.integers(-5, most, (3, 7)).astype(dtype)} for most in (-4, -3, 0, 9, 90)]
    net = within(data, {"count": 21}, *feeds, threads=threads)
    assert dims_of(net, "each") == (21,) and dims_of(net, "u") == (dnn.Dim("count", 0, 21),)


@pytest.mark.parametrize("dims", [(1,), (1, 1)], ids=str)
def test_unique_of_one_number(dims: tuple[int, ...]) -> None:
    """How many there are is known without looking."""
    nodes = [node("Unique", "x", "y at back count"), node("Relu", "y", "r")]
    outputs = [("y", F32, None), ("at", S64, None), ("back", S64, None), ("count", S64, None), ("r", F32, None)]
    data = model_of(nodes, [("x", F32, list(dims))], outputs)
    for most in (1, 3):
        within(data, {"y": most}, {"x": np.full(dims, 3, np.float32)})


def test_unique_knows_what_is_no_number() -> None:
    """It is one element, the last one, as the definition has it; so are both zeros."""
    outputs = [("u", F32, None), ("first", S64, None), ("each", S64, None), ("count", S64, None)]
    data = model_of([node("Unique", "x", "u first each count")], [("x", F32, [9])], outputs)
    x = np.array([3, np.nan, -np.inf, 3, np.nan, 0, -0.0, np.inf, 1], np.float32)
    found = dnn.load_onnx(data, engine=engine(), bounds={"u": 6}).run({"x": x}).values()
    wanted: Any = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other.reshape(-1))


def test_a_branch_that_reads_what_counts() -> None:
    """Comes later, as its bodies may do anything."""
    bodies = {}
    for name, op in (("then_branch", "ReduceSum"), ("else_branch", "ReduceMax")):
        made = onnx.helper.make_tensor_value_info(name, F32, [])
        bodies[name] = onnx.helper.make_graph([node(op, "kept", name, keepdims=0)], name, [], [made])
    nodes = [node("Compress", "x keep", "kept", axis=0), node("If", "c", "y", **bodies)]
    inputs = [("x", F32, [7, 6]), ("keep", BOOL, [7]), ("c", BOOL, [])]
    data = model_of(nodes, inputs, [("y", F32, None)])
    with pytest.raises(Unimplemented, match="If 'y' mixes places of 'kept'"):
        dnn.load_onnx(data, engine=engine(), bounds={"kept": 7})
    _, *feeds = of_rows()
    every = [{**each, "c": np.array(c)} for each in feeds for c in (True, False)]
    within(data, {"kept": 7}, *every, is_native=False, fallback="numpy")


def test_a_choice_after_a_cut() -> None:
    """Has its bound there, too: what comes later has products, so it is a network."""
    nodes = [
        node("TopK", "kept one", "t i", axis=0), node("Greater", "t none", "large"), node("NonZero", "large", "at"),
        node("MatMul", "t w", "y"),
    ]  # fmt: skip
    known = {name: DATA[name] for name in ("one", "none", "w")}
    data = rows(*nodes, outputs=[("y", F32, None), ("at", S64, None)], **known)
    _, *feeds = of_rows()
    within(data, {"kept": 7, "at": 6}, *feeds, *feeds, is_native=False, fallback="numpy")


FOLLOWERS = {
    "Softmax": [node("Softmax", "kept", "y")],
    "old Softmax": [node("Flatten", "kept", "f"), node("LogSoftmax", "f", "y", axis=-1)],
    "reductions": [node("ReduceMax", "kept", "m", axes=[1], keepdims=0), node("ReduceMean", "kept", "a", axes=[1]),
                   node("Unsqueeze", "m one", "u"), node("Add", "u a", "y")],
    "products": [node("MatMul", "kept w", "p"), node("Gemm", "p v b", "y", transB=1)],
    "columns": [node("Transpose", "kept", "t"), node("MatMul", "wide t", "p"), node("Relu", "p", "y")],
    "vector": [node("MatMul", "kept bias", "y")],
    "one axis more": [node("Reshape", "kept split", "r"), node("Transpose", "r", "t", perm=[1, 0, 2]),
                      node("ReduceSum", "t minus", "y", keepdims=0)],
    "batches": [node("Reshape", "kept images", "i"), node("Conv", "i k", "c", pads=[1, 1, 1, 1]),
                node("GlobalAveragePool", "c", "g"), node("Squeeze", "g ends", "y")],
    "norm": [node("LayerNormalization", "kept bias bias", "y")],
    "sums": [node("CumSum", "kept zero", "s"), node("CumSum", "s one", "y", reverse=1)],
    "largest": [node("TopK", "kept two", "t i", axis=1), node("GatherElements", "kept i", "e", axis=1),
                node("Add", "t e", "y")],
    "joined": [node("Exp", "kept", "e"), node("Concat", "kept e", "c", axis=1), node("Slice", "c two five one", "y")],
    "two choices": [node("Compress", "x keep", "again", axis=0), node("Mul", "kept again", "y")],
    "places too": [node("NonZero", "keep", "at"), node("Squeeze", "at zeros", "places"),
                   node("Gather", "table places", "rows"), node("Mul", "rows kept", "y")],
    "again": [node("ReduceMax", "kept", "m", axes=[1], keepdims=0), node("Greater", "m none", "large"),
              node("Compress", "kept large", "y", axis=0)],
    "places of places": [node("Greater", "kept none", "large"), node("NonZero", "large", "at"),
                         node("Transpose", "at", "rows"), node("GatherND", "x rows", "f"), node("Sqrt", "f", "y")],
}  # fmt: skip
DATA: dict[str, Any] = {
    "w": random(6, 5), "v": random(3, 5), "b": random(3), "wide": random(4, 6), "bias": random(6),
    "k": random(2, 1, 3, 3), "split": np.array([-1, 2, 3]), "images": np.array([0, 1, 2, 3]), "ends": np.array([2, 3]),
    "minus": np.array([-1]), "zero": np.array(0), "one": np.array([1]), "two": np.array([2]), "five": np.array([2**31]),
    "zeros": np.array([0]), "table": random(7, 6), "none": np.float32(0),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLLOWERS)
def test_what_computes_places_alone(name: str) -> None:
    """Whatever lies behind those that count, such as no numbers."""
    made = {output for each in FOLLOWERS[name] for output in each.output}
    read = {x for each in FOLLOWERS[name] for x in each.input} - made
    used = {key: x for key, x in DATA.items() if key in read}
    bounds = {"kept": 7, **{x: 42 if x == "at" and "large" in made else 7 for x in ("at", "again") if x in made}}
    if name == "again":
        bounds["y"] = 7
    net = within(rows(*FOLLOWERS[name], **used), bounds, *of_rows())
    assert dnn.Dim in map(type, dims_of(net, "y"))


BY_DIMS = {
    "how many": [node("Shape", "kept", "y")],
    "a known one": [node("Shape", "kept", "s"), node("Gather", "s one", "d"), node("Concat", "minus d", "to", axis=0),
                    node("Reshape", "kept to", "y")],
    "the last": [node("Shape", "kept", "d", start=1), node("ConstantOfShape", "d", "z"), node("Add", "kept z", "y")],
    "as many rows": [node("Shape", "kept", "s"), node("Gather", "s zero", "n"), node("Unsqueeze", "n zeros", "u"),
                     node("Concat", "u two three", "to", axis=0), node("Reshape", "kept to", "y")],
    "and the others": [node("Shape", "kept", "s"), node("Slice", "s zeros one", "n"),
                       node("Concat", "n minus two", "to", axis=0), node("Reshape", "kept to", "y")],
    "zeros": [node("Shape", "kept", "s"), node("ConstantOfShape", "s", "z"), node("Add", "kept z", "y")],
    "zeros alone": [node("Shape", "kept", "s"), node("ConstantOfShape", "s", "y")],
    "numbers": [node("Shape", "kept", "s"), node("Gather", "s zero", "n"), node("Range", "zero n step", "y")],
    "numbers of rows": [node("Shape", "kept", "s"), node("Gather", "s zero", "n"), node("Range", "zero n step", "i"),
                        node("Gather", "kept i", "c", axis=1)],
    "one row often": [node("Shape", "kept", "s"), node("Expand", "bias s", "e"), node("Mul", "kept e", "y")],
    "itself": [node("Shape", "kept", "s"), node("Expand", "kept s", "y")],
    "shares": [node("Shape", "kept", "s"), node("Gather", "s zero", "n"), node("Cast", "n", "f", to=F32),
               node("Div", "kept f", "y")],
}  # fmt: skip


@pytest.mark.parametrize("name", BY_DIMS)
def test_dims_of_what_counts(name: str) -> None:
    """As exporters write them: Shape, a Gather of one dim, a Concat of some."""
    read = {x for each in BY_DIMS[name] for x in each.input}
    known = {**DATA, "three": np.array([3]), "step": np.array(1)}
    data_of = {key: x for key, x in known.items() if key in read}
    made = BY_DIMS[name][-1].output[0]
    kind = S64 if name in ("how many", "numbers") else F32
    data = rows(*BY_DIMS[name], outputs=[(made, kind, None)], **data_of)
    if name == "numbers of rows":
        with pytest.raises(Unimplemented, match="Gather 'c' mixes places"):
            dnn.load_onnx(data, engine=engine(), bounds={"kept": 7})
        return
    empty, *feeds = of_rows()
    net = within(data, {"kept": 7}, *feeds)
    assert 0 in net.run(empty)[made].shape or name == "how many"
    if name == "how many":
        with pytest.raises(InvalidArguments, match="places of 'kept' are 7, and bounds has 6"):
            dnn.load_onnx(data, engine=engine(), bounds={"kept": 6}).run({"x": random(7, 6), "keep": np.ones(7, bool)})
    else:
        assert dnn.Dim in map(type, dims_of(net, made))


def test_numbers_of_what_counts_in_later_parts() -> None:
    """Which are a constant, of which only some count."""
    nodes = [
        node("Shape", "kept", "s"), node("Gather", "s zero", "n"), node("Range", "zero n step", "i"),
        node("Concat", "i i", "twice", axis=0), node("Cast", "twice", "f", to=F32), node("MatMul", "f column", "y"),
        node("Unsqueeze", "f one", "column"),
    ]  # fmt: skip
    nodes[-2:] = nodes[:-3:-1]
    data = rows(*nodes, zero=np.array(0), one=np.array([1]), step=np.array(1))
    _, *feeds = of_rows()
    within(data, {"kept": 7}, *feeds, *feeds, is_native=False, fallback="numpy")


COLLECTING = {
    "sum": [node("ReduceSum", "kept zeros", "y", keepdims=0)],
    "squares": [node("Transpose", "kept", "t"), node("ReduceL2", "t", "y", axes=[-1])],
    "means": [node("ReduceMean", "kept", "m", axes=[0]), node("ReduceMean", "kept", "a", keepdims=0),
              node("Add", "m a", "y")],
    "extremes": [node("ReduceMax", "kept", "m", axes=[0]), node("ReduceMin", "kept", "a", axes=[0, 1]),
                 node("Sub", "m a", "y")],
    "how many": [node("Cast", "keep", "ones", to=S64), node("Compress", "ones keep", "some", axis=0),
                 node("ReduceSum", "some zeros", "n"), node("Cast", "n", "f", to=F32), node("Mul", "f kept", "y")],
    "shares": [node("Softmax", "kept", "y", axis=0)],
    "pairs": [node("Transpose", "kept", "t"), node("MatMul", "t kept", "y")],
    "a mixture": [node("MatMul", "kept bias", "s"), node("Softmax", "s", "p", axis=0), node("MatMul", "p kept", "y")],
    "from the end": [node("CumSum", "kept zero", "y", reverse=1, exclusive=1)],
}  # fmt: skip


@pytest.mark.parametrize("name", COLLECTING)
def test_what_collects_places_takes_those_that_count(name: str) -> None:
    read = {x for each in COLLECTING[name] for x in each.input}
    data = rows(*COLLECTING[name], **{key: x for key, x in DATA.items() if key in read})
    _, *feeds = of_rows()
    bounded = [x for x in ("kept", "some") if x in read]
    net = within(data, dict.fromkeys(bounded, 7), *feeds)
    with pytest.raises(InvalidArguments, match=r"places of '\w+' are 7, and bounds has 6"):
        dnn.load_onnx(data, engine=engine(), bounds=dict.fromkeys(bounded, 6)).run(feeds[-1])
    empty = net.run({**feeds[0], "keep": np.zeros(7, bool)})["y"]
    if name in ("sum", "squares", "pairs", "a mixture"):
        assert not empty.any()
    if name == "means":
        assert np.isnan(empty).all()


MIXING = {
    "products": [node("ReduceProd", "kept", "y", axes=[0])],
    "of all": [node("ReduceLogSumExp", "kept", "y")],
    "largest": [node("TopK", "kept one", "y i", axis=0)],
    "one row": [node("Concat", "kept x", "c", axis=0), node("Gather", "c zeros", "y")],
    "flat": [node("Reshape", "kept minus", "r"), node("Exp", "r", "y")],
    "end": [node("Slice", "kept minus far", "y")],
    "pairs": [node("Transpose", "kept", "t"), node("MatMul", "kept t", "s"), node("Flatten", "s", "y", axis=0)],
    "size": [node("Size", "kept", "s"), node("Cast", "s", "y", to=F32)],
}


@pytest.mark.parametrize("name", MIXING)
def test_what_mixes_places_is_refused_or_comes_later(name: str) -> None:
    read = {x for each in MIXING[name] for x in each.input}
    used = {key: x for key, x in {**DATA, "far": np.array([2**31])}.items() if key in read}
    data = rows(*MIXING[name], **used)
    with pytest.raises(Unimplemented, match=r"mixes places of 'kept' that count .*: leave 'kept' out of bounds, or"):
        dnn.load_onnx(data, engine=engine(), bounds={"kept": 7})
    _, *feeds = of_rows()
    net = within(data, {"kept": 7}, *feeds, is_native=False, fallback="numpy")
    assert "Compress" not in "".join(str(nodes[0]) for nodes, _ in net.planned().later)
    assert dims_of(net, "y") is None


def test_a_count_beyond_the_bound() -> None:
    """Nothing is lost, whatever is asked of the network."""
    data = rows(node("Exp", "kept", "y"), outputs=[("y", F32, None), ("kept", F32, None)])
    net = dnn.load_onnx(data, engine=engine(), bounds={"kept": 3})
    x = random(7, 6)
    for total in (2, 5, 3, 7, 0):
        keep = np.arange(7) < total
        if total <= 3:
            np.testing.assert_array_equal(net.run({"x": x, "keep": keep})["kept"], x[keep])
            continue
        for _ in range(2):
            with pytest.raises(InvalidArguments, match=f"places of 'kept' are {total}, and bounds has 3: give it more"):
                net.run({"x": x, "keep": keep})


def test_indices_behind_the_count_fit() -> None:
    """10 - 0 is no index of ten rows."""
    nodes = [
        node("NonZero", "x", "at"), node("Squeeze", "at zero", "places"), node("Sub", "ten places", "back"),
        node("Gather", "table back", "y"),
    ]  # fmt: skip
    data = model_of(
        nodes, [("x", F32, [9])], [("y", F32, None)], zero=np.array([0]), ten=np.array(10), table=random(10, 2)
    )
    draw = np.random.default_rng(4)
    feeds = [{"x": np.array([0, *(draw.random(8) < share)], np.float32)} for share in SHARES]
    net = within(data, {"at": 9}, *feeds)
    with pytest.raises(InvalidArguments, match=r"back, counted for y\[0\] is 10, axis 0 of src has 10"):
        net.run({"x": np.ones(9, np.float32)})


def test_one_count_has_one_bound() -> None:
    nodes = [node("Compress", "x keep", "other", axis=1), node("Exp", "kept", "y")]
    data = model_of(
        [node("Compress", "x keep", "kept", axis=0), *nodes], [("x", F32, [7, 7]), ("keep", BOOL, [7])],
        [("y", F32, None), ("other", F32, None)],
    )  # fmt: skip
    with pytest.raises(InvalidArguments, match="bounds gives 3 to 'kept' and 5 to 'other', which have one count"):
        dnn.load_onnx(data, engine=engine(), bounds={"kept": 3, "other": 5})


def test_counts_of_two_choices_do_not_meet() -> None:
    nodes = [node("Compress", "x other", "again", axis=0), node("Add", "kept again", "y")]
    data = model_of(
        [node("Compress", "x keep", "kept", axis=0), *nodes],
        [("x", F32, [7, 6]), ("keep", BOOL, [7]), ("other", BOOL, [7])], [("y", F32, None)],
    )  # fmt: skip
    bounds = {"kept": 7, "again": 7}
    with pytest.raises(Unimplemented, match="Add 'y' mixes places"):
        dnn.load_onnx(data, engine=engine(), bounds=bounds)
    net = dnn.load_onnx(data, engine=engine(), bounds=bounds, fallback="numpy")
    x, one, two = random(7, 6), np.arange(7) < 3, np.arange(7) > 3
    np.testing.assert_array_equal(net.run({"x": x, "keep": one, "other": two})["y"], x[one] + x[two])
    with pytest.raises(InvalidArguments, match="cannot be computed"):
        net.run({"x": x, "keep": one, "other": ~one})


def test_open_dims() -> None:
    """A bound is one for all of them, and what is smaller has all places."""
    nodes = [node("NonZero", "x", "at"), node("Transpose", "at", "rows", perm=[1, 0]), node("GatherND", "x rows", "y")]
    data = model_of(nodes, [("x", F32, ["n", 5])], [("at", S64, None), ("y", F32, None)])
    net = dnn.load_onnx(data, engine=engine(2), bounds={"at": 20})
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for n in (1, 3, 4, 5, 8, 3):
        for feeds in sparse(n, 5):
            wanted = session.run(None, feeds)
            if len(wanted[1]) > 20:
                with pytest.raises(InvalidArguments, match="and bounds has 20"):
                    net.run(feeds)
                continue
            for found, one in zip(net.run(feeds).values(), wanted, strict=True):
                np.testing.assert_array_equal(found, one)


def test_later_parts_get_what_counts() -> None:
    """A choice within a bound, and one without that comes after it."""
    nodes = [
        node("MatMul", "kept w", "p"), node("Greater", "p none", "large"), node("NonZero", "large", "at"),
        node("Transpose", "at", "places"), node("GatherND", "p places", "y"),
    ]  # fmt: skip
    data = rows(*nodes, outputs=[("y", F32, None), ("p", F32, None)], w=DATA["w"], none=DATA["none"])
    _, *feeds = of_rows()
    net = within(data, {"kept": 7}, *feeds, is_native=False, fallback="numpy")
    assert "later  NonZero 'at'" in net.explain() and "later  MatMul" not in net.explain()


def saved_and_pickled(net: Network, tmp_path: Path) -> Iterator[Network]:
    net.save(tmp_path / "n.pack")
    found = dnn.load_pack(tmp_path / "n.pack", threads=2)
    assert isinstance(found, Network)
    yield found
    yield pickle.loads(pickle.dumps(net))


def test_packs_and_pickles(tmp_path: Path) -> None:
    data = rows(*FOLLOWERS["products"], w=DATA["w"], v=DATA["v"], b=DATA["b"])
    net = dnn.load_onnx(data, engine=engine(2), bounds={"kept": 4})
    for other in saved_and_pickled(net, tmp_path):
        assert other.outputs == net.outputs and dims_of(net, "y") == (dnn.Dim("kept", 0, 4), 3)
        for feeds in of_rows(5):
            if feeds["keep"].sum() <= 4:
                np.testing.assert_array_equal(other.run(feeds)["y"], net.run(feeds)["y"])
            else:
                with pytest.raises(InvalidArguments, match="places of 'kept' are"):
                    other.run(feeds)


def test_verify_compares_what_counts() -> None:
    _, *feeds = of_rows()
    data = rows(*FOLLOWERS["products"], w=DATA["w"], v=DATA["v"], b=DATA["b"])
    net = dnn.load_onnx(data, engine=engine(2), bounds={"kept": 7})
    for each in feeds:
        report = net.verify({**each, "x": random(7, 6)})
        assert all(one.fits for one in report) and [one.label for one in report.outputs] == ["y"]
        assert report.outputs[0].from_f64 < 1e-5 and "MatMul" in net.profile(each, 2)


@pytest.mark.parametrize(
    "bounds, words",
    [
        (7, "bounds must map names of values to numbers, such as {'at': 64}, not 7"),
        ({"kept": 0}, r"bounds\['kept'\] must be a number of places from 1 on, not 0"),
        ({"kept": "many"}, r"bounds\['kept'\] must be a number of places from 1 on, not 'many'"),
        ({"kept": True}, "must be a number of places from 1 on, not True"),
        ({3: 4, "kept": 4}, r"bounds\[3\] must be a number of places"),
        ({"kep": 4}, "bounds has 'kep', which no NonZero, Compress, Unique, NonMaxSuppression makes: .*kept"),
        ({"y": 4}, "bounds has 'y', which no NonZero, Compress, Unique, NonMaxSuppression makes"),
    ],
)
def test_wrong_bounds(bounds: Any, words: str) -> None:
    with pytest.raises(InvalidArguments, match=words):
        dnn.load_onnx(rows(node("Exp", "kept", "y")), bounds=bounds)


def test_no_bounds_change_nothing() -> None:
    data = rows(node("Exp", "kept", "y"))
    with pytest.raises(Unimplemented, match="dims that depend on the data of 'keep'"):
        dnn.load_onnx(data, bounds={})


def test_slices_have_no_bound() -> None:
    data = model_of([node("Unique", "x", "y", axis=1)], [("x", F32, [3, 4])], [("y", F32, None)])
    with pytest.raises(Unimplemented, match="Unique 'y' compares slices, and a bound is for elements: leave it out"):
        dnn.load_onnx(data, bounds={"y": 4})


def test_what_is_known_needs_no_bound() -> None:
    """Places of constants are as many as there are."""
    data = rows(node("Exp", "kept", "y"))
    net = dnn.load_onnx(data, engine=engine(), constants={"keep": np.arange(7) < 3}, bounds={"kept": 2})
    assert dims_of(net, "y") == (3, 6)


def test_what_needs_all_dims_says_so(tmp_path: Path) -> None:
    net = dnn.load_onnx(rows(node("Exp", "kept", "y")), engine=engine(), bounds={"kept": 7})
    x, keep, y = random(7, 6), np.ones(7, bool), np.zeros((7, 6), np.float32)
    with pytest.raises(InvalidArguments, match="output y has as many places as 'kept' has in a call: use run"):
        net.bind(x=x, keep=keep, y=y)
    with pytest.raises(InvalidArguments, match="output y has as many places as 'kept' has in a call"):
        dnn.export_c(net, tmp_path)


directory = pytest.fixture(own_directory)


def test_the_key_of_the_cache_has_bounds(directory: Path) -> None:
    data = rows(*FOLLOWERS["products"], w=DATA["w"], v=DATA["v"], b=DATA["b"])
    feeds = [each for each in of_rows(5) if each["keep"].sum() <= 4]
    for most, is_found in ((4, False), (4, True), (5, False), (5, True), (4, True)):
        net = dnn.load_onnx(data, engine=engine(2), bounds={"kept": most})
        assert is_kept(net) == is_found and dims_of(net, "y") == (dnn.Dim("kept", 0, most), 3)
        assert [len(net.run(each)["y"]) for each in feeds] == [each["keep"].sum() for each in feeds]
        with pytest.raises(InvalidArguments, match=f"places of 'kept' are 7, and bounds has {most}"):
            net.run({"x": random(7, 6), "keep": np.ones(7, bool)})
    with pytest.raises(Unimplemented):
        dnn.load_onnx(data, engine=engine(2))


@pytest.mark.parametrize("name", ["flat", "pairs"])
def test_what_comes_later_is_kept(directory: Path, name: str) -> None:
    """With what it reads of places that count."""
    used = {key: x for key, x in DATA.items() if key in {x for each in MIXING[name] for x in each.input}}
    data = rows(*MIXING[name], **used)
    _, *feeds = of_rows()
    for is_found in (False, True):
        net = within(data, {"kept": 7}, *feeds, *feeds, is_native=False, fallback="numpy")
        assert is_kept(net) == is_found


def test_open_dims_are_kept(directory: Path) -> None:
    data = model_of([node("NonZero", "x", "at")], [("x", F32, ["n", 5])], [("at", S64, None)])
    for is_found in (False, True):
        net = dnn.load_onnx(data, engine=engine(2), bounds={"at": 40})
        for _ in range(2):
            for n in (3, 8, 5):
                for feeds in sparse(n, 5):
                    np.testing.assert_array_equal(net.run(feeds)["at"], np.nonzero(feeds["x"]))
        assert is_kept(net) == is_found


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.onnx"
    path.write_bytes(rows(node("Exp", "kept", "y")))
    assert main(["run", "--bounds=kept:7", "--threads=1", "--verify", str(path)]) == 0
    assert "y float32 0x6" in capsys.readouterr().out
    assert main(["run", "--bounds=kept:some", str(path)]) == 2
    assert "--bounds=kept:some is no number" in capsys.readouterr().err
    assert main(["run", "--bounds=kep:7", str(path)]) == 2
    assert "did you mean kept?" in capsys.readouterr().err
