"""python -m tools.site: build/site from the pages, the docstrings and the programs that draw pages.

Fails on a dead link, a page that no shelf names, and anything else that mkdocs warns of.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.site.live import write_live_pages
from tools.site.reference import reference_pages

ROOT: Final = Path(__file__).resolve().parents[2]
STAGE: Final = ROOT / "build" / "site-src"
LINK: Final = re.compile(r"(?<=\]\()((?:\.\./)*[\w./-]+\.(?:py|txt|c|rs|go)|(?:\.\./)*LICENSE)(?=\))")
NOTEBOOKS: Final = (
    "examples/first_steps.ipynb",
    "examples/asm/dot_product.ipynb",
    "examples/asm/mandelbrot_set.ipynb",
)
TABLES: Final = ("docs/measurements/encodings.csv",)
STYLE: Final = Path(__file__).with_name("site.css")


def main() -> int:
    """Stage and build; the exit status."""
    shutil.rmtree(STAGE, ignore_errors=True)
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")]
    for page in pages:
        write(STAGE / page.relative_to(ROOT), with_sources(page))
    for path, text in reference_pages().items():
        write(STAGE / path, text)
    shutil.copytree(ROOT / "docs" / "images", STAGE / "docs" / "images")
    for file in (*NOTEBOOKS, *TABLES):
        (STAGE / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, STAGE / file)
    shutil.copy(STYLE, STAGE)
    write_live_pages(STAGE / "live")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, env=environment, check=False)
    if done.returncode == 0:
        print(f"site: {ROOT / 'build' / 'site' / 'index.html'}")
    return done.returncode


def with_sources(page: Path) -> str:
    """A page's text whose links to programs lead to pages that show them, which are written, too."""

    def page_of(match: re.Match[str]) -> str:
        source = (page.parent / match[1]).resolve()
        name = source.relative_to(ROOT)
        language = {".py": "python", ".c": "c", ".rs": "rust", ".go": "go"}.get(source.suffix, "text")
        shown = STAGE / f"{name}.md"
        write(shown, f"---\nsearch:\n  exclude: true\n---\n# {name}\n\n````{language}\n{source.read_text()}````\n")
        return f"{match[1]}.md"

    return LINK.sub(page_of, page.read_text())


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    sys.exit(main())
