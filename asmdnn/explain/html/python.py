"""The source pane: the functions that emitted instructions, line by line, with Python's words coloured."""

import builtins
import io
import keyword
import textwrap
import tokenize
from collections.abc import Iterator
from html import escape

from asmdnn.explain.model import Excerpt, Explanation

_BUILTINS = frozenset(dir(builtins))
_CLASSES = {tokenize.STRING: "s", tokenize.COMMENT: "c", tokenize.NUMBER: "m"}


def source_pane(explanation: Explanation) -> str:
    """One pane for all kernels; a line's id is l<file>-<number>, as instructions refer to it."""
    return "\n".join(_pane(explanation))


def _pane(explanation: Explanation) -> Iterator[str]:
    yield '<aside id="source" aria-label="Python source">'
    for number, source in enumerate(explanation.sources):
        yield f'<h4>{escape(source.name)}</h4><div class="code">'
        for i, excerpt in enumerate(source.excerpts):
            if i:
                yield '<div class="gap">⋯</div>'
            for line, code in enumerate(coloured(excerpt), excerpt.first):
                yield f'<div class="l" id="l{number}-{line}"><i></i><u>{line}</u><code>{code}</code></div>'
        yield "</div>"
    yield "</aside>"


def coloured(excerpt: Excerpt) -> list[str]:
    """The lines as HTML; what cannot be read as Python stays uncoloured."""
    text = textwrap.dedent("\n".join(excerpt.lines))
    lines = text.split("\n")
    marks: dict[int, list[tuple[int, int, str]]] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            kind = _CLASSES.get(token.type, "")
            if token.type == tokenize.NAME:
                kind = "k" if keyword.iskeyword(token.string) else "b" if token.string in _BUILTINS else ""
            elif token.type not in _CLASSES and tokenize.tok_name[token.type].startswith("FSTRING"):
                kind = "s"
            if kind:
                _mark(marks, lines, token, kind)
    except (tokenize.TokenError, SyntaxError):
        marks.clear()
    return [_html(line, marks.get(row, [])) for row, line in enumerate(lines, 1)]


def _mark(marks: dict[int, list[tuple[int, int, str]]], lines: list[str], token: tokenize.TokenInfo, kind: str) -> None:
    """A token may span lines: a docstring."""
    (first, begin), (last, end) = token.start, token.end
    for row in range(first, last + 1):
        left, right = begin if row == first else 0, end if row == last else len(lines[row - 1])
        marks.setdefault(row, []).append((left, right, kind))


def _html(line: str, marks: list[tuple[int, int, str]]) -> str:
    out, here = [], 0
    for begin, end, kind in marks:
        out.append(f'{escape(line[here:begin])}<span class="{kind}">{escape(line[begin:end])}</span>')
        here = end
    return "".join([*out, escape(line[here:])])
