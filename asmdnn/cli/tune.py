"""`asmdnn tune`: measure what planners choose from, and keep what is fastest."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from asmdnn.bench import batch_files
from asmdnn.bench.options import Reader
from asmdnn.cli.progress import Progress
from asmdnn.cli.terminal import show_help
from asmdnn.cli.unknown import command_words
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.jit.store import enabled

USAGE = """asmdnn tune --conv [OPTION ...] PROBLEM ... | --batch=FILE-OR-SET
Measures every plan that planners choose from for each problem, on this machine, and keeps the fastest where it beats
their own choice by 3%. From then on every program of this user gets that plan for the same request: description,
attributes, ISA level, CPU class and version; for any number of threads, so that results do not depend on it.
  --threads=2              measured with so many; a problem that comes with several gets what is best on average
  --max-ms-per-prb=20000   time for a problem, default 3000 ms
Other options of problems are those of asmdnn bench. asmdnn cache list shows what is kept, asmdnn cache clear removes
it, and ASMDNN_TUNED=no passes it over.
asmdnn tune --machine [--isa=LEVEL] [--only=NUMBER,..] [--max-ms-per-prb=1000] [--json]
Measures the numbers that planners choose by instead, beside those of the CPU's class, in some minutes on an idle
machine, and keeps those that are better here. --only=moves, or --only=moves.page_bytes: some of them.
Problem sets: {sets}
Example: asmdnn tune --conv --alg=auto --dir=FWD_I --threads=1 mb1ic64ih56oc64oh56kh3ph1"""


def run(arguments: Sequence[str]) -> int:
    """The exit status.  Raises AsmdnnError for arguments that cannot be run, and where nothing can be kept."""
    if not arguments or any(word in ("-h", "--help") for word in arguments):
        show_help(USAGE.format(sets=", ".join(batch_files.problem_sets())))
        return 0
    if not enabled():
        raise Unimplemented("tune: ASMDNN_CACHE=0 leaves no place to keep what is measured: unset it")
    if "--machine" in arguments:
        from asmdnn.cli.tune_machine import run as tune_machine

        return tune_machine(arguments)
    total = Reader(partial(command_words, "tune")).count(arguments, Path.cwd())
    if not total:
        raise InvalidArguments("tune: no problem is given; name one, or a set with --batch=resnet_50")
    from asmdnn.bench.tune import run as tune  # not above: help needs neither numpy nor the library

    with Progress(total, sys.stderr) as progress:
        return tune(arguments, progress.update, progress.clear)
