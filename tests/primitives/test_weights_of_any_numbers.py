"""Weights of 4 bits in batches, of any depth, beside scales of src and dst, and floats with scales by groups of k: as
the numbers that they stand for."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from tests.support.plans import proved_desc

ISAS = pytest.mark.parametrize("isa", [pytest.param(x, marks=pytest.mark.isa(x)) for x in ("avx2", "avx512_core")])
NUMPY: dict[dnn.DataType, Any] = {
    dnn.f32: np.float32, dnn.bf16: ml_dtypes.bfloat16, dnn.f16: np.float16, dnn.f8_e4m3: ml_dtypes.float8_e4m3fn,
    dnn.u8: np.uint8,
}  # fmt: skip
F4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])  # OCP's table, by code
CODES = {dnn.s4: (-8, 7), dnn.u4: (0, 15), dnn.f4_e2m1: (0, 15)}


def drawn(shape: tuple[int, ...], kind: dnn.DataType) -> tuple[dnn.Memory, Any]:
    """A tensor, and its numbers in f64; those of floats are halves, so that sums are exact."""
    random, tag = np.random.default_rng(shape), "abcd"[: len(shape)]
    desc = dnn.MemoryDesc(shape, kind, tag)
    if kind in CODES:
        least, most = CODES[kind]
        codes = random.integers(least, most, shape, endpoint=True).astype(np.int8 if least else np.uint8)
        return dnn.Memory.from_numpy(codes, desc), F4[codes] if kind == dnn.f4_e2m1 else codes.astype(np.float64)
    x = random.integers(0, 9, shape) / (1 if kind == dnn.u8 else 2)
    return dnn.Memory.from_array(x.astype(NUMPY[kind])), x


CASES: tuple[tuple[tuple[int, ...], tuple[int, ...], dnn.DataType, dnn.DataType, dict[str, Any], str], ...] = (
    ((3, 5, 20), (3, 20, 6), dnn.bf16, dnn.s4, {}, "floats"),
    ((2, 3, 5, 18), (1, 3, 18, 34), dnn.f32, dnn.u4, {"points": {"weights": 0}}, "floats"),
    ((7, 20), (20, 34), dnn.f16, dnn.u4, {"scales": {"src": 0, "weights": 2, "dst": 0}}, "floats"),
    ((2, 7, 32), (1, 32, 18), dnn.f32, dnn.f4_e2m1, {"scales": {"weights": 6}, "groups": 4}, "floats"),
    ((7, 24), (24, 34), dnn.u8, dnn.s4, {"points": {"src": 0, "weights": 0}, "dst": dnn.s32}, "integers"),
    ((7, 32), (32, 19), dnn.bf16, dnn.bf16, {"scales": {"weights": 3}, "groups": 8}, "floats"),
    ((7, 32), (32, 19), dnn.f8_e4m3, dnn.f8_e4m3, {"scales": {"src": 3, "weights": 3}, "groups": 16}, "floats"),
)  # src, weights, their types, attributes, and what multiplies


def grouped(values: Any, mask: int, group: int, shape: tuple[int, ...]) -> Any:
    """Numbers of a mask, one for each group of k, repeated to weights."""
    k = len(shape) - 2
    counts = [n // (group if d == k else 1) if mask >> d & 1 else 1 for d, n in enumerate(shape)]
    found = np.reshape(values, counts).astype(np.float64)
    return found.repeat(shape[k] // counts[k], k)


@ISAS
@pytest.mark.parametrize("case", CASES, ids=str)
def test_products_of_numbers(isa: Any, case: Any) -> None:
    """Exact: scales are powers of two, zero points small."""
    src_dims, dims, src, weights, words, way = case
    group, scales, points = words.get("groups", 1), words.get("scales", {}), words.get("points", {})
    groups = {name: (group, 1) if name == "weights" else (1, group) for name in scales if group > 1}
    attr = dnn.Attr([dnn.Sum(0.5)], scales=scales, zero_points=points, groups=groups)
    to, result = words.get("dst", dnn.f32), (*src_dims[:-1], dims[-1])
    (x, numbers), (w, codes) = drawn(src_dims, src), drawn(dims, weights)
    desc = dnn.MatMul(x.desc, w.desc, dnn.MemoryDesc(result, to, "abcd"[: len(result)]))
    pd = proved_desc(desc, attr, dnn.Engine(isa=isa, threads=2))
    assert pd.implementation.startswith(f"{way}+")
    given, random = {"src": x, "weights": w}, np.random.default_rng(3)
    factors = {"src": numbers, "weights": codes, "dst": 1.0}
    for name, tensor in pd.plan.tensors.items():
        if name.endswith(("scales", "points")):
            values = 2.0 ** random.integers(-2, 2, tensor.dims) if name.endswith("scales") else np.full(tensor.dims, 3)
            given[name] = dnn.Memory.from_array(values.astype(tensor.dtype.numpy))
            of = name.partition("_")[0]
            if of == "src" and group > 1:
                values = values.reshape(src_dims[0], -1).repeat(group, 1)
            elif of == "weights" and len(values) > 1:
                values = grouped(values, scales["weights"], group, dims)
            factors[of] = factors[of] - values if name.endswith("points") else factors[of] * values
    before = np.arange(np.prod(result)).reshape(result) % 7 * 2
    dst = dnn.Memory.from_array(before.astype(to.numpy))
    execute: Any = dnn.Primitive(pd).execute
    execute(**given, dst=dst)
    sums = np.matmul(factors["src"], factors["weights"])
    np.testing.assert_array_equal(dst.numpy(), (sums + 0.5 * before) / factors["dst"])


def test_zero_points_of_floats_are_refused() -> None:
    w = dnn.MemoryDesc((2, 32, 18), dnn.nf4, "abc")
    desc = dnn.MatMul(dnn.MemoryDesc((2, 7, 32), dnn.f32, "abc"), w, dnn.MemoryDesc((2, 7, 18), dnn.f32, "abc"))
    answers = dnn.implementations(desc, dnn.Attr(zero_points={"weights": 0}), dnn.Engine(isa="avx2", threads=1))
    reasons = [each.reason for each in answers if each.implementation.startswith("floats")]
    assert reasons == ["zero points are for integers, and weights are nf4: leave them out"]
