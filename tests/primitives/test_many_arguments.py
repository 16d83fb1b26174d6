"""Plans of so many arguments that records and frames outgrow the short encodings of the executor."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.corpus.families import executors
from asmdnn.planning.assembly import nothing
from asmdnn.runtime.execution import ExecutablePlan
from tests.generators.executors import COUNTS
from tests.primitives.conv_case import case_of, proven
from tests.primitives.conv_reference import expected, make_data
from tests.primitives.conv_run import memories_of
from tests.primitives.tensors import assert_within, holding, read

MOST_POST_OPS = 32
SCALED = {"src": 0, "weights": 0, "dst": 0}


def integers(seed: int, *dims: int) -> Any:
    """Small ones, so that every sum is exact."""
    return np.random.default_rng(seed).integers(-4, 5, dims).astype(np.float32)


def product(post_ops: int, scaled: bool) -> tuple[dnn.MatMul, dnn.Attr]:
    """A product whose chain adds that many rows; scaled, with a bias and every scale."""
    dims = {"src": (7, 20), "weights": (20, 19), "dst": (7, 19)} | ({"bias": (1, 19)} if scaled else {})
    row = dnn.MemoryDesc((1, 19), dnn.f32, "ab")
    desc = dnn.MatMul(**{name: dnn.MemoryDesc(shape, dnn.f32, "ab") for name, shape in dims.items()})
    return desc, dnn.Attr([dnn.Binary("add", row)] * post_ops, SCALED if scaled else {})


def execute(pd: dnn.PrimitiveDesc, arrays: dict[str, Any]) -> Any:
    """dst, which held poison before."""
    pd.plan.check()
    memories = {name: holding(desc, arrays.get(name)) for name, desc in pd.plan.tensors.items()}
    dnn.Primitive(pd).execute(**memories)
    return read(memories["dst"])


@pytest.mark.parametrize("post_ops", [7, 8, 9, 10])
def test_matmul(isa: str, post_ops: int) -> None:
    pd = dnn.primitive_desc(*product(post_ops, scaled=False), dnn.Engine(threads=1))
    assert pd.implementation == f"tiles:{isa}"
    assert len(pd.plan.phases[0].arguments) == 7 + post_ops
    rows = {f"binary_{i}": integers(i, 1, 19) for i in range(post_ops)}
    src, weights = integers(50, 7, 20), integers(51, 20, 19)
    result = execute(pd, {"src": src, "weights": weights, **rows})
    np.testing.assert_array_equal(result, src @ weights + sum(rows.values()))


@pytest.mark.parametrize("post_ops", [3, 4, 6])
def test_matmul_with_scales_and_bias(isa: str, post_ops: int) -> None:
    pd = dnn.primitive_desc(*product(post_ops, scaled=True), dnn.Engine(threads=1))
    assert pd.implementation == f"tiles:{isa}"
    assert len(pd.plan.phases[0].arguments) == 7 + 4 + post_ops
    arrays = {f"binary_{i}": integers(i, 1, 19) for i in range(post_ops)}
    rows = sum(arrays.values())
    arrays |= {"src": integers(50, 7, 20), "weights": integers(51, 20, 19), "bias": integers(52, 1, 19)}
    scales = {f"{name}_scales": np.float32([factor]) for name, factor in zip(SCALED, (2, 0.5, 4), strict=True)}
    result = execute(pd, arrays | scales)
    wanted = (2 * 0.5 * (arrays["src"] @ arrays["weights"]) + arrays["bias"] + rows) / np.float32(4)
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("post_ops", [8, 9, 12])
def test_convolution(isa: str, post_ops: int) -> None:
    """1x1, so that a product is the answer."""
    channels = dnn.MemoryDesc((1, 16, 1, 1), dnn.f32, "abcd")
    free = dnn.MemoryDesc((1, 16, 6, 6), dnn.f32, "any")
    desc = dnn.ConvolutionForward(src=free, weights=dnn.MemoryDesc((16, 16, 1, 1), dnn.f32, "any"), dst=free)
    pd = dnn.primitive_desc(desc, dnn.Attr([dnn.Binary("add", channels)] * post_ops), dnn.Engine(threads=1))
    assert pd.implementation == f"direct:{isa}"
    vectors = max(spec.vectors for spec in pd.plan.phases[0].kernels)  # each of dst's has a pointer
    assert len(pd.plan.phases[0].arguments) == 5 + vectors + post_ops
    arrays = {f"binary_{i}": integers(i, 1, 16, 1, 1) for i in range(post_ops)}
    added = sum(arrays.values())
    arrays |= {"src": integers(50, 1, 16, 6, 6), "weights": integers(51, 16, 16, 1, 1)}
    sums = np.tensordot(arrays["weights"][:, :, 0, 0], arrays["src"], (1, 1)).transpose(1, 0, 2, 3)
    np.testing.assert_array_equal(execute(pd, arrays), sums + added)


@pytest.mark.parametrize("more", COUNTS)
def test_phases_of_several_widths(isa: str, more: int) -> None:
    """Records have as many arguments as the kernels of their phase, whatever the largest phase of the plan has."""
    case = case_of("mb2ic33ih9oc33oh9kh3ph1 any any bias relu")
    pd = proven(case, isa)
    data = make_data(case, integers=True)
    memories = memories_of(pd, data)
    plan = replace(pd.plan, phases=(*pd.plan.phases, nothing(pd.plan.arguments + more)))
    call = ExecutablePlan(plan, threads=2).prepare()
    call.bind([memories[name].address for name in plan.tensors], keep=memories)
    call()
    assert_within(read(memories["dst"]), expected(case, data), 0.0)


def test_the_corpus_has_the_largest_executor() -> None:
    """Of a chain with one tensor for each of the most post-ops, after scales and a bias; a convolution has more, as
    vectors of dst have pointers of their own."""
    largest = max(spec.arguments for spec in executors())
    for isa in "avx2", "avx512_core":
        pd = dnn.primitive_desc(*product(MOST_POST_OPS, scaled=True), dnn.Engine(isa=isa, threads=1))
        assert len(pd.plan.phases[0].arguments) <= largest
