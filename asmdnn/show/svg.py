"""A scene as an SVG document."""

from collections.abc import Iterator
from xml.sax.saxutils import escape

from asmdnn.show.picture import FAINT, GAP, INK, PADDING, Bar, Caption, Scene

_HEAD = f"""<defs>
<pattern id="padding" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="6" height="6" fill="#f1f2f5"/><rect width="1.2" height="6" fill="#b9bfcc"/></pattern>
<pattern id="gap" width="5" height="5" patternUnits="userSpaceOnUse">
<rect width="5" height="5" fill="#fff"/><circle cx="2.5" cy="2.5" r=".8" fill="#b9bfcc"/></pattern>
</defs>
<style>
rect.b {{ stroke: #fff; stroke-width: 1 }}
text {{ fill: {INK}; font-family: system-ui, 'DejaVu Sans', sans-serif }}
text.c {{ font-family: ui-monospace, 'DejaVu Sans Mono', monospace }}
</style>
<rect width="100%" height="100%" fill="#fff"/>"""


def svg_of(scene: Scene) -> str:
    """The document, which needs no other file and no script."""
    width, height = (f"{side:.0f}" for side in (scene.width, scene.height))
    start = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    return "\n".join((start, _HEAD, *_shapes(scene), "</svg>\n"))


def _shapes(scene: Scene) -> Iterator[str]:
    for shape in scene.shapes:
        yield _box(shape) if isinstance(shape, Bar) else _words(shape)


def _box(box: Bar) -> str:
    fill = f"url({box.fill})" if box.fill in (PADDING, GAP) else box.fill
    place = f'x="{_short(box.x)}" y="{_short(box.y)}" width="{_short(box.width)}" height="{_short(box.height)}"'
    return f'<rect class="b" {place} fill="{fill}"/>'


def _words(words: Caption) -> str:
    style = f'font-size="{words.size:g}"'
    if words.anchor != "start":
        style += f' text-anchor="{words.anchor}"'
    if words.colour == FAINT:
        style += f' style="fill: {FAINT}"'
    if words.bold:
        style += ' font-weight="600"'
    kind = ' class="c"' if words.code else ""
    return f'<text{kind} x="{_short(words.x)}" y="{_short(words.y)}" {style}>{escape(words.text)}</text>'


def _short(pixels: float) -> str:
    return f"{pixels:.2f}".rstrip("0").rstrip(".")
