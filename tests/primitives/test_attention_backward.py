"""Gradients of attention: the float64 definition, heads that share keys, causal order, formats, pages, mistakes."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops
from asmdnn.definitions.reduction import log_sum_exp
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


def case(of: Any, tag: str = "abcd", left: bool = False) -> Any:
    """left: the forward pass has left the logsumexp of rows."""
    n, heads, groups, rows, keys, d, e, mask, causal = of
    random = np.random.default_rng(8)
    dims = {"query": (n, heads, rows, d), "key": (n, groups, keys, d), "value": (n, groups, keys, e),
            "diff_dst": (n, heads, rows, e)} | ({"mask": mask} if mask else {})  # fmt: skip
    arrays = {name: random.normal(size=size).astype(np.float32) for name, size in dims.items()}
    tensors = {name: layout(size, tag if name != "mask" else "abcd") for name, size in dims.items()}
    results = {f"diff_{name}": layout(dims[name], tag) for name in NAMES}
    added = arrays.get("mask", np.zeros((1, 1, 1, 1))).astype(float)
    if causal:
        added = added + np.where(np.arange(keys) > np.arange(rows)[:, None] + keys - rows, -np.inf, 0.0)
    operands = [arrays[name].astype(float) for name in (*NAMES, "diff_dst")]
    if left:
        scores = operands[0] @ operands[1].repeat(heads // groups, 1).swapaxes(2, 3) * d**-0.5 + added
        arrays["logsumexp"] = log_sum_exp(scores, (3,), True).astype(np.float32)
        tensors["logsumexp"] = layout((n, heads, rows, 1), tag)
    desc = dnn.AttentionBackward(**tensors, **results, causal=causal)
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


@pytest.mark.parametrize("of", CASES, ids=str)
def test_from_the_logsumexp(isa: str, of: Any) -> None:
    """Probabilities are one function of the scores: no maxima and no sums of rows are found."""
    desc, arrays, wanted, room = case(of, left=True)
    pd = check(desc, arrays, wanted, isa, room)
    assert pd.implementation == f"attention:{isa}"
    names = [spec.name for phase in pd.plan.phases for spec in phase.kernels]
    assert not any("softmax_" in name for name in names)
    assert any("map_" in name for name in names)


def test_a_logsumexp_whose_rows_are_apart(isa: str) -> None:
    desc, arrays, wanted, room = case(CASES[1], "acbd", left=True)
    assert check(desc, arrays, wanted, isa, room).implementation == f"attention:{isa}"


def test_rows_that_large_numbers_hide(isa: str) -> None:
    """Beside them the log of a sum is rounded away, so that maxima and sums are found again."""
    random, engine = np.random.default_rng(11), dnn.Engine(isa=isa, machine="zen3")
    query, key, value, dy = (random.uniform(-1, 1, (1, 2, 6, 8)).astype(np.float32) for _ in range(4))
    mask = np.where(np.arange(6)[:, None] == 2, np.finfo(np.float32).min, np.float32(0))
    _, sums = ops.attention(query, key, value, mask, return_logsumexp=True, engine=engine)
    found = ops.attention_gradient(dy, query, key, value, mask, logsumexp=sums, engine=engine)
    exact = attention_gradient(*(x.astype(float) for x in (query, key, value, dy)), 8**-0.5, mask.astype(float))
    for result, values in zip(found, exact, strict=True):
        np.testing.assert_allclose(result, values, rtol=1e-5, atol=1e-6)
    with pytest.raises(dnn.InvalidArguments, match="logsumexp has dims"):
        ops.attention_gradient(dy, query, key, value, mask, logsumexp=sums[:, :, :5], engine=engine)


@pytest.mark.parametrize(("kind", "unit"), [(ml_dtypes.bfloat16, 2.0**-8), (np.float16, 2.0**-11)], ids=str)
@pytest.mark.parametrize("left", [False, True])
def test_types(isa: str, kind: Any, unit: float, left: bool) -> None:
    """All is computed in f32, and rounded once, but for the logsumexp of the same numbers."""
    random, engine = np.random.default_rng(10), dnn.Engine(isa=isa, machine="zen3")
    dims = (2, 4, 37, 20), (2, 2, 53, 20), (2, 2, 53, 24), (2, 4, 37, 24)
    query, key, value, dy = (random.uniform(-1, 1, size).astype(kind) for size in dims)
    sums = None
    if left:
        result, sums = ops.attention(query, key, value, causal=True, return_logsumexp=True, engine=engine)
        assert result.dtype == kind
        assert sums.dtype == np.float32
    found = ops.attention_gradient(dy, query, key, value, causal=True, logsumexp=sums, engine=engine)
    future = np.where(np.arange(53) > np.arange(37)[:, None] + 16, -np.inf, 0.0)
    wanted = attention_gradient(*(x.astype(float) for x in (query, key, value, dy)), 20**-0.5, future)
    for result, values in zip(found, wanted, strict=True):
        assert result.dtype == kind
        room = unit * np.abs(values) + 2.0**-24 * 200 * np.abs(values).max()
        assert (np.abs(result.astype(float) - values) <= room).all()


@pytest.mark.isa("avx512_core_bf16")
def test_from_the_logsumexp_of_bf16() -> None:
    """Of a forward pass that sums powers which are off by 2^-13.5 of each: so are probabilities, and what is made of
    them, in the size of gradients without signs."""
    random, engine = np.random.default_rng(11), dnn.Engine(isa="avx512_core_bf16", machine="zen3")
    dims = (2, 4, 37, 20), (2, 2, 53, 20), (2, 2, 53, 24), (2, 4, 37, 24)
    query, key, value, dy = (random.uniform(-1, 1, size).astype(ml_dtypes.bfloat16) for size in dims)
    _, sums = ops.attention(query, key, value, return_logsumexp=True, engine=engine)
    found = ops.attention_gradient(dy, query, key, value, logsumexp=sums, engine=engine)
    numbers = [x.astype(float) for x in (query, key, value, dy)]
    wanted = attention_gradient(*numbers, 20**-0.5, 0.0)
    sizes = attention_gradient(*map(np.abs, numbers), 20**-0.5, 0.0)
    for result, values, size in zip(found, wanted, sizes, strict=True):
        room = 2.0**-8 * np.abs(values) + 2.0**-12 * np.abs(size).max()
        assert (np.abs(result.astype(float) - values) <= room).all()


def test_types_that_differ(isa: str) -> None:
    """Operands are converted where they are packed or copied, and results where they are done."""
    x, narrow = layout((1, 2, 9, 8), "abcd"), dnn.MemoryDesc((1, 2, 9, 8), dnn.bf16, "abcd")
    pd = proved(dnn.AttentionBackward(narrow, x, narrow, x, x, narrow, x), isa)
    assert pd.implementation == f"reorder+attention:{isa}"
    copies = {name for name in pd.plan.scratch_bytes if "copy" in name}
    assert copies == {"copy of query", "copy of diff_key"}


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
    with pytest.raises(dnn.Unimplemented, match="only f32, bf16, f16"):
        dnn.primitive_desc(dnn.AttentionBackward(*[dnn.MemoryDesc(x.dims, dnn.s8, "abcd")] * 7))
    with pytest.raises(dnn.InvalidArguments, match="logsumexp has dims"):
        dnn.AttentionBackward(*[x] * 7, logsumexp=layout((1, 2, 1, 4), "abcd"))
    with pytest.raises(dnn.InvalidArguments, match="logsumexp is bf16, it must be f32"):
        dnn.AttentionBackward(*[x] * 7, logsumexp=dnn.MemoryDesc((1, 2, 4, 1), dnn.bf16, "abcd"))
    with pytest.raises(dnn.Unimplemented, match="query or value has no elements"):
        empty, rest = layout((1, 2, 0, 8), "abcd"), layout((1, 2, 4, 8), "abcd")
        dnn.primitive_desc(dnn.AttentionBackward(empty, rest, rest, empty, empty, rest, rest))
    with pytest.raises(dnn.InvalidArguments, match="query has 3 dims, attention is of 4"):
        ops.attention_gradient(*[np.zeros((2, 4, 8), np.float32)] * 4)
    with pytest.raises(dnn.InvalidArguments, match="causal"):
        ops.attention_gradient(*[np.zeros((1, 2, 4, 8), np.float32)] * 4, causal=2)  # type: ignore[arg-type]
    with pytest.raises(dnn.InvalidArguments, match="logsumexp has dims"):
        ops.attention_gradient(*[np.zeros((1, 2, 4, 8), np.float32)] * 4, logsumexp=np.zeros((1, 2, 4, 8), np.float32))
