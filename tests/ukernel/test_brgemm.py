"""Batch-reduced products have numpy's values, for all types, levels and forms of a batch, and touch nothing else."""

import itertools
from typing import Any

import numpy as np
import pytest

from asmdnn import ukernel
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.isa.dot import OFFERED, levels_of
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.post_ops import Binary, Eltwise
from asmdnn.types import f32
from asmdnn.ukernel.brgemm import BrgemmKernel
from tests.ukernel.cases import guarded, integers, numpy_type, run

CASES = [
    (str(types.src), str(types.weights), str(level))
    for types in OFFERED
    for level in levels_of(types, "avx512_core_amx") + levels_of(types, "avx2_vnni")
]
PAIRS = sorted(set(CASES))
SIZES = ((1, 1, 1), (5, 7, 3), (6, 16, 16), (7, 35, 21))


def made(a: str, b: str, size: tuple[int, int, int], isa: str, **more: Any) -> BrgemmKernel:
    kernel = ukernel.brgemm(*size, a, b, isa=isa, **more)
    assert isinstance(kernel, BrgemmKernel)
    assert kernel.isa == isa  # no level below stands in for it
    return kernel


def packed(b: Any, kernel: BrgemmKernel) -> Any:
    """By numpy: groups of k side by side, zeros after k and n."""
    shape = kernel.shape
    group, (_, n, k) = shape.types.group, shape.size
    width = shape.b_row_bytes // shape.types.weights_bytes
    found = np.zeros((len(b), -(-k // group) * group, width), b.dtype)
    found[:, :k, :n] = b
    return np.ascontiguousarray(found.reshape(len(b), -1, group, width).swapaxes(2, 3))


def product(a: Any, b: Any) -> Any:
    return np.einsum("bmk,bkn->mn", a.astype(np.float64), b.astype(np.float64))


def starts(kernel: BrgemmKernel, b: Any) -> list[Any]:
    return [ukernel.compensation(b, kernel)] if kernel.shift else []


@pytest.mark.parametrize(("a", "b", "isa"), PAIRS)
def test_types(a: str, b: str, isa: str) -> None:
    rng = np.random.default_rng(1)
    for size, batch in zip(SIZES, (2, 1, 3, 2), strict=True):
        kernel = made(a, b, size, isa)
        m, n, k = size
        left, right = integers(rng, a, batch, m, k), integers(rng, b, batch, k, n)
        dst = np.full((m, n), 77, numpy_type(str(kernel.shape.dst)))
        for at_end in (True, False)[: 1 + kernel.runs_here]:
            arguments = (left, packed(right, kernel), batch, *starts(kernel, right), dst)
            *_, found = run(kernel, *arguments, at_end=at_end)
            assert (found if kernel.runs_here else dst).tolist() == product(left, right).tolist()


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
@pytest.mark.parametrize("size", [(13, 40, 20), (33, 9, 4), (12, 100, 17)])
def test_blocks_and_panels_in_loops(isa: str, size: tuple[int, int, int]) -> None:
    kernel, (m, n, k) = made("f32", "f32", size, isa, ldb=size[1] + 3, lda=size[2] + 1, ldd=size[1] + 2), size
    high, wide = kernel.shape.cut()
    assert m > high or n > wide * 8
    rng = np.random.default_rng(2)
    a, b = integers(rng, "f32", 2, m, k + 1), integers(rng, "f32", 2, k, n + 3)
    dst = np.full((m, n + 2), 5, np.float32)
    run_in_place(kernel, a, b, 2, dst)
    assert dst[:, :n].tolist() == product(a[..., :k], b[..., :n]).tolist()
    assert (dst[:, n:] == 5).all()


def run_in_place(kernel: BrgemmKernel, *arguments: Any) -> None:
    (kernel if kernel.runs_here else kernel.emulate)(*arguments)


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
def test_batch_by_offset_and_by_address(isa: str) -> None:
    rng, (m, n, k) = np.random.default_rng(3), (5, 19, 9)
    by_offset = made("f32", "f32", (m, n, k), isa, batch="offset", ldb=n)
    a, b = integers(rng, "f32", 4, m, k), integers(rng, "f32", 4, k, n)
    order = [(3, 0), (1, 1), (3, 2)]
    offsets = np.array([(i * a[0].nbytes, j * b[0].nbytes) for i, j in order], np.int64)
    wanted = sum(a[i].astype(float) @ b[j] for i, j in order)
    dst = np.empty((m, n), np.float32)
    if not by_offset.runs_here:
        pytest.skip(f"this CPU lacks {isa}, and the emulator holds reads to one a and one b, which offsets leave")
    by_offset(a, b, offsets, 3, dst)
    assert dst.tolist() == wanted.tolist()
    by_address = made("f32", "f32", (m, n, k), isa, batch="address", ldb=n)
    lefts, rights = [guarded(a[i], True) for i, _ in order], [guarded(b[j], True) for _, j in order]
    addresses = [np.array([x.ctypes.data for x in side], np.uint64) for side in (lefts, rights)]
    dst = guarded(np.zeros((m, n), np.float32), True)
    by_address.raw(addresses[0].ctypes.data, addresses[1].ctypes.data, 3, dst.ctypes.data)
    assert dst.tolist() == wanted.tolist()


def test_an_empty_batch_is_c_or_zero() -> None:
    a, b, c = np.ones((1, 3, 4), np.float32), np.ones((1, 4, 8), np.float32), np.full((3, 8), 7, np.float32)
    kernel = made("f32", "f32", (3, 8, 4), "avx2", accumulate=True)
    run_in_place(kernel, a, b, 0, c, dst := np.empty((3, 8), np.float32))
    assert (dst == 7).all()
    run_in_place(kernel, a, b, 1, c, c)  # c may be dst
    assert (c == 11).all()
    run_in_place(made("f32", "f32", (3, 8, 4), "avx2"), a, b, 0, dst)
    assert (dst == 0).all()


@pytest.mark.parametrize(
    ("a", "b", "isa"), [("u8", "s8", "avx2"), ("s8", "s8", "avx512_core_vnni"), ("f32", "f32", "avx2")]
)
def test_attributes(a: str, b: str, isa: str) -> None:
    """Scales of src and of each column, a bias of each column, one of each element, relu, and dst's scale."""
    m, n, k = 7, 21, 8
    ops = [
        Binary("add", MemoryDesc((1, n), f32, "ab")),
        Eltwise("relu"),
        Binary("mul", MemoryDesc((m, 1), f32, "ab")),
        Binary("sub", MemoryDesc((m, n), f32, "ab")),
    ]
    attr = Attr(ops, scales={"src": 0, "weights": 2, "dst": 0}, zero_points={"dst": 0} if a != "f32" else None)
    kernel = made(a, b, (m, n, k), isa, dst="s8" if a != "f32" else "f32", attr=attr, accumulate=True)
    rng = np.random.default_rng(4)
    left, right = integers(rng, a, 1, m, k), integers(rng, b, 1, k, n)
    c = rng.integers(-9, 9, (m, n)).astype(numpy_type(str(kernel.shape.types.sums)))
    src_scale, columns, dst_scale = np.float32([0.5]), 2.0 ** rng.integers(-2, 2, n).astype("f4"), np.float32([2])
    bias, rows, each = (
        rng.integers(-8, 8, n).astype("f4"),
        np.float32([1, 2, 4, 1, 2, 1, 1]),
        integers(rng, "f32", m, n),
    )
    named = {"src_scales": src_scale, "weights_scales": columns, "dst_scales": dst_scale, "binary_0": bias}
    named |= {"binary_2": rows, "binary_3": each, "dst_zero_points": np.int32([3])}
    more = [named[x.name] for x in kernel.shape.chain.buffers]
    dst = np.zeros((m, n), numpy_type(str(kernel.shape.dst)))
    given = (left, packed(right, kernel), 1, c, *starts(kernel, right), dst, *more)
    found = run(kernel, *given)[len(given) - len(more) - 1]
    sums = (product(left, right) + c) * 0.5 * columns + bias
    wanted = (np.maximum(sums, 0) * rows[:, None] - each) / 2 + (3 if a != "f32" else 0)
    if a != "f32":
        wanted = np.clip(np.rint(wanted), -128, 127)
    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("a", "b", "isa"), [("f32", "f32", "avx2"), ("bf16", "bf16", "avx512_core_bf16"), ("u8", "s8", "avx512_core")]
)
def test_proof(a: str, b: str, isa: str) -> None:
    proof = made(a, b, (9, 20, 10), isa, attr="relu").prove(batch=range(4))
    assert proof.is_bounded and proof.cases == 4 and not proof.unbounded


def test_transform_is_what_brgemm_reads() -> None:
    rng = np.random.default_rng(5)
    for (a, b, isa), (k, n) in itertools.product(
        [x for x in PAIRS if x[0] != "f32" or x[1] == "f32"], [(1, 1), (7, 33), (8, 16)]
    ):
        kernel, transform = made(a, b, (1, n, k), isa), ukernel.transform(k, n, b, isa=isa, ld=n + 1)
        src = integers(rng, b, k, n + 1)
        wanted = packed(src[None, :, :n], kernel)[0]
        assert transform.prove().is_bounded
        dst = np.full(wanted.shape, 1, wanted.dtype)
        *_, found = run(transform, src, dst)
        assert found.tobytes() == wanted.tobytes(), (b, isa, k, n)


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"m": 0}, InvalidArguments, "m must be a whole number from 1"),
    ({"n": 2.5}, InvalidArguments, "n must be a whole number"),
    ({"k": True}, InvalidArguments, "k must be a whole number"),
    ({"a": "f64"}, InvalidArguments, "a 'f64' is not of its types; these are f32"),
    ({"a": "u8", "b": "f16"}, InvalidArguments, "a u8 and b f16 are not multiplied"),
    ({"a": "bf16", "b": "bf16", "isa": "avx2"}, Unimplemented, "isa avx2 has no dot product of bf16bf16f32"),
    ({"isa": "avx3"}, InvalidArguments, "isa 'avx3' is not one of"),
    ({"batch": "strided"}, InvalidArguments, "batch 'strided' is not one of stride, offset, address"),
    ({"batch": "offset", "a_step": 64}, InvalidArguments, "a_step and b_step are for batch='stride'"),
    ({"lda": 3}, InvalidArguments, "lda must be a whole number from 4"),
    ({"ldb": 5}, InvalidArguments, "ldb must be a whole number from 6"),
    ({"dst": "f8_e5m2"}, InvalidArguments, "dst 'f8_e5m2' is not of its types"),
    ({"attr": "rulu"}, InvalidArguments, "did you mean relu"),
    ({"attr": Attr(deterministic=True)}, InvalidArguments, "attr has deterministic True"),
    ({"attr": [Binary("add", MemoryDesc((1, 5), f32, "ab"))]}, InvalidArguments, "each must be 1 or that of dst"),
    ({"attr": Attr(scales={"src": 2})}, Unimplemented, "scales of src have the mask 2"),
    ({"attr": [Binary("add", MemoryDesc((5, 6), f32, "ba"))]}, InvalidArguments, "columns must be dense"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "error", "message"), BAD)
def test_bad_requests(change: dict[str, Any], error: type[Exception], message: str) -> None:
    given = {"m": 5, "n": 6, "k": 4, "isa": "avx2"} | change
    with pytest.raises(error, match=message.replace("(", r"\(")):
        ukernel.brgemm(**given)


def test_bad_arrays() -> None:
    kernel = ukernel.brgemm(2, 8, 4, isa="avx2")
    a, b, dst = np.ones((1, 2, 4), np.float32), np.ones((1, 4, 8), np.float32), np.empty((2, 8), np.float32)
    for given, message in (
        ((a, b, 2, dst), "are touched"),
        ((a.astype(float), b, 1, dst), "a of .* is float64, where f32 is asked for: pass float32"),
        ((a, b, 1, dst[:, ::2]), "not contiguous"),
        ((a, b, -1, dst), "batch of .* is -1"),
        ((a, b, 1), "takes 4 arguments, not 3"),
        ((a, b, 1, dst[:1]), "are touched"),
    ):
        with pytest.raises(InvalidArguments, match=message):
            kernel(*given)
    by_offset = ukernel.brgemm(2, 8, 4, batch="offset", isa="avx2")
    for pair in ((4, 0), (-1, 0), (0, 1)):
        with pytest.raises(InvalidArguments, match=rf"offsets of .* has {max(pair, key=abs)} bytes into"):
            by_offset(a, b, np.array([pair], np.int64), 1, dst)
    with pytest.raises(InvalidArguments, match="are touched"):
        by_offset(a, b, np.zeros((1, 1), np.int64), 1, dst)
    with pytest.raises(InvalidArguments, match="takes addresses, which cannot be checked"):
        ukernel.brgemm(2, 8, 4, batch="address", isa="avx2")(a, b, 1, dst)
    with pytest.raises(InvalidArguments, match="b is int8"):
        ukernel.compensation(b, kernel)
