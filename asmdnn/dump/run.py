"""ASMDNN_DUMP: every kernel that a run generates or loads is also written to a directory."""

import json
import os
import warnings
from pathlib import Path
from typing import Final

from asmdnn.dump.files import raw_entry, write_kernel
from asmdnn.dump.kernel import listed
from asmdnn.errors import AsmdnnError
from asmdnn.files import opened, replace_file
from asmdnn.generators.contract import Spec

MANIFEST: Final = "manifest.jsonl"  # one object a line: processes may share the directory, and each appends
FORMATS: Final = ("bin", "s")


class RunDump:
    """Writes bytes, assembly and a line of the manifest for each kernel into `directory`, which is created.

    A directory that cannot be written costs one warning; the run goes on.  Any number of threads and processes may
    write the same kernel: they write the same bytes.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = Path(directory).absolute()
        self._usable = True

    def write(self, spec: Spec, code: bytes) -> None:
        """`code` is what the run executes.  Assembly is generated anew, and left out if that is not possible."""
        if not self._usable:
            return
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            line = json.dumps(self._write(spec, code)) + "\n"
            with opened(self._directory / MANIFEST, os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode=0o666) as manifest:
                os.write(manifest, line.encode())  # in one piece, so that lines of several processes do not mix
        except OSError as error:
            self._usable = False
            message = f"ASMDNN_DUMP={self._directory} cannot be written ({error.strerror}): kernels are not dumped"
            warnings.warn(message, RuntimeWarning, stacklevel=2)

    def _write(self, spec: Spec, code: bytes) -> dict[str, object]:
        try:
            kernel = listed(spec)
        except AsmdnnError as error:  # PeachPy is missing, and the code came from a cache
            return self._write_bytes(spec, code, str(error))
        if kernel.data != code:
            return self._write_bytes(spec, code, "the bytes in use are not those that the generators make")
        return write_kernel(self._directory, kernel, FORMATS)

    def _write_bytes(self, spec: Spec, code: bytes, why: str) -> dict[str, object]:
        file = f"{spec.name}.bin"
        replace_file(self._directory / file, code)
        return {**raw_entry(spec, code, file), "no_assembly": why}
