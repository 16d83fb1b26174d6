"""Input channels summed a range at a time: forced by a small cache, so that small images do it."""

import pytest

import asmdnn as dnn
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.planning.phase import View
from tests.primitives.conv_case import ConvCase, case_of, proven
from tests.primitives.conv_run import check_results

SMALL_L2_BYTES = 65536


def in_ranges(line: str) -> ConvCase:
    case = case_of(line)
    return ConvCase(case.problem, case.src, case.dst, case.bias, case.post_ops, SMALL_L2_BYTES)


SPLIT = [
    in_ranges(line)
    for line in (
        "mb1ic33ih6oc17oh6kh3ph1      any     any     bias  -",
        "mb2ic40ih5oc32oh5kh3ph1      nChw8c  nChw8c  -     relu",
        "mb1ic1000ih4oc16oh4kh1ph0    nhwc    nhwc    bias  relu:0.25",
        "mb1ic64ih7iw6oc24oh4ow6kh3kw2sh2sw1ph1pw0  nhwc  nChw16c  bias  sum",
        "mb1ic64ih5oc33oh5kh3ph1      any     nhwc    bias  sum:0.5+relu",
        "mb1ic48ih5oc33oh5kh5ph2      nChw16c any     -     sum+relu+relu:0.25",
        "mb1ic33ih6iw7oc17oh6ow7kh3kw3ph1pw1  nchw  nchw  bias  sum+relu",
        "mb1ic4ih6oc17oh6kh7ph3       nhwc    nhwc~3  bias  relu",
        "mb1ic2048ih1oc64oh1kh1sh2ph1 any     any     bias  -",  # all windows lie in the padding: no range has taps
    )
]
WHOLE = [
    in_ranges(line)
    for line in (
        "mb1ic64ih5oc16oh5kh3ph1  any   any   bias  relu+sum",  # sum needs what dst held when the product is complete
        "mb1ic64ih5oc16oh5kh3ph1  nhwc  nhwc  -     sum+sum:0.5",
    )
]


@pytest.mark.parametrize("case", SPLIT, ids=str)
def test_ranges_continue_one_another(planned_isa: str, case: ConvCase) -> None:
    phases = proven(case, planned_isa).plan.phases
    tiles = [phase for phase in phases if View("taps") in phase.arguments]
    assert len(tiles) > 1 or case.problem.ic <= 8
    assert [phase.continues for phase in tiles] == [False] + [True] * (len(tiles) - 1)


@pytest.mark.parametrize("case", WHOLE, ids=str)
def test_a_sum_that_is_not_first_forbids_ranges(planned_isa: str, case: ConvCase) -> None:
    plan = proven(case, planned_isa).plan
    assert len(plan.phases) == 1
    assert not any(spec.accumulate for spec in plan.specs if isinstance(spec, ConvTileSpec))


@pytest.mark.parametrize("case", SPLIT + WHOLE, ids=str)
def test_the_result_is_the_references(isa: str, case: ConvCase) -> None:
    check_results(dnn.Primitive(proven(case, isa)), case)
