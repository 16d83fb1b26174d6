"""The codes of iced-x86 that are asked for: what user mode may execute in 64 bits, without sets that are left out."""

import re
from collections.abc import Collection
from functools import cache
from typing import Any, Final, NamedTuple

import iced_x86
from iced_x86 import CpuidFeature, Instruction, OpCodeInfo

CPUID: Final = {value: name for name, value in vars(CpuidFeature).items() if name[0].isupper()}
# x87, MMX, 3DNow!, MPX, XOP, FMA4; Knights Corner, Landing and Mill; what only VIA, Cyrix or a hypervisor's guest has.
LEFT_OUT: Final = re.compile(
    "FPU.*|MMX|D3NOW.*|MPX|XOP|FMA4|LWP|TBM|KNC|AVX512PF|AVX512ER|AVX512_4.*|PADLOCK.*|CYRIX.*|CENTAUR.*|SVM|VMX|SEV.*|TDX"
)
_MMX_OPERANDS: Final = {"MM", "MMM32", "MMM64"}


class AskedCode(NamedTuple):
    """name, text: iced-x86's.  title: the set, by the features that it needs."""

    value: int
    name: str
    text: str
    title: str


@cache
def asked_codes() -> dict[int, AskedCode]:
    """By value, in iced-x86's order."""
    found = {}
    codes: dict[str, Any] = {name: value for name, value in vars(iced_x86.Code).items() if isinstance(value, int)}
    for name, value in codes.items():
        if _is_asked(name, OpCodeInfo(value), features := _features(value)):
            found[value] = AskedCode(value, name, OpCodeInfo(value).instruction_string, _title(features))
    return found


def _features(value: Any) -> set[str]:
    instruction = Instruction()
    instruction.code = value
    return {CPUID[feature] for feature in instruction.cpuid_features()}


def _is_asked(name: str, info: OpCodeInfo, features: set[str]) -> bool:
    """Without what decodes only with an option: sets that were withdrawn."""
    is_user = info.is_instruction and info.mode64 and not info.must_be_cpl0
    is_real = not (info.is_reserved_nop or info.decoder_option or _MMX_OPERANDS & set(name.split("_")))
    return is_user and is_real and not any(map(LEFT_OUT.fullmatch, features))


def _title(features: set[str]) -> str:
    names = sorted(name for name in features if not re.match("INTEL|X64$|CMOV$|MULTIBYTENOP$", name))
    return " and ".join(names) or "general"


# Why a code has no way to be written, by its name: branches and the stack with 16 bits, which the texts of iced-x86 do
# not tell from others, and what is left when codes of one text count as one.
NARROW: Final = {
    "a branch with 16 bits, which CPUs disagree on": r".*_REL16|.*_REL8_16(_R?E?CX)?|(CALL|JMP)_RM16",
    "words of 16 bits on the stack": r"PUSH_IMM16|(PUSH|POP|RETN|RETF|ENTER|LEAVE)W(_.*)?",
}
REASONS: Final = {
    "far calls and jumps by memory": r"(CALL|JMP)_M16(16|32|64)",
    "addresses of 32 bits": r"(MOVDIR64B|ENQCMD)_R32_M512|.*_REL8_64_ECX|(MONITOR|MONITORX|CLZERO)D",
    "undefined, or without a meaning of its own": r"BSWAP_R16|UD0|PREFETCHRESERVED\d_M8",
    "REX.W or another opcode that changes nothing": (
        r"GETSECQ|(E?VEX_V)?P(INS|EXT)R[BW]_.*R64M(8|16).*|EVEX_VPEXTRW_R32_.*|EVEX_VMOVQ_XMMM64_XMM|NOP[WQ]"
    ),
}  # fmt: skip
TWIN: Final = "the same, written with other bytes"
MISSING: Final = "missing"


def reason(code: AskedCode, written: Collection[int]) -> str:
    """Why it is not written."""
    for text, pattern in NARROW.items():
        if re.fullmatch(pattern, code.name):
            return text
    if any(twin in written for twin in twins(code)):
        return TWIN
    return next((text for text, pattern in REASONS.items() if re.fullmatch(pattern, code.name)), MISSING)


@cache
def _by_text() -> dict[tuple[str, str], list[int]]:
    found: dict[tuple[str, str], list[int]] = {}
    for code in asked_codes().values():
        found.setdefault(_shape(code), []).append(code.value)
    return found


def twins(code: AskedCode) -> list[int]:
    """Codes that say the same with other bytes: iced-x86 has the same text for them."""
    return [value for value in _by_text()[_shape(code)] if value != code.value]


def _shape(code: AskedCode) -> tuple[str, str]:
    """Equal for codes of one text; VEX and EVEX are apart."""
    kind = code.name.split("_")[0] if code.name.startswith(("VEX_", "EVEX_")) else ""
    return kind, code.text.replace("SAL ", "SHL ")
