"""A kernel as a file for NASM, which makes the same bytes of it.  NASM has no directives for unwinding.

What NASM would encode otherwise is written as bytes, with the instruction beside it.  A test assembles random operands
of every instruction form.  Source: the NASM manual, chapters 2 and 3.
"""

import re
from collections.abc import Iterator
from typing import Final

from asmdnn.dump.gas import COMMENT_COLUMN
from asmdnn.dump.kernel import JUMP, DumpedKernel
from asmdnn.dump.spelling import VNNI, has_useless_length
from asmdnn.isa.assembler import Line

BYTES_PER_LINE: Final = 16
_POOL: Final = re.compile(r"\[rip(?:\+(\d+))?\]")
_ONLY_EVEX: Final = re.compile(r"zmm|[xy]mm(?:1[6-9]|2\d|3[01])|\{(?:k\d|1to\d+|sae|r[nduz]-sae)\}")
_NO_BASE: Final = re.compile(r"\[(r\w+\*)")  # which NASM would split into base and index
_AS_BYTES: Final = re.compile(  # what NASM 2.16 does not know in this form, or encodes otherwise
    r"\[r12\*1|\bmm\d|^(cmps[sd]|vcmpss|pblendvb|palignr|pshuf\w+|vdpbf16ps) .*\["
    r"|^(pblendvb|rdpru|vpermil2p[sd]|nop) |^vf\w*(add|sub)[ps][sd] |^vcvtu?si2s.*sae\}|^vpopcnt[dq] .*\{1to"
)
_STORES: Final = (0x11, 0x29, 0x7F, 0xD6)  # opcodes of moves between registers that have the shorter prefix
_UNSIZED: Final = re.compile(r"^(clflush\w*|clwb|prefetchw?) byte ")
_WIDE: Final = re.compile(r"r(\d+|[abcd]x|[sd]i|[sb]p), -?\d+$")  # an immediate to 64 bits
_MOVABS_BYTES: Final = 10
_CONFUSED: Final = "vcvtneps2bf16"  # NASM 2.16 takes zmm registers neither with {evex} nor without
_EVEX, _VEX3, _VEX2, _XOP = 0x62, 0xC4, 0xC5, 0x8F


def assembly_of_nasm(kernel: DumpedKernel) -> str:
    """The file's text.  Comments say what an instruction is for, and which line of the generator emitted it."""
    symbol = kernel.symbol
    lines = [
        f"; {kernel.name}",
        f"; {kernel.spec!r}",
        "    bits 64",
        "    default rel",
        "    section .text align=64",
        f"    global {symbol}:function",
        f"{symbol}:",
        *_instructions(kernel),
        *_constants(kernel),
        "    section .note.GNU-stack noalloc noexec nowrite progbits",
    ]
    return "\n".join(lines) + "\n"


def _instructions(kernel: DumpedKernel) -> Iterator[str]:
    targets = (match for line in kernel.listing if (match := JUMP.fullmatch(line.text)))
    labels = sorted({_label(*match.groups()[1:]) for match in targets})
    for line in kernel.listing:
        yield from (f"{label}:" for offset, label in labels if offset == line.offset)
        comment = f"; {line.role}" + (f"  ({line.source})" if line.source else "")
        yield f"    {_instruction(line)}".ljust(COMMENT_COLUMN - 1) + f" {comment}".rstrip()


def _instruction(line: Line) -> str:
    if match := JUMP.fullmatch(line.text):
        mnemonic, *target = match.groups()
        return nasm_jump(mnemonic, _label(*target)[1], line.data)
    return nasm_spelling(line.text, line.data) or f"db {', '.join(map(hex, line.data))} ; {line.text}"


def _label(offset: str, name: str) -> tuple[int, str]:
    return int(offset, 16), f".{re.sub(r'[^0-9A-Za-z_]', '_', name)}_{offset}"


def nasm_jump(mnemonic: str, label: str, data: bytes) -> str:
    """A jump to a label, as short or long as it is."""
    loops = mnemonic.startswith("loop") or mnemonic in ("jrcxz", "jecxz")  # which have one form
    return f"{mnemonic} {label}" if loops else f"{mnemonic} {'near' if len(data) > 2 else 'short'} {label}"


def nasm_spelling(text: str, data: bytes) -> str | None:
    """`text`, an instruction of a listing other than a jump to a label, for NASM; None: give its bytes."""
    name, _, rest = text.partition(" ")
    is_avx_vnni = data[0] == _VEX3 and name.startswith(VNNI)
    is_stored = data[0] == _VEX2 and name.startswith("vmov") and "[" not in rest and data[2] in _STORES
    if (
        _AS_BYTES.search(text)
        or is_stored
        or is_avx_vnni
        or data[0] == _XOP
        or (name == _CONFUSED and data[0] == _EVEX)
        or (name == "nop" and len(data) > 1)
        or has_useless_length(rest, data)
        or "[rip-" in rest
    ):
        return None
    if name == "xchg" and "[" not in rest:
        rest = ", ".join(reversed(rest.split(", ")))  # NASM has the first register in ModRM.reg
    if name == "mov" and _WIDE.match(rest):  # NASM would take a shorter form
        rest = rest.replace(", ", ", strict qword " if len(data) == _MOVABS_BYTES else ", strict dword ")
    text = _UNSIZED.sub(r"\1 ", f"{name} {rest}".rstrip())
    text = _POOL.sub(lambda found: f"[rel .constants{'+' + found[1] if found[1] else ''}]", text)
    prefix = "{evex} " if data[0] == _EVEX and not _ONLY_EVEX.search(rest) else ""
    return prefix + _NO_BASE.sub(r"[nosplit \1", text)


def _constants(kernel: DumpedKernel) -> Iterator[str]:
    pool = kernel.data[kernel.constants_offset :]
    if pool:
        yield "    align 64, db 0xcc"
        yield ".constants:"
    for start in range(0, len(pool), BYTES_PER_LINE):
        yield f"    db {', '.join(f'{byte:#04x}' for byte in pool[start : start + BYTES_PER_LINE])}"
