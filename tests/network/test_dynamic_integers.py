"""Files whose integers get scales of the data at hand, natively, against onnxruntime and the definitions."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import AsmdnnError
from tests.network.nets import engine
from tests.network.random_quantized import SEVEN_BITS
from tests.network.test_quantized_files import MICROSOFT, File

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
onnxruntime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
FLOAT = onnx.TensorProto.FLOAT
LEVELS = ("avx2", "avx512_core", "avx512_core_vnni")
ROWS, IMAGE = (2, 5, 24), (1, 3, 9, 8)


def made(f: File, op: str, results: int, *inputs: str, domain: str = "", **attributes: Any) -> list[str]:
    """The results of a node that has several."""
    names = [f"r{len(f.nodes)}.{i}" for i in range(results)]
    f.nodes.append(onnx.helper.make_node(op, inputs, names, f"{op} {names[0]}", domain=domain, **attributes))
    return names


def weights(f: File, *dims: int, dtype: type = np.int8) -> str:
    """All of uint8, which onnxruntime multiplies as words."""
    limits = SEVEN_BITS if dtype == np.int8 else (0, 256)
    return f.constant(f.random.integers(*limits, dims).astype(dtype))


def requantized(f: File, sums: str, scale: str, scales: Any) -> str:
    floats = f.node("Cast", sums, to=FLOAT)
    return f.node("Mul", floats, f.node("Mul", scale, f.constant(np.asarray(scales, np.float32))))


def products(dtype: type, zero: Any) -> File:
    """Two products of one quantised operand, one with a bias and relu, and a product of their sum."""
    f = File()
    x, scale, point = made(f, "DynamicQuantizeLinear", 3, "x")
    w, zeros = weights(f, 24, 32, dtype=dtype), f.constant(np.asarray(zero, dtype))
    one = requantized(f, f.node("MatMulInteger", x, w, point, zeros), scale, 0.01)
    scales = f.random.random(32) * 0.01
    other = requantized(f, f.node("MatMulInteger", x, weights(f, 24, 32), point), scale, scales)
    bias = f.constant(f.random.standard_normal(32).astype(np.float32))
    inner = f.node("Add", f.node("Relu", f.node("Add", one, bias)), other)
    y, scale, point = made(f, "DynamicQuantizeLinear", 3, inner)
    requantized(f, f.node("MatMulInteger", y, weights(f, 32, 7), point), scale, 0.01)
    return f


def windows(dtype: type, zero: int) -> File:
    """A convolution with padding, which counts as the zero point, and one of groups."""
    f = File()
    x, scale, point = made(f, "DynamicQuantizeLinear", 3, "x")
    w, zeros = weights(f, 16, 3, 3, 3, dtype=dtype), f.zero(zero, dtype)
    one = requantized(f, f.node("ConvInteger", x, w, point, zeros, pads=[1] * 4, kernel_shape=[3, 3]), scale, 0.01)
    y, scale, point = made(f, "DynamicQuantizeLinear", 3, f.node("Relu", one))
    w = weights(f, 16, 8, 3, 3, dtype=dtype)
    requantized(f, f.node("ConvInteger", y, w, point, zeros, group=2, strides=[2, 2]), scale, 0.01)
    return f


def check_equal(f: File, dims: tuple[int, ...], isa: str) -> dnn.Network:
    """f32 after exact sums may be contracted here: some units in the last place of the largest."""
    feeds = {"x": np.random.default_rng(3).standard_normal(dims).astype(np.float32)}
    model = f.model(f.nodes[-1].output[0], dims, FLOAT)
    (wanted,) = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)
    net = dnn.load_onnx(model, engine=engine(isa=isa))
    net.check()
    assert [str(one) for one in net.verify(feeds) if not one.fits] == []
    (found,) = net.run(feeds).values()
    assert np.abs(found - wanted).max() <= 2e-6 * np.abs(wanted).max()
    again = dnn.load_onnx(model, engine=engine(2, isa))
    assert np.array_equal(*(next(iter(one.run(feeds).values())) for one in (net, again)))
    return net


def multiplied(net: dnn.Network, kind: str) -> list[tuple[str, str]]:
    """The types that primitives of a kind multiply."""
    (segment,) = net.planned().segments
    plans = [step.pd.plan for step in segment.steps if type(step.pd.desc).__name__ == kind]  # type: ignore[union-attr]
    return [(str(plan.tensors["src"].dtype), str(plan.tensors["weights"].dtype)) for plan in plans]


@pytest.mark.parametrize("isa", [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in LEVELS])
@pytest.mark.parametrize(("dtype", "zero", "count"), [(np.int8, 0, 3), (np.uint8, 128, 3), (np.uint8, 101, 4)])
def test_products_are_those_of_onnxruntime(dtype: type, zero: int, count: int, isa: str) -> None:
    """Weights that are not symmetric take a product of one column more."""
    net = check_equal(products(dtype, zero), ROWS, isa)
    assert multiplied(net, "MatMul") == [("u8", "s8")] * count


def biased(op: str) -> File:
    """A bias of integers in front of the Cast, by the scale of the data, as onnxruntime's first quantiser wrote it; and
    a constant one."""
    f, is_conv = File(), op == "ConvInteger"
    x, scale, point = made(f, "DynamicQuantizeLinear", 3, "x")
    w = weights(f, 16, 3, 3, 3) if is_conv else weights(f, 24, 16)
    whole = f.node("Mul", scale, f.constant(np.float32(0.01)))
    bias = f.constant(f.random.standard_normal(16).astype(np.float32))
    integers = f.node("Cast", f.node("Floor", f.node("Div", bias, whole)), to=onnx.TensorProto.INT32)
    if is_conv:
        integers = f.node("Reshape", integers, f.constant(np.array((1, 16, 1, 1))))
    sums = f.node("Add", f.node(op, x, w, point), integers)
    y = f.node("Relu", f.node("Mul", f.node("Cast", sums, to=FLOAT), whole))
    x, scale, point = made(f, "DynamicQuantizeLinear", 3, y)
    w = weights(f, 8, 16, 1, 1) if is_conv else weights(f, 16, 8)
    known = f.constant(f.random.integers(-5000, 5000, (8, 1, 1) if is_conv else (8,)).astype(np.int32))
    requantized(f, f.node("Add", known, f.node(op, x, w, point)), scale, 0.01)
    return f


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("op", "kind", "dims"), [
    ("ConvInteger", "ConvolutionForward", IMAGE), ("MatMulInteger", "MatMul", ROWS),
])  # fmt: skip
def test_biases_of_integers_are_added_to_floats(op: str, kind: str, dims: tuple[int, ...]) -> None:
    net = check_equal(biased(op), dims, "avx2")
    assert multiplied(net, kind) == [("u8", "s8")] * 2
    assert "+ Add, Mul, Relu" in net.explain()


@pytest.mark.isa("avx2")
def test_products_of_rows_between_reshapes_take_what_is_behind() -> None:
    """As onnxruntime's quantiser leaves a product with a bias: the residual sum has the axes of the operand."""
    f = File()
    x, scale, point = made(f, "DynamicQuantizeLinear", 3, f.node("Reshape", "x", f.constant(np.array((10, 24)))))
    rows = requantized(f, f.node("MatMulInteger", x, weights(f, 24, 24), point), scale, 0.01)
    bias = f.constant(f.random.standard_normal(24).astype(np.float32))
    whole = f.node("Reshape", f.node("Add", bias, rows), f.constant(np.array((2, 5, 24))))
    f.node("Add", whole, "x")
    net = check_equal(f, ROWS, "avx2")
    assert "MatMulInteger" in net.explain()
    assert "+ Mul, Add, Add" in net.explain()


@pytest.mark.isa("avx512_core_bf16")
def test_products_of_integers_store_what_attention_multiplies_in_bf16() -> None:
    f = File()
    x, scale, point = made(f, "DynamicQuantizeLinear", 3, "x")
    heads = []
    for perm in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)):
        floats = requantized(f, f.node("MatMulInteger", x, weights(f, 24, 32), point), scale, 0.01)
        cut = f.node("Reshape", floats, f.constant(np.array((2, 5, 2, 16))))
        heads.append(f.node("Transpose", cut, perm=perm))
    scores = f.node("Softmax", f.node("Mul", f.node("MatMul", *heads[:2]), f.constant(np.float32(0.01))), axis=-1)
    f.node("Transpose", f.node("MatMul", scores, heads[2]), perm=[0, 2, 1, 3])
    feeds = {"x": np.random.default_rng(3).standard_normal(ROWS).astype(np.float32)}
    model = f.model(f.nodes[-1].output[0], ROWS, FLOAT)
    net, exact = (
        dnn.load_onnx(model, engine=engine(isa="avx512_core_bf16"), precision=word) for word in ("bf16", "f32")
    )
    assert [str(one) for one in net.verify(feeds) if not one.fits] == []
    assert "attention:avx512_core_bf16" in net.explain()
    (found,), (wanted,) = net.run(feeds).values(), exact.run(feeds).values()
    assert np.abs(found - wanted).max() <= 0.02 * np.abs(wanted).max()


@pytest.mark.isa("avx2")
def test_zero_points_by_column() -> None:
    zeros = np.random.default_rng(2).integers(90, 140, 32)
    assert multiplied(check_equal(products(np.uint8, zeros), ROWS, "avx2"), "MatMul") == [("u8", "s8")] * 4


@pytest.mark.parametrize("isa", [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in LEVELS])
@pytest.mark.parametrize(("dtype", "zero", "count"), [(np.uint8, 128, 2), (np.uint8, 77, 4)])
def test_convolutions_are_those_of_onnxruntime(dtype: type, zero: int, count: int, isa: str) -> None:
    net = check_equal(windows(dtype, zero), IMAGE, isa)
    assert multiplied(net, "ConvolutionForward") == [("u8", "s8")] * count


@pytest.mark.isa("avx2")
def test_quantized_operand_of_nothing_but_zeros() -> None:
    f = File()
    f.node("Identity", made(f, "DynamicQuantizeLinear", 3, "x")[0])
    y, scale, zero = (f.nodes[0].output[i] for i in range(3))
    for name, wanted in ((y, np.zeros(ROWS, np.uint8)), (scale, np.float32(1)), (zero, np.uint8(0))):
        kind = FLOAT if name == scale else onnx.TensorProto.UINT8
        net = dnn.load_onnx(f.model(name, ROWS, kind), engine=engine())
        (found,) = net.run({"x": np.zeros(ROWS, np.float32)}).values()
        assert net.is_native
        assert np.array_equal(found, wanted)
        assert found.dtype == np.asarray(wanted).dtype


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("has_bias", [False, True])
def test_products_that_quantize_their_operand(has_bias: bool) -> None:
    f = File()
    bias = f.constant(f.random.standard_normal(16).astype(np.float32)) if has_bias else ""
    f.node("DynamicQuantizeMatMul", "x", weights(f, 24, 16), f.scale(0.01), "", bias, domain=MICROSOFT)
    assert multiplied(check_equal(f, ROWS, "avx2"), "MatMul") == [("u8", "s8")]


def lstm(f: File, **changed: Any) -> None:
    """24 inputs, 6 states."""
    given = {"w": f.bytes(1, 24, 24), "r": f.bytes(1, 6, 24), "scale": f.constant(np.float32([0.004]))}
    given |= dict.fromkeys(("zero", "r_zero"), f.constant(np.zeros(1, np.int8))) | changed
    numbers = (given["scale"], given["zero"], f.constant(np.float32([0.004])), given["r_zero"])
    inputs = ("x", given["w"], given["r"], "", given.get("lengths", ""), *[""] * 3, *numbers)
    made(f, "DynamicQuantizeLSTM", 1, *inputs, domain=MICROSOFT, hidden_size=6)


def answers(f: File, isa: str) -> tuple[dnn.Network, dict[str, Any], Any, Any]:
    """The network, what it was fed, its result and that of onnxruntime on one thread: several share out sequences, and
    round each share by its own range."""
    dims = (7, 2, 24)
    model = f.model(f.nodes[-1].output[0], dims, FLOAT)
    feeds = {"x": np.random.default_rng(3).standard_normal(dims).astype(np.float32)}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    net = dnn.load_onnx(model, engine=engine(isa=isa))
    net.check()
    (found,), (wanted,) = net.run(feeds).values(), session.run(None, feeds)
    assert net.is_native
    return net, feeds, found, wanted


BY_COLUMN = np.linspace(0.003, 0.005, 24, dtype=np.float32)[None]
LSTMS: dict[str, dict[str, Any]] = {
    "s8": {},
    "u8, zero point in the middle": {name: np.full(1, 128, np.uint8) for name in ("zero", "r_zero")},
    "scales by column": {"scale": BY_COLUMN, "zero": np.zeros((1, 24), np.int8)},
}


@pytest.mark.parametrize("isa", [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in LEVELS])
@pytest.mark.parametrize("kind", LSTMS)
def test_lstm_of_quantized_weights(kind: str, isa: str) -> None:
    """x and h are rounded as onnxruntime rounds them, and sums are exact."""
    f, words = File(), dict(LSTMS[kind])
    if "r_zero" in words:
        numbers = {name: f.random.integers(1, 255, (1, k, 24)).astype(np.uint8) for name, k in (("w", 24), ("r", 6))}
        words |= numbers
    lstm(f, **{name: f.constant(value) for name, value in words.items()})
    net, feeds, found, wanted = answers(f, isa)
    assert "DynamicQuantizeLSTM" in net.explain()
    assert np.abs(found - wanted).max() <= 2e-6
    assert [str(one) for one in net.verify(feeds) if not one.fits] == []


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", ["lengths", "zero"])
def test_lstm_without_a_kernel_stays_of_floats(kind: str) -> None:
    """Of sequences of different lengths, or weights that are no s8 without their zero point: it leaves out the rounding
    of operands to 8 bits."""
    f = File()
    changed = {"lengths": f.constant(np.int32([7, 5]))} if kind == "lengths" else {"zero": f.constant(np.int8([-90]))}
    lstm(f, **changed)
    net, feeds, found, wanted = answers(f, "avx2")
    assert "DynamicQuantizeLSTM" not in net.explain()
    spread = np.abs(feeds["x"]).max() * 2 / 255 * 0.004 * (64 + 90) * np.sqrt(24 + 6)  # of a gate, by such roundings
    assert np.abs(found - wanted).max() <= spread


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a scale of 0": ({"scale": np.float32([0])}, "scale .* that is 0 or not finite"),
    "scales of wrong dims": ({"scale": np.float32([1, 1, 1])}, "scales or zero points of dims"),
    "zero points of wrong dims": ({"zero": np.zeros((1, 5), np.int8)}, "scales or zero points of dims"),
    "scales of integers": ({"scale": np.int32([1])}, "scales .* of int32, they must be floats"),
    "zero points of another type": ({"zero": np.zeros(1, np.uint8)}, "zero points .* of uint8 .* int8"),
    "weights of floats": ({"w": np.ones((1, 24, 24), np.float32)}, "weights .* float32"),
    "weights of two axes": ({"w": np.ones((24, 24), np.int8)}, "weights .* of dims"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_numbers_are_refused(name: str) -> None:
    f, (changed, words) = File(), WRONG[name]
    lstm(f, **{key: f.constant(value) for key, value in changed.items()})
    with pytest.raises(AsmdnnError, match=f"DynamicQuantizeLSTM .*{words}"):
        dnn.load_onnx(f.model(f.nodes[-1].output[0], (7, 2, 24), FLOAT), engine=engine())


def test_zero_points_of_another_type_are_refused() -> None:
    f = File()
    x, _, point = made(f, "DynamicQuantizeLinear", 3, "x")
    f.node("MatMulInteger", x, weights(f, 24, 4), point, f.zero(0, np.uint8))
    with pytest.raises(AsmdnnError, match=r"MatMulInteger .*zero point of uint8"):
        dnn.load_onnx(f.model(f.nodes[-1].output[0], ROWS, onnx.TensorProto.INT32), engine=engine())
