"""Channels last whose pixels share sets of L1: copied for gradients of weights where that is worth it."""

import pytest

from tests.primitives.gradient_case import check, proved
from tests.primitives.test_conv_backward_weights import gradient


@pytest.mark.parametrize(("text", "copied"), [
    ("mb1ic128ih4oc1024oh4kh1", ["diff_dst"]),
    ("mb1ic1024ih4oc128oh4kh1", ["src"]),
    ("mb1ic64ih4oc512oh4kh3ph1", ["diff_dst"]),
    ("mb1ic128ih4oc512oh4kh1", []),  # 2 KiB apart, multiplied 128 times
    ("mb1ic512ih4oc128oh4kh1", ["src"]),
    ("mb1ic1024ih4oc16oh4kh1", []),  # multiplied 16 times
    ("mb1ic1024ih3oc128oh3kh1", []),  # 9 pixels
    ("mb1ic1040ih4oc128oh4kh1", []),  # not at a multiple
])  # fmt: skip
def test_what_is_copied(text: str, copied: list[str]) -> None:
    pd = proved(gradient(text, "nhwc", "nhwc", bias=False)[0], "avx512_core")
    assert pd.implementation == f"{'reorder+' * bool(copied)}direct:avx512_core"
    tiles = [p for p in pd.plan.phases if any("conv" in spec.name for spec in p.kernels)]
    read = {view.buffer for phase in tiles for view in phase.arguments}
    assert sorted({"src", "diff_dst"} - read) == sorted(copied)


def test_results(isa: str) -> None:
    check(*gradient("mb2ic64ih4oc1024oh4kh1", "nhwc", "nhwc"), isa)
