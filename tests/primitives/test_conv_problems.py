"""Convolutions of the problem list: planned and proven for every level, executed against the reference."""

from itertools import cycle

import pytest

import asmdnn as dnn
from tests.primitives.conv_case import ConvCase, case_of, cases_of_file, proven
from tests.primitives.conv_run import check_results

CASES = cases_of_file()
LAYOUTS = ("any", "nchw", "nhwc", "nChw8c", "nChw16c", "nhwc~3", "nchw~2", "nChw16c+5", "nhwc+5", "chwn")
CHAINS = ("-", "relu", "relu:0.25", "sum", "sum:0.5+relu", "relu+sum")
SHAPES = (
    "mb2ic3ih9iw8oc16oh9ow8kh3kw3ph1pw1",
    "mb2ic17ih7iw9oc33oh4ow3kh3kw2sh2sw3ph1pw0",
    "mb1ic16ih6iw5oc5oh6ow5kh1kw1ph0pw0",
    "mb2ic33ih6iw7oc64oh6ow3kh5kw3ph2pw0dh0dw1",
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_plan_is_proven(planned_isa: str, case: ConvCase) -> None:
    pd = proven(case, planned_isa)
    assert all(spec.isa in (planned_isa, "avx2") for spec in pd.plan.specs)
    assert not any(desc.is_any for desc in pd.plan.tensors.values())


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.one_in(3)
def test_the_result_is_the_references(isa: str, case: ConvCase) -> None:
    check_results(dnn.Primitive(proven(case, isa)), case)


@pytest.mark.slow
@pytest.mark.parametrize("src", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_pair_of_layouts(isa: str, shape: str, src: str) -> None:
    chain = cycle(CHAINS)
    for dst in LAYOUTS:
        for bias in ("bias", "-"):
            case = case_of(f"{shape} {src} {dst} {bias} {next(chain)}")
            check_results(dnn.Primitive(proven(case, isa)), case)
