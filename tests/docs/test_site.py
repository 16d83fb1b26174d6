"""The site: every public name and each of its parameters is in the reference, and every page on a shelf."""

import inspect
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tools.site.house import meaning_of, said
from tools.site.reference import public_names, public_objects

ROOT = Path(__file__).resolve().parents[2]
OBJECTS = dict(public_objects())


def test_a_docstring_says_what_its_parameters_mean() -> None:
    text = """A product.

    a: (m, k); b (dense), c: two more, i.e. all.  Not this.  out: is written: all
    of it.  Raises Error: never.
    """
    assert said(text, ("a", "b", "c", "out", "engine")) == {
        "a": "(m, k)", "b": "two more, i.e. all", "c": "two more, i.e. all", "out": "is written: all of it",
    }  # fmt: skip


def test_words_before_a_colon_are_no_parameters() -> None:
    assert said("Raises: nothing.  x and stride: one each", ("x",)) == {}


def test_every_public_name_stands_once() -> None:
    names = [written for page in public_names().values() for written, _ in page]
    assert sorted(names) == sorted(OBJECTS) and len(names) > 150


@pytest.mark.parametrize("written", sorted(OBJECTS))
def test_every_parameter_has_a_meaning(written: str) -> None:
    found = OBJECTS[written]
    names = [name for name in inspect.signature(found).parameters if name != "self"]
    own = said(inspect.getdoc(found) or "", names)
    missing = [name for name in names if not (own.get(name) or meaning_of(name, f"{found.__module__}."))]
    assert not missing, f"say it in the docstring as `name: text`, or in tools/site/parameters.py: {missing}"


def test_every_page_stands_on_a_shelf() -> None:
    shelves = (ROOT / "mkdocs.yml").read_text()
    named = set(re.findall(r"(?:^|[ /])(docs/[\w-]+\.md)$", shelves, re.MULTILINE))
    assert named == {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}


@pytest.mark.slow
@pytest.mark.skipif(not (find_spec("mkdocs") and find_spec("mkdocstrings")), reason="`make docs` installs mkdocs")
def test_the_site_builds_without_warnings_and_loads_nothing_from_elsewhere() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.site"], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    loads = re.compile(r"<(?:script|img|iframe)[^>]* src=.?https?:|<link[^>]*stylesheet[^>]*https?:")
    for page in (ROOT / "build" / "site").rglob("*.html"):
        assert not loads.search(page.read_text()), page


def test_no_link_leads_to_a_folder() -> None:
    """A site has pages for files alone."""
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")):
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        links = re.findall(r"\]\(([^)#:\s]+)", text)
        assert not [link for link in links if (page.parent / link).is_dir()], page
