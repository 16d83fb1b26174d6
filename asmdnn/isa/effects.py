"""What an instruction does, as a formula on names: `acc[3][1] += row[1] * src pixel 3`.

The semantics are those of the Intel manual, volume 2; what is not in the tables reads `dst = mnemonic(sources)`.
"""

import re
from collections.abc import Sequence
from typing import Final

_FMA: Final = r"VF(N?)M(ADD|SUB)(132|213|231)[PS][SDH]"
_FMA_TERMS: Final = {"132": (0, 2, 1), "213": (1, 0, 2), "231": (1, 2, 0)}  # factor, factor, addend

_COPIES: Final = r"V?MOV([AU]P[SD]|DQ[AU](8|16|32|64)?|[DQ]|NTPS|NTPD|NTDQ|NTDQA|S[SD]|ZX|SXD?)?|KMOV[BWDQ]|V?LDDQU"
_BROADCASTS: Final = r"VP?BROADCAST\w+"
_INFIX: Final = {
    "ADD": "+", "SUB": "-", "MUL": "*", "DIV": "/", "AND": "&", "OR": "|", "XOR": "^", "ANDN": "&~",
}  # fmt: skip
_VECTOR_ARITHMETIC: Final = r"VP?(ADD|SUB|MUL|DIV|AND|OR|XOR)(P[SDH]|S[SDH]|[BWDQ])?"
_MIN_MAX: Final = r"VP?(MIN|MAX)(P[SDH]|S[SDHBWQ]|U[BWDQ])"
_IN_PLACE: Final = {"ADD": "+=", "SUB": "-=", "IMUL": "*=", "AND": "&=", "OR": "|=", "XOR": "^=", "SHL": "<<=",
                    "SHR": ">>=", "SAR": ">>="}  # fmt: skip
_STEPS: Final = {"INC": "+= 1", "DEC": "-= 1"}
_CONDITIONS: Final = {
    "Z": "if zero", "E": "if equal", "NZ": "unless zero", "NE": "unless equal", "A": "if above", "AE": "if not below",
    "B": "if below", "BE": "if not above", "C": "if carry", "NC": "unless carry", "G": "if greater",
    "GE": "if not less", "L": "if less", "LE": "if not greater", "S": "if negative", "NS": "unless negative", "MP": "",
}  # fmt: skip
_PREFETCHES: Final = {"PREFETCHT0": "L1", "PREFETCHT1": "L2", "PREFETCHT2": "L3", "PREFETCHNTA": "L1, not to stay"}
_ALONE: Final = {
    "VZEROUPPER": "clear the upper halves of all vector registers", "RET": "return to the caller",
    "SFENCE": "order streaming stores", "NOP": "fill up to an alignment", "TILERELEASE": "release the tiles",
}  # fmt: skip


def is_copy(mnemonic: str) -> bool:
    """Whether dst then holds what its one source holds, in one lane or in all."""
    return re.fullmatch(_COPIES, mnemonic) is not None or re.fullmatch(_BROADCASTS, mnemonic) is not None


def effect_of_jump(mnemonic: str, label: str) -> str:
    """Where a jump goes, and when."""
    return f"to {label} {_CONDITIONS.get(mnemonic[1:], 'on ' + mnemonic[1:])}".strip()


def effect_of(mnemonic: str, dst: str, sources: Sequence[str], before: str) -> str:
    """The formula; `dst` names the first operand as a place, `before` names the value that it holds until now."""
    if not sources:
        return _without_sources(mnemonic, dst)
    if mnemonic in _PREFETCHES:
        return f"prefetch {dst} into {_PREFETCHES[mnemonic]}"
    if mnemonic in ("TEST", "CMP"):
        return f"compare {before} with {'0' if mnemonic == 'TEST' and sources[0] == before else sources[0]}"
    if mnemonic == "XOR" and sources[0] == before:
        return f"{dst} = 0"
    if mnemonic in _IN_PLACE and len(sources) == 1:
        return f"{dst} {_IN_PLACE[mnemonic]} {sources[0]}"
    if mnemonic == "LEA":
        return f"{dst} = address of {sources[0]}"
    if is_copy(mnemonic):
        return f"{dst} = {sources[0]}" + ", in every lane" * (re.fullmatch(_BROADCASTS, mnemonic) is not None)
    if mnemonic.startswith("VMASKMOV"):
        return f"{dst} = {sources[1]} where {sources[0]}"
    return _arithmetic(mnemonic, dst, sources, before)


def _arithmetic(mnemonic: str, dst: str, sources: Sequence[str], before: str) -> str:
    found = re.fullmatch(_FMA, mnemonic)
    if found:
        return _multiply_add(found, dst, [before, *sources])
    found = re.fullmatch(_VECTOR_ARITHMETIC, mnemonic)
    if found and len(sources) == 2:
        if found[1] == "XOR" and sources[0] == sources[1]:
            return f"{dst} = 0"
        sign = _INFIX[found[1]]
        return f"{dst} {sign}= {sources[1]}" if sources[0] == dst else f"{dst} = {sources[0]} {sign} {sources[1]}"
    found = re.fullmatch(_MIN_MAX, mnemonic)
    if found:
        return f"{dst} = {found[1].lower()}({', '.join(sources)})"
    return f"{dst} = {mnemonic.lower()}({', '.join(sources)})"


def _multiply_add(found: "re.Match[str]", dst: str, operands: Sequence[str]) -> str:
    """dst = +- a * b +- c, the digits saying which operand is which."""
    negated, operation, digits = found[1], found[2], found[3]
    a, b, c = (operands[i] for i in _FMA_TERMS[digits])
    if digits == "231" and operation == "ADD":
        return f"{dst} {'-' if negated else '+'}= {a} * {b}"
    return f"{dst} = {'-' if negated else ''}{a} * {b} {'+' if operation == 'ADD' else '-'} {c}"


def _without_sources(mnemonic: str, dst: str) -> str:
    if mnemonic in _ALONE:
        return _ALONE[mnemonic]
    if mnemonic in _PREFETCHES:
        return f"prefetch {dst} into {_PREFETCHES[mnemonic]}"
    if mnemonic in _STEPS:
        return f"{dst} {_STEPS[mnemonic]}"
    verb = {"PUSH": "save", "POP": "restore", "CALL": "call"}.get(mnemonic, mnemonic.lower())
    return f"{verb} {dst}".strip()
