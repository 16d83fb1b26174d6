"""ScatterElements of places that data choose, within bounds: as onnxruntime, for no place, one, some, and all."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments
from tests.network.nets import engine, random

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
onnxruntime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
from tests.network.test_bounds_of_files import BOOL, within  # noqa: E402 (it needs onnx)
from tests.network.test_staged import F32, S64, model_of, node  # noqa: E402 (they need onnx)

pytestmark = pytest.mark.isa("avx2")
REDUCTIONS = ("none", "add", "mul", "max", "min")
Feeds = dict[str, Any]


def elements_scattered(kind: int, reduction: str, axis: int, along: int, opset: int = 18) -> bytes:
    """Elements of x, by places and updates whose rows or columns a condition chooses."""
    how = {} if reduction == "none" else {"reduction": reduction}
    nodes = [
        node("Compress", "places keep", "at", axis=axis), node("Compress", "new keep", "rows", axis=axis),
        node("ScatterElements", "x at rows", "y", axis=along, **how),
    ]  # fmt: skip
    inputs = [("x", kind, [5, 6]), ("places", S64, [4, 5]), ("new", kind, [4, 5]), ("keep", BOOL, [(4, 5)[axis]])]
    return model_of(nodes, inputs, [("y", kind, [5, 6])], opset)


def some_elements(axis: int, along: int, *, dtype: Any = np.float32) -> Iterator[Feeds]:
    """Of x some are chosen twice; all places are good ones, also where none counts."""
    draw, size = np.random.default_rng(axis), (4, 5)[axis]
    for count in (0, 1, 2, size):
        keep = np.zeros(size, bool)
        keep[draw.permutation(size)[:count]] = True
        x, new = (draw.integers(-9, 9, dims).astype(dtype) for dims in ((5, 6), (4, 5)))
        room = (5, 6)[along]
        yield {"x": x, "places": draw.integers(-room, room, (4, 5)), "new": new, "keep": keep}


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("along", [0, 1, -1])
@pytest.mark.parametrize(
    "kind, dtype, reduction",
    [(F32, np.float32, each) for each in REDUCTIONS] + [(S64, np.int64, "add"), (S64, np.int64, "max")]
    + [(BOOL, bool, "none")],
)  # fmt: skip
def test_elements(kind: int, dtype: Any, reduction: str, along: int, axis: int) -> None:
    """Along the axis that places are of, and along another one, where those that do not count stay as they are."""
    data = elements_scattered(kind, reduction, axis, along)
    within(data, {"at": 5, "rows": 5}, *some_elements(axis, along, dtype=dtype))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_elements_of_what_counts_itself(reduction: str) -> None:
    """Rows of x that the same condition chooses, in each of which elements are put."""
    nodes = [
        node("Compress", "x keep", "some", axis=0), node("Compress", "places keep", "at", axis=0),
        node("Compress", "new keep", "rows", axis=0),
        node("ScatterElements", "some at rows", "y", axis=1, reduction=reduction),
    ]  # fmt: skip
    inputs = [("x", F32, [5, 6]), ("places", S64, [5, 4]), ("new", F32, [5, 4]), ("keep", BOOL, [5])]
    data, draw = model_of(nodes, inputs, [("y", F32, None)], 18), np.random.default_rng(5)
    feeds = [
        {
            "x": random(5, 6), "places": draw.integers(-6, 6, (5, 4)), "new": random(5, 4),
            "keep": draw.permutation(5) < count,
        }
        for count in (0, 1, 3, 5)
    ]  # fmt: skip
    net = within(data, dict.fromkeys(("some", "at", "rows"), 5), *feeds)
    assert net.outputs["y"][0] == (dnn.Dim("some", 0, 5), 6)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("axis, along", [(0, 0), (0, 1)])
def test_elements_that_are_not_chosen_change_nothing(axis: int, along: int, reduction: str) -> None:
    """Of what stands at place 0: zeros with a sign, infinity, what is no number."""
    data = elements_scattered(F32, reduction, axis, along)
    net = dnn.load_onnx(data, engine=engine(), bounds={"at": 4, "rows": 4})
    x = random(5, 6)
    x[0, :3] = x[:3, 0] = [-0.0, np.inf, np.nan]
    new, places = np.full((4, 5), np.nan, np.float32), np.full((4, 5), 99)
    found = net.run({"x": x, "places": places, "new": new, "keep": np.zeros(4, bool)})["y"]
    np.testing.assert_array_equal(found, x)
    assert (np.signbit(found) == np.signbit(x))[~np.isnan(x)].all()


def test_more_elements_than_there_is_room_for() -> None:
    """Along an axis where they stay, x has a place for each."""
    nodes = [
        node("Compress", "places keep", "at", axis=0), node("Compress", "new keep", "rows", axis=0),
        node("ScatterElements", "x at rows", "y", axis=1),
    ]  # fmt: skip
    inputs = [("x", F32, [3, 6]), ("places", S64, [7, 4]), ("new", F32, [7, 4]), ("keep", BOOL, [7])]
    data = model_of(nodes, inputs, [("y", F32, [3, 6])], 18)
    with pytest.raises(InvalidArguments, match=r"puts elements at 7 places along axis 0, .*a bound of 3$"):
        dnn.load_onnx(data, engine=engine(), bounds={"at": 7, "rows": 7})
    feeds = [
        {"x": random(3, 6), "places": np.arange(28).reshape(7, 4) % 6, "new": random(7, 4), "keep": np.arange(7) < n}
        for n in (0, 1, 3)
    ]
    within(data, {"at": 3, "rows": 3}, *feeds)
