"""Gradients of local response normalization: the definition, finite differences, formats, pages, mistakes."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops
from asmdnn.definitions.normalization import (
    local_base,
    local_response,
    local_response_error,
    local_response_gradient,
)
from tests.primitives.conv_case import layout
from tests.primitives.gradient_case import check

ACROSS, WITHIN = "lrn_across_channels", "lrn_within_channel"
CASES: tuple[Any, ...] = (  # alg, dims, size, beta
    (ACROSS, (2, 32, 5, 7), 5, 0.75), (ACROSS, (2, 19, 3), 4, 0.6), (ACROSS, (3, 3), 7, 1.0),
    (WITHIN, (2, 16, 6, 9), 3, 0.75), (WITHIN, (1, 19, 5, 4), 4, 0.5), (WITHIN, (1, 5, 3, 4, 5), 3, 0.75),
)  # fmt: skip
TAGS = ("ab{}", "a{}b", "aB{}8b", "aB{}16b")


def axes_of(desc: Any) -> tuple[int, ...]:
    return (1,) if desc.alg == ACROSS else tuple(range(2, desc.src.ndims))


def base_of(desc: Any, arrays: Any) -> Any:
    """What the forward pass leaves."""
    numbers = desc.local_size, desc.alpha, desc.k
    return local_base(arrays["src"].astype(float), axes_of(desc), *numbers).astype(np.float32)


def answer(desc: Any, arrays: Any) -> Any:
    """(results, their errors)."""
    x, dy = (arrays[name].astype(float) for name in ("src", "diff_dst"))
    axes, size = axes_of(desc), desc.local_size
    wanted, total = local_response_gradient(x, dy, axes, size, desc.alpha, desc.beta, desc.k)
    error = local_response_error(total, 4 * size ** len(axes), desc.beta + 1)
    return {"diff_src": wanted}, {"diff_src": error}


def case(alg: Any, dims: Any, size: int, beta: float, tag: str, kept: bool) -> Any:
    random = np.random.default_rng(5)
    x, dy = (random.uniform(-3, 3, dims).astype(np.float32) for _ in range(2))
    tensor = layout(dims, tag.format("cde"[: len(dims) - 2]))
    desc = dnn.LRNBackward(alg, tensor, tensor, tensor, size, 2.0, beta, 1.5, tensor if kept else None)
    arrays = {"src": x, "diff_dst": dy}
    wanted, error = answer(desc, arrays)
    return desc, arrays | ({"workspace": base_of(desc, arrays)} if kept else {}), wanted, error


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("of", CASES, ids=str)
@pytest.mark.one_in(3)
def test_definition(isa: str, of: Any, tag: str) -> None:
    for kept in (True, False):
        pd = check(*case(*of, tag, kept)[:3], isa, case(*of, tag, kept)[3])
        (alg, dims, *_), block = of, int(tag[4:-1]) if "B" in tag else 1
        copied = dims[1] % block > 0
        by_pixels = alg == ACROSS and not copied and (block > 1 or tag == "a{}b" or len(dims) == 2)
        assert pd.implementation == f"{'reorder+' * copied}{'one_pass' if by_pixels else 'two_passes'}:{isa}"


@pytest.mark.parametrize("kept", [True, False])
def test_other_formats(isa: str, kept: bool) -> None:
    """diff_dst of another format is copied, `any` is src's."""
    desc, arrays, wanted, error = case(*CASES[0], TAGS[1], kept)
    other, free = layout(desc.src.dims, "abcd"), dnn.MemoryDesc(desc.src.dims, dnn.f32, "any")
    mixed = dnn.LRNBackward(desc.alg, desc.src, other, free, 5, 2.0, 0.75, 1.5, desc.workspace)
    pd = check(mixed, arrays, wanted, isa, error)
    assert pd.implementation == f"reorder+one_pass:{isa}"
    assert pd.plan.tensors["diff_src"] == desc.src


def test_arrays_against_finite_differences() -> None:
    random = np.random.default_rng(6)
    for alg, axes in ((ACROSS, (1,)), (WITHIN, (2, 3))):
        x, dy = random.uniform(-2, 2, (2, 1, 4, 3, 3))
        found = np.zeros_like(x)
        for at in np.ndindex(x.shape):
            step = np.zeros_like(x)
            step[at] = 1e-5
            ends = [local_response(x + side * step, axes, 3, 2.0, 0.75, 1.0) for side in (1, -1)]
            found[at] = ((ends[0] - ends[1]) * dy).sum() / 2e-5
        given = dy.astype(np.float32), x.astype(np.float32)
        dx = ops.lrn_gradient(*given, 3, alpha=2.0, alg=alg)  # type: ignore[arg-type]
        assert np.abs(dx - found).max() < 1e-5


def test_mistakes() -> None:
    x, other = layout((1, 4, 5, 5), "abcd"), layout((1, 4, 5, 6), "abcd")
    with pytest.raises(dnn.InvalidArguments, match="diff_dst has dims"):
        dnn.LRNBackward(ACROSS, x, other, x)
    with pytest.raises(dnn.InvalidArguments, match="workspace"):
        dnn.LRNBackward(ACROSS, x, x, x, workspace=other)
    with pytest.raises(dnn.InvalidArguments, match="k above 0"):
        dnn.LRNBackward(ACROSS, x, x, x, k=0.0)
    with pytest.raises(dnn.Unimplemented, match="a window has 729 places"):
        dnn.primitive_desc(dnn.LRNBackward(WITHIN, *(layout((1, 2, 9, 9, 9), "abcde"),) * 3, 9))
    with pytest.raises(dnn.Unimplemented, match="a gradient has no post-ops"):
        dnn.primitive_desc(dnn.LRNBackward(ACROSS, x, x, x), dnn.Attr(["relu"]))
    with pytest.raises(dnn.Unimplemented, match="src is s8, only f32, bf16, f16 is"):
        dnn.primitive_desc(dnn.LRNBackward(ACROSS, *(dnn.MemoryDesc(x.dims, dnn.s8, "abcd"),) * 3))
    with pytest.raises(dnn.InvalidArguments, match="dy has dims"):
        ops.lrn_gradient(np.ones((1, 4, 5, 6), np.float32), np.ones((1, 4, 5, 5), np.float32))


def test_nothing(isa: str) -> None:
    empty, tensor = np.zeros((0, 4, 3)), layout((0, 4, 3), "abc")
    check(dnn.LRNBackward(ACROSS, *(tensor,) * 3), {"src": empty, "diff_dst": empty}, {"diff_src": empty}, isa)
