"""A memory layout as text: a line for each row of the storage, with the indices of the elements in it."""

from collections.abc import Iterator

from asmdnn.memory.desc import MemoryDesc
from asmdnn.show.captions import summary_of
from asmdnn.show.walk import ElementRow, Limits, Page, Panel, page_of

LIMITS = Limits(columns=20, rows=24, panels=6)
PADDING = "-"
LEFT_OUT = "..."


def layout(desc: MemoryDesc, names: str | None = None) -> str:
    """The layout of `desc` as text, block by block: which index lies at which offset; large tensors are abbreviated.

    `names` are letters for the dims, such as "tnc"; the alias tells them otherwise.  Raises InvalidArguments.
    Each line has the offset of its first element, the indices of the dims that the line has in common, and the index
    of each element in the dim that varies along it.
    """
    page = page_of(desc, LIMITS, names)
    fixed = [dim for dim in range(desc.ndims) if dim != page.column.dim]
    width = max(3, *(len(str(n - 1)) + 1 for n in desc.padded_dims))
    heads = "".join(f"{page.names[dim]:>{width}}" for dim in fixed)
    lines = [*summary_of(page), "", f"{'offset':>8} {heads} |{page.names[page.column.dim]:>{width}}"]
    if desc.has_padding:
        lines[-1] += f"  ({PADDING} is padding)"
    for panel in page.panels:
        lines += [LEFT_OUT, ""] if panel is None else [*_lines(page, panel, fixed, width), ""]
    return "\n".join(lines[:-1])


def _lines(page: Page, panel: Panel, fixed: list[int], width: int) -> Iterator[str]:
    for row in panel.rows:
        if row is None:
            yield f"{LEFT_OUT:>8}"
            continue
        first = row.indices[0] or ()
        common = "".join(f"{first[dim]:>{width}}" for dim in fixed)
        yield f"{row.offset:>8} {common} |{_cells(page, row, width)}"


def _cells(page: Page, row: ElementRow, width: int) -> str:
    texts = (
        LEFT_OUT if index is None else PADDING if page.is_padding(index) else str(index[page.column.dim])
        for index in row.indices
    )
    return "".join(f"{text:>{max(width, len(text) + 1)}}" for text in texts) + (f"  skip {row.gap}" if row.gap else "")
