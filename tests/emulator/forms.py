"""Every vector form that the emulator knows, from iced-x86's table, and random operands for it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from iced_x86 import Code, OpCodeInfo

from asmdnn.emulator.machine import MNEMONICS, SEMANTICS
from tests.emulator.assembling import Mem

MEMORY_BASE = "rcx"
MEMORY_BYTES = 256
INTEGERS = ("r8", "r9", "r10", "r11")
_GENERAL_OR_MEMORY = re.compile(r"R(M(32|64)|(32|64)M(8|16))")
_DECORATIONS = {"K1", "K1Z", "ER", "SAE", "0F11", "MAP5", "11"}
_REGISTER_OR_MEMORY = re.compile(r"([XYZK])M+(\d+)(B\d+)?")
# The immediates that are supported, of those instructions for which not all are.
_IMMEDIATES = {"VCVTPS2PH": (0, 4), "VROUNDPS": range(16), "VRNDSCALEPS": range(16), "VREDUCEPS": (0, 1, 8, 9),
               **dict.fromkeys(("VCMPPS", "VCMPPD", "VCMPPH", "VCMPSH"), range(32))}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    """One of iced-x86's instruction codes."""

    name: str
    mnemonic: str
    operands: tuple[str, ...]
    masking: str  # "", "K1" (merging only) or "K1Z"
    broadcast: bool
    needs_mask: bool

    @property
    def has_memory(self) -> bool:
        kinds = (_REGISTER_OR_MEMORY, _GENERAL_OR_MEMORY, re.compile(r"V?M\d+[XYZ]?"))
        return any(kind.fullmatch(operand) for kind in kinds for operand in self.operands)

    @property
    def has_register_variant(self) -> bool:
        return not any(re.fullmatch(r"V?M\d+[XYZ]?", operand) for operand in self.operands)

    @property
    def vector_bytes(self) -> int:
        return next(size for letter, size in (("Z", 64), ("Y", 32), ("X", 16))
                    if any(o.startswith(letter) or o == f"VM32{letter}" for o in self.operands))  # fmt: skip

    def values(self, rng: np.random.Generator, *, memory: bool, broadcast: bool = False,
               distinct: bool = False) -> list[str | int | Mem]:  # fmt: skip
        """Random operands, which often coincide; one that may be a register or memory is what `memory` says."""
        limit = 32 if self.name.startswith("EVEX") else 16
        few = rng.choice(limit, 4 if distinct else 3, replace=False)
        numbers = iter(few.tolist() if distinct else rng.choice(few, 4).tolist())
        return [self._value(operand, rng, next(numbers), memory, broadcast) for operand in self.operands]

    def _value(self, operand: str, rng: np.random.Generator, number: int, memory: bool, broadcast: bool,
               ) -> str | int | Mem:  # fmt: skip
        if operand in ("XMM", "YMM", "ZMM"):
            return f"{operand.lower()}{number}"
        if operand == "KR":
            return f"k{number % 8}"
        if operand.startswith("IMM"):
            return int(rng.choice(_IMMEDIATES.get(self.mnemonic, range(256))))
        if operand.startswith("VM32"):
            return Mem(MEMORY_BASE, 64, f"{operand[-1].lower()}mm{number}", int(rng.choice([1, 2, 4, 8])))
        if operand.startswith("R"):
            return self._general(operand, rng, memory)
        parts = _REGISTER_OR_MEMORY.fullmatch(operand)
        if parts and not memory:
            return f"k{number % 8}" if parts[1] == "K" else f"{parts[1].lower()}mm{number}"
        step = self.vector_bytes if self.mnemonic.startswith(("VMOVA", "VMOVDQA", "VMOVNT")) else 1
        return Mem(MEMORY_BASE, int(rng.integers(0, (MEMORY_BYTES - 64) // step + 1)) * step, broadcast=broadcast)

    def _general(self, operand: str, rng: np.random.Generator, memory: bool) -> str | Mem:
        if _GENERAL_OR_MEMORY.fullmatch(operand) and memory:
            return Mem(MEMORY_BASE, int(rng.integers(0, MEMORY_BYTES - 64)))
        register = str(rng.choice(INTEGERS))
        return f"{register}d" if "32" in operand else register


def _parse(name: str) -> Form:
    info = OpCodeInfo(getattr(Code, name))
    operands = [part for part in name.split("_")[2:] if part not in _DECORATIONS]
    masking = next((part for part in ("K1Z", "K1") if part in name.split("_")), "")
    return Form(name, MNEMONICS[info.mnemonic], tuple(operands), masking, info.can_broadcast,
                info.require_op_mask_register)  # fmt: skip


def _counts_in_a_register(form: Form) -> bool:
    """VPSLLD and relatives with a variable count: the emulator refuses them."""
    return bool(re.fullmatch(r"VPS(LL|RL|RA)[WDQ]", form.mnemonic)) and "IMM8" not in form.operands


FORMS = tuple(
    form
    for form in (_parse(name) for name in vars(Code) if name.startswith(("VEX_", "EVEX_"))
                 and MNEMONICS[OpCodeInfo(getattr(Code, name)).mnemonic] in SEMANTICS)
    if not _counts_in_a_register(form)
)  # fmt: skip
VECTOR_FORMS = tuple(form for form in FORMS if any(re.match("[XYZ]MM", operand) for operand in form.operands))


def by_mnemonic(forms: Iterable[Form]) -> list[Any]:
    """One pytest parameter, the tuple of forms, for each mnemonic: a test for every form would mostly be overhead."""
    groups: dict[str, list[Form]] = {}
    for form in forms:
        groups.setdefault(form.mnemonic, []).append(form)
    return [pytest.param(tuple(group), id=mnemonic) for mnemonic, group in groups.items()]


# Where two operands are NaN, which of them the result shows is not modelled.
NAN_ARITHMETIC = re.compile(r"VADD|VSUB|VMUL|VDIV|VF(N?)M|VSQRT")
