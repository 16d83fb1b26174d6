"""`asmdnn compare`: what changed between two results of `asmdnn bench --json`."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from asmdnn.bench.changes import ChangedTime, ChangedTimes, compare
from asmdnn.cli.terminal import coloured, show_help
from asmdnn.cli.unknown import unknown
from asmdnn.errors import InvalidArguments

USAGE = """asmdnn compare [--change=PERCENT] [--slower=PERCENT] [--json] BEFORE AFTER
BEFORE and AFTER are JSON files of asmdnn bench.  Problems of both are compared by
their median times; how they were measured (level, threads, peer, times) may
differ.  1.10 says that AFTER is 1.10 times as fast.
  --change=PERCENT   list problems that changed by more than this, 3 by default
  --slower=PERCENT   exit with status 1 if one became slower by more than this
  --json             one JSON object
Where both have a peer, the column peer is how much faster the peer became: it is
the same program, so this is what the machine did.
Example: asmdnn compare before.json after.json"""
HEAD = f"{'problem':<44} {'driver':<10} {'before us':>10} {'after us':>10} {'ratio':>6} {'peer':>6}"


def run(arguments: Sequence[str]) -> int:
    """Print what changed; 1 if --slower says so.  Raises InvalidArguments for anything else than USAGE says."""
    if list(arguments) in (["-h"], ["--help"]):
        show_help(USAGE)
        return 0
    files: list[str] = []
    percents: dict[str, float | None] = {"--change": 3.0, "--slower": None}
    is_json = False
    for word in arguments:
        name, _, value = word.partition("=")
        if name in percents:
            percents[name] = _percent(name, value)
        elif word == "--json":
            is_json = True
        elif word.startswith("-"):
            raise unknown("compare", word)
        else:
            files.append(word)
    if len(files) != 2:
        raise InvalidArguments(f"compare: expected two files, BEFORE and AFTER, not '{' '.join(files)}'")
    found = compare(Path(files[0]), Path(files[1]))
    change = percents["--change"] or 0.0
    print(json.dumps(_as_json(found)) if is_json else "\n".join(_lines(found, change)))
    slower = percents["--slower"]
    return int(slower is not None and any(1 / each.ratio > 1 + slower / 100 for each in found.changes))


def _percent(name: str, value: str) -> float:
    try:
        percent = float(value)
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 1000:
        raise InvalidArguments(f"compare: {name}={value} is no number of percent from 0 to 1000")
    return percent


def _lines(found: ChangedTimes, percent: float) -> list[str]:
    """Problems that changed, the slowest first, then a line for each driver."""
    edge = 1 + percent / 100
    changed = sorted((c for c in found.changes if max(c.ratio, 1 / c.ratio) > edge), key=lambda c: c.ratio)
    lines = [HEAD] if changed else [f"no problem changed by more than {percent:g}%"]
    lines += [_line(each) for each in changed]
    lines += ["", f"{'driver':<12} {'problems':>8} {'mean':>6} {'least':>6} {'most':>6} {'slower':>7} {'peer':>6}"]
    for driver, changes in found.of_drivers().items():
        ratios = [each.ratio for each in changes]
        drifts = [each.drift for each in changes if each.drift]
        drift = f"{geometric_mean(drifts):6.2f}" if drifts else f"{'-':>6}"
        slower = sum(1 / ratio > edge for ratio in ratios)
        lines.append(
            f"{driver:<12} {len(ratios):8} {geometric_mean(ratios):6.2f} {min(ratios):6.2f} {max(ratios):6.2f}"
            f" {slower:7} {drift}"
        )
    if found.only_before or found.only_after:
        lines.append(f"in one file alone: {found.only_before} before, {found.only_after} after")
    return lines


def _line(change: ChangedTime) -> str:
    before, after = change.before, change.after
    title = after.title if len(after.title) <= 44 else after.title[:41] + "..."
    drift = f"{change.drift:6.2f}" if change.drift else f"{'-':>6}"
    moved = f"  {before.impl} -> {after.impl}" if before.impl != after.impl else ""
    ratio = coloured(f"{change.ratio:6.2f}", "good" if change.ratio > 1 else "bad")
    return f"{title:<44} {after.driver:<10} {before.us:10.1f} {after.us:10.1f} {ratio} {drift}{moved}"


def _as_json(found: ChangedTimes) -> dict[str, Any]:
    """All problems of both."""
    problems = [
        {
            "driver": each.after.driver, "problem": each.after.title, "ratio": each.ratio, "peer_ratio": each.drift,
            "before_us": each.before.us, "after_us": each.after.us,
            "before_impl": each.before.impl, "after_impl": each.after.impl,
        }
        for each in found.changes
    ]  # fmt: skip
    return {"problems": problems, "only_before": found.only_before, "only_after": found.only_after}
