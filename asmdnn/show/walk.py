"""The storage of a tensor in the order of its addresses, as a page of panels of rows, which text and picture show.

The digits of all indices (see views.Level), sorted by stride, are the digits of the address.  The innermost one runs
along a row; the next few number the rows of a panel; the rest number the panels.
"""

from math import prod

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory.desc import MemoryDesc
from asmdnn.memory.tags import LETTERS, dim_names
from asmdnn.memory.views import levels_of
from asmdnn.records import dataclass

Index = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Digit:
    """A digit of the address; an index of its dim is the sum of value * weight over the dim's digits."""

    dim: int
    size: int
    weight: int
    stride: int
    inner: bool


@dataclass(frozen=True, slots=True)
class ElementRow:
    """Elements one after the other: the offset of the first, and their indices; None where some are left out.

    `gap` counts the elements of the storage, between this row and the next, that are no elements of the tensor.
    """

    offset: int
    indices: tuple[Index | None, ...]
    gap: int


@dataclass(frozen=True, slots=True)
class Panel:
    """Consecutive rows; None where some are left out."""

    rows: tuple[ElementRow | None, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is shown before something is left out."""

    columns: int
    rows: int
    panels: int


@dataclass(frozen=True, slots=True)
class Page:
    """What is shown of a desc; `names` has one letter for each dim."""

    desc: MemoryDesc
    names: str
    column: Digit
    row_axes: tuple[Digit, ...]
    panel_axes: tuple[Digit, ...]
    panels: tuple[Panel | None, ...]

    @property
    def is_abbreviated(self) -> bool:
        shown = [row for panel in self.panels if panel for row in panel.rows]
        return None in self.panels or None in shown or any(row and None in row.indices for row in shown)

    def is_padding(self, index: Index) -> bool:
        return any(i >= n for i, n in zip(index, self.desc.dims, strict=True))


def page_of(desc: MemoryDesc, limits: Limits, names: str | None = None) -> Page:
    """The page of `desc`, within `limits`.  Raises InvalidArguments for `any` and for a tensor without elements."""
    if not isinstance(desc, MemoryDesc):
        raise InvalidArguments(f"desc must be a MemoryDesc, not {type(desc).__name__}")
    if desc.is_any or not desc.nelems():
        raise InvalidArguments(f"desc {desc} has nothing to show: it has no {'layout' if desc.is_any else 'elements'}")
    axes = _axes(desc)
    if names is not None and not (isinstance(names, str) and len(names) == desc.ndims and names.isalpha()):
        raise InvalidArguments(f"names {shown(names)} must have a letter for each of the {desc.ndims} dims")
    *others, column = axes
    cut = _first_row_axis(others, {dim for dim, _ in desc.inner_blocks}, limits)
    panel_axes, row_axes = tuple(others[:cut]), tuple(others[cut:])
    names = names or dim_names(desc.alias or "") or LETTERS[: desc.ndims]
    panels = tuple(
        None if panel is None else _panel(desc, axes, cut, panel, limits)
        for panel in _chosen(prod(axis.size for axis in panel_axes), limits.panels)
    )
    return Page(desc, names, column, row_axes, panel_axes, panels)


def _axes(desc: MemoryDesc) -> list[Digit]:
    axes = []
    for dim, levels in enumerate(levels_of(desc)):
        weight = desc.padded_dims[dim]
        for level in levels:
            weight //= level.size
            axes.append(Digit(dim, level.size, weight, level.stride, level.inner))
    axes = [axis for axis in axes if axis.size > 1] or axes[-1:]
    return sorted(axes, key=lambda axis: (-axis.stride, axis.inner))


def _first_row_axis(axes: list[Digit], blocked: set[int], limits: Limits) -> int:
    """Where the row axes begin: at the inner blocks, or else with as many dims as fit, one at least.

    The number of a block does not run within a panel, so that pages show the storage block by block.
    """
    if any(axis.inner for axis in axes):
        return next(i for i, axis in enumerate(axes) if axis.inner)
    cut, rows = max(0, len(axes) - 1), axes[-1].size if axes else 1
    while cut and axes[cut - 1].dim not in blocked and rows * axes[cut - 1].size <= limits.rows:
        cut -= 1
        rows *= axes[cut].size
    return cut


def _panel(desc: MemoryDesc, axes: list[Digit], cut: int, number: int, limits: Limits) -> Panel:
    outer = _digits(number, axes[:cut])
    row_axes, column = axes[cut:-1], axes[-1]
    rows: list[ElementRow | None] = []
    for row in _chosen(prod(axis.size for axis in row_axes), limits.rows):
        if row is None:
            rows.append(None)
            continue
        digits = (*outer, *_digits(row, row_axes))
        offset = desc.offset0 + sum(digit * axis.stride for digit, axis in zip(digits, axes, strict=False))
        columns = _chosen(column.size, limits.columns)
        indices = tuple(None if c is None else _index(desc, axes, (*digits, c)) for c in columns)
        rows.append(ElementRow(offset, indices, _gap(axes, digits)))
    return Panel(tuple(rows))


def _gap(axes: list[Digit], digits: Index) -> int:
    """Elements between the end of a row and the next one, 0 after the last; strides in the row itself leave no gap."""
    column = axes[-1]
    end = max(1, column.size * column.stride)
    for digit, axis in zip(reversed(digits), reversed(axes[:-1]), strict=True):
        if digit + 1 < axis.size:
            return max(0, axis.stride - end)
        end += digit * axis.stride
    return 0


def element_at(page: Page, offset: int) -> Index | None:
    """The index of the element at an offset; None if there is none.  For a layout whose elements do not overlap."""
    axes = (*page.panel_axes, *page.row_axes, page.column)
    rest, index = offset - page.desc.offset0, [0] * page.desc.ndims
    for axis in axes:
        digit, rest = divmod(rest, axis.stride) if axis.stride else (0, rest)
        if not 0 <= digit < axis.size:
            return None
        index[axis.dim] += digit * axis.weight
    return None if rest else tuple(index)


def _digits(number: int, axes: list[Digit]) -> Index:
    digits: list[int] = []
    for axis in reversed(axes):
        number, digit = divmod(number, axis.size)
        digits.insert(0, digit)
    return tuple(digits)


def _index(desc: MemoryDesc, axes: list[Digit], digits: Index) -> Index:
    index = [0] * desc.ndims
    for digit, axis in zip(digits, axes, strict=True):
        index[axis.dim] += digit * axis.weight
    return tuple(index)


def _chosen(count: int, most: int) -> tuple[int | None, ...]:
    """All of `count` numbers if they are at most `most`, else the first ones, None, and the last quarter."""
    if count <= most:
        return tuple(range(count))
    last = max(1, most // 4)
    return (*range(most - last), None, *range(count - last, count))
