"""Random operands for every instruction form that PeachPy documents."""

import re
from collections.abc import Iterator
from itertools import product
from random import Random
from typing import NamedTuple

import peachpy.x86_64
from peachpy.x86_64.instructions import Instruction

from asmdnn.isa.assembler import mem, rd_sae, register, rn_sae, ru_sae, rz_sae, sae
from asmdnn.isa.memory_operand import Operand, Pointer
from asmdnn.isa.operands import Register
from asmdnn.isa.peachpy_forms import forms_of

PSEUDO = {"LABEL", "ALIGN", "RETURN", "NACLJMP"}
MISDOCUMENTED = {("VSQRTPD", "m32bcst"): "m64bcst"}
FIXED = {"al": ("r8", 0), "ax": ("r16", 0), "eax": ("r32", 0), "rax": ("r64", 0), "cl": ("r8", 1), "xmm0": ("xmm", 0)}
VECTOR_BYTES = {"x": 16, "y": 32, "z": 64}
INDEX_KIND = {"x": "xmm", "y": "ymm", "z": "zmm"}


class DocumentedForm(NamedTuple):
    """One combination of operand types, e.g. ("VADDPS", ("zmm{k}{z}", "zmm", "m512"), evex=True)."""

    mnemonic: str
    operand_types: tuple[str, ...]
    evex: bool
    vector_bytes: int  # of the widest memory alternative or the first operand: what a broadcast fills

    def __str__(self) -> str:
        return f"{self.mnemonic}({', '.join(self.operand_types)}){' EVEX' if self.evex else ''}"


def mnemonics() -> list[str]:
    """Every instruction of PeachPy."""
    table = vars(peachpy.x86_64)
    classes = {n for n, c in table.items() if isinstance(c, type) and issubclass(c, Instruction)}
    return sorted(classes - PSEUDO)


def documented_forms() -> Iterator[DocumentedForm]:
    """All forms but those with a relative target (jumps and calls to labels have their own tests)."""
    for mnemonic in mnemonics():
        for text in forms_of(mnemonic):
            match = re.fullmatch(rf"{mnemonic}(?:\((.*?)\))?(?:\s+\[(.+)\])?", text)
            assert match, text
            columns = [column.strip().split("/") for column in (match[1] or "").split(",") if column]
            evex = "AVX512" in (match[2] or "")
            filled = max((int(size) // 8 for size in re.findall(r"\bm(\d+)/m\d+bcst", text)), default=0)
            for types in product(*columns):
                if not any(operand_type.startswith("rel") for operand_type in types):
                    first_bytes = VECTOR_BYTES.get(types[0][0], 0) if types else 0
                    types = tuple(MISDOCUMENTED.get((mnemonic, name), name) for name in types)
                    yield DocumentedForm(mnemonic, types, evex, filled or first_bytes)


def random_operands(form: DocumentedForm, random: Random) -> list[Operand]:
    """Operands of the form, with registers, displacements and immediates at and around the edges."""
    while True:
        operands = [_operand(operand_type, form, random) for operand_type in form.operand_types]
        if form.mnemonic != "XCHG" and "GATHER" not in form.mnemonic:
            return operands
        if _all_differ(operands):  # for XCHG only eax with itself does not exist
            return operands


def _all_differ(operands: list[Operand]) -> bool:
    registers = [op.form.index if isinstance(op, Pointer) else op for op in operands]
    numbers = [reg.id for reg in registers if isinstance(reg, Register)]
    return len(set(numbers)) == len(numbers)


def _operand(operand_type: str, form: DocumentedForm, random: Random) -> Operand:
    if operand_type in FIXED:
        return register(*FIXED[operand_type])
    if match := re.fullmatch(r"(r8|r16|r32|r64|mm|k|[xyz]mm)(\{k\})?(\{z\})?", operand_type):
        return _register(match[1], bool(match[2]), bool(match[3]), form, random)
    if match := re.fullmatch(r"m(\d*)(\{k\})?(\{z\})?", operand_type):
        pointer = pointer_near_edges(random, int(match[1] or 8) // 8, size=int(match[1] or 0) // 8)
        return pointer.masked(_mask(random)) if match[2] and random.random() < 0.7 else pointer
    if match := re.fullmatch(r"m(32|64)bcst", operand_type):
        size = int(match[1]) // 8
        return pointer_near_edges(random, size, size=size, broadcast=form.vector_bytes // size)
    if match := re.fullmatch(r"vm(32|64)([xyz])(\{k\})?", operand_type):
        index = register(INDEX_KIND[match[2]], random.randrange(32 if form.evex else 16))
        pointer = pointer_near_edges(random, int(match[1]) // 8, index=index)
        return pointer.masked(_mask(random)) if match[3] else pointer
    if operand_type == "{er}":
        return random.choice((rn_sae, rd_sae, ru_sae, rz_sae))
    if operand_type == "{sae}":
        return sae
    if match := re.fullmatch(r"imm(\d+)", operand_type):
        return _immediate(int(match[1]), random)
    return int(operand_type)  # literal 0, 1, 3


def _register(kind: str, maskable: bool, zeroable: bool, form: DocumentedForm, random: Random) -> Register:
    count = 8 if kind in ("mm", "k") else 32 if form.evex and kind[1:] == "mm" else 16
    reg = register(kind, random.randrange(count))
    must_mask = "GATHER" in form.mnemonic
    if not maskable or not (must_mask or random.random() < 0.7):
        return reg
    return reg.zeroed(_mask(random)) if zeroable and random.random() < 0.5 else reg.masked(_mask(random))


def _mask(random: Random) -> Register:
    return register("k", random.randrange(1, 8))


def _immediate(bits: int, random: Random) -> int:
    if bits == 4:
        return random.randrange(16)
    top = 1 << (bits - 1)
    return random.choice((0, 1, 2, 127, -128, top - 1, -1, -top, random.randrange(top), -random.randrange(1, top)))


def pointer_near_edges(
    random: Random, unit: int, *, size: int = 0, broadcast: int = 0, index: Register | None = None
) -> Pointer:
    """A memory operand with any base and index, and a displacement near a limit of an 8-bit displacement of `unit`."""
    base = random.choice([register("r64", n) for n in range(16)] + ([None] if index else []))
    if index is None and random.random() < 0.5:
        index = random.choice([register("r64", n) for n in range(16) if n != 4])
        base = random.choice((base, None))
    scale = random.choice((1, 2, 4, 8)) if index else 1
    step = random.choice((1, 2, 4, 8, 16, 32, 64, unit))
    near = random.choice((0, 0, 1, -1, 127, -128, 128, -129, random.randrange(-130, 131))) * step
    disp = random.choice((near, near, random.randrange(-200, 200), random.randrange(-(2**31), 2**31)))
    return mem(base, disp, index=index, scale=scale, size=size, broadcast=broadcast)
