"""The Python that emitted a kernel: the functions around the emitting lines, read from the files."""

import ast
from collections.abc import Iterable
from pathlib import Path

from asmdnn.explain.model import Excerpt, Instruction, SourceFile

_PACKAGE = Path(__file__).parents[1]


def sources_of(instructions: Iterable[Instruction]) -> tuple[SourceFile, ...]:
    """A Source for every file, the one that emitted most first; a file that cannot be read has no excerpts."""
    lines: dict[str, list[int]] = {}
    for instruction in instructions:
        if instruction.path:
            lines.setdefault(instruction.path, []).append(instruction.line)
    ordered = sorted(lines, key=lambda path: (-len(lines[path]), path))
    return tuple(SourceFile(path, _readable(path), _excerpts(path, set(lines[path]))) for path in ordered)


def _readable(path: str) -> str:
    """From the package on, where the file is in it."""
    file = Path(path)
    return str(file.relative_to(_PACKAGE.parent)) if file.is_relative_to(_PACKAGE) else file.name


def _excerpts(path: str, emitting: set[int]) -> tuple[Excerpt, ...]:
    """The outermost functions and methods that hold an emitting line, in the file's order."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return ()
    rows = text.splitlines()
    spans = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    chosen = set()
    for line in emitting:
        around = [span for span in spans if span[0] <= line <= span[1]]
        outermost = min(around, key=lambda span: (span[0], -span[1]), default=(line, line))
        chosen.add(outermost)
    return tuple(Excerpt(first, tuple(rows[first - 1 : last])) for first, last in sorted(chosen))
