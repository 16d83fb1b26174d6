"""The proof of plans and the suite can fail: wrong plans are refused, or compute something else."""

from collections.abc import Iterator
from itertools import islice

import pytest

import asmdnn as dnn
from asmdnn.errors import AsmdnnError, PlanError
from asmdnn.planning.phase import Int64
from asmdnn.planning.plan import Plan
from tests.conformance.kinds import KINDS
from tests.conformance.plan_mutants import MUTATIONS
from tests.conformance.running import Conforming, check_shares, naming
from tests.conformance.test_conformance import check_in_place, conforming

FEW = 3  # mutants of a plan by each mutation
PARTS = 3

ANY = "any"  # some kinds, whoever they are: nothing is wrong with a planner that allows less

# Mutations of which some are no faults, and the kinds where that is so, at a level alone if one is named: {mutation:
# (why, kinds)}.
SURVIVORS = {
    "a barrier missing": (
        "bytes of one buffer that one phase reads and another one writes lie apart; another tensor is packed, and need"
        " not wait", "rnn",
    ),
    "a place claimed": ("some planners allow less than one thread may do", ANY),
    "a record twice": ("a group does again what it has just done", "conv deconv matmul sdpa suppression topk"),
    "a record missing": ("a merge that has nothing to do: few enough wait", "topk"),
    "groups cut": ("records that add to one another in order are few enough for one group", "conv deconv matmul topk"),
    "scratch shared": ("there is one group, for one part", "conv sdpa topk"),
    "scratch too small": ("after the last row nothing is used up to the next multiple of a vector", "conv sdpa"),
    "a view moved": ("all use a scratch by one view, and its rows end before their last vector does", "conv:avx2"),
    "offsets swapped": (
        "two partial results are added in either order; records write the same to both places; the first product of an"
        " exclusive scan is 1, whatever is read; two classes keep the same boxes",
        "bnorm pad pool conv prelu cumsum suppression",
    ),
    "another kernel": (
        "a kernel that looks at more windows, or does for padding of scratch, which nobody reads, what is left undone",
        "conv deconv pool quantized sdpa rnn:avx512_core",
    ),
    "another constant": (
        "a weight of a tap that no element has; where a tap reads what zeros in padding are multiplied by",
        "conv deconv pool resampling",
    ),
    "an offset moved": (
        "scratch whose head is for other kernels; padding of scratch; a pixel that is no maximum of its window; a leaf"
        " that other rows, or trees in another order, reach, too; what is read for a first product of 1;"
        " boxes that leave out the same ones", "pad pool topk trees cumsum suppression",
    ),
    "a view of another buffer": (
        "numbers of one element each, which are multiplied or added, trade places", "matmul rnn random"
    ),
}  # fmt: skip


def is_killed(cases: list[Conforming], pd: dnn.PrimitiveDesc, mutant: Plan) -> bool:
    """By the proof, or by what it computes, to the bit: after the proof, it touches nothing that it may not."""
    try:
        mutant.check()
    except PlanError:
        return True
    wrong = dnn.PrimitiveDesc(pd.desc, pd.attr, pd.engine, mutant)
    for case in cases:
        results = case.run(pd)
        try:
            found = case.run(wrong)
            check_in_place(case, wrong, found)
        except (AssertionError, AsmdnnError):
            return True
        if found != results:
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
                    if is_killed(case.variants, pd, mutant):
                        dead += 1
                    else:
                        alive.add(name)
    return alive, dead


def listed(kind: str, isa: str, *also: str) -> set[str]:
    names = {kind, f"{kind}:{isa}", *also}
    return {name for name, (_, kinds) in SURVIVORS.items() if names.intersection(kinds.split())}


@pytest.mark.parametrize("kind", KINDS)
def test_mutants_die(isa: str, kind: str) -> None:
    alive, dead = survivors(conforming(kind, "emulated")[:1], isa, FEW)
    assert alive <= listed(kind, isa, ANY)
    assert dead


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_all_mutants_die(isa: str, kind: str) -> None:
    """But for those that are listed, all of which live in the kinds that are named."""
    alive, _ = survivors(conforming(kind, "emulated"), isa, None)
    assert listed(kind, isa) <= alive <= listed(kind, isa, ANY)


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
