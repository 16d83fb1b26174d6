"""Gradients of biases in the tiles of weights' gradients: no pass over diff_dst, definition, threads, formats."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.primitives.convolution_backward import weights_tiles
from tests.primitives.conv_gradients import problem_of
from tests.primitives.gradient_case import check, proved, run
from tests.primitives.test_conv_backward_weights import gradient

IN_TILES = (
    "mb2ic20ih5iw6oc24kh3kw3ph1pw1",
    "mb3ic9ih6oc33kh1",
    "mb1ic3ih12oc32kh5sh2ph2",
    "mb1ic64ih6oc96kh1",
    "mb2ic8ih7iw7oc64kh3kw5ph1pw2",
    "mb1ic9iw11oc5kw3dw1pw2",
    "mb1ic9id3ih4iw5oc9kd2kh3kw2pd0ph1pw0",
    "mb7ic16ih3oc16kh3ph1",
    "g2mb1ic24ih6oc32kh3ph1",
    "mb1ic8iw3oc8kw5pw4",
    "mb2ic12ih9oc20kh1sh2",
)


def sums_of(pd: dnn.PrimitiveDesc) -> list[ConvTileSpec]:
    kernels = (spec for phase in pd.plan.phases for spec in phase.kernels)
    return [spec for spec in kernels if isinstance(spec, ConvTileSpec) and spec.row_sums]


def reads_diff_dst(pd: dnn.PrimitiveDesc) -> list[str]:
    """The kernels, by family, of phases that read diff_dst."""
    phases = [p for p in pd.plan.phases if any(view.buffer == "diff_dst" for view in p.arguments)]
    return sorted({type(spec).__name__ for phase in phases for spec in phase.kernels})


@pytest.mark.parametrize("tags", [("any", "any"), ("nhwc", "any")])
@pytest.mark.parametrize("text", IN_TILES)
def test_results(isa: str, text: str, tags: tuple[str, str]) -> None:
    """Tiles sum what they multiply: nothing else reads diff_dst, or a copy of it is made for them alone."""
    src = tags[0] if len(problem_of(text).axes) == 2 else "any"
    pd = check(*gradient(text, src, tags[1]), isa)
    assert sums_of(pd)
    assert reads_diff_dst(pd) == ["ConvTileSpec"]


@pytest.mark.parametrize(
    "text", ["mb1ic4ih7oc16kh3ph3", "mb1ic4ih3oc16kh3sh2ph2", "mb1ic9id3ih4iw5oc9kd2kh3kw2pd1ph1pw0"]
)
def test_results_of_padding_alone(isa: str, text: str) -> None:
    """Rows that no row of the kernel, or none of a unit's, reaches inside src are summed, too."""
    check(*gradient(text), isa)


@pytest.mark.parametrize("kind", [dnn.f32, dnn.bf16])
def test_formats_of_the_bias(isa: str, kind: Any) -> None:
    """Of other types, and with gaps."""
    desc, arrays, wanted = gradient("mb2ic20ih5iw6oc24kh3kw3ph1pw1")
    apart = dnn.MemoryDesc((24,), kind, strides=(3,))
    there = dnn.ConvolutionBackwardWeights(
        desc.src, desc.diff_weights, desc.diff_dst, diff_bias=apart, padding_l=(1, 1), padding_r=(1, 1)
    )
    if kind == dnn.bf16:  # read as bits
        wanted["diff_bias"] = wanted["diff_bias"].astype(np.float32).view(np.uint32) >> 16
    check(there, arrays, wanted, isa)


def test_ranges(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks in ranges have sums of their own, which are added in their order."""
    monkeypatch.setattr(weights_tiles, "CHUNK_BYTES", 1 << 10)
    pd = check(*gradient("mb1ic3ih24oc16kh3ph1"), isa)
    assert sums_of(pd)
    assert "partial sums of the bias" in pd.plan.scratch_bytes


@pytest.mark.parametrize(("text", "why"), [
    ("deconv:mb2ic20ih5oc24kh3sh2ph1", "diff_dst is what tiles broadcast"),
    ("g3mb2ic15ih5oc9kh3ph1", "groups are padded"),
    ("g19mb2ic19ih7oc19kh3sh2ph1", "rows of channels"),
])  # fmt: skip
def test_a_pass_of_its_own(isa: str, text: str, why: str) -> None:
    assert not sums_of(check(*gradient(text), isa)), why


def test_sums_go_on_over_images(isa: str) -> None:
    """Later images add to the sums of those before, also of no weight: NaN in the last one is in every sum."""
    desc, arrays, _ = gradient("mb5ic16ih30oc16kh3ph1")
    pd = proved(desc, isa)
    assert any(spec.accumulate for spec in sums_of(pd))
    arrays["diff_dst"][-1] = np.nan
    assert np.isnan(run(pd, arrays)["diff_bias"]).all()
