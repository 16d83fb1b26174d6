"""The schedule on the page: phases, kernels and threads as tables, and tiles over the output as inline SVG."""

import json
from collections.abc import Iterator
from html import escape

import numpy as np

from asmdnn.explain.html.colours import hue
from asmdnn.explain.model import DrawnPhase, Explanation, Plane

SIDE_PIXELS = 460.0
LARGEST_CELL, MARGIN = 34.0, 26.0
OPEN_PHASES = 2


def schedule_section(explanation: Explanation) -> Iterator[str]:
    yield f'<section id="schedule"><h2>Schedule</h2><p class="lead">{_lead(explanation)}</p>'
    for number, phase in enumerate(explanation.phases):
        yield from _phase(explanation, number, phase)
    yield "</section>"


def _lead(explanation: Explanation) -> str:
    records = sum(phase.records for phase in explanation.phases)
    cycles = sum(phase.cycles for phase in explanation.phases)
    parts = len(explanation.phases[0].threads)
    threads = "1 thread" if parts == 1 else f"{parts} threads"
    phases = "1 phase" if len(explanation.phases) == 1 else f"{len(explanation.phases)} phases"
    return f"{records:,} kernel calls in {phases}, {cycles:,} cycles expected, on {threads}."


def _phase(explanation: Explanation, number: int, phase: DrawnPhase) -> Iterator[str]:
    of = f"{phase.records:,} records; {phase.start}"
    opened = " open" if number < OPEN_PHASES else ""
    yield f'<details class="phase"{opened}><summary>Phase {number} <small>{of}</small></summary>'
    yield '<div class="columns"><div>'
    yield '<table><thead><tr><th><th>kernel<th class="n">records<th class="n">cycles</thead><tbody>'
    for use in phase.kernels:
        name = escape(explanation.kernels[use.kernel].name)
        yield (
            f'<tr><td><i class="swatch" style="--h:{hue(use.kernel)}"></i>'
            f'<td><a href="#kernel{use.kernel}" data-open="{use.kernel}"><b>{use.kernel}</b> <code>{name}</code></a>'
            f'<td class="n">{use.records:,}<td class="n">{use.cycles:,}'
        )
    yield "</tbody></table>"
    yield '<table><thead><tr><th><th>thread<th class="n">records<th class="n">cycles</thead><tbody>'
    for part in phase.threads:
        yield (
            f'<tr><td><i class="swatch" style="--h:{hue(part.thread)}"></i><td>{part.thread}'
            f'<td class="n">{part.begin:,} &ndash; {part.end - 1:,}<td class="n">{part.cycles:,}'
        )
    arguments = ", ".join(f"<code>{escape(name)}</code>" for name in phase.arguments)
    yield f'</tbody></table><p class="facts">The frame of a call: {arguments}.</p></div><div>'
    if phase.plane:
        yield from _picture(number, phase.plane)
    else:
        yield '<p class="facts">No picture: this phase writes scratch, or more tiles than can be drawn.</p>'
    yield "</div></div></details>"


def _picture(number: int, plane: Plane) -> Iterator[str]:
    """Shapes as groups of tiles; the script colours them for the block that is chosen, the first one to begin with."""
    cell = min(SIDE_PIXELS / max(plane.rows, plane.columns), LARGEST_CELL)
    cell_height = max(cell, 24.0 if plane.rows == 1 else 0.0)
    width, height = plane.columns * cell + MARGIN + 2, plane.rows * cell_height + MARGIN + 2
    of = f", {plane.of}" if plane.of else ""
    blocks = [{"n": b.name, "s": b.shape, "r": b.records, "k": b.kernels, "t": b.threads} for b in plane.blocks]
    last = len(blocks) - 1
    slider = f'<input type="range" min="0" max="{last}" value="0" aria-label="block">' if last else ""
    yield '<figure class="plane"><div class="bar"><span class="switch" role="group" aria-label="colour by">'
    for by in ("kernel", "thread", "order"):
        yield f'<button type="button" data-by="{by}">{by}</button>'
    yield f"</span>{slider}<output>{escape(blocks[0]['n'])}</output></div>"  # type: ignore[arg-type]
    yield (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" role="img" '
        f'aria-label="tiles over {escape(plane.tensor)}">'
    )
    middle = MARGIN + plane.columns * cell / 2
    yield f'<text x="{middle:.1f}" y="14" class="axis">{plane.axes[1]} {plane.columns}</text>'
    if plane.axes[0]:
        middle = MARGIN + plane.rows * cell_height / 2
        yield (
            f'<text class="axis" transform="translate(14 {middle:.1f}) rotate(-90)">{plane.axes[0]} {plane.rows}</text>'
        )
    yield f'<g transform="translate({MARGIN:g} {MARGIN:g}) scale({cell:.4f} {cell_height:.4f})">'
    for index in range(len(plane.shapes)):
        yield _shape(plane, index)
    yield "</g></svg>"
    yield f"<figcaption>Tiles over <code>{escape(plane.tensor)}</code>{of}: a tile is what one kernel call writes "
    yield f'of each plane {plane.axes[0]} &times; {plane.axes[1]}.<span class="tip"></span></figcaption>'
    data = json.dumps({"phase": number, "blocks": blocks}, separators=(",", ":")).replace("</", "<\\/")
    yield f'<script type="application/json">{data}</script></figure>'


def _shape(plane: Plane, index: int) -> str:
    """A path for each tile, and one for all borders between tiles."""
    runs = plane.shapes[index]
    tiles: dict[int, list[str]] = {}
    grid = np.full((plane.rows, plane.columns), -1)
    for run in runs:
        tiles.setdefault(run.tile, []).append(f"M{run.begin} {run.row}h{run.end - run.begin}v1H{run.begin}z")
        grid[run.row, run.begin : run.end] = run.tile
    block = next(b for b in plane.blocks if b.shape == index)
    paths = "".join(
        f'<path class="t" data-t="{tile}" style="--h:{hue(block.kernels[tile])}" d="{"".join(parts)}"/>'
        for tile, parts in tiles.items()
    )
    hidden = "" if index == 0 else " hidden"
    return f'<g class="shape" data-shape="{index}"{hidden}>{paths}<path class="edges" d="{_edges(grid)}"/></g>'


def _edges(grid: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]") -> str:
    """Lines between different neighbours, joined while they go on, and the frame."""
    rows, columns = grid.shape
    out = [f"M0 0H{columns}V{rows}H0z"]
    upright = grid[:, 1:] != grid[:, :-1]
    level = grid[1:] != grid[:-1]
    out += [f"M{x + 1} {a}V{b}" for x in range(columns - 1) for a, b in _spans(upright[:, x])]
    out += [f"M{a} {y + 1}H{b}" for y in range(rows - 1) for a, b in _spans(level[y])]
    return "".join(out)


def _spans(flags: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]") -> list[tuple[int, int]]:
    """The runs of True."""
    steps = np.diff(np.concatenate(([0], flags.astype(np.int8), [0])))
    return list(zip(np.flatnonzero(steps == 1).tolist(), np.flatnonzero(steps == -1).tolist(), strict=True))
