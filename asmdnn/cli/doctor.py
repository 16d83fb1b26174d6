"""`asmdnn doctor`: what asmdnn needs, whether it is there, and the command that gets what is not.

Exit status 1 when something essential is missing: without a `missing` row everything works.  What is `absent` is
optional.
"""

import json
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.util import find_spec

from asmdnn import environment
from asmdnn.cli.terminal import coloured
from asmdnn.cli.unknown import unknown
from asmdnn.errors import AsmdnnError
from asmdnn.records import dataclass

MISSING_ESSENTIALS = 1
RETURN = b"\xc3"  # the one-byte function `ret`

STATUS_COLOURS = {"ok": "good", "missing": "bad", "absent": "soft"}
# Optional packages by the extra that installs them, and what they are for.
EXTRAS = {
    "cpuinfo": ("info", "the CPU's name in `asmdnn info`"),
    "matplotlib": ("demo", "the pictures of the demo"),
    "scipy": ("demo", "the demo's check of its pictures"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One row: status is ok, missing (essential) or absent (optional), `text` says what, or the way out."""

    subject: str
    status: str
    text: str


MORE_USAGE = """
asmdnn doctor --json
    {"ready": true, "findings": [{"subject": "ISA", "status": "ok", "text": "..."}, ...]}, with the same exit status
asmdnn doctor --bundle[=FILE.zip] [PROBLEM in the words of asmdnn bench]
    a zip for a bug report: info, doctor, environment, versions, kernels; of a problem its plan and a checked run.
    Home directory, user's and machine's name are taken out."""


def run(arguments: Sequence[str]) -> int:
    """Print a row for each check, or all as JSON, or write a bundle.  Raises InvalidArguments."""
    if list(arguments) in (["-h"], ["--help"]):
        print(f"asmdnn doctor    {(__doc__ or '').partition(': ')[2].strip()}\n{MORE_USAGE}")
        return 0
    if arguments and arguments[0].partition("=")[0] == "--bundle":
        from asmdnn.cli import bundle

        name = arguments[0].partition("=")[2] or bundle.DEFAULT_NAME
        print(f"{name}: {', '.join(bundle.write(name, arguments[1:]))}")
        return 0
    as_json = list(arguments) == ["--json"]
    if arguments and not as_json:
        raise unknown("doctor", next((word for word in arguments if word != "--json"), arguments[-1]))
    findings = [_examine(subject, check) for subject, check in CHECKS.items()]
    findings += [_extra(*entry) for entry in EXTRAS.items()]
    missing = [finding.subject for finding in findings if finding.status == "missing"]
    if as_json:
        print(json.dumps({"ready": not missing, "findings": [asdict(finding) for finding in findings]}, indent=2))
        return MISSING_ESSENTIALS if missing else 0
    for finding in findings:
        status = coloured(f"{finding.status:<8}", STATUS_COLOURS.get(finding.status, ""))
        print(f"{status} {finding.subject:<18} {finding.text}")
    print(coloured(f"not ready: {', '.join(missing)}", "bad") if missing else coloured("ready", "good"))
    return MISSING_ESSENTIALS if missing else 0


def _examine(subject: str, check: Callable[[], tuple[str, str]]) -> Finding:
    try:
        return Finding(subject, *check())
    except (AsmdnnError, OSError, ImportError) as error:
        return Finding(subject, "missing", " ".join(str(error).split()))


def _isa() -> tuple[str, str]:
    from asmdnn.planning.host import effective_isa, host

    return "ok", f"{effective_isa()}, {host().name}"


def _executable_memory() -> tuple[str, str]:
    from asmdnn.jit.executable import ExecutableMemory

    ExecutableMemory([RETURN]).close()
    return "ok", "pages can be made executable"


def _peachpy() -> tuple[str, str]:
    from asmdnn.isa.peachpy_forms import peachpy_status

    usable, text = peachpy_status()
    return "ok" if usable else "missing", text


def _threads() -> tuple[str, str]:
    from asmdnn.runtime import threads

    reason = threads.single_thread_reason()
    return ("absent", reason) if reason else ("ok", f"{threads.max_threads()} threads, {threads.runtime_path()}")


def _cache() -> tuple[str, str]:
    from asmdnn.jit.store import DiskStore, default_directory, enabled

    directory = default_directory().absolute()
    if not enabled():
        return "absent", f"{environment.shown(environment.CACHE)}: every process generates its kernels"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DiskStore(directory).list()
    if caught:
        return "absent", str(caught[0].message)
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        return "absent", f"{existing} cannot be written to: set ASMDNN_CACHE_DIR to a directory that can"
    return "ok", str(directory)


def _onednn() -> tuple[str, str]:
    from asmdnn.bench.peers.onednn_library import load

    try:
        peer = load()
    except AsmdnnError as error:
        return "absent", str(error)
    return "ok", f"oneDNN {peer.version}, {peer.path}"


def _extra(module: str, use: tuple[str, str]) -> Finding:
    extra, purpose = use
    if find_spec(module):
        return Finding(module, "ok", purpose)
    return Finding(module, "absent", f"{purpose}: run pip install '.[{extra}]' in a clone")


CHECKS = {
    "ISA": _isa,
    "executable memory": _executable_memory,
    "PeachPy": _peachpy,
    "OpenMP": _threads,
    "kernel cache": _cache,
    "oneDNN": _onednn,
}
