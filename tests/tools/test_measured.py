"""Pages of measurements are what their records say, and records are what the bench said."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asmdnn.bench.options import Reader
from tools.measured.page import page
from tools.measured.record import FOLDER, MeasuredCpu, Row, summed
from tools.measured.sets import SETS, ProblemSet

ROOT = Path(__file__).resolve().parents[2]
RECORDS = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_pages_are_made_of_their_records(path: Path) -> None:
    assert (ROOT / "docs" / f"measured-{path.stem}.md").read_text() == page(path.stem, MeasuredCpu.read(path))


def test_no_page_is_without_a_record() -> None:
    pages = {page.stem.removeprefix("measured-") for page in (ROOT / "docs").glob("measured-*.md")}
    assert pages == {path.stem for path in RECORDS}


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_is_written_as_it_was_read(path: Path, tmp_path: Path) -> None:
    MeasuredCpu.read(path).write(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == path.read_text()


@pytest.mark.parametrize("found", SETS, ids=lambda found: found.title)
def test_sets_are_problems_of_the_bench(found: ProblemSet) -> None:
    assert Reader().count(found.words.split(), ROOT) > 0
    assert (ROOT / "docs" / f"{found.page}.md").exists()


def result(title: str, speedup: float, peer_impl: str = "jit:avx512_core") -> dict[str, Any]:
    return {"title": title, "speedup": speedup, "low_speedup": 2 * speedup, "peer_impl": peer_impl}


def test_a_row_sums_up_a_set() -> None:
    lines = [result("a", 4.0, "ref:any"), result("b", 0.5), result("c", 0.25), result("d", 2.0)]
    assert summed(SETS[0], 2, lines) == Row(
        SETS[0].title, SETS[0].page, SETS[0].words, 2, 4, 1.0, 2.0, (3, 0.63), (("c", 0.25), ("b", 0.5)), 0.25
    )  # 0.63: the cube root of 0.25


def row_of_two() -> Row:
    return summed(SETS[0], 1, [result("lost", 0.5), result("won", 2.0)])


def test_what_is_slower_is_named() -> None:
    row = row_of_two()
    text = page("x", MeasuredCpu(
        "A CPU", "zen5", "avx2", date="2026-01-02", commit="abc", peer="oneDNN 3.2.0", ms=7, least_us=0, note="",
        rows=(row,),
    ))  # fmt: skip
    assert f"| {SETS[0].title} | 1 | `lost` | 0.50 |" in text
    assert "`won`" not in text
    assert f"| [{SETS[0].title}]({SETS[0].page}.md) | 2 | 1.00 (0.50) |  |" in text


def test_what_is_left_out_is_said() -> None:
    cpu = MeasuredCpu(
        "A CPU", "zen5", "avx2", date="2026-01-02", commit="abc", peer="oneDNN 3.13.2", ms=7, least_us=0, note="",
        rows=(row_of_two(),),
    )  # fmt: skip
    text = page("x", replace(cpu, least_us=500))
    assert "takes oneDNN less than 500 us is left out" in text
    assert "--ms=7 --least-us=500\n" in text
    assert "left out" not in page("x", cpu)
