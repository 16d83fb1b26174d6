"""Lists of values in models: beside onnxruntime and onnx's own models, native, and what is said of wrong ones."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments, Unimplemented
from tests.network.nets import engine, random
from tests.network.test_staged import F32, S64, Declared, compare, model_of, node

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
pytestmark = pytest.mark.isa("avx2")
X: Declared = ("x", F32, [6, 4])
Y: Declared = ("y", F32, None)
NUMBERS = {name: np.array(value, np.int64) for name, value in {"zero": 0, "one": 1, "last": -1, "four": 4}.items()}
CASES: dict[str, list[Any]] = {
    "joined": [node("SequenceConstruct", "x e x", "s"), node("ConcatFromSequence", "s", "y", axis=1)],
    "stacked": [node("SequenceConstruct", "x e", "s"), node("ConcatFromSequence", "s", "y", axis=-1, new_axis=1)],
    "parts": [node("SplitToSequence", "x four", "s"), node("SequenceAt", "s last", "y")],
    "rows": [node("SplitToSequence", "x", "s", keepdims=0), node("SequenceAt", "s one", "y")],
    "columns": [node("SplitToSequence", "x sizes", "s", axis=1), node("SequenceAt", "s zero", "y")],
    "inserted": [node("SequenceEmpty", "", "none"), node("SequenceInsert", "none x", "s"),
                 node("SequenceInsert", "s e last", "t"), node("SequenceErase", "t one", "u"),
                 node("SequenceAt", "u zero", "y")],
    "counted": [node("SequenceConstruct", "x e x", "s"), node("SequenceErase", "s", "t"),
                node("Identity", "t", "u"), node("SequenceLength", "u", "n"), node("Cast", "n", "f", to=F32),
                node("Mul", "e f", "y")],
}  # fmt: skip


def data_of(nodes: list[Any], *inputs: Declared, **more: Any) -> bytes:
    read = {name for each in nodes for name in each.input}
    data = {"sizes": np.array([1, 3]), **NUMBERS, **more}
    return model_of(nodes, [X, *inputs], [Y], **{name: x for name, x in data.items() if name in read})


@pytest.mark.parametrize("case", CASES)
def test_elements_are_values(case: str) -> None:
    """Nothing of the lists is left: all is native, and what only takes an element is no node at all."""
    nodes = [node("Exp", "x", "e"), *CASES[case]]
    data = data_of(nodes)
    assert dnn.load_onnx(data, engine=engine(2)).is_native
    compare(data, {"x": random(6, 4)})


def test_lists_that_loops_make() -> None:
    infos = [onnx.helper.make_tensor_value_info(*one) for one in (("i", S64, []), ("goes", 9, []))]
    element = onnx.helper.make_tensor_type_proto(F32, None)
    infos.append(onnx.helper.make_value_info("list", onnx.helper.make_sequence_type_proto(element)))
    body = onnx.helper.make_graph(
        [node("Gather", "x i", "row"), node("Sigmoid", "row", "h"), node("SequenceInsert", "list h", "longer"),
         node("Identity", "goes", "on")],
        "round", infos,
        [onnx.helper.make_tensor_value_info("on", 9, []),
         onnx.helper.make_value_info("longer", onnx.helper.make_sequence_type_proto(element))],
    )  # fmt: skip
    nodes = [node("SequenceEmpty", "", "none"), node("Loop", "four yes none", "s", body=body),
             node("ConcatFromSequence", "s", "y", axis=0, new_axis=1)]  # fmt: skip
    data = data_of(nodes, yes=np.array(True))
    assert dnn.load_onnx(data, engine=engine()).is_native
    compare(data, {"x": random(6, 4)})


def test_a_body_for_each_element() -> None:
    """onnxruntime knows SequenceMap by its parts alone."""
    body = onnx.helper.make_graph(
        [node("Mul", "part other", "p"), node("ReduceSum", "p", "sum", keepdims=0)], "each",
        [onnx.helper.make_tensor_value_info(name, F32, None) for name in ("part", "other")],
        [onnx.helper.make_tensor_value_info(name, F32, None) for name in ("p", "sum")],
    )  # fmt: skip
    nodes = [node("SplitToSequence", "x", "s"), node("Exp", "w", "e"), node("SequenceMap", "s e", "t sums", body=body),
             node("ConcatFromSequence", "sums", "y", axis=0, new_axis=1)]  # fmt: skip
    x, w = random(6, 4), random(1, 4)
    found = dnn.load_onnx(data_of(nodes, w=w), engine=engine()).run({"x": x})["y"]
    np.testing.assert_allclose(found, (x * np.exp(w)).sum(1), rtol=1e-5, atol=1e-6)


def test_places_that_data_say() -> None:
    nodes = [node("Exp", "x", "e"), node("SequenceConstruct", "x e", "s"), node("SequenceAt", "s place", "y")]
    data = data_of(nodes, ("place", S64, []))
    with pytest.raises(Unimplemented, match="SequenceAt 'y' has dims that depend on the data of 'place': pass it in"):
        dnn.load_onnx(data, engine=engine())
    x = random(6, 4)
    for place, wanted in ((0, x), (1, np.exp(x)), (-1, np.exp(x))):
        net = dnn.load_onnx(data, constants={"place": place}, engine=engine())
        np.testing.assert_allclose(net(x), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([node("SequenceConstruct", "x x", "s"), node("Relu", "s", "y")], "Relu 'y' reads 's', which is a list"),
        ([node("SequenceAt", "x zero", "y")], "SequenceAt 'y' reads 'x', which is no list but a tensor"),
        ([node("SequenceConstruct", "x", "s"), node("SequenceAt", "s four", "y")], "place 4 of a list of 1 element"),
        ([node("SequenceEmpty", "", "s"), node("ConcatFromSequence", "s", "y", axis=0)], "which has no elements"),
        ([node("SplitToSequence", "x zero", "s"), node("SequenceAt", "s zero", "y")], "has parts of 0 elements"),
        ([node("SplitToSequence", "x sizes", "s"), node("SequenceAt", "s zero", "y")], "axis 0 has 6"),
        ([node("SequenceConstruct", "x x", "y")], "output y is a list, only tensors leave a network"),
        ([node("SequenceConstruct", "x x", "s"), node("ConcatFromSequence", "s", "y")], "lacks the attribute axis"),
    ],
)
def test_wrong_lists(nodes: list[Any], said: str) -> None:
    with pytest.raises((InvalidArguments, Unimplemented), match=said):
        dnn.load_onnx(data_of(nodes), engine=engine())
