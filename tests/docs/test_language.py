"""The README is plain English: short sentences, and none of the words that stop a reader."""

import re
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLAIN = (ROOT / "README.md",)
LONGEST, MEDIAN = 30, 15
# Words of this project's makers that a reader has to guess at: what each of them means can be said.
HOUSE = re.compile(r"\b(apart|behind|meets?|likes|the least|others|by itself)\b", re.IGNORECASE)


def sentences_of(text: str) -> list[str]:
    """Of prose: code, tables, pictures and the addresses of links are left out."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(\||<|#).*$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"`[^`]*`", "code", text)
    paragraphs = re.split(r"\n\s*\n|\n(?=- )", text)
    parts = [part for text in paragraphs for part in re.split(r"(?<=[.:!?])\**\s+", " ".join(text.split()))]
    return [part for part in parts if re.search(r"\w", part)]


def test_sentences_are_counted() -> None:
    text = "# A\n\nOne `x. y` two. Three:\n\n```sh\nfour. five\n```\n- six\n- seven [eight](nine.md).\n"
    assert sentences_of(text) == ["One code two.", "Three:", "- six", "- seven [eight]."]


@pytest.mark.parametrize("page", PLAIN, ids=lambda page: page.name)
def test_sentences_are_short(page: Path) -> None:
    lengths = {sentence: len(re.findall(r"[\w'/.%-]+", sentence)) for sentence in sentences_of(page.read_text())}
    assert not [sentence for sentence, words in lengths.items() if words > LONGEST]
    assert median(lengths.values()) <= MEDIAN


@pytest.mark.parametrize("page", PLAIN, ids=lambda page: page.name)
def test_words_are_everybodys(page: Path) -> None:
    assert not [sentence for sentence in sentences_of(page.read_text()) if HOUSE.search(sentence)]
