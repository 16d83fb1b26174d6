"""What is written beside the drawing of a layout."""

from asmdnn.show.walk import Page, Panel


def title_of(page: Page, panel: Panel) -> str:
    """What the elements of a panel have in common, such as "n=0, c=8..15"; "" if it is the only panel."""
    indices = [index for row in panel.rows if row for index in row.indices if index]
    words = []
    for dim in sorted({axis.dim for axis in page.panel_axes}):
        low, high = min(index[dim] for index in indices), max(index[dim] for index in indices)
        words.append(f"{page.names[dim]}={low}" + (f"..{high}" if high > low else ""))
    return ", ".join(words)


def formula_of(page: Page) -> str:
    """Such as "offset(n, c, h, w) = n*480 + c/8*160 + h*32 + w*8 + c%8": divisions round down."""
    terms = [str(page.desc.offset0)] if page.desc.offset0 else []
    for axis in (*page.panel_axes, *page.row_axes, page.column):
        digit = page.names[axis.dim] + (f"/{axis.weight}" if axis.weight > 1 else "")
        if axis.size * axis.weight < page.desc.padded_dims[axis.dim]:
            digit += f"%{axis.size}"
        terms.append(digit + (f"*{axis.stride}" if axis.stride != 1 else ""))
    return f"offset({', '.join(page.names)}) = {' + '.join(terms)}"


def summary_of(page: Page) -> tuple[str, ...]:
    """The first lines of every page: the desc, the formula, the size and what of it is padding or left out."""
    desc = page.desc
    letters = f" = {desc.tag}" if desc.alias and desc.alias != desc.tag else ""
    size = f"{desc.size_bytes} bytes"
    if desc.has_padding:
        padding = desc.nelems(with_padding=True) - desc.nelems()
        size += f"; padded to {'x'.join(map(str, desc.padded_dims))}: {padding} of "
        size += f"{desc.nelems(with_padding=True)} elements are padding, which is zero"
    lines = (f"{desc}{letters}", formula_of(page), size)
    return (*lines, "large: only the beginning and the end are shown") if page.is_abbreviated else lines
