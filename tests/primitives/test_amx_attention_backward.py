"""Gradients of attention of bf16 by tiles of AMX, emulated, and where a CPU has them."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.reduction import log_sum_exp
from asmdnn.definitions.softmax import attention_gradient, attention_gradient_rounding
from asmdnn.records import replace
from tests.primitives.test_amx_attention import ENGINE as SLOW_PAIRS
from tests.primitives.test_amx_attention import FREE, ISA, NAME
from tests.support.plans import execute, proved_desc

CASES = {  # images, heads, groups, rows, keys, d, e; causal
    "two heads of a group, a rest of rows": (1, 2, 1, 41, 70, 16, 8, False),
    "odd sizes, a second block": (1, 1, 1, 67, 75, 35, 21, False),
    "two images, causal": (2, 2, 2, 33, 49, 32, 32, True),
    "causal blocks": (1, 1, 1, 100, 100, 16, 48, True),
}
KINDS = ("query", "key", "value", "diff_dst")
RESULTS = ("diff_query", "diff_key", "diff_value")
UNIT = 2.0**-8
ENGINE = replace(SLOW_PAIRS, tuning=replace(FREE, products=replace(FREE.products, bf16_cycles=1.0)))


def case(of: tuple[Any, ...], left: bool, results: dnn.DataType = dnn.f32, tag: str = "abcd") -> Any:
    """(description, memories, wanted gradients, their bounds); left: the forward pass has left the logsumexp."""
    n, heads, groups, rows, keys, d, e, causal = of
    random = np.random.default_rng(7)
    sizes = ((n, heads, rows, d), (n, groups, keys, d), (n, groups, keys, e), (n, heads, rows, e))
    arrays = {x: random.uniform(-1, 1, size).astype(ml_dtypes.bfloat16) for x, size in zip(KINDS, sizes, strict=True)}
    numbers = [x.astype(float) for x in arrays.values()]
    future = np.where(causal & (np.arange(keys) > np.arange(rows)[:, None] + keys - rows), -np.inf, 0.0)
    wanted = attention_gradient(*numbers, d**-0.5, future)  # type: ignore[call-arg, arg-type]
    rounded = attention_gradient_rounding(*numbers, d**-0.5, future)  # type: ignore[call-arg, arg-type]
    memories = {x: dnn.Memory.from_numpy(array, laid(array.shape, dnn.bf16, tag)) for x, array in arrays.items()}
    if left:
        scores = numbers[0] @ numbers[1].repeat(heads // groups, 1).swapaxes(2, 3) * d**-0.5 + future
        memories["logsumexp"] = dnn.Memory.from_array(log_sum_exp(scores, (3,), True).astype(np.float32))
    memories |= {x: dnn.Memory(laid(y.shape, results, tag)) for x, y in zip(RESULTS, wanted, strict=True)}
    desc = dnn.AttentionBackward(**{x: memory.desc for x, memory in memories.items()}, causal=causal)
    of_f32 = 2.0**-24 * (64 + rows * heads // groups + keys + d + e)
    rooms = [UNIT * x + of_f32 * x.max() for x in rounded]
    if results == dnn.bf16:
        rooms = [room + UNIT * (np.abs(x) + room) for room, x in zip(rooms, wanted, strict=True)]
    return desc, memories, wanted, rooms


def laid(dims: tuple[int, ...], kind: dnn.DataType, tag: str) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, kind, tag)


def check(of: Any, engine: dnn.Engine, emulated: bool, words: str = "") -> list[np.ndarray]:
    """Compute by tiles, and compare with the definition; of: what `case` makes."""
    desc, memories, wanted, rooms = of
    pd = proved_desc(desc, engine=engine)
    assert pd.implementation == words + NAME, pd.explain()
    execute(pd, memories, emulated)
    found = [memories[x].numpy() for x in RESULTS]
    found = [x if x.dtype == np.float32 else x.view(ml_dtypes.bfloat16).astype(np.float32) for x in found]
    for result, x, room in zip(found, wanted, rooms, strict=True):
        assert (np.abs(result - x) <= room).all(), (np.abs(result - x) / room).max()
    return found


@pytest.mark.emulated(ISA)
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("of", CASES.values(), ids=CASES)
def test_gradients(of: tuple[Any, ...], left: bool) -> None:
    """Off by a rounding of each probability and gradient of a score, and by what f32 rounds."""
    check(case(of, left), ENGINE, emulated=True)


@pytest.mark.emulated(ISA)
def test_results_of_bf16() -> None:
    """Are rounded once more; heads may come after rows."""
    of = CASES["two heads of a group, a rest of rows"]
    check(case(of, True, dnn.bf16, "acbd"), ENGINE, emulated=True, words="reorder+")


@pytest.mark.isa(ISA)
@pytest.mark.parametrize("causal", [False, True])
def test_every_number_of_threads_gives_the_same_bits(causal: bool) -> None:
    of = (2, 4, 2, 70, 90, 32, 32, causal)
    found = [check(case(of, True), replace(ENGINE, threads=threads), emulated=False) for threads in (1, 2, 3)]
    for other in found[1:]:
        for x, y in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    ("rows", "isa", "of_dst", "name"),
    [
        (512, ISA, dnn.bf16, NAME),
        (64, ISA, dnn.bf16, NAME),
        (1, ISA, dnn.bf16, "attention:avx512_core"),
        (512, "avx512_core_bf16", dnn.bf16, "attention:avx512_core"),
        (512, ISA, dnn.f32, "attention:avx512_core"),
    ],
)
def test_expected_cycles_decide(rows: int, isa: dnn.types.IsaName, of_dst: dnn.DataType, name: str) -> None:
    """One row is left to f32, and so is a diff_dst of f32."""
    query, key = (dnn.MemoryDesc((1, 8, x, 64), dnn.bf16, "abcd") for x in (rows, 512))
    dst = dnn.MemoryDesc((1, 8, rows, 64), of_dst, "abcd")
    results = [dnn.MemoryDesc(x.dims, dnn.f32, "abcd") for x in (query, key, key)]
    engine = dnn.Engine(isa=isa, threads=1, machine="sapphire_rapids")
    pd = dnn.primitive_desc(dnn.AttentionBackward(query, key, key, dst, *results), engine=engine)
    assert pd.implementation.removeprefix("reorder+") == name
