"""Values that are counted along two axes, within bounds: as onnxruntime."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import Unimplemented
from tests.network.nets import engine, random

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
onnxruntime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
from tests.network.test_bounds_of_files import BOOL, within  # noqa: E402 (it needs onnx)
from tests.network.test_staged import F32, model_of, node  # noqa: E402 (they need onnx)

pytestmark = pytest.mark.isa("avx2")
ROWS, OTHERS = 7, 5
KNOWN: dict[str, Any] = {
    "first": np.array([0]), "second": np.array([1]), "third": np.array([2]), "half": np.float32(0.5),
    "low": np.float32(-1e9), "bias": random(1, ROWS),
}  # fmt: skip
BOUNDS = {"rows": ROWS}


def chosen(*counts: int) -> Iterator[dict[str, Any]]:
    """What is not chosen is no number, so that it shows wherever it gets to."""
    draw = np.random.default_rng(4)
    for count in counts:
        keep = draw.permutation(ROWS) < count
        x, z = random(ROWS, 8), random(OTHERS, 8)
        x[~keep] = np.nan
        yield {"x": x, "keep": keep, "z": z, "use": draw.permutation(OTHERS) < 3}


def graph(*after: Any, outputs: str = "y", opset: int = 18) -> bytes:
    """What is made of rows that a condition chooses, and of others that another one chooses."""
    nodes = [
        node("Compress", "x keep", "rows", axis=0), node("Transpose", "rows", "columns", perm=[1, 0]),
        node("Compress", "z use", "others", axis=0), *after,
    ]  # fmt: skip
    used = {name for one in nodes for name in one.input}
    nodes = [one for one in nodes if one.output[0] in used or one.output[0] in outputs.split()]
    used = {name for one in nodes for name in one.input}
    inputs = [("x", F32, [ROWS, 8]), ("keep", BOOL, [ROWS]), ("z", F32, [OTHERS, 8]), ("use", BOOL, [OTHERS])]
    data = {name: array for name, array in KNOWN.items() if name in used}
    declared = [one for one in inputs if one[0] in used]
    return model_of(nodes, declared, [(name, F32, None) for name in outputs.split()], opset, **data)


def fed(data: bytes, *counts: int) -> list[dict[str, Any]]:
    names = [one.name for one in onnx.load_from_string(data).graph.input]
    return [{name: feed[name] for name in names} for feed in chosen(*counts)]


SCORES = [node("MatMul", "rows columns", "s"), node("Mul", "s half", "scaled")]
DISTANCES = [
    node("Unsqueeze", "rows second", "p"), node("Unsqueeze", "rows first", "q"), node("Sub", "p q", "d"),
    node("ReduceSumSquare", "d third", "far", keepdims=0),
]  # fmt: skip
CASES = {
    "attention": [*SCORES, node("Softmax", "scaled", "shares", axis=-1), node("MatMul", "shares rows", "y")],
    "attention and its rows": [
        *SCORES, node("Softmax", "scaled", "shares", axis=-1), node("MatMul", "shares rows", "o"),
        node("Add", "o rows", "r"), node("ReduceMax", "r first", "y", keepdims=0),
    ],
    "attention by columns": [
        *SCORES, node("Softmax", "scaled", "shares", axis=0), node("Transpose", "shares", "turned", perm=[1, 0]),
        node("MatMul", "turned rows", "y"),
    ],
    "farthest": [*DISTANCES, node("ReduceMax", "far second", "y", keepdims=0)],
    "nearest of all": [*DISTANCES, node("ReduceMin", "far first", "m", keepdims=0), node("ReduceSum", "m first", "y")],
    "sum of all": [*DISTANCES, node("Sqrt", "far", "root"), node("ReduceSum", "root", "y", keepdims=0)],
    "means of what is not counted": [
        *DISTANCES[:3], node("ReduceMean", "d third", "mean", keepdims=1), node("Squeeze", "mean third", "m"),
        node("Softmax", "m", "shares", axis=-1), node("MatMul", "shares rows", "y"),
    ],
    "a mask of pairs": [
        *SCORES, *DISTANCES, node("Less", "far half", "is_near"), node("Where", "is_near low scaled", "masked"),
        node("LogSoftmax", "masked", "shares", axis=1), node("Exp", "shares", "e"), node("MatMul", "e rows", "y"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_pairs_of_places(name: str) -> None:
    data = graph(*CASES[name])
    within(data, BOUNDS, *fed(data, 1, 2, 5, ROWS))


@pytest.mark.parametrize("threads", [1, 2])
def test_places_of_two_choices(threads: int) -> None:
    """Rows attend to rows that another condition chooses."""
    after = [
        node("Transpose", "others", "keys", perm=[1, 0]), node("MatMul", "rows keys", "s"),
        node("Softmax", "s", "shares", axis=-1), node("MatMul", "shares others", "y"),
    ]  # fmt: skip
    data = graph(*after)
    net = within(data, {"rows": ROWS, "others": OTHERS}, *fed(data, 1, 3, ROWS), threads=threads)
    assert net.outputs["y"][0] == (dnn.Dim("rows", 0, ROWS), 8)


@pytest.mark.parametrize("last", [node("Relu", "s", "y"), node("Softmax", "s", "y"), node("Transpose", "s", "y")])
def test_outputs_with_two_counted_axes(last: Any, tmp_path: Path) -> None:
    """Also out of a file."""
    data = graph(node("Transpose", "others", "keys", perm=[1, 0]), node("MatMul", "rows keys", "s"), last)
    bounds = {"rows": ROWS, "others": OTHERS}
    feeds = fed(data, 1, 4, ROWS)
    net = within(data, bounds, *feeds)
    dims = dnn.Dim("rows", 0, ROWS), dnn.Dim("others", 0, OTHERS)
    assert net.outputs["y"][0] == (dims if last.op_type != "Transpose" else dims[::-1])
    net.save(tmp_path / "y.pack")
    saved = dnn.load_pack(tmp_path / "y.pack")
    assert saved.outputs == net.outputs
    for feed in feeds:
        assert np.array_equal(saved.run(feed)["y"], net.run(feed)["y"])


MIXED = {
    "one value twice": node("MatMul", "scaled scaled", "y"),
    "a mean": node("ReduceMean", "scaled first", "y"),
    "its elements in a row": node("Flatten", "scaled", "y", axis=0),
}


@pytest.mark.parametrize("name", MIXED)
def test_what_mixes_places(name: str) -> None:
    data = graph(*SCORES, MIXED[name])
    with pytest.raises(Unimplemented, match="'y' mixes places of 'rows' that count with others"):
        dnn.load_onnx(data, engine=engine(), bounds=BOUNDS)
    within(data, BOUNDS, *fed(data, 1, 4, ROWS), is_native=False, fallback="numpy")
