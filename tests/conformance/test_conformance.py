"""What holds for all primitives, whatever they compute; kinds.py says what each kind brings.

Results are those of the definition, and the same bits for every number of threads, with the user's scratchpad, and in
the place of an input; padding becomes zero; nothing outside of tensors is read or written, whole ones and parts; code
of a level that this machine lacks computes the same under emulation; of no elements there is nothing to do.
"""

import random

import pytest

import asmdnn as dnn
from asmdnn.bench.drivers import driver_names
from tests.conformance.kinds import KINDS, cases, section, with_section
from tests.conformance.running import Conforming, check_shares, naming, of_parts
from tests.primitives.guarded import in_child
from tests.support.levels import kernel_level

THREADS = (2, 3, 7)
SAMPLE, FEW = 8, 3  # cases of a kind and a level, and for what costs as much again


def conforming(kind: str, name: str = "cases") -> list[Conforming]:
    return [Conforming(case) for case in cases(kind, name)]


def sample(kind: str, isa: str, count: int) -> list[Conforming]:
    """So many cases, always the same, others for each level; fewer are the first of more, whose kernels are there."""
    found = conforming(kind)
    return random.Random(f"{kind} {isa}").sample(found, len(found))[:count]


def check(case: Conforming, isa: str, threads: tuple[int, ...]) -> str:
    """The implementation."""
    pd = case.planned(isa)
    pd.plan.check()
    results = case.run(pd)
    for count in threads:
        planned = case.planned(isa, count)
        check_shares(planned.plan, count, planned.plan.split(count))
        assert case.run(planned) == results, f"{count} threads compute other bits"
    user = case.planned(isa, scratchpad_mode="user")
    scratchpad = dnn.Memory(user.scratchpad_desc)
    scratchpad.array[:] = 255
    assert case.run(user, scratchpad=scratchpad) == results, "the user's scratchpad leads to other bits"
    check_in_place(case, pd, results)
    return pd.implementation


def check_in_place(case: Conforming, pd: dnn.PrimitiveDesc, results: list[bytes]) -> None:
    """Each output in the place of each input that may give way to it."""
    if pd.attr.reads_dst():
        return
    for source, result in pd.plan.in_place:
        memories = case.memories(pd)
        memories[result] = memories[source]
        dnn.Primitive(pd).execute(**memories)
        assert case.check(pd, memories) == results, f"{result} has other bits in the place of {source}"


def check_all(cases: list[Conforming], isa: str, kind: str, threads: int) -> None:
    """With 1 and so many other numbers of threads, by implementations that the cases are for."""
    found = set()
    for i, case in enumerate(cases):
        with naming(case.case):
            found.add(check(case, isa, (THREADS * 2)[i % 3 :][:threads]).removeprefix("reorder+"))
    assert {name.removesuffix(f":{isa}") for name in found} <= {*(section(kind, "implementations") or kind).split()}


@pytest.mark.parametrize("kind", KINDS)
def test_results_threads_scratchpads_and_places(isa: str, kind: str) -> None:
    check_all([*sample(kind, isa, SAMPLE), *conforming(kind, "emulated")], isa, kind, threads=1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_case_with_all_numbers_of_threads(isa: str, kind: str) -> None:
    check_all(conforming(kind), isa, kind, threads=len(THREADS))


def guarded(cases: list[Conforming], isa: str) -> str:
    """What went wrong, or nothing."""

    def run() -> None:
        for case in cases:
            with naming(case.case):
                pd = case.planned(isa)
                for at_end in (True, False):
                    case.run_guarded(pd, at_end)

    if not (report := in_child(run)):
        return ""
    return report if len(cases) == 1 else next(filter(None, (guarded([case], isa) for case in cases)), report)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_outside_is_touched(isa: str, kind: str) -> None:
    assert not (report := guarded(conforming(kind, "emulated"), isa)), report


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_outside_is_touched_by_any_case(isa: str, kind: str) -> None:
    assert not (report := guarded(conforming(kind), isa)), report


def check_parts(cases: list[Conforming], isa: str, refusal: str) -> None:
    for case in cases:
        desc, attr = case.work.describe()
        with naming(case.case):
            try:
                pd = dnn.primitive_desc(of_parts(desc), attr, case.planned(isa, threads=2).engine)
            except dnn.Unimplemented as error:
                assert refusal and refusal in str(error), error
            else:
                case.run(pd)


@pytest.mark.parametrize("kind", KINDS)
def test_parts_of_larger_tensors(isa: str, kind: str) -> None:
    """Whose elements lie apart, and do not begin where memory does."""
    check_parts(sample(kind, isa, FEW), isa, section(kind, "no parts"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_case_of_parts(isa: str, kind: str) -> None:
    check_parts(conforming(kind), isa, section(kind, "no parts"))


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("kind", KINDS)
def test_emulated(kind: str) -> None:
    for case in conforming(kind, "emulated"):
        with naming(case.case):
            pd = case.planned("avx512_core")
            pd.plan.check()
            assert kernel_level(pd.plan) in ("avx512_core", "avx2")
            case.run_emulated(pd)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", ["avx512_core_bf16", "avx512_core_amx"])
def test_every_case_is_proved_for_cpus_that_this_one_is_not(level: str, kind: str) -> None:
    for case in conforming(kind):
        with naming(case.case):
            case.planned(level).plan.check()


@pytest.mark.parametrize("kind", with_section("empty"))
def test_of_no_elements(isa: str, kind: str) -> None:
    for case in conforming(kind, "empty"):
        with naming(case.case):
            pd = case.planned(isa)
            pd.plan.check()
            case.run(pd)


def test_every_kind_is_here() -> None:
    assert set(KINDS) == set(driver_names())
    assert all(section(kind, name) for kind in KINDS for name in ("cases", "emulated", "sample"))
    assert all(bool(section(kind, "exact")) != bool(section(kind, "inexact")) for kind in KINDS)
