"""Convolutions with few input channels: shapes, layouts, post-ops against the reference, and when they are chosen."""

import pytest

import asmdnn as dnn
from asmdnn.bench.problems import parse_problem
from tests.primitives.conv_case import ENGINE, ConvCase, case_of, planned_as
from tests.primitives.conv_run import check_results

# problem, src, dst, bias, post-ops, weights: and what is around the kernels
CASES = [
    ("mb2ic3oc12ih19kh3ph1sh2 any any bias relu any", ""),
    ("mb1ic1oc16ih14kh3ph1 any any - sum:0.5+relu any", ""),
    ("mb2ic3oc16ih9kh3ph1 axb any bias - any", ""),
    ("mb1ic3oc16ih9kh3ph1dh1 abx~3 aBx16b bias - any", ""),
    ("mb1ic2oc5ih9kh3ph2 any axb bias relu any", ""),
    ("mb2ic3oc16iw40kw5pw2 any any bias - any", ""),
    ("mb1ic3oc16id4ih6iw7kd3kh3kw3pd1ph1pw1 any any bias relu any", ""),
    ("mb1ic6oc16ih15iw25kh2kw3ph1pw0sh1sw2 any any - sum any", ""),
    ("mb1ic3oc24ih16kh3ph1 any any bias relu abx", "pack+"),
    ("g1mb1ic3oc24ih16kh3ph1 aBx8b any bias relu any", ""),
    ("mb1ic1oc16ih3kh3ph4 any any bias - any", ""),  # pixels whose whole window is padding
]


def planned(case: ConvCase, isa: str, around: str = "") -> dnn.PrimitiveDesc:
    return planned_as(f"{around}few_inputs", case, isa)


@pytest.mark.parametrize(("line", "around"), CASES, ids=[line for line, _ in CASES])
def test_choices(planned_isa: str, line: str, around: str) -> None:
    planned(case_of(line), planned_isa, around)


@pytest.mark.parametrize(("line", "around"), CASES, ids=[line for line, _ in CASES])
def test_values(isa: str, line: str, around: str) -> None:
    case = case_of(line)
    check_results(dnn.Primitive(planned(case, isa, around)), case)


@pytest.mark.parametrize(
    ("problem", "dst"),
    [
        ("mb1ic8oc16ih28kh3ph1", "any"),  # a block of channels, whose sums are long enough
        ("mb1ic3oc16ih28kh7ph3", "any"),  # weights of a kernel row do not fit registers
        ("mb1ic3oc16ih28kh4ph0sh4", "any"),  # windows share no pixel
        ("mb1ic3oc16ih28kh3ph1", "axb"),  # lines of dst would be written in turns
    ],
)
def test_others_are_direct(problem: str, dst: str) -> None:
    case = ConvCase(parse_problem(problem), "any", dst, True, ())
    pd = dnn.primitive_desc(case.desc(), case.attr(), dnn.Engine("cpu", isa="avx2", **ENGINE))
    assert pd.implementation == "direct:avx2"
