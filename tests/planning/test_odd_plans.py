"""Plans of odd problems of every kind are proved, and planned or refused in one sentence."""

import pytest

import asmdnn as dnn
from tests.planning.odd_problems import odd_problem

QUICK, ALL = 400, 20_000
PART = 100  # problems a test


def check(seeds: range) -> int:
    """How many could be planned."""
    planned = 0
    for seed in seeds:
        problem = odd_problem(seed)
        if problem is None:
            continue
        desc, attr, engine = problem
        try:
            pd = dnn.primitive_desc(desc, attr, engine)
        except dnn.Unimplemented:
            continue
        try:
            pd.plan.check()
        except Exception as error:
            raise AssertionError(f"seed {seed}: {pd.implementation}, {desc}, {attr}, {engine}") from error
        planned += 1
    return planned


@pytest.mark.parametrize("first", range(0, QUICK, PART))
def test_odd_plans(first: int) -> None:
    assert check(range(first, first + PART)) > PART * 0.7


@pytest.mark.slow
@pytest.mark.parametrize("first", range(QUICK, ALL, PART))
def test_more_odd_plans(first: int) -> None:
    assert check(range(first, first + PART)) > PART * 0.7
