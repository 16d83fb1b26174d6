"""Rows and elements have numpy's values, for all types, in place and apart, and nothing beside them is touched."""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from asmdnn import ukernel
from asmdnn.errors import AsmdnnError, InvalidArguments, Unimplemented
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.post_ops import Binary, Eltwise
from asmdnn.types import DATA_TYPES, FLOAT_NAMES, f32, s8
from tests.ukernel.cases import integers, numpy_type, run

ISAS = ("avx2", "avx512_core")


def both_ends(kernel: ukernel.UKernel, *arguments: Any) -> list[list[Any]]:
    return [run(kernel, *arguments, at_end=at_end) for at_end in (True, False)[: 1 + kernel.runs_here]]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", DATA_TYPES)
def test_transpose(isa: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    most = 64 // DATA_TYPES[dtype].size_bytes
    for rows, columns in ((1, 1), (most, 5), (7, most + 9), (most, most)):
        kernel = ukernel.transpose(rows, columns, dtype, src_ld=columns + 1, dst_ld=rows + 2, isa=isa)
        assert kernel.prove().is_bounded
        src = integers(rng, dtype, rows, columns + 1)
        dst = np.full((columns, rows + 2), 9).astype(src.dtype)
        for _, found in both_ends(kernel, src, dst):
            assert (found[:, :rows] == src[:, :columns].T).all()
            assert (found[:, rows:] == dst[0, -1]).all()


@pytest.mark.parametrize("isa", ISAS)
def test_convert(isa: str) -> None:
    rng = np.random.default_rng(1)
    for (src, dst), columns in itertools.product(itertools.permutations(DATA_TYPES, 2), (1, 37)):
        kernel = ukernel.convert(2, columns, src, dst, isa=isa)
        array = integers(rng, src, 2, columns)
        wanted = np.maximum(array.astype(np.float32), 0 if dst == "u8" else -9).astype(numpy_type(dst))
        for _, found in both_ends(kernel, array, np.zeros((2, columns), numpy_type(dst))):
            assert found.tobytes() == wanted.tobytes(), (src, dst)


def test_convert_rounds_to_even_and_saturates() -> None:
    src = np.float32([[0.5, 1.5, 2.5, -0.5, 300, -300, np.inf, -np.inf, 126.5]])
    kernel = ukernel.convert(1, 9, "f32", "s8", scaled=True, isa="avx2")
    _, found, _ = run(kernel, src, np.zeros((1, 9), np.int8), np.float32([1]))
    assert found.tolist() == [[0, 2, 2, 0, 127, -128, 127, -128, 126]]
    _, found, _ = run(kernel, src, np.zeros((1, 9), np.int8), np.float32([2]))
    assert found.tolist() == [[1, 3, 5, -1, 127, -128, 127, -128, 127]]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    ("src", "dst"), [("f32", "f32"), ("bf16", "bf16"), ("u8", "f32"), ("f32", "s8"), ("f16", "bf16")]
)
def test_eltwise(isa: str, src: str, dst: str) -> None:
    """x to clip(2 x, -3, 5) * column + row, all exact."""
    rows, columns = 5, 43
    row, column = Binary("add", MemoryDesc((rows, 1), f32, "ab")), Binary("mul", MemoryDesc((1, columns), f32, "ab"))
    ops = [Eltwise("linear", 2), Eltwise("clip", -3, 5), column, row]
    kernel = ukernel.eltwise(rows, columns, ops, src, dst, src_ld=columns + 1, isa=isa)
    assert kernel.prove().is_bounded
    rng = np.random.default_rng(2)
    array, by_column, by_row = (
        integers(rng, src, rows, columns + 1),
        integers(rng, "f32", columns),
        integers(rng, "f32", rows),
    )
    wanted = np.clip(2 * array[:, :columns].astype(np.float32), -3, 5) * by_column + by_row[:, None]
    for _, found, *_ in both_ends(kernel, array, np.zeros((rows, columns), numpy_type(dst)), by_column, by_row):
        assert found.astype(np.float32).tolist() == wanted.tolist()


def test_eltwise_in_place_and_sum() -> None:
    x = np.arange(-10, 10, dtype=np.float32).reshape(2, 10)
    kernel = ukernel.eltwise(2, 10, ["relu", "sum"], isa="avx2")
    dst = np.ones((2, 10), np.float32)
    _, found = run(kernel, x, dst)
    assert (found == np.maximum(x, 0) + 1).all()
    in_place = ukernel.eltwise(2, 10, "square", isa="avx2")
    (in_place if in_place.runs_here else in_place.emulate)(x, x)
    assert (x == np.arange(-10, 10).reshape(2, 10) ** 2).all()


@pytest.mark.parametrize("isa", ISAS)
def test_softmax(isa: str) -> None:
    """A sum of n exponentials errs by (n + 8) ulp at most, and by what x - max is off; half types round once more."""
    rng = np.random.default_rng(3)
    for (src, dst), columns, log in itertools.product(
        itertools.product(FLOAT_NAMES, repeat=2), (1, 20, 150), (False, True)
    ):
        kernel = ukernel.softmax(3, columns, src, dst, log=log, isa=isa)
        array = (8 * rng.standard_normal((3, columns))).astype(numpy_type(src))
        x = array.astype(np.float64)
        x = x - x.max(1, keepdims=True)
        wanted = x - np.log(np.exp(x).sum(1, keepdims=True)) if log else np.exp(x) / np.exp(x).sum(1, keepdims=True)
        unit = {"f32": 2.0**-24, "bf16": 2.0**-8, "f16": 2.0**-11}[dst]
        slack = (columns + 8 + float(np.abs(x).max())) * 2.0**-23
        allowed = np.abs(wanted) * (unit * 1.01 + slack * (not log)) + slack * log + 2.0**-25
        for _, found in both_ends(kernel, array, np.zeros((3, columns), numpy_type(dst))):
            error = np.abs(found.astype(np.float64) - wanted)
            assert (error <= allowed).all(), (src, dst, columns, log)


def test_streaming_says_so() -> None:
    columns, x = 64, np.arange(-64, 64, dtype=np.float32).reshape(2, 64)
    for kernel, wanted in (
        (ukernel.eltwise(2, columns, "abs", streaming=True, isa="avx2"), np.abs(x)),
        (ukernel.transpose(16, 16, streaming=True, isa="avx2"), None),
    ):
        assert kernel.streams and any("movnt" in line.text for line in kernel.listing)
        if wanted is not None:
            assert (run(kernel, x, np.zeros_like(x))[1] == wanted).all()
    plain = ukernel.eltwise(2, columns, "abs", isa="avx2")
    assert not plain.streams and not any("movnt" in line.text for line in plain.listing)


def test_arrays_of_16_bits_by_their_bits() -> None:
    x = np.float32([[1, -2, 3]]).astype(ml_dtypes.bfloat16)
    for kind in (ml_dtypes.bfloat16, np.uint16):
        dst = np.zeros((1, 3), kind)
        kernel = ukernel.eltwise(1, 3, "relu", "bf16", isa="avx2")
        (kernel if kernel.runs_here else kernel.emulate)(x.view(kind), dst)
        assert dst.view(ml_dtypes.bfloat16).tolist() == [[1, 0, 3]]
    with pytest.raises(
        InvalidArguments, match=r"src of .* is float16, where bf16 is asked for: pass bfloat16 or its bits"
    ):
        kernel(np.zeros((1, 3), np.float16), dst)


BAD: list[tuple[Any, type[AsmdnnError], str]] = [
    (lambda: ukernel.transpose(17, 17), InvalidArguments, "one side must be at most 16"),
    (lambda: ukernel.transpose(8, 8, "f64"), InvalidArguments, "dtype 'f64' is not of its types"),
    (lambda: ukernel.transpose(8, 8, dst_ld=7), InvalidArguments, "dst_ld must be a whole number from 8"),
    (lambda: ukernel.transpose(3, 8, streaming=True), InvalidArguments, "streaming needs rows of dst of whole vectors"),
    (lambda: ukernel.convert(1, 8, "f32", "f32"), InvalidArguments, "changes nothing: copy the bytes"),
    (
        lambda: ukernel.convert(1, 1 << 21, "f32", "s8"),
        InvalidArguments,
        "columns must be a whole number from 1 to 1048576",
    ),
    (lambda: ukernel.eltwise(1, 8, []), InvalidArguments, "at least one"),
    (lambda: ukernel.eltwise(1, 8, "relu", streaming=True, dst="s8"), InvalidArguments, "streaming is for f32"),
    (lambda: ukernel.eltwise(1, 8, [Binary("add", MemoryDesc((2, 8), f32, "ab"))]), InvalidArguments, "that of dst"),
    (lambda: ukernel.eltwise(1, 8, [Binary("add", MemoryDesc((1, 8), s8, "ab"))]), Unimplemented, "is s8, use f32"),
    (lambda: ukernel.eltwise(1, 8, Attr("relu", scales={"dst": 0})), InvalidArguments, "no scales"),
    (lambda: ukernel.softmax(1, 8, "s8"), InvalidArguments, "src 's8' is not of its types"),
    (lambda: ukernel.softmax(0, 8), InvalidArguments, "rows must be a whole number from 1"),
    (lambda: ukernel.transform(4, 8, "u8"), InvalidArguments, "dtype 'u8' is not of its types"),
    (lambda: ukernel.transform(4, 8, "bf16", isa="avx2"), Unimplemented, "has no dot product"),
]


@pytest.mark.parametrize(("make", "error", "message"), BAD)
def test_bad_requests(make: Any, error: type[AsmdnnError], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
