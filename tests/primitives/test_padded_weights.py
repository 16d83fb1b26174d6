"""Gradients of weights of padded groups: where src is copied in planes first."""

import pytest

from tests.primitives.gradient_case import proved
from tests.primitives.test_conv_backward_weights import gradient

STRIDED = "g29mb1ic1160ih12oc1160oh4kh3sh3ph0"


@pytest.mark.parametrize(("text", "src", "implementation", "tag"), [
    (STRIDED, "any", "padded", "abcd"),
    (STRIDED, "nhwc", "reorder+padded", "acdb"),
    ("g29mb1ic1160ih12oc1160oh10kh3ph0", "nhwc", "padded", "acdb"),
])  # fmt: skip
def test_pixels_that_lie_pages_apart(text: str, src: str, implementation: str, tag: str) -> None:
    """With channels last, tiles of strided pixels would wait for each of them: they read planes."""
    pd = proved(gradient(text, src, bias=False)[0], "avx512_core")
    assert pd.implementation == f"{implementation}:avx512_core"
    assert pd.src_desc.tag == tag
