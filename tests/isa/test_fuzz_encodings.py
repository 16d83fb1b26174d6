"""Every instruction form that PeachPy documents, with random operands, against an independent decoder."""

from random import Random

import pytest

from asmdnn.errors import InvalidArguments
from asmdnn.isa.encoder import encoder_of
from tests.isa.decoding import disagreement
from tests.isa.forms import DocumentedForm, documented_forms, random_operands

FORMS = list(documented_forms())


def failures(forms: list[DocumentedForm], random: Random, repetitions: int) -> list[str]:
    found = []
    for form in forms:
        encoder = encoder_of(form.mnemonic)
        assert encoder is not None
        for _ in range(repetitions if form.operand_types else 1):
            operands = random_operands(form, random)
            try:
                code = bytes(encoder.choose(operands).encode(operands))
                reason = disagreement(form.mnemonic, operands, code)
            except InvalidArguments as error:
                code, reason = b"", str(error)
            if reason:
                found.append(f"{form}: {', '.join(map(str, operands))} -> {code.hex()}: {reason}")
    return found


def test_all_documented_forms_are_found() -> None:
    assert len(FORMS) == 6719


def test_every_documented_form() -> None:
    assert failures(FORMS, Random(1), 2) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_every_documented_form_exhaustively(seed: int) -> None:
    assert failures(FORMS, Random(f"exhaustive {seed}"), 25) == []
