"""How many CPUs a container's quota allows: the limits of control groups, which affinity masks do not show.

`docker run --cpus=2` and a pod's `limits.cpu: 2` give a process all CPUs, for so much of each 100 ms.  A team with a
thread for each of 64 CPUs spends that in 3 ms, and then stands still in the middle of a barrier.
Source: Linux, Documentation/admin-guide/cgroup-v2.rst (cpu.max) and scheduler/sched-bwc.rst (cpu.cfs_quota_us).
"""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

PROCESS: Final = Path("/proc/self")


def allowed_cpus(process: Path = PROCESS) -> int | None:
    """CPUs that the least quota of the process's control groups and of those above them comes to, rounded up, at least
    1; None without one.  `process`: the folder of a process in /proc.

    Never raises: what cannot be read or makes no sense is no quota.
    """
    found = []
    for folder, version in _folders(process):
        quota, period = _limit(folder, version)
        if quota > 0 and period > 0:
            found.append(-(-quota // period))
    return min(found, default=None)


def _folders(process: Path) -> Iterator[tuple[Path, str]]:
    """Folders of the process's groups that may have a quota, with the type of their file system, up to its mount."""
    groups: dict[str, str] = {}
    for line in _lines(process / "cgroup"):
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if not controllers:
            groups["cgroup2"] = path
        elif "cpu" in controllers.split(","):
            groups["cgroup"] = path
    for line in _lines(process / "mountinfo"):
        left, _, right = line.partition(" - ")
        fields, (kind, _, options) = left.split(), (*right.split(), "", "", "")[:3]
        if len(fields) < 5 or kind not in groups or (kind == "cgroup" and "cpu" not in options.split(",")):
            continue
        group, root = PurePosixPath(groups[kind]), PurePosixPath(fields[3])
        inside = group.relative_to(root) if group.is_relative_to(root) else PurePosixPath()
        folder = Path(fields[4].replace("\\040", " "))
        yield folder, kind
        for part in inside.parts:
            if part not in ("/", ".."):  # a group outside the namespace is shown as /..
                folder /= part
                yield folder, kind


def _limit(folder: Path, version: str) -> tuple[int, int]:
    """Microseconds of CPU time, and of the period for which they are; (0, 0) for no limit."""
    if version == "cgroup2":
        words = " ".join(_lines(folder / "cpu.max")).split()
    else:
        words = [*_lines(folder / "cpu.cfs_quota_us"), *_lines(folder / "cpu.cfs_period_us")]
    numbers = [int(word) for word in words if word.isascii() and word.isdecimal()]
    return (numbers[0], numbers[1]) if len(numbers) == len(words) == 2 else (0, 0)


def _lines(path: Path) -> list[str]:
    try:
        return os.fsdecode(path.read_bytes()).splitlines()
    except OSError:
        return []
