"""Networks of 8-bit integers: as files write them, natively, against the operators' definitions and onnxruntime."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.lowering.forms import ONE, ZERO, Reading, ScaledSum, Sealing, read
from tests.network.nets import compiled, engine, reference
from tests.support.drawing import RANDOM

LEVELS = ("avx2", "avx512_core", "avx512_core_vnni")
STEP = 0.0303177  # of the networks' results
UNEQUAL = 3  # of a primitive's some hundred results: f32 after the sums rounds otherwise than f64 now and then


class Quantized:
    """A graph in the making whose values are floats of integers."""

    def __init__(self, dtype: type = np.uint8, zero: int = 0) -> None:
        self.graph, self.dtype, self.zero = dnn.Graph("integers"), dtype, zero

    def pair(self, x: Any, scale: float, zero: int | None = None) -> Any:
        """x rounded to integers, as floats."""
        point = np.array(self.zero if zero is None else zero, self.dtype)
        integers = self.graph.apply("QuantizeLinear", x, np.float32(scale), point)
        return self.graph.apply("DequantizeLinear", integers, np.float32(scale), point)

    def weights(self, *dims: int, axis: int = 0, scales: int = 0) -> Any:
        """Signed integers with a scale for each index of an axis, or one."""
        integers = RANDOM.integers(-127, 128, dims).astype(np.int8)
        scale = (RANDOM.random(scales) * 0.01 + 0.001).astype(np.float32) if scales else np.float32(0.01)
        return self.graph.apply("DequantizeLinear", integers, scale, axis=axis)

    def conv(self, x: Any, into: int, out: int, size: int, **attributes: Any) -> Any:
        weights = self.weights(out, into, size, size, scales=out)
        bias = RANDOM.standard_normal(out).astype(np.float32)
        return self.graph.apply("Conv", x, weights, bias, pads=(size // 2,) * 4, **attributes)

    def gemm(self, x: Any, into: int, out: int) -> Any:
        bias = RANDOM.standard_normal(out).astype(np.float32)
        return self.graph.apply("Gemm", x, self.weights(out, into, scales=out), bias, transB=1)


def residual(dtype: type, zero: int) -> tuple[dnn.Graph, Any]:
    """Convolutions, a residual sum with relu, pooling, concat of two scales, and a product."""
    q = Quantized(dtype, zero)
    x = q.pair(q.graph.input("x", (2, 3, 12, 12)), 0.0301173, 0 if dtype == np.int8 else 120)
    stem = q.pair(q.graph.apply("Relu", q.conv(x, 3, 16, 3, strides=(2, 2))), 0.0512771)
    inner = q.pair(q.graph.apply("Clip", q.conv(stem, 16, 24, 1), np.float32(0), np.float32(6)), 0.0298311)
    inner = q.pair(q.conv(inner, 1, 24, 3, group=24), 0.0413917, zero + 9)
    block = q.pair(q.conv(inner, 24, 16, 1), 0.0607193, zero + 5)
    both = q.pair(q.graph.apply("Relu", q.graph.apply("Add", stem, block)), 0.0697711)
    joined = q.pair(q.graph.apply("Concat", both, stem, axis=1), 0.0811897)
    small = q.graph.apply("MaxPool", joined, kernel_shape=(2, 2))
    small = q.pair(q.graph.apply("AveragePool", small, kernel_shape=(2, 2)), 0.0797713)
    rows = q.graph.apply("Flatten", q.pair(q.graph.apply("GlobalAveragePool", small), 0.0512771))
    return q.graph, q.pair(q.gemm(rows, 32, 10), STEP, zero + 100 if dtype == np.uint8 else 0)


def check_values(net: dnn.Network, feeds: dict[str, np.ndarray], steps: int = 1) -> None:
    """Each primitive within a step of its operators, and nearly always equal; the result within `steps`."""
    net.check()
    assert [str(one) for one in net.verify(feeds) if not one.fits or one.unequal > UNEQUAL] == []
    (found,), (wanted,) = net.run(feeds).values(), reference(net, feeds).values()
    assert np.abs(found - wanted).max() <= (steps + 0.01) * STEP


def sources(net: dnn.Network, op: str) -> list[str]:
    """The types that primitives of an operator read."""
    (segment,) = net.planned().segments
    steps = [step for step in segment.steps if step.nodes and step.label.startswith(op)]  # type: ignore[union-attr]
    return [str(step.pd.plan.tensors["src"].dtype) for step in steps]


@pytest.mark.parametrize("isa", [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in LEVELS])
@pytest.mark.parametrize(("dtype", "zero"), [(np.uint8, 0), (np.uint8, 7), (np.int8, -20)])
def test_convolutions_are_of_integers(dtype: type, zero: int, isa: str) -> None:
    graph, y = residual(dtype, zero)
    net = graph.compile(y=y, engine=engine(isa=isa))
    feeds = {"x": RANDOM.standard_normal((2, 3, 12, 12)).astype(np.float32)}
    check_values(net, feeds, steps=8)
    name = "u8" if dtype == np.uint8 else "s8"
    assert sources(net, "Conv").count(name) >= 3
    assert sources(net, "MaxPool") == sources(net, "AveragePool") == sources(net, "Gemm") == [name]
    again = graph.compile(y=y, engine=engine(2, isa))
    assert np.array_equal(again.run(feeds)["y"], net.run(feeds)["y"])


def bottleneck(zero: int) -> tuple[dnn.Graph, Any]:
    """A 3x3 convolution of many channels and a depthwise one, of integers around `zero`."""
    q = Quantized()
    x = q.pair(q.graph.input("x", (1, 64, 14, 14)), 0.02, zero)
    x = q.pair(q.graph.apply("Relu", q.conv(x, 64, 64, 3)), 0.3, zero)
    return q.graph, q.pair(q.conv(x, 1, 64, 3, group=64), STEP * 10, 128)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(
    ("isa", "zero", "wanted"),
    [
        ("avx2", 0, ["winograd:avx2 u8 f32", "reorder+depthwise:avx2 u8 f32"]),
        ("avx2", 7, ["winograd:avx2 f32 f32", "depthwise:avx2 u8 s8"]),
        ("avx2_vnni", 0, ["direct:avx2_vnni u8 s8", "reorder+depthwise:avx2_vnni u8 s8"]),
    ],
)
def test_bytes_that_are_multiplied_as_words_become_f32_where_that_is_faster(
    isa: str, zero: int, wanted: list[str]
) -> None:
    graph, y = bottleneck(zero)
    net = graph.compile(y=y, engine=engine(isa=isa))
    (segment,) = net.planned().segments
    of_conv = [step.pd for step in segment.steps if step.label.startswith("Conv")]  # type: ignore[union-attr]
    types = [(pd.plan.tensors["src"].dtype, pd.plan.tensors["weights"].dtype) for pd in of_conv]
    found = [f"{pd.implementation} {src} {weights}" for pd, (src, weights) in zip(of_conv, types, strict=True)]
    assert found == wanted
    if isa == "avx2":
        check_values(net, {"x": RANDOM.standard_normal((1, 64, 14, 14)).astype(np.float32)}, steps=20)


def product(q: Quantized, weights: Any) -> Any:
    x = q.pair(q.graph.input("x", (2, 5, 24)), 0.02, 11)
    return q.pair(q.graph.apply("MatMul", x, weights), STEP, 90)


def unsigned(q: Quantized, zero: int) -> Any:
    integers = RANDOM.integers(0, 256, (24, 9)).astype(np.uint8)
    return q.graph.apply("DequantizeLinear", integers, np.float32(0.01), np.array(zero, np.uint8))


PRODUCTS: dict[str, tuple[Callable[[Quantized], Any], list[str]]] = {
    "a scale for each column": (lambda q: q.weights(24, 9, axis=1, scales=9), ["u8"]),
    "one scale": (lambda q: q.weights(24, 9), ["u8"]),
    "unsigned around 128": (lambda q: unsigned(q, 128), ["u8"]),
    "unsigned around 100": (lambda q: unsigned(q, 100), ["u8"]),
    "a scale for each row, as floats": (lambda q: q.weights(24, 9, axis=0, scales=24), ["f32"]),
}


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_of_integers_where_weights_allow_it(name: str) -> None:
    make, read = PRODUCTS[name]
    q = Quantized()
    net = q.graph.compile(y=product(q, make(q)), engine=engine())
    check_values(net, {"x": RANDOM.standard_normal((2, 5, 24)).astype(np.float32)})
    assert sources(net, "MatMul") == read


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("dtype", "wanted"), [(np.int8, "s8"), (np.uint8, "f32")])
def test_products_of_two_tensors(dtype: type, wanted: str) -> None:
    """Of integers if the second one is signed."""
    q = Quantized(dtype)
    a, b = (q.pair(q.graph.input(name, dims), 0.03, 0) for name, dims in (("a", (3, 5, 24)), ("b", (3, 24, 9))))
    net = q.graph.compile(y=q.pair(q.graph.apply("MatMul", a, b), STEP, 0), engine=engine())
    check_values(net, {name: RANDOM.standard_normal(dims).astype(np.float32) for name, (dims, _) in net.inputs.items()})
    assert sources(net, "MatMul") == [wanted]


@pytest.mark.isa("avx2")
def test_elementwise_operators_between_integers() -> None:
    """Sums, products, functions, and a tensor of floats, as one pass."""
    q = Quantized()
    a, b = (q.pair(q.graph.input(name, (2, 3, 4, 5)), 0.03, 128) for name in "ab")
    c = q.graph.input("c", (1, 3, 1, 1))
    swish = q.graph.apply("Mul", a, q.pair(q.graph.apply("Sigmoid", a), 1 / 256, 0))
    y = q.pair(q.graph.apply("Sub", q.graph.apply("Add", swish, b), q.graph.apply("Mul", c, np.float32(-2))), STEP, 99)
    net = q.graph.compile(y=y, engine=engine())
    check_values(net, {name: RANDOM.standard_normal(dims).astype(np.float32) for name, (dims, _) in net.inputs.items()})


@pytest.mark.isa("avx2")
def test_rounding_is_that_of_quantize_linear() -> None:
    """Halves to even before the zero point is added, saturated; and integers come and go as they are."""
    q = Quantized()
    x = q.graph.input("x", (1, 4, 2, 4))
    point = np.array(3, np.uint8)
    net = q.graph.compile(y=q.graph.apply("QuantizeLinear", x, np.float32(0.5), point), engine=engine())
    data = (np.arange(-16, 16, dtype=np.float32) / 4 * 9).reshape(1, 4, 2, 4)
    wanted = np.clip(np.rint(data / np.float32(0.5)) + 3, 0, 255).astype(np.uint8)
    found = net.run({"x": data})["y"]
    assert found.dtype == np.uint8
    assert np.array_equal(found, wanted)
    other = dnn.Graph()
    bytes_in = other.input("x", (1, 4, 2, 4), np.uint8)
    y = other.apply("MaxPool", other.apply("DequantizeLinear", bytes_in, np.float32(0.5), point), kernel_shape=(2, 2))
    pooled = other.compile(y=y, engine=engine()).run({"x": wanted})["y"]
    blocks = wanted.reshape(1, 4, 1, 2, 4)
    largest = np.stack([blocks[..., i : i + 2].max((-2, -1)) for i in range(3)], -1)
    assert np.array_equal(pooled, ((largest - 3.0) * 0.5).astype(np.float32))


def test_a_share_of_saturated_results_is_said() -> None:
    q = Quantized()
    net = q.graph.compile(y=q.pair(q.graph.input("x", (1, 64)), 0.001), engine=engine())
    assert "50.00% saturated" in str(net.verify({"x": np.tile([1.0, 0.1], (1, 32)).astype(np.float32)})[0])


def test_sums_of_scaled_values_are_simplified() -> None:
    """One multiply-add a term, and bounds that the type keeps are none."""
    x, y = read("x"), read("y")
    two = ScaledSum(((x, np.array([[2.0, 3.0]])),), np.array([[1.0, -1.0]])).clipped(0.0, None)
    three = two.plus(np.array(4.0)).times(np.array(0.5)).saturated(2, 255)
    assert three.least is None
    both = ScaledSum((*three.terms, (y, ONE)), three.shift).clipped(None, 6.0)
    sealing = Sealing()
    emit = sealing.expression(both)
    assert [array.tolist() for array in sealing.arrays] == [[[1.0, 1.5]], [[2.5, 1.5]]]
    tensors = {"x": np.array([[3.0, 3.0]]), "y": np.array([[0.25, 0.25]])} | {
        f"c{i}": array for i, array in enumerate(sealing.arrays)
    }
    del tensors["y"]
    assert ScaledSum((), ZERO).is_constant
    with pytest.raises(KeyError, match="y"):
        emit(Reading(tensors))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_bytes_of_a_caller(dtype: type, tmp_path: Path) -> None:
    """Any layout, from a pack as well, and bound: kernels read bytes where they lie."""
    q = Quantized(dtype)
    x = q.graph.input("x", (3, 64), dtype)
    y = q.graph.apply("DequantizeLinear", x, np.float32(0.5), np.array(3, dtype))
    net = q.graph.compile(y=y, engine=engine())
    data = np.arange(192).astype(dtype).reshape(64, 3).T
    wanted = (data.astype(np.float32) - 3) / 2
    assert np.array_equal(net.run({"x": data})["y"], wanted)
    net.save(tmp_path / "net.pack")
    assert np.array_equal(dnn.load_pack(tmp_path / "net.pack").run({"x": data})["y"], wanted)  # type: ignore[union-attr]
    y = np.zeros((3, 64), np.float32)
    net.bind(x=np.ascontiguousarray(data), y=y)()
    assert np.array_equal(y, wanted)


def test_floats_of_integers_that_a_rewrite_reads_twice() -> None:
    """Einsum becomes a move and a product: each of them reads the integers itself."""
    g, given = dnn.Graph(), np.arange(96, dtype=np.uint8).reshape(2, 6, 8)
    x = g.apply("DequantizeLinear", g.input("x", given.shape, np.uint8), np.float32(0.5), np.uint8(40))
    net = g.compile(y=g.apply("Einsum", x, x, equation="bij,bkj->bik"), engine=engine())
    wide = (given.astype(np.float64) - 40) / 2
    assert net.is_native and np.array_equal(net.run({"x": given})["y"], wide @ wide.swapaxes(1, 2))


def test_an_operand_that_is_read_twice_is_no_step_of_its_own() -> None:
    g, given = dnn.Graph(), np.arange(96, dtype=np.uint8).reshape(12, 8)
    x = g.apply("DequantizeLinear", g.input("x", given.shape, np.uint8), np.float32(0.5), np.uint8(40))
    net = g.compile(y=g.apply("Mul", x, x), engine=engine())
    assert len(compiled(net).steps) == 1
    assert np.array_equal(net.run({"x": given})["y"], (given.astype(np.float32) - 40) ** 2 / 4)


@pytest.mark.parametrize("isa", [pytest.param(x, marks=pytest.mark.isa(x)) for x in ("avx2", "avx512_core")])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_integers_in_registers_round_halves_before_the_zero_point(dtype: Any, isa: str) -> None:
    """Every bit is that of QuantizeLinear, DequantizeLinear and what follows; at the ends as well."""
    g, zero, ends = dnn.Graph(), dtype(7), np.iinfo(dtype)
    x = np.append(np.arange(-600, 600, dtype=np.float32) / 4, np.array([1e9, -1e9, 3e38, -3e38], np.float32))
    small = g.apply("QuantizeLinear", g.input("x", x.shape), np.float32(0.5), zero)
    y = g.apply("Abs", g.apply("DequantizeLinear", small, np.float32(0.5), zero)) * 3.0
    net = g.compile(y=y, engine=engine(isa=isa))
    steps = np.clip(np.rint(x.astype(np.float64) * 2), ends.min - 7, ends.max - 7)
    assert len(compiled(net).steps) == 1
    assert np.array_equal(net.run({"x": x})["y"], np.abs(steps) / 2 * 3)
    assert all(one.fits for one in net.verify({"x": x}))
