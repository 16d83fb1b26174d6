"""Rule "definite assignment" of the stack: of real kernels one store is missing."""

import pytest

from asmdnn.corpus.families import matching
from asmdnn.generators.executor import ExecutorSpec
from asmdnn.proof.contracts import kernel_of
from asmdnn.proof.facts import RSP
from tests.proof.mutants import violation_of, with_bytes

NAMES = (
    "transpose_b8_16x16_s19_d17__avx2", "matmul_f16f16f16f32_1x16x1_7a3fd7d8__avx512_core_fp16",
    "amx_u8s8s32_15x16x8_ff6af06a__avx512_core_amx", "layernorm_f32_1x8_585e1c31__avx2",
    "softmaxback_f32_rows2x8_4a072aa6__avx2", "lrnback_channels_f32_2x1x9_1c085a4c__avx2",
    "batchnormback_sums_f32_lanes1x7_1a66198e__avx2", "softmax_f32_lanes1x3_aec38f3c__avx2",
    "top2_smallest_f32_rows3x10_b8862cbd__avx2", "few_outputs_f32_8x2_bias_003c6b74__avx2",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_store_less_is_found(name: str) -> None:
    """Of a real kernel, each store left out in turn that is the first one to a place of the stack.  Of a pointer that
    was kept, the rule "provenance" tells."""
    (spec,) = matching(name)
    kernel, places = kernel_of(spec), set[tuple[int, int]]()
    assert violation_of(kernel) is None
    for step in kernel.steps.values():
        stores = [(a.displacement, a.size_bytes) for a in step.fact.accesses if a.base == RSP and a.writes]
        if step.fact.flow == "next" and step.fact.mnemonic != "push" and stores and stores[0] not in places:
            places.add(stores[0])
            found = violation_of(with_bytes(spec, step.offset, b"\x90" * step.fact.length))
            assert found is not None and found.rule in ("definite assignment", "provenance"), step
    assert places


def test_an_executor_has_the_base_of_each_argument() -> None:
    """Of a phase with as many as it takes, or fewer: without a store of one, that argument's base is not there."""
    spec, lost = ExecutorSpec(arguments=3), 0
    for step in kernel_of(spec).steps.values():
        stores = [a.displacement for a in step.fact.accesses if a.base == RSP and a.writes]
        if stores and stores[0] in range(8 * 3, 8 * 6, 8):
            found = violation_of(with_bytes(spec, step.offset, b"\x90" * step.fact.length))
            assert found is not None and found.rule == "definite assignment", step
            lost += 1
    assert lost == 6  # without rounds and with them
