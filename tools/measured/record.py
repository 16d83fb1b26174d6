"""A record: what one CPU took for all problem sets, beside oneDNN; a JSON file in docs/measurements."""

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from statistics import geometric_mean
from typing import Any, Final

import asmdnn as dnn
from asmdnn.bench.peers.onednn_library import load
from tools.measured.sets import SETS, ProblemSet

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "docs" / "measurements"
RESULTS: Final = ROOT / "build" / "measured"  # what the last run found for each problem
BEHIND: Final = 0.95  # of the peer's speed: problems below it are named


@dataclass(frozen=True, slots=True)
class Row:
    """A set with a number of threads.  mean, low: how many times as fast as the peer, the geometric mean of medians and
    of 10th percentiles.  against_kernels: of the problems that the peer does not compute by its reference code, how
    many (0: not counted) and their mean.  behind: what is below BEHIND by medians, and its ratio, the least first."""

    title: str
    page: str
    words: str
    threads: int
    problems: int
    mean: float
    low: float
    against_kernels: tuple[int, float | None]
    behind: tuple[tuple[str, float], ...]
    least: float


@dataclass(frozen=True, slots=True)
class MeasuredCpu:
    """A record.  title: for people; ms: of a problem; note: what a reader should know of the machine at that time;
    least_us: problems that take the peer less are left out, as a call of a SYCL build costs it 20 to 30 us."""

    title: str
    machine: str
    isa: str
    date: str
    commit: str
    peer: str
    ms: int
    least_us: int
    note: str
    rows: tuple[Row, ...]

    @classmethod
    def read(cls, path: Path) -> "MeasuredCpu":
        """From a file."""
        fields = json.loads(path.read_text())
        rows = [
            Row(
                **{
                    **row,
                    "against_kernels": tuple(row["against_kernels"]),
                    "behind": tuple((name, ratio) for name, ratio in row["behind"]),
                }
            )
            for row in fields["rows"]
        ]
        return cls(**{**fields, "rows": tuple(rows)})

    def write(self, path: Path) -> None:
        """To a file, a row a line."""
        fields = asdict(self)
        rows = ",\n".join("    " + json.dumps(row) for row in fields.pop("rows"))
        head = json.dumps(fields, indent=2)[:-2]
        path.write_text(f'{head},\n  "rows": [\n{rows}\n  ]\n}}\n')


def started(title: str, note: str, ms: int, least_us: int = 0) -> MeasuredCpu:
    """A record of this machine and this commit without rows."""
    engine = dnn.Engine()
    git = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    today = datetime.now(timezone.utc).date().isoformat()
    peer = f"oneDNN {load().version}"
    return MeasuredCpu(title, engine.machine, engine.isa, today, commit, peer, ms, least_us, note, ())


def measure(cpu: MeasuredCpu, threads: tuple[int, ...], path: Path, minutes: float) -> None:
    """Time all sets on this machine, some 10 minutes for each number of threads at 100 ms; a line for each.

    The record is written after each set.  Rows of the same commit that path has already are kept.
    """
    begun = time.monotonic()
    rows = _kept(cpu, path)
    for count in threads:
        for found in SETS:
            if any((row.title, row.threads) == (found.title, count) for row in rows):
                continue
            if time.monotonic() - begun > 60 * minutes:
                print(f"stopped after {minutes} minutes; the same command goes on")
                return
            row = _row(found, count, cpu)
            if row is None:
                print(f"{found.title}, threads {count}: {cpu.peer} has none of these here", flush=True)
                continue
            rows.append(row)
            replace(cpu, rows=tuple(rows)).write(path)


def _kept(cpu: MeasuredCpu, path: Path) -> list[Row]:
    if not path.exists():
        return []
    old = MeasuredCpu.read(path)
    return list(old.rows) if (old.commit, old.peer, old.ms) == (cpu.commit, cpu.peer, cpu.ms) else []


def _row(found: ProblemSet, threads: int, cpu: MeasuredCpu) -> Row | None:
    """The row of a set; None where the peer computes none of it, as oneDNN convolutions in bf16 on AVX2."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    results = RESULTS / f"{found.title} {threads}.json".replace(" ", "_")
    results.unlink(missing_ok=True)
    driver, *words = found.words.split()
    how = ["--mode=P", "--peer=onednn", f"--threads={threads}", f"--max-ms-per-prb={cpu.ms}"]
    command = [sys.executable, "-m", "asmdnn", "bench", driver, *how, *words, f"--json={results}"]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    timed = [line for line in lines if line["speedup"] and line["peer_us"] >= cpu.least_us]
    if not timed:
        return None
    row = summed(found, threads, timed)
    print(f"{row.title}, threads {threads}: {row.mean:.2f} ({row.least:.2f}) of {row.problems}", flush=True)
    return row


def summed(found: ProblemSet, threads: int, lines: list[dict[str, Any]]) -> Row:
    """The row of a set's results, which all have a peer's time."""
    ratios = [line["speedup"] for line in lines]
    kernels = [line["speedup"] for line in lines if not str(line["peer_impl"]).startswith("ref")]
    behind = sorted((line["speedup"], line["title"]) for line in lines if line["speedup"] < BEHIND)
    return Row(
        found.title,
        found.page,
        found.words,
        threads,
        len(lines),
        round(geometric_mean(ratios), 3),
        round(geometric_mean([line["low_speedup"] for line in lines]), 3),
        (len(kernels), round(geometric_mean(kernels), 3) if kernels else None),
        tuple((title, round(ratio, 3)) for ratio, title in behind),
        round(min(ratios), 3),
    )
