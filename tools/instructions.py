"""The page of instructions, docs/asm-instructions.md, from the assembler's tables and LLVM's models of CPUs.

python -m tools.instructions            # write the page
python -m tools.instructions --check    # say whether its list of instructions is that of the assembler

Latency, throughput and ports are what llvm-mca says of one form of each instruction with registers: a published model,
and nothing that was measured here.  Needs llvm-mca and llvm-mc.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from asmdnn import asm
from asmdnn.errors import AsmdnnError
from asmdnn.isa.encoder import encoder_of
from asmdnn.isa.memory_operand import Operand
from asmdnn.proof.decoder import features_of

PAGE: Final = Path(__file__).parents[1] / "docs" / "asm-instructions.md"
BEGIN: Final = "<!-- tools/instructions.py writes what follows -->"
CPUS: Final = {"Zen 3": "znver3", "Ice Lake": "icelake-server"}
_NEITHER: Final = "amx|avx_|kl|sha512|sm3|sm4|cmpccxadd|rao|uintr|wait|cldemote|prefetchi|enqcmd|movdir|serialize|cet"
LACKED: Final = {  # features by the beginnings of their names: LLVM's models have costs of what no such CPU has
    "znver3": re.compile(f"{_NEITHER}|avx512|gfni|rtm|hle|tsx|ptwrite|prefetchwt1|xop|fma4|tbm"),
    "icelake-server": re.compile(
        f"{_NEITHER}|avx512_(fp16|bf16|vp2)|avx512er|rtm|hle|tsx|sse4a|xop|fma4|tbm|clzero|rdpru|mcommit|monitorx|d3now"
    ),
}
NARROWED: Final = {"znver3": ("zmm", "ymm")}  # on a CPU without AVX-512
KINDS: Final = {
    "r8": "bl", "r16": "bx", "r32": "ebx", "r64": "rbx", "xmm": "xmm1", "ymm": "ymm1", "zmm": "zmm1", "k": "k1",
    "tmm": "tmm1", "al": "al", "ax": "ax", "eax": "eax", "rax": "rax", "cl": "cl", "imm4": "1", "imm8": "1",
    "imm16": "1", "imm32": "1", "imm64": "1", "1": "1", "3": "3",
}  # fmt: skip
NUMBERED: Final = {"xmm", "ymm", "zmm", "k", "tmm"}
SIZES: Final = {
    "8": "byte", "16": "word", "32": "dword", "64": "qword", "80": "tbyte", "128": "xmmword", "256": "ymmword",
    "512": "zmmword",
}  # fmt: skip
WIDTHS: Final = {"zmm": 3, "ymm": 2, "xmm": 1, "r64": 1}
NOT_MODELLED: Final = 100  # cycles, which LLVM says of what it has no number for


class Cost(NamedTuple):
    """latency: cycles; interval: cycles between two of many; ports: those that it may use, and how long each."""

    latency: int
    interval: float
    ports: str


class Instruction(NamedTuple):
    """name; forms: how many; form: the one that is looked up; text: of it, for LLVM; features: that it needs."""

    name: str
    forms: int
    form: str
    text: str
    features: str


def instructions() -> Iterator[Instruction]:
    """One for each mnemonic, with the form of the widest registers."""
    for name in asm.instructions():
        forms = asm.forms(name)
        texts = {form: text for form in forms if (text := in_words(name, form))}
        form = max(texts, key=lambda each: ("[" not in texts[each], widest(each), -forms.index(each)), default=forms[0])
        shown = re.sub(r"^\w+\(|\)\s*(\[.*\])?$", "", form).replace("{k}{z}", "").replace("<16", "").replace(">15", "")
        yield Instruction(name, len(forms), shown, texts.get(form, ""), ", ".join(sorted(features(name, form))))


def widest(form: str) -> int:
    return max((WIDTHS.get(word, 0) for word in re.findall(r"[a-z]+(?:64)?", form)), default=0)


def patterns(form: str) -> list[str]:
    """The operands of a form, each by its first alternative."""
    operands = re.search(r"\((.*)\)", form)
    given = filter(None, operands[1].split(", ") if operands else ())
    return [re.sub(r"\{k\}|\{z\}|<16|>15|\+1", "", each.split("/")[0]) for each in given]


def features(name: str, form: str) -> frozenset[str]:
    """What the decoder says of the form's bytes; nothing of the baseline, and of jumps."""
    operands: list[Operand] = []
    for position, pattern in enumerate(patterns(form)):
        if pattern in KINDS and pattern[0] not in "i13":
            kind = {"al": "r8", "cl": "r8", "ax": "r16", "eax": "r32", "rax": "r64"}.get(pattern, pattern)
            operands.append(asm.register(kind, 1 if pattern == "cl" else 0 if pattern[-1] in "lx" else position + 2))
        elif pattern[0] == "m" and (pattern[1:].isdecimal() or pattern == "m"):
            operands.append(asm.mem(asm.register("r64", 6)))
        else:
            operands.append(1)
    encoder = encoder_of(name)
    try:
        assert encoder is not None
        return features_of(bytes(encoder.choose(operands).encode(operands))) or frozenset()
    except AsmdnnError:
        return frozenset()


def in_words(name: str, form: str) -> str:
    """An instruction of the form as LLVM reads it; "" for one that has operands of other kinds."""
    mnemonic = name.lower().removesuffix("_vex").replace("_", " ")
    words = []
    for position, first in enumerate(patterns(form)):
        memory = re.fullmatch(r"m(\d+)?", first)
        if first in KINDS:
            kind = KINDS[first]
            words.append(f"{kind[:-1]}{position + 1}" if first in NUMBERED else kind)
        elif memory and (not memory[1] or memory[1] in SIZES):
            words.append(f"{SIZES[memory[1]]} ptr [rsi]" if memory[1] else "[rsi]")
        else:
            return ""
    return f"{mnemonic} {', '.join(words)}".strip()


def on(cpu: str, instruction: Instruction) -> str:
    """Its text on this CPU, with the vectors that it has; "" if it has none of it."""
    before, after = NARROWED.get(cpu, ("", ""))
    is_narrowed = (
        bool(before) and before in instruction.text and not re.search("avx512_|avx512er", instruction.features)
    )
    if not is_narrowed and LACKED[cpu].match(instruction.features) and not instruction.features.startswith("avx512f,"):
        return ""
    return instruction.text.replace(before, after) if is_narrowed else instruction.text


def costs(texts: Sequence[str], cpu: str) -> Mapping[str, Cost]:
    """By text; without those that LLVM does not know, or that its model of the CPU lacks."""
    left = list(dict.fromkeys(filter(None, texts)))
    command = ["llvm-mca", "-mtriple=x86_64", f"-mcpu={cpu}", "-x86-asm-syntax=intel", "-instruction-tables"]
    while left:
        done = subprocess.run(command, input="\n".join(left) + "\n", capture_output=True, text=True)
        wrong = {int(line) for line in re.findall(r"<stdin>:(\d+):\d+: error", done.stderr)}
        if not wrong and (unsupported := re.search(r"unsupported instruction.*?instruction: (.*)", done.stderr, re.S)):
            words = unsupported[1].split()
            wrong = {i for i, text in enumerate(left, 1) if text.split()[0] == words[0]}
        if not wrong:
            return parsed(done.stdout, left)
        left = [text for i, text in enumerate(left, 1) if i not in wrong]
    return {}


def parsed(report: str, texts: Sequence[str]) -> Mapping[str, Cost]:
    """What llvm-mca prints of each text, in their order."""
    info, _, rest = report.partition("\nResources:\n")
    lines = info.partition("Instructions:\n")[2].strip("\n").splitlines()
    names = re.findall(r"\[([\d.]+)\]\s+- (\S+)", rest)
    ports = rest.partition("Resource pressure by instruction:\n")[2].splitlines()[1:]
    found = {}
    for text, line, used in zip(texts, lines, ports, strict=False):
        _, latency, interval = line.split()[:3]
        shares = used.split()[: len(names)]
        busy = [f"{short(name)}" for (_, name), share in zip(names, shares, strict=True) if share != "-"]
        if int(latency) < NOT_MODELLED:
            found[text] = Cost(int(latency), float(interval), " ".join(dict.fromkeys(busy)))
    return found


def short(port: str) -> str:
    """ICXPort5 as p5, Zn3FPFMul01 as FPFMul01."""
    return re.sub(r"^(ICX|Zn3)(Port)?", lambda found: "p" if found[2] else "", port)


def page(found: Sequence[Instruction]) -> str:
    """The part of the page that is made."""
    by_cpu = {title: costs([on(cpu, each) for each in found], cpu) for title, cpu in CPUS.items()}
    head = " | ".join(f"{title}: latency, interval, units" for title in CPUS)
    lines = [f"{len(found)} mnemonics, {sum(each.forms for each in found)} forms.", ""]
    lines += [f"| instruction | forms | looked up | features | {head} |", "|---|---|---|---|" + "---|" * len(CPUS)]
    for each in found:
        cells = [by_cpu[title].get(on(cpu, each)) for title, cpu in CPUS.items()]
        told = " | ".join(f"{c.latency}, {c.interval:g}, {c.ports}" if c else "" for c in cells)
        lines.append(f"| {each.name} | {each.forms} | {each.form} | {each.features} | {told} |")
    return "\n".join(lines) + "\n"


def listed(text: str) -> list[str]:
    """The mnemonics of the page."""
    return re.findall(r"^\| ([A-Z][A-Z0-9_]*) \|", text.partition(BEGIN)[2], re.M)


def main(arguments: Sequence[str]) -> int:
    text = PAGE.read_text()
    if "--check" in arguments:
        differing = sorted(set(listed(text)) ^ set(asm.instructions()))
        print("The page has the assembler's instructions." if not differing else f"The page differs in {differing}.")
        return int(bool(differing))
    PAGE.write_text(f"{text.partition(BEGIN)[0]}{BEGIN}\n\n{page(list(instructions()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
