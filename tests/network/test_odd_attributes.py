"""Attributes and operands that are seldom, in models of one node, as onnxruntime computes them; all natively."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine, random

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
pytestmark = pytest.mark.isa("avx2")
Operands = list[Any]  # arrays that are data; a pair ("constant", array) is part of the model, None left out


def const(*numbers: Any, dtype: Any = np.int64) -> tuple[str, Any]:
    return "constant", np.array(numbers, dtype)


def one_node(op: str, operands: Operands, opset: int, results: int = 1, **attributes: Any) -> tuple[bytes, Any]:
    """The model, and what it is fed."""
    from onnx import helper, numpy_helper

    names, constants, feeds = list[str](), [], dict[str, Any]()
    for i, x in enumerate(operands):
        names.append("" if x is None else f"x{i}")
        if isinstance(x, tuple):
            constants.append(numpy_helper.from_array(x[1], names[-1]))
        elif x is not None:
            feeds[names[-1]] = np.asarray(x)
    kinds = {name: helper.np_dtype_to_tensor_dtype(x.dtype) for name, x in feeds.items()}
    inputs = [helper.make_tensor_value_info(name, kinds[name], x.shape) for name, x in feeds.items()]
    outputs = [onnx.ValueInfoProto(name=f"y{i}") for i in range(results)]
    node = helper.make_node(op, names, [one.name for one in outputs], **attributes)
    graph = helper.make_graph([node], "one", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return bytes(onnx.shape_inference.infer_shapes(model).SerializeToString()), feeds


def check(op: str, operands: Operands, opset: int, results: int = 1, **attributes: Any) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
    data, feeds = one_node(op, operands, opset, results, **attributes)
    net = dnn.load_onnx(data, engine=engine(2))
    assert isinstance(net, dnn.Network)
    assert net.refused == {}
    net.check()
    found, wanted = net.run(feeds), onnxruntime.InferenceSession(data).run(None, feeds)
    for i, exact in enumerate(wanted):
        assert found[f"y{i}"].dtype == exact.dtype
        np.testing.assert_allclose(found[f"y{i}"], exact, rtol=1e-5, atol=1e-5, strict=True)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", ["pytorch_half_pixel", "half_pixel_symmetric"])
def test_half_pixels_by_other_names(mode: str, coordinates: str) -> None:
    how = {"mode": mode, "coordinate_transformation_mode": coordinates}
    x = random(1, 3, 4, 6)
    check("Resize", [x, None, None, const(1, 3, 8, 9)], 19, **how)
    check("Resize", [x, None, const(1, 1, 2.5, 0.5, dtype=np.float32)], 19, **how)
    if coordinates == "pytorch_half_pixel":
        check("Resize", [x[:, :, :1], None, None, const(1, 3, 1, 3)], 19, **how)


@pytest.mark.parametrize("opset", [7, 9, 10, 12])
def test_masks_of_dropout_have_the_type_of_their_time(opset: int) -> None:
    data, feeds = one_node("Dropout", [random(3, 4)], opset, 2)
    found = dnn.load_onnx(data, engine=engine()).run(feeds)
    assert found["y1"].dtype == (np.bool_ if opset >= 10 else np.float32)
    assert np.array_equal(found["y0"], feeds["x0"])
    assert found["y1"].all()


def test_dims_that_scales_make_are_those_of_f32() -> None:
    """10 * 0.7 is 7 in f32, and 6.9999999 for the f64 of that factor."""
    x, scales = random(1, 2, 10, 10), const(1, 1, 0.7, 2.1, dtype=np.float32)
    check("Resize", [x, None, scales], 13, mode="linear")
    check("Resize", [x, scales], 10, mode="linear")
    check("Upsample", [x, const(1, 1, 2.1, 2.3, dtype=np.float32)], 9, mode="linear")


@pytest.mark.parametrize("exponent", [2, 3, -1, 0, 5])
def test_powers_of_integers(exponent: int) -> None:
    x = random(3, 4) + np.float32(2)
    check("Pow", [x, const(exponent)], 15)
    check("Pow", [x, ("constant", np.array(exponent, np.int32))], 15)


def test_powers_of_integers_beyond_f32() -> None:
    """An odd one would become even, and the sign of its power wrong: numpy computes it in f64."""
    x = np.float32([-1, 1, 0.5, -2])
    check("Pow", [x, const(1 << 24)], 15)
    for exponent in ((1 << 24) + 1, -(1 << 24) - 1):
        data, feeds = one_node("Pow", [x, const(exponent)], 15)
        with pytest.raises(dnn.Unimplemented, match="Pow"):
            dnn.load_onnx(data, engine=engine())
        net = dnn.load_onnx(data, engine=engine(), fallback="numpy")
        assert isinstance(net, dnn.Network)
        wanted = [-1, 1, 0, -np.inf] if exponent > 0 else [-1, 1, np.inf, 0]
        assert np.array_equal(net.run(feeds)["y0"], np.float32(wanted))


@pytest.mark.parametrize(("scale", "code"), [(np.float32, 10), (np.float16, 1), (np.float32, 1)])
def test_dequantized_to_a_type_that_is_not_the_scales(scale: Any, code: int) -> None:
    octets, factor = np.array([5, -6, 127], np.int8), np.array(0.25, scale)
    check("DequantizeLinear", [octets, ("constant", factor)], 23, output_dtype=code)
    check("DequantizeLinear", [octets, ("constant", factor), const(3, dtype=np.int8)], 23, output_dtype=code)
    if scale == np.float32:  # that is data
        check("DequantizeLinear", [("constant", octets), factor], 23, output_dtype=code)


def test_dequantized_to_integers() -> None:
    data, _ = one_node("DequantizeLinear", [np.zeros(3, np.int8), const(0.5, dtype=np.float32)], 23, output_dtype=6)
    with pytest.raises(dnn.InvalidArguments, match="output_dtype is int32, it must be one of float32"):
        dnn.load_onnx(data, engine=engine())


@pytest.mark.parametrize(("attributes", "dims"), [({"k": 1}, (3, 4)), ({"k": -2, "dtype": 7}, (4, 3)), ({}, (1, 5))])
def test_ones_on_a_diagonal(attributes: dict[str, Any], dims: tuple[int, int]) -> None:
    check("EyeLike", [random(*dims)], 9, **attributes)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_nothing_is_left(dtype: Any) -> None:
    x = (10 * random(3, 5)).astype(dtype)
    check("Slice", [x, const(3), const(3), const(0), const(1)], 13)
    check("Slice", [x, const(9), const(20), const(1), const(2)], 13)
    check("Tile", [x, const(2, 0)], 13)
    check("TopK", [x, const(0)], 11, results=2)
    if dtype == np.float32:
        check("Hardmax", [x[:0]], 13, axis=1)
        none = const(dtype=np.float32)  # a scale for each of no rows
        check("QuantizeLinear", [x[:0], none, const(dtype=np.uint8)], 13, axis=0)
        check("DequantizeLinear", [x[:0].astype(np.int8), none], 13, axis=0)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(("dims", "axis"), [((40,), 0), ((3, 40), 1), ((40, 5), 0), ((2, 40, 3), 1)])
def test_nan_is_larger_than_every_number(dims: tuple[int, ...], axis: int, largest: int) -> None:
    x = random(*dims)
    x.flat[[3, 17, -2]] = np.nan, -np.nan, np.inf
    for k in (1, 4, 40):
        check("TopK", [x, const(k)], 13, results=2, axis=axis, largest=largest)
        data, feeds = one_node("TopK", [("constant", x), const(k)], 13, 2, axis=axis, largest=largest)
        native = dnn.load_onnx(one_node("TopK", [x, const(k)], 13, 2, axis=axis, largest=largest)[0], engine=engine())
        folded = dnn.load_onnx(data, engine=engine())
        assert np.array_equal(folded.run(feeds)["y1"], native.run({"x0": x})["y1"])


NUMBERS = np.float32([0, -0.0, 1.7, -1.7, 127, -128, 200.5, 255, 256, -129.9, 300, 32767, 65535, -40000, 1e6])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_casts_to_few_bits(dtype: Any) -> None:
    """Of f32, integers and truths; what the type has not is around, as the low bits are."""
    code = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    words = NUMBERS.astype(np.int64).astype(dtype)
    for x in (NUMBERS, NUMBERS.astype(np.int64), NUMBERS.astype(np.int32)):
        data, feeds = one_node("Cast", [x], 13, to=code)
        net = dnn.load_onnx(data, engine=engine(2))
        assert isinstance(net, dnn.Network)
        assert net.refused == {}
        assert np.array_equal(net.run(feeds)["y0"], words)
        assert net.run(feeds)["y0"].dtype == dtype
    check("Cast", [NUMBERS > 0], 13, to=code)


def test_refusals_say_why() -> None:
    for op, dtype, reason in (
        ("Mul", np.int64, "x0 is int64, whose numbers may be beyond 2.24 here"),
        ("Add", np.float64, "x0 is float64, only f32 is computed with"),
    ):
        data, _ = one_node(op, [random(3).astype(dtype)] * 2, 13)
        with pytest.raises(dnn.Unimplemented, match=reason):
            dnn.load_onnx(data, engine=engine())


@pytest.mark.parametrize("how", [{}, {"transB": 1}, {"transA": 1, "alpha": 0.5}])
def test_a_shift_by_nothing_is_not_read(how: dict[str, Any]) -> None:
    """beta = 0, as in BLAS: c may hold NaN."""
    a, b, c = random(4, 4), random(4, 4), np.float32([np.nan, np.inf, 1, 2])
    for constants in ((b, c), (("constant", b), ("constant", c)), (("constant", b), c)):
        check("Gemm", [a, *constants], 13, beta=0.0, **how)


def test_backward_to_the_end_before_there_was_a_word_for_it() -> None:
    """INT_MAX meant so in operator set 10; since 11 it is the last element, and nothing is left."""
    x = random(3, 4)
    for end in (2**63 - 1, 2**31 - 1):
        given = [x, const(3), const(end), const(1), const(-1)]
        check("Slice", given, 10)
        data, feeds = one_node("Slice", given, 11)
        net = dnn.load_onnx(data, engine=engine())
        assert net.run(feeds)["y0"].shape == (3, 0)
    check("Slice", [x, const(3), const(-(2**31)), const(1), const(-1)], 11)
