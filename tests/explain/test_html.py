"""The page: well-formed, alone in the world, and complete."""

import json
import re
from collections import Counter
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from asmdnn.cli.main import main
from asmdnn.explain.html.page import html_of
from asmdnn.explain.html.python import coloured
from asmdnn.explain.model import Excerpt
from tests.explain.problems import explained

VOID = {"meta", "input", "br", "img", "link", "hr"}
OPTIONAL_END = {"tr", "td", "th"}  # their end tags may be left out
LAYER, REORDERED = "mb1ic16ih12oc40oh12kh3ph1", "--stag=nchw --dtag=nchw mb1ic64ih14oc24oh14kh3ph1"


class Page(HTMLParser):
    """Elements and their attributes; raises for an end tag that does not belong."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        while self.open[-1] != tag and self.open[-1] in OPTIONAL_END:
            self.open.pop()
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data: str) -> None:
        if self.open:
            self.words.setdefault(self.open[-1], []).append(data)

    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]


@lru_cache
def page(words: str, isa: str = "avx2") -> tuple[str, Page]:
    explanation = explained(words, isa)
    text = html_of(explanation, range(len(explanation.kernels)))
    return text, Page(text)


@pytest.mark.parametrize("words", [LAYER, REORDERED, "mb1ic8ih1oc8oh1kh1"])
def test_it_is_well_formed_and_ids_are_unique(words: str) -> None:
    _, parsed = page(words)
    assert [i for i, count in Counter(parsed.ids()).items() if count > 1] == []


@pytest.mark.parametrize("words", [LAYER, REORDERED])
def test_it_needs_no_other_file(words: str) -> None:
    text, parsed = page(words)
    assert re.findall(r"(?:https?:)?//[a-z]|url\(|@import|\bimport\s*\(|fetch\(|XMLHttpRequest", text) == []
    for tag, attributes in parsed.elements:
        assert tag not in ("link", "img", "iframe", "object", "base")
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
def test_every_instruction_once_and_linked(isa: str) -> None:
    _, parsed = page(LAYER, isa)
    explanation = explained(LAYER, isa)
    rows = {a["id"]: a for _, a in parsed.elements if a.get("class", "").startswith("i k-")}
    expected = [f"i{n}-{i}" for n, kernel in enumerate(explanation.kernels) for i in range(len(kernel.instructions))]
    assert list(rows) == expected
    ids = set(parsed.ids())
    for number, kernel in enumerate(explanation.kernels):
        for index, instruction in enumerate(kernel.instructions):
            file, line = rows[f"i{number}-{index}"]["data-s"].split("-")
            assert (explanation.sources[int(file)].path, int(line)) == (instruction.path, instruction.line)
            assert f"l{file}-{line}" in ids  # the line is in the source pane


def test_links_lead_somewhere() -> None:
    for words in (LAYER, REORDERED):
        _, parsed = page(words)
        ids = set(parsed.ids())
        assert {a["href"][1:] for _, a in parsed.elements if a.get("href")} <= ids


def test_jumps_lead_to_their_targets() -> None:
    kernel = explained(LAYER).kernels[0]
    text, _ = page(LAYER)
    offsets = [instruction.offset for instruction in kernel.instructions]
    for index, instruction in enumerate(kernel.instructions):
        if instruction.target >= 0:
            row = re.search(rf'id="i0-{index}".*?</div>', text, re.DOTALL)
            assert row and f'href="#i0-{offsets.index(instruction.target)}"' in row[0]


def test_loops_are_bracketed() -> None:
    """A bar for every row inside, one that opens and one that closes for each loop."""
    text, _ = page(LAYER)
    for number, kernel in enumerate(explained(LAYER).kernels):
        article = re.search(rf'<article class="kernel" id="kernel{number}".*?</article>', text, re.DOTALL)
        assert article
        assert article[0].count('<i class="v o">') == len(kernel.loops)
        assert article[0].count('<i class="v e">') == len(kernel.loops)


def test_pictures_have_every_tile() -> None:
    _, parsed = page(LAYER)
    explanation = explained(LAYER)
    data = [json.loads(text) for text in parsed.words["script"] if text.startswith("{")]
    assert len(data) == len(explanation.phases)
    tiles = [a for tag, a in parsed.elements if tag == "path" and a.get("class") == "t"]
    planes = [phase.plane for phase in explanation.phases if phase.plane]
    assert len(tiles) == sum(max(run.tile for run in shape) + 1 for plane in planes for shape in plane.shapes)
    for found, plane in zip(data, planes, strict=True):
        assert [tuple(block["r"]) for block in found["blocks"]] == [block.records for block in plane.blocks]
        assert [tuple(block["t"]) for block in found["blocks"]] == [block.threads for block in plane.blocks]


def test_the_register_map_has_every_holding() -> None:
    _, parsed = page(LAYER)
    titles = [a["title"] for tag, a in parsed.elements if tag == "b" and " is " in a.get("title", "")]
    expected = [
        f"{h.register} is {h.purpose} from {h.begin:#x} to {h.end:#x}"
        for kernel in explained(LAYER).kernels
        for h in kernel.registers
    ]
    assert sorted(titles) == sorted(expected)


def test_text_is_escaped() -> None:
    lines = coloured(Excerpt(1, ("if a < b and c > '<b>':  # <i>", '    """&"""')))
    assert lines[0] == (
        '<span class="k">if</span> a &lt; b <span class="k">and</span> c &gt; '
        '<span class="s">&#x27;&lt;b&gt;&#x27;</span>:  <span class="c"># &lt;i&gt;</span>'
    )
    assert lines[1] == '    <span class="s">&quot;&quot;&quot;&amp;&quot;&quot;&quot;</span>'
    assert coloured(Excerpt(1, ("def f(:", "  'a"))) == ["def f(:", "  &#x27;a"]


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "page.html"
    words = ["--conv", "--isa=avx512_core", "--kernel=0", f"--html={target}", "mb1ic8ih12oc16oh12kh3ph1"]
    assert main(["explain", *words]) == 0
    assert capsys.readouterr().out.endswith(f"explained in {target}\n")
    parsed = Page(target.read_text())
    assert {i.split("-")[0] for i in parsed.ids() if re.match(r"i\d", i)} == {"i0"}


def test_a_narrow_screen_has_rules_for_what_is_wide() -> None:
    """The listing breaks its lines, the head does not cover the page, and long names break."""
    style = page(LAYER)[0]
    narrow = style.partition("@media (max-width: 700px) {")[2].partition("@media print")[0]
    for rule in ("header { position: static", ".i { display: grid", "min-width: 0 }", "td code { overflow-wrap"):
        assert rule in narrow
