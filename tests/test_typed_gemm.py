"""gemm of bytes and halves, plain and packed: values against sums of int64 and f64, offsets, and what is refused."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.blas.formats import format_of
from asmdnn.isa.levels import LEVELS, Isa
from tests.primitives.tensors import assert_within
from tests.support.drawing import RANDOM
from tests.test_blas import framed, op

ml_dtypes = pytest.importorskip("ml_dtypes", reason="numpy has no bf16: pip install ml_dtypes")

pytestmark = pytest.mark.usefixtures("isa")  # at each level, under a cap
UNIT_ROUNDOFF = 2.0**-24
SIZES = [(1, 1, 1), (5, 7, 9), (3, 1, 40), (20, 33, 17), (2, 70, 64)]
BYTES = (np.uint8, np.int8)
MOST, LEAST = 2**31 - 1, -(2**31)
OFFSETS = [("F", 0, 0), ("R", -7, 100), ("C", -128, -128), ("F", MOST, LEAST)]
HALVES = [(ml_dtypes.bfloat16, dnn.gemm_bf16bf16f32), (np.float16, dnn.gemm_f16f16f32)]


def octets(dtype: Any, *dims: int, order: str = "C") -> np.ndarray:
    return np.asarray(RANDOM.integers(0, 256, dims), np.uint8, order=order).view(dtype)  # type: ignore[call-overload, no-any-return]


def spread(offsetc: str, co: np.ndarray) -> np.ndarray:
    return co[:, None] if offsetc == "C" else co


def product(a: np.ndarray, ao: int, b: np.ndarray, bo: int) -> np.ndarray:
    """Modulo 2^32, of Python's integers, which have no end."""
    sums = (a.astype(object) + ao) @ (b.astype(object) + bo)
    return (sums & 2**32 - 1).astype(np.uint32).view(np.int32)  # type: ignore[no-any-return]


def packed(side: str, trans: str, x: np.ndarray) -> tuple[str, np.ndarray]:
    return "P", dnn.gemm_pack(side, trans, 1.0, x)


@pytest.mark.parametrize(("first", "second"), list(itertools.product(BYTES, BYTES)))
@pytest.mark.parametrize(("offsetc", "ao", "bo"), OFFSETS)
def test_bytes(first: Any, second: Any, offsetc: str, ao: int, bo: int) -> None:
    for (m, n, k), (pack_a, pack_b), beta in itertools.product(SIZES, itertools.product((0, 1), repeat=2), (0, 1)):
        transa, transb = "NT"[k % 2], "NT"[n % 2]
        a = octets(first, *((m, k) if transa == "N" else (k, m)))
        b = octets(second, *((k, n) if transb == "N" else (n, k)), order="F" if m > 2 else "C")
        c, co = octets(np.int32, m, 4 * n), octets(np.int32, 4 * {"F": 1, "C": m, "R": n}[offsetc])
        old = c.astype(np.int64)
        x = packed("A", transa, a) if pack_a else (transa, a)
        y = packed("B", transb, b) if pack_b else (transb, b)
        made = dnn.gemm_x8x8s32(x[0], y[0], offsetc, 1.0, x[1], ao, y[1], bo, beta, c, co)
        assert made is c
        op_a, op_b = a.T if transa == "T" else a, b.T if transb == "T" else b
        wanted = product(op_a, ao, op_b, bo).astype(np.int64) + beta * old + spread(offsetc, co)
        assert np.array_equal(c, wanted.astype(np.int32)), (m, n, k, pack_a, pack_b, beta)


@pytest.mark.parametrize("offsetc", ["F", "C", "R"])
def test_scaled_bytes_are_rounded_and_saturate(offsetc: str) -> None:
    a, b = octets(np.uint8, 20, 64), octets(np.int8, 64, 33)
    sums = product(a, 3, b, -5).astype(float)
    for alpha, beta in ((0.5, 0), (0.3, -1.5), (-2e4, 0.5), (0.0, 0.25), (1.0, 3.0)):
        c = RANDOM.integers(-1000, 1000, (20, 33)).astype(np.int32)
        co = RANDOM.integers(-1000, 1000, {"F": 1, "C": 20, "R": 33}[offsetc])
        exact = float(np.float32(alpha)) * sums + float(np.float32(beta)) * c + spread(offsetc, co)
        dnn.gemm_x8x8s32("N", "N", offsetc, alpha, a, 3, b, -5, beta, c, co)
        assert np.array_equal(c, np.clip(np.rint(exact), LEAST, MOST))
        assert alpha > -1 or {LEAST, MOST} <= {*c.ravel()}


def test_sums_are_modulo_2_to_the_32() -> None:
    """From 65,794 products of 255 and 128 on a sum may pass 2^31, as docs/low-precision.md has it."""
    k = 65_794
    assert 255 * -128 * k < LEAST <= 255 * -128 * (k - 1)
    a, b = np.full((2, k), 255, np.uint8), np.full((k, 17), -128, np.int8)
    c = np.empty((2, 17), np.int32)
    dnn.gemm_x8x8s32("N", "P", "F", 1.0, a, 0, dnn.gemm_pack("B", "N", 1.0, b), 0, 0.0, c, 0)
    assert (c == 255 * -128 * k + 2**32).all()


@pytest.mark.parametrize(("dtype", "gemm"), HALVES)
def test_halves(dtype: Any, gemm: Callable[..., Any]) -> None:
    for (m, n, k), beta, (pack_a, pack_b) in itertools.product(SIZES, (0, 1, 0.5), itertools.product((0, 1), repeat=2)):
        trans, order = "NT"[m % 2], "CF"[n % 2]
        a = RANDOM.integers(-3, 4, (m, k) if trans == "N" else (k, m)).astype(dtype)
        b = RANDOM.integers(-3, 4, (k, n) if trans == "N" else (n, k)).astype(dtype)
        frame, c, old = framed(m, n, order, beta)
        x = packed("A", trans, a) if pack_a else (trans, a)
        y = packed("B", trans, b) if pack_b else (trans, b)
        assert gemm(x[0], y[0], 2.0 if beta == 0.5 else 1.0, x[1], y[1], beta, c) is c
        wanted = (2 if beta == 0.5 else 1) * (op(trans, a) @ op(trans, b)) + (beta * old if beta else 0)
        assert np.array_equal(c, wanted)
        c[...] = 7
        assert (frame == 7).all(), "bytes around c were written"


@pytest.mark.parametrize(("dtype", "gemm"), HALVES)
def test_real_numbers(dtype: Any, gemm: Callable[..., Any]) -> None:
    """Sums of f32: k products, each of whose numbers was rounded before, and alpha."""
    a, b = (RANDOM.uniform(-1, 1, dims).astype(dtype) for dims in ((30, 300), (300, 90)))
    c = np.empty((30, 90), np.float32)
    gemm("N", "P", 0.3, a, dnn.gemm_pack("B", "N", 1.0, b), 0.0, c)
    x, y = a.astype(float), b.astype(float)
    assert_within(c, float(np.float32(0.3)) * (x @ y), 302 * UNIT_ROUNDOFF * (np.abs(x) @ np.abs(y)))


def test_what_is_not_read() -> None:
    a, b, c = np.full((3, 4), np.nan, np.float16), np.full((4, 5), np.nan, np.float16), np.ones((3, 5), np.float32)
    assert (dnn.gemm_f16f16f32("N", "N", 0.0, a, b, 2.0, c) == 2).all()
    c[...] = np.nan
    assert (dnn.gemm_f16f16f32("N", "N", 0.0, a, b, 0.0, c) == 0).all()


def test_empty_matrices() -> None:
    for m, n, k in ((0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)):
        a, b, c = np.ones((m, k), np.uint8), np.ones((k, n), np.int8), np.ones((m, n), np.int32)
        for y in (("N", b), packed("B", "N", b)):
            dnn.gemm_x8x8s32("N", y[0], "F", 1.0, a, 3, y[1], 4, 1.0, c, 2)
        assert (c == 1 + 2 * (2 + k * 4 * 5)).all()
        out = np.ones((m, n), np.float32)
        x, y = (packed(side, "N", z.astype(np.float16)) for side, z in (("A", a), ("B", b)))
        dnn.gemm_f16f16f32("P", "P", 1.0, x[1], y[1], 1.0, out)
        assert (out == 1 + k).all()


@pytest.mark.parametrize("dtype", [dnn.f32, dnn.bf16, dnn.f16, dnn.u8, dnn.s8])
def test_sizes_and_files(dtype: dnn.DataType, tmp_path: Path) -> None:
    """Rows that would share sets of L1 are a line further apart; what is packed may be mapped."""
    x = dnn.Memory(dnn.MemoryDesc((40, 2048), dtype, "ab"))
    for side, (m, n, k) in {"A": (40, 0, 2048), "B": (0, 2048, 40)}.items():
        made = dnn.gemm_pack(side, "N", 1.0, x if dtype == dnn.bf16 else x.numpy())
        assert made.nbytes == dnn.gemm_pack_get_size(side, m, n, k, dtype=dtype)
    a, b, c = octets(np.uint8, 3, 40), octets(np.uint8, 40, 50), np.empty((3, 50), np.int32)
    dnn.gemm_pack("B", "N", 1.0, b).tofile(tmp_path / "b.packed")
    mapped = np.memmap(tmp_path / "b.packed", np.uint8, "r")
    assert np.array_equal(dnn.gemm_x8x8s32("N", "P", "F", 1, a, 0, mapped, 0, 0, c, 0), product(a, 0, b, 0))


def test_words_without_ml_dtypes() -> None:
    """Memory says what words are."""
    a, b, c = np.full((2, 3), 0x3FC0, np.uint16), np.full((3, 4), 0xC000, np.uint16), np.empty((2, 4), np.float32)
    x, y = (dnn.Memory.from_array(words, dnn.bf16) for words in (a, b))
    for given in (y, dnn.gemm_pack("B", "N", 1.0, y)):
        trans = "P" if isinstance(given, np.ndarray) else "N"
        assert (dnn.gemm_bf16bf16f32("N", trans, 1.0, x, given, 0.0, c) == -9).all()


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
@pytest.mark.parametrize("dtype", [dnn.bf16, dnn.f16, dnn.u8, dnn.s8], ids=str)
def test_no_level_packs_again(level: Isa, dtype: dnn.DataType) -> None:
    engine = dnn.Engine(isa=level.name)
    formats = {side: format_of(side, (64, 64), dtype, engine) for side in "AB"}
    desc = dnn.MatMul(formats["A"], formats["B"], dnn.MemoryDesc((64, 64), dnn.f32, "ab"))
    pd = dnn.primitive_desc(desc, engine=engine)
    assert pd.weights_desc == formats["B"]
    assert "pack" not in pd.implementation, pd.implementation


A, B, C = octets(np.uint8, 4, 6), octets(np.int8, 6, 5), np.zeros((4, 5), np.int32)
VALID = {
    "transa": "N", "transb": "N", "offsetc": "F", "alpha": 1.0, "a": A, "ao": 0, "b": B, "bo": 0, "beta": 0.0, "c": C,
    "co": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"transa": "X"}, "^transa must be 'N', 'T' or, if packed, 'P', not 'X'$"),
        ({"transb": "P"}, "^b must be the array of bytes that gemm_pack made$"),
        ({"offsetc": "X"}, "^offsetc must be one of F, C, R, not 'X'$"),
        ({"alpha": "1"}, "^alpha must be a number"),
        ({"alpha": float("nan")}, "^alpha must be a finite number, not nan"),
        ({"beta": 1e300}, r"^beta must be a finite number, not 1e\+300"),
        ({"ao": 2**31}, "^ao must be an integer of 32 bits, not 2147483648"),
        ({"bo": 0.5}, "^bo must be an integer of 32 bits, not 0.5"),
        ({"co": 0.5}, "^co must be integers of 32 bits"),
        ({"co": 2**40}, "^co must be integers of 32 bits"),
        ({"co": [1, 2]}, r"^co has shape \(2,\), for offsetc 'F' it must have 1 element"),
        ({"offsetc": "C", "co": np.zeros(5, np.int32)}, r"^co has shape \(5,\), for offsetc 'C' it must have 4"),
        ({"offsetc": "R", "co": np.zeros((1, 5), np.int32)}, r"^co has shape \(1, 5\)"),
        ({"a": A.astype(np.float32)}, "^a must be a matrix of u8 or s8, not f32 of 2 dims"),
        ({"b": B[0]}, "^b must be a matrix of u8 or s8, not s8 of 1 dim"),
        ({"transa": "T"}, r"^b has 6 rows, a has 4 columns \(after transposing\)"),
        ({"c": np.zeros((4, 4), np.int32)}, r"^c has dims \(4, 4\), a and b make it \(4, 5\)"),
        ({"c": np.zeros((4, 5), np.float32)}, "^c must be an array of int32, not of float32"),
        ({"c": np.broadcast_to(np.int32(0), (4, 5))}, "share memory|read-only"),
    ],
)
def test_bad_arguments(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        dnn.gemm_x8x8s32(**VALID | changed)


def test_packed_operands_that_do_not_fit() -> None:
    made = dnn.gemm_pack("B", "N", 1.0, B)
    for changed, message in (
        ({"a": made, "transa": "P"}, "^a was packed as 'B', here it is used as 'A'"),
        ({"b": made[:-4], "transb": "P"}, "^b has .* bytes, 6 x 5 need"),
        ({"b": dnn.gemm_pack("B", "N", 1.0, B.astype(np.float32)), "transb": "P"},
         "^b was packed of f32, here it must be of u8 or s8$"),
    ):  # fmt: skip
        with pytest.raises(dnn.InvalidArguments, match=message):
            dnn.gemm_x8x8s32(**VALID | changed)


def test_c_may_not_overlap() -> None:
    room = np.zeros(4000, np.uint8)
    c = room[:80].view(np.int32).reshape(4, 5)
    for name, x in (("a", room[60:84].reshape(4, 6)), ("b", room[:30].reshape(6, 5))):
        with pytest.raises(dnn.InvalidArguments, match=f"^c overlaps {name}, give it memory of its own$"):
            dnn.gemm_x8x8s32(**VALID | {"c": c, name: x})


def test_bad_packing() -> None:
    with pytest.raises(dnn.InvalidArguments, match=r"^alpha is 2.0 for u8: pass 1 here, and alpha to the product$"):
        dnn.gemm_pack("A", "N", 2.0, A)
    with pytest.raises(dnn.InvalidArguments, match=r"^x must be a matrix of f32, bf16, f16, u8, s8, not s8 of 1 dim$"):
        dnn.gemm_pack("A", "N", 1.0, B[0])
    with pytest.raises(dnn.InvalidArguments, match=r"^dtype must be one of f32, bf16, f16, u8, s8, not s32$"):
        dnn.gemm_pack_get_size("B", 2, 3, 4, dtype=dnn.s32)
    with pytest.raises(dnn.InvalidArguments, match=r"^b was packed of s8, here it must be of f32$"):
        dnn.gemm_compute("N", "P", A.astype(np.float32), dnn.gemm_pack("B", "N", 1.0, B), 0, C.astype(np.float32))


def test_packed_for_another_level(isa: str) -> None:
    made = dnn.gemm_pack("B", "N", 1.0, B, engine=dnn.Engine(isa=isa))
    made[16:32] = np.frombuffer(b"avx512_core_bf16", np.uint8)
    with pytest.raises(dnn.InvalidArguments, match=f"^b was packed for avx512_core_bf16, this .* {isa}: pack it"):
        dnn.gemm_x8x8s32(**VALID | {"b": made, "transb": "P", "engine": dnn.Engine(isa=isa)})
