"""`asmdnn cache`: the kernels and networks on disk."""

import time
from collections.abc import Sequence

from asmdnn.cli.terminal import show_help
from asmdnn.errors import InvalidArguments
from asmdnn.jit.pruning import parse_size, size_limit
from asmdnn.jit.store import DiskStore, default_directory, enabled

USAGE = """asmdnn cache list           name, size and time since the last use of every kernel and network
asmdnn cache prune [SIZE]   remove those that were not used for longest until SIZE is left, such as 64M;
                            default: ASMDNN_CACHE_SIZE, else 256M, which is kept to while they are written, too
asmdnn cache clear          remove them, and the measured rates of this machine; both are made again when needed
The directory is ASMDNN_CACHE_DIR, else XDG_CACHE_HOME/asmdnn, else ~/.cache/asmdnn; ASMDNN_CACHE=0 disables it."""


def run(arguments: Sequence[str]) -> int:
    """`list`, `prune` or `clear`.  Raises InvalidArguments for other words."""
    if list(arguments) in (["-h"], ["--help"]):
        show_help(USAGE)
        return 0
    command, *sizes = arguments or [""]
    if command not in ("list", "prune", "clear") or len(sizes) > (command == "prune"):
        raise InvalidArguments(f"cache: expected list, prune [SIZE] or clear, not '{' '.join(arguments)}'")
    store = DiskStore(default_directory())
    if command == "clear":
        from asmdnn.runtime.rates import forget  # not above: the other words do not need numpy

        print(
            f"{store.clear()} kernels and networks{' and the measured rates' * forget()} removed from {store.directory}"
        )
    elif command == "prune":
        files, size = store.prune(parse_size("SIZE", sizes[0]) if sizes else size_limit())
        print(f"{files} kernels and networks, {size / 1024:.1f} KiB removed from {store.directory}")
    else:
        _list(store)
    return 0


def _list(store: DiskStore) -> None:
    kernels, networks = store.list(), store.images()
    now = time.time()
    for entry in (*kernels, *networks):
        print(f"{entry.size:>9} bytes  {_age(now - entry.mtime):>8}  {entry.key[:12]}  {entry.name}")
    total = sum(entry.size for entry in (*kernels, *networks))
    also = f" and {len(networks)} networks" if networks else ""
    off = "" if enabled() else ", not in use: ASMDNN_CACHE=0"
    print(f"{len(kernels)} kernels{also}, {total / 1024:.1f} KiB in {store.directory}{off}")


def _age(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"
