"""A chart as an SVG document or a PNG file; PNG by matplotlib, which is asked for only here."""

from collections.abc import Sequence
from xml.sax.saxutils import escape

from asmdnn.analyze.chart import HEIGHT, WIDTH, Marker, Polyline, Shape
from asmdnn.errors import Unimplemented

DOTS_PER_INCH = 144
PIXELS_PER_INCH = 96
_FAMILY = "system-ui, 'DejaVu Sans', sans-serif"


def svg_of(shapes: Sequence[Shape]) -> str:
    """The document, which needs no other file and no script."""
    size = f'width="{WIDTH:g}" height="{HEIGHT:g}" viewBox="0 0 {WIDTH:g} {HEIGHT:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{_FAMILY}">'
    background = '<rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join([head, background, *map(_svg, shapes), "</svg>\n"])


def _svg(shape: Shape) -> str:
    if isinstance(shape, Polyline):
        points = " ".join(f"{x:g},{y:g}" for x, y in shape.points)
        dashes = ' stroke-dasharray="3 3"' if shape.dashed else ""
        return (
            f'<polyline points="{points}" fill="none" stroke="{shape.colour}" stroke-width="{shape.width:g}"{dashes}/>'
        )
    if isinstance(shape, Marker):
        fill = shape.colour if shape.filled else "#fff"
        place = f'cx="{shape.x:g}" cy="{shape.y:g}" r="{shape.radius:g}"'
        return f'<circle {place} fill="{fill}" stroke="{shape.colour}" stroke-width="1.5"/>'
    turn = f' transform="rotate({-shape.angle:g} {shape.x:g} {shape.y:g})"' if shape.angle else ""
    weight = ' font-weight="600"' if shape.bold else ""
    return (
        f'<text x="{shape.x:g}" y="{shape.y:g}" font-size="{shape.size:g}" fill="{shape.colour}" '
        f'text-anchor="{shape.anchor}"{weight}{turn}>{escape(shape.text)}</text>'
    )


def write_png(shapes: Sequence[Shape], path: str) -> None:
    """Raises Unimplemented without matplotlib, OSError if the file cannot be written."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.patches import Circle
    except ImportError:
        raise Unimplemented("PNG needs matplotlib: pip install matplotlib, or use --svg=FILE") from None
    figure = Figure((WIDTH / PIXELS_PER_INCH, HEIGHT / PIXELS_PER_INCH), dpi=DOTS_PER_INCH, facecolor="white")
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0, WIDTH), ylim=(HEIGHT, 0))
    axes.set_axis_off()
    points = 72 / PIXELS_PER_INCH  # a pixel in points
    for shape in shapes:
        if isinstance(shape, Polyline):
            style = "dashed" if shape.dashed else "solid"
            axes.plot(*zip(*shape.points, strict=True), color=shape.colour, lw=shape.width * points, ls=style)
        elif isinstance(shape, Marker):
            fill = shape.colour if shape.filled else "white"
            axes.add_patch(Circle((shape.x, shape.y), shape.radius, fc=fill, ec=shape.colour, lw=1.2, zorder=3))
        else:
            align = {"start": "left", "middle": "center", "end": "right"}[shape.anchor]
            axes.text(
                shape.x, shape.y, shape.text.replace("$", r"\$"), ha=align, va="baseline", color=shape.colour,
                fontsize=shape.size * points, weight="bold" if shape.bold else "normal", rotation=shape.angle,
                rotation_mode="anchor",
            )  # fmt: skip
    figure.savefig(path, format="png", dpi=DOTS_PER_INCH)
