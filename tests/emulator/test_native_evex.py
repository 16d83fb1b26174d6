"""Every EVEX form that the emulator knows does on a CPU with AVX-512 what it does there: masks, {z}, {1toN}."""

import re
import zlib

import numpy as np
import pytest
from iced_x86 import Instruction

from tests.emulator.assembling import Mem, argument, assemble, ins
from tests.emulator.forms import INTEGERS, MEMORY_BASE, MEMORY_BYTES, NAN_ARITHMETIC, VECTOR_FORMS, Form, by_mnemonic
from tests.emulator.native import Twin, check_twin

RUNS = 4
REGISTER_BYTES, MASK_BYTES = 64, 8
AT_MASKS = 32 * REGISTER_BYTES
AT_INTEGERS = AT_MASKS + 8 * MASK_BYTES
SIZE = AT_INTEGERS + 8 * len(INTEGERS)
EVEX = [f for f in VECTOR_FORMS if f.name.startswith("EVEX") and not re.search("GATHER|SCATTER", f.mnemonic)]


def twin_of(instructions: list[Instruction]) -> Twin:
    """Loads all vectors, masks and some integers, runs, and stores them."""
    places = [(f"zmm{i}", REGISTER_BYTES * i) for i in range(32)]
    masks = [(f"k{i}", AT_MASKS + MASK_BYTES * i) for i in range(8)]
    integers = [(name, AT_INTEGERS + 8 * i) for i, name in enumerate(INTEGERS)]
    code = assemble(
        *(argument(register, i) for i, register in enumerate(("rax", "rdx", MEMORY_BASE))),
        *(ins("EVEX_VMOVDQU64_ZMM_K1Z_ZMMM512", name, Mem("rax", at)) for name, at in places),
        *(ins("VEX_KMOVQ_KR_KM64", name, Mem("rax", at)) for name, at in masks),
        *(ins("MOV_R64_RM64", name, Mem("rax", at)) for name, at in integers),
        *instructions,
        *(ins("MOV_RM64_R64", Mem("rdx", at), name) for name, at in integers),
        *(ins("VEX_KMOVQ_M64_KR", Mem("rdx", at), name) for name, at in masks),
        *(ins("EVEX_VMOVDQU64_ZMMM512_K1Z_ZMM", Mem("rdx", at), name) for name, at in places),
        ins("VEX_VZEROUPPER"),
        ins("RETNQ"),
    )
    return Twin(code, {"input": SIZE, "output": SIZE, "memory": MEMORY_BYTES})


def instances(form: Form, rng: np.random.Generator) -> list[Instruction]:
    """With registers, from memory and from one element, each without a mask, merged and zeroed as the form allows."""
    found = []
    variants = [(False, False)] * form.has_register_variant + [(True, False)] * form.has_memory
    for memory, broadcast in variants + [(True, True)] * form.broadcast:
        for mask, zeroing in (("", False), ("k5", False), ("k6", True)):
            in_memory = memory and re.search("MM?M|^M", form.operands[0])
            if (mask and not form.masking) or (zeroing and (form.masking != "K1Z" or in_memory)):
                continue
            if form.needs_mask and not mask:
                continue
            values = form.values(rng, memory=memory, broadcast=broadcast)
            found.append(ins(form.name, *values, mask=mask, zeroing=zeroing))
    return found


@pytest.mark.parametrize("forms", by_mnemonic(EVEX))
def test_forms(forms: tuple[Form, ...]) -> None:
    """All forms of a mnemonic one after the other in one program."""
    mnemonic = forms[0].mnemonic
    rng = np.random.default_rng(zlib.crc32(mnemonic.encode()))
    twin = twin_of([instruction for form in forms for instruction in instances(form, rng)])
    check_twin(twin, rng, runs=RUNS, nan_payloads=not NAN_ARITHMETIC.match(mnemonic))


def test_the_forms_are_many() -> None:
    assert len(EVEX) > 700
