"""The page: the variants as JSON, and a script that draws the one that is chosen; it needs no other file."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Final

from asmdnn.explain.html.page import style
from asmdnn.network.studio.variants import Variant

_HERE: Final = Path(__file__).parent
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · asmdnn studio</title>
<style>
{style}</style>
</head>
<body>
<header><div><p class="eyebrow">asmdnn studio</p><h1>{title}</h1></div>
<nav><button id="theme" type="button" aria-label="light or dark" title="light or dark">◐</button></nav></header>
<main>
<section id="choice" aria-label="what the network is planned for"></section>
<section id="summary" aria-live="polite"></section>
<div class="halves">
<section id="graph"><h2>Graph</h2><p class="facts">A box is a primitive; the bar is its share of the expected time.
Choose one to see its kernels.</p><div class="pane" id="drawing"></div></section>
<section id="details"></section>
</div>
<section id="arena"><h2>Arena</h2><p class="facts">A box is a value: from the step that writes it to the last one that
reads it, at its bytes.</p><div class="pane" id="memory"></div></section>
<section><h2>Primitives</h2><p class="facts">Choose a heading to sort by it.</p><div class="pane" id="table"></div>
</section>
<section><h2>Kernels</h2><div class="pane" id="kernels"></div></section>
<p class="facts">Cycles are what the planners expect, not measurements: of the thread that has most to do, without what
barriers take. They compare plans of one network; a CPU may take more or less.</p>
</main>
<script id="variants" type="application/json">{data}</script>
<script>
{script}</script>
</body>
</html>
"""


def html_of(title: str, variants: Sequence[Variant]) -> str:
    """The whole document.  title: what it is headed by, such as the file's name."""
    own, script = ((_HERE / name).read_text(encoding="utf-8") for name in ("studio.css", "studio.js"))
    data = json.dumps([asdict(each) for each in variants], separators=(",", ":"), allow_nan=False)
    # "<" begins nothing inside the data, whatever names a model has
    return _PAGE.format(title=escape(title), style=style() + own, data=data.replace("<", "\\u003c"), script=script)
