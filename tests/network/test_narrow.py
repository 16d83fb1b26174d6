"""Integers of 8 and 16 bits between kernels: native, and numpy's bits, whatever wraps around."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine

pytestmark = pytest.mark.isa("avx2")
TYPES = ("uint8", "int8", "uint16", "int16")
FUNCTIONS: dict[str, Any] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Max": np.maximum, "Min": np.minimum, "Equal": np.equal,
    "Less": np.less, "GreaterOrEqual": np.greater_equal, "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
}  # fmt: skip


def numbers(dtype: str) -> tuple[Any, Any]:
    """Of 8 bits every pair; of 16 the ends, and some between."""
    info = np.iinfo(dtype)
    if info.bits == 8:
        every = np.arange(info.min, info.max + 1).astype(dtype)
        return np.repeat(every, 256).reshape(256, 256), np.tile(every, 256).reshape(256, 256)
    ends = np.array([info.min, info.min + 1, 0, 1, 2, 255, 256, 257, info.max - 1, info.max])
    some = np.concatenate([ends, np.random.default_rng(5).integers(info.min, info.max, 90)]).astype(dtype)
    return np.repeat(some, 100).reshape(100, 100), np.tile(some, 100).reshape(100, 100)


def result(op: str, *operands: Any, **attributes: Any) -> Any:
    """Of a network of one operator, in one native call."""
    g = dnn.Graph(op)
    symbols = [g.input(f"x{i}", x.shape, x.dtype) for i, x in enumerate(operands)]
    net = g.compile(y=g.apply(op, *symbols, **attributes), engine=engine(2))
    assert net.refused == {}
    net.check()
    feeds = {f"x{i}": x for i, x in enumerate(operands)}
    assert all(difference.fits for difference in net.verify(feeds))
    return net.run(feeds)["y"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", FUNCTIONS)
def test_pairs(op: str, dtype: str) -> None:
    a, b = numbers(dtype)
    found = result(op, a, b)
    with np.errstate(all="ignore"):
        wanted = FUNCTIONS[op](a, b)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", TYPES)
def test_quotients_and_remainders(dtype: str) -> None:
    a, b = numbers(dtype)
    b = np.where(b == 0, 3, b).astype(dtype)
    wide = a.astype(np.int64), b.astype(np.int64)
    quotient = np.trunc(wide[0] / wide[1]).astype(np.int64).astype(dtype)
    np.testing.assert_array_equal(result("Div", a, b), quotient)
    np.testing.assert_array_equal(result("Mod", a, b), np.mod(*wide))
    np.testing.assert_array_equal(result("Mod", a, b, fmod=1), np.fmod(*wide))


@pytest.mark.parametrize("dtype", TYPES)
def test_shifts(dtype: str) -> None:
    """By 0 to the type's bits and more; the bits that are moved out are lost, the sign is kept to the right."""
    a, bits = numbers(dtype)[0], np.iinfo(dtype).bits
    y = (np.arange(a.size) % (bits + 3)).reshape(a.shape).astype(dtype)
    wide = a.astype(object)
    left = np.vectorize(lambda x, n: int(x) << int(n))(wide, y).astype(object) % (1 << bits)
    np.testing.assert_array_equal(result("BitShift", a, y, direction="LEFT"), left.astype(f"uint{bits}").view(dtype))
    right = np.vectorize(lambda x, n: int(x) >> int(n))(wide, y)
    np.testing.assert_array_equal(result("BitShift", a, y, direction="RIGHT"), right.astype(dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_of_one(dtype: str) -> None:
    a, _ = numbers(dtype)
    np.testing.assert_array_equal(result("BitwiseNot", a), ~a)
    least = np.array(np.iinfo(dtype).max // 3, dtype)
    g = dnn.Graph("clip")
    net = g.compile(y=g.apply("Clip", g.input("x", a.shape, a.dtype), least), engine=engine())
    np.testing.assert_array_equal(net.run({"x": a})["y"], np.maximum(a, least))


@pytest.mark.parametrize("dtype", TYPES)
def test_a_chain(dtype: str) -> None:
    """What wrapped around is computed with, in one call."""
    a, b = numbers(dtype)
    g = dnn.Graph("chain")
    x, y = (g.input(name, a.shape, a.dtype) for name in ("x", "y"))
    sums = g.apply("Add", x, y)
    z = g.apply("BitwiseXor", g.apply("Mul", sums, y), g.apply("BitShift", x, sums, direction="RIGHT"))
    net = g.compile(z=z, engine=engine(2))
    with np.errstate(all="ignore"):
        s = a + b
        count = np.minimum(s.astype(np.int64) % (1 << np.iinfo(dtype).bits), 63)
        wanted = (s * b) ^ (a.astype(np.int64) >> count).astype(dtype)
    np.testing.assert_array_equal(net.run({"x": a, "y": b})["z"], wanted)


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_wide_ones_without_a_sign(dtype: str) -> None:
    """Up to a limit, which is checked; differences may be below 0, which f32 has not."""
    a, b = np.array([0, 3, 1 << 21, 77], dtype), np.array([5, 3, 1 << 21, 1], dtype)
    for op in ("Add", "Max", "Less", "Div"):
        own = {"Add": np.add, "Max": np.maximum, "Less": np.less, "Div": np.floor_divide}[op]
        np.testing.assert_array_equal(result(op, a, b), own(a, b))
    g = dnn.Graph("sum")
    net = g.compile(y=g.apply("Add", g.input("a", (4,), dtype), g.input("b", (4,), dtype)), engine=engine())
    with pytest.raises(dnn.InvalidArguments, match=r"a\[1\] is 2147483648, which is read as an integer of 24 bits"):
        net.run({"a": np.array([0, 1 << 31, 0, 0], dtype), "b": b})
    np.testing.assert_array_equal(net.run({"a": a, "b": b})["y"], a + b)
    with pytest.raises(dnn.Unimplemented, match="Sub"):
        g = dnn.Graph("difference")
        g.compile(y=g.apply("Sub", g.input("a", (4,), dtype), g.input("b", (4,), dtype)), engine=engine())


def test_bytes_that_are_computed_are_read_as_bytes() -> None:
    """By what reads bytes: a scale makes floats of them."""
    g = dnn.Graph("bytes")
    x = g.input("x", (4, 6), np.uint8)
    sums = g.apply("Add", x, np.uint8(200))
    net = g.compile(y=g.apply("DequantizeLinear", sums, np.float32(0.5), np.uint8(3)), engine=engine())
    given = np.arange(24, dtype=np.uint8).reshape(4, 6) * 5
    np.testing.assert_array_equal(net.run({"x": given})["y"], ((given + np.uint8(200)).astype(np.float32) - 3) / 2)
