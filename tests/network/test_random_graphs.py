"""Random graphs compute what their operators say, on one thread and on two, and are proved on both levels."""

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine
from tests.network.random_graphs import RandomGraph

QUICK, ALL = range(12), range(12, 400)
SIZE = 12  # operators


def check(seed: int, isa: str) -> None:
    made = RandomGraph(seed, SIZE)
    one, two = (made.compile(engine(threads, isa)) for threads in (1, 2))
    two.check()
    first, second, again = one.run(made.feeds), two.run(made.feeds), two.run(made.feeds)
    for name, value in made.outputs().items():
        np.testing.assert_allclose(second[name], value.exact, rtol=0, atol=value.tolerance, err_msg=name)
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
        np.testing.assert_array_equal(again[name], second[name], err_msg=name)


@pytest.mark.parametrize("seed", QUICK)
@pytest.mark.isa("avx2")
def test_random_graphs(seed: int) -> None:
    check(seed, "avx2")


@pytest.mark.parametrize("seed", QUICK)
@pytest.mark.isa("avx512_core")
def test_random_graphs_of_avx512(seed: int) -> None:
    check(seed, "avx512_core")


@pytest.mark.parametrize("seed", QUICK)
@pytest.mark.parametrize("threads", [2, 5])
@pytest.mark.one_in(2)
def test_random_graphs_are_proved_on_both_levels(seed: int, threads: int) -> None:
    made = RandomGraph(seed, SIZE)
    for isa in ("avx2", "avx512_core"):
        made.compile(engine(threads, isa)).check()


@pytest.mark.slow
@pytest.mark.parametrize("seed", ALL)
@pytest.mark.isa("avx2")
def test_more_random_graphs(seed: int) -> None:
    check(seed, "avx2")


def test_values_say_how_far_results_may_be() -> None:
    """Tolerances are small beside values, so that the tests above can fail."""
    shares = [v.tolerance / abs(v.exact).max() for seed in QUICK for v in RandomGraph(seed, SIZE).outputs().values()]
    assert np.median(shares) < 1e-3
    assert isinstance(RandomGraph(0, SIZE).compile(engine()), dnn.Network)
