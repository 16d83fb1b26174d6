"""The page: head, overview, schedule, kernels; style and script are files beside this one, copied into it."""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from asmdnn.explain.html.kernel import kernel_section
from asmdnn.explain.html.python import source_pane
from asmdnn.explain.html.schedule import schedule_section
from asmdnn.explain.model import Explanation

_HERE = Path(__file__).parent
_MARKS = {"chosen": "✓", "accepted": "·", "refused": "✕"}


def html_of(explanation: Explanation, kernels: Sequence[int]) -> str:
    """The whole document; `kernels` are the numbers of those whose listings are in it."""
    script = (_HERE / "script.js").read_text(encoding="utf-8")
    title = escape(explanation.problem)
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title} · asmdnn explain</title>\n<style>\n{style()}</style>\n</head>\n<body>",
        *_head(explanation),
        "<main>",
        *_overview(explanation),
        *schedule_section(explanation),
        *_kernels(explanation, kernels),
        f"</main>\n<script>\n{script}</script>\n</body>\n</html>\n",
    ]
    return "\n".join(parts)


def style() -> str:
    """The style sheet, which pages of networks have, too."""
    return (_HERE / "style.css").read_text(encoding="utf-8")


def _head(explanation: Explanation) -> Iterator[str]:
    driver, _, problem = explanation.problem.rpartition(" ")
    yield f'<header><div><p class="eyebrow">asmdnn explain {escape(driver)}</p><h1>{escape(problem)}</h1></div>'
    yield '<nav><a href="#overview">Overview</a><a href="#schedule">Schedule</a><a href="#kernels">Kernels</a>'
    yield '<button id="theme" type="button" aria-label="light or dark" title="light or dark">◐</button></nav></header>'


def _overview(explanation: Explanation) -> Iterator[str]:
    yield '<section id="overview"><h2>Overview</h2>'
    yield f'<p class="lead">{escape(explanation.description)}</p>'
    yield '<div class="columns"><div><h3>Buffers</h3><table><thead><tr><th>name<th>kind<th>format<th class="n">bytes'
    yield "</thead><tbody>"
    for buffer in explanation.buffers:
        yield (
            f"<tr><td><b>{escape(buffer.name)}</b><td>{buffer.kind}<td><code>{escape(buffer.format)}</code>"
            f'<td class="n">{buffer.size_bytes:,}'
        )
    yield '</tbody></table></div><div><h3>Dispatch</h3><ol class="dispatch">'
    for entry in explanation.implementations:
        reason = f"<span>{escape(entry.reason)}</span>" if entry.reason else ""
        yield f'<li class="{entry.verdict}"><i>{_MARKS[entry.verdict]}</i><b>{escape(entry.name)}</b>'
        yield f"<em>{entry.verdict}</em>{reason}</li>"
    yield "</ol></div></div></section>"


def _kernels(explanation: Explanation, kernels: Sequence[int]) -> Iterator[str]:
    yield '<section id="kernels"><h2>Kernels</h2><div class="tabs" role="tablist">'
    for number, kernel in enumerate(explanation.kernels):
        if number in kernels:
            yield (
                f'<button type="button" role="tab" data-kernel="{number}"><b>{number}</b>'
                f"<span>{escape(kernel.name)}</span></button>"
            )
    yield "</div>"
    yield '<div class="views">'
    for number in kernels:
        yield from kernel_section(explanation, number)
    yield "</div>"
    yield source_pane(explanation)
    yield "</section>"
