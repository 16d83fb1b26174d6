"""What computes with bytes: they wrap around where kernels of floats would saturate, so those are refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import Unimplemented
from asmdnn.network.lowering.table import lowerings
from tests.network.nets import engine

pytestmark = pytest.mark.isa("avx2")
DIMS = (2, 4, 4, 4)
Reference = Callable[..., Any]
POOL = {"kernel_shape": (2, 2), "strides": (2, 2)}


def windows(x: Any) -> Any:
    return x.reshape(2, 4, 2, 2, 2, 2)


# Of the operators whose results are elements, or wrap around: what numpy makes of bytes.
NATIVE: dict[str, tuple[Reference, dict[str, Any]]] = {
    "Add": (np.add, {}),
    "Sub": (np.subtract, {}),
    "Mul": (np.multiply, {}),
    "Max": (np.maximum, {}),
    "Min": (np.minimum, {}),
    "Neg": (np.negative, {}),
    "Abs": (np.abs, {}),
    "Sign": (np.sign, {}),
    "BitwiseNot": (np.invert, {}),
    "Relu": (lambda x: np.maximum(x, 0), {}),
    "ReduceMax": (lambda x: x.max(keepdims=True), {}),
    "ReduceMin": (lambda x: x.min(keepdims=True), {}),
    "GlobalMaxPool": (lambda x: x.max((2, 3), keepdims=True), {}),
    "MaxPool": (lambda x: windows(x).max((3, 5)), POOL),
    "Greater": (np.greater, {}),
    "Equal": (np.equal, {}),
}
PAIRS = ("Add", "Sub", "Mul", "Max", "Min", "Greater", "Equal", "MatMul", "Gemm", "Conv")
SUMS: dict[str, tuple[Reference, dict[str, Any]]] = {
    "MatMul": (np.matmul, {}),
    "Gemm": (np.matmul, {}),
    "ReduceSum": (lambda x: np.sum(x, dtype=x.dtype, keepdims=True), {}),
    "ReduceProd": (lambda x: np.prod(x, dtype=x.dtype, keepdims=True), {}),
    "ReduceSumSquare": (lambda x: np.sum(x * x, dtype=x.dtype, keepdims=True), {}),
}
ROUNDED = {"AveragePool": POOL, "GlobalAveragePool": {}, "ReduceMean": {}, "ReduceL1": {}, "ReduceL2": {}, "Conv": {}}


def bytes_of(dtype: Any, *dims: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 256, dims, np.uint8).view(dtype)


def asked(op: str, dtype: Any, attributes: dict[str, Any], constant: bool = False, **words: Any) -> tuple[Any, Any]:
    """The operator's result of bytes, and its operands."""
    dims = (4, 4) if op == "Gemm" else DIMS
    operands = [bytes_of(dtype, *dims, seed=seed) for seed in range(1 + (op in PAIRS))]
    g = dnn.Graph()
    given = [g.input(name, dims, dtype) for name, _ in zip("ab", operands, strict=False)]
    if constant:
        given[1:] = operands[1:]
    net = g.compile(y=g.apply(op, *given, **attributes), engine=engine(), **words)
    return net.run(dict(zip(net.inputs, operands, strict=False)))["y"], operands


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("op", NATIVE)
def test_what_wraps_around(op: str, dtype: Any) -> None:
    reference, attributes = NATIVE[op]
    found, operands = asked(op, dtype, attributes)
    np.testing.assert_array_equal(found, reference(*operands))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("op", SUMS)
def test_sums_are_left_to_numpy(op: str, dtype: Any) -> None:
    reference, attributes = SUMS[op]
    with pytest.raises(Unimplemented, match=f"it computes {np.dtype(dtype)}, where kernels would saturate"):
        asked(op, dtype, attributes, constant=op == "Gemm")
    found, operands = asked(op, dtype, attributes, constant=op == "Gemm", fallback="numpy")
    np.testing.assert_array_equal(found, reference(*operands))


@pytest.mark.parametrize("op", ROUNDED)
def test_what_rounds_is_refused(op: str) -> None:
    with pytest.raises(Unimplemented, match="it computes uint8, where kernels would saturate"):
        asked(op, np.uint8, ROUNDED[op])


def test_every_operator_has_been_looked_at() -> None:
    """Those of ONNX that take bytes are of no floats, or compute elements."""
    of_elements = {"MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin", "ArgMax", "ArgMin", "TopK", "Cast", "Pad"}
    moved = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Split", "Gather", "Expand", "Concat"}
    refuse_themselves = {"Resize", "Upsample", "LSTM", "GRU", "RNN"}
    known = of_elements | moved | refuse_themselves
    others = {name for name, one in lowerings().items() if not one.of_floats and "." not in name} - known
    assert not others - {"DequantizeLinear", "QuantizeLinear", "DynamicQuantizeLinear", "DynamicQuantizeLSTM"}
