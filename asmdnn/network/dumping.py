"""A network's kernels as files."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from asmdnn.dump.files import FORMATS, write_kernel, write_manifest
from asmdnn.dump.kernel import listed
from asmdnn.errors import InvalidArguments, reason_of, shown, shown_path
from asmdnn.files import replace_file
from asmdnn.generators.contract import Spec
from asmdnn.isa.peachpy_version import PEACHPY_VERSION
from asmdnn.memory.sequences import items
from asmdnn.network.compiled import CompiledSegment
from asmdnn.network.planned import NetworkPlan
from asmdnn.runtime.kernels import executor_spec
from asmdnn.version import __version__

TEXT = "network.txt"


def specs_of(planned: NetworkPlan) -> list[Spec]:
    """All kernels of the native parts, and their executors, each once."""
    found = dict[Spec, None]()
    for segment in planned.segments:
        if isinstance(segment, CompiledSegment):
            found |= dict.fromkeys(segment.plan.specs)
            found[executor_spec(segment.plan)] = None
    return list(found)


def dump(planned: NetworkPlan, path: str | PathLike[str], formats: Sequence[str]) -> list[dict[str, Any]]:
    """Write the directory; the kernels' entries of its manifest.  Raises InvalidArguments."""
    try:
        wanted = list(items(formats))
        is_known = all(isinstance(name, str) and name in FORMATS for name in wanted)
    except Exception:  # whatever the caller's object does when it is iterated over
        is_known = False
    if not is_known:
        raise InvalidArguments(f"formats must be some of {', '.join(FORMATS)}, not {shown(formats)}")
    try:
        directory = Path(path)
        directory.mkdir(parents=True, exist_ok=True)
        kernels = [write_kernel(directory, listed(spec), wanted) for spec in specs_of(planned)]
        text = planned.explain()
        replace_file(directory / TEXT, f"{text}\n".encode())
        made_by = {"asmdnn": __version__, "peachpy": PEACHPY_VERSION}
        write_manifest(directory, {"made_by": made_by, "network": text.splitlines(), "kernels": kernels})
    except (OSError, ValueError, TypeError) as error:  # ValueError: a null character in the path
        reason = reason_of(error)
        said = f"the directory {shown_path(path)} cannot be written ({reason})"
        raise InvalidArguments(f"{said}: name another one") from None
    return kernels
