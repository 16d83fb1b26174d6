"""Large results of bytes are multiplied by the reciprocals of their scales: the formula, within a rounding."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.functions.quotient import QuotientSpec
from tests.support.plans import proved_desc

LEVELS = [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in ("avx2", "avx512_core", "avx512_core_vnni")]
SIDE = 60


def image(channels: int, dtype: dnn.DataType, side: int = SIDE) -> dnn.MemoryDesc:
    return dnn.MemoryDesc((1, channels, side, side), dtype, "nhwc")


def convolution(groups: int, side: int = SIDE) -> dnn.ConvolutionForward:
    dims = (32, 16, 1, 1) if groups == 1 else (32, 1, 1, 3, 3)
    more = {} if groups == 1 else {"padding_l": (1, 1), "padding_r": (1, 1)}
    src = image(16 if groups == 1 else 32, dnn.u8, side)
    return dnn.ConvolutionForward(src, dnn.MemoryDesc(dims, dnn.s8, "any"), image(32, dnn.u8, side), **more)  # type: ignore[arg-type]


def divides_before(pd: dnn.PrimitiveDesc) -> bool:
    return isinstance(pd.plan.phases[0].kernels[0], QuotientSpec)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("groups", [1, 32])
@pytest.mark.parametrize("mask", [0, 2])
@pytest.mark.parametrize("threads", [1, 2])
def test_results(isa: str, groups: int, mask: int, threads: int) -> None:
    attr = dnn.Attr([dnn.Eltwise("relu")], scales={"dst": mask}, zero_points={"dst": 0})
    pd = dnn.primitive_desc(convolution(groups), attr, dnn.Engine(isa=isa, threads=threads))  # type: ignore[arg-type]
    pd.plan.check()
    assert divides_before(pd) and "binary_1" not in pd.plan.tensors
    random, scales = np.random.default_rng(1), np.float32([29.0]) if mask == 0 else np.arange(20, 52, dtype=np.float32)
    x = random.integers(0, 255, pd.src_desc.dims, np.uint8, endpoint=True)
    assert pd.weights_desc is not None
    w = random.integers(-128, 127, pd.weights_desc.dims, endpoint=True).astype(np.int8)
    dst = dnn.Memory(pd.dst_desc)
    execute: Any = dnn.Primitive(pd).execute
    execute(
        src=dnn.Memory.from_numpy(x, pd.src_desc), weights=dnn.Memory.from_numpy(w, pd.weights_desc), dst=dst,
        dst_scales=dnn.Memory.from_array(scales), dst_zero_points=dnn.Memory.from_array(np.int32([3])),
    )  # fmt: skip
    filters = w if groups == 1 else w.reshape(32, 1, 3, 3)
    sums = dnn.ops.conv2d(x, filters, groups=groups, padding=int(groups > 1))
    exact = np.maximum(sums, 0) / scales.reshape(1, -1, 1, 1).astype(np.float64) + 3
    found = dst.numpy().astype(np.float64)
    assert (np.abs(found - np.clip(exact, 0, 255)) <= 0.5 + 1e-4).all()


def test_results_that_are_copied_back() -> None:
    """Any input that lies alike may be their memory, as all of them were read before; the factors are no input."""
    image = dnn.MemoryDesc((1, 32, SIDE, SIDE), dnn.u8, "nchw")
    desc = replace(convolution(1), src=image, weights=dnn.MemoryDesc((32, 32, 1, 1), dnn.s8, "any"), dst=image)
    pd = proved_desc(desc, dnn.Attr([dnn.Eltwise("relu")], scales={"dst": 0}), dnn.Engine(isa="avx2"))
    assert divides_before(pd) and pd.implementation.startswith("reorder+")
    assert pd.plan.in_place == (("src", "dst"),)
    dnn.Primitive(pd)


def test_small_results_are_divided() -> None:
    attr = dnn.Attr(scales={"dst": 0})
    assert not divides_before(dnn.primitive_desc(convolution(1, 8), attr, dnn.Engine(isa="avx2")))
