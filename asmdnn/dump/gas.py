"""A kernel as a file for the GNU assembler, which makes the same bytes of it."""

import re
from collections.abc import Iterator

from asmdnn.dump.kernel import JUMP, DumpedKernel
from asmdnn.dump.spelling import CONSTANTS, jump, spelling
from asmdnn.dump.unwind import NUMBERS, Change, changes
from asmdnn.isa.assembler import Line

COMMENT_COLUMN = 56
BYTES_PER_LINE = 16


def assembly(kernel: DumpedKernel) -> str:
    """The file's text.  Comments say what an instruction is for, and which line of the generator emitted it."""
    symbol = kernel.symbol
    lines = [
        f"# {kernel.name}",
        f"# {kernel.spec!r}",
        "    .intel_syntax noprefix",
        "    .text",
        "    .p2align 6",
        f"    .globl {symbol}",
        f"    .type {symbol}, @function",
        f"{symbol}:",
        "    .cfi_startproc",
        *_instructions(kernel),
        "    .cfi_endproc",
        f"    .size {symbol}, . - {symbol}",
        *_constants(kernel),
        '    .section .note.GNU-stack, "", @progbits',
    ]
    return "\n".join(lines) + "\n"


def _instructions(kernel: DumpedKernel) -> Iterator[str]:
    jumps = (match for line in kernel.listing if (match := JUMP.fullmatch(line.text)))
    labels = sorted({_label(*match.groups()[1:]) for match in jumps})  # several may be at one place
    frames = {change.offset: change for change in changes(kernel.listing, kernel.tables)}
    for line in kernel.listing:
        if line.offset in frames:
            yield from _frame_directives(frames[line.offset])
        yield from (f"{label}:" for offset, label in labels if offset == line.offset)
        comment = f"# {line.role}" + (f"  ({line.source})" if line.source else "")
        yield f"    {_instruction(line)}".ljust(COMMENT_COLUMN - 1) + f" {comment}".rstrip()


def _instruction(line: Line) -> str:
    if match := JUMP.fullmatch(line.text):
        mnemonic, *target = match.groups()
        return jump(mnemonic, _label(*target)[1], line.data)
    return spelling(line.text, line.data) or f".byte {', '.join(map(hex, line.data))} # {line.text};"


def _label(offset: str, name: str) -> tuple[int, str]:
    """Where a jump leads, and a label for it: names may repeat in a kernel, and may hold blanks."""
    return int(offset, 16), f".L{re.sub(r'[^0-9A-Za-z_]', '_', name)}_{offset}"


def _frame_directives(change: Change) -> Iterator[str]:
    if change.cfa:
        yield f"    .cfi_def_cfa_offset {change.cfa}"
    for name, place in change.saved:
        yield f"    .cfi_offset {NUMBERS[name]}, {-place}".ljust(COMMENT_COLUMN) + f"# {name}"
    for name in change.restored:
        yield f"    .cfi_restore {NUMBERS[name]}".ljust(COMMENT_COLUMN) + f"# {name}"


def _constants(kernel: DumpedKernel) -> Iterator[str]:
    pool = kernel.data[kernel.constants_offset :]
    if pool:
        yield "    .p2align 6, 0xcc"
        yield f"{CONSTANTS}:"
    for start in range(0, len(pool), BYTES_PER_LINE):
        yield f"    .byte {', '.join(f'{byte:#04x}' for byte in pool[start : start + BYTES_PER_LINE])}"
