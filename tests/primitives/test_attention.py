"""Attention: masks, causal, grouped queries, any lengths and strides, any number of threads; bad input."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.softmax import attention, attention_sums
from tests.support.plans import emulate_plan, proved_desc
from tests.support.tuning import tuned

INFERENCE = dnn.PropKind.forward_inference
CASES = [  # n, heads, groups, rows, keys, d, e
    (1, 2, 2, 5, 7, 4, 6), (2, 4, 2, 40, 70, 16, 8), (1, 3, 1, 1, 33, 20, 20), (1, 2, 2, 70, 130, 64, 64),
    (1, 1, 1, 3, 1, 1, 1), (2, 2, 2, 17, 17, 3, 5),
]  # fmt: skip

FEW = [(2, 3, 3, 1, 37, 6, 24), (2, 3, 3, 1, 37, 64, 16), (1, 4, 2, 1, 70, 64, 48), (2, 2, 2, 4, 41, 16, 16),
       (1, 4, 2, 20, 41, 16, 16)]  # fmt: skip


def numbers(*dims: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, dims).astype(np.float32)


def tensors(case: tuple[int, ...]) -> tuple[Any, Any, Any]:
    n, heads, groups, rows, keys, d, e = case
    return numbers(n, heads, rows, d), numbers(n, groups, keys, d, seed=1), numbers(n, groups, keys, e, seed=2)


def wanted(query: Any, key: Any, value: Any, mask: Any, scale: float, causal: bool) -> Any:
    rows, keys = query.shape[2], key.shape[2]
    hidden = causal & (np.arange(keys) > np.arange(rows)[:, None] + keys - rows)
    bias = np.where(hidden, -np.inf, 0.0 if mask is None else mask)
    return attention(*(x.astype(np.float64) for x in (query, key, value)), scale, bias)


def plain(array: Any) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(array.shape, dnn.f32, "abcd")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", ["none", "keys", "rows", "all", "one"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_forms(isa: str, case: tuple[int, ...], masked: str, causal: bool) -> None:
    n, heads, _, rows, keys, *_ = case
    if causal and keys < rows:
        return
    dims = {"keys": (n, 1, 1, keys), "rows": (1, heads, rows, 1), "all": (n, heads, rows, keys), "one": (1, 1, 1, 1)}
    query, key, value = tensors(case)
    mask = numbers(*dims[masked], seed=3) if masked in dims else None
    with tuned("attention", most_rows=16):
        engine = dnn.Engine(isa=isa, threads=2)
        found = dnn.ops.attention(query, key, value, mask, causal=causal, scale=0.5, engine=engine)
    np.testing.assert_allclose(found, wanted(query, key, value, mask, 0.5, causal), 1e-4, 1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", ["none", "rows", "one"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_logsumexp(isa: str, case: tuple[int, ...], masked: str, causal: bool) -> None:
    """Left beside the result, for any number of threads the same."""
    n, heads, _, rows, keys, *_ = case
    if causal and keys < rows:
        return
    dims = {"rows": (1, heads, rows, 1), "one": (1, 1, 1, 1)}
    query, key, value = tensors(case)
    mask = numbers(*dims[masked], seed=3) if masked in dims else None
    kept = []
    with tuned("attention", most_rows=16):
        for threads in (1, 2, 3):
            engine = dnn.Engine(isa=isa, threads=threads)
            words: Any = {"causal": causal, "scale": 0.5, "return_logsumexp": True, "engine": engine}
            found, sums = dnn.ops.attention(query, key, value, mask, **words)
            kept.append(sums)
    np.testing.assert_allclose(found, wanted(query, key, value, mask, 0.5, causal), 1e-4, 1e-5)
    hidden = causal & (np.arange(keys) > np.arange(rows)[:, None] + keys - rows)
    bias = np.where(hidden, -np.inf, 0.0 if mask is None else mask)
    exact, room = attention_sums(query.astype(float), key.astype(float), 0.5, bias)
    assert sums.shape == (n, heads, rows, 1)
    assert (np.abs(kept[0] - exact) <= room).all()
    assert kept[0].tobytes() == kept[1].tobytes() == kept[2].tobytes()


def test_logsumexp_of_rows_apart_and_of_none(isa: str) -> None:
    """Where its rows lie in front of heads; of rows that see no key it is NaN, as their results.  Without values there
    is none."""
    names = "query", "key", "value"
    given = {name: dnn.Memory.from_array(x) for name, x in zip(names, tensors(CASES[1]), strict=True)}
    descs = [memory.desc for memory in given.values()]
    mask = dnn.Memory.from_array(np.full((1, 1, 40, 1), -np.inf, np.float32))
    mask.array[:39] = 0
    dst, sums = dnn.Memory(plain(np.empty((2, 4, 40, 8)))), dnn.Memory(dnn.MemoryDesc((2, 4, 40, 1), dnn.f32, "acbd"))
    words: Any = {"mask": mask.desc, "logsumexp": sums.desc}
    pd = proved_desc(dnn.AttentionForward(INFERENCE, *descs, dst.desc, **words), engine=dnn.Engine(isa=isa))
    assert pd.implementation == f"attention:{isa}"
    assert pd.plan.outputs == ("dst", "logsumexp")
    dnn.Primitive(pd).execute(**given, mask=mask, dst=dst, logsumexp=sums)
    exact, room = attention_sums(*(given[name].numpy().astype(float) for name in ("query", "key")), 16**-0.5)
    assert (np.abs(sums.numpy() - exact)[:, :, :39] <= room[:, :, :39]).all()
    assert np.isnan(sums.numpy()[:, :, 39]).all()
    assert np.isnan(dst.numpy()[:, :, 39]).all()
    empty = dnn.MemoryDesc((2, 2, 70, 0), dnn.f32, "abcd"), dnn.MemoryDesc((2, 4, 40, 0), dnn.f32, "abcd")
    with pytest.raises(dnn.Unimplemented, match="value has no elements: leave out logsumexp"):
        dnn.primitive_desc(dnn.AttentionForward(INFERENCE, *descs[:2], *empty, logsumexp=sums.desc))


@pytest.mark.parametrize("causal", [False, True])
def test_plans(planned_isa: str, causal: bool) -> None:
    """Blocks of rows, the last one smaller; what they may touch, for every level."""
    query, key, value = tensors((2, 4, 2, 40, 70, 16, 8))
    dst = dnn.MemoryDesc((2, 4, 40, 8), dnn.f32, "abcd")
    desc = dnn.AttentionForward(INFERENCE, *map(plain, (query, key, value)), dst, causal=causal)
    with tuned("attention", most_rows=16):
        pd = proved_desc(desc, engine=dnn.Engine(isa=planned_isa, threads=2, machine="zen3"))
    assert pd.implementation == f"attention:{planned_isa}"
    assert pd.plan.per_part == ("scores",)


@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize("case", FEW, ids=str)
def test_few_rows(isa: str, case: tuple[int, ...], by_rows: bool) -> None:
    """Of a cache that is longer than what is read; by_rows: the elements of a key follow one another.  Only such keys
    are packed, if they are short or more rows read them than dots multiply."""
    n, heads, groups, rows, keys, *_ = case
    query, key, value = tensors(case)
    cache = np.full((n, groups, keys + 9, key.shape[3]), np.nan, np.float32)
    cache[:, :, 5 : 5 + keys] = key
    key = cache[:, :, 5 : 5 + keys] if by_rows else np.ascontiguousarray(key.swapaxes(2, 3)).swapaxes(2, 3)
    mask = numbers(n, 1, rows, keys, seed=3)
    results = []
    for threads in (1, 2, 3):
        engine = dnn.Engine(isa=isa, threads=threads, machine="zen3")
        results.append(dnn.ops.attention(query, key, value, mask, causal=True, engine=engine))
    np.testing.assert_allclose(results[0], wanted(query, key, value, mask, query.shape[3] ** -0.5, True), 1e-4, 1e-5)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])
    strides = tuple(step // 4 for step in key.strides)
    descs = plain(query), dnn.MemoryDesc(key.shape, dnn.f32, strides=strides, offset0=3), plain(value)
    desc = dnn.AttentionForward(INFERENCE, *descs, dnn.MemoryDesc((*query.shape[:3], value.shape[3]), dnn.f32, "abcd"))
    pd = proved_desc(desc, engine=dnn.Engine(isa=isa, machine="zen3"))
    assert pd.implementation == f"unpacked_attention:{isa}"
    packs = by_rows and (key.shape[3] < 8 or rows * heads > 8 * groups)
    assert [name for name in pd.plan.scratch_bytes if "packed" in name] == ["packed keys"] * packs
    steady = dnn.primitive_desc(desc, dnn.Attr(deterministic="batch"), dnn.Engine(isa=isa, machine="zen3"))
    assert steady.implementation == f"attention:{isa}"


def test_rows_a_multiple_of_4_kib_apart(isa: str) -> None:
    """As 16 heads of 64 side by side: tiles read a copy of the rows that they multiply.  Once refused on AVX-512."""
    query, key, value = (numbers(1, n, 16, 64, seed=n).swapaxes(1, 2) for n in (24, 512, 513))
    value = value[:, :, :512]
    result = dnn.ops.attention(query, key, value, engine=dnn.Engine(isa=isa, machine="zen3"))
    np.testing.assert_allclose(result, wanted(query, key, value, None, 64**-0.5, False), 1e-4, 1e-5)
    layout = dnn.MemoryDesc((1, 16, 24, 64), dnn.f32, "acbd")
    keys = dnn.MemoryDesc((1, 16, 512, 64), dnn.f32, "acbd")
    forward = dnn.AttentionForward(INFERENCE, layout, keys, keys, layout)
    backward = dnn.AttentionBackward(layout, keys, keys, layout, layout, keys, keys)
    for desc in (forward, backward):
        pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, machine="zen3"))
        pd.plan.check()
        assert pd.implementation.startswith("reorder+")


def test_strides_threads_and_long_rows(isa: str) -> None:
    """Heads that are the third dim in memory, as linear layers leave them; the same bits for any number of threads."""
    query, key, value = (numbers(2, 300, 3, 20, seed=i).swapaxes(1, 2) for i in range(3))
    results = [dnn.ops.attention(query, key, value, engine=dnn.Engine(isa=isa, threads=n)) for n in (1, 2, 3)]
    np.testing.assert_allclose(results[0], wanted(query, key, value, None, 20**-0.5, False), 1e-4, 1e-5)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])
    out = np.zeros((2, 300, 3, 20), np.float32).swapaxes(1, 2)
    assert dnn.ops.attention(query, key, value, out=out, engine=dnn.Engine(isa=isa)) is out
    assert np.array_equal(out, results[0])


def test_hidden_keys(isa: str) -> None:
    """A key whose mask is -infinity has no influence, whatever its value; rows that see no key become NaN."""
    query, key, value = tensors((1, 1, 1, 2, 9, 4, 4))
    mask = np.where(np.arange(9) < 5, 0, -np.inf).astype(np.float32)
    found = dnn.ops.attention(query, key, value, mask, engine=dnn.Engine(isa=isa))
    np.testing.assert_allclose(found, wanted(query, key[:, :, :5], value[:, :, :5], None, 0.5, False), 1e-5, 1e-6)
    for truths in (mask == 0, (mask == 0).tolist()):
        hidden = dnn.ops.attention(query, key, value, truths, engine=dnn.Engine(isa=isa))
        assert np.array_equal(hidden, found)
    nothing = np.float32([[0], [-np.inf]])
    found = dnn.ops.attention(query, key, value, nothing, engine=dnn.Engine(isa=isa))
    assert np.isfinite(found[0, 0, 0]).all()
    assert np.isnan(found[0, 0, 1]).all()


def test_bad_input() -> None:
    query, key, value = (plain(x) for x in tensors((1, 4, 2, 5, 7, 4, 6)))
    dst = dnn.MemoryDesc((1, 4, 5, 6), dnn.f32, "abcd")
    three = dnn.MemoryDesc((1, 3, 7, 4), dnn.f32, "abcd")
    for arguments, says in (
        ({"dst": query}, "dst has dims"),
        ({"key": three, "value": dnn.MemoryDesc((1, 3, 7, 6), dnn.f32, "abcd")}, "must divide the 4 heads"),
        ({"value": three}, "value has dims"),
        ({"mask": dnn.MemoryDesc((7,), dnn.f32, "a")}, "mask has 1 dim"),
        ({"mask": query}, "mask has dims"),
        ({"scale": float("nan")}, "scale must be a finite"),
        ({"query": None}, "query must be a MemoryDesc"),
    ):
        given: Any = {"query": query, "key": key, "value": value, "dst": dst} | arguments
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.AttentionForward(INFERENCE, **given)
    long = dnn.MemoryDesc((1, 4, 9, 4), dnn.f32, "abcd")
    with pytest.raises(dnn.InvalidArguments, match="causal attention of 9 rows needs as many keys"):
        dnn.AttentionForward(INFERENCE, long, key, value, dnn.MemoryDesc((1, 4, 9, 6), dnn.f32, "abcd"), causal=True)


def test_torch(isa: str) -> None:
    torch = pytest.importorskip("torch", reason="not compared with torch: pip install '.[torch]'")
    query, key, value = tensors((2, 3, 3, 30, 30, 16, 16))
    inputs = map(torch.from_numpy, (query, key, value))
    result = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=True).numpy()
    found = dnn.ops.attention(query, key, value, causal=True, engine=dnn.Engine(isa=isa))
    np.testing.assert_allclose(found, result, 1e-4, 1e-5)


TYPED = {dnn.bf16: ml_dtypes.bfloat16, dnn.f16: np.float16, dnn.f32: np.float32}
PAIRS = [(dnn.bf16, dnn.bf16), (dnn.f16, dnn.f16), (dnn.bf16, dnn.f32), (dnn.f32, dnn.f16)]
ROUNDOFF = {dnn.f32: 0.0, dnn.bf16: 2.0**-8, dnn.f16: 2.0**-11}


@pytest.mark.parametrize(
    "level", ["avx2", "avx512_core", pytest.param("avx512_core_bf16", marks=pytest.mark.isa("avx512_core_bf16"))]
)
@pytest.mark.parametrize(("kind", "result"), PAIRS, ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_types(level: str, kind: dnn.DataType, result: dnn.DataType, causal: bool) -> None:
    """Scores in f32; where bf16 is multiplied, probabilities are rounded to it: values up to 1 are off by 2^-8 of 1."""
    for case in CASES[:5]:
        if causal and case[4] < case[3]:
            continue
        query, key, value = (x.astype(TYPED[kind]) for x in tensors(case))
        mask = numbers(case[0], 1, 1, case[4], seed=3).astype(TYPED[kind])
        with tuned("attention", most_rows=16):
            engine = dnn.Engine(isa=level, threads=2, machine="zen3")
            found = dnn.ops.attention(query, key, value, mask, causal=causal, scale=0.5, dtype=result, engine=engine)
        assert found.dtype == TYPED[result]
        exact = wanted(query, key, value, mask.astype(np.float64), 0.5, causal)
        native = ROUNDOFF[dnn.bf16] if level == "avx512_core_bf16" and kind == dnn.bf16 else 0.0
        bound = (ROUNDOFF[result] + native) * np.maximum(np.abs(exact), native > 0) + 1e-5
        assert (np.abs(found.astype(np.float64) - exact) <= bound).all()


@pytest.mark.parametrize(("level", "name"), [
    ("avx2", "reorder+attention:avx2"), ("avx512_core", "reorder+attention:avx512_core"),
    ("avx512_core_bf16", "attention:avx512_core_bf16"),
])  # fmt: skip
def test_plans_of_bf16(level: str, name: str) -> None:
    """For every level: what is multiplied, and what may be touched; query alone is converted in front."""
    desc = dnn.MemoryDesc((2, 4, 70, 17), dnn.bf16, "abcd")
    attention, engine = dnn.AttentionForward(INFERENCE, desc, desc, desc, desc), dnn.Engine(isa=level, machine="zen3")
    pd = proved_desc(attention, engine=engine)
    assert pd.implementation == name
    in_parts = level == "avx512_core_bf16"
    assert ("rounded scores" in pd.plan.per_part) == in_parts
    names = [spec.name for phase in pd.plan.phases for spec in phase.kernels]
    assert any("softmaxparts" in name for name in names) == in_parts
    assert any("softmax_" in name for name in names) != in_parts
    assert [x for x in pd.plan.scratch_bytes if "copy" in x] == (["copy of query"] if "reorder" in name else [])


@pytest.mark.isa("avx512_core_bf16")
@pytest.mark.parametrize("rows", [2, 40])
def test_hidden_keys_of_bf16(rows: int) -> None:
    """Their powers are 0, so that finite values have no influence; rows that see none become NaN, and no others."""
    query, key, value = (x.astype(ml_dtypes.bfloat16) for x in tensors((1, 1, 1, rows, 37, 16, 8)))
    mask = np.where(np.arange(37) < 11, 0, -np.inf).astype(np.float32)
    engine = dnn.Engine(isa="avx512_core_bf16", machine="zen3")
    value[0, 0, 11:] = 3e38
    found = dnn.ops.attention(query, key, value, mask, engine=engine)
    shorter = dnn.ops.attention(query, key[:, :, :11], value[:, :, :11], engine=engine)
    np.testing.assert_allclose(found.astype(np.float32), shorter.astype(np.float32), 2.0**-7, 2.0**-7)
    mask = np.tile(mask, (rows, 1))
    mask[1] = -np.inf
    found = dnn.ops.attention(query, key, value, mask, engine=engine).astype(np.float32)
    assert np.isnan(found[0, 0]).all(axis=1).tolist() == [i == 1 for i in range(rows)]


@pytest.mark.parametrize("keys", [127, 128, 129, 200, 256, 300, 512])
@pytest.mark.parametrize("width", [8, 16, 40, 64])
def test_few_accumulators(isa: str, keys: int, width: int) -> None:
    """Products of so few sums take some of them in turn, and those of attention do not: they read how many keys there
    are, in one order."""
    for rows in (1, 2):
        query, key, value = tensors((1, 2, 1, rows, keys, 8, width))
        engine = dnn.Engine(isa=isa, threads=1)
        found = dnn.ops.attention(query, key, value, scale=0.5, engine=engine)
        np.testing.assert_allclose(found, wanted(query, key, value, None, 0.5, False), 1e-4, 1e-5)


@pytest.mark.parametrize("kind", [dnn.bf16, dnn.f16], ids=str)
@pytest.mark.parametrize("rows", [1, 5, 30])
def test_keys_and_values_of_16_bits_where_they_lie(isa: str, rows: int, kind: dnn.DataType) -> None:
    """They become f32 in registers, the query in front; keys row by row and column by column."""
    query, key, value = (x.astype(TYPED[kind]) for x in tensors((2, 4, 2, rows, 150, 24, 40)))
    engine = dnn.Engine(isa=isa, threads=2)
    for turned in (False, True):
        laid = np.ascontiguousarray(key.swapaxes(2, 3)).swapaxes(2, 3) if turned else key
        given = {name: dnn.Memory.from_array(x) for name, x in (("query", query), ("key", laid), ("value", value))}
        dst = dnn.Memory(dnn.MemoryDesc((2, 4, rows, 40), dnn.f32, "abcd"))
        desc = dnn.AttentionForward(INFERENCE, *(memory.desc for memory in given.values()), dst.desc, scale=0.5)
        pd = proved_desc(desc, engine=engine)
        assert pd.implementation == f"reorder+unpacked_attention:{isa}"
        dnn.Primitive(pd).execute(**given, dst=dst)
        np.testing.assert_allclose(dst.numpy(), wanted(query, key, value, None, 0.5, False), 1e-4, 1e-5)


@pytest.mark.emulated("avx512_core_bf16")
def test_emulated_bf16() -> None:
    query, key, value = (x.astype(ml_dtypes.bfloat16) for x in tensors((1, 2, 1, 5, 19, 5, 3)))
    dst = dnn.Memory(dnn.MemoryDesc((1, 2, 5, 3), dnn.f32, "abcd"))
    given = {name: dnn.Memory.from_array(x) for name, x in (("query", query), ("key", key), ("value", value))}
    desc = dnn.AttentionForward(INFERENCE, *(memory.desc for memory in given.values()), dst.desc)
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx512_core_bf16", threads=1, machine="zen3"))
    emulate_plan(pd.plan, {**given, "dst": dst})
    np.testing.assert_allclose(dst.numpy(), wanted(query, key, value, None, 5**-0.5, False), 0, 2.0**-7)


def test_a_logsumexp_is_left_where_bf16_is_multiplied(planned_isa: str) -> None:
    desc, sums = dnn.MemoryDesc((2, 4, 70, 17), dnn.bf16, "abcd"), dnn.MemoryDesc((2, 4, 70, 1), dnn.f32, "abcd")
    forward = dnn.AttentionForward(dnn.PropKind.forward_training, desc, desc, desc, desc, logsumexp=sums)
    pd = proved_desc(forward, engine=dnn.Engine(isa=planned_isa, machine="zen3"))
    assert pd.implementation == f"reorder+attention:{planned_isa}"
    pd = proved_desc(forward, engine=dnn.Engine(isa="avx512_core_bf16", machine="zen3"))
    assert pd.implementation == "attention:avx512_core_bf16"


@pytest.mark.isa("avx512_core_bf16")
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_logsumexp_in_bf16(case: tuple[int, ...], masked: bool) -> None:
    """Off by the error of the powers that are summed, for any number of threads the same; results as without it."""
    *_, rows, keys, _, _ = case
    query, key, value = (x.astype(ml_dtypes.bfloat16) for x in tensors(case))
    mask = numbers(1, 1, rows, keys, seed=3) if masked else None
    causal, kept = keys >= rows, []
    with tuned("attention", most_rows=16):
        for threads in (1, 2, 3):
            engine = dnn.Engine(isa="avx512_core_bf16", threads=threads, machine="zen3")
            words: Any = {"causal": causal, "scale": -0.5, "engine": engine}
            found, sums = dnn.ops.attention(query, key, value, mask, return_logsumexp=True, **words)
            kept.append(sums.tobytes())
            assert np.array_equal(found, dnn.ops.attention(query, key, value, mask, **words))
    hidden = causal & (np.arange(keys) > np.arange(rows)[:, None] + keys - rows)
    bias = np.where(hidden, -np.inf, 0.0 if mask is None else mask)
    exact, room = attention_sums(query.astype(float), key.astype(float), -0.5, bias)
    assert (np.abs(sums - exact) <= room + 2.0**-13.5).all()
    assert kept[0] == kept[1] == kept[2]


def test_integers_are_refused() -> None:
    with pytest.raises(dnn.Unimplemented, match="query is s8, only f32, bf16, f16 is implemented"):
        dnn.ops.attention(*(np.ones((1, 1, 2, 3), np.int8) for _ in range(3)))
