"""`asmdnn cache`: the kernels, networks and tuned plans on disk."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from asmdnn.cli.terminal import show_help
from asmdnn.cli.unknown import unknown
from asmdnn.errors import InvalidArguments
from asmdnn.jit.pruning import parse_size, size_limit
from asmdnn.jit.store import DiskStore, default_directory, enabled
from asmdnn.jit.tuned_folder import tuned_directory

if TYPE_CHECKING:
    from asmdnn.primitives.core.tuned import Choice

LEAST_BYTES = 1 << 20  # of a size without a unit, other than 0: 64 lacks its M
USAGE = """asmdnn cache list [--json]  name, size and time since the last use of every kernel and network, and
                            what asmdnn tune has kept; --json: one JSON object, sizes in bytes, times in seconds
asmdnn cache prune [SIZE]   remove those that were not used for longest until SIZE is left, such as 64M;
                            default: ASMDNN_CACHE_SIZE, else 1G, which is kept to while they are written, too;
                            and what was tuned with another version of asmdnn
asmdnn cache clear          remove them, the measured rates of this machine, and what asmdnn tune has kept
The directory is ASMDNN_CACHE_DIR, else XDG_CACHE_HOME/asmdnn, else ~/.cache/asmdnn; ASMDNN_CACHE=0 disables it."""


def run(arguments: Sequence[str]) -> int:
    """`list`, `prune` or `clear`.  Raises InvalidArguments for other words."""
    if any(word in ("-h", "--help") for word in arguments):
        show_help(USAGE)
        return 0
    if list(arguments) == ["list", "--json"]:
        print(json.dumps(_listed(DiskStore(default_directory())), indent=2))
        return 0
    command, *sizes = arguments or [""]
    if command not in ("list", "prune", "clear") or len(sizes) > (command == "prune"):
        if command and command not in ("list", "prune", "clear"):
            raise unknown("cache", command)
        raise InvalidArguments(f"cache: expected list, prune [SIZE] or clear, not '{' '.join(arguments)}'")
    store = DiskStore(default_directory())
    if command == "clear":
        from asmdnn.planning import own_row
        from asmdnn.runtime.rates import forget  # not above: the other words do not need numpy

        plans = _plans(DiskStore(tuned_directory()).clear())
        row = ", the numbers of this machine" * own_row.remove()
        rates = " and the measured rates" * forget()
        print(f"{store.clear()} kernels and networks{plans}{row}{rates} removed from {store.directory}")
    elif command == "prune":
        files, size = store.prune(size_said(sizes[0]) if sizes else size_limit())
        plans = _plans(_forget_stale())
        print(f"{files} kernels and networks{plans}, {size / 1024:.1f} KiB removed from {store.directory}")
    else:
        _list(store)
    return 0


def size_said(text: str) -> int:
    """Bytes.  Raises InvalidArguments for what is no size, and for a number that lacks its unit."""
    size = parse_size("SIZE", text)
    if text.strip().isdecimal() and 0 < size < LEAST_BYTES:
        raise InvalidArguments(f"cache: SIZE={text} has no unit and would leave {size} bytes: say {size}M, or {size}B")
    return size


def _list(store: DiskStore) -> None:
    kernels, networks = store.list(), store.images()
    now = time.time()
    for entry in (*kernels, *networks):
        print(f"{entry.size:>9} bytes  {_age(now - entry.mtime):>8}  {entry.key[:12]}  {entry.name}")
    total = sum(entry.size for entry in (*kernels, *networks))
    also = f" and {len(networks)} networks" if networks else ""
    off = "" if enabled() else ", not in use: ASMDNN_CACHE=0"
    _list_tuned()
    print(f"{len(kernels)} kernels{also}, {total / 1024:.1f} KiB in {store.directory}{off}")


def _listed(store: DiskStore) -> dict[str, Any]:
    """What `list` shows, for programs."""
    now = time.time()
    found = {
        kind: [{"name": e.name, "key": e.key, "bytes": e.size, "unused_s": max(0, int(now - e.mtime))} for e in entries]
        for kind, entries in (("kernels", store.list()), ("networks", store.images()))
    }
    tuned = [{"key": key, "choice": choice and asdict(choice)} for key, choice in _tuned()]
    return {"directory": str(store.directory), "enabled": enabled(), **found, "tuned": tuned, "machine": _rows()}


def _tuned() -> "list[tuple[str, Choice | None]]":
    """What asmdnn tune has kept, by key; None for what another version kept."""
    if not tuned_directory().is_dir():
        return []
    from asmdnn.primitives.core import registry, tuned  # not above: the other words do not need numpy

    registry.kinds()  # so that all classes of specs are known
    return list(tuned.choices())


def _rows() -> dict[str, dict[str, Any]]:
    """The numbers that asmdnn tune --machine has kept for this CPU, by level."""
    if not tuned_directory().is_dir():
        return {}
    from asmdnn.isa.vectors import F32_LEVELS
    from asmdnn.planning import own_row

    rows = {isa: own_row.kept(isa) for isa in map(str, F32_LEVELS)}
    return {isa: {name: own_row.as_json(row[name]) for name in row} for isa, row in rows.items() if row}


def _list_tuned() -> None:
    for isa, row in _rows().items():
        numbers = ", ".join(f"{name} {value}" for name, value in row.items())
        print(f"tuned  {isa} on this CPU: {numbers}")
    for key, choice in _tuned():
        print(f"tuned  {key[:12]}  {f'{choice.problem}  {choice}' if choice else 'of another version'}")


def _forget_stale() -> int:
    """Remove what was tuned with another version; how many plans."""
    if not tuned_directory().is_dir():
        return 0
    from asmdnn.primitives.core import registry, tuned
    from asmdnn.primitives.core.implementation import plan_digest

    registry.kinds()
    sources = plan_digest()
    return tuned.remove([key for key, choice in tuned.choices() if choice is None or choice.sources != sources])


def _plans(count: int) -> str:
    return f", {count} tuned plans" if count else ""


def _age(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"
