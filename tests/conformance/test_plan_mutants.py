"""The proof of plans and the suite can fail: wrong plans are refused, or compute something else."""

from collections.abc import Iterator
from itertools import islice

import pytest

import asmdnn as dnn
from asmdnn.errors import AsmdnnError
from asmdnn.planning.coverage import PlanError
from asmdnn.planning.phase import Int64
from asmdnn.planning.plan import Plan
from tests.conformance.kinds import KINDS
from tests.conformance.plan_mutants import MUTATIONS
from tests.conformance.running import Conforming, check_shares, naming
from tests.conformance.test_conformance import check_in_place, conforming

FEW = 3  # mutants of a plan by each mutation
PARTS = 3

ANY = "any"  # some kinds, whoever they are: nothing is wrong with a planner that allows less

# Mutations of which some are no faults, and the kinds where that is so: {mutation: (why, kinds)}.
SURVIVORS = {
    "a barrier missing": (
        "phases wait for others whose results they do not read",
        "bnorm conv deconv gnorm ip lnorm lrn matmul pool resampling rnn sdpa",
    ),
    "a place claimed": ("some planners allow less than one thread may do", ANY),
    "a record twice": ("a group does again what it has just done", "conv deconv matmul sdpa topk"),
    "groups cut": ("records that add to one another in order are few enough for one group", "conv deconv matmul topk"),
    "scratch shared": ("there is one group, for one part", "sdpa topk"),
    "scratch too small": ("after the last row nothing is used up to the next multiple of a vector", "sdpa"),
    "offsets swapped": (
        "partial results that are summed in the end trade places, or equal weights, or parts of a workspace",
        "bnorm conv lrn pool prelu rnn",
    ),
    "another kernel": ("kernels that do the same for one record", "conv deconv pool sdpa"),
    "another constant": (
        "a tap between elements finds subnormal numbers, a weight is for no element",
        "conv deconv pool resampling",
    ),
    "an offset moved": ("windows and weights beside it give the same", "pool rnn topk"),
    "a view moved": ("saturated cells", "rnn"),
    "a view of another buffer": ("factors of one element each trade places", "matmul rnn"),
    "a phase missing": ("saturated cells", "rnn"),
    "a record missing": ("nothing larger lies in what is left out", "topk"),
}


def is_killed(case: Conforming, pd: dnn.PrimitiveDesc, mutant: Plan) -> bool:
    """By the proof, or by what it computes: after the proof, it touches nothing that it may not."""
    try:
        mutant.check()
    except PlanError:
        return True
    wrong = dnn.PrimitiveDesc(pd.desc, pd.attr, pd.engine, mutant)
    try:
        check_in_place(case, wrong, case.run(wrong))
    except (AssertionError, AsmdnnError):
        return True
    return False


def survivors(cases: list[Conforming], isa: str, most: int | None) -> tuple[set[str], int]:
    """The mutations of which at least one mutant lives, of so many a plan; and how many died."""
    alive, dead = set[str](), 0
    for case in cases:
        with naming(case.case):
            pd = case.planned(isa)
            for name, mutation in MUTATIONS.items():
                for mutant in islice(mutation(pd.plan), most):
                    if is_killed(case, pd, mutant):
                        dead += 1
                    else:
                        alive.add(name)
    return alive, dead


def listed(kind: str, *also: str) -> set[str]:
    return {name for name, (_, kinds) in SURVIVORS.items() if {kind, *also}.intersection(kinds.split())}


@pytest.mark.parametrize("kind", KINDS)
def test_mutants_die(isa: str, kind: str) -> None:
    alive, dead = survivors(conforming(kind, "emulated")[:1], isa, FEW)
    assert alive <= listed(kind, ANY)
    assert dead


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_all_mutants_die(isa: str, kind: str) -> None:
    """But for those that are listed, all of which live in the kinds that are named."""
    alive, _ = survivors(conforming(kind, "emulated"), isa, None)
    assert listed(kind) <= alive <= listed(kind, ANY)


def other_shares(shares: list[Int64]) -> Iterator[list[Int64]]:
    """A thread's share of a phase is a record too long or too short, whoever has the next one; or it has none."""
    for index, bounds in enumerate(shares):
        for place, by in ((0, 1), (0, -1), (-1, -1), (-1, 1)):
            changed = bounds.copy()
            changed[place] += by
            yield [*shares[:index], changed, *shares[index + 1 :]]
        yield [*shares[:index], bounds[:-1], *shares[index + 1 :]]


@pytest.mark.parametrize("kind", KINDS)
def test_mutants_of_shares_die(planned_isa: str, kind: str) -> None:
    for case in conforming(kind, "emulated")[:3]:
        plan = case.planned(planned_isa, PARTS).plan
        shares = plan.split(PARTS)
        check_shares(plan, PARTS, shares)
        for mutant in other_shares(shares):
            with pytest.raises(AssertionError):
                check_shares(plan, PARTS, mutant)
