"""ConvolutionForward refuses what does not fit together, in one sentence that names the field."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn

SRC = dnn.MemoryDesc((2, 16, 9, 11), dnn.f32, "nchw")
WEIGHTS = dnn.MemoryDesc((32, 16, 3, 3), dnn.f32, "oihw")
DST = dnn.MemoryDesc((2, 32, 9, 11), dnn.f32, "nchw")
BIAS = dnn.MemoryDesc((32,), dnn.f32, "a")
GOOD: dict[str, Any] = {
    "src": SRC, "weights": WEIGHTS, "dst": DST, "bias": BIAS, "padding_l": (1, 1), "padding_r": (1, 1),
}  # fmt: skip


def shaped(*dims: int) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dnn.f32, "any")


def test_a_value() -> None:
    desc = dnn.ConvolutionForward(**GOOD)
    assert desc == dnn.ConvolutionForward(**GOOD)
    assert hash(desc) == hash(dnn.ConvolutionForward(**GOOD))
    assert desc != replace(desc, bias=None)
    assert list(desc.tensors()) == ["src", "weights", "bias", "dst"]
    assert list(replace(desc, bias=None).tensors()) == ["src", "weights", "dst"]
    for word in ("src f32 2x16x9x11 nchw", "strides (1, 1)", "padding (1, 1) (1, 1)"):
        assert word in str(desc)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # ranks and kinds
        ({"src": shaped(2, 16)}, r"src must have 3, 4 or 5 dims, not 2"),
        ({"src": shaped(2, 16, 9, 9, 9, 9)}, r"src must have 3, 4 or 5 dims, not 6"),
        ({"src": shaped(2, 16, 9)}, r"dst must have 3 dims, not 4"),
        ({"weights": shaped(32, 16, 3)}, r"weights must have 4 or 5 dims, not 3"),
        ({"weights": shaped(2, 1, 32, 16, 3, 3)}, r"weights must have 4 or 5 dims, not 6"),
        ({"dst": shaped(2, 32, 9, 11, 1)}, r"dst must have 4 dims, not 5"),
        ({"bias": shaped(1, 32)}, r"bias must have 1 dim, not 2"),
        ({"src": (2, 16, 9, 11)}, r"src must be a MemoryDesc, not \(2, 16"),
        ({"weights": None}, r"weights must be a MemoryDesc, not None"),
        ({"bias": 3}, r"bias must be a MemoryDesc, not 3"),
        ({"src": shaped(0, 16, 9, 11)}, r"dst has a batch of 2, src has 0"),
        ({"dst": shaped(2, 0, 9, 11)}, r"dst has 0 channels"),
        ({"weights": shaped(32, 16, 0, 3)}, r"weights has an empty dim"),
        # channels and batch
        ({"weights": shaped(32, 8, 3, 3)}, r"weights has 8 input channels, src has 16"),
        ({"dst": shaped(2, 33, 9, 11)}, r"dst has 33 channels, weights makes 32"),
        ({"weights": shaped(2, 16, 16, 3, 3)}, r"weights has 32 input channels in 2 groups, src has 16"),
        ({"weights": shaped(2, 8, 8, 3, 3)}, r"dst has 32 channels, weights makes 16 in 2 groups"),
        ({"dst": shaped(3, 32, 9, 11)}, r"dst has a batch of 3, src has 2"),
        ({"bias": shaped(16)}, r"bias has 16 elements, weights makes 32"),
        # sizes
        ({"dst": shaped(2, 32, 8, 11)}, r"dst's height is 8, .* make it 9"),
        ({"dst": shaped(2, 32, 9, 12)}, r"dst's width is 12, .* make it 11"),
        ({"strides": (2, 1)}, r"dst's height is 9, .* make it 5"),
        ({"dilations": (0, 1)}, r"dst's width is 11, .* make it 9"),
        ({"padding_l": (1, 2)}, r"dst's width is 11, .* make it 12"),
        ({"weights": shaped(32, 16, 12, 3)}, r"weights' height of 12 .* exceeds the padded src's 11"),
        ({"dilations": (5, 0)}, r"weights' height of 13 .* exceeds the padded src's 11"),
        ({"padding_l": (4, 1)}, r"dst's height is 9, .* make it 12"),
        ({"padding_r": (1, -1)}, r"padding_r of -1 is too small, it must be larger than -stride, -1"),
        ({"src": shaped(2, 16, 0, 11)}, r"weights' height of 3 .* exceeds the padded src's 2"),
        (
            {"src": shaped(2, 16, 0, 11), "dst": shaped(2, 32, 0, 11), "padding_l": (0, 1), "padding_r": (0, 1)},
            r"weights' height of 3 .* exceeds the padded src's 0",
        ),
        # pairs
        ({"strides": (0, 1)}, r"strides must be two integers from 1 to 2\*\*31 - 1, not \(0, 1\)"),
        ({"strides": (-1, 1)}, r"strides must be"),
        ({"strides": 2}, r"strides must be two integers .* not 2"),
        ({"strides": (1, 1, 1)}, r"strides must be"),
        ({"strides": (1.0, 1)}, r"strides must be"),
        ({"strides": (True, 1)}, r"strides must be"),
        ({"strides": (2**31, 1)}, r"strides must be"),
        ({"strides": "11"}, r"strides must be"),
        ({"strides": None}, r"strides must be"),
        ({"dilations": (-1, 0)}, r"dilations must be two integers from 0 "),
        ({"padding_l": (-1, 1)}, r"padding_l must be two integers from 0 "),
        ({"padding_r": (1, -(2**31))}, r"padding_r must be two integers from -2\*\*31 \+ 1 "),
        ({"padding_r": (2**70, 1)}, r"padding_r must be"),
        # words
        ({"prop_kind": "forward"}, r"prop_kind must be PropKind\.forward_training or .*, not 'forward'"),
        ({"prop_kind": dnn.PropKind.backward_data}, r"prop_kind must be .*, not <PropKind.backward_data"),
        ({"algorithm": "fft"}, r"algorithm 'fft' is not one of auto, direct, winograd"),
        ({"algorithm": dnn.Algorithm.deconvolution_direct}, r"algorithm <Algorithm.deconvolution_.* is not one of"),
        ({"algorithm": 1}, r"algorithm 1 is not one of"),
    ],
)
def test_what_does_not_fit(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=f"^{message}"):
        dnn.ConvolutionForward(**{**GOOD, **changes})


def test_what_is_unusual_but_fits() -> None:
    dnn.ConvolutionForward(**{**GOOD, "prop_kind": dnn.PropKind.forward_training})
    named = dnn.ConvolutionForward(**{**GOOD, "algorithm": dnn.Algorithm.convolution_auto})
    assert dnn.ConvolutionForward(**{**GOOD, "algorithm": "auto"}) == named
    dnn.ConvolutionForward(**{**GOOD, "strides": [1, 1]})
    dnn.ConvolutionForward(**{**GOOD, "padding_l": (3, 1), "dst": shaped(2, 32, 11, 11)})
    dnn.ConvolutionForward(**{**GOOD, "strides": (2**31 - 1, 1), "dst": shaped(2, 32, 1, 11)})
    dnn.ConvolutionForward(**{**GOOD, "padding_l": (50, 1), "dst": shaped(2, 32, 58, 11)})
    dnn.ConvolutionForward(**{**GOOD, "strides": (2, 1), "padding_r": (-1, 1), "dst": shaped(2, 32, 4, 11)})
    grouped = dnn.ConvolutionForward(**{**GOOD, "weights": shaped(2, 16, 8, 3, 3)})
    assert (grouped.groups, grouped.kernel) == (2, (3, 3))
    dnn.ConvolutionForward(**{**GOOD, "src": shaped(0, 16, 9, 11), "dst": shaped(0, 32, 9, 11)})
    dnn.ConvolutionForward(**{**GOOD, "src": shaped(2, 16, 0, 11), "padding_l": (2, 1), "dst": shaped(2, 32, 1, 11)})
    dnn.ConvolutionForward(**{**GOOD, "src": shaped(2, 16, 0, 11), "dst": shaped(2, 32, 0, 11)})


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_every_number_of_axes_has_defaults(axes: int) -> None:
    src, dst = (shaped(2, 8, *[n] * axes) for n in (9, 7))
    desc = dnn.ConvolutionForward(src, shaped(8, 8, *[3] * axes), dst)
    assert (desc.strides, desc.dilations, desc.padding_l, desc.padding_r) == ((1,) * axes, *[(0,) * axes] * 3)


def test_numpy_integers() -> None:
    desc = dnn.ConvolutionForward(**{**GOOD, "strides": (np.int64(1), np.int32(1))})
    assert desc == dnn.ConvolutionForward(**GOOD)
    assert [type(n) for n in desc.strides] == [int, int]


@pytest.mark.parametrize("dims", [(2**40, 16, 9, 11), (2, 2**62, 9, 11), (2**31, 2**31, 2**31, 2**31)], ids=str)
def test_sizes_that_overflow(dims: tuple[int, ...]) -> None:
    with pytest.raises(dnn.InvalidArguments, match=r"dims .* the largest tensor has 2\*\*46"):
        dnn.MemoryDesc(dims, dnn.f32, "nchw")
    with pytest.raises(dnn.InvalidArguments, match=r"dims .* the largest tensor has 2\*\*46"):
        dnn.MemoryDesc(dims, dnn.f32, "any")


def test_tensors_that_a_primitive_lacks() -> None:
    tensor = dnn.MemoryDesc((4, 8), dnn.f32, "ab")
    pd = dnn.primitive_desc(dnn.BinaryForward("add", tensor, tensor, tensor), engine=dnn.Engine(isa="avx2"))
    assert pd.dst_desc == tensor and pd.weights_desc is pd.bias_desc is None
    with pytest.raises(dnn.InvalidArguments, match="binary:avx2 has no src, but src0, dst, src1: look into"):
        _ = pd.src_desc
