"""Writing kernels to a directory, one file a kernel and format, and the manifest that lists them."""

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from asmdnn.dump.elf import relocatable
from asmdnn.dump.gas import assembly
from asmdnn.dump.header import header
from asmdnn.dump.kernel import DumpedKernel
from asmdnn.dump.nasm import assembly_of_nasm
from asmdnn.files import replace_file
from asmdnn.generators.contract import Spec

FORMATS: Final[Mapping[str, Callable[[DumpedKernel], bytes]]] = {
    "bin": lambda kernel: kernel.data,
    "s": lambda kernel: assembly(kernel).encode(),
    "nasm": lambda kernel: assembly_of_nasm(kernel).encode(),
    "o": relocatable,
    "h": lambda kernel: header(kernel).encode(),
}
MANIFEST: Final = "manifest.json"
_RAW_OBJDUMP: Final = "objdump -D -b binary -m i386:x86-64 -M intel"


def write_kernel(directory: Path, kernel: DumpedKernel, formats: Sequence[str]) -> dict[str, Any]:
    """Write NAME.bin and the like, and return the kernel's entry of a manifest.  Raises OSError."""
    files = {name: f"{kernel.name}.{name}" for name in formats}
    for name, file in files.items():
        replace_file(directory / file, FORMATS[name](kernel))
    return entry(kernel, files)


def entry(kernel: DumpedKernel, files: Mapping[str, str]) -> dict[str, Any]:
    """What a manifest says of a kernel.  `sha256` is that of the bytes, as in the raw file."""
    return {
        "name": kernel.name,
        "symbol": kernel.symbol,
        "family": kernel.family,
        "isa": kernel.isa,
        "cpu_features": list(kernel.features),
        "size_bytes": len(kernel.data),
        "code_bytes": kernel.code_bytes,
        "sha256": sha256(kernel.data).hexdigest(),
        "arguments": list(kernel.arguments),
        "spec": repr(kernel.spec),
        "files": list(files.values()),
        "disassemble": _objdump(kernel, files),
    }


def raw_entry(spec: Spec, code: bytes, file: str) -> dict[str, Any]:
    """What a manifest can say of bytes whose listing is not at hand."""
    return {
        "name": spec.name,
        "size_bytes": len(code),
        "sha256": sha256(code).hexdigest(),
        "spec": repr(spec),
        "files": [file],
        "disassemble": f"{_RAW_OBJDUMP} {file}",
    }


def _objdump(kernel: DumpedKernel, files: Mapping[str, str]) -> str:
    """The command that disassembles the raw file, or else the object; constants are left out."""
    if "bin" in files:
        return f"{_RAW_OBJDUMP} --stop-address={kernel.code_bytes:#x} {files['bin']}"
    return f"objdump -d -M intel {files['o']}" if "o" in files else ""


def write_manifest(directory: Path, content: Mapping[str, Any]) -> None:
    """Raises OSError."""
    replace_file(directory / MANIFEST, (json.dumps(content, indent=1) + "\n").encode())
