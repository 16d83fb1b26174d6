"""sgemm and its packed form: orders, leading dimensions, scales, what is not read, and what is refused."""

import itertools
from pathlib import Path

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.ops.calls import calls
from asmdnn.primitives.core.implementation import plans
from tests.primitives.tensors import assert_within
from tests.support.drawing import RANDOM
from tests.support.together import at_once

pytestmark = pytest.mark.usefixtures("isa")  # at each level, under a cap
UNIT_ROUNDOFF = 2.0**-24
SIZES = [(1, 1, 1), (5, 7, 9), (20, 33, 17), (30, 24, 200), (2, 70, 64)]
SCALES = [(1, 0), (1, 1), (2, 0), (2, 1), (-1, 0.5), (0, 2), (0, 0), (0.5, 1)]


def integers(*dims: int, order: str = "C") -> np.ndarray:
    return np.asarray(RANDOM.integers(-3, 4, dims), np.float32, order=order)  # type: ignore[call-overload, no-any-return]


def operands(m: int, n: int, k: int, transa: str, transb: str, order: str) -> tuple[np.ndarray, np.ndarray]:
    a = integers(*((m, k) if transa == "N" else (k, m)), order=order)
    return a, integers(*((k, n) if transb == "N" else (n, k)), order=order)


def op(trans: str, x: np.ndarray) -> np.ndarray:
    return (x.T if trans == "T" else x).astype(float)


def framed(m: int, n: int, order: str, beta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A matrix inside a larger one, which must keep its frame of sevens; NaN where c may not be read; what it held."""
    frame = np.full((m + 3, n + 5), 7, np.float32, order=order)  # type: ignore[call-overload]
    c = frame[1 : m + 1, 2 : n + 2]
    c[...] = integers(m, n)
    old = c.copy()
    if beta == 0:
        c[...] = np.nan
    return frame, c, old


def check_frame(frame: np.ndarray, c: np.ndarray, wanted: np.ndarray) -> None:
    assert_within(c, wanted, 0.0)
    c[...] = 7
    assert (frame == 7).all(), "bytes around c were written"


@pytest.mark.parametrize(("transa", "transb"), list(itertools.product("NT", repeat=2)))
@pytest.mark.parametrize("order", ["C", "F"], ids=["row-major", "column-major"])
def test_results(transa: str, transb: str, order: str) -> None:
    for (m, n, k), (alpha, beta) in itertools.product(SIZES, SCALES):
        a, b = operands(m, n, k, transa, transb, order)
        frame, c, old = framed(m, n, order, beta)
        if alpha == 0:
            a[...] = np.nan  # not read
        assert dnn.sgemm(transa, transb, alpha, a, b, beta, c) is c
        product = op(transa, a) @ op(transb, b) if alpha else 0.0
        check_frame(frame, c, alpha * product + (beta * old if beta else 0))


@pytest.mark.parametrize(("packa", "packb"), [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_packed(packa: bool, packb: bool, order: str) -> None:
    for (m, n, k), trans, beta in itertools.product(SIZES, "NT", (0, 1, 0.5)):
        a, b = operands(m, n, k, trans, trans, order)
        frame, c, old = framed(m, n, order, beta)
        x = dnn.gemm_pack("A", trans, 2.0, a) if packa else a
        y = dnn.gemm_pack("B", trans, 1.0 if packa else 2.0, b) if packb else b
        dnn.gemm_compute("P" if packa else trans, "P" if packb else trans, x, y, beta, c)
        check_frame(frame, c, 2.0 * op(trans, a) @ op(trans, b) + (beta * old if beta else 0))


def test_real_numbers() -> None:
    a, b = (RANDOM.uniform(-1, 1, dims).astype(np.float32) for dims in ((70, 300), (300, 90)))
    c = np.empty((70, 90), np.float32)
    dnn.sgemm("N", "N", 0.3, a, b, 0.0, c)
    wanted = np.float32(0.3) * (a.astype(float) @ b)
    assert_within(c, wanted, 320 * UNIT_ROUNDOFF * (np.abs(a).astype(float) @ np.abs(b)))


def test_empty_matrices() -> None:
    for m, n, k in ((0, 3, 4), (3, 0, 4), (0, 0, 0)):
        c = np.zeros((m, n), np.float32)
        assert dnn.sgemm("N", "N", 1.0, integers(m, k), integers(k, n), 0.0, c) is c
    c = integers(3, 4)
    wanted = 0.5 * c
    dnn.sgemm("N", "N", 1.0, integers(3, 0), integers(0, 4), 0.5, c)
    assert np.array_equal(c, wanted)


def test_scales_make_no_kernel() -> None:
    a, b, c = integers(13, 20), integers(20, 30), integers(13, 30)
    dnn.sgemm("N", "N", 0.25, a, b, 0.5, c)
    entries, planned = len(calls.entries), len(plans.entries)
    for alpha, beta in ((0.75, 0.125), (3.0, -1.0), (2.0, 7.0)):
        dnn.sgemm("N", "N", alpha, a, b, beta, c)
    assert (len(calls.entries), len(plans.entries)) == (entries, planned)


def test_sizes_and_buffers_of_the_user() -> None:
    b = integers(20, 33)
    size = dnn.gemm_pack_get_size("B", 5, 33, 20)
    packed = dnn.gemm_pack("B", "N", 1.0, b)
    assert packed.nbytes == size
    own = np.full(size + 8, 255, np.uint8)
    assert dnn.gemm_pack("B", "N", 1.0, b, out=own) is own
    assert np.array_equal(own[:size][:40], packed[:40])
    assert (own[size:] == 255).all()
    a, c = integers(4, 20), np.empty((4, 33), np.float32)
    assert np.array_equal(dnn.gemm_compute("N", "P", a, own, 0.0, c), a @ b)
    assert dnn.gemm_pack_get_size("A", 5, 33, 20) >= 64 + 4 * 5 * 20


def test_saved_and_mapped_back(tmp_path: Path) -> None:
    b, a = integers(40, 50), integers(3, 40)
    dnn.gemm_pack("B", "N", 1.0, b).tofile(tmp_path / "b.packed")
    mapped = np.memmap(tmp_path / "b.packed", np.uint8, "r")
    c = np.empty((3, 50), np.float32)
    assert np.array_equal(dnn.gemm_compute("N", "P", a, mapped, 0.0, c), a @ b)


def test_one_packed_buffer_in_many_threads() -> None:
    b = integers(60, 70)
    packed, wrong = dnn.gemm_pack("B", "N", 1.0, b), []

    def work(seed: int) -> None:
        a = np.random.default_rng(seed).integers(-3, 4, (9, 60)).astype(np.float32)
        c = np.empty((9, 70), np.float32)
        for _ in range(30):
            c[...] = np.nan
            if not np.array_equal(dnn.gemm_compute("N", "P", a, packed, 0.0, c), a @ b):
                wrong.append(seed)

    at_once(work)
    assert wrong == []


A, B, OUT = integers(4, 6), integers(6, 5), np.zeros((4, 5), np.float32)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("X", "N", 1.0, A, B, 0.0, OUT), "transa must be"),
        (("N", 3, 1.0, A, B, 0.0, OUT), "transb must be"),
        (("N", "N", "1", A, B, 0.0, OUT), "alpha must be a number"),
        (("N", "N", 1.0, A, B, None, OUT), "beta must be a number"),
        (("T", "N", 1.0, A, B, 0.0, OUT), "b has 6 rows, a has 4 columns"),
        (("N", "N", 1.0, A, B, 0.0, np.zeros((4, 4), np.float32)), "c has dims"),
        (("N", "N", 1.0, A.astype(float), B, 0.0, OUT), "a must be a float32 matrix"),
        (("N", "N", 1.0, A, B[0], 0.0, OUT), "b must be a float32 matrix"),
        (("N", "N", 1.0, A, B, 0.0, OUT.tolist()), "c must be an array in memory"),
        (("N", "N", 1.0, A, B, 0.0, np.broadcast_to(np.float32(0), (4, 5))), "share memory|read-only"),
    ],
)
def test_bad_arguments(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        dnn.sgemm(*arguments)  # type: ignore[arg-type]


def test_c_may_not_overlap() -> None:
    both = integers(8, 8)
    with pytest.raises(dnn.InvalidArguments, match="c overlaps a"):
        dnn.sgemm("N", "N", 1.0, both[:4], integers(8, 8), 0.0, both[2:6])


def test_packed_operands_that_do_not_fit(isa: str) -> None:
    packed = dnn.gemm_pack("B", "N", 1.0, B, engine=dnn.Engine(isa=isa))

    def compute(a: np.ndarray, b: np.ndarray, transa: str = "N", transb: str = "P") -> None:
        dnn.gemm_compute(transa, transb, a, b, 0.0, OUT, engine=dnn.Engine(isa=isa))

    compute(A, packed)
    assert np.array_equal(OUT, A @ B)
    for dims in ((), (5,), (2, 3, 4)):
        with pytest.raises(dnn.InvalidArguments, match=f"x must be a float32 matrix, not float32 of {len(dims)} dims"):
            dnn.gemm_pack("A", "N", 1.0, np.zeros(dims, np.float32))
    with pytest.raises(dnn.InvalidArguments, match="b has 6 rows, a has 7 columns"):
        compute(integers(4, 7), packed)
    with pytest.raises(dnn.InvalidArguments, match="packed as 'B', here it is used as 'A'"):
        compute(packed, B, "P", "N")
    with pytest.raises(dnn.InvalidArguments, match="b must be the array of bytes"):
        compute(A, B)
    with pytest.raises(dnn.InvalidArguments, match="does not start with the header"):
        compute(A, np.zeros(500, np.uint8))
    with pytest.raises(dnn.InvalidArguments, match="bytes, 6 x 5 need"):
        compute(A, packed[:-4])
    other = packed.copy()
    other_isa = "avx2" if isa == "avx512_core" else "avx512_core"
    other[16:32] = np.frombuffer(other_isa.encode().ljust(16, b"\0"), np.uint8)
    with pytest.raises(dnn.InvalidArguments, match=f"packed for {other_isa}, this engine computes with {isa}"):
        compute(A, other)


def test_bad_packing() -> None:
    with pytest.raises(dnn.InvalidArguments, match="identifier must be"):
        dnn.gemm_pack("C", "N", 1.0, B)
    with pytest.raises(dnn.InvalidArguments, match="m must be an integer"):
        dnn.gemm_pack_get_size("A", -1, 2, 3)
    with pytest.raises(dnn.InvalidArguments, match="the packed operand needs"):
        dnn.gemm_pack("B", "N", 1.0, B, out=np.zeros(100, np.uint8))
    with pytest.raises(dnn.InvalidArguments, match="out must be an array of uint8, not of float32"):
        dnn.gemm_pack("B", "N", 1.0, B, out=np.zeros(1000, np.float32))  # type: ignore[arg-type]
