"""Every instruction form that PeachPy documents, against an independent decoder: random operands, and all edges."""

from random import Random

import pytest

from asmdnn.errors import InvalidArguments
from asmdnn.isa.encoder import encoder_of
from asmdnn.isa.memory_operand import Operand, Pointer
from tests.isa.boundaries import FEW_IMMEDIATES, IMMEDIATES, UNITS, with_displacement, with_immediate
from tests.isa.decoding import disagreement
from tests.isa.forms import DocumentedForm, documented_forms, random_operands

FORMS = list(documented_forms())
WITH_IMMEDIATE = [form for form in FORMS if any(name.startswith("imm") for name in form.operand_types)]
UNSIGNED = 4  # bits of the immediates that are never negative


def failure(form: DocumentedForm, operands: list[Operand]) -> str:
    """What the decoder reads that was not asked for, or the refusal; "" if neither."""
    encoder = encoder_of(form.mnemonic)
    assert encoder is not None
    try:
        code = bytes(encoder.choose(operands).encode(operands))
        reason = disagreement(form.mnemonic, operands, code)
    except InvalidArguments as error:
        code, reason = b"", f"refused: {error}"
    return f"{form}: {', '.join(map(str, operands))} -> {code.hex()}: {reason}" if reason else ""


def failures(forms: list[DocumentedForm], random: Random, repetitions: int) -> list[str]:
    found = []
    for form in forms:
        for _ in range(repetitions if form.operand_types else 1):
            found.append(failure(form, random_operands(form, random)))
    return [text for text in found if text]


def wrong_immediates(forms: list[DocumentedForm], random: Random, values: list[int]) -> list[str]:
    """Those encoded as others, and those refused that fit the documented bits with a sign."""
    found = []
    for form in forms:
        operands = random_operands(form, random)
        for value in values:
            for bits, asked in with_immediate(form, operands, value):
                text = failure(form, asked)
                least = 0 if bits == UNSIGNED else -(2 ** (bits - 1))
                if text and ("refused" not in text or least <= value < 2 ** (bits - 1)):
                    found.append(text)
    return found


def wrong_displacements(forms: list[DocumentedForm], random: Random, units: tuple[int, ...]) -> list[str]:
    """In the units given; else in the size of the memory operand, which is the unit of most."""
    found = []
    for form in forms:
        operands = random_operands(form, random)
        pointers = [operand for operand in operands if isinstance(operand, Pointer)]
        of_form = units or tuple({1, *(pointer.size or 8 for pointer in pointers)})
        found += [failure(form, asked) for asked in with_displacement(operands, of_form)]
    return [text for text in found if text]


def test_all_documented_forms_are_found() -> None:
    assert len(FORMS) == 6719
    assert len(WITH_IMMEDIATE) == 1070


def test_every_documented_form() -> None:
    assert failures(FORMS, Random(1), 2) == []


def test_every_immediate_is_read_as_it_was_asked_for_or_refused() -> None:
    assert wrong_immediates(WITH_IMMEDIATE, Random(2), FEW_IMMEDIATES) == []


def test_every_displacement_is_read_as_it_was_asked_for() -> None:
    assert wrong_displacements(FORMS, Random(3), ()) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_immediates_exhaustively(seed: int) -> None:
    """In changing order and without old choices, since the first of a range chooses the encoder of all."""
    encoder_of.cache_clear()
    random = Random(f"immediates {seed}")
    assert wrong_immediates(WITH_IMMEDIATE, random, random.sample(IMMEDIATES, len(IMMEDIATES))) == []


@pytest.mark.slow
def test_displacements_exhaustively() -> None:
    assert wrong_displacements(FORMS, Random(4), UNITS) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_every_documented_form_exhaustively(seed: int) -> None:
    assert failures(FORMS, Random(f"exhaustive {seed}"), 25) == []
