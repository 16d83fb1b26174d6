"""What is known of every code: how it is written, who read or wrote the same, whether it is emulated."""

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.isa.decoding import decode
from tools.encodings.calls import Call
from tools.encodings.codes import asked_codes, reason
from tools.encodings.judges import COMMANDS, is_emulated, read_wrongly, same, written_by

TABLE: Final = Path(__file__).parents[2] / "docs" / "measurements" / "encodings.csv"


class CodeRow(NamedTuple):
    """code, text, title: iced-x86's.  name: the mnemonic that writes it, or "".  why: it has none.

    checked: how many encodings the decoder read as they were asked for.  gnu_as, llvm_mc: of how many each wrote the
    same instruction; 0 where it knows none.  emulated: of how many the emulator knows what they do.
    """

    code: str
    title: str
    name: str
    why: str
    checked: int
    gnu_as: int
    llvm_mc: int
    emulated: int
    text: str


def rows_of(calls: Sequence[Call]) -> list[CodeRow]:
    """A row for each code.  Raises AssertionError where a judge found another instruction than was asked for."""
    wrong = [f"{call}: {why}" for call in calls if (why := read_wrongly(call))]
    assert not wrong, wrong[:5]
    asked = asked_codes()
    calls = [call for call in calls if decode(call.data).code in asked]
    codes = [int(decode(call.data).code) for call in calls]
    names: dict[int, str] = {}
    for code, call in zip(codes, calls, strict=True):
        names.setdefault(code, call.mnemonic)
    judged = [_agreeing(judge, calls, codes) for judge in COMMANDS]
    known = Counter(code for code, call in zip(codes, calls, strict=True) if is_emulated(call.data))
    counts = Counter(codes)
    return [
        CodeRow(
            code.name, code.title, names.get(value, ""), "" if value in names else reason(code, names),
            counts[value], judged[0][value], judged[1][value], known[value], code.text,
        )
        for value, code in asked.items()
    ]  # fmt: skip


def _agreeing(judge: str, calls: Sequence[Call], codes: Sequence[int]) -> "Counter[int]":
    """Of how many encodings of each code the assembler wrote the same instruction."""
    made = written_by(judge, calls)
    pairs = list(zip(calls, made, strict=True))
    differing = {call.mnemonic: (call.data.hex(), data.hex()) for call, data in pairs if data and not same(call, data)}
    assert not differing, f"{judge}: {differing}"
    return Counter(code for code, data in zip(codes, made, strict=True) if data)


def write(rows: Sequence[CodeRow]) -> None:
    with TABLE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(CodeRow._fields)
        writer.writerows(rows)


def read() -> list[CodeRow]:
    with TABLE.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [CodeRow(row[0], row[1], row[2], row[3], *_counts(row[4:8]), row[8]) for row in rows]


def _counts(words: Sequence[str]) -> tuple[int, int, int, int]:
    checked, gnu_as, llvm_mc, emulated = map(int, words)
    return checked, gnu_as, llvm_mc, emulated
