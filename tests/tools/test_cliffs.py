"""tools/cliffs.py: problems that the bench takes, the same for a seed; what is listed of measurements."""

import pytest

from asmdnn.cli.main import main
from tools import cliffs


@pytest.mark.parametrize("driver", cliffs.GENERATORS)
def test_problems_are_some(driver: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = cliffs.problems(driver, 3, 40)
    assert found == cliffs.problems(driver, 3, 40) != cliffs.problems(driver, 4, 40)
    assert main(["bench", f"--{driver}", "--mode=L", *(word for problem in found for word in problem.split())]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= len(found)


def test_convolutions_have_groups_of_all_kinds() -> None:
    found = cliffs.problems("conv", 1, 200)
    assert {problem.startswith("g") for problem in found} == {True, False}
    assert any("kh11" in problem for problem in found) and any("dh3" in problem for problem in found)


def test_what_is_listed() -> None:
    """The slowest first; means are of ratios."""
    times = ((1.0, 2.0), (4.0, 1.0), (2.0, 1.0))
    rows = [
        {"us": us, "peer_us": peer, "title": f"p{i}", "impl": "direct", "peer_impl": "jit"}
        for i, (us, peer) in enumerate(times)
    ]
    assert [*cliffs.lines("conv", rows, 0.7)] == [
        "conv: 3 problems, 0.63 times as fast as oneDNN in the mean, 0.25 at least",
        "  0.25  p1  direct  4.0 us, oneDNN 1.0 by jit",
        "  0.50  p2  direct  2.0 us, oneDNN 1.0 by jit",
    ]
    assert [*cliffs.lines("conv", [], 0.7)] == ["conv: oneDNN has timed none"]


def test_what_is_slow_is_timed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """In its own words, after those that came before it; the best ratio counts."""
    first = [{"args": f"--pool --tag=axb p{i}", "us": us, "peer_us": 2.0} for i, us in enumerate((1.0, 5.0, 8.0))]
    again = [[{**first[1], "us": 2.0}, {**first[2], "us": 9.0}], [{**first[2], "us": 4.0}]]
    asked = []

    def timed(driver: str, words: list[str]) -> list[dict[str, object]]:
        asked.append(words)
        return again[len(asked) - 1]

    monkeypatch.setattr(cliffs, "timed", timed)
    found = cliffs.confirmed("pool", first, 0.7, 2)
    assert [row["us"] for row in found] == [1.0, 2.0, 4.0]
    assert asked == [["--reset", "--tag=axb", "p1", "--reset", "--tag=axb", "p2"], ["--reset", "--tag=axb", "p2"]]
    assert cliffs.confirmed("pool", first, 0.7, 0) == first


def test_a_driver_without_problems(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cliffs.main(["trees"])
    assert "there are no problems of trees: take conv, " in capsys.readouterr().err
