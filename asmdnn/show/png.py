"""A scene as a PNG file, by matplotlib, which is asked for only here."""

from asmdnn.errors import Unimplemented
from asmdnn.forking import importing
from asmdnn.show.picture import GAP, PADDING, Bar, Scene

DOTS_PER_INCH = 96  # a pixel of the scene is a pixel of the file
POINTS_PER_PIXEL = 72 / DOTS_PER_INCH
_HATCHED = {PADDING: ("#f1f2f5", "////"), GAP: ("#ffffff", "...")}


def write_png(scene: Scene, path: str) -> None:
    """Raises Unimplemented without matplotlib, OSError if the file cannot be written."""
    try:
        with importing():
            from matplotlib.figure import Figure
            from matplotlib.patches import Rectangle
    except ImportError:
        raise Unimplemented("PNG needs matplotlib: pip install matplotlib, or write a .svg") from None
    figure = Figure((scene.width / DOTS_PER_INCH, scene.height / DOTS_PER_INCH), dpi=DOTS_PER_INCH, facecolor="white")
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0, scene.width), ylim=(scene.height, 0))
    axes.set_axis_off()
    for shape in scene.shapes:
        if isinstance(shape, Bar):
            fill, hatch = _HATCHED.get(shape.fill, (shape.fill, None))
            edge = "white" if hatch is None else "#b9bfcc"
            corner = (shape.x, shape.y)
            axes.add_patch(Rectangle(corner, shape.width, shape.height, fc=fill, ec=edge, hatch=hatch, lw=0.7))
        else:
            align = {"start": "left", "middle": "center", "end": "right"}[shape.anchor]
            axes.text(
                shape.x, shape.y, shape.text.replace("$", r"\$"), ha=align, va="baseline", color=shape.colour,
                fontsize=shape.size * POINTS_PER_PIXEL, weight="bold" if shape.bold else "normal",
                family="monospace" if shape.code else "sans-serif",
            )  # fmt: skip
    figure.savefig(path, format="png", dpi=DOTS_PER_INCH)
