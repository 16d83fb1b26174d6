"""Files with weights of few bits: MatMulNBits and GatherBlockQuantized, natively, against onnxruntime and numpy."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import AsmdnnError
from tests.network.nets import engine
from tests.network.test_quantized_files import MICROSOFT, File

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
onnxruntime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
N, K = 40, 256
Changed = dict[str, Any]


class Product:
    """One node, K of 256 and N of 40 if nothing else is said, with the weights that it stands for."""

    def __init__(self, bits: int = 4, block: int = 32, points: str = "", k: int = K, **attributes: int) -> None:
        self.file = f = File()
        self.k, groups = k, -(-k // block)
        numbers = f.random.integers(0, 1 << bits, (N, groups, block))
        self.scales = f.random.uniform(-1, 1, (N, groups)).astype(np.float32)
        zeros = np.full((N, groups), 1 << bits - 1)
        inputs = ["x", f.constant(packed(numbers, bits)), f.constant(self.scales.ravel())]
        if points == "bytes":
            zeros = f.random.integers(0, 1 << bits, (N, groups))
            padded = np.zeros((N, -(-groups * bits // 8) * 8 // bits), int)
            padded[:, :groups] = zeros
            inputs.append(f.constant(packed(padded, bits).ravel()))
        elif points == "floats":
            zeros = f.random.uniform(0, 15, (N, groups)).astype(np.float32)
            inputs.append(f.constant(zeros))
        floats = (numbers - zeros[..., None]) * self.scales[..., None].astype(np.float64)
        self.weights = floats.reshape(N, -1)[:, :k].T
        self.y = f.node("MatMulNBits", *inputs, domain=MICROSOFT, K=k, N=N, bits=bits, block_size=block, **attributes)


def packed(numbers: Any, bits: int) -> Any:
    """Of the last axis, the low ones first."""
    parts = numbers.astype(np.uint8).reshape(*numbers.shape[:-1], -1, 8 // bits)
    return np.bitwise_or.reduce(parts << np.arange(0, 8, bits, dtype=np.uint8), -1).astype(np.uint8)


def kinds(net: dnn.Network) -> list[str]:
    return [type(step.pd.desc).__name__ for one in net.planned().segments for step in one.steps]  # type: ignore[union-attr]


@pytest.mark.parametrize("isa", [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in ("avx2", "avx512_core")])
@pytest.mark.parametrize("points", ["", "bytes", "floats"])
@pytest.mark.parametrize(("bits", "block"), [(4, 16), (4, 128), (8, 32), (8, 256), (2, 32)])
def test_products_of_f32(isa: str, bits: int, block: int, points: str) -> None:
    """Sums of k products within (k + 8) roundings of what is summed; of one row, and of all rows of batches."""
    one = Product(bits, block, points)
    for dims in ((1, K), (2, 3, K)):
        x = np.random.default_rng(1).standard_normal(dims).astype(np.float32)
        net = dnn.load_onnx(one.file.model(one.y, dims, FLOAT), engine=engine(isa=isa))
        net.check()
        assert kinds(net) == ["QuantizedMatMul"]
        assert [str(one) for one in net.verify({"x": x}) if not one.fits] == []
        (found,) = net.run({"x": x}).values()
        exact, size = x @ one.weights, np.abs(x) @ (np.abs(one.weights) + 512)
        assert (np.abs(found - exact) <= (K + 8) * 2.0**-24 * size).all()


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("points", ["", "bytes"])
def test_products_that_round_their_operand(points: str) -> None:
    """At accuracy level 4 each element of x is rounded to 1 / 254 of the largest of its block."""
    one = Product(4, 32, points, accuracy_level=4)
    x = np.random.default_rng(1).standard_normal((5, K)).astype(np.float32)
    net = dnn.load_onnx(one.file.model(one.y, x.shape, FLOAT), engine=engine())
    assert kinds(net) == ["QuantizedMatMul"]
    assert [str(one) for one in net.verify({"x": x}) if not one.fits] == []
    (found,) = net.run({"x": x}).values()
    steps = np.abs(x).reshape(5, -1, 32).max(-1).repeat(32, -1) / 254
    assert (np.abs(found - x @ one.weights) <= steps @ np.abs(one.weights) * 1.001 + 1e-3).all()
    assert not np.array_equal(found, x.astype(np.float64) @ one.weights)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("level", [0, 1, 4])
def test_against_onnxruntime(level: int) -> None:
    """With a bias and Relu after, which are post-ops."""
    one = Product(4, 32, "bytes", accuracy_level=level)
    node, f = one.file.nodes[0], one.file
    node.input.extend(["", f.constant(f.random.standard_normal(N).astype(np.float32))])
    y, x = f.node("Relu", one.y), np.random.default_rng(1).standard_normal((3, K)).astype(np.float32)
    model = f.model(y, x.shape, FLOAT)
    net = dnn.load_onnx(model, engine=engine())
    assert kinds(net) == ["QuantizedMatMul"]
    (found,) = net.run({"x": x}).values()
    (wanted,) = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    steps = np.abs(x).max() / 254 * np.abs(one.weights).sum(0).max()
    assert np.abs(found - wanted).max() <= (2 * steps if level == 4 else 1e-4)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("k", "block"), [(40, 32), (1024, 512)])
def test_blocks_that_no_kernel_has_become_f32(k: int, block: int) -> None:
    one, x = Product(4, block, "bytes", k), np.ones((3, k), np.float32)
    net = dnn.load_onnx(one.file.model(one.y, x.shape, FLOAT), engine=engine())
    assert kinds(net) == ["MatMul"]
    np.testing.assert_allclose(next(iter(net.run({"x": x}).values())), x @ one.weights, 1e-4, 1e-3)


def table(kind: str, dims: tuple[int, int]) -> tuple[Any, Any, float]:
    """(numbers, as a file has them, the zero point where there is none)."""
    random = np.random.default_rng(2)
    if kind == "packed":
        numbers = random.integers(0, 16, dims)
        return numbers, packed(numbers, 4), 8
    signed = kind == "int4"
    numbers = random.integers(-8 if signed else 0, 8 if signed else 16, dims)
    return numbers, numbers.astype(getattr(ml_dtypes, kind)), 0


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", ["int4", "uint4", "packed"])
@pytest.mark.parametrize(("axis", "has_points"), [(1, False), (1, True), (0, False)])
def test_gathered_blocks(kind: str, axis: int, has_points: bool) -> None:
    """Rows of a table, where blocks lie along rows, and where they do not; the numbers exactly."""
    if kind == "packed" and axis == 0:
        pytest.skip("of data in bytes the last axis alone has blocks")
    numbers, data, zero = table(kind, (64, 48))
    f, blocks = File(), (64, 3) if axis else (4, 48)
    scales = f.random.uniform(-1, 1, blocks).astype(np.float32)
    points = np.full(blocks, zero)
    inputs = [f.constant(data), f.constant(np.array([[3, 9], [63, -1]])), f.constant(scales)]
    if has_points:
        points = f.random.integers(0, 8, blocks)
        padded = np.concatenate((points, np.zeros_like(points[:, :1])), 1)
        inputs.append(f.constant(packed(padded, 4) if kind == "packed" else points.astype(data.dtype)))
    y = f.node("GatherBlockQuantized", *inputs, domain=MICROSOFT, block_size=16, quantize_axis=axis)
    f.node("Add", y, "x")
    wide = [np.repeat(x, 16, axis) for x in (points, scales)]
    wanted = ((numbers - wide[0]) * wide[1].astype(np.float64))[np.array([[3, 9], [63, -1]])]
    model = f.model(f.nodes[-1].output[0], (1,), FLOAT)
    (found,) = dnn.load_onnx(model, engine=engine()).run({"x": np.zeros(1, np.float32)}).values()
    np.testing.assert_allclose(found, wanted, 1e-6, 1e-6)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(
    ("place", "data", "says"),
    [
        (2, np.ones((10, 3), np.float32), r"scales of dims \(10, 3\), \(10, 2\) fit"),
        (2, np.ones(20, np.float32), r"scales of dims \(20,\), \(10, 2\) fit"),
        (2, np.ones((10, 2), np.int32), "of int32, they must be float32 or"),
        (3, np.zeros((10, 2), np.uint8), r"zero points of uint8 of dims \(10, 2\), uint8 of dims \(10, 1\) fit"),
        (3, np.zeros((10, 1), np.int8), "zero points of int8"),
    ],
)
def test_gathered_blocks_that_do_not_fit(place: int, data: Any, says: str) -> None:
    f = File()
    arrays = np.zeros((10, 32), np.uint8), np.array([1]), np.ones((10, 2), np.float32)
    inputs = [f.constant(array) for array in arrays]
    inputs[place:] = [f.constant(data)]
    y = f.node("GatherBlockQuantized", *inputs, domain=MICROSOFT, gather_axis=0, quantize_axis=1, block_size=32, bits=4)
    with pytest.raises(AsmdnnError, match=f"^GatherBlockQuantized.* {says}"):
        dnn.load_onnx(f.model(y, (1, K), FLOAT), engine=engine())


def test_rows_chosen_by_data_are_gathered_natively() -> None:
    numbers, data, _ = table("uint4", (64, 48))
    f = File()
    scales = f.random.uniform(-1, 1, (64, 3)).astype(np.float32)
    y = f.node("GatherBlockQuantized", f.constant(data), "i", f.constant(scales), domain=MICROSOFT, block_size=16)
    values = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(f.nodes, "g", [values("i", INT64, [5])], [values(y, FLOAT, None)], f.constants)
    opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid(MICROSOFT, 1)]
    net = dnn.load_onnx(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())
    assert net.is_native
    i = np.array([0, 63, 7, 7, -2])
    (found,) = net.run({"i": i}).values()
    np.testing.assert_allclose(found, (numbers * np.repeat(scales, 16, 1))[i], 1e-6)


def blocked(kind: str, turned: bool, has_zeros: bool, block: int = 32) -> tuple[File, Any]:
    """MatMul of x by a DequantizeLinear of operator set 21, transposed or not; and the weights."""
    f, dtype = File(), np.dtype(getattr(ml_dtypes, kind) if kind.endswith("4") else kind)
    bits = 4 if kind.endswith("4") else 8
    least = -(1 << bits - 1) if kind.startswith("int") else 0
    draw = lambda dims: f.random.integers(least, least + (1 << bits), dims)  # noqa: E731
    integers, scales = draw((K, N)), f.random.uniform(0.1, 1, (K // block, N)).astype(np.float32)
    zeros = draw(scales.shape) if has_zeros else np.zeros(scales.shape, int)
    given = [integers.astype(dtype), scales, *([zeros.astype(dtype)] if has_zeros else [])]
    names = [f.constant(np.ascontiguousarray(x.T if turned else x)) for x in given]
    w = f.node("DequantizeLinear", *names, axis=int(turned), block_size=block)
    f.node("MatMul", "x", f.node("Transpose", w, perm=[1, 0]) if turned else w)
    spread = [np.repeat(x, block, 0) for x in (zeros, scales)]
    return f, (integers - spread[0]) * spread[1].astype(np.float64)


def model_of(f: File, dims: tuple[int, ...]) -> bytes:
    values = onnx.helper.make_tensor_value_info
    y = f.nodes[-1].output[0]
    graph = onnx.helper.make_graph(f.nodes, "g", [values("x", FLOAT, dims)], [values(y, FLOAT, None)], f.constants)
    opset = onnx.helper.make_opsetid("", 21)
    return bytes(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10).SerializeToString())


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", ["int4", "uint4", "int8", "uint8"])
@pytest.mark.parametrize(("turned", "has_zeros"), [(False, False), (False, True), (True, True)])
def test_weights_in_blocks_of_operator_set_21(kind: str, turned: bool, has_zeros: bool) -> None:
    f, weights = blocked(kind, turned, has_zeros)
    f.node("Relu", f.nodes[-1].output[0])
    x = np.random.default_rng(1).standard_normal((2, 3, K)).astype(np.float32)
    net = dnn.load_onnx(model_of(f, x.shape), engine=engine())
    net.check()
    assert kinds(net) == ["QuantizedMatMul"]
    assert [str(one) for one in net.verify({"x": x}) if not one.fits] == []
    (found,) = net.run({"x": x}).values()
    size = np.abs(x) @ (np.abs(weights) + 512)
    assert (np.abs(found - np.maximum(x @ weights, 0)) <= (K + 8) * 2.0**-24 * size).all()


@pytest.mark.isa("avx2")
def test_what_else_reads_floats_has_them() -> None:
    f, weights = blocked("uint4", False, True)
    w = f.nodes[0].output[0]
    f.node("Add", f.nodes[-1].output[0], f.node("ReduceSum", w, f.constant(np.array([0])), keepdims=0))
    x = np.ones((3, K), np.float32)
    net = dnn.load_onnx(model_of(f, x.shape), engine=engine())
    assert "QuantizedMatMul" in kinds(net)
    np.testing.assert_allclose(next(iter(net.run({"x": x}).values())), x @ weights + weights.sum(0), 1e-4, 1e-2)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("block", [8, 256])
def test_blocks_of_other_sizes(block: int) -> None:
    """8 have no kernel, and become f32; 256 are one."""
    f, weights = blocked("int4", False, True, block)
    x = np.random.default_rng(1).standard_normal((3, K)).astype(np.float32)
    net = dnn.load_onnx(model_of(f, x.shape), engine=engine())
    assert kinds(net) == ["MatMul" if block == 8 else "QuantizedMatMul"]
    np.testing.assert_allclose(next(iter(net.run({"x": x}).values())), x @ weights, 1e-3, 1e-2)


def test_operands_that_do_not_fit_are_named() -> None:
    f, _ = blocked("int4", False, True)
    with pytest.raises(AsmdnnError, match=r"MatMul.* its operand is float32 of dims \(3, 250\), float32 with 256"):
        dnn.load_onnx(model_of(f, (3, 250)), engine=engine())


@pytest.mark.parametrize(("attributes", "says"), [
    ({"bits": 3}, "has bits 3: 2, 4 and 8 are known"),
    ({"block_size": 24}, "block_size 24: they must be above 0, a block a power of two from 16 on"),
    ({"block_size": 64}, r"has weights uint8 \(40, 8, 16\), uint8 \(40, 4, 32\) fit"),
    ({"N": 41}, "has weights uint8"),
    ({"K": 255}, "its last one must be K, 255"),
    ({"weight_prepacked": 1}, "has weight_prepacked"),
    ({"colour": 1}, "has the attribute 'colour'"),
])  # fmt: skip
def test_nodes_that_contradict_themselves(attributes: Changed, says: str) -> None:
    one = Product()
    node = one.file.nodes[0]
    for name, value in attributes.items():
        kept = [a for a in node.attribute if a.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, onnx.helper.make_attribute(name, value)])
    with pytest.raises(AsmdnnError, match=f"MatMulNBits.*{says}"):
        dnn.load_onnx(one.file.model(one.y, (1, K), FLOAT), engine=engine())


@pytest.mark.parametrize(("place", "data", "says"), [
    (2, np.ones(7, np.float32), r"has scales of dims \(7,\), \(40, 8\) fit"),
    (2, np.full(320, np.nan, np.float32), "has scales 'c3' that are not finite"),
    (2, np.ones((40, 8), np.int32), "has scales 'c3' of int32, they must be float32 or"),
    (2, np.ones((40, 8)), "has scales 'c3' of float64, they must be float32 or"),
    (2, np.ones((40, 8, 1), np.float32), r"has scales of dims \(40, 8, 1\), \(40, 8\) fit"),
    (3, np.ones((40, 8), np.int8), "has zero points 'c3' of int8, they must be float32 or"),
    (3, np.ones(9, np.uint8), r"has zero points uint8 \(9,\), uint8 \(40, 4\) fit, or floats \(40, 8\)"),
    (4, np.arange(K), "has a g_idx 'c3', an order of rows that is not known"),
    (1, np.ones((40, 8, 16), np.int8), "has weights int8"),
])  # fmt: skip
def test_inputs_that_do_not_fit(place: int, data: Any, says: str) -> None:
    one = Product()
    node, name = one.file.nodes[0], ""
    inputs = [*node.input, "", "", ""][:5]
    name = one.file.constant(data)
    inputs[place] = name
    del node.input[:]
    node.input.extend(inputs)
    says = says.replace("c3", name)
    with pytest.raises(AsmdnnError, match=f"MatMulNBits.*{says}"):
        dnn.load_onnx(one.file.model(one.y, (1, K), FLOAT), engine=engine())


def test_weights_that_are_data_are_refused() -> None:
    one = Product()
    one.file.nodes[0].input[2] = "x"
    with pytest.raises(AsmdnnError, match="has scales 'x', which are no constant: pass it in constants="):
        dnn.load_onnx(one.file.model(one.y, (1, K), FLOAT), engine=engine())


def test_a_block_of_zeros_has_a_scale_of_0() -> None:
    """As quantisers write it: nothing divides by it."""
    g, integers = dnn.Graph(), np.arange(64, dtype=np.int8).reshape(2, 32).repeat(4, 0).reshape(4, 64) - 30
    scales = np.array([[0.5, 0.25], [0, 2], [1, 0], [0, 0]], np.float32)
    weights = g.apply("DequantizeLinear", integers, scales, axis=1, block_size=32)
    net = g.compile(y=g.apply("MatMul", g.input("x", (3, 4)), weights), engine=engine())
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert np.array_equal(net.run({"x": x})["y"], x @ (integers * scales.repeat(32, 1)))
    with pytest.raises(dnn.InvalidArguments, match=r"QuantizeLinear.*that is 0"):
        g = dnn.Graph()
        g.compile(y=g.apply("QuantizeLinear", g.input("x", (4, 64)), scales, axis=1, block_size=32), engine=engine())
