"""Gradients of resampling: matrices of the definition, exact adjoints, formats, many taps, pages, mistakes."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops
from asmdnn.definitions.resampling import resampled_gradient
from tests.primitives.conv_case import layout
from tests.primitives.gradient_case import check, proved

ALGS = ("nearest", "linear", "cubic")
TAGS = ("ab{}", "a{}b", "aB{}8b", "aB{}16b")
SIZES: tuple[Any, ...] = (  # of src, and of dst
    ((5, 7), (10, 14)), ((9, 8), (4, 3)), ((3, 3), (24, 13)), ((4,), (76,)), ((1, 1), (5, 3)), ((3, 4, 5), (6, 8, 5)),
    ((6, 6), (6, 6)), ((7, 4), (5, 1)), ((8, 8), (1, 3)),
)  # fmt: skip


def case(alg: Any, inner: Any, outer: Any, tag: str, coordinates: Any = "half_pixel", channels: int = 19) -> Any:
    random, tag = np.random.default_rng(3), tag.format("cde"[: len(inner)])
    dy = random.integers(-4, 5, (2, channels, *outer)).astype(np.float32)
    tensors = layout((2, channels, *inner), tag), layout(dy.shape, tag)
    desc = dnn.ResamplingBackward(alg, *tensors, (), coordinates)
    wanted, error = resampled_gradient(dy.astype(float), alg, inner, desc.factors, coordinates)
    return desc, {"diff_dst": dy}, {"diff_src": wanted}, error


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("alg", ALGS)
@pytest.mark.one_in(5)
def test_definition(isa: str, alg: str, tag: str) -> None:
    for inner, outer in SIZES if alg != "cubic" else [pair for pair in SIZES if len(pair[0]) < 3]:
        desc, arrays, wanted, error = case(alg, inner, outer, tag)
        pd = check(desc, arrays, wanted, isa, {"diff_src": error})
        ways = {f"{way}:{isa}" for way in ("channels", "rows", "reorder+channels", "axes")}
        assert pd.implementation in ways, pd.implementation


@pytest.mark.parametrize("coordinates", ["align_corners", "asymmetric"])
@pytest.mark.parametrize("alg", ALGS)
def test_coordinates(isa: str, alg: str, coordinates: str) -> None:
    for inner, outer in SIZES[:4]:
        desc, arrays, wanted, error = case(alg, inner, outer, TAGS[1], coordinates, channels=5)
        check(desc, arrays, wanted, isa, {"diff_src": error})


@pytest.mark.parametrize("tag", TAGS[:3])
@pytest.mark.parametrize("alg", ["nearest", "linear"])
def test_adjoint_of_integers(isa: str, alg: Any, tag: str) -> None:
    """<forward(x), y> = <x, backward(y)>: weights of twice the size are quarters, and no sum is rounded."""
    desc, arrays, _, _ = case(alg, (5, 7), (10, 14), tag)
    y, x = arrays["diff_dst"], np.random.default_rng(4).integers(-4, 5, (2, 19, 5, 7)).astype(np.float32)
    engine = dnn.Engine(isa=isa, threads=1)
    dx = ops.resize_gradient(y, x.shape, mode=alg, engine=engine)
    made = ops.resize(x, (10, 14), mode=alg, engine=engine)
    assert (made.astype(float) * y).sum() == (x.astype(float) * dx).sum()
    check(desc, arrays, {"diff_src": dx}, isa)


def test_many_taps_go_axis_by_axis(isa: str) -> None:
    for tag in TAGS[:2]:
        desc, *_ = case("linear", (3, 3), (24, 40), tag)
        assert proved(desc, isa).implementation == f"axes:{isa}"


def test_factors_of_arrays() -> None:
    """A factor that makes no whole size: places are those of the factor."""
    dy = np.ones((1, 2, 7, 12), np.float32)
    dx = ops.resize_gradient(dy, (1, 2, 3, 5), factor=2.5, mode="linear", coordinates="asymmetric")
    wanted, _ = resampled_gradient(dy.astype(float), "linear", (3, 5), (2.5, 2.5), "asymmetric")
    assert np.allclose(dx, wanted, atol=1e-5)
    assert dx.shape == (1, 2, 3, 5)


def test_mistakes() -> None:
    src, dst = layout((1, 2, 5, 7), "abcd"), layout((1, 2, 10, 14), "abcd")
    with pytest.raises(dnn.InvalidArguments, match="images and channels must be src's"):
        dnn.ResamplingBackward("linear", src, layout((1, 3, 10, 14), "abcd"))
    with pytest.raises(dnn.InvalidArguments, match="alg must be"):
        dnn.ResamplingBackward("bicubic", src, dst)  # type: ignore[arg-type]
    with pytest.raises(dnn.Unimplemented, match="diff_dst is s8, only f32, bf16, f16 is"):
        dnn.primitive_desc(dnn.ResamplingBackward("linear", src, dnn.MemoryDesc(dst.dims, dnn.s8, "abcd")))
    with pytest.raises(dnn.Unimplemented, match="a gradient has no post-ops"):
        dnn.primitive_desc(dnn.ResamplingBackward("linear", src, dst), dnn.Attr(["relu"]))
    with pytest.raises(dnn.Unimplemented, match="diff_dst has no elements, of which there are no sums"):
        dnn.primitive_desc(dnn.ResamplingBackward("linear", src, layout((1, 2, 0, 14), "abcd")))
    dy = np.ones(dst.dims, np.float32)
    with pytest.raises(dnn.InvalidArguments, match="dims must be 4 integers"):
        ops.resize_gradient(dy, (1, 2, 5))
    with pytest.raises(dnn.InvalidArguments, match="it must have those of an image"):
        ops.resize_gradient(np.float32(1), (), factor=2)
    with pytest.raises(dnn.InvalidArguments, match="factor must be a number above 0"):
        ops.resize_gradient(dy, (1, 2, 5, 7), factor=0)


def test_nothing(isa: str) -> None:
    desc = dnn.ResamplingBackward("linear", layout((0, 2, 5), "abc"), layout((0, 2, 9), "abc"))
    check(desc, {"diff_dst": np.zeros((0, 2, 9))}, {"diff_src": np.zeros((0, 2, 5))}, isa)
