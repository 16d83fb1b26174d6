"""`asmdnn cache`: the kernels on disk."""

import time
from collections.abc import Sequence

from asmdnn.cli.terminal import show_help
from asmdnn.errors import InvalidArguments
from asmdnn.jit.store import DiskStore, default_directory, enabled

USAGE = """asmdnn cache list     name, size and age of every kernel
asmdnn cache clear    remove them; they are generated again when needed
The directory is ASMDNN_CACHE_DIR, else XDG_CACHE_HOME/asmdnn, else ~/.cache/asmdnn; ASMDNN_CACHE=0 disables it."""


def run(arguments: Sequence[str]) -> int:
    """`list` or `clear`.  Raises InvalidArguments for other words."""
    if list(arguments) in (["-h"], ["--help"]):
        show_help(USAGE)
        return 0
    if len(arguments) != 1 or arguments[0] not in ("list", "clear"):
        raise InvalidArguments(f"cache: expected list or clear, not '{' '.join(arguments)}'")
    store = DiskStore(default_directory())
    if arguments[0] == "clear":
        print(f"{store.clear()} kernels removed from {store.directory}")
    else:
        _list(store)
    return 0


def _list(store: DiskStore) -> None:
    entries = store.list()
    now = time.time()
    for entry in entries:
        print(f"{entry.size:>9} bytes  {_age(now - entry.mtime):>8}  {entry.key[:12]}  {entry.name}")
    total = sum(entry.size for entry in entries)
    off = "" if enabled() else ", not in use: ASMDNN_CACHE=0"
    print(f"{len(entries)} kernels, {total / 1024:.1f} KiB in {store.directory}{off}")


def _age(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"
