"""No instruction of a kernel needs a CPU feature that its level does not promise; iced-x86 knows which it needs."""

import pytest
from iced_x86 import CpuidFeature, Decoder

from asmdnn.corpus.families import corpus
from asmdnn.generators.contract import Spec
from asmdnn.generators.executor import ExecutorSpec
from asmdnn.isa.levels import isa_of
from tests.generators.codes import code_of, exhaustive

CHARACTERISTIC = {
    "avx2": {"avx", "fma"},
    "avx2_vnni": {"avx_vnni"},
    "avx512_core": {"avx512f", "avx512bw"},
    "avx512_core_vnni": {"avx512f", "avx512_vnni"},
    "avx512_core_bf16": {"avx512f", "avx512_bf16"},
    "avx512_core_fp16": {"avx512f", "avx512_fp16"},
    "avx512_core_amx": {"avx512f", "amx_tile", "amx_bf16", "amx_int8"},
}  # of the levels that have kernels, what these need at least
NAMES = {value: name.lower() for name, value in vars(CpuidFeature).items() if name.isupper()}
X86_64 = frozenset(
    ("intel8086", "intel186", "intel286", "intel386", "intel486", "x64", "cmov", "multibytenop", "sse", "sse2")
)  # what every 64-bit CPU has; PREFETCHT1 is SSE


def features_of(spec: Spec) -> set[str]:
    """Of every instruction, executed or not; constants after the code are none."""
    code = code_of(spec)
    assert code.listing is not None
    found: set[str] = set()
    for line in code.listing:
        decoder = Decoder(64, code.data[line.offset : line.offset + len(line.data)])
        for ins in decoder:
            assert not ins.is_invalid, f"{line.text} at {line.offset:#x} is no instruction"
            found |= {NAMES[feature] for feature in ins.cpuid_features()}
    return found


@pytest.mark.parametrize("left_out", [exhaustive(), pytest.param(frozenset(), marks=pytest.mark.slow)], ids=len)
@pytest.mark.parametrize("isa", CHARACTERISTIC)
def test_features_of_the_level(isa: str, left_out: frozenset[Spec]) -> None:
    """And the test can fail: kernels of the better levels do need more."""
    specs = [s for s in corpus() if s not in left_out and not isinstance(s, ExecutorSpec) and s.isa == isa]
    found = {spec.name: features_of(spec) - X86_64 for spec in specs}
    assert not {name: features for name, features in found.items() if not features <= isa_of(isa).features}
    everything = set().union(*found.values())
    assert everything >= CHARACTERISTIC[isa]


def test_no_level_is_left_out() -> None:
    assert {spec.isa for spec in corpus() if not isinstance(spec, ExecutorSpec)} == set(CHARACTERISTIC)


def test_the_executor_needs_no_feature() -> None:
    for spec in corpus():
        if isinstance(spec, ExecutorSpec):
            assert features_of(spec) <= X86_64
