"""Direct convolutions whose dst is far: tiles that write more of a pixel at once, all panels of one after another, and
results of bf16 past the caches."""

from dataclasses import replace

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.conv_shape import DST, WEIGHTS
from tests.primitives.tensors import holding, read
from tests.primitives.typed_conv import numbers, stored
from tests.support.tuning import with_numbers

ENGINE = dnn.Engine(isa="avx512_core_bf16", threads=1, machine="zen5")


def convolution(
    into: int, out: int, size: int = 12, dtype: dnn.DataType = dnn.f32, tag: str = "axb", kernel: int = 1
) -> dnn.ConvolutionForward:
    src, dst = (dnn.MemoryDesc((2, c, size, size), dtype, tag) for c in (into, out))
    weights = dnn.MemoryDesc((out, into, kernel, kernel), dtype, "any")
    around = (kernel // 2,) * 2
    bias = dnn.MemoryDesc((out,), dnn.f32, "a")
    return dnn.ConvolutionForward(src, weights, dst, bias, padding_l=around, padding_r=around)


def planned(desc: dnn.ConvolutionForward, attr: dnn.Attr | None = None, **tuned: float) -> dnn.PrimitiveDesc:
    tuning = with_numbers(ENGINE.tuning, "convolution", **tuned)
    pd = dnn.primitive_desc(desc, attr or dnn.Attr(), replace(ENGINE, tuning=tuning))
    assert "direct:" in pd.implementation
    pd.plan.check()
    return pd


def tiles(pd: dnn.PrimitiveDesc) -> list[ConvTileSpec]:
    return [spec for spec in pd.plan.specs if isinstance(spec, ConvTileSpec)]


def panel_changes(pd: dnn.PrimitiveDesc) -> list[bool]:
    """Of each record but the first, whether it reads another panel than the one before."""
    return [bool(x) for x in np.diff(pd.plan.phases[0].records[:, 1 + WEIGHTS])]


@pytest.mark.parametrize(
    ("desc", "near", "far"),
    [
        (convolution(8, 256), 2, 4),
        (convolution(8, 256, dtype=dnn.bf16), 2, 4),
        (convolution(512, 256), 2, 2),  # long sums
        (convolution(8, 256, tag="aBx16b"), 2, 2),  # pixels of a block touch
    ],
    ids=["few channels", "bf16", "many channels", "blocks"],
)
def test_tiles_of_short_sums_write_longer_runs(desc: dnn.ConvolutionForward, near: int, far: int) -> None:
    for size_bytes, vectors in ((1 << 60, near), (1, far)):
        assert {tile.vectors for tile in tiles(planned(desc, dst_runs_bytes=size_bytes))} == {vectors}


@pytest.mark.parametrize(
    ("desc", "along"),
    [
        (convolution(8, 192), True),
        (convolution(3, 192, kernel=3), True),
        (convolution(64, 192), False),  # L1 does not keep the weights
        (convolution(8, 192, tag="aBx16b"), False),
        (convolution(8, 32), False),  # one panel
    ],
    ids=["pointwise", "window", "many weights", "blocks", "one panel"],
)
def test_panels_of_a_tile_one_after_another(desc: dnn.ConvolutionForward, along: bool) -> None:
    far = planned(desc, streaming_tile_bytes=1)
    records = far.plan.phases[0].records
    panels = len({*records[:, 1 + WEIGHTS].tolist()})
    changes = panel_changes(far)
    assert all(changes) is along
    if along:
        dst = records[:, 1 + DST].reshape(-1, panels)
        assert (np.diff(dst, axis=1) > 0).all(), "a pixel's runs in their order"
        assert not any(tile.prefetch_lines for tile in tiles(far)), "weights are near"
    assert not all(panel_changes(planned(desc, streaming_tile_bytes=1 << 60)))


@pytest.mark.isa("avx512_core_bf16")
@pytest.mark.parametrize("relu", [False, True], ids=["plain", "relu"])
@pytest.mark.parametrize(
    ("into", "channels", "kernel", "streamed"),
    [(8, 128, 1, True), (8, 96, 1, True), (24, 64, 3, True), (8, 80, 1, False), (24, 96, 3, False)],
    ids=["four vectors", "four and two", "window", "pixels of parts of lines", "three vectors"],
)
def test_pairs_past_the_caches_are_the_same_bits(
    into: int, channels: int, kernel: int, streamed: bool, relu: bool
) -> None:
    desc = convolution(into, channels, 9, dnn.bf16, kernel=kernel)
    attr = dnn.Attr(post_ops=(dnn.Eltwise("relu"),) * relu)
    found = []
    for size_bytes in (1 << 60, 1):
        pd = planned(desc, attr, streaming_tile_bytes=size_bytes, dst_runs_bytes=1)
        assert any(tile.streams for tile in tiles(pd)) is (streamed and size_bytes == 1)
        data = np.random.default_rng(channels)
        given = {
            name: holding(x, None if name == "dst" else stored(data.standard_normal(x.dims), x.dtype))
            for name, x in pd.plan.tensors.items()
        }
        dnn.Primitive(pd).execute(**given)
        found.append(read(given["dst"]))
    assert found[0].tobytes() == found[1].tobytes()
    assert np.isfinite(numbers(found[1], dnn.bf16)).all()


def test_types_that_are_rounded_one_by_one_do_not_stream() -> None:
    """A vector of f16 is half a line, and nothing rounds two of them at once."""
    pd = planned(convolution(16, 64, dtype=dnn.f16), streaming_tile_bytes=1)
    assert not any(tile.streams for tile in tiles(pd))
