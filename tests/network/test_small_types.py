"""Types that numpy lacks: read from files, cast as ONNX's tables say, computed with in f32."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network import element_types
from asmdnn.network.element_types import CODES, EXTENSIONS, PACKED_BITS, extension_type
from tests.network import wire
from tests.network.nets import engine

ml_dtypes = pytest.importorskip("ml_dtypes", reason="numpy types of bf16 and fewer bits: pip install ml_dtypes")
pytestmark = pytest.mark.isa("avx2")
FLOATS = {code: name for code, name in EXTENSIONS.items() if name.startswith("float8") and "e8m0" not in name}
SMALL = {code: name for code, name in EXTENSIONS.items() if code in PACKED_BITS}


def declared(name: str, code: int, *dims: int) -> bytes:
    """A ValueInfo of a type that `wire.graph` does not know."""
    shape = wire.message([(1, wire.message([(1, n)])) for n in dims])
    return wire.message([(1, name), (2, wire.message([(1, wire.message([(1, code), (2, shape)]))]))])


def cast(x: Any, code: int, to: int, **attributes: Any) -> Any:
    node = wire.node("Cast", ["x"], ["y"], to=to, **attributes)
    body = wire.message([(1, node), (11, declared("x", code, *x.shape)), (12, declared("y", to, *x.shape))])
    net = dnn.load_onnx(wire.model(body, 25), engine=engine(), fallback="numpy")
    return net.run({"x": x})["y"]


@pytest.mark.parametrize("code", FLOATS)
def test_numbers_of_8_bits(code: int) -> None:
    """All of them as f32; and f32 as the nearest of them, at a tie the one that ends in 0."""
    dtype = extension_type(FLOATS[code])
    every = np.arange(256, dtype=np.uint8)
    values = every.view(dtype).astype(np.float64)
    np.testing.assert_array_equal(cast(every.view(dtype), code, 1), values)
    finite = np.isfinite(values) & ~((values == 0) & np.signbit(values))
    codes, known = every[finite], values[finite]
    random = np.random.default_rng(0).standard_normal(2000).astype(np.float32)
    x = np.concatenate([random, random * 300, random * 1e-3, np.float32([1e30, -1e30, np.inf, -np.inf])])
    distance = np.abs(np.clip(x, known.min(), known.max())[:, None].astype(np.float64) - known)
    best = distance == distance.min(axis=1, keepdims=True)
    odd = codes % 2 == 1
    wanted = known[np.where((best & ~odd).any(1), (best & ~odd).argmax(1), best.argmax(1))]
    np.testing.assert_array_equal(cast(x, 1, code).astype(np.float64), wanted)
    lost = cast(x[-4:], 1, code, saturate=0).astype(np.float64)
    assert not np.isfinite(lost).any()


@pytest.mark.parametrize("code", SMALL)
def test_several_in_a_byte(code: int) -> None:
    """As files have them, an odd number of them; and cast from numbers, of which integers keep the low bits."""
    bits, dtype = PACKED_BITS[code], extension_type(SMALL[code])
    every = np.arange(1 << bits)
    single = np.unpackbits(every.astype(np.uint8)[:, None], axis=1, bitorder="little")[1:, :bits]
    packed = np.packbits(single.ravel(), bitorder="little")
    count = len(every) - 1
    raw = wire.message([(1, count), (2, code), (8, "w"), (9, packed.tobytes())])
    numbers = wire.message([(1, count), (2, code), (8, "w"), *[(5, int(byte)) for byte in packed]])
    signed = np.where(every >= 1 << bits - 1, every - (1 << bits), every)
    known = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
    wanted = (known if code == 23 else signed if SMALL[code].startswith("int") else every)[1:]
    for tensor in (raw, numbers):
        nodes = [wire.node("Cast", ["w"], ["v"], to=1), wire.node("Add", ["x", "v"], ["y"])]
        fields = [
            *[(1, node) for node in nodes],
            (5, tensor),
            (11, declared("x", 1, count)),
            (12, declared("y", 1, count)),
        ]
        net = dnn.load_onnx(wire.model(wire.message(fields), 25), engine=engine())
        np.testing.assert_array_equal(net.run({"x": np.zeros(count, np.float32)})["y"], wanted)
    if code != 23:
        x = np.float32([-9.5, -1, 0, 1.7, 2, 3, 7, 8, 15, 16, 40])
        low = x.astype(int) & (1 << bits) - 1
        low = np.where(low >= 1 << bits - 1, low - (1 << bits), low) if SMALL[code].startswith("int") else low
        np.testing.assert_array_equal(cast(x, 1, code).astype(int), low)
    assert cast(np.float32([1]), 1, code).dtype == dtype


@pytest.mark.parametrize(
    ("mode", "wanted"), [("up", [1, 2, 4, 4, 0.5]), ("down", [1, 1, 2, 2, 0.5]), ("nearest", [1, 2, 2, 4, 0.5])]
)
def test_powers_of_two(mode: str, wanted: list[float]) -> None:
    x = np.float32([1, 1.5, 2.5, 3.5, -0.5])
    np.testing.assert_array_equal(cast(x, 1, 24, round_mode=mode).astype(np.float32), wanted)
    ends = cast(np.float32([0, np.inf, np.nan, 3e38]), 1, 24, round_mode="up").astype(np.float64)
    np.testing.assert_array_equal(ends, [2.0**-127, 2.0**127, np.nan, 2.0**127])


def test_bf16_is_computed_with_in_f32() -> None:
    """Where numpy computes: a product's result is rounded once."""
    a, b = (np.random.default_rng(i).standard_normal((16, 16)).astype(ml_dtypes.bfloat16) for i in range(2))
    node = wire.node("Einsum", ["a", "b"], ["y"], equation="ij,jk->ik")
    fields = [
        (1, node),
        (11, declared("a", 16, 16, 16)),
        (11, declared("b", 16, 16, 16)),
        (12, declared("y", 16, 16, 16)),
    ]
    net = dnn.load_onnx(wire.model(wire.message(fields), 25), engine=engine(), fallback="numpy")
    found = net.run({"a": a, "b": b})["y"]
    assert found.dtype == ml_dtypes.bfloat16
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert (np.abs(found.astype(np.float64) - exact) <= 2.0**-8 * np.abs(exact) + 1e-5).all()


def nearest(x: Any, dtype: Any) -> Any:
    """The nearest finite numbers of a type of 8 or 4 bits."""
    every = np.arange(256 if "float8" in dtype.name else 16, dtype=np.uint8).view(dtype).astype(np.float64)
    known = every[np.isfinite(every)]
    return known[np.abs(np.clip(x, known.min(), known.max()).astype(np.float64)[..., None] - known).argmin(-1)]


def constant(g: dnn.Graph, values: Any, name: str) -> Any:
    """Of a type that numpy lacks."""
    return g.apply("Cast", np.float32(values), to=CODES[name])


@pytest.mark.parametrize("name", [*FLOATS.values(), "float4_e2m1fn"])
def test_quantization_to_floats(name: str) -> None:
    """The nearest numbers, saturated, by scales along an axis; and floats of them, of constants without a node."""
    scales, g = np.array([0.5, 0.03, 4], np.float32), dnn.Graph()
    x = np.random.default_rng(1).standard_normal((5, 3)).astype(np.float32) * 40
    small = g.apply("QuantizeLinear", g.input("x", (5, 3)), scales, constant(g, np.zeros(3), name), axis=1)
    y = g.apply("DequantizeLinear", small, scales, constant(g, np.zeros(3), name), axis=1)
    wanted = nearest(x / scales, extension_type(name)).astype(np.float32) * scales
    found = g.compile(y=y, engine=engine(), fallback="numpy").run({"x": x})["y"]
    np.testing.assert_array_equal(found, wanted)
    g = dnn.Graph()
    weights = g.apply("DequantizeLinear", constant(g, wanted / scales, name), scales, axis=1)
    net = g.compile(y=g.apply("MatMul", g.input("x", (2, 5)), weights), engine=engine())
    assert net.is_native
    bound = 5 * 2.0**-24 * np.abs(wanted).sum(0)
    assert (np.abs(net.run({"x": np.ones((2, 5), np.float32)})["y"] - wanted.sum(0, dtype=np.float64)) <= bound).all()


@pytest.mark.parametrize(("name", "code"), [("bfloat16", 0), ("float8_e8m0fnu", 1), ("bfloat16", 10)])
def test_scales_that_numpy_lacks(name: str, code: int) -> None:
    q, g = np.arange(24, dtype=np.uint8).reshape(4, 6), dnn.Graph()
    how: dict[str, Any] = {"output_dtype": code} if code else {}
    y = g.apply("DequantizeLinear", g.input("q", (4, 6), np.uint8), constant(g, 0.5, name), np.uint8(3), **how)
    found = g.compile(y=y, engine=engine(), fallback="numpy").run({"q": q})["y"]
    assert found.dtype == {0: extension_type("bfloat16"), 1: np.float32, 10: np.float16}[code]
    np.testing.assert_array_equal(found.astype(np.float32), (q.astype(np.float32) - 3) / 2)


@pytest.mark.parametrize(
    ("name", "point", "words"),
    [
        ("float8_e5m2", 1, "its zero point of float8_e5m2 has an element that is not 0"),
        ("float32", 0, "type float32 is no integer of up to 16 bits, and no float of 8 or 4"),
        ("bfloat16", 0, "type bfloat16 is no integer of up to 16 bits, and no float of 8 or 4"),
    ],
)
def test_zero_points_of_floats(name: str, point: int, words: str) -> None:
    g = dnn.Graph()
    y = g.apply("QuantizeLinear", g.input("x", (4, 6)), np.float32(1), constant(g, point, name))
    with pytest.raises(dnn.InvalidArguments, match=f"QuantizeLinear.*{words}"):
        g.compile(y=y, engine=engine(), fallback="numpy")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(element_types, "extension_type", lambda name: None)
    with pytest.raises(dnn.InvalidArguments, match="float8_e5m2, which ml_dtypes has: pip install ml_dtypes"):
        cast(np.float32([1]), 1, 19)


@pytest.mark.parametrize(
    ("code", "count", "numbers", "words"),
    [
        (22, 6, [1] * 6, r"has 6 elements in int32_data, int4 of dims \(6,\) needs 3"),
        (22, 6, [1, 2], r"has 2 elements in int32_data, int4 of dims \(6,\) needs 3"),
        (21, 2, [300], "has the element 300, which uint8 does not hold"),
        (3, 2, [1, 130], "has the element 130, which int8 does not hold"),
        (2, 1, [-129], "has the element -129, which uint8 does not hold"),
        (16, 1, [1 << 16], "has the element 65536, which uint16 does not hold"),
        (6, 1, [1 << 31], "has the element 2147483648, which int32 does not hold"),
    ],
)
def test_numbers_that_do_not_fit_their_type(code: int, count: int, numbers: list[int], words: str) -> None:
    tensor = wire.message([(1, count), (2, code), (8, "w"), *[(5, n % (1 << 64)) for n in numbers]])
    nodes = [wire.node("Cast", ["w"], ["v"], to=1), wire.node("Add", ["x", "v"], ["y"])]
    ends = [(5, tensor), (11, declared("x", 1, count)), (12, declared("y", 1, count))]
    with pytest.raises(dnn.InvalidArguments, match=f"tensor 'w' {words}"):
        dnn.load_onnx(wire.model(wire.message([(1, node) for node in nodes] + ends), 25), engine=engine())
