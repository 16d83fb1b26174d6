"""Formats as they are printed: in the letters of what a tensor is."""

from typing import Any

import pytest

import asmdnn as dnn
from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import activations, desc_words, format_of, letters_of_either, matrices, weights
from asmdnn.memory.kernel_rows import KernelRowsDesc
from asmdnn.memory.split import SplitDesc
from asmdnn.memory.winograd import WinogradDesc
from asmdnn.types import bf16, f32


@pytest.mark.parametrize(
    ("desc", "letters", "text"),
    [
        (MemoryDesc((8, 3, 5, 5), f32, "abcd"), "", "nchw"),
        (MemoryDesc((8, 3, 5, 5), f32, "abcd"), weights(4), "oihw"),
        (MemoryDesc((8, 3, 5, 5), f32, "abcd"), matrices(4), "abcd"),
        (MemoryDesc((8, 3, 5, 5), f32, "acbd"), activations(4), "nhcw"),
        (MemoryDesc((2, 8, 3, 5, 5), f32, "aBcde8b"), weights(5, has_groups=True), "gOihw8o"),
        (MemoryDesc((8, 3, 5, 5, 5), f32, "abcde"), weights(5), "oidhw"),
        (MemoryDesc((8, 3), f32, "ab"), "", "ab"),
        (MemoryDesc((8, 3), f32, "ab"), activations(2), "nc"),
        (MemoryDesc((8, 3), f32, "ba"), weights(2), "io"),
        (MemoryDesc((8,), f32, "a"), "", "x"),
        (MemoryDesc((8, 3), f32, "any"), weights(2), "any"),
        (MemoryDesc((8, 3), f32, strides=(7, 2)), weights(2), "strides 7x2"),
        (MemoryDesc((32, 3), f32, strides=(80, 16), inner_blocks=[(0, 16)]), "", "strides 80x16 blocks 16a"),
        (WinogradDesc((16, 8, 3, 3), f32, 4, 16), weights(4), "winograd4:Ohwi16o"),
        (WinogradDesc((16, 8, 3, 3), f32, 4, 16), "", "winograd4:Acdb16a"),
        (KernelRowsDesc((16, 3, 5, 7), bf16, 32), weights(4), "rows:Ohwi32o"),
        (KernelRowsDesc((16, 3, 7), bf16, 16), "", "rows:Acb16a"),
        (SplitDesc(MemoryDesc((16, 9, 3, 3), bf16, "AcdB16a2b"), 1), weights(4), "split:OhwI16o2i"),
        (SplitDesc(MemoryDesc((9, 7), bf16, strides=(8, 1)), 0), "", "strides 8x1"),
    ],
)  # fmt: skip
def test_a_format_is_in_the_letters_of_what_it_is_of(desc: MemoryDesc, letters: str, text: str) -> None:
    assert format_of(desc, letters) == text


def test_words() -> None:
    desc = MemoryDesc((8, 3), f32, "ab", offset0=7)
    assert desc_words(desc) == str(desc) == "f32 8x3 ab offset 7"
    assert desc_words(desc, weights(2)) == "f32 8x3 oi offset 7"


def test_a_reorder_of_weights_prints_weights() -> None:
    plain, panels = (MemoryDesc((32, 8, 3, 3), f32, tag) for tag in ("abcd", "ABcd8b16a"))
    assert letters_of_either(plain, panels) == letters_of_either(panels, plain) == "oihw"
    assert str(dnn.Reorder(plain, panels)) == "reorder of f32 32x8x3x3 oihw to f32 32x8x3x3 OIhw8i16o"
    assert letters_of_either(plain, MemoryDesc((32, 8, 3, 3), f32, "aBcd8b")) == "nchw"
    assert letters_of_either(MemoryDesc((2, 3), f32, "ab"), MemoryDesc((2, 3), f32, "AB2a3b")) == ""


def tensor(dims: tuple[int, ...], tag: str) -> MemoryDesc:
    return MemoryDesc(dims, f32, tag)


ENGINE = dnn.Engine(isa="avx2", threads=1, l2_bytes=512 << 10)
CONVOLUTION = dnn.ConvolutionForward(
    tensor((1, 16, 8, 8), "nhwc"), tensor((32, 16, 3, 3), "oihw"), tensor((1, 32, 6, 6), "nhwc")
)
GROUPED = dnn.ConvolutionForward(
    tensor((1, 16, 8, 8), "any"), tensor((16, 1, 1, 3, 3), "any"), tensor((1, 16, 6, 6), "any")
)
MATMUL = dnn.MatMul(tensor((3, 5, 7), "abc"), tensor((3, 7, 9), "abc"), tensor((3, 5, 9), "abc"))
INNER_PRODUCT = dnn.InnerProductForward(tensor((5, 7), "nc"), tensor((9, 7), "oi"), tensor((5, 9), "nc"))


@pytest.mark.parametrize(
    ("desc", "formats"),
    [
        (CONVOLUTION, {"src": "nhwc", "weights": "oihw", "dst": "nhwc"}),
        (GROUPED, {"src": "nChw8c", "weights": "Goihw8g", "dst": "nChw8c"}),
        (MATMUL, {"src": "abc", "weights": "abc", "dst": "abc"}),
        (INNER_PRODUCT, {"src": "nc", "weights": "oi", "dst": "nc"}),
    ],
    ids=["convolution", "grouped", "matmul", "inner product"],
)
def test_a_plan_prints_each_tensor_by_what_it_is(desc: Any, formats: dict[str, str]) -> None:
    pd = dnn.primitive_desc(desc, engine=ENGINE)
    assert {name: words.split()[-1] for name, words in pd.formats().items()} == formats
    assert all(f" {words}" in pd.explain() for words in pd.formats().values())


def test_a_refusal_says_what_the_description_says() -> None:
    refused = next(str(answer) for answer in dnn.implementations(CONVOLUTION, engine=ENGINE))
    assert refused.endswith("weights must be any or OIhw8i16o, not oihw")
    assert "weights f32 32x16x3x3 oihw" in str(CONVOLUTION)
