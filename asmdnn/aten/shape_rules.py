"""ATen's operators that move elements: reshapes, permutations, parts, joins, look-ups."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from asmdnn.aten.values import Rewriter, Traced, axis_of, rule

END = np.iinfo(np.int64).max


@rule(
    "view.default", "reshape.default", "_unsafe_view.default", "flatten.using_ints", "view_as.default",
    "unflatten.int", "squeeze.default", "squeeze.dim", "squeeze.dims", "unsqueeze.default", "expand_as.default",
)  # fmt: skip
def _view(c: Rewriter, x: Traced, *rest: Any) -> Any:
    """torch has computed the shape; only expand_as repeats anything."""
    if prod(c.shape) != prod(x.shape):
        return c.apply("Expand", x, np.array(c.shape, np.int64))
    return c.reshape(x, c.shape)


@rule("expand.default")
def _expand(c: Rewriter, x: Traced, *rest: Any, **options: Any) -> Any:
    return c.apply("Expand", x, np.array(c.shape, np.int64)) if c.shape != x.shape else x.symbol


@rule("repeat.default")
def _repeat(c: Rewriter, x: Traced, repeats: Sequence[int]) -> Any:
    aligned = c.reshape(x, [1] * (len(repeats) - x.rank) + list(x.shape))
    return c.apply("Tile", aligned, np.array(repeats, np.int64))


@rule("permute.default")
def _permute(c: Rewriter, x: Traced, dims: Sequence[int]) -> Any:
    return c.apply("Transpose", x, perm=[axis_of(dim, x.rank) for dim in dims])


@rule("transpose.int")
def _transpose(c: Rewriter, x: Traced, a: int, b: int) -> Any:
    if not x.rank:
        return x.symbol  # of which torch takes -1 and 0
    order = list(range(x.rank))
    a, b = axis_of(a, x.rank), axis_of(b, x.rank)
    order[a], order[b] = b, a
    return c.apply("Transpose", x, perm=order)


@rule("t.default", "numpy_T.default", "mT.default")
def _t(c: Rewriter, x: Traced) -> Any:
    return _transpose(c, x, -2, -1) if x.rank > 1 else x.symbol


@rule("cat.default", "concat.default")
def _cat(c: Rewriter, parts: Sequence[Traced], dim: int = 0) -> Any:
    whole = [part for part in parts if part.shape != (0,)]  # torch lets such stand anywhere
    return c.apply("Concat", *whole, axis=axis_of(dim, len(c.shape)))


@rule("stack.default")
def _stack(c: Rewriter, parts: Sequence[Traced], dim: int = 0) -> Any:
    axis = axis_of(dim, len(c.shape))
    shape = [*c.shape[:axis], 1, *c.shape[axis + 1 :]]
    return c.apply("Concat", *(c.reshape(part, shape) for part in parts), axis=axis)


@rule("split.Tensor", "split_with_sizes.default", "chunk.default", "split.sizes", "tensor_split.sections")
def _split(c: Rewriter, x: Traced, sizes: Any, dim: int = 0) -> Any:
    axis = axis_of(dim, x.rank)
    found = [shape[axis] for shape, _ in c.results]
    if len(found) == 1:
        return (x.symbol,)
    return c.apply("Split", x, np.array(found, np.int64), axis=axis, results=len(found))


@rule("unbind.int")
def _unbind(c: Rewriter, x: Traced, dim: int = 0) -> Any:
    axis = axis_of(dim, x.rank)
    count = x.shape[axis]
    parts = c.apply("Split", x, axis=axis, num_outputs=count, results=count) if count > 1 else (x.symbol,)
    return tuple(c.reshape(part, c.shape) for part in parts)


@rule("slice.Tensor")
def _slice(c: Rewriter, x: Traced, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    if c.shape == x.shape:
        return x.symbol
    stop = END if end is None else end
    return c.apply("Slice", x, *(np.array([n], np.int64) for n in (start or 0, stop, axis_of(dim, x.rank), step)))


@rule("slice_scatter.default")
def _slice_scatter(
    c: Rewriter, x: Traced, part: Traced, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    """What lies before the part, the part, what lies after it."""
    axis = axis_of(dim, x.rank)
    size = x.shape[axis]
    first, last = slice(start, end).indices(size)[:2]
    if step != 1:
        raise c.refuse(f"every {step}th element")
    if part.shape == x.shape:
        return part.symbol
    return _joined(c, x, part, axis, first, last)


@rule("select_scatter.default")
def _select_scatter(c: Rewriter, x: Traced, part: Traced, dim: int, index: int) -> Any:
    axis = axis_of(dim, x.rank)
    at = index % x.shape[axis]
    return _joined(c, x, c.reshape(part, [1 if i == axis else n for i, n in enumerate(x.shape)]), axis, at, at + 1)


def _joined(c: Rewriter, x: Traced, part: Any, axis: int, first: int, last: int) -> Any:
    parts = [part]
    if first:
        parts.insert(0, c.apply("Slice", x, *(np.array([n], np.int64) for n in (0, first, axis, 1))))
    if last < x.shape[axis]:
        parts.append(c.apply("Slice", x, *(np.array([n], np.int64) for n in (last, x.shape[axis], axis, 1))))
    return c.apply("Concat", *parts, axis=axis) if len(parts) > 1 else c.apply("Identity", part)


@rule("copy.default")
def _written(c: Rewriter, x: Traced, source: Traced, *rest: Any) -> Any:
    """Of x the shape and the type alone."""
    found = c.cast(source, c.dtype)
    return c.apply("Expand", found, np.array(c.shape, np.int64)) if source.shape != c.shape else found


@rule("select.int")
def _select(c: Rewriter, x: Traced, dim: int, index: int) -> Any:
    return c.apply("Gather", x, np.array(index, np.int64), axis=axis_of(dim, x.rank))


@rule("diagonal.default")
def _diagonal(c: Rewriter, x: Traced, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Every (columns + 1)th element of the rows in a row; the diagonal becomes the last dim."""
    a, b = axis_of(dim1, x.rank), axis_of(dim2, x.rank)
    rows, columns = x.shape[a], x.shape[b]
    others = [axis for axis in range(x.rank) if axis not in (a, b)]
    turned = c.apply("Transpose", x, perm=[*others, a, b])
    flat = c.reshape(turned, [*(x.shape[axis] for axis in others), rows * columns])
    first, count = (offset if offset >= 0 else -offset * columns), c.shape[-1]
    if not count:
        raise c.refuse(f"a diagonal of no elements, {offset} from that of {rows}x{columns}")
    last = first + (count - 1) * (columns + 1) + 1
    return c.apply("Slice", flat, *(np.array([n], np.int64) for n in (first, last, len(others), columns + 1)))


@rule("narrow.default")
def _narrow(c: Rewriter, x: Traced, dim: int, start: int, length: int) -> Any:
    return _slice(c, x, dim, start, start + length)


@rule("index_select.default")
def _index_select(c: Rewriter, x: Traced, dim: int, index: Traced) -> Any:
    return c.apply("Gather", x, index, axis=axis_of(dim, x.rank))


@rule("embedding.default")
def _embedding(c: Rewriter, weight: Traced, indices: Traced, *rest: Any) -> Any:
    return c.apply("Gather", weight, indices, axis=0)


@rule("gather.default")
def _gather(c: Rewriter, x: Traced, dim: int, index: Traced, **options: Any) -> Any:
    return c.apply("GatherElements", x, index, axis=axis_of(dim, x.rank))


@rule("index.Tensor")
def _index(c: Rewriter, x: Traced, indices: Sequence[Traced | None]) -> Any:
    """One index only: of several, torch pairs the elements up."""
    used = [(axis, index) for axis, index in enumerate(indices) if index is not None]
    if len(used) != 1 or used[0][1].dtype.kind == "b":
        raise c.refuse("more than one index, or a mask as an index")
    return c.apply("Gather", x, used[0][1], axis=used[0][0])


@rule("constant_pad_nd.default", "pad.default")
def _pad(c: Rewriter, x: Traced, pad: Sequence[int], *rest: Any, mode: str = "constant", value: Any = None) -> Any:
    """torch counts from the last dim, pairs of before and after."""
    given = [part for part in rest if part is not None]
    mode = next((part for part in given if isinstance(part, str)), mode)
    filler = next((part for part in given if not isinstance(part, str)), value)
    if mode == "circular":
        return _pad_circularly(c, x, pad)
    if mode not in ("constant", "reflect", "replicate"):
        raise c.refuse(f"padding by {mode!r}")
    before, after = [0] * x.rank, [0] * x.rank
    for i in range(0, len(pad), 2):
        before[x.rank - 1 - i // 2], after[x.rank - 1 - i // 2] = pad[i], pad[i + 1]
    onnx = {"replicate": "edge"}.get(mode, mode)
    return c.apply("Pad", x, np.array(before + after, np.int64), np.asarray(filler or 0, x.dtype), mode=onnx)


def _pad_circularly(c: Rewriter, x: Traced, pad: Sequence[int]) -> Any:
    """The end before the start, the start after the end."""
    found = c.operand(x)
    for i in range(0, len(pad), 2):
        axis = x.rank - 1 - i // 2
        size, (before, after) = x.shape[axis], pad[i : i + 2]
        if min(before, after) < 0:
            raise c.refuse(f"padding by 'circular' of {list(pad)}")
        ends = [(size - before, size)] * (before > 0), [(0, after)] * (after > 0)
        parts = [
            [c.apply("Slice", found, *(np.array([n], np.int64) for n in (*end, axis, 1))) for end in side]
            for side in ends
        ]
        found = c.apply("Concat", *parts[0], found, *parts[1], axis=axis) if before or after else found
    return found


@rule("pixel_shuffle.default")
def _pixel_shuffle(c: Rewriter, x: Traced, factor: int) -> Any:
    return c.apply("DepthToSpace", x, blocksize=factor, mode="CRD")


@rule("flip.default")
def _flip(c: Rewriter, x: Traced, dims: Sequence[int]) -> Any:
    axes = [axis_of(dim, x.rank) for dim in dims]
    starts, ends = [-1] * len(axes), [-END] * len(axes)
    return c.apply("Slice", x, *(np.array(n, np.int64) for n in (starts, ends, axes, [-1] * len(axes))))


@rule("roll.default")
def _roll(c: Rewriter, x: Traced, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    """Without dims of the elements in a row."""
    found = x.symbol if dims else c.reshape(x, [-1])
    sizes = [x.shape[axis_of(dim, x.rank)] for dim in dims] or [int(np.prod(x.shape))]
    for shift, axis, size in zip(shifts, [axis_of(dim, x.rank) for dim in dims] or [0], sizes, strict=True):
        if size and shift % size:
            parts = np.array([size - shift % size, shift % size], np.int64)
            front, back = c.apply("Split", found, parts, axis=axis, results=2)
            found = c.apply("Concat", back, front, axis=axis)
    return found if dims else c.reshape(found, x.shape)


@rule("tril.default", "triu.default")
def _triangle(c: Rewriter, x: Traced, diagonal: int = 0) -> Any:
    return c.apply("Trilu", x, np.array(diagonal, np.int64), upper=int(c.name.startswith("triu")))
