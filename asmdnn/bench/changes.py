"""Two results of `asmdnn bench --json`, problem by problem: what became faster, and what slower."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from asmdnn.errors import InvalidArguments, shown
from asmdnn.records import dataclass, replace

# Words that say how to measure, not what: problems are the same whatever they are.
MEASURING: Final = ("isa", "threads", "peer", "max-ms-per-prb", "max-ms", "fix-times-per-prb", "mode", "ctx-exe")


@dataclass(frozen=True, slots=True)
class Timed:
    """A problem of a file: its driver, its title for people, and its times in microseconds, medians."""

    key: str
    driver: str
    title: str
    impl: str
    us: float
    peer_us: float | None


@dataclass(frozen=True, slots=True)
class ChangedTime:
    """A problem of both files.  ratio: how many times as fast it has become; drift: how many times as fast the peer of
    both has, which did not change: what the machine did; None without one."""

    before: Timed
    after: Timed

    @property
    def ratio(self) -> float:
        return self.before.us / self.after.us

    @property
    def drift(self) -> float | None:
        before, after = self.before.peer_us, self.after.peer_us
        return before / after if before and after else None


@dataclass(frozen=True, slots=True)
class ChangedTimes:
    """changes: problems of both files, in the order of the second; only_before, only_after: how many of one alone."""

    changes: tuple[ChangedTime, ...]
    only_before: int
    only_after: int

    def of_drivers(self) -> dict[str, tuple[ChangedTime, ...]]:
        """The changes of each driver."""
        names = dict.fromkeys(change.after.driver for change in self.changes)
        return {name: tuple(c for c in self.changes if c.after.driver == name) for name in names}


def compare(before: Path, after: Path) -> ChangedTimes:
    """The problems that were timed in both.  Raises InvalidArguments for a file that bench did not write, or if the two
    have no problem in common."""
    old, new = ({timed.key: timed for timed in _read(path)} for path in (before, after))
    changes = tuple(ChangedTime(old[key], timed) for key, timed in new.items() if key in old)
    if not changes:
        raise InvalidArguments(f"compare: no problem is timed in both {before} and {after}: run the same in both")
    return ChangedTimes(changes, len(old) - len(changes), len(new) - len(changes))


def _read(path: Path) -> Iterator[Timed]:
    """The timed problems of a file; one that stands there several times has a number in its key."""
    times: Counter[str] = Counter()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InvalidArguments(f"compare: {path} cannot be read: {why}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            timed = _timed(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InvalidArguments(
                f"compare: {path}:{number} is no result of asmdnn bench --json={path.name}: {shown(line[:40])}"
            ) from None
        if timed:
            times[timed.key] += 1
            yield replace(timed, key=f"{timed.key} #{times[timed.key]}")


def _timed(fields: dict[str, Any]) -> Timed | None:
    """One line's; None for a problem that was not timed."""
    words = [word for word in fields["args"].split() if word.lstrip("-").partition("=")[0] not in MEASURING]
    us, peer_us = fields["us"], fields["peer_us"]
    if us is None:
        return None
    us, peer_us = float(us), None if peer_us is None else float(peer_us)
    if not (0 < us < math.inf and (peer_us is None or 0 < peer_us < math.inf)):
        raise ValueError
    return Timed(" ".join(words), str(fields["driver"]), str(fields["title"]), str(fields["impl"]), us, peer_us)
