"""The pages are true: their Python runs and prints what they say, their commands and variables exist, links resolve."""

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

from asmdnn.bench.options import Reader
from asmdnn.cli.bench_network import with_values
from asmdnn.cli.main import COMMANDS
from asmdnn.cli.models import model_words

ROOT = Path(__file__).resolve().parents[2]
PAGES = [page for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md") for page in sorted(ROOT.glob(pattern))]
FOLLOWED = ("add-a-kernel.md", "add-a-primitive.md")  # in a copy of the tree, by test_worked_examples.py
PICTURES = sorted((ROOT / "docs").glob("**/*.svg"))

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$(?:\n+```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"""(?:\]\(|<img src=")([^)"\s]+)""")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)

# Runs the blocks of a page one after the other in one namespace, and returns what each printed.  A process of its own:
# pages may add to the implementation list, and their kernels belong in no cache.
RUNNER = """
import contextlib, io, json, sys
page, outputs = {"__name__": "page"}, []
for line, source in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as stdout:
        exec(compile("\\n" * line + source, sys.argv[1], "exec"), page)
    outputs.append(stdout.getvalue())
print(json.dumps(outputs))
"""


def named(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=[str(path.relative_to(ROOT)) for path in paths])


@named([page for page in PAGES if "```python" in page.read_text() and page.name not in FOLLOWED])
def test_python_blocks_print_what_the_page_says(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    blocks = [match for match in BLOCK.finditer(text) if match[1] == "python"]
    sources = [(text[: match.start(2)].count("\n"), match[2]) for match in blocks]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASMDNN_")}
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, path.name],
        input=json.dumps(sources), capture_output=True, text=True, timeout=120, cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT), "ASMDNN_CACHE_DIR": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for (line, _), match, printed in zip(sources, blocks, json.loads(done.stdout), strict=True):
        expected = match[3] or ""
        assert doctest.OutputChecker().check_output(expected, printed, flags), (
            f"the block at {path.name}:{line} printed\n{printed}\nand not\n{expected}"
        )


@named([page for page in PAGES if page.name not in FOLLOWED])
def test_commands_exist(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for match in BLOCK.finditer(path.read_text()):
        for line in match[2].splitlines() if match[1] == "sh" else ():
            words = shlex.split(line, comments=True)
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                del words[0]
            if words[:1] == ["make"]:
                assert f"\n{words[1]}:" in makefile, line
            elif words and words[0].endswith("asmdnn"):
                assert words[1] in COMMANDS, line
                if words[1:3] == ["bench", "--network"]:
                    asked = model_words("bench", with_values(words[2:]))
                    assert {word.partition("=")[0] for word in asked.rest} <= {"--peer", "--max-ms", "--input"}, line
                elif words[1] == "bench":
                    assert Reader().count(words[2:], ROOT), line


@cache
def environment_variables() -> frozenset[str]:
    code = "".join(source.read_text() for source in (ROOT / "asmdnn").rglob("*.py"))
    return frozenset(re.findall(r"ASMDNN_[A-Z_]+\b", code))


@named(PAGES)
def test_environment_variables_exist(path: Path) -> None:
    assert set(re.findall(r"ASMDNN_[A-Z_]+\b", path.read_text())) <= environment_variables()


@named(PAGES)
def test_relative_links_resolve(path: Path) -> None:
    for target in LINK.findall(BLOCK.sub("", path.read_text())):
        file, _, anchor = target.partition("#")
        if "://" in target:
            continue
        page = path.parent / file if file else path
        assert page.exists(), target
        assert not anchor or anchor in {anchor_of(title) for title in HEADING.findall(page.read_text())}, target


@named([page for page in PAGES if "\nContents: " in page.read_text()])
def test_contents_are_those_of_the_page(path: Path) -> None:
    """All sections, in their order."""
    text = BLOCK.sub("", path.read_text())
    listed = re.findall(r"\(#([^)]+)\)", re.split(r"\n\n", text.partition("\nContents: ")[2])[0])
    assert listed == [anchor_of(title) for title in re.findall(r"^## (.*)$", text, re.MULTILINE)]


def anchor_of(title: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


@named(PICTURES)
def test_pictures_are_well_formed(path: Path) -> None:
    assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"
