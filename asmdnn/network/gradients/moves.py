"""Rules of operators that move elements: their adjoints move them back, and add what came from one place."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from asmdnn.network.gradients.indexing import added_where_read
from asmdnn.network.gradients.table import Gradients, Rule, given_of
from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import Shape, axis_of, ints
from asmdnn.network.operators.moves import PAD_MODES, pad_widths, permutation, slices, split_sizes

REPEATING = {mode: PAD_MODES[mode] for mode in ("reflect", "wrap")}
Widths = Sequence[tuple[int, int]]


def others(node: Node) -> list[None]:
    """Inputs after the first one say dims and places."""
    return [None] * (len(node.inputs) - 1)


def same_elements(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    return w.reshaped(given_of(given), *w.shape(node.inputs[0])), *others(node)


def broadcast(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    return w.summed_to(given_of(given), w.shape(node.inputs[0])), None


def transpose(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    order = permutation(node, len(w.shape(node.inputs[0])))
    return (w.turned(given_of(given), *(int(n) for n in np.argsort(order))),)


def concat(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    d, axis = given_of(given), axis_of(node, len(w.shape(node.inputs[0])), 1)
    ends = list(accumulate((w.shape(x)[axis] for x in node.inputs), initial=0))
    return [w.part(d, axis, start, end) for start, end in pairwise(ends)]


def split(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Pieces that the loss does not read are zeros."""
    dims = w.shape(node.inputs[0])
    axis = axis_of(node, len(dims), 0)
    sizes = split_sizes(node, dims[axis], w.data_of(node, 1))
    parts = [
        w.constant(np.zeros((*dims[:axis], size, *dims[axis + 1 :]))) if d is None else d
        for d, size in zip(given, sizes, strict=True)
    ]
    return w.joined(axis, *parts), *others(node)


def cut(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Zeros around, of steps of 1; after others, that many zeros between."""
    d, dims = given_of(given), w.shape(node.inputs[0])
    data = [w.data_of(node, i) for i in range(1, len(node.inputs))]
    ranges = [range(n)[s] for n, s in zip(dims, slices(node, dims, *data), strict=True)]
    before, after = list[int](), list[int]()
    for axis, (n, places) in enumerate(zip(dims, ranges, strict=True)):
        if abs(places.step) > 1 and len(places) > 1:
            d = spaced(w, d, axis, abs(places.step))
        if places.step < 0:
            d = reversed_along(w, d, axis)
        low = min(places, default=0)
        before.append(low)
        after.append(n - low - w.shape(d)[axis])
    if any(before) or any(after):
        d = w("Pad", d, w.ints(*before, *after))
    return d, *others(node)


def spaced(w: GradientWords, d: str, axis: int, step: int) -> str:
    """With step - 1 zeros between neighbours along an axis."""
    dims = w.shape(d)
    lifted = w.lifted(d, axis + 1)
    pads = [0] * (2 * len(dims) + 2)
    pads[len(dims) + 1 + axis + 1] = step - 1
    wide = w("Pad", lifted, w.ints(*pads))
    joined = w.reshaped(wide, *dims[:axis], dims[axis] * step, *dims[axis + 1 :])
    return w.part(joined, axis, 0, (dims[axis] - 1) * step + 1)


def reversed_along(w: GradientWords, d: str, axis: int) -> str:
    return w("Slice", d, w.ints(-1), w.ints(-(2**31)), w.ints(axis), w.ints(-1))


def pad(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """What is inside, and what was copied from it."""
    mode = node.get("mode", "constant")
    dims, d = w.shape(node.inputs[0]), given_of(given)
    axes = w.data_of(node, 3)
    widths = pad_widths(node, len(dims), w.data_of(node, 1), axes)
    if mode in REPEATING:
        return repeated(w, d, dims, widths, REPEATING[mode]), *others(node)
    if mode == "edge":
        for axis, (before, after) in enumerate(widths):
            d = with_copies(w, d, axis, max(before, 0), max(after, 0))
        widths = [(min(before, 0), min(after, 0)) for before, after in widths]
    return w("Pad", d, w.ints(*(-a for a, _ in widths), *(-b for _, b in widths))), *others(node)


def repeated(w: GradientWords, d: str, dims: Shape, widths: Widths, mode: str) -> str:
    """Mirrored or periodic images: each axis is a look-up by indices that are padded so."""
    for axis, (n, (before, after)) in enumerate(zip(dims, widths, strict=True)):
        if (before, after) != (0, 0):
            kept = np.arange(max(-before, 0), n - max(-after, 0))
            places = np.pad(kept, (max(before, 0), max(after, 0)), mode)  # type: ignore[call-overload]
            shape = w.shape(d)
            table = (*shape[:axis], n, *shape[axis + 1 :])
            d = added_where_read(w, d, table, axis, w.constant(places, np.int64))
    return d


def with_copies(w: GradientWords, d: str, axis: int, before: int, after: int) -> str:
    """The sum of each edge and its copies in the place of these."""
    size = w.shape(d)[axis]
    if size == before + after + 1:
        return w.reduced("ReduceSum", d, axis)
    begin, end = before + (before > 0), size - after - (after > 0)
    parts = [w.reduced("ReduceSum", w.part(d, axis, 0, begin), axis)] if before else []
    parts += [w.part(d, axis, begin, end)] if begin < end else []
    parts += [w.reduced("ReduceSum", w.part(d, axis, end, size), axis)] if after else []
    return w.joined(axis, *parts) if len(parts) > 1 else parts[0]


def tile(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    dims, repeats = w.shape(node.inputs[0]), w.data_of(node, 1)
    assert repeats is not None, "the dims depend on it"
    pairs = [n for pair in zip(ints(repeats), dims, strict=True) for n in pair]
    apart = w.reshaped(given_of(given), *pairs)
    return w.reshaped(w.reduced("ReduceSum", apart, *range(0, len(pairs), 2), keepdims=False), *dims), None


def folded(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Blocks of pixels as channels, and back: as Reshape, Transpose, Reshape."""
    d, b = given_of(given), node.get("blocksize")
    n, c, h, width = w.shape(node.inputs[0])
    dcr = node.get("mode", "DCR") == "DCR"
    if node.op == "DepthToSpace":
        dims: tuple[int, ...] = (n, c // b**2, h, b, width, b)
        order = (0, 3, 5, 1, 2, 4) if dcr else (0, 1, 3, 5, 2, 4)
    else:
        dims = (n, *((b, b, c) if dcr else (c, b, b)), h // b, width // b)
        order = (0, 3, 4, 1, 5, 2) if dcr else (0, 1, 4, 2, 5, 3)
    return (w.reshaped(w.turned(w.reshaped(d, *dims), *order), n, c, h, width),)


RULES: dict[str, Rule] = {
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), same_elements),
    "Expand": broadcast, "Transpose": transpose, "Concat": concat, "Split": split, "Slice": cut, "Pad": pad,
    "Tile": tile, "DepthToSpace": folded, "SpaceToDepth": folded,
}  # fmt: skip
