"""Rule "listing": the decoder finds the instructions that the generator listed, each with its operands."""

import re
from functools import lru_cache
from typing import Final

from asmdnn.proof.facts import Fact
from asmdnn.proof.kernel import Kernel, PlacedInstruction

RULE: Final = "listing"

_SIZES: Final = re.compile(r"\b(?:byte|word|dword|qword|tword|oword|yword|zword) (?=\[)")
_NUMBER: Final = re.compile(r"-?\d+")
_IN_POOL: Final = re.compile(r"\[rip([+-]\d+)?\]")
_CONDITIONS: Final = {
    "nae": "b", "c": "b", "nb": "ae", "nc": "ae", "z": "e", "nz": "ne", "na": "be", "nbe": "a",
    "nge": "l", "nl": "ge", "ng": "le", "nle": "g", "pe": "p", "po": "np",
}  # fmt: skip


def check(kernel: Kernel) -> None:
    """Raise BrokenRule where offsets, lengths, mnemonics or operands differ."""
    assert kernel.code.listing is not None
    here = 0
    for line in kernel.code.listing:
        step = kernel.steps.get(line.offset)
        if line.offset != here or step is None or step.fact.length != len(line.data):
            found = step.fact.text if step else "no instruction"
            raise kernel.broken(RULE, f"the bytes at {line.offset:#x} decode to {found}, not to what is listed", line)
        if kernel.code.data[line.offset : step.end] != line.data:
            raise kernel.broken(RULE, f"the code has other bytes than the listing: {step.fact.text}", line)
        decoded, wanted = decoded_text(kernel, step), listed_text(line.text)
        if decoded != wanted and not same_number(decoded, wanted, step.fact) and not same_exchange(decoded, wanted):
            raise kernel.broken(RULE, f"it decodes to '{decoded}', listed is '{wanted}'", line)
        here = step.end


def same_number(decoded: str, wanted: str, fact: Fact) -> bool:
    """Whether all that differs is the sign of an immediate: -8 is listed, the decoder shows the unsigned number."""
    (head, _, last), (wanted_head, _, wanted_last) = decoded.rpartition(", "), wanted.rpartition(", ")
    is_number = bool(_NUMBER.fullmatch(last) and _NUMBER.fullmatch(wanted_last))
    return is_number and head == wanted_head and (int(last) - int(wanted_last)) % (1 << fact.operands[0].bits) == 0


def same_exchange(decoded: str, wanted: str) -> bool:
    """Whether the two registers of XCHG are the other way round, as which it does the same."""
    (name, _, operands), (_, _, listed) = decoded.partition(" "), wanted.partition(" ")
    return name == "xchg" and wanted.startswith("xchg ") and operands.split(", ")[::-1] == listed.split(", ")


def decoded_text(kernel: Kernel, step: PlacedInstruction) -> str:
    """The decoder's text in the notation of listings: jump targets from the start, constants from the pool's start."""
    fact = step.fact
    if fact.flow in ("jump", "branch"):
        return f"{canonical(fact.mnemonic)} {step.target:#x}"
    if "nop" in fact.mnemonic or fact.text == "xchg ax, ax":
        return "nop"  # the long ones have operands that mean nothing
    for access in fact.accesses:
        if access.in_code:
            at = step.offset + access.displacement - kernel.pool_start
            return _IN_POOL.sub(f"[rip{at:+d}]" if at else "[rip]", fact.text)
    return fact.text


@lru_cache(maxsize=1 << 16)
def listed_text(text: str) -> str:
    """Without the size of memory operands and the names of labels."""
    text = _SIZES.sub("", text).partition(" <")[0]
    mnemonic, blank, operands = text.partition(" ")
    return canonical(mnemonic) + blank + operands


def canonical(mnemonic: str) -> str:
    """One name for each group of synonymous conditions: jz and je, cmovnz and cmovne; and sal is shl."""
    for family in ("j", "cmov", "set"):
        if mnemonic.startswith(family):
            condition = mnemonic.removeprefix(family)
            return family + _CONDITIONS.get(condition, condition)
    return "shl" if mnemonic == "sal" else mnemonic
