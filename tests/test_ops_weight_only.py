"""ops.matmul of floats by integers of 4 and 8 bits, with scales and zero points of columns and of groups of k."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn

M, K, N, GROUP = 3, 96, 40, 32
RANDOM = np.random.default_rng(5)
A = RANDOM.uniform(-1, 1, (M, K)).astype(np.float32)
SCALES = RANDOM.uniform(0.5, 1, (K // GROUP, N)).astype(np.float32)
POINTS = RANDOM.integers(0, 15, SCALES.shape, endpoint=True)
B = RANDOM.integers(0, 15, (K, N), endpoint=True)


def exact(a: Any, scales: Any, points: Any) -> Any:
    """In float64, and the size of what is summed."""
    rows = [np.repeat(np.broadcast_to(x, SCALES.shape), GROUP, 0).astype(np.float64) for x in (scales, points)]
    a = a.astype(np.float64)
    return a @ ((B - rows[1]) * rows[0]), np.abs(a) @ ((np.abs(B) + np.abs(rows[1])) * rows[0])


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dtype", [dnn.u4, dnn.u8], ids=str)
@pytest.mark.parametrize("scales", [SCALES, SCALES[0], 0.5], ids=["groups", "columns", "one"])
@pytest.mark.parametrize("points", [POINTS, POINTS[0], 8, None], ids=["groups", "columns", "one", "none"])
def test_numbers(dtype: dnn.DataType, scales: Any, points: Any) -> None:
    """Plain weights, with a bias; of f32 and of bf16."""
    weights = dnn.Memory.from_numpy(B.astype(np.uint8), dnn.MemoryDesc((K, N), dtype, "ab"))
    of = {} if points is None else {"zero_points": {"b": points}}
    for kind, bias in ((np.float32, None), (ml_dtypes.bfloat16, np.ones(N, np.float32))):
        a = A.astype(kind)
        if dtype == dnn.u8 and kind != np.float32 and points is None and np.ndim(scales) < 2:
            continue  # which other kernels multiply
        found = dnn.ops.matmul(a, weights, bias, scales={"b": scales}, **of)
        wanted, size = exact(a, scales, 0 if points is None else points)
        wanted = wanted if bias is None else wanted + bias
        assert found.dtype == np.float32
        assert (np.abs(found - wanted) <= (K + 8) * 2.0**-24 * (size + 1)).all()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"scales": {"b": np.ones((5, N))}}, r"scales\['b'\] has 5 rows, which do not divide k, 96, into groups"),
        ({"scales": {"b": np.ones((3, N - 1))}}, r"scales\['b'\] has 39 columns, it must have 40 for the columns of b"),
        ({"scales": {"b": SCALES}, "zero_points": {"b": np.ones((6, N), int)}}, "have 3 and 6 rows: groups of k share"),
        ({"scales": {"a": np.ones((3, N))}}, r"scales\['a'\] has 120 elements, it must have 1"),
    ],
)
def test_what_does_not_fit(words: dict[str, Any], says: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=says):
        dnn.ops.matmul(A, B.astype(np.uint8), **words)


def test_groups_of_few_k_are_floats() -> None:
    """Kernels that unpack take 16 k and more; smaller groups become f32 in front."""
    scales = np.linspace(0.5, 2, 12 * N, dtype=np.float32).reshape(12, N)
    found = dnn.ops.matmul(A, B.astype(np.uint8), scales={"b": scales})
    exact = A.astype(np.float64) @ (B.astype(np.uint8) * np.repeat(scales.astype(np.float64), len(B) // 12, 0))
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-3)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", ["int4", "uint4"])
def test_integers_of_ml_dtypes(kind: str) -> None:
    """They are packed as the same numbers in bytes."""
    numbers, points = (B - 8, None) if kind == "int4" else (B, POINTS)
    words: dict[str, Any] = {"scales": SCALES, "dtype": "s4" if kind == "int4" else "u4"}
    results = []
    for dtype in (np.int8, getattr(ml_dtypes, kind)):
        of = {} if points is None else {"zero_points": points.astype(dtype)}
        results.append(dnn.ops.matmul(A, dnn.ops.pack_quantized_weights(numbers.astype(dtype), **words, **of)))
    assert np.array_equal(*results)
