"""Files whose weights have zero points, as older exporters write them: exact sums of integers, as onnxruntime's."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine, random, reference
from tests.network.random_quantized import MICROSOFT
from tests.network.test_quantized_files import File, answer_of, compared, onnx
from tests.support.drawing import RANDOM

FLOATS = onnx.TensorProto.FLOAT
MIDDLE = {np.uint8: 128, np.int8: 0}


def weights(f: File, dtype: type, *dims: int) -> np.ndarray:
    """Of 7 bits around the middle, as onnxruntime adds pairs of 16 bits on a CPU without VNNI."""
    return (f.random.integers(-64, 64, dims) + MIDDLE[dtype]).astype(dtype)


def zeros(f: File, dtype: type, count: int, far: int) -> np.ndarray:
    """One for all, or one for each channel; weights less them are no s8 if they are far."""
    found = f.random.integers(far - 20, far + 20, count or 1) + MIDDLE[dtype]
    return (found if count else found[0]).astype(dtype)


def scales(f: File, count: int) -> Any:
    return (f.random.random(count) * 0.004 + 0.001).astype(np.float32) if count else np.float32(0.003)


def of_bytes(net: dnn.Network) -> list[str]:
    """Implementations of products whose weights are s8, and the types of what they write."""
    found = []
    for step in net.segments[0].steps:  # type: ignore[union-attr]
        tensors = step.pd.plan.tensors
        if "weights" in tensors and str(tensors["weights"].dtype) == "s8":
            found.append(f"{step.label}: {tensors['dst'].dtype}")
    return found


CASES = [
    (np.uint8, 0, 100),
    (np.uint8, 16, 90),
    (np.int8, 16, 95),
    (np.int8, 16, -100),
    (np.uint8, 16, 0),
    (np.int8, 0, 7),
]


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("dtype", "count", "far"), CASES)
@pytest.mark.parametrize(("group", "kernel"), [(1, 1), (1, 3), (2, 3)])
def test_convolutions(dtype: type, count: int, far: int, group: int, kernel: int) -> None:
    """Of integers where that is expected to be faster: of one pixel, and of all with an instruction for bytes."""
    f = File()
    s, z = f.scale(0.02), f.zero(121)
    x = f.node("QuantizeLinear", "x", s, z)
    bias = f.constant(f.random.integers(-900, 900, 16).astype(np.int32))
    y = f.node(
        "QLinearConv", x, s, z, f.constant(weights(f, dtype, 16, 32 // group, kernel, kernel)),
        f.constant(scales(f, count)), f.constant(zeros(f, dtype, count, far)), f.scale(0.11), f.zero(77), bias,
        pads=[1, 0, 2, 1], strides=[2, 1],
        group=group,
    )  # fmt: skip
    data = f.model(y, (2, 32, 12, 11))
    net = compared(data, (2, 32, 12, 11))
    assert net.refused == {}
    assert all(one.fits for one in net.verify({"x": f.random.standard_normal((2, 32, 12, 11)).astype(np.float32)}))
    quick = dnn.load_onnx(data, engine=dnn.Engine(isa="avx512_core_vnni", threads=1))
    for one in (net, quick) if kernel == 1 else (quick,):  # what zero points add is one product more
        assert [made.rsplit(" ", 1)[1] for made in of_bytes(one)] == ["f32", "u8"] if abs(far) > 64 else ["u8"]


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("dtype", "count", "far"), CASES)
@pytest.mark.parametrize("op", ["QLinearMatMul", "QGemm"])
def test_matrices(dtype: type, count: int, far: int, op: str) -> None:
    f, rows = File(), (9, 40)
    s, z = f.scale(0.02), f.zero(121)
    x = f.node("QuantizeLinear", "x", s, z)
    matrix, points = weights(f, dtype, 40, 16), f.constant(zeros(f, dtype, count, far))
    factors = f.constant(scales(f, count))
    if op == "QGemm":
        bias = f.constant(f.random.integers(-900, 900, 16).astype(np.int32))
        given = (x, s, z, f.constant(matrix.T.copy()), factors, points, bias, f.scale(0.2), f.zero(70))
        y = f.node(op, *given, domain=MICROSOFT, transB=1, alpha=1.0)
    else:
        y = f.node(op, x, s, z, f.constant(matrix), factors, points, f.scale(0.2), f.zero(70))
    net = compared(f.model(y, rows), rows)
    assert net.refused == {}
    assert len(of_bytes(net)) == (2 if abs(far) > 64 else 1)
    assert of_bytes(net)[-1].endswith("u8")


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_sums_are_exact(dtype: type) -> None:
    """With scales that are powers of two a result is its sum, below 2^24: every bit."""
    f, dims = File(), (1, 96, 9, 8)
    x = f.node("DequantizeLinear", f.node("QuantizeLinear", "x", f.scale(0.25), f.zero(3)), f.scale(0.25), f.zero(3))
    whole = f.random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, (64, 96, 1, 1)).astype(dtype)
    points = zeros(f, dtype, 64, 80)
    w = f.node(
        "DequantizeLinear", f.constant(whole), f.constant(np.full(64, 0.5, np.float32)), f.constant(points), axis=0
    )
    y = f.node("Conv", x, w, f.constant(np.arange(64).astype(np.float32)))
    data = f.model(y, dims, FLOATS)
    net = dnn.load_onnx(data, engine=engine())
    given = {"x": (f.random.integers(-3, 253, dims) * 0.25).astype(np.float32)}
    exact = answer_of(data, given)  # floats, whose sums are exact here, too
    assert len(of_bytes(net)) == 2
    assert np.array_equal(net.run(given)[y], exact)


def test_scales_along_another_axis_and_depthwise_layers_compute_in_f32() -> None:
    f, dims = File(), (1, 16, 9, 8)
    x = f.node("DequantizeLinear", f.node("QuantizeLinear", "x", f.scale(0.25), f.zero(3)), f.scale(0.25), f.zero(3))
    points = f.constant(zeros(f, np.uint8, 16, 100))
    w = f.node(
        "DequantizeLinear", f.constant(weights(f, np.uint8, 16, 1, 3, 3)), f.constant(scales(f, 16)), points, axis=0
    )
    y = f.node("Conv", x, w, pads=[1] * 4, group=16)
    data = f.model(y, dims, FLOATS)
    net, given = dnn.load_onnx(data, engine=engine()), {"x": f.random.standard_normal(dims).astype(np.float32)}
    assert of_bytes(net) == [] and net.refused == {}
    wanted = answer_of(data, given)
    np.testing.assert_allclose(net.run(given)[y], wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("bias", [0, 123456])
@pytest.mark.parametrize("kernel", [(3, 3), ()])
@pytest.mark.parametrize("scale", [1e-40, 3e-39])
def test_biases_of_scales_that_are_too_small_for_f32(scale: float, kernel: tuple[int, ...], bias: int) -> None:
    """Of a channel whose weights are next to nothing: the product of its scales is 0, or a subnormal number."""
    g = dnn.Graph("dead channel")
    step, middle = np.float32(1e-6), np.array(7, np.uint8)
    x = g.input("x", (2, 16, *[6] * len(kernel)))
    q = g.apply("DequantizeLinear", g.apply("QuantizeLinear", x, step, middle), step, middle)
    weights = RANDOM.integers(-127, 128, (4, 16, *kernel)).astype(np.int8)
    scales = np.array([1e-2, scale, 2e-2, 1e-2], np.float32)
    w = g.apply("DequantizeLinear", weights, scales, np.zeros(4, np.int8), axis=0)
    numbers, both = np.array([10, bias, -77, 3], np.int32), scales * step
    b = g.apply("DequantizeLinear", numbers, both, np.zeros(4, np.int32), axis=0)
    y = g.apply("Conv", q, w, b, pads=[1] * 4) if kernel else g.apply("Gemm", q, w, b, transB=1)
    net = g.compile(y=g.apply("Relu", y), engine=engine())
    feeds = {"x": 100 * step * random(*net.inputs["x"][0])}
    found, wanted = net.run(feeds)["y"], reference(net, feeds)["y"]
    # Sums of integers are exact; their scale, the bias and what zero points take off are rounded.
    np.testing.assert_allclose(found, wanted, rtol=0, atol=8 * 2.0**-24 * np.abs(wanted).max())
    with pytest.raises(dnn.InvalidArguments, match="has an element that is 0"):
        g.compile(y=g.apply("QuantizeLinear", x, np.float32(0), middle), engine=engine())
