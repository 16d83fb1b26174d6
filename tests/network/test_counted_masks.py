"""Softmax of scores that data choose, with masks that are cut to as many, within bounds: as onnxruntime."""

from collections.abc import Iterator
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
COLUMNS = 7
MASK = np.where(random(4, 9) > 0, 0, -1e9).astype(np.float32)
NUMBERS = {"zero": np.array([0]), "one": np.array([1]), "three": np.array([3]), "all": np.array([2**62])}
COUNT = [node("Shape", "some", "dims"), node("Gather", "dims one", "count")]


def some_columns() -> Iterator[dict[str, Any]]:
    draw = np.random.default_rng(2)
    for count in (1, 2, 4, COLUMNS):
        yield {"x": random(4, COLUMNS), "keep": draw.permutation(COLUMNS) < count}


def scores(*after: Any, opset: int = 18, **known: Any) -> bytes:
    """What is made of columns that a condition chooses."""
    nodes = [node("Compress", "x keep", "some", axis=1), *after]
    used = {name for one in nodes for name in one.input}
    data = {name: array for name, array in {**NUMBERS, **known}.items() if name in used}
    inputs = [("x", F32, [4, COLUMNS]), ("keep", BOOL, [COLUMNS])]
    return model_of(nodes, inputs, [("y", F32, None)], opset, **data)


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_a_mask_that_is_cut_to_as_many(opset: int) -> None:
    after = [*COUNT, node("Slice", "mask zero count one", "cut"), node("Add", "some cut", "z")]
    data = scores(*after, node("Softmax", "z", "y", axis=1), opset=opset, mask=MASK)
    net = within(data, {"some": COLUMNS}, *some_columns())
    assert net.outputs["y"][0] == (4, dnn.Dim("some", 0, COLUMNS))


def test_a_mask_that_is_cut_to_as_many_and_to_some_rows() -> None:
    """Of 6 rows those behind the first, of the columns as many as there are."""
    after = [
        *COUNT, node("Concat", "three count", "ends", axis=0), node("Concat", "one zero", "starts", axis=0),
        node("Slice", "mask starts ends", "cut"), node("ReduceMin", "cut", "least", axes=[0], keepdims=1),
        node("Add", "some least", "z"), node("Softmax", "z", "y", axis=1),
    ]  # fmt: skip
    within(scores(*after, opset=13, mask=MASK), {"some": COLUMNS}, *some_columns())


def test_a_mask_of_truths_by_numbers_of_places() -> None:
    known = {"first": np.array(0), "step": np.array(1), "limit": np.array(3), "low": np.float32(-1e9)}
    after = [
        *COUNT, node("Squeeze", "count", "n"), node("Range", "first n step", "at"), node("Less", "at limit", "is_near"),
        node("Where", "is_near some low", "z"), node("Softmax", "z", "y", axis=-1),
    ]  # fmt: skip
    within(scores(*after, **known), {"some": COLUMNS}, *some_columns())


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_versions_that_take_all_axes_from_one_on(op: str, axis: int) -> None:
    within(scores(node(op, "some", "y", axis=axis), opset=11), {"some": COLUMNS}, *some_columns())


CUTS = {
    "from elsewhere": node("Slice", "mask one count one", "cut"),
    "backwards": node("Slice", "mask zero count one minus", "cut"),
    "of what is narrower": node("Slice", "few zero count one", "cut"),
}


@pytest.mark.parametrize("name", CUTS)
def test_other_cuts_are_left_to_data(name: str) -> None:
    data = scores(
        *COUNT, CUTS[name], node("Add", "some cut", "z"), node("Softmax", "z", "y"), mask=MASK, few=MASK[:, :4],
        minus=np.array([-1]),
    )  # fmt: skip
    with pytest.raises(Unimplemented, match=r"depend on the data|mixes places of 'some'"):
        dnn.load_onnx(data, engine=engine(), bounds={"some": COLUMNS})
