"""An instruction of a listing in the words of the GNU assembler, such that it encodes the same bytes.

The assembler chooses among the encodings of an instruction, and not always the one that the bytes have.  What it would
choose follows from the operands, so the rules below, derived from the bytes, say when it must be told: `{evex}`,
`{vex}`, `{vex3}`, `{load}` and `{disp32}` are its pseudo-prefixes.  A test reassembles random operands of every
instruction form, and every kernel of the corpus.  Source: the manual of GNU as, "80386 Dependent Features".
"""

import re
from typing import Final

_SIZES: Final = {
    "byte": "byte ptr", "word": "word ptr", "dword": "dword ptr", "qword": "qword ptr", "tword": "tbyte ptr",
    "oword": "xmmword ptr", "yword": "ymmword ptr", "zword": "zmmword ptr",
}  # fmt: skip
_SIZED: Final = re.compile(rf"^({'|'.join(_SIZES)}) (?=\[|[fg]s:)")
_SEGMENT: Final = re.compile(r"\[([fg]s):")
_POOL: Final = re.compile(r"\[rip(?:\+(\d+))?\]")
_IN_CODE: Final = re.compile(r"\[rip-")  # the distance of a label, for which the listing has no name to assemble
_ONLY_EVEX: Final = re.compile(r"zmm|[xy]mm(?:1[6-9]|2\d|3[01])|\{(?:k\d|1to\d+|sae|r[nduz]-sae)\}")
_NOPS: Final = {
    "90": "nop",
    "6690": "xchg ax, ax",
    "0f1f00": "nop dword ptr [rax]",
    "0f1f4000": "{disp8} nop dword ptr [rax]",
    "0f1f440000": "{disp8} nop dword ptr [rax+rax]",
    "660f1f440000": "{disp8} nop word ptr [rax+rax]",
    "0f1f8000000000": "{disp32} nop dword ptr [rax]",
    "0f1f840000000000": "{disp32} nop dword ptr [rax+rax]",
    "660f1f840000000000": "{disp32} nop word ptr [rax+rax]",
}
_UNSIZED: Final = ("tilecfg", "256kl", "enqcmd", "movdir64b")
_NAMES: Final = {"iret": "iretw", "pushf": "pushfw", "popf": "popfw"}  # gas takes the plain names for other sizes
_SIZE_SAYS_NOTHING: Final = re.compile(
    r"(verr|verw|sldt|str|smsw|mov [c-gs]s,) |mov \w+, [c-gs]s$|xchg (\w+), \2$"
)  # and gas leaves its prefix out
_SEGMENT_PREFIXES: Final = (0x64, 0x65)
_EVEX: Final = 0x62
_VEX3: Final = 0xC4
_REGISTER_OPERANDS: Final = 0xC0  # ModRM bytes from here on
VNNI: Final = ("vpdpbusd", "vpdpwssd", "vpmadd52")
CONSTANTS: Final = ".Lconstants"  # the label of the pool


def spelling(text: str, data: bytes) -> str | None:
    """`text`, an instruction of a listing other than a jump to a label, for gas; None if it has no words for `data`."""
    name, _, rest = text.partition(" ")
    if name == "lock":
        name, _, rest = rest.partition(" ")
        name = f"lock {name}"
    if name == "nop":
        return _NOPS.get(data.hex())
    if has_useless_length(rest, data) or _IN_CODE.search(rest) or (_SIZE_SAYS_NOTHING.match(text) and _has_size(data)):
        return None
    if data[0] in _SEGMENT_PREFIXES:
        data = data[1:]
    operands = rest.split(", ") if rest else []
    words = [_operand(operand) for operand in operands]
    if name.endswith(_UNSIZED):
        words = [word.removeprefix("zmmword ptr ") for word in words]  # gas knows no size of 512 bits there
    if name == "movabs":
        words = [f"[{int(word) % (1 << 64):#x}]" if word.lstrip("-").isdecimal() else word for word in words]
    name = _NAMES.get(name, name)
    return f"{_prefix(name, operands, data)}{name} {', '.join(words)}".rstrip()


def jump(mnemonic: str, label: str, data: bytes) -> str:
    """A jump to a label.  gas takes the short form when it reaches."""
    displacement = int.from_bytes(data[-4:], "little", signed=True) if len(data) > 4 else 0
    near_by_choice = len(data) > 4 and -128 <= displacement <= 127
    return f"{'{disp32} ' if near_by_choice else ''}{mnemonic} {label}"


def _operand(operand: str) -> str:
    if "[" not in operand:
        return operand
    operand = _SEGMENT.sub(r"\1:[", operand)
    operand = _SIZED.sub(lambda match: f"{_SIZES[match[1]]} ", operand)
    return _POOL.sub(lambda match: f"[rip+{CONSTANTS}{'+' + match[1] if match[1] else ''}]", operand)


def _has_size(data: bytes) -> bool:
    """Whether it begins with the prefix of 16 bits or with REX.W."""
    return data[0] == 0x66 or data[0] & 0xF8 == 0x48


def has_useless_length(operands: str, data: bytes) -> bool:
    """Whether EVEX.L'L is set in an instruction on scalars, which ignores it; gas always writes 0."""
    return data[0] == _EVEX and data[3] & 0x70 in (0x20, 0x40) and not re.search("[yz](mm|word)", operands)


def _prefix(name: str, operands: list[str], data: bytes) -> str:
    """What tells gas to take the encoding that `data` has, where it would take another one."""
    if name == "vpextrw" and data[0] == _EVEX and "[" not in operands[0]:
        return "{store} "
    if data[0] == _EVEX and not any(map(_ONLY_EVEX.search, operands)):
        return "{evex} "
    if data[0] == _VEX3 and name.startswith((*VNNI, "vcvtneps2bf16")):
        return "{vex} "
    if data[0] == _VEX3 and name.startswith("vmov") and data[-1] >= _REGISTER_OPERANDS:
        return "{vex3} "  # else gas exchanges the operands, and with them the opcode, to save a byte
    return ""
