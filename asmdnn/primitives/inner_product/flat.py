"""Tensors of an inner product as matrices: channels and positions of an image are one dim, in the order of memory.

Where the orders of two tensors differ, or elements do not lie at one distance, there is a copy in row-major order.
"""

from collections.abc import Mapping
from math import prod

import numpy as np

from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Int64
from asmdnn.primitives.products.matrices import Matrix, Panels
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class Flat:
    """A tensor whose dims after the first are one of `size` elements, `step` elements apart."""

    buffer: str
    desc: MemoryDesc
    size: int
    step: int

    def rows(self) -> Matrix:
        size = self.desc.dtype.size_bytes
        row, column = (size * self.desc.strides[0], size * self.step)
        row, column = row if self.desc.dims[0] > 1 else 0, column if self.size > 1 else 0
        return Matrix(self.buffer, size * self.desc.offset0, (), row, column, self.desc.dtype)

    def panels(self) -> Panels | None:
        """Of the first dim, if that is blocked."""
        if all(dim for dim, _ in self.desc.inner_blocks):
            return None
        columns = self.desc.inner_blocks[-1][1]
        size, dtype = self.desc.dtype.size_bytes, self.desc.dtype
        row = self.step if self.size > 1 else columns  # a single row has no distance from the next
        panel = self.desc.strides[0]
        return Panels(
            buffer=self.buffer,
            start_bytes=size * self.desc.offset0,
            batch_bytes=(),
            row_bytes=size * row,
            panel_bytes=size * panel,
            columns=columns,
            dtype=dtype,
        )


def aligned(
    assembly: Assembly, tensors: Mapping[str, MemoryDesc], lanes: int, output: str = "", panels: str = ""
) -> list[Flat]:
    """The tensors in one order of channels and positions: as they are if they have one, else copied to row-major.

    `output` names the one that is written, `panels` the one whose first dim may be in panels.
    """

    def flattened(name: str, desc: MemoryDesc, order: Int64) -> Flat | None:
        if has_panels(desc) and not (name == panels and usable_panels(desc, lanes)):
            return None
        if name == output and desc.has_padding:
            return None  # it must become zero, whatever the other operands hold
        found = flat(name, desc, order)
        gaps = has_panels(desc) and found is not None and found.size > 1 and found.step != desc.inner_blocks[-1][1]
        return None if gaps else found

    order = np.argsort(inner_offsets(next(iter(tensors.values()))), kind="stable")
    flats = [flattened(name, desc, order) for name, desc in tensors.items()]
    same = len({desc.padded_dims[1:] for desc in tensors.values()}) == 1
    if same and all(flats):
        return [x for x in flats if x]
    copies = []
    for name, desc in tensors.items():
        in_order = np.arange(len(inner_offsets(desc)))
        found = None if desc.padded_dims[1:] != desc.dims[1:] else flattened(name, desc, in_order)
        if found is None:
            target = row_major(desc.dims, desc)
            buffer = assembly.room(f"row-major {name}", target.size_bytes)
            if name != output:
                add_reorder(assembly, Reordering(name, desc, buffer, target), f"pack_{name}")
            found = Flat(buffer, target, prod(desc.dims[1:]), 1)
        copies.append(found)
    return copies


def flat(name: str, desc: MemoryDesc, order: Int64) -> Flat | None:
    """The tensor with its channels and positions in `order`; None if they do not lie at one distance."""
    offsets = inner_offsets(desc)
    if len(offsets) != len(order):
        return None
    steps = np.diff(offsets[order])
    step = int(steps[0]) if len(steps) else 1
    return Flat(name, desc, len(order), step) if step > 0 and (steps == step).all() else None


def has_panels(desc: MemoryDesc) -> bool:
    return any(dim == 0 for dim, _ in desc.inner_blocks)


def usable_panels(desc: MemoryDesc, lanes: int) -> bool:
    """Whether the first dim is blocked once, innermost, by a width that register blocks can be made of."""
    *others, (dim, size) = desc.inner_blocks
    return dim == 0 and all(other for other, _ in others) and size in (lanes, 2 * lanes)


def inner_offsets(desc: MemoryDesc) -> Int64:
    """Where the elements of dims 1.. lie, padding included, in the order of their indices."""
    total = np.zeros(1, np.int64)
    for dim in range(1, desc.ndims):
        total = np.add.outer(total, desc.dim_offsets(dim)).ravel()
    return total


def copy_back(assembly: Assembly, flat: Flat, desc: MemoryDesc, name: str) -> None:
    """Bring an output that was computed in scratch into its format."""
    if flat.buffer != name:
        add_reorder(assembly, Reordering(flat.buffer, flat.desc, name, desc), f"unpack_{name}")


def weights_like(src: MemoryDesc, weights: MemoryDesc, panel: int) -> MemoryDesc:
    """Weights in the order of src's channels and positions; in panels of so many output channels, 0 for none."""
    tag = src.tag or LETTERS[: src.ndims]
    order, blocks = tag[: src.ndims].lower(), tag[src.ndims :]
    if "a" in blocks or src.tag is None or not all(src.dims):
        order, blocks = LETTERS[: src.ndims], ""
    blocked = {LETTERS[dim] for dim, _ in src.inner_blocks} if blocks else set()
    letters = "".join(x.upper() if x in blocked else x for x in order if x != "a")
    return MemoryDesc(weights.dims, weights.dtype, f"A{letters}{blocks}{panel}a" if panel else f"a{letters}{blocks}")
