"""Attention of bf16 by tiles of AMX, emulated: what the products of a block take where pairs by vectors are slow."""

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.softmax import attention_sums
from asmdnn.isa.levels import AVX512_CORE_AMX
from asmdnn.planning.tuning import DEFAULT
from asmdnn.records import replace
from tests.primitives.test_attention import INFERENCE, numbers, tensors, wanted
from tests.support.plans import emulate_plan, proved_desc

ISA = AVX512_CORE_AMX.name
NAME = f"attention:{ISA}"
FREE = replace(
    DEFAULT,
    products=replace(DEFAULT.products, amx_call_cycles=1, amx_end_cycles=1, amx_step_cycles=1e-3, bf16_cycles=9.0),
    attention=replace(DEFAULT.attention, most_rows=48),
)
ENGINE = dnn.Engine(isa=ISA, threads=2, machine="sapphire_rapids", tuning=FREE)
CASES = {  # n, heads, groups, rows, keys, d, e
    "two heads of a group, a rest of rows": (1, 2, 1, 40, 70, 16, 8),
    "no whole groups of keys, a second block": (1, 1, 1, 70, 75, 34, 20),
    "two images": (2, 2, 2, 16, 33, 32, 32),
    "a rest of rows for vectors": (1, 1, 1, 35, 64, 64, 48),
}


def halves(case: tuple[int, ...]) -> dict[str, np.ndarray]:
    return dict(zip(("query", "key", "value"), (x.astype(ml_dtypes.bfloat16) for x in tensors(case)), strict=True))


@pytest.mark.emulated(ISA)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", [dnn.bf16, dnn.f32], ids=str)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_results(case: tuple[int, ...], kind: dnn.DataType, masked: bool) -> None:
    """Off by roundings of probabilities, of values up to 1, and of dst; a logsumexp by the powers that are summed."""
    n, heads, _, rows, keys, _, e = case
    causal, arrays = masked and keys >= rows, halves(case)
    dims = {"dst": (n, heads, rows, e), "logsumexp": (n, heads, rows, 1)}
    made = {name: dnn.Memory(dnn.MemoryDesc(d, dnn.f32 if name != "dst" else kind, "abcd")) for name, d in dims.items()}
    given = {name: dnn.Memory.from_array(x) for name, x in arrays.items()}
    mask = numbers(1, 1, rows, keys, seed=3) if masked else None
    if mask is not None:
        given["mask"] = dnn.Memory.from_array(mask)
    descs = {name: memory.desc for name, memory in {**given, **made}.items()}
    forward = dnn.AttentionForward(INFERENCE, **descs, scale=0.5, causal=causal)
    pd = proved_desc(forward, engine=ENGINE)
    assert pd.implementation == NAME, pd.explain()
    emulate_plan(pd.plan, {**given, **made})
    exact = wanted(*arrays.values(), mask, 0.5, causal)
    found = made["dst"].numpy()
    found = found.view(ml_dtypes.bfloat16).astype(np.float64) if kind == dnn.bf16 else found
    assert (np.abs(found - exact) <= 2.0**-8 * (1 + (kind == dnn.bf16)) + 1e-5).all()
    hidden = causal & (np.arange(keys) > np.arange(rows)[:, None] + keys - rows)
    bias = np.where(hidden, -np.inf, 0.0 if mask is None else mask)
    sums, room = attention_sums(arrays["query"].astype(float), repeated(arrays["key"], heads).astype(float), 0.5, bias)
    assert (np.abs(made["logsumexp"].numpy() - sums) <= room + 2.0**-13.5).all()


def repeated(key: np.ndarray, heads: int) -> np.ndarray:
    return np.repeat(key, heads // key.shape[1], axis=1)


@pytest.mark.parametrize(
    ("rows", "isa", "kinds", "name"),
    [
        (512, ISA, (dnn.bf16,) * 3, NAME),
        (64, ISA, (dnn.bf16,) * 3, NAME),
        (8, ISA, (dnn.bf16,) * 3, "reorder+unpacked_attention:avx512_core"),
        (512, "avx512_core_bf16", (dnn.bf16,) * 3, "reorder+attention:avx512_core"),
        (512, ISA, (dnn.f32,) * 3, "attention:avx512_core"),
        (512, ISA, (dnn.bf16, dnn.bf16, dnn.f32), "reorder+attention:avx512_core"),
    ],
)
def test_expected_cycles_decide(rows: int, isa: dnn.types.IsaName, kinds: tuple[dnn.DataType, ...], name: str) -> None:
    """Where pairs by vectors are slow, f32 is what tiles are compared with; few rows are left to it."""
    dims = ((1, 8, rows, 64), (1, 8, 512, 64), (1, 8, 512, 64))
    query, key, value = (dnn.MemoryDesc(d, kind, "abcd") for d, kind in zip(dims, kinds, strict=True))
    desc = dnn.AttentionForward(INFERENCE, query, key, value, query)
    engine = dnn.Engine(isa=isa, threads=1, machine="sapphire_rapids")
    assert dnn.primitive_desc(desc, engine=engine).implementation == name


def test_tiles_are_taken_where_vectors_multiply_pairs_fast() -> None:
    """For products that pay; the name says so.  One order of sums for any batch has no tiles."""
    desc = dnn.MemoryDesc((1, 8, 256, 64), dnn.bf16, "abcd")
    forward = dnn.AttentionForward(INFERENCE, desc, desc, desc, desc)
    engine = dnn.Engine(isa=ISA, threads=1, machine="zen3")
    assert dnn.primitive_desc(forward, engine=engine).implementation == NAME
    one_order = dnn.primitive_desc(forward, dnn.Attr(deterministic="batch"), engine)
    assert one_order.implementation == "attention:avx512_core_bf16"
