"""The zip of `asmdnn doctor --bundle`: what a bug report needs, and nothing personal."""

import contextlib
import io
import os
import platform
import re
import sys
import traceback
import zipfile
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

from asmdnn import environment
from asmdnn.bench.driver import AnyCase
from asmdnn.bench.options import Reader
from asmdnn.errors import AsmdnnError, InvalidArguments

DEFAULT_NAME = "asmdnn-bundle.zip"
VARIABLES = re.compile(r"(ASMDNN|OMP|GOMP|KMP|ONEDNN)_\w+|JITDUMPDIR|XDG_CACHE_HOME")
PACKAGES = ("numpy", "cffi", "peachpy", "six", "py-cpuinfo", "onednn-cpu-gomp", "scipy", "torch", "threadpoolctl")
HOME = "~"


def write(name: str, words: Sequence[str]) -> list[str]:
    """Write the zip and return the names in it; `words` are a problem as `asmdnn bench` takes it, or nothing.

    Paths lose the home directory and the user's name.  A part that cannot be made says why: a bundle is wanted most
    when something is broken.  Raises InvalidArguments for a file that cannot be written and for words that are no
    problem.
    """
    parts: dict[str, Callable[[], str]] = {
        "info.txt": _command("info"),
        "doctor.txt": _command("doctor"),
        "environment.txt": _environment,
        "versions.txt": _versions,
        "kernels.txt": _command("cache", "list"),
        "packs.txt": _packs,
    }
    if words:
        cases = _cases(words)
        parts["problem.txt"] = lambda: "\n".join(f"asmdnn bench {case}" for case in cases) + "\n"
        for i, case in enumerate(cases):
            parts[f"plan{i}.txt"] = _plan(case)
            parts[f"run{i}.txt"] = _command("bench", "--mode=C", *str(case).split())
    try:
        with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
            for part, make in parts.items():
                archive.writestr(part, without_names(_attempt(make)))
    except OSError as error:
        reason = f"--bundle={name}: cannot be written ({error.strerror})"
        raise InvalidArguments(f"{reason}, name a file in a folder that you may write to") from None
    return list(parts)


def without_names(text: str) -> str:
    """`text` without the home directory, the user's and the machine's name."""
    home = os.path.expanduser("~")
    for path in {home, os.path.realpath(home)} - {"/", "~"}:
        text = re.sub(re.escape(path) + r"(?![\w.-])", HOME, text)
    text = re.sub(r"/home/[^/\s:]+", HOME, text)
    names = [environment.text(name) for name in ("USER", "LOGNAME")] + [platform.node()]
    for name in names:
        if len(name) > 2 and name not in ("root", "localhost"):
            text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "NAME", text)
    return text


def _attempt(make: Callable[[], str]) -> str:
    try:
        return make()
    except AsmdnnError as error:
        return f"{type(error).__name__}: {error}\n"
    except Exception:
        return traceback.format_exc()


def _command(*words: str) -> Callable[[], str]:
    """What an asmdnn command prints, its errors, and its exit status."""

    def run() -> str:
        from asmdnn.cli.main import main

        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            status = main(words)
        return f"{output.getvalue()}exit status {status}\n"

    return run


def _environment() -> str:
    chosen = {name: value for name, value in environment.everything().items() if VARIABLES.fullmatch(name)}
    return "".join(f"{name}={value}\n" for name, value in chosen.items()) or "none of ours is set\n"


def _versions() -> str:
    lines = [
        f"python {platform.python_version()} {platform.python_implementation()}",
        f"system {platform.system()} {platform.release()} {platform.machine()}",
        f"libc {' '.join(platform.libc_ver())}",
    ]
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            lines.append(f"{package} {metadata.version(package)}")
    lines.append(f"executable {sys.executable}")
    from asmdnn.primitives.core.packing import versions

    return "\n".join([*lines, *(f"{name} {version}" for name, version in versions().items())]) + "\n"


def _packs() -> str:
    from asmdnn.jit import packs

    return "\n".join(map(str, packs.loaded())) + "\n" if packs.loaded() else "no pack is loaded\n"


def _cases(words: Sequence[str]) -> list[AnyCase]:
    reader = Reader()
    reader.read(words, Path.cwd())
    if not reader.cases:
        raise InvalidArguments("doctor: --bundle takes a problem as asmdnn bench does, not options alone")
    return reader.cases


def _plan(case: AnyCase) -> Callable[[], str]:
    """Formats, kernels and schedule, or the refusals, of a problem."""

    def explain() -> str:
        import asmdnn as dnn
        from asmdnn.bench.descriptors import primitive_desc_of

        engine = dnn.Engine(isa=case.settings.isa, threads=case.settings.threads)
        return primitive_desc_of(case, engine).explain() + "\n"

    return explain
