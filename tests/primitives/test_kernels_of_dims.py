"""Attention, rows and products by a dim that changes: few further kernels, counted over many extents."""

from collections.abc import Iterable, Sequence
from itertools import product

import pytest

import asmdnn as dnn
from asmdnn.generators.contract import KernelSpec

EXTENTS = (5, 8, 11, 16, 17, 23, 24, 31, 32, 40, 41, 53, 64, 77, 80, 96, 99, 113, 125, 128, 139, 144, 150, 160)
INFERENCE = dnn.PropKind.forward_inference


def engine_of(isa: str) -> dnn.Engine:
    return dnn.Engine(isa=isa, threads=1, machine="zen4", l2_bytes=1 << 20)  # type: ignore[arg-type]


def different(descs: Iterable[object], isa: str, attrs: Sequence[dnn.Attr] = (dnn.Attr(),)) -> int:
    """How many kernels there are that differ in their code, of each description with all of these attributes."""
    found: set[KernelSpec] = set()
    for desc, attr in product(descs, attrs):
        specs = dnn.primitive_desc(desc, attr, engine_of(isa)).plan.specs  # type: ignore[arg-type]
        found |= {getattr(spec, "code_spec", spec) for spec in specs}
    return len(found)


def attention(tokens: int) -> dnn.AttentionForward:
    rows = dnn.MemoryDesc((1, 8, tokens, 15), dnn.f32, strides=(120 * tokens, 15, 120, 1))
    return dnn.AttentionForward(INFERENCE, rows, rows, rows, dnn.MemoryDesc(rows.dims, dnn.f32, "abcd"))


def convolution(width: int) -> dnn.ConvolutionForward:
    """Of 1x3, with an edge at either end of a row."""
    src, dst = (dnn.MemoryDesc((1, channels, 1, width), dnn.f32, "any") for channels in (64, 32))
    return dnn.ConvolutionForward(
        src=src, weights=dnn.MemoryDesc((32, 64, 1, 3), dnn.f32, "any"), dst=dst, padding_l=(0, 1), padding_r=(0, 1)
    )


def depthwise(width: int) -> dnn.ConvolutionForward:
    src = dnn.MemoryDesc((1, 32, 8, width), dnn.f32, "any")
    weights = dnn.MemoryDesc((32, 1, 1, 3, 3), dnn.f32, "any")
    return dnn.ConvolutionForward(src=src, weights=weights, dst=src, padding_l=(1, 1), padding_r=(1, 1))


def rows_of_product(rows: int) -> dnn.MatMul:
    src, weights = dnn.MemoryDesc((rows, 120), dnn.f32, "ab"), dnn.MemoryDesc((120, 120), dnn.f32, "any")
    return dnn.MatMul(src, weights, dnn.MemoryDesc((rows, 120), dnn.f32, "ab"))


@pytest.mark.parametrize(("isa", "most"), [("avx2", 82), ("avx512_core", 100)])
def test_attention(isa: str, most: int) -> None:
    """By the number of tokens."""
    assert different(map(attention, EXTENTS), isa) <= most


@pytest.mark.parametrize(("isa", "most"), [("avx2", 6), ("avx512_core", 12)])
def test_convolutions(isa: str, most: int) -> None:
    """By the width of an image."""
    assert different(map(convolution, EXTENTS), isa) <= most


@pytest.mark.parametrize(("isa", "most"), [("avx2", 8), ("avx512_core", 16)])
def test_products(isa: str, most: int) -> None:
    """By the number of rows."""
    assert different(map(rows_of_product, EXTENTS), isa) <= most


def test_numbers_of_post_ops(isa: str) -> None:
    """Depthwise rows whose post-ops differ in numbers alone have the same kernels."""
    chains = [
        dnn.Attr([dnn.Eltwise("hardswish", 1 / 6, 0.5), dnn.Eltwise("linear", scale, 2.0 - scale)])
        for scale in (0.25, 1.25, 3.0)
    ]
    assert different(map(depthwise, EXTENTS), isa, chains) == different(map(depthwise, EXTENTS), isa, chains[:1]) <= 20
