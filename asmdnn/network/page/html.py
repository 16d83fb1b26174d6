"""The page of a network: overview, the arena as a picture, a row for each primitive; style and script are copied in."""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from asmdnn.errors import InvalidArguments, shown
from asmdnn.explain.html.page import style
from asmdnn.network.compiled import CompiledSegment
from asmdnn.network.joining.barriers import barriers
from asmdnn.network.page.model import PhaseRow, PrimitiveRow, rows_of
from asmdnn.network.page.picture import arena_picture, in_units
from asmdnn.network.planned import NetworkPlan
from asmdnn.network.report import listing

_HERE = Path(__file__).parent
HEADS = '<th>#<th>operators<th>primitive<th>result<th class="n">reads<th class="n">writes<th class="n">cycles'


def html_of(planned: NetworkPlan, seconds: Sequence[Sequence[float]] | None, title: str = "") -> str:
    """The whole document.  seconds: of each primitive, by parts, if they were measured.  title: what it is headed by,
    such as a file's name; default: the model's."""
    if not isinstance(title, str):
        raise InvalidArguments(f"title must be a text, not {shown(title)}")
    own, script = ((_HERE / name).read_text(encoding="utf-8") for name in ("style.css", "script.js"))
    title = escape(title or planned.model.body.name)
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title} · asmdnn explain</title>\n<style>\n{style()}{own}</style>\n</head>\n<body>",
        f'<header><div><p class="eyebrow">asmdnn explain, {escape(planned.engine.isa)}, {threads_of(planned)}</p>',
        f'<h1>{title}</h1></div><nav><a href="#overview">Overview</a>',
        '<button id="theme" type="button" aria-label="light or dark" title="light or dark">◐</button></nav></header>',
        "<main>",
        *overview(planned),
    ]
    for number, segment in enumerate(planned.segments):
        measured = seconds[number] if seconds else []
        if isinstance(segment, CompiledSegment):
            parts += native_section(number, segment, measured)
        else:
            reasons = [(group.label, planned.refused[group.label]) for group in segment.groups]
            parts += numpy_section(number, reasons, measured)
    parts.append(f"</main>\n<script>\n{script}</script>\n</body>\n</html>\n")
    return "\n".join(parts)


def threads_of(planned: NetworkPlan) -> str:
    threads = planned.engine.threads
    return "1 thread" if threads == 1 else f"{threads} threads"


def overview(planned: NetworkPlan) -> Iterator[str]:
    """Inputs, outputs, and what became of the nodes."""
    graph, nodes = planned.graph, planned.model.body.nodes
    native = [segment for segment in planned.segments if isinstance(segment, CompiledSegment)]
    steps = [step for segment in native for step in segment.steps]
    reorders = sum(step.is_reorder for step in steps)
    yield '<section id="overview"><h2>Overview</h2>'
    yield f'<p class="lead">{len(nodes):,} nodes of the model; {len(graph.nodes):,} are left for these dims and '
    yield f"constants; {len(steps)} primitives compute them, {reorders} of them reorders.</p>"
    yield f"<table><tbody><tr><td>inputs<td><code>{escape(listing(graph, graph.inputs))}</code>"
    yield f"<tr><td>outputs<td><code>{escape(listing(graph, graph.outputs))}</code></tbody></table></section>"


def numpy_section(number: int, reasons: Sequence[tuple[str, str]], seconds: Sequence[float]) -> Iterator[str]:
    """Nodes that numpy computes, and why.  seconds: of each, or none."""
    yield f'<section><h2>Part {number}: in numpy</h2><ul class="dispatch">'
    for i, (label, reason) in enumerate(reasons):
        took = f", {seconds[i] * 1e6:,.1f} µs" if seconds else ""
        yield f'<li class="refused"><i>✕</i><b>{escape(label)}</b><span>{escape(reason)}{took}</span></li>'
    yield "</ul></section>"


def native_section(number: int, segment: CompiledSegment, seconds: Sequence[float]) -> Iterator[str]:
    """One native call: its memory, its primitives."""
    plan, layout = segment.plan, segment.layout
    values = sum(segment.joined.plan.scratch_bytes[name] for name in layout.arena)
    stand, every = barriers(segment.steps, plan.phases)
    yield f'<section><h2>Part {number}: one native call</h2><p class="lead">{len(plan.phases)} phases, '
    yield f"{stand} of {every} barriers, {len(plan.specs)} kernels, {plan.cycles:,} cycles expected on one "
    yield f"thread; weights {in_units(layout.weights_bytes)}.</p><h3>Arena <small>{len(layout.arena)} values of "
    yield f"{in_units(values)} share {in_units(layout.arena_bytes)}</small></h3>"
    yield '<div class="pane">'
    yield from arena_picture(segment)
    yield "</div>"
    yield '<p class="facts">A box is a value: from the phase that touches it first to the last one, at its bytes of '
    yield "the arena. Below are numbers of primitives.</p>"
    yield from table(rows_of(segment, seconds))
    yield "</section>"


def table(rows: Sequence[PrimitiveRow]) -> Iterator[str]:
    """A row for each primitive, with its phases and kernels folded in."""
    is_measured = all(row.seconds is not None for row in rows)
    measured = '<th class="n">µs' if is_measured else ""
    yield '<h3>Primitives <small>choose a heading to sort by it</small></h3><div class="pane">'
    yield f"<table class='steps'><thead><tr>{HEADS}{measured}<th>share</thead><tbody>"
    cycles, seconds = sum(row.cycles for row in rows), sum(row.seconds or 0 for row in rows)
    most = max((max(shares_of(row, cycles, seconds)) for row in rows), default=0) or 1  # bars are scaled to the largest
    for row in rows:
        shares = shares_of(row, cycles, seconds)
        nodes = f"<details><summary>{escape(row.label)}</summary>{''.join(inner(row))}</details>"
        yield f'<tr data-step="{row.number}"><td>{row.number}<td>{nodes}<td><code>{escape(row.implementation)}</code>'
        yield f"<td><code>{escape(row.result)}</code><td class='n'>{in_units(row.read_bytes)}"
        yield f"<td class='n'>{in_units(row.written_bytes)}<td class='n'>{row.cycles:,}"
        if is_measured:
            yield f"<td class='n'>{(row.seconds or 0) * 1e6:,.1f}"
        bars = "".join(f'<i style="width:{share / most:.1%}"></i>' for share in shares)
        words = ", ".join(f"{share:.1%} {of}" for share, of in zip(shares, ("expected", "measured"), strict=False))
        yield f'<td title="{words}"><span class="share">{bars}</span>'
    yield "</tbody></table></div>"


def shares_of(row: PrimitiveRow, cycles: int, seconds: float) -> list[float]:
    """Of all expected cycles, and of the seconds if they were measured."""
    return [row.cycles / max(cycles, 1), *([row.seconds / seconds] if row.seconds is not None and seconds else [])]


def inner(row: PrimitiveRow) -> Iterator[str]:
    """What a row folds in: nodes, phases, kernels."""
    nodes = ", ".join(map(escape, row.nodes)) or "a reorder between formats"
    yield f'<p class="inner">{nodes}</p>'
    for phase in row.phases:
        yield f'<p class="inner">{phase_words(phase)}</p>'


def phase_words(phase: PhaseRow) -> str:
    kernels = ", ".join(f"{calls:,} x <code>{escape(name)}</code>" for name, calls in phase.kernels)
    return f"phase {phase.number}: {phase.how}; {phase.records:,} records, {phase.cycles:,} cycles: {kernels}"
