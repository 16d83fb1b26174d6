"""Tiles of products and convolutions that write a dst past the caches: the same bits, wherever dst begins."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.matmul import MatmulTileSpec
from asmdnn.generators.dot.matmul_shape import MatmulTile
from asmdnn.planning.plan import Plan
from tests.primitives.tensors import holding, read
from tests.support.tuning import with_numbers

ISA = "avx512_core"
RELU = dnn.Attr(post_ops=(dnn.Eltwise("relu"),))
ENGINE = dnn.Engine(isa=ISA, threads=1, machine="zen5")


def streaming_from(size_bytes: int) -> dnn.Engine:
    """An engine whose tiles stream a dst of so many bytes, where they can."""
    tuning = with_numbers(ENGINE.tuning, "products", streaming_dst_bytes=size_bytes)
    return replace(ENGINE, tuning=with_numbers(tuning, "convolution", streaming_tile_bytes=size_bytes))


def streams(plan: Plan) -> bool:
    tiles = [x.tile if isinstance(x, MatmulTileSpec) else x for x in plan.specs]
    return any(tile.streams for tile in tiles if isinstance(tile, MatmulTile | ConvTileSpec))


def product(m: int, k: int, n: int, *batch: int, offset: int = 0, weights: str = "any") -> dnn.MatMul:
    """offset: elements before dst's first."""
    letters = "abcd"[: 2 + len(batch)]
    dst = dnn.MemoryDesc((*batch, m, n), dnn.f32, letters)
    if offset:
        dst = dnn.MemoryDesc(dst.dims, dnn.f32, strides=dst.strides, offset0=offset)
    src = dnn.MemoryDesc((*batch, m, k), dnn.f32, letters)
    return dnn.MatMul(src, dnn.MemoryDesc((*batch, k, n), dnn.f32, weights or letters), dst)


def convolution(tag: str, oc: int, kernel: int, groups: int = 1) -> dnn.ConvolutionForward:
    src, dst = (dnn.MemoryDesc((2, c, 9, 11), dnn.f32, tag) for c in (groups * 12, groups * oc))
    dims = (groups,) * (groups > 1) + (oc, 12, kernel, kernel)
    bias = dnn.MemoryDesc((groups * oc,), dnn.f32, "a")
    around = (kernel // 2,) * 2
    weights = dnn.MemoryDesc(dims, dnn.f32, "any")
    return dnn.ConvolutionForward(src, weights, dst, bias, padding_l=around, padding_r=around)


CASES: dict[str, tuple[Any, bool]] = {
    "product": (product(33, 40, 96), True),
    "tail of columns": (product(20, 70, 176, weights=""), True),
    "batch": (product(17, 24, 64, 3), True),
    "dst within a vector": (product(33, 40, 96, offset=5), True),
    "rows apart by parts of lines": (product(33, 40, 100), False),
    "one row": (product(1, 40, 96), False),
    "channels last": (convolution("axb", 48, 3), True),
    "blocks": (convolution("aBx16b", 80, 1), True),
    "groups": (convolution("axb", 32, 3, groups=2), True),
    "pixels of parts of lines": (convolution("axb", 40, 3), False),
}


@pytest.mark.isa(ISA)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("attr", [dnn.Attr(), RELU], ids=["plain", "relu"])
def test_bits_are_those_of_plain_stores(name: str, attr: dnn.Attr) -> None:
    desc, wanted = CASES[name]
    results = []
    for engine, streaming in ((streaming_from(1 << 60), False), (streaming_from(1), wanted)):
        pd = dnn.primitive_desc(desc, attr, engine)
        pd.plan.check()
        assert streams(pd.plan) is streaming, pd.plan.specs
        data = np.random.default_rng(3)
        given = {
            role: holding(x, None if role == "dst" else data.standard_normal(x.dims).astype(np.float32))
            for role, x in pd.plan.tensors.items()
        }
        dnn.Primitive(pd).execute(**given)
        results.append(read(given["dst"]))
    assert results[0].tobytes() == results[1].tobytes()
    assert np.isfinite(results[1]).all()


@pytest.mark.isa(ISA)
@pytest.mark.parametrize("desc", [product(33, 40, 96), convolution("axb", 48, 3)], ids=["product", "convolution"])
def test_sums_that_read_dst_do_not_stream(desc: Any) -> None:
    pd = dnn.primitive_desc(desc, dnn.Attr(post_ops=(dnn.Sum(),)), streaming_from(1))
    assert not streams(pd.plan)
