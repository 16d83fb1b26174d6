"""All pages are plain English: short sentences, without the words that stop a reader; the README is held to more."""

import re
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
LONGEST, MEDIAN = 30, 15
PAGES = [page for pattern in ("*.md", "docs/*.md", "examples/**/*.md") for page in sorted(ROOT.glob(pattern))]
# Words of this project's makers that a reader has to guess at: what each of them means can be said.
HOUSE = re.compile(r"\b(behind|meets?|likes|the least|by itself)\b", re.IGNORECASE)
JOINED = re.compile(r"[.:;] -\s+[*`A-Z].*")
README_HOUSE = re.compile(rf"{HOUSE.pattern}|\b(apart|others)\b", re.IGNORECASE)  # elsewhere: distances, people


def sentences_of(text: str) -> list[str]:
    """Of prose: code, tables, pictures and the addresses of links are left out; items between dots are apart."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(\||<|#|    ).*$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"`[^`]*`", "code", text)
    paragraphs = re.split(r"\n\s*\n|\n(?=- )", text)
    parts = [part for text in paragraphs for part in re.split(r"(?<=[.:!?])\**\s+| · ", " ".join(text.split()))]
    return [part for part in parts if re.search(r"\w", part)]


def test_sentences_are_counted() -> None:
    text = "# A\n\nOne `x. y` two. Three:\n\n```sh\nfour. five\n```\n- six\n- seven [eight](nine.md).\n"
    assert sentences_of(text) == ["One code two.", "Three:", "- six", "- seven [eight]."]


def words_of(page: Path) -> dict[str, int]:
    return {sentence: len(re.findall(r"[\w'/.%-]+", sentence)) for sentence in sentences_of(page.read_text())}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_are_short_and_plain(page: Path) -> None:
    found = words_of(page)
    assert not [sentence for sentence, words in found.items() if words > LONGEST]
    assert not [sentence for sentence in found if HOUSE.search(sentence)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_items_of_a_list_begin_lines(page: Path) -> None:
    """Whoever wraps a paragraph anew may join the items that follow it."""
    assert not JOINED.findall(page.read_text())


def test_joined_items_are_found() -> None:
    assert JOINED.search("- One is it. - **Two** is") and JOINED.search("- One. -\n  `two`")
    assert not JOINED.search("- One.\n- Two - a word - and (3) - 4.\n  - Five.")


def test_words_of_the_house_are_found() -> None:
    assert HOUSE.search("Threads meet there.") and HOUSE.search("It stands behind.") and not HOUSE.search("Meeting.")
    assert README_HOUSE.search("Rows lie apart.") and README_HOUSE.search("What meets others.")


def test_the_readme_is_plain() -> None:
    words = words_of(README)
    assert median(words.values()) <= MEDIAN
    assert not [sentence for sentence in words if README_HOUSE.search(sentence)]
