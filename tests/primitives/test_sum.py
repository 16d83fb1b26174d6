"""What sums have beside tests/conformance: as many sources as there may be, arrays, bad input."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn

TAGS = ("abcd", "acdb", "aBcd8b", "aBcd16b")
DIMS = (2, 19, 5, 7)


def numbers(seed: int, dims: tuple[int, ...] = DIMS) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, dims).astype(np.float32)


def wanted(arrays: Any, scales: Any) -> tuple[Any, Any]:
    """The sum, and a rounding of each partial sum."""
    terms = [np.float32(s) * x.astype(np.float64) for s, x in zip(scales, arrays, strict=True)]
    return np.sum(terms, 0), 2.0**-24 * 2 * len(terms) * np.sum(np.abs(terms), 0)


@pytest.mark.parametrize("count", [1, 2, 3, 17, 64])
def test_counts_and_formats(isa: str, count: int) -> None:
    arrays, scales = [numbers(k) for k in range(count)], tuple(1.0 if k % 3 else 0.5 + k for k in range(count))
    srcs = tuple(dnn.MemoryDesc(DIMS, dnn.f32, TAGS[k % 4] if count < 4 else "abcd") for k in range(count))
    for tag in TAGS if count < 4 else ("abcd",):
        desc = dnn.SumForward(srcs, dnn.MemoryDesc(DIMS, dnn.f32, tag), scales)
        pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=2))
        assert pd.implementation.removeprefix("reorder+") == f"sum:{isa}"
        pd.plan.check()
        dst = dnn.Memory(desc.dst)
        memories = {f"src{k}": dnn.Memory.from_numpy(x, srcs[k]) for k, x in enumerate(arrays)}
        dnn.Primitive(pd).execute(**memories, dst=dst)
        values, error = wanted(arrays, scales)
        assert (np.abs(dst.numpy() - values) <= error).all()
        assert dst.padding_is_zero()


def test_arrays_in_place_and_post_ops(isa: str) -> None:
    engine, arrays = dnn.Engine(isa=isa), [numbers(k) for k in range(3)]
    values, error = wanted(arrays, (1, 1, 1))
    first = dnn.ops.weighted_sum(arrays, engine=engine)
    assert (np.abs(first - values) <= error).all()
    assert np.array_equal(dnn.ops.weighted_sum(arrays, engine=dnn.Engine(isa=isa, threads=3)), first)
    relu = dnn.ops.weighted_sum(arrays, post_ops=[dnn.Eltwise("relu")], engine=engine)
    assert np.array_equal(relu, np.maximum(first, 0))
    out = arrays[0].copy()
    assert dnn.ops.weighted_sum([out, *arrays[1:]], out=out, engine=engine) is out
    assert np.array_equal(out, first)


def test_bad_input() -> None:
    a, b = dnn.MemoryDesc((2, 3), dnn.f32, "ab"), dnn.MemoryDesc((2, 4), dnn.f32, "ab")
    for arguments, says in (
        (((), a), "srcs must be one MemoryDesc or more"),
        (((a,), 3), "dst must be a MemoryDesc"),
        (((a, b), a), "src1 has dims"),
        (((a,) * 65, a), "a sum takes at most 64"),
        (((a, a), a, (1.0,)), "scales must be 2 numbers"),
        (((a, a), a, (1.0, float("inf"))), "must be a finite f32 number"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.SumForward(*arguments)  # type: ignore[arg-type]
    for call in (lambda: dnn.ops.weighted_sum([]), lambda: dnn.ops.weighted_sum(3)):  # type: ignore[arg-type]
        with pytest.raises(dnn.InvalidArguments, match="arrays"):
            call()
