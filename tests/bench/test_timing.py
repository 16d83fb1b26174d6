"""The sampling scheme, on a clock that the test turns: which calls run, in what order, and the medians of what."""

from collections.abc import Callable

import pytest

from asmdnn.bench import timing


class Clock:
    """perf_counter that only calls advance."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.log: list[str] = []
        monkeypatch.setattr(timing.time, "perf_counter", lambda: self.now)

    def call(self, name: str, seconds: Callable[[int], float]) -> Callable[[], None]:
        count = 0

        def run() -> None:
            nonlocal count
            self.now += seconds(count)
            self.log.append(name)
            count += 1

        return run


def test_medians_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    calls = [clock.call("a", lambda i: 1e-4), clock.call("b", lambda i: 3e-4)]
    assert [time.median for time in timing.interleaved(calls, 1.0)] == pytest.approx([1e-4, 3e-4])


def test_one_outlier_does_not_move_the_median(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    calls = [clock.call("a", lambda i: 1.0 if i == 60 else 10e-3)]
    assert [time[:2] for time in timing.interleaved(calls, 3.0)] == [pytest.approx((10e-3, 10e-3))]


def test_a_slow_phase_moves_the_median_and_not_the_low_percentile(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    calls = [clock.call("a", lambda i: 10e-3 if i < 12 else 20e-3)]  # 4 to warm up, 8 of 33 samples
    assert [time[:2] for time in timing.interleaved(calls, 3.0)] == [pytest.approx((20e-3, 10e-3))]


def test_samples_alternate(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    calls = [clock.call(name, lambda i: 4e-3) for name in "ab"]  # one call fills a sample
    timing.interleaved(calls, 10.0)
    rounds = "".join(clock.log).split("b" * 8, 1)[1]  # after the warm-up of both
    assert rounds == ("ab" + "ba") * (timing.MOST_ROUNDS // 2) + "ab"


@pytest.mark.parametrize(("seconds", "rounds"), [(0.1, 4), (0.2, 3), (0.6, 2), (4.0, 1)])
def test_slow_calls_end_early(monkeypatch: pytest.MonkeyPatch, seconds: float, rounds: int) -> None:
    clock = Clock(monkeypatch)
    (times,) = timing.interleaved([clock.call("a", lambda i: seconds)], 0.45)
    assert times == pytest.approx((seconds, seconds, seconds))
    assert len(clock.log) == 1 + rounds
