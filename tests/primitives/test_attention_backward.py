"""Gradients of attention: the float64 definition, heads that share keys, causal order, formats, pages, mistakes."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops
from asmdnn.definitions.softmax import attention, attention_gradient
from tests.primitives.conv_case import layout
from tests.primitives.gradient_case import check, proved

CASES: tuple[Any, ...] = (  # images, heads, groups, rows, keys, d, e; mask's dims; causal
    (1, 2, 2, 64, 64, 32, 32, None, False), (2, 4, 2, 37, 53, 20, 24, (1, 4, 37, 53), False),
    (1, 2, 1, 150, 300, 64, 64, None, True), (1, 1, 1, 140, 140, 16, 8, (1, 1, 1, 140), True),
    (1, 2, 2, 3, 5, 1, 7, (1, 1, 3, 1), False), (2, 2, 1, 130, 17, 8, 1, (2, 1, 1, 17), False),
    (1, 3, 1, 2, 9, 4, 4, None, True), (1, 1, 1, 1, 1, 1, 1, None, False),
)  # fmt: skip
NAMES = ("query", "key", "value")


def case(of: Any, tag: str = "abcd") -> Any:
    n, heads, groups, rows, keys, d, e, mask, causal = of
    random = np.random.default_rng(8)
    dims = {"query": (n, heads, rows, d), "key": (n, groups, keys, d), "value": (n, groups, keys, e),
            "diff_dst": (n, heads, rows, e)} | ({"mask": mask} if mask else {})  # fmt: skip
    arrays = {name: random.normal(size=size).astype(np.float32) for name, size in dims.items()}
    tensors = {name: layout(size, tag if name != "mask" else "abcd") for name, size in dims.items()}
    results = {f"diff_{name}": layout(dims[name], tag) for name in NAMES}
    desc = dnn.AttentionBackward(**tensors, **results, causal=causal)
    added = arrays.get("mask", np.zeros((1, 1, 1, 1))).astype(float)
    if causal:
        added = added + np.where(np.arange(keys) > np.arange(rows)[:, None] + keys - rows, -np.inf, 0.0)
    operands = [arrays[name].astype(float) for name in (*NAMES, "diff_dst")]
    found = attention_gradient(*operands, d**-0.5, added)  # type: ignore[call-arg, arg-type, misc]
    wanted = dict(zip(results, found, strict=True))
    sums = rows * heads // groups + keys + d + e
    room = {name: 2.0**-24 * (64 + sums) * max(1.0, float(np.abs(x).max())) for name, x in wanted.items()}
    return desc, arrays, wanted, room


@pytest.mark.parametrize("of", CASES, ids=str)
def test_definition(isa: str, of: Any) -> None:
    desc, arrays, wanted, room = case(of)
    assert check(desc, arrays, wanted, isa, room).implementation == f"attention:{isa}"


@pytest.mark.parametrize("tag", ["acbd", "abdc"])
def test_formats(isa: str, tag: str) -> None:
    """Rows in front of heads are read as they lie; rows that are not dense are copied."""
    desc, arrays, wanted, room = case(CASES[1], tag)
    pd = check(desc, arrays, wanted, isa, room)
    assert pd.implementation == f"{'reorder+' * (tag == 'abdc')}attention:{isa}"


def test_any_format(isa: str) -> None:
    desc, arrays, wanted, room = case(CASES[0])
    free = {name: dnn.MemoryDesc(wanted[name].shape, dnn.f32, "any") for name in wanted}
    given = {name: getattr(desc, name) for name in (*NAMES, "diff_dst")}
    check(dnn.AttentionBackward(**given, **free), arrays, wanted, isa, room)


def test_blocks_share_arguments() -> None:
    """A head of many blocks has no more arguments than one of few."""
    widths = []
    for rows in (256, 1024):
        tensors = [layout((1, 1, rows, 32), "abcd")] * 7
        widths.append(len(proved(dnn.AttentionBackward(*tensors), "avx2").plan.phases[-1].arguments))
    assert widths[0] == widths[1]


def test_arrays_against_finite_differences() -> None:
    random = np.random.default_rng(9)
    given = [random.normal(size=size) for size in ((1, 2, 3, 4), (1, 1, 5, 4), (1, 1, 5, 2))]
    dy, mask = random.normal(size=(1, 2, 3, 2)), np.array([0.0, 1.0, -1.0, 0.5, -np.inf])
    found = ops.attention_gradient(
        dy.astype(np.float32), *(x.astype(np.float32) for x in given), mask.astype(np.float32), scale=0.7
    )
    for i, of in enumerate(given):
        wanted = np.zeros_like(of)
        for at in np.ndindex(of.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [x.copy() for x in given]
                moved[i][at] += step
                keys, values = (np.repeat(x, 2, 1) for x in moved[1:])
                ends.append((attention(moved[0], keys, values, 0.7, mask) * dy).sum())
            wanted[at] = (ends[0] - ends[1]) / 2e-5
        assert np.abs(found[i] - wanted).max() < 1e-5


def test_mistakes() -> None:
    x, other = layout((1, 2, 4, 8), "abcd"), layout((1, 2, 4, 9), "abcd")
    with pytest.raises(dnn.InvalidArguments, match="diff_key"):
        dnn.AttentionBackward(x, x, x, x, x, other, x)
    with pytest.raises(dnn.InvalidArguments, match="dst has dims"):
        dnn.AttentionBackward(x, x, x, other, x, x, x)
    with pytest.raises(dnn.InvalidArguments, match="diff_dst must be a MemoryDesc"):
        dnn.AttentionBackward(x, x, x, None, x, x, x)  # type: ignore[arg-type]
    with pytest.raises(dnn.InvalidArguments, match="causal attention of 4 rows"):
        few = layout((1, 2, 3, 8), "abcd")
        dnn.AttentionBackward(x, few, few, x, x, few, few, causal=True)
    with pytest.raises(dnn.Unimplemented, match="a gradient has no post-ops"):
        dnn.primitive_desc(dnn.AttentionBackward(*[x] * 7), dnn.Attr(["relu"]))
    with pytest.raises(dnn.Unimplemented, match="only f32"):
        dnn.primitive_desc(dnn.AttentionBackward(*[dnn.MemoryDesc(x.dims, dnn.bf16, "abcd")] * 7))
    with pytest.raises(dnn.Unimplemented, match="query or value has no elements"):
        empty, rest = layout((1, 2, 0, 8), "abcd"), layout((1, 2, 4, 8), "abcd")
        dnn.primitive_desc(dnn.AttentionBackward(empty, rest, rest, empty, empty, rest, rest))
    with pytest.raises(dnn.InvalidArguments, match="query has 3 dims, attention is of 4"):
        ops.attention_gradient(*[np.zeros((2, 4, 8), np.float32)] * 4)
    with pytest.raises(dnn.InvalidArguments, match="causal"):
        ops.attention_gradient(*[np.zeros((1, 2, 4, 8), np.float32)] * 4, causal=2)  # type: ignore[arg-type]
