"""Every VEX form that the emulator knows does on this CPU what it does in the emulator, bit for bit."""

import zlib

import numpy as np
import pytest
from iced_x86 import Instruction

from tests.emulator.assembling import Mem, ins
from tests.emulator.forms import MEMORY_BYTES, NAN_ARITHMETIC, VECTOR_FORMS, Form, by_mnemonic
from tests.emulator.native import check_twin, differences, missing_features, mixed_floats, vector_twin

VEX_FORMS = [form for form in VECTOR_FORMS if form.name.startswith("VEX") and "GATHER" not in form.mnemonic]
RUNS = 8


def instances(form: Form, rng: np.random.Generator) -> list[Instruction]:
    """The form with registers, then from memory, with random operands that may coincide."""
    variants = [False] * form.has_register_variant + [True] * form.has_memory
    return [ins(form.name, *form.values(rng, memory=memory)) for memory in variants * 2]


@pytest.mark.parametrize("forms", by_mnemonic(VEX_FORMS))
@pytest.mark.one_in(3)
def test_forms(forms: tuple[Form, ...]) -> None:
    """All forms of a mnemonic one after the other in one program."""
    mnemonic = forms[0].mnemonic
    rng = np.random.default_rng(zlib.crc32(mnemonic.encode()))
    twin = vector_twin([instruction for form in forms for instruction in instances(form, rng)])
    check_twin(twin, rng, runs=RUNS, nan_payloads=not NAN_ARITHMETIC.match(mnemonic))


@pytest.mark.parametrize("form", [f for f in VECTOR_FORMS if f.name.startswith("VEX") and "GATHER" in f.mnemonic],
                         ids=lambda form: form.name)  # fmt: skip
def test_gather(form: Form) -> None:
    """Indices inside the memory, and masks of which some lanes are off."""
    rng = np.random.default_rng(7)
    register = "xmm" if "XMM" in form.operands else "ymm"
    twin = vector_twin([ins(form.name, f"{register}1", Mem("rcx", 64, f"{register}2", 4), f"{register}3")])
    if lacking := missing_features(twin.code):
        pytest.skip(f"this CPU has no {', '.join(sorted(lacking))}")
    for _ in range(RUNS):
        contents = {name: mixed_floats(rng, twin.buffers[name].size) for name in ("input", "memory")}
        contents["input"].view(np.int32)[16:24] = rng.integers(-16, MEMORY_BYTES // 4 - 16, 8)
        native, emulated = twin.run(contents)
        assert differences(native["output"], emulated["output"], nan_payloads=True) == []


def test_all_of_the_tested_forms_are_many() -> None:
    """The forms are found by the shape of iced-x86's names, which must not silently stop matching."""
    assert len(VEX_FORMS) > 230
