"""Gradients of f32 that attributes allow to multiply bf16: which plans do it, and their results.

The reference multiplies the rounded factors in float64; n sums in f32 are off by gamma(n) of the sum of sizes, and
VDPBF16PS rounds twice for two products, which is as often.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import asmdnn as dnn
from asmdnn.bench.values import rounded
from asmdnn.types import FpMathMode

Doubles = npt.NDArray[np.float64]
UNIT = 2.0**-24
NATIVE = pytest.mark.isa("avx512_core_bf16")


def engine(isa: str = "avx512_core_bf16") -> dnn.Engine:
    return dnn.Engine(isa=isa, threads=1, machine="zen3")


def desc(*dims: int, tag: str = "any") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dnn.f32, tag)


def run(request: Any, result: str, mode: FpMathMode = "bf16", **arrays: Doubles) -> tuple[str, npt.NDArray[np.float32]]:
    """The implementation, and what it computes."""
    pd = dnn.primitive_desc(request, dnn.Attr(fpmath_mode=mode), engine())
    pd.plan.check()
    given = {name: dnn.Memory.from_numpy(x.astype(np.float32), pd.plan.tensors[name]) for name, x in arrays.items()}
    found = dnn.Memory(pd.plan.tensors[result])
    dnn.Primitive(pd).execute(**given, **{result: found})
    return pd.implementation, found.numpy()


def random(*dims: int) -> Doubles:
    return np.random.default_rng(sum(dims)).standard_normal(dims).astype(np.float32).astype(np.float64)


def halves(x: Doubles) -> Doubles:
    return rounded(x, dnn.bf16).astype(np.float64)


def check(found: npt.NDArray[np.float32], wanted: Doubles, sizes: Doubles, terms: int) -> None:
    assert np.all(np.abs(found - wanted) <= 2 * (terms + 2) * UNIT * sizes)


def correlated(x: Doubles, dy: Doubles) -> Doubles:
    """The gradient of the weights of a 3x3 convolution with a border of 1."""
    padded, (height, width) = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), dy.shape[2:]
    windows = (padded[:, :, r : r + height, s : s + width] for r in range(3) for s in range(3))
    return np.stack([np.einsum("nihw,nohw->oi", window, dy) for window in windows], -1).reshape(
        dy.shape[1], x.shape[1], 3, 3
    )


@NATIVE
@pytest.mark.parametrize("tag", ["any", "abcd", "acdb", "aBcd16b"])
@pytest.mark.parametrize("adjoint", [False, True], ids=["convolution", "deconvolution"])
def test_weights_of_convolutions(adjoint: bool, tag: str) -> None:
    src, dst, weights = desc(2, 64, 28, 28, tag=tag), desc(2, 64, 28, 28, tag=tag), desc(64, 64, 3, 3)
    kind = dnn.DeconvolutionBackwardWeights if adjoint else dnn.ConvolutionBackwardWeights
    request = kind(src, weights, dst, None, (1, 1), (0, 0), (1, 1), (1, 1))
    x, dy = random(2, 64, 28, 28), random(2, 64, 28, 28)[::-1].copy()
    name, found = run(request, "diff_weights", src=x, diff_dst=dy)
    assert name.startswith("bf16+")
    first, second = (halves(dy), halves(x)) if adjoint else (halves(x), halves(dy))
    wanted, sizes = correlated(first, second), correlated(np.abs(first), np.abs(second))
    if adjoint:  # weights are (outputs, inputs), as of the convolution that goes back
        wanted, sizes = wanted.transpose(1, 0, 2, 3), sizes.transpose(1, 0, 2, 3)
    check(found, wanted, sizes, 2 * 28 * 28)


@NATIVE
@pytest.mark.parametrize("mode", ["bf16", "any"])
def test_inner_products(mode: FpMathMode) -> None:
    x, weights, dy = random(128, 512), random(256, 512), random(128, 256)
    of_weights = dnn.InnerProductBackwardWeights(desc(128, 512), desc(256, 512), desc(128, 256))
    of_data = dnn.InnerProductBackwardData(desc(128, 512), desc(256, 512), desc(128, 256))
    name, found = run(of_weights, "diff_weights", mode, src=x, diff_dst=dy)
    assert name.startswith("bf16+")
    check(found, halves(dy).T @ halves(x), np.abs(halves(dy)).T @ np.abs(halves(x)), 128)
    name, found = run(of_data, "diff_src", mode, diff_dst=dy, weights=weights)
    assert name.startswith("bf16+")
    check(found, halves(dy) @ halves(weights), np.abs(halves(dy)) @ np.abs(halves(weights)), 256)


@pytest.mark.parametrize(
    ("isa", "mode", "reason"),
    [
        ("avx512_core", "bf16", "isa avx512_core multiplies bf16 as f32"),
        ("avx2", "any", "isa avx2 multiplies bf16 as f32"),
        ("avx512_core_bf16", "f16", ""),
        ("avx512_core_bf16", "strict", ""),
    ],
)
def test_why_f32_stays(isa: str, mode: FpMathMode, reason: str) -> None:
    request = dnn.InnerProductBackwardWeights(desc(128, 512), desc(256, 512), desc(128, 256))
    pd = dnn.primitive_desc(request, dnn.Attr(fpmath_mode=mode), engine(isa))
    assert not pd.implementation.startswith("bf16+")
    said = [refusal.reason for refusal in pd.refusals if refusal.implementation.startswith("bf16:")]
    assert said == [reason] * bool(reason)


def test_few_cycles_stay_f32() -> None:
    """One product of each number: rounding it takes longer."""
    request = dnn.InnerProductBackwardWeights(desc(1, 64), desc(64, 64), desc(1, 64))
    pd = dnn.primitive_desc(request, dnn.Attr(fpmath_mode="bf16"), engine())
    assert not pd.implementation.startswith("bf16+")
    assert any("cycles are expected" in refusal.reason for refusal in pd.refusals)


def test_other_types_are_multiplied_as_they_are() -> None:
    halves = [dnn.MemoryDesc(dims, dnn.bf16, "any") for dims in ((128, 512), (128, 256))]
    request = dnn.InnerProductBackwardWeights(halves[0], desc(256, 512), halves[1])
    loose, strict = (dnn.primitive_desc(request, dnn.Attr(fpmath_mode=m), engine()) for m in ("any", "strict"))
    assert loose.implementation == strict.implementation
