"""Files of integers as onnxruntime writes them, against onnxruntime; and files that contradict themselves."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import AsmdnnError
from tests.network.nets import engine
from tests.network.random_quantized import SEVEN_BITS, FileNodes

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
onnxruntime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
MICROSOFT = "com.microsoft"
UNEQUAL = 0.02  # share of results that are a step away from onnxruntime's


class File(FileNodes):
    """With constants of integers."""

    def __init__(self) -> None:
        super().__init__()
        self.random = np.random.default_rng(5)

    def scale(self, number: float) -> str:
        return self.constant(np.float32(number))

    def zero(self, number: int, dtype: type = np.uint8) -> str:
        return self.constant(np.array(number, dtype))

    def bytes(self, *dims: int) -> str:
        """Weights; see SEVEN_BITS."""
        return self.constant(self.random.integers(*SEVEN_BITS, dims).astype(np.int8))

    def model(self, y: str, dims: tuple[int, ...] = (1, 3, 10, 10), y_type: int = onnx.TensorProto.UINT8) -> bytes:
        values = onnx.helper.make_tensor_value_info
        x = values("x", onnx.TensorProto.FLOAT, dims)
        graph = onnx.helper.make_graph(self.nodes, "file", [x], [values(y, y_type, None)], self.constants)
        opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(MICROSOFT, 1)]
        return bytes(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def operators() -> tuple[File, str]:
    """Most operators on integers, one after another."""
    f = File()
    sx, zx, s1, z1, s2, z2 = f.scale(0.0213), f.zero(121), f.scale(0.0417), f.zero(3), f.scale(0.0331), f.zero(17)
    x = f.node("QuantizeLinear", "x", sx, zx)
    channels = f.constant((f.random.random(8) * 0.004 + 0.001).astype(np.float32))
    bias = f.constant(f.random.integers(-900, 900, 8).astype(np.int32))
    stem = f.node(
        "QLinearConv", x, sx, zx, f.bytes(8, 3, 3, 3), channels, f.constant(np.zeros(8, np.int8)),
        s1, z1, bias, pads=[1, 1, 1, 1], kernel_shape=[3, 3],
    )  # fmt: skip
    gate = f.node("QLinearSigmoid", stem, s1, z1, f.scale(1 / 256), f.zero(0), domain=MICROSOFT)
    swish = f.node("QLinearMul", stem, s1, z1, gate, f.scale(1 / 256), f.zero(0), s2, z2, domain=MICROSOFT)
    leaky = f.node("QLinearLeakyRelu", swish, s2, z2, s1, z1, domain=MICROSOFT, alpha=0.1)
    added = f.node("QLinearAdd", leaky, s1, z1, stem, s1, z1, s2, z2, domain=MICROSOFT)
    both = f.node("QLinearConcat", s2, z2, added, s2, z2, leaky, s1, z1, domain=MICROSOFT, axis=1)
    small = f.node("QLinearAveragePool", both, s2, z2, s1, z1, domain=MICROSOFT, kernel_shape=[3, 3], strides=[2, 2])
    row = f.node("Flatten", f.node("QLinearGlobalAveragePool", small, s1, z1, s2, z2, domain=MICROSOFT))
    hidden = f.node(
        "QGemm", row, s2, z2, f.bytes(24, 16), f.scale(0.004), f.zero(0, np.int8),
        f.constant(f.random.integers(-900, 900, 24).astype(np.int32)), s1, f.zero(90), domain=MICROSOFT, transB=1,
    )  # fmt: skip
    return f, f.node(
        "QLinearMatMul", hidden, s1, f.zero(90), f.bytes(24, 12), f.scale(0.003), f.zero(0, np.int8), s2, f.zero(130)
    )


def compared(model: bytes, dims: tuple[int, ...], isa: str = "avx2") -> dnn.Network:
    feeds = {"x": np.random.default_rng(3).standard_normal(dims).astype(np.float32)}
    (wanted,) = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)
    net = dnn.load_onnx(model, engine=engine(isa=isa))
    net.check()
    (found,) = net.run(feeds).values()
    assert found.dtype == wanted.dtype
    off = np.abs(found.astype(np.int64) - wanted.astype(np.int64))
    assert off.max() <= 1
    assert (off > 0).mean() <= UNEQUAL
    return net


@pytest.mark.isa("avx2")
def test_operators_on_integers_are_those_of_onnxruntime() -> None:
    f, y = operators()
    compared(f.model(y), (1, 3, 10, 10))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", ["QDQ", "QOperator"])
@pytest.mark.parametrize("activations", ["QUInt8", "QInt8"])
def test_files_of_onnxruntimes_quantizer(kind: str, activations: str, tmp_path: Path) -> None:
    """Natively throughout; the result is floats of integers, so in steps."""
    quantization = pytest.importorskip("onnxruntime.quantization")
    f = File()
    normal = lambda *dims: f.constant((f.random.standard_normal(dims) * 0.2).astype(np.float32))  # noqa: E731
    stem = f.node("Relu", f.node("Conv", "x", normal(8, 3, 3, 3), normal(8), kernel_shape=[3, 3], pads=[1] * 4))
    deep = f.node("Conv", stem, normal(8, 1, 3, 3), normal(8), kernel_shape=[3, 3], pads=[1] * 4, group=8)
    block = f.node("Conv", f.node("Relu", deep), normal(8, 8, 1, 1), normal(8), kernel_shape=[1, 1])
    both = f.node("MaxPool", f.node("Relu", f.node("Add", stem, block)), kernel_shape=[2, 2], strides=[2, 2])
    rows = f.node("Flatten", f.node("GlobalAveragePool", both))
    y = f.node("Gemm", rows, normal(8, 10), normal(10))
    plain, made = tmp_path / "f32.onnx", tmp_path / "int8.onnx"
    plain.write_bytes(f.model(y, y_type=onnx.TensorProto.FLOAT))
    draws = iter([{"x": f.random.standard_normal((1, 3, 10, 10)).astype(np.float32)} for _ in range(4)])

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
        def get_next(self) -> Any:
            return next(draws, None)

    quantization.quantize_static(
        plain, made, Reader(), getattr(quantization.QuantFormat, kind), per_channel=True, reduce_range=True,
        activation_type=getattr(quantization.QuantType, activations), weight_type=quantization.QuantType.QInt8,
    )  # fmt: skip
    feeds = {"x": f.random.standard_normal((1, 3, 10, 10)).astype(np.float32)}
    (wanted,) = onnxruntime.InferenceSession(str(made), providers=["CPUExecutionProvider"]).run(None, feeds)
    net = dnn.load_onnx(made, engine=engine())
    step = np.diff(np.unique(wanted)).min()
    off = np.abs(net.run(feeds)[y] - wanted) / step
    assert off.max() < 1.01
    assert (off > 0.01).sum() <= 1
    assert "Conv" in net.explain()
    assert [str(one) for one in net.verify(feeds) if not one.fits] == []


@pytest.mark.isa("avx2")
def test_images_with_channels_last() -> None:
    """As onnxruntime's optimiser writes them, with no move in between."""
    f = File()
    sx, zx, s1, z1, s2, z2 = f.scale(0.0213), f.zero(121), f.scale(0.0417), f.zero(77), f.scale(0.0331), f.zero(130)
    bias = f.constant(f.random.integers(-900, 900, 8).astype(np.int32))
    channels = f.constant((f.random.random(8) * 0.004 + 0.001).astype(np.float32))
    how: dict[str, Any] = {"channels_last": 1, "domain": MICROSOFT}
    y = f.node(
        "QLinearConv", f.node("QuantizeLinear", "x", sx, zx), sx, zx, f.bytes(8, 12, 3, 3), channels,
        f.constant(np.zeros(8, np.int8)), s1, z1, bias, pads=[1, 0, 2, 1], strides=[1, 2], **how,
    )  # fmt: skip
    y = f.node(
        "QLinearConv", y, s1, z1, f.bytes(8, 1, 3, 3), f.scale(0.003), f.zero(0, np.int8), s2, z2, group=8, **how
    )
    y = f.node("QLinearAveragePool", y, s2, z2, s1, z1, kernel_shape=[2, 2], **how)
    y = f.node("QLinearGlobalAveragePool", y, s1, z1, s2, z2, **how)
    net = compared(f.model(y, (2, 10, 13, 12)), (2, 10, 13, 12))
    assert net.inputs["x"][0] == (2, 10, 13, 12) and net.outputs[y][0] == (2, 1, 1, 8)
    assert "Transpose" not in net.explain() and "0 of them reorders" in net.explain()


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("op", ["NhwcConv", "NhwcFusedConv", "FusedConv"])
def test_fused_convolutions_between_integers(op: str) -> None:
    """Products of bytes, as those of Conv, which they are compared with."""

    dims = (1, 32, 9, 8)
    last = op.startswith("Nhwc")

    def made(op: str, dims: tuple[int, ...], domain: str) -> tuple[bytes, str]:
        f = File()
        s, z = f.scale(0.02), f.zero(121)
        x = f.node("DequantizeLinear", f.node("QuantizeLinear", "x", s, z), s, z)
        w = f.node("DequantizeLinear", f.bytes(16, 32, 3, 3), f.scale(0.003))
        y = f.node(op, x, w, domain=domain)
        return f.model(y, dims, onnx.TensorProto.FLOAT), y

    data, y = made(op, (1, 9, 8, 32) if last else dims, MICROSOFT)
    plain, _ = made("Conv", dims, "")
    x = np.random.default_rng(4).standard_normal(dims).astype(np.float32)
    net = dnn.load_onnx(data, engine=dnn.Engine(isa="avx512_core_vnni", threads=1))
    assert any(str(step.pd.plan.tensors.get("weights", "")).startswith("s8") for step in net.segments[0].steps)  # type: ignore[union-attr]
    found = dnn.load_onnx(data, engine=engine()).run({"x": x.transpose(0, 2, 3, 1) if last else x})[y]
    wanted = answer_of(plain, {"x": x})
    np.testing.assert_allclose(
        found.transpose(0, 3, 1, 2) if last else found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max()
    )


@pytest.mark.parametrize(
    ("dims", "domain", "words"),
    [
        ((2,), MICROSOFT, r"QLinearConv t1.*perm \(0, 0\) is no order of 1 axes"),
        ((2, 10, 9, 12), "", r"QLinearConv t1.*has the attribute channels_last, which is that of domain com.microsoft"),
    ],
)
def test_channels_last_where_that_cannot_be(dims: tuple[int, ...], domain: str, words: str) -> None:
    f = File()
    s, z = f.scale(0.02), f.zero(121)
    x = f.node("QuantizeLinear", "x", s, z)
    w = f.bytes(8, 12, 3, 3), f.scale(0.1), f.zero(0, np.int8)
    y = f.node("QLinearConv", x, s, z, *w, s, z, channels_last=1, domain=domain)
    with pytest.raises(AsmdnnError, match=words):
        dnn.load_onnx(f.model(y, dims), engine=engine())


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("op", "scale", "result_scale"), [("Sigmoid", 3e38, 0.05), ("LeakyRelu", 0.02, 1e-42)])
def test_scales_whose_quotients_f32_does_not_hold(op: str, scale: float, result_scale: float) -> None:
    """No kernel multiplies by infinity; the definition has no such number."""
    f = File()
    x = f.node("QuantizeLinear", "x", f.scale(0.02), f.zero(3))
    y = f.node(f"QLinear{op}", x, f.scale(scale), f.zero(9), f.scale(result_scale), f.zero(7), domain=MICROSOFT)
    data, feeds = f.model(y), {"x": f.random.standard_normal((1, 3, 10, 10)).astype(np.float32)}
    with pytest.raises(AsmdnnError, match=f"{op}.*its scales make the number"):
        dnn.load_onnx(data, engine=engine())
    with np.errstate(over="ignore"):
        found = dnn.load_onnx(data, engine=engine(), fallback="numpy").run(feeds)[y]
    np.testing.assert_array_equal(found, answer_of(data, feeds))


@pytest.mark.parametrize(("op", "domain", "count"), [("QLinearConv", "", 3), ("QLinearAdd", MICROSOFT, 4)])
def test_operators_on_integers_without_their_inputs(op: str, domain: str, count: int) -> None:
    f = File()
    y = f.node(op, *["x"] * count, domain=domain)
    with pytest.raises(AsmdnnError, match=f"{op} t0.*has {count} inputs"):
        dnn.load_onnx(f.model(y), engine=engine())


def answer_of(data: bytes, feeds: dict[str, Any]) -> Any:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, feeds)[0]


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("by_column", [False, True])
def test_attention_of_integers(unidirectional: int, by_column: bool) -> None:
    """QAttention's product is of integers; the rest is that of Attention."""
    f = File()
    sx, zx = f.scale(0.03), f.zero(120)
    scales = f.random.uniform(0.001, 0.003, 96).astype(np.float32) if by_column else np.float32(0.002)
    points = np.zeros(96, np.int8) if by_column else np.int8(0)
    y = f.node(
        "QAttention", f.node("QuantizeLinear", "x", sx, zx), f.bytes(32, 96), f.constant(random_bias(f, 96)), sx,
        f.constant(scales), "", zx, f.constant(points), domain=MICROSOFT, num_heads=4, unidirectional=unidirectional,
    )  # fmt: skip
    data = f.model(y, (2, 7, 32), onnx.TensorProto.FLOAT)
    net = dnn.load_onnx(data, engine=engine())
    x = f.random.standard_normal((2, 7, 32)).astype(np.float32)
    wanted = answer_of(data, {"x": x})
    assert net.refused == {}
    assert any(str(step.pd.plan.tensors.get("weights", "")).startswith("s8") for step in net.segments[0].steps)  # type: ignore[union-attr]
    np.testing.assert_allclose(net(x), wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def random_bias(f: File, size: int) -> Any:
    return (f.random.standard_normal(size) * 0.1).astype(np.float32)


def test_means_and_choices_of_integers() -> None:
    """QLinearReduceMean and QLinearWhere, which onnxruntime has no kernel for everywhere: the definitions."""
    f = File()
    s1, z1, s2, z2 = f.scale(0.05), f.zero(100), f.scale(0.03), f.zero(90)
    x = f.node("QuantizeLinear", "x", s1, z1)
    small = f.node("QLinearReduceMean", x, s1, z1, s2, z2, domain=MICROSOFT, axes=[2, 3], keepdims=1)
    chosen = f.constant(np.arange(3).reshape(1, 3, 1, 1) != 1)
    y = f.node("QLinearWhere", chosen, small, s2, z2, x, s1, z1, s2, z2, domain=MICROSOFT)
    net = dnn.load_onnx(f.model(y), engine=engine())
    assert net.refused == {}
    data = f.random.standard_normal((1, 3, 10, 10)).astype(np.float32)
    bytes_of_x = np.clip(np.rint(data / np.float32(0.05)) + 100, 0, 255)
    mean = np.clip(np.rint((bytes_of_x - 100).mean(axis=(2, 3), keepdims=True) * 0.05 / 0.03) + 90, 0, 255)
    other = np.clip(np.rint((bytes_of_x - 100) * 0.05 / 0.03) + 90, 0, 255)
    wanted = np.where(np.arange(3).reshape(1, 3, 1, 1) != 1, mean, other)
    assert np.abs(net(data).astype(int) - wanted).max() <= 1


def test_embeddings_of_integers() -> None:
    """QEmbedLayerNormalization: rows of bytes, and scale and shift of the norm."""
    f, values = File(), onnx.helper.make_tensor_value_info
    tables = [f.random.integers(0, 256, dims).astype(np.uint8) for dims in ((50, 16), (9, 16), (16,), (16,))]
    words, places, gain, shift = map(f.constant, tables)
    scales = [f.scale(number) for number in (0.02, 0.03, 0.01, 0.005)]
    zeros = [f.zero(number) for number in (128, 120, 3, 125)]
    y = f.node(
        "QEmbedLayerNormalization", "ids", "", words, places, "", gain, shift, "", *scales[:2], "", *scales[2:],
        *zeros[:2], "", *zeros[2:], domain=MICROSOFT, epsilon=1e-6,
    )  # fmt: skip
    f.nodes[-1].output.append("mask")
    given = [values("ids", onnx.TensorProto.INT32, (2, 9))]
    graph = onnx.helper.make_graph(f.nodes, "file", given, [values(y, onnx.TensorProto.FLOAT, None)], f.constants)
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(MICROSOFT, 1)]
    data = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    ids = f.random.integers(0, 50, (2, 9)).astype(np.int32)
    net = dnn.load_onnx(data, engine=engine())
    floats = [
        scale * (table.astype(np.float64) - zero)
        for table, scale, zero in zip(tables, (0.02, 0.03, 0.01, 0.005), (128, 120, 3, 125), strict=True)
    ]
    x = floats[0][ids] + floats[1]
    centred = x - x.mean(-1, keepdims=True)
    wanted = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6) * floats[2] + floats[3]
    assert net.refused == {}
    np.testing.assert_allclose(net(ids), wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())
