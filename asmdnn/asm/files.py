"""A function as files for C programs: object, assembly, header, bytes."""

import re
from collections.abc import Sequence
from pathlib import Path

from asmdnn.asm.levels import IMPLIED, FunctionLevel
from asmdnn.asm.machine import MachineCode
from asmdnn.asm.prototype import Prototype
from asmdnn.dump.files import FORMATS
from asmdnn.dump.kernel import DumpedKernel
from asmdnn.errors import InvalidArguments
from asmdnn.files import replace_file
from asmdnn.generators.contract import NOTHING, Footprint
from asmdnn.isa.assembler import Assembler
from asmdnn.records import dataclass


@dataclass(frozen=True)
class _Exported:
    """What the writers of dumps ask of a spec."""

    name: str
    isa: str
    prototype: str

    @property
    def frame(self) -> tuple[str, ...]:
        return ()

    def footprint(self) -> Footprint:
        return NOTHING

    def generate(self, asm: Assembler) -> None:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.prototype


def save(prototype: Prototype, machine: MachineCode, doc: str, paths: Sequence[str | Path]) -> None:
    """Writes each path in the format that its suffix says."""
    listing = machine.code.listing
    assert listing is not None
    spec = _Exported(prototype.name, machine.level.base, str(prototype))
    dumped = DumpedKernel(spec, machine.code.data, listing, machine.code.tables)
    for path in map(Path, paths):
        suffix = path.suffix.removeprefix(".")
        if suffix not in FORMATS:
            known = ", ".join(f".{name}" for name in FORMATS)
            raise InvalidArguments(f"save({str(path)!r}) has another suffix than {known}.")
        data = header(machine.level, prototype, doc).encode() if suffix == "h" else FORMATS[suffix](dumped)
        replace_file(path, data)


def header(level: FunctionLevel, prototype: Prototype, doc: str) -> str:
    """C99 and C++."""
    guard = f"ASM_{prototype.name.upper()}_H"
    needs = ", ".join(sorted(level.isa.features - IMPLIED))
    text = re.sub(r"/\*|\*/", "* *", doc.strip())
    lines = "\n".join(f" * {line}".rstrip() for line in [*text.splitlines(), f"Needs {needs}.  System V ABI."] if line)
    return f"""/*
{lines}
 */
#ifndef {guard}
#define {guard}

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

{prototype};

#ifdef __cplusplus
}}
#endif

#endif
"""
