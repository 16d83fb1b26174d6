"""Who else knows an instruction: a decoder reads its bytes, assemblers write their own from its text."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from iced_x86 import Decoder, Instruction

from asmdnn.dump.spelling import jump, spelling
from asmdnn.emulator.cpu import Cpu
from asmdnn.emulator.machine import MNEMONICS
from asmdnn.emulator.operands import Operands, Unsupported
from asmdnn.emulator.semantics import SEMANTICS
from asmdnn.isa.encoder import text_of
from tests.isa.decoding import canonical, decode, disagreement, intel_text
from tests.isa.extension_calls import STRING
from tools.encodings.calls import Call

_SLOT: Final = 16  # no instruction is longer
_GAP: Final = 0xCC
_ERROR: Final = re.compile(r"^[^:\n]*:(\d+):(?:\d+:)? *[Ee]rror", re.M)
_HEAD: Final = [".intel_syntax noprefix", ".text"]


def read_wrongly(call: Call) -> str | None:
    """What iced-x86 reads that was not asked for; None if it reads just this."""
    instruction = decode(call.data)
    if call.distance is not None:
        target = (call.distance + len(call.data)) % (1 << 64)
        is_it = canonical(MNEMONICS[instruction.mnemonic].upper()) == canonical(call.mnemonic)
        return None if is_it and instruction.near_branch_target == target else "target"
    if STRING.fullmatch(call.mnemonic) and not call.operands:  # MOVSD and CMPSD are also SSE2's
        return None if intel_text(instruction) == text_of(call.mnemonic, ()) else "string"
    return disagreement(call.mnemonic, call.operands, call.data)


def is_emulated(data: bytes) -> bool:
    """Whether the emulator knows what this instruction does."""
    instruction = decode(data)
    name = MNEMONICS.get(instruction.mnemonic, "")
    try:
        return name in SEMANTICS and bool(SEMANTICS[name](Operands(_CPU, instruction, name, len(data))))
    except Unsupported:
        return False


_CPU: Final = Cpu()
COMMANDS: Final = {
    "GNU as": ["as", "--64", "-o"],
    "llvm-mc": ["llvm-mc", "-triple=x86_64", "-x86-asm-syntax=intel", "-filetype=obj", "-mattr=+all", "-o"],
}


def words(call: Call, judge: str) -> str | None:
    """For an assembler; None where there are none that ask for these bytes."""
    if call.distance is not None:
        return "1: " + jump(call.mnemonic.lower(), f"1b{call.distance + len(call.data):+d}", call.data)
    return spelling(text_of(call.mnemonic, call.operands), call.data)


def versions() -> dict[str, str]:
    """The first line with a version that each assembler prints, of those that are installed."""
    found = {}
    for judge, command in COMMANDS.items():
        if shutil.which(command[0]):
            told = subprocess.run([command[0], "--version"], capture_output=True, text=True, check=True).stdout
            found[judge] = next(line.strip() for line in told.splitlines() if re.search(r"\d\.\d", line))
    return found


def written_by(judge: str, calls: Sequence[Call]) -> list[bytes | None]:
    """The bytes that the assembler makes of each; None of what it does not know."""
    texts = {i: text for i, call in enumerate(calls) if (text := words(call, judge))}
    with tempfile.TemporaryDirectory() as folder:
        while True:
            order = list(texts)
            lines = [f"{texts[i]}\n.p2align 4, {_GAP:#x}" for i in order]
            (Path(folder) / "all.s").write_text("\n".join([*_HEAD, *lines, ""]))
            command = [*COMMANDS[judge], "all.o", "all.s"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            wrong = {order[(int(line) - len(_HEAD) - 1) // 2] for line in _ERROR.findall(done.stderr)}
            if done.returncode == 0:
                break
            assert wrong, done.stderr[:1000]
            texts = {i: text for i, text in texts.items() if i not in wrong}
        subprocess.run(["objcopy", "-O", "binary", "-j", ".text", "all.o", "all.bin"], cwd=folder, check=True)
        code = (Path(folder) / "all.bin").read_bytes()
    made: list[bytes | None] = [None] * len(calls)
    for place, i in enumerate(order):
        slot = code[place * _SLOT : (place + 1) * _SLOT]
        made[i] = slot[: Decoder(64, slot).decode().len]
    return made


def same(call: Call, made: bytes) -> bool:
    """Whether an assembler's bytes are these, or say the same."""
    return made == call.data or _meaning(decode(made)) == _meaning(decode(call.data))


def _meaning(instruction: Instruction) -> tuple[str, int, int, bool]:
    text = intel_text(instruction)
    if text.startswith("xchg "):
        text = " ".join(sorted(text.removeprefix("xchg ").split(", ")))
    if text.lstrip("v").startswith(("pextr", "extractps", "movmsk", "pmovmsk")):
        text = re.sub(r" r(\w+?)d?,", r" e\1,", text.replace(" e", " r"), count=1)  # either clears the upper half
    return text, instruction.memory_displ_size, instruction.op_mask, instruction.zeroing_masking
