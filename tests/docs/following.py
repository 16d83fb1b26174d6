"""A page that adds something to the library, followed literally in a copy of the tree.

A block after a paragraph that ends in "`path`:" is that file: python, markdown or text to write; a diff to apply,
whose old lines must be in the file once.  Other python blocks are scripts, and sh blocks are commands, each in a
process of its own with the copy as its directory and its library; what they print is compared with the block after.
"""

import doctest
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("asmdnn", "tests", "docs", "README.md", "pyproject.toml")
BLOCK = re.compile(r"(?:`([\w./-]+)`:\n\n)?^```(\w+)\n(.*?)^```$(?:\n+```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Step:
    """A block of the page: path is the file that it is, or "" of what runs and prints `printed`."""

    line: int
    path: str
    language: str
    text: str
    printed: str


def steps_of(page: Path) -> list[Step]:
    text = page.read_text()
    found = BLOCK.finditer(text)
    return [Step(text[: m.start(3)].count("\n"), m[1] or "", m[2], m[3], m[4] or "") for m in found]


class Follower:
    """Carries out steps in a copy of the tree below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.tree, tools = folder / "tree", folder / "bin"
        self.tree.mkdir()
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, self.tree / name, ignore=shutil.ignore_patterns("images"))
            else:
                shutil.copy(source, self.tree / name)
        tools.mkdir()
        for name in ("asmdnn", "pytest"):
            (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {name} "$@"\n')
            (tools / name).chmod(0o755)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("ASMDNN_", "PYTEST_"))}
        self.environment = clean | {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.tree),
            "ASMDNN_CACHE_DIR": str(folder / "cache"),
        }

    def follow(self, step: Step) -> None:
        if step.path and step.language == "diff":
            self.apply(step)
        elif step.path:
            path = self.tree / step.path
            path.parent.mkdir(parents=True, exist_ok=True)
            assert not path.exists(), f"line {step.line}: {step.path} is there already, the page must show an edit"
            path.write_text(step.text)
        elif step.language in ("python", "sh"):
            self.run(step)

    def apply(self, step: Step) -> None:
        """Hunks are after lines of "@@".  Of each, lines after " " and "-" are there now, those after " " and "+"
        afterwards; an empty line is one of the file."""
        path = self.tree / step.path
        for hunk in step.text.split("@@\n"):
            lines = [line or " " for line in hunk.splitlines()]
            old, new = ("".join(f"{line[1:]}\n" for line in lines if line[0] in (" ", sign)) for sign in "-+")
            text = path.read_text()
            assert text.count(old) == 1, f"line {step.line}: {step.path} has {text.count(old)} times\n{old}"
            path.write_text(text.replace(old, new))

    def run(self, step: Step) -> None:
        shell = ["sh", "-ec", step.text]
        command = shell if step.language == "sh" else [sys.executable, "-c", step.text]
        done = subprocess.run(
            command, cwd=self.tree, env=self.environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, f"line {step.line}:\n{step.text}{done.stdout}{done.stderr}"
        assert not step.printed or doctest.OutputChecker().check_output(step.printed, done.stdout, FLAGS), (
            f"the block at line {step.line} printed\n{done.stdout}\nand not\n{step.printed}"
        )
