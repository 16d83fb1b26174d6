"""The table of encodings: complete, as the page says it, and a sample of it judged anew."""

import re

import pytest

from tests.isa.decoding import decode
from tools.encodings.calls import Call, calls_of_everything
from tools.encodings.codes import asked_codes, twins
from tools.encodings.judges import COMMANDS, is_emulated, read_wrongly, same, versions, written_by
from tools.encodings.page import PAGE, missing, page
from tools.encodings.record import read, rows_of

PARTS = 64
PART = 11  # of the forms, which make test goes through


def test_the_table_has_every_code_and_the_page_its_counts() -> None:
    """If not: python -m tools.encodings."""
    rows = read()
    assert [row.code for row in rows] == [code.name for code in asked_codes().values()]
    assert PAGE.read_text() == page(rows)
    assert missing(rows) == []


def test_a_sample_is_read_and_written_by_others_as_it_was_asked_for() -> None:
    calls = list(calls_of_everything(seed=2, repetitions=4, part=PART, parts=PARTS))
    assert len(calls) > 500
    assert [(call, wrong) for call in calls if (wrong := read_wrongly(call))] == []
    for judge in versions():
        made = written_by(judge, calls)
        assert [(call, data) for call, data in zip(calls, made, strict=True) if data and not same(call, data)] == []
        assert sum(data is not None for data in made) > 0.8 * len(calls)


def test_judges_see_what_is_wrong() -> None:
    calls = list(calls_of_everything(seed=3, repetitions=2, part=PART, parts=PARTS))
    shifted = [Call(a.mnemonic, a.operands, b.data, a.distance) for a, b in zip(calls, calls[4:], strict=False)]
    found = sum(read_wrongly(call) is not None for call in shifted)
    assert found > 0.9 * len(shifted)
    if "GNU as" in versions():
        ours = [call for call in calls if re.fullmatch("V?(ADD|SUB|MUL)P[SD]", call.mnemonic)] or calls[:20]
        made = written_by("GNU as", ours)
        assert all(not same(call, b"\x90") for call, data in zip(ours, made, strict=True) if data)


def test_codes_of_one_text_are_twins() -> None:
    by_name = {code.name: code for code in asked_codes().values()}
    assert twins(by_name["ADD_R32_RM32"]) == []
    assert [asked_codes()[value].name for value in twins(by_name["TEST_RM8_IMM8"])] == ["TEST_RM8_IMM8_F6R1"]
    assert by_name["EVEX_VADDPH_ZMM_K1Z_ZMM_ZMMM512B16_ER"].title == "AVX512_FP16"


def test_what_is_emulated() -> None:
    assert is_emulated(bytes.fromhex("c5f458c2"))  # vaddps ymm0, ymm1, ymm2
    assert not is_emulated(bytes.fromhex("0fa2"))  # cpuid


@pytest.mark.slow
def test_everything() -> None:
    if versions().keys() != COMMANDS.keys():
        pytest.skip("GNU as or llvm-mc is not installed")
    stated = {row.code: row for row in read()}
    for row in rows_of(list(calls_of_everything(seed=5, repetitions=24))):
        before = stated[row.code]
        assert bool(row.name) == bool(before.name) and row.why == before.why, row
        assert [bool(n) for n in row[5:8]] == [bool(n) for n in before[5:8]], (row, before)


def test_every_written_code_has_twenty_random_encodings() -> None:
    """But for those that have no operands, or fixed ones."""
    few = [row.code for row in read() if row.name and row.checked < 20]
    forms = {decode(call.data).code for call in calls_of_everything(seed=1, repetitions=1, part=0, parts=PARTS)}
    assert len(forms) > 20
    assert len(few) < 250
