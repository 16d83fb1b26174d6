"""A memory layout as a picture: a scene of rectangles and words, which svg.py and png.py write down.

Every cell is an element at its place in the storage, with its index in it.  Colours tell the index of one dim, the
blocked one or else the channel, so that layouts of one tensor can be compared at a glance.
"""

import colorsys

from asmdnn.memory.desc import MemoryDesc
from asmdnn.records import dataclass, field
from asmdnn.show.captions import summary_of, title_of
from asmdnn.show.walk import Index, Limits, Page, Panel, element_at, page_of

LIMITS = Limits(columns=20, rows=24, panels=6)
MAX_WIDTH = 1750.0  # panels side by side, as long as they fit
STRIP_ELEMENTS, STRIP_WIDTH = 240, 960.0
MARGIN, CELL_HEIGHT, OFFSET_WIDTH, GAP_WIDTH = 24.0, 20.0, 48.0, 22.0
TITLE_SIZE = 13.0
CHARACTER_WIDTH = 6.5  # of the 10.5 px monospaced font of cells

INK, FAINT, PADDING, GAP = "#1f2430", "#77809a", "#padding", "#gap"  # the last two are hatchings, not colours


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle; `fill` is a colour, PADDING or GAP."""

    x: float
    y: float
    width: float
    height: float
    fill: str


@dataclass(frozen=True, slots=True)
class Caption:
    """A line of text whose baseline starts, is centred, or ends at (x, y); code is monospaced."""

    x: float
    y: float
    text: str
    anchor: str = "start"  # or "middle", "end"
    size: float = 10.5
    colour: str = INK
    code: bool = True
    bold: bool = False


@dataclass(slots=True)
class Scene:
    """Shapes, later ones over earlier ones, and the size of the sheet in pixels."""

    width: float = 0.0
    height: float = 0.0
    shapes: list[Bar | Caption] = field(default_factory=list)

    def add(self, *shapes: Bar | Caption) -> None:
        self.shapes += shapes
        for shape in shapes:
            if isinstance(shape, Bar):
                right, bottom = shape.x + shape.width, shape.y + shape.height
            else:
                length = len(shape.text) * shape.size * 0.6
                right, bottom = shape.x + length * {"start": 1, "middle": 0.5, "end": 0}[shape.anchor], shape.y
            self.width, self.height = max(self.width, right + MARGIN), max(self.height, bottom + MARGIN)


def scene_of(desc: MemoryDesc, names: str | None = None) -> Scene:
    """The picture of `desc`; `names` are letters for its dims.  Raises InvalidArguments."""
    page = page_of(desc, LIMITS, names)
    scene = Scene()
    y = _heading(scene, page)
    if not desc.may_overlap:
        y = _strip(scene, page, y)
    y = _panels(scene, page, y)
    _legend(scene, page, y)
    return scene


def coloured_dim(page: Page) -> int:
    """The dim that colours show."""
    inner = page.desc.inner_blocks
    return inner[-1][0] if inner else min(1, page.desc.ndims - 1)


def colour_of(page: Page, index: Index | None) -> str:
    """Once around the colour wheel for the whole dim, from red to violet; hatched where there is no element."""
    if index is None:
        return GAP
    if page.is_padding(index):
        return PADDING
    dim = coloured_dim(page)
    hue = 0.83 * index[dim] / max(1, page.desc.dims[dim] - 1)
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue, 0.80, 0.85))


def _heading(scene: Scene, page: Page) -> float:
    first, formula, *others = summary_of(page)
    scene.add(Caption(MARGIN, 38, first, size=20, bold=True), Caption(MARGIN, 62, formula, size=14))
    scene.add(*(Caption(MARGIN, 84 + 18 * i, line, size=13, colour=FAINT, code=False) for i, line in enumerate(others)))
    return 84 + 18 * len(others) + 6


def _strip(scene: Scene, page: Page, y: float) -> float:
    """The first elements of the storage in one line, as memory is; equal neighbours share a box."""
    first, total = page.desc.offset0, page.desc.size_bytes // page.desc.dtype.size_bytes
    count = min(STRIP_ELEMENTS, total - first)
    width = STRIP_WIDTH / max(count, 64)
    fills = [colour_of(page, element_at(page, first + i)) for i in range(count)]
    start = 0
    for end in range(1, count + 1):
        if end == count or fills[end] != fills[start]:
            scene.add(Bar(MARGIN + start * width, y + 16, (end - start) * width, 22, fills[start]))
            start = end
    step = max(8, count // 6 // 8 * 8)
    for i in range(0, count, step):
        scene.add(Caption(MARGIN + i * width, y + 51, f"{first + i}", size=10, colour=FAINT))
    which = "the whole storage" if first + count == total else f"{count} of {total} elements of the storage"
    dim = page.names[coloured_dim(page)]
    scene.add(Caption(MARGIN, y + 10, f"{which}, as it lies in memory; colours are {dim}", size=12, code=False))
    return y + 76


def _panels(scene: Scene, page: Page, y: float) -> float:
    """Panels from left to right and top to bottom: a line has all values of the innermost panel axis, if they fit."""
    shown = [panel for panel in page.panels if panel]
    indices = [index for panel in shown for row in panel.rows if row for index in row.indices]
    cell = max(26.0, max(len(_label(page, index)) for index in indices) * CHARACTER_WIDTH + 10)
    columns = max(len(row.indices) for panel in shown for row in panel.rows if row)
    has_gap = any(row.gap for panel in shown for row in panel.rows if row)
    title_width = max(len(title_of(page, panel)) for panel in shown) * TITLE_SIZE * 0.65
    width = OFFSET_WIDTH + max(columns * cell + has_gap * (GAP_WIDTH + 4), title_width) + MARGIN
    in_line = page.panel_axes[-1].size if page.panel_axes else 1
    if in_line * width > MAX_WIDTH or in_line > len(page.panels):
        in_line = max(1, int(MAX_WIDTH // width))
    bottom = y
    for slot, panel in enumerate(page.panels):
        x = MARGIN + slot % in_line * width
        y = bottom if slot % in_line == 0 else y
        if panel is None:
            scene.add(Caption(x + width / 2, y + 60, "...", "middle", size=20, colour=FAINT))
        else:
            bottom = max(bottom, _panel(scene, page, panel, (x, y), cell))
    return bottom


def _label(page: Page, index: Index | None) -> str:
    if index is None:
        return "..."
    return "0" if page.is_padding(index) else ",".join(map(str, index))


def _panel(scene: Scene, page: Page, panel: Panel, corner: tuple[float, float], cell: float) -> float:
    """The rows of a panel from a corner on; returns where the next panel may begin below."""
    x, y = corner
    left, y = x + OFFSET_WIDTH, y + 14
    if title := title_of(page, panel):
        scene.add(Caption(left, y, title, size=TITLE_SIZE, bold=True))
        y += 16
    for number, row in enumerate(panel.rows):
        if row is None:
            scene.add(Caption(left + 4, y + 14, "...", size=14, colour=FAINT))
            y += CELL_HEIGHT
            continue
        if number == 0:
            heads = [0 if index is None else page.desc.offset(index) - row.offset for index in row.indices]
            texts = ["" if index is None else f"+{head}" for index, head in zip(row.indices, heads, strict=True)]
            scene.add(*(Caption(left + (i + 0.5) * cell, y, text, "middle", 10, FAINT) for i, text in enumerate(texts)))
            y += 5
        scene.add(Caption(left - 6, y + 14, f"{row.offset}", "end", 10.5, FAINT))
        for i, index in enumerate(row.indices):
            if index is not None:
                scene.add(Bar(left + i * cell, y, cell, CELL_HEIGHT, colour_of(page, index)))
            colour = FAINT if index is None or page.is_padding(index) else INK
            scene.add(Caption(left + (i + 0.5) * cell, y + 14, _label(page, index), "middle", colour=colour))
        if row.gap:
            at = left + len(row.indices) * cell + 4
            scene.add(Bar(at, y, GAP_WIDTH, CELL_HEIGHT, GAP))
            scene.add(Caption(at + GAP_WIDTH / 2, y + 14, f"{row.gap}", "middle", 9, FAINT))
        y += CELL_HEIGHT
    return y + 22


def _legend(scene: Scene, page: Page, y: float) -> None:
    index, offset = ",".join(page.names), "the number left of a row, plus that over the column"
    line = f"A cell is an element, with its index {index} in it. Its offset is {offset}."
    scene.add(Caption(MARGIN, y, line, size=12, code=False))
    if page.desc.has_padding:
        scene.add(Bar(MARGIN, y + 12, 26, 16, PADDING), Caption(MARGIN + 13, y + 24, "0", "middle", colour=FAINT))
        scene.add(Caption(MARGIN + 34, y + 24, "padding: allocated, always zero, no element", size=12, code=False))
        y += 22
    if any(shape.fill == GAP for shape in scene.shapes if isinstance(shape, Bar)):
        scene.add(Bar(MARGIN, y + 12, 26, 16, GAP))
        text = "skipped: storage that belongs to no element of this tensor, and how many elements of it"
        scene.add(Caption(MARGIN + 34, y + 24, text, size=12, code=False))
