"""Bounds of straight-line code from llvm-mca, LLVM's machine code analyzer: an optional program."""

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any, Final

from asmdnn.analyze.model import Bound
from asmdnn.errors import InvalidArguments, resembling
from asmdnn.isa.assembler import Label, Line

PROGRAM: Final = "llvm-mca"
MISSING: Final = "llvm-mca is not installed: apt install llvm, or dnf install llvm"
ITERATIONS: Final = 100
TIMEOUT_S: Final = 60
_SIZES: Final = {
    "byte": "byte", "word": "word", "dword": "dword", "qword": "qword", "tword": "tbyte", "oword": "xmmword",
    "yword": "ymmword", "zword": "zmmword",
}  # fmt: skip
_SIZED: Final = re.compile(r"\b(" + "|".join(_SIZES) + r") (?=\[)")
# For levels that this machine lacks: a CPU that has the level and whose model LLVM knows.
_TYPICAL: Final = {
    "avx2": "haswell", "avx2_vnni": "alderlake", "avx512_core": "skylake-avx512", "avx512_core_vnni": "cascadelake",
    "avx512_core_bf16": "cooperlake", "avx512_core_fp16": "sapphirerapids", "avx512_core_amx": "sapphirerapids",
}  # fmt: skip


def is_installed() -> bool:
    return shutil.which(PROGRAM) is not None


def model_for(isa: str, executable: bool) -> str:
    """LLVM's name of this machine's CPU if it has the level, else of a typical CPU that has it."""
    if executable:
        output = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, timeout=TIMEOUT_S).stdout
        found = re.search(r"Host CPU: (\S+)", output)
        if found and found[1] not in ("generic", "x86-64"):
            return found[1]
    return _TYPICAL[isa]


def modelled(bodies: Sequence[Sequence[Line]], isa: str, executable: bool, cpu: str) -> tuple[str, list[Bound | None]]:
    """The model and its bounds: the one that was asked for, that of this CPU, or a typical one where LLVM's lacks the
    level: one that is older than the CPU takes it for one before it.  Raises InvalidArguments as `bounds`."""
    model, typical = cpu or model_for(isa, executable), model_for(isa, False)
    try:
        return model, bounds(bodies, model)
    except InvalidArguments:
        if cpu or model == typical:
            raise
        return typical, bounds(bodies, typical)


def bounds(bodies: Sequence[Sequence[Line]], cpu: str) -> list[Bound | None]:
    """A bound for each body; None for an empty one.  Raises InvalidArguments for a CPU that LLVM does not know."""
    texts = ["\n".join(map(in_llvm_words, body)) for body in bodies]
    numbers = {text: i for i, text in enumerate(dict.fromkeys(text for text in texts if text))}
    if not numbers:
        return [None] * len(texts)
    source = "\n".join(f"# LLVM-MCA-BEGIN r{i}\n{text}\n# LLVM-MCA-END" for text, i in numbers.items())
    command = [
        PROGRAM, "-mtriple=x86_64", f"-mcpu={cpu}", "-x86-asm-syntax=intel", f"-iterations={ITERATIONS}", "-json",
    ]  # fmt: skip
    done = subprocess.run(command, input=source + "\n", capture_output=True, text=True, timeout=TIMEOUT_S)
    if "is not a recognized processor" in done.stderr or "unable to find" in done.stderr:
        near = resembling(cpu, known_cpus()) or ": see llvm-mca -mtriple=x86_64 -mcpu=help"
        raise InvalidArguments(f"--mcpu={cpu} is no CPU that llvm-mca knows{near}")
    if done.returncode or "error:" in done.stderr:
        lines = [line for line in done.stderr.splitlines() if "error" in line]
        raise InvalidArguments(f"llvm-mca -mcpu={cpu} failed: {(lines or ['no message'])[0]}; try another --mcpu=")
    report = json.loads(done.stdout)
    found = {region["Name"]: _bound(region, report["TargetInfo"]["Resources"]) for region in report["CodeRegions"]}
    return [found[f"r{numbers[text]}"] if text else None for text in texts]


def known_cpus() -> list[str]:
    """The CPUs in llvm-mca's own list, none if it cannot be read."""
    command = [PROGRAM, "-mtriple=x86_64", "-mcpu=help"]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=TIMEOUT_S)
    cpus = (done.stderr + done.stdout).partition("Available features")[0]
    return re.findall(r"^\s+([\w.-]+)\s+- Select the", cpus, re.MULTILINE)


def in_llvm_words(line: Line) -> str:
    """An instruction in the Intel syntax that LLVM reads."""
    operands = line.detail.operands
    if operands and isinstance(operands[0], Label):
        return f"{line.detail.mnemonic.lower()} {re.sub(r'[^A-Za-z0-9_]', '_', operands[0].name)}"
    text = _SIZED.sub(lambda found: f"{_SIZES[found[1]]} ptr ", line.text)
    return re.sub(r"(\w)\{k", r"\1 {k", text)


def _clean(resource: str) -> str:
    """LLVM 14 numbers the units of a resource by a character, not a digit: `Zn3FPP45.\\x00`."""
    return "".join(c if c.isprintable() else str(ord(c)) for c in resource)


def _bound(region: dict[str, Any], resources: Sequence[str]) -> Bound:
    """Resource pressures have one more row than instructions: the sum."""
    summary = region["SummaryView"]
    last = len(region["Instructions"])
    pressure = {
        _clean(resources[entry["ResourceIndex"]]): entry["ResourceUsage"]
        for entry in region["ResourcePressureView"]["ResourcePressureInfo"]
        if entry["InstructionIndex"] == last
    }
    pressure["issue width"] = summary["TotaluOps"] / summary["Iterations"] / summary["DispatchWidth"]
    limit = max(pressure, key=lambda name: pressure[name])
    return Bound(round(pressure[limit], 2), limit, round(summary["TotalCycles"] / summary["Iterations"], 2))
