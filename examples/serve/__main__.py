"""Starts the service: python -m examples.serve NAME=FILE.pack ... [--port=8000] [--processes=2].

SIGHUP loads the packs again; SIGTERM answers what has come, and ends.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from examples.serve.processes import serve, supervise


def options(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m examples.serve", description=__doc__)
    parser.add_argument("packs", nargs="+", metavar="NAME=FILE", help="a network as Network.save writes it")
    parser.add_argument("--host", default="127.0.0.1", help="whom to listen to; default: this machine alone")
    parser.add_argument("--port", type=int, default=8000, help="default: 8000; 0 takes a free one")
    parser.add_argument("--processes", type=int, default=1, help="that share port and weights; default: 1")
    parser.add_argument("--workers", type=int, default=0, help="threads that compute, a process; default: one a CPU")
    parser.add_argument("--threads", type=int, default=1, help="OpenMP threads of one request; default: 1")
    parser.add_argument("--waiting", type=int, default=32, help="requests that may wait, a process; default: 32")
    parser.add_argument("--timeout", type=float, default=5.0, help="seconds for an answer; default: 5")
    parser.add_argument("--read-timeout", type=float, default=10.0, help="seconds for a request; default: 10")
    parser.add_argument("--body-bytes", type=int, default=16 << 20, help="the largest body; default: 16 MiB")
    given = parser.parse_args(words)
    for name in ("processes", "threads", "waiting", "timeout", "read_timeout", "body_bytes"):
        if not getattr(given, name) > 0:
            parser.error(f"--{name.replace('_', '-')} must be above 0")
    if given.workers < 0 or not 0 <= given.port < 1 << 16:
        parser.error("--workers must be at least 0, and --port from 0 to 65535")
    given.paths = paths_of(parser, given.packs)
    return given


def paths_of(parser: argparse.ArgumentParser, words: Sequence[str]) -> dict[str, Path]:
    """Packs by name, as they are written on the command line."""
    found = dict(word.partition("=")[::2] for word in words)
    if not all(found.values()) or "" in found or any("/" in name for name in found):
        parser.error("a pack is written NAME=FILE, the name without a slash")
    return {name: Path(path) for name, path in found.items()}


def main(words: Sequence[str] | None = None) -> None:
    given = options(words)
    serve(given) if given.processes == 1 else supervise(given)


if __name__ == "__main__":
    main()
