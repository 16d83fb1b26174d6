"""`asmdnn setup`: gets what pip cannot get, PeachPy 0.2.0 and, where the system has none, an OpenMP runtime.

Both are unpacked from the distribution's packages, without root; PeachPy is built from its repository where there is no
such package.  What is there already is left alone.
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from asmdnn.cli.progress import Progress
from asmdnn.cli.terminal import show_help
from asmdnn.cli.unknown import unknown
from asmdnn.errors import AsmdnnError

FAILED = 1

USAGE = """asmdnn setup
Gets what pip cannot get, into the environment of this Python; no root needed:
  PeachPy 0.2.0   from the distribution's package python3-peachpy, else built by pip from its repository
  OpenMP          libgomp from the distribution's package, where the system has no OpenMP runtime
What is there already is left alone.  asmdnn doctor says what is there."""


def run(arguments: Sequence[str]) -> int:
    """The exit status: 1 when something could not be had.  Takes no arguments."""
    if list(arguments) in (["-h"], ["--help"]):
        show_help(USAGE)
        return 0
    if arguments:
        raise unknown("setup", arguments[0])
    with tempfile.TemporaryDirectory(prefix="asmdnn-setup-") as name:
        return set_up(Path(name))


def set_up(work: Path) -> int:
    """Install what is missing, with `work` for files on the way, and say what happens; the exit status."""
    from asmdnn.setup import openmp, peachpy
    from asmdnn.setup.debian import Packages

    progress = Progress(1, sys.stderr)
    packages = Packages(work, lambda words: progress.update(0, words))
    steps: tuple[tuple[str, Callable[[], bool], Callable[[], str]], ...] = (
        ("PeachPy", peachpy.is_installed, lambda: peachpy.install(packages)),
        ("OpenMP", lambda: not openmp.missing(), lambda: openmp.install(packages)),
    )
    status = 0
    for subject, is_there, install in steps:
        if is_there():
            print(f"setup: {subject} is there")
            continue
        print(f"setup: getting {subject}", flush=True)
        try:
            source = install()
            progress.clear()
            print(f"setup: {subject} comes from {source}")
        except AsmdnnError as error:  # the other one is of use all the same
            progress.clear()
            print(f"{packages.last_words()}\nsetup: {error}".lstrip(), file=sys.stderr)
            status = FAILED
    return status
