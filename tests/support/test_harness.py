"""The harness can fail: kernels that do one element more, less or elsewhere are caught, by each of its parts."""

from dataclasses import replace

import pytest

from asmdnn.emulator import EmulationFault
from asmdnn.generators.move.rows import RowsSpec
from tests.generators.case import Case
from tests.generators.cases import case_of
from tests.generators.checks import difference
from tests.generators.codes import code_of
from tests.support.arena import Bytes
from tests.support.drawing import sampled
from tests.support.emulation import emulate
from tests.support.footprints import Claim, claim_of
from tests.support.native import Kernel, call_guarded, first_failure
from tests.support.octets import DST_POISON, POISON

RIGHT = RowsSpec(isa="avx2", rows=3, row_bytes=36, src_step=60, dst_step=52)
WIDER, NARROWER, TALLER, ZERO = (replace(RIGHT, row_bytes=40), replace(RIGHT, row_bytes=32), replace(RIGHT, rows=4),
                                 replace(RIGHT, zero=True))  # fmt: skip
CASE = case_of(RIGHT)


def emulated(spec: RowsSpec, case: Case = CASE) -> dict[str, Bytes]:
    return emulate(code_of(spec).data, spec.frame, case.buffers).after


def shifted(name: str, by_bytes: int) -> Case:
    """The right case with one pointer moved."""
    buffer = CASE.buffers[name]
    assert buffer is not None
    moved = replace(buffer, pointer_bytes=buffer.pointer_bytes + by_bytes)
    return replace(CASE, buffers={**CASE.buffers, name: moved})


def test_the_right_one_passes() -> None:
    CASE.check(emulated(RIGHT))


@pytest.mark.parametrize("spec", [WIDER, TALLER], ids=["wider", "taller"])
def test_too_much(spec: RowsSpec) -> None:
    with pytest.raises(EmulationFault, match="past the end of"):
        emulated(spec)


def test_too_little() -> None:
    with pytest.raises(AssertionError, match="dst: byte 32 is wrong, as are 12 of 108: 195 not"):
        CASE.check(emulated(NARROWER))


def test_wrong_values_and_strayed_writes() -> None:
    with pytest.raises(AssertionError, match=r"dst: byte 0 is wrong, as are 10[0-8] of 108: 0 not"):
        CASE.check(emulated(ZERO))
    with pytest.raises(AssertionError, match=r"dst: byte 36 was changed"):
        CASE.check(emulated(replace(WIDER, rows=2)))


@pytest.mark.parametrize(("name", "by_bytes", "side"), [("src", -4, "before the start"), ("dst", 4, "past the end")])
def test_elsewhere(name: str, by_bytes: int, side: str) -> None:
    with pytest.raises(EmulationFault, match=f"{side} of '{name}'"):
        emulated(RIGHT, shifted(name, by_bytes))


def claims(spec: RowsSpec) -> Claim:
    return claim_of(spec.footprint(), spec.frame, CASE.buffers, None)


def test_wrong_claims() -> None:
    with pytest.raises(AssertionError, match="src: "):
        claims(TALLER)
    dst = CASE.buffers["dst"]
    assert dst is not None
    assert difference(dst.written, claims(RIGHT)["dst"][1]) == ""
    assert "without bytes [32, 33, 34, 35" in difference(dst.written, claims(NARROWER)["dst"][1])


@pytest.mark.parametrize(
    ("spec", "case", "at_end", "failure"),
    [
        (RIGHT, CASE, True, ""),
        (RIGHT, CASE, False, ""),
        (WIDER, CASE, True, "SIGSEGV"),
        (TALLER, CASE, True, "SIGSEGV"),
        (RIGHT, shifted("src", -4), False, "SIGSEGV"),
        (RIGHT, shifted("dst", -4), False, "SIGSEGV"),
        (NARROWER, CASE, True, "as are 12 of 108"),
    ],
)
def test_guards(spec: RowsSpec, case: Case, at_end: bool, failure: str) -> None:
    kernel, arguments = Kernel(code_of(spec).data), spec.frame
    guarded = lambda: CASE.check(call_guarded(kernel, arguments, case.buffers, at_end))  # noqa: E731
    found = first_failure([lambda: None, guarded])
    assert found is None if not failure else found is not None and found[0] == 1 and failure in found[1]


def test_buffers_hold_poison_where_nothing_is_read() -> None:
    src, dst = (CASE.buffers[name] for name in ("src", "dst"))
    assert src is not None and dst is not None
    assert len(src.before) == 2 * RIGHT.src_step + 36 and len(dst.before) == 2 * RIGHT.dst_step + 36
    assert (src.before[~src.read] == POISON).all() and (~src.read).sum() == 2 * 24
    assert (dst.before == DST_POISON).all()


def test_samples_are_the_same_for_a_seed_and_in_order() -> None:
    some = sampled(range(1000), 30, "a")
    assert some == sampled(range(1000), 30, "a") == sorted(set(some)) != sampled(range(1000), 30, "b")
    assert sampled("abc", 3, "a") == sampled("abc", 0, "a") == [*"abc"]
