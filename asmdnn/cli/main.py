"""The `asmdnn` command: hands the words after it to one of its subcommands.

Exit status: 0 done; 1 a problem of `bench` failed, or `doctor` found something essential missing; 2 bad usage or input,
or output that cannot be written; 130 interrupted.
"""

import importlib
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial

from asmdnn import __version__
from asmdnn.cli.guard import USAGE_ERROR, guarded, show_warning
from asmdnn.errors import InvalidArguments, did_you_mean

# A subcommand's module is imported when it is chosen: `asmdnn --help` does not wait for numpy.
COMMANDS = {
    "info": "the CPU, its instruction sets and caches, threads, the kernel cache",
    "setup": "get PeachPy, and OpenMP where the system has none; no root needed",
    "doctor": "is everything there, and how to get what is not",
    "cache": "list, prune or clear the kernels on disk",
    "run": "a network from an ONNX file: its answer, its primitives, its time",
    "bench": "check and time problems in benchdnn's notation, also against oneDNN",
    "compare": "two results of bench: which problems became faster, which slower",
    "tune": "measure what planners choose from for a problem, keep the fastest",
    "pack": "kernels and plans in one file, for processes without PeachPy",
    "dump": "kernels as bytes, assembly, ELF objects and C headers",
    "disasm": "bytes and files as instructions, with the CPU features they need",
    "export": "a network or a primitive for C: object, header, shared library",
    "prove": "that kernels keep to ISA level, footprint and ABI; nothing is run",
    "explain": "every instruction of a problem's kernels, its schedule, and why",
    "studio": "a page of a network: other threads, CPU classes, precisions",
    "analyze": "what the loops of a problem's kernels cost; the roofline",
    "completion": "a script for bash or zsh that completes all these words",
    "show": "a memory format as text or picture: which element lies where",
}


def usage() -> str:
    lines = "\n".join(f"  {name:<10} {text}" for name, text in COMMANDS.items())
    more = "asmdnn help COMMAND, or COMMAND --help, says more; asmdnn --version the version."
    return f"usage: asmdnn COMMAND [...]\n\n{lines}\n\n{more}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line `arguments` (default: the process's own) and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:  # the process is this command, and no program that a test or a notebook is
        warnings.showwarning = partial(show_warning, warnings.showwarning)
    return guarded("asmdnn", lambda: _dispatch(words))


def _dispatch(words: list[str]) -> int:
    if words[:1] == ["help"] and words[1:]:
        words = [*words[1:], "--help"]  # asmdnn help bench
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if words else USAGE_ERROR
    if words[0] in ("-V", "--version"):
        print(f"asmdnn {__version__}")
        return 0
    if words[0] not in COMMANDS:
        raise InvalidArguments(f"no command '{words[0]}'; {did_you_mean(words[0], COMMANDS)}")
    run: Callable[[Sequence[str]], int] = importlib.import_module(f"asmdnn.cli.{words[0]}").run
    return run(words[1:])
