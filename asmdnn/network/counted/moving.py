"""How an axis of which only the first places count goes through operators that move elements."""

from collections.abc import Mapping
from math import prod

from asmdnn.network.counted.reading import CountedReading, Rule
from asmdnn.network.operators.definition import axes_of, ints, normal

FAR = 2**31 - 1  # an end that means all


def transposed(r: CountedReading) -> int | None:
    perm = r.node.get("perm") or tuple(reversed(range(len(r.shape()))))
    return None if r.only is None else [*perm].index(r.only)


def unsqueezed(r: CountedReading) -> int | None:
    count = len(r.data(1).ravel()) if r.data(1) is not None else len(r.node.get("axes", ()))  # type: ignore[union-attr]
    axes = axes_of(r.node, r.data(1), len(r.shape()) + count)
    if r.only is None or axes is None:
        return None
    return [i for i in range(len(r.shape()) + count) if i not in axes][r.only]


def squeezed(r: CountedReading) -> int | None:
    """By axes that are said: without them a count of 1 would decide."""
    axes = axes_of(r.node, r.data(1), len(r.shape()))
    if r.only is None or axes is None or r.only in axes:
        return None
    return r.only - sum(axis < r.only for axis in axes)


def reshaped(r: CountedReading) -> int | None:
    """Where the axis stays one, and its size is not said."""
    dims, wanted = r.shape(), r.data(1)
    if r.only is None or wanted is None or 0 in dims:
        return None
    said, before, after = ints(wanted), prod(dims[: r.only]), prod(dims[r.only + 1 :])
    copies = not r.node.get("allowzero", 0)
    sizes = [dims[i] if n == 0 and copies and i < len(dims) else n for i, n in enumerate(said)]
    if 0 in sizes:
        return None
    sizes = [-prod(dims) // prod(sizes) if n == -1 else n for n in sizes]
    for i, n in enumerate(said):
        is_open = n == -1 or (n == 0 and copies and i == r.only)
        if is_open and prod(sizes[:i]) == before and prod(sizes[i + 1 :]) == after:
            return i
    return None


def flattened(r: CountedReading) -> int | None:
    dims, axis = r.shape(), r.only
    if axis is None or 0 in dims:
        return None
    split = r.node.get("axis", 1)
    split = split + len(dims) if split < 0 else split
    own = dims[:split] if axis < split else dims[split:]
    return int(axis >= split) if prod(own) == dims[axis] else None


def sliced(r: CountedReading) -> int | None:
    """Along other axes, or from the start to an end that is far."""
    if r.only is None:
        return None
    if "starts" in r.node.attributes:
        starts, ends, axes, steps = r.node.get("starts"), r.node.get("ends"), r.node.get("axes"), None
    else:
        if any(r.has(i) and r.data(i) is None for i in range(1, len(r.values))):
            return None
        starts, ends, axes, steps = (None if (x := r.data(i)) is None else ints(x) for i in range(1, 5))
    axes = tuple(range(len(starts))) if axes is None else axes
    for i, axis in enumerate(axes):
        is_whole = starts[i] == 0 and ends[i] >= FAR and (steps is None or steps[i] == 1)
        if normal(axis, len(r.shape())) == r.only and not is_whole:
            return None
    return r.only


def gathered(r: CountedReading) -> int | None:
    """Places of indices, or rows along another axis."""
    dims, axis = r.shape(), normal(r.node.get("axis", 0), len(r.shape()))
    if r.only is not None and r.only != axis:
        return r.only if r.only < axis else r.only + len(r.shape(1)) - 1
    return axis + r.counted[1] if r.counted.keys() == {1} and dims[axis] else None


def gathered_elements(r: CountedReading) -> int | None:
    axis = normal(r.node.get("axis", 0), len(r.shape()))
    found = {*r.counted.values()}
    if not r.shape()[axis] or len(found) != 1 or 1 not in r.counted:
        return None
    (own,) = found
    if 0 in r.counted:
        return own if own != axis else None
    return own if own == axis else None


def gathered_nd(r: CountedReading) -> int | None:
    dims, shape, batch = r.shape(), r.shape(1), r.node.get("batch_dims", 0)
    end = batch + shape[-1]
    if r.only is not None:
        return len(shape) - 1 + r.only - end if r.only >= end else None
    if r.counted.keys() != {1} or 0 in dims[batch:end]:
        return None
    return r.counted[1] if batch <= r.counted[1] < len(shape) - 1 else None


def joined(r: CountedReading) -> int | None:
    """Along another axis, all operands being counted."""
    found = {*r.counted.values()}
    if len(found) != 1 or len(r.counted) < len(r.values):
        return None
    (axis,) = found
    return axis if normal(r.node.get("axis"), len(r.shape())) != axis else None


def scattered_elements(r: CountedReading) -> int | None:
    """Of x, indices and updates that are all counted along an axis where elements stay."""
    axis = normal(r.node.get("axis", 0), len(r.shape()))
    found = {*r.counted.values()}
    return found.pop() if r.counted.keys() == {0, 1, 2} and len(found) == 1 and axis not in found else None


def padded(r: CountedReading) -> int | None:
    """Along other axes."""
    pads, axes = r.node.get("pads") or (None if r.data(1) is None else ints(r.data(1))), r.data(3)
    if r.only is None or pads is None or (r.has(3) and axes is None):
        return None
    count = len(pads) // 2
    known = range(count) if axes is None else [normal(axis, len(r.shape())) for axis in ints(axes)]
    own = [i for i, axis in enumerate(known) if axis == r.only]
    return None if any(pads[i] or pads[i + count] for i in own) else r.only


def tiled(r: CountedReading) -> int | None:
    data = r.data(1)
    return r.only if r.only is not None and data is not None and ints(data)[r.only] == 1 else None


def expanded(r: CountedReading) -> int | None:
    if r.only is None or r.data(1) is None:
        return None
    dims, own = ints(r.data(1)), r.only - len(r.shape())
    if len(dims) >= -own and dims[own] != 1:
        return None
    return own + max(len(dims), len(r.shape()))


def one_hot(r: CountedReading) -> int | None:
    if r.only is None:
        return None
    axis = normal(r.node.get("axis", -1), len(r.shape()) + 1)
    return r.only if r.only < axis else r.only + 1


MOVES: Mapping[str, Rule] = {
    "Transpose": transposed, "Unsqueeze": unsqueezed, "Squeeze": squeezed, "Reshape": reshaped, "Flatten": flattened,
    "Slice": sliced, "Gather": gathered, "GatherElements": gathered_elements, "GatherND": gathered_nd,
    "ScatterElements": scattered_elements, "Scatter": scattered_elements, "Concat": joined, "Expand": expanded,
    "Tile": tiled, "Pad": padded, "OneHot": one_hot,
}  # fmt: skip
