"""`asmdnn compare`: two results of bench, problem by problem, and one line for every mistake."""

import json
from pathlib import Path

import pytest

from asmdnn.bench.changes import compare
from asmdnn.bench.report import Record
from asmdnn.cli.main import main


def record(problem: str, us: float | None, peer_us: float | None = None, impl: str = "tiles", how: str = "") -> str:
    args = f"--matmul {how} {problem}"
    found = Record(problem, "", 1, args, "matmul", problem, impl=impl, us=us, peer_us=peer_us, status="timed")
    return found.to_json() + "\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    before.write_text(
        record("1x2:2x3", 10.0, 20.0, how="--threads=1")
        + record("4x5:5x6", 8.0, 16.0)
        + record("gone", 1.0)
        + record("7x8:8x9", 5.0)
        + record("7x8:8x9", 6.0)
    )
    after.write_text(
        record("4x5:5x6", 10.0, 16.0, impl="rows")
        + record("1x2:2x3", 5.0, 10.0, how="--threads=2 --peer=onednn")
        + record("7x8:8x9", 5.0)
        + record("7x8:8x9", 6.0)
        + record("listed", None)
    )
    return before, after


def test_problems_are_matched_by_what_they_compute(files: tuple[Path, Path]) -> None:
    found = compare(*files)
    assert [(c.after.title, c.ratio, c.drift) for c in found.changes] == [
        ("4x5:5x6", 0.8, 1.0), ("1x2:2x3", 2.0, 2.0), ("7x8:8x9", 1.0, None), ("7x8:8x9", 1.0, None),
    ]  # fmt: skip
    assert (found.only_before, found.only_after) == (1, 0)


def test_what_changed_is_listed_slowest_first(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *map(str, files)]) == 0
    head, slow, fast, _, _, driver, alone = capsys.readouterr().out.splitlines()
    assert head.split() == ["problem", "driver", "before", "us", "after", "us", "ratio", "peer"]
    assert slow.split() == ["4x5:5x6", "matmul", "8.0", "10.0", "0.80", "1.00", "tiles", "->", "rows"]
    assert fast.split() == ["1x2:2x3", "matmul", "10.0", "5.0", "2.00", "2.00"]
    assert driver.split() == ["matmul", "4", "1.12", "0.80", "2.00", "1", "1.41"]  # roots of 0.8 * 2, 1 * 2
    assert alone == "in one file alone: 1 before, 0 after"


def test_status_says_what_became_slower(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--slower=26", *map(str, files)]) == 0
    assert main(["compare", "--slower=24", "--change=200", *map(str, files)]) == 1
    assert "no problem changed by more than 200%" in capsys.readouterr().out


def test_json(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--json", *map(str, files)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["only_before"] == 1
    assert found["problems"][0]["ratio"] == 0.8
    assert found["problems"][0]["after_impl"] == "rows"


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--help"]) == 0
    assert capsys.readouterr().out.startswith("asmdnn compare")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "compare: expected two files, BEFORE and AFTER, not ''"),
        (("a.json", "b.json", "c.json"), "not 'a.json b.json c.json'"),
        (("--colour", "a", "b"), "compare: no option '--colour'"),
        (("--change=much", "a", "b"), "compare: --change=much is no number of percent"),
        (("--slower=-1", "a", "b"), "compare: --slower=-1 is no number of percent"),
        (("--slower=nan", "a", "b"), "compare: --slower=nan is no number of percent"),
        (("/nonexistent.json", "b.json"), "compare: /nonexistent.json cannot be read"),
    ],
)
def test_mistakes(words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *words]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["no json", "[]", "{}", "3", '{"args": 1, "us": 2}', record("a", -1.0), record("a", 1.0, 0.0), "\xff"]
)
def test_foreign_files(text: str, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    files[1].write_text(text, encoding="latin-1")
    assert main(["compare", *map(str, files)]) == 2
    error = capsys.readouterr().err
    assert "is no result of asmdnn bench" in error or "cannot be read" in error
    assert len(error.splitlines()) == 1


def test_nothing_in_common(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    files[1].write_text(record("elsewhere", 1.0))
    assert main(["compare", *map(str, files)]) == 2
    assert "no problem is timed in both" in capsys.readouterr().err
