"""Scales, zero points, axes and blocks that contradict themselves: refused in a sentence that names the node."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import AsmdnnError
from tests.network.nets import engine
from tests.network.random_quantized import MICROSOFT
from tests.network.test_quantized_files import File, onnx

X4 = np.zeros(4, np.uint8)
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "scale of 0": ({"scale": np.float32(0)}, "scale c1 has an element that is 0: every one divides"),
    "scale of NaN": ({"scale": np.float32(np.nan)}, "scale c1 is not finite, and 0 times it no number"),
    "infinite scale": ({"scale": np.float32(np.inf)}, "scale c1 is not finite.*: quantise the model without it"),
    "scale of integers": ({"scale": np.int32(1)}, "scale c1 is int32, it must be a float"),
    "scale of f64": ({"scale": np.float64(1)}, "scale c1 is float64, it must be a float: one of float32"),
    "a scale with two axes": ({"scale": np.ones((1, 1), np.float32)}, r"scale c1 has dims \(1, 1\), one number"),
    "scales of a wrong rank": ({"scale": np.ones((3, 1), np.float32)}, "scale c1 has dims"),
    "scales of a wrong length": ({"scale": np.ones(4, np.float32), "zero": np.zeros(4, np.uint8)}, "scale c1 has dims"),
    "zero points of a wrong length": ({"scale": np.ones(3, np.float32), "zero": X4}, "zero point c2 has dims"),
    "a zero point with two axes": ({"zero": np.zeros((1, 1), np.uint8)}, r"zero point c2 has dims \(1, 1\)"),
    "another type of zero point": ({"zero": np.int8(0)}, "zero point c2 is int8, its integers are uint8"),
    "an axis out of range": ({"scale": np.ones(3, np.float32), "zero": np.zeros(3, np.uint8), "axis": 9}, "axis 9"),
    "floats as integers": ({"x": np.ones((1, 3), np.float32)}, "operand is float32, it must be integers"),
}


@pytest.mark.parametrize("name", WRONG)
def test_pairs_that_contradict_themselves_name_their_node(name: str) -> None:
    changed, words = WRONG[name]
    given = {"x": np.ones((1, 3), np.uint8), "scale": np.float32(1), "zero": np.uint8(0), "axis": 1} | changed
    f = File()
    inputs = (f.constant(given[key]) for key in ("x", "scale", "zero"))
    f.node("DequantizeLinear", *inputs, axis=given["axis"])
    y = f.node("Add", "x", "t0")
    with pytest.raises(AsmdnnError, match=words) as caught:
        dnn.load_onnx(f.model(y, (1, 3), onnx.TensorProto.FLOAT), engine=engine())
    assert "DequantizeLinear t0" in str(caught.value)


@pytest.mark.parametrize("size", [-1, -(2**31)])
def test_blocks_of_no_size(size: int) -> None:
    f = File()
    scales = f.constant(np.ones((1, 3), np.float32)), f.constant(np.zeros((1, 3), np.uint8))
    f.node("QuantizeLinear", "x", *scales, axis=1, block_size=size)
    with pytest.raises(AsmdnnError, match=f"QuantizeLinear t0.*block_size is {size}, it must be above 0"):
        dnn.load_onnx(f.model("t0", (1, 3)), engine=engine())


SCALES = {"0": np.float32(0), "NaN": np.float32(np.nan), "two axes": np.ones((1, 1), np.float32), "f64": np.float64(1)}


@pytest.mark.parametrize("kind", SCALES)
@pytest.mark.parametrize("place", [1, 4, 6])
def test_wrong_scales_of_operators_on_integers(kind: str, place: int) -> None:
    """One sentence with the node of the file and the scale, and no inner node."""
    f = File()
    s, z = f.scale(0.1), f.zero(3)
    inputs = [f.node("QuantizeLinear", "x", s, z), s, z, f.bytes(10, 4), s, f.zero(0, np.int8), s, z]
    inputs[place] = f.constant(SCALES[kind])
    y = f.node("QLinearMatMul", *inputs)
    with pytest.raises(AsmdnnError, match=r"^QLinearMatMul 'QLinearMatMul t1' ") as caught:
        dnn.load_onnx(f.model(y), engine=engine())
    assert "Linear '" not in str(caught.value) and "scale" in str(caught.value)


@pytest.mark.parametrize("kind", ["0", "NaN", "f64"])
@pytest.mark.parametrize(
    ("op", "place"), [("MatMulIntegerToFloat", 2), ("MatMulIntegerToFloat", 3), ("DynamicQuantizeMatMul", 2)]
)
def test_wrong_scales_of_products(op: str, place: int, kind: str) -> None:
    f = File()
    s = f.scale(0.1)
    x = "x" if op.startswith("Dynamic") else f.node("QuantizeLinear", "x", s, f.zero(3))
    inputs = [x, f.bytes(10, 4), s] + [s] * (place > 2 or x != "x")
    inputs[place] = f.constant(SCALES[kind])
    y = f.node(op, *inputs, domain=MICROSOFT)
    with pytest.raises(AsmdnnError, match=f"{op} t.*its scale c.* "):
        dnn.load_onnx(f.model(y, y_type=onnx.TensorProto.FLOAT), engine=engine())
