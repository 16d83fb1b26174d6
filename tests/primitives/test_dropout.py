"""Dropout: the generator's published answers, masks that depend on seed and index alone, layouts, types, bad input."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.values import decoded, encoded
from asmdnn.definitions.dropout import dropped, kept


def memories_of(desc: dnn.Dropout, x: Any, probability: float, seed: int) -> dict[str, dnn.Memory]:
    return {
        "src": dnn.Memory.from_numpy(x, desc.src), "dst": dnn.Memory(desc.dst), "mask": dnn.Memory(desc.mask),
        "probability": dnn.Memory.from_array(np.float32([probability])),
        "seed": dnn.Memory.from_array(np.int32([seed])),
    }  # fmt: skip


def described(dims: tuple[int, ...], tags: tuple[str, str, str], dtype: dnn.DataType = dnn.f32) -> dnn.Dropout:
    types = (dtype, dtype, dnn.u8)
    return dnn.Dropout(*(dnn.MemoryDesc(dims, kind, tag) for kind, tag in zip(types, tags, strict=True)))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("probability", [0.0, 1e-9, 0.1, 0.5, 0.999, 1.0])
def test_values(probability: float) -> None:
    for dims, seed in (((7,), 1), ((3, 1000), -5), ((9000,), 2**31 - 1), ((2, 3, 5, 7), -(2**31))):
        x = np.random.default_rng(0).standard_normal(dims).astype(np.float32)
        desc, count = described(dims, ("abcd"[: len(dims)],) * 3), x.size
        results = []
        for threads in (1, 2):
            memories = memories_of(desc, x, probability, seed)
            pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx2", threads=threads))
            assert pd.implementation == "dropout:avx2"
            pd.plan.check()
            dnn.Primitive(pd).execute(**memories)
            results.append((memories["dst"].numpy().ravel(), memories["mask"].numpy().ravel()))
        assert np.array_equal(results[0][1], kept(count, probability, seed))
        assert np.array_equal(results[0][0], dropped(x, probability, seed)[0].ravel())
        assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("tags", [("abcd", "acdb", "aBcd8b"), ("aBcd16b", "aBcd8b", "cdab")])
@pytest.mark.parametrize("dtype", [dnn.f32, dnn.bf16, dnn.s8], ids=str)
def test_layouts_and_types(tags: tuple[str, str, str], dtype: dnn.DataType) -> None:
    """The mask is that of the plain tensor, whatever lies where."""
    dims = (2, 19, 3, 5)
    x = encoded(np.random.default_rng(0).uniform(-50, 50, dims).astype(np.float32), dtype)
    desc = described(dims, tags, dtype)
    pd = dnn.primitive_desc(desc)
    assert pd.implementation == "reorder+dropout:avx2"
    pd.plan.check()
    memories = memories_of(desc, x, 0.25, 3)
    dnn.Primitive(pd).execute(**memories)
    exact = dropped(decoded(x, dtype).astype(np.float32), 0.25, 3)[0]
    assert np.array_equal(memories["mask"].numpy(), kept(x.size, 0.25, 3).reshape(dims))
    assert np.array_equal(memories["dst"].numpy(), encoded(exact.astype(np.float32), dtype))
    assert memories["dst"].padding_is_zero()


@pytest.mark.isa("avx2")
def test_share_and_special_values() -> None:
    """A tenth of a million; NaN and infinity stay or become 0; in place; seeds matter."""
    x = np.full(1_000_000, np.nan, np.float32)
    x[::3] = np.inf
    result, mask = dnn.ops.dropout(x, 0.1, seed=42)
    assert abs(mask.mean() - 0.9) < 0.002
    assert np.array_equal(result, np.where(mask, x, 0), equal_nan=True)
    other = dnn.ops.dropout(x, 0.1, seed=43)[1]
    assert 0.1 < (mask != other).mean() < 0.3
    y = np.ones(1000, np.float32)
    found, mask = dnn.ops.dropout(y, 0.5, seed=1, out=y)
    assert found is y
    assert np.array_equal(y, 2.0 * mask)
    assert dnn.ops.dropout(np.zeros((0, 3), np.float32), seed=0)[1].shape == (0, 3)


@pytest.mark.isa("avx2")
def test_bad_input() -> None:
    desc = described((8,), ("a",) * 3)
    primitive = dnn.Primitive(dnn.primitive_desc(desc))
    for wrong in (-0.1, 1.5, np.nan):
        memories = memories_of(desc, np.ones(8, np.float32), wrong, 1)
        for call in (lambda m=memories: primitive.execute(**m), primitive.bind(**memories)):
            with pytest.raises(dnn.InvalidArguments, match="it must be from 0 to 1"):
                call()
    with pytest.raises(dnn.InvalidArguments, match="mask is f32, it must be u8"):
        dnn.Dropout(desc.src, desc.dst, desc.src)
    with pytest.raises(dnn.InvalidArguments, match=r"dst has dims \(9,\), src has \(8,\)"):
        dnn.Dropout(desc.src, dnn.MemoryDesc((9,), dnn.f32, "a"), desc.mask)
    with pytest.raises(dnn.Unimplemented, match="post-ops, scales and zero points"):
        dnn.primitive_desc(desc, dnn.Attr([dnn.Eltwise("relu")]))
    for seed in (2**31, 1.0, True, None):
        with pytest.raises(dnn.InvalidArguments, match="seed must be an integer"):
            dnn.ops.dropout(np.ones(3, np.float32), seed=seed)  # type: ignore[arg-type]
    with pytest.raises(dnn.InvalidArguments, match="it must be from 0 to 1"):
        dnn.ops.dropout(np.ones(3, np.float32), 2.0, seed=1)
