"""Shapes, layouts and post-ops that nobody chose: hypothesis against the reference."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import asmdnn as dnn
from asmdnn.bench.axis import ProblemAxis
from asmdnn.bench.problems import ConvProblem
from tests.primitives.conv_case import ConvCase, proven
from tests.primitives.conv_run import check_results

LAYOUTS = ("any", "axb", "aBx8b", "aBx16b", "abx", "axb~3", "axb+5", "abx~2", "bxa", "aBx2b")
WEIGHTS = ("any", "any", "abx", "xba", "axb~3", "ABx8b8a", "ABx4a2b")
CHAINS = ((), ("relu",), ("relu:0.25",), ("sum",), ("sum:0.5", "relu"), ("relu", "sum"))
CHANNELS = st.one_of(st.integers(1, 20), st.sampled_from((23, 24, 31, 32, 33, 48, 63, 64, 65)))
MOST = {1: (7, 40), 2: (5, 12), 3: (3, 5)}  # kernel positions, and input pixels beyond what the kernel needs


@st.composite
def axes(draw: st.DrawFn, largest_kernel: int, more: int) -> ProblemAxis:
    """Mostly padded as is usual, sometimes with pixels that no tap reaches."""
    kernel, stride, dilation = draw(st.integers(1, largest_kernel)), draw(st.integers(1, 3)), draw(st.integers(0, 2))
    extent = (kernel - 1) * (dilation + 1) + 1
    before, after = (draw(st.one_of(st.integers(0, extent), st.integers(0, extent + 5))) for _ in range(2))
    least = max(1, extent - before - after)
    size = draw(st.integers(least, least + more))
    return ProblemAxis(size, (size + before + after - extent) // stride + 1, kernel, stride, before, dilation)


def cases_of(rank: int) -> st.SearchStrategy[ConvCase]:
    return st.builds(
        ConvCase,
        st.builds(
            ConvProblem,
            st.integers(1, 3),
            st.just(1),
            CHANNELS,
            CHANNELS,
            st.tuples(*[axes(*MOST[rank])] * rank),
        ),
        st.sampled_from(LAYOUTS),
        st.sampled_from(LAYOUTS),
        st.booleans(),
        st.sampled_from(CHAINS),
        st.sampled_from((0, 1, 16384)),
        st.sampled_from(WEIGHTS),
    )


CASES = st.sampled_from((1, 2, 2, 3)).flatmap(cases_of)

few = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
many = settings(few, max_examples=1500)


@few
@given(case=CASES)
def test_plans_are_proven(planned_isa: str, case: ConvCase) -> None:
    proven.__wrapped__(case, planned_isa)


@few
@given(case=CASES)
def test_results_are_the_references(isa: str, case: ConvCase) -> None:
    check_results(dnn.Primitive(proven.__wrapped__(case, isa)), case)


@pytest.mark.slow
@many
@given(case=CASES)
def test_many_plans_are_proven(planned_isa: str, case: ConvCase) -> None:
    proven.__wrapped__(case, planned_isa)


@pytest.mark.slow
@many
@given(case=CASES)
def test_many_results_are_the_references(isa: str, case: ConvCase) -> None:
    check_results(dnn.Primitive(proven.__wrapped__(case, isa)), case)
