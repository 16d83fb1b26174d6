"""Gradients of moves of arrays: what was moved goes back, and what was read several times is summed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory.allocation import allocated
from asmdnn.ops.arguments import AnyArray, integers
from asmdnn.ops.gradients import floats, given_dims
from asmdnn.ops.lookup_gradients import gather_gradient
from asmdnn.ops.moves import Widths, concat, slice, split, widths_of
from asmdnn.ops.moving import copied, own_type
from asmdnn.ops.shares import in_f32, summed_to, zeros_of
from asmdnn.ops.typed import kind_of
from asmdnn.primitives.attributes.numbers import check_alg
from asmdnn.primitives.concat.pad import PadMode
from asmdnn.primitives.core.engine import Engine

MODES = ("constant", "edge", "reflect")


def concat_gradient(dy: Any, sizes: Sequence[int], axis: int = 0, *, engine: Engine | None = None) -> list[AnyArray]:
    """The gradients of arrays of concat(arrays, axis), for the gradient dy of its result: its parts, each a new array.

    sizes: of the arrays along the axis.  dy: of f32, bf16 or f16.  Raises InvalidArguments.
    """
    return split(floats("dy", dy), tuple(integers("sizes", sizes)), axis, engine=engine)


def split_gradient(dys: Sequence[Any], axis: int = 0, *, out: Any = None, engine: Engine | None = None) -> AnyArray:
    """The gradient of x of split(x, parts, axis), in a new array or in `out`.

    dys: the gradients of its results, in their order, of one type.  Raises InvalidArguments.
    """
    return concat(dys, axis, out=out, engine=engine)


def slice_gradient(
    dy: Any,
    dims: Sequence[int],
    starts: Sequence[int],
    stops: Sequence[int],
    steps: Sequence[int] = (),
    *,
    engine: Engine | None = None,
) -> AnyArray:
    """The gradient of x of slice(x, starts, stops, steps), for the gradient dy of its result; dims: those of x.

    0 where nothing was taken.  dy: of f32, bf16 or f16, as the result.  Raises InvalidArguments.
    """
    part = floats("dy", dy)
    dims = given_dims("dims", dims, part.ndim)
    words = [integers(name, values) for name, values in (("starts", starts), ("stops", stops))]
    words.append((1,) * part.ndim if isinstance(steps, tuple) and not steps else integers("steps", steps))
    if any(len(numbers) != part.ndim for numbers in words) or 0 in words[2]:
        raise InvalidArguments(f"starts, stops and steps must be {part.ndim} integers each, steps not 0")
    ranges = [range(n)[start:stop:step] for start, stop, step, n in zip(*words, dims, strict=True)]
    if tuple(map(len, ranges)) != part.shape:
        raise InvalidArguments(f"dy has dims {part.shape}, the result has {shown(tuple(map(len, ranges)))}")
    backward = [each.step < 0 for each in ranges]
    if any(backward) and part.size:
        ends = [-n - 1 if is_back else n for n, is_back in zip(part.shape, backward, strict=True)]
        part = slice(part, [-is_back for is_back in backward], ends, [1 - 2 * b for b in backward], engine=engine)
    forward = [each[::-1] if each.step < 0 else each for each in ranges]
    return placed(part, dims, forward, engine)


def placed(part: AnyArray, dims: tuple[int, ...], ranges: Sequence[range], engine: Engine | None) -> AnyArray:
    """A new array of zeros, but for what lies in these ranges of its dims."""
    made = zeros_of(dims, part)
    if part.size:
        where = made[tuple(np.s_[each.start : each.stop : each.step] for each in ranges)]
        copied("dy", part, engine, where)
    return made.view(own_type(kind_of(part), part))


def pad_gradient(dy: Any, widths: Widths, mode: PadMode = "constant", *, engine: Engine | None = None) -> AnyArray:
    """The gradient of x of pad(x, widths, mode), for the gradient dy of its result; of f32, bf16 or f16, as dy.

    widths: as of `pad`.  What "edge" and "reflect" have repeated is summed.  Raises InvalidArguments.
    """
    found = floats("dy", dy)
    pairs = widths_of(widths, found.ndim)
    sizes = [n - before - after for n, (before, after) in zip(found.shape, pairs, strict=True)]
    check_alg("mode", mode, MODES)
    least = 0 if mode == "constant" else 1
    if any(n < (least if max(pair) else 0) for n, pair in zip(sizes, pairs, strict=True)):
        raise InvalidArguments(f"dy has dims {found.shape}, padding of {shown(widths)} leaves none of them to x")
    starts = [before for before, _ in pairs]
    if mode == "constant":
        return slice(found, starts, [a + n for a, n in zip(starts, sizes, strict=True)], engine=engine)
    wide = in_f32(found, engine)
    for axis, pair in enumerate(pairs):
        if max(pair):
            places = allocated(np.pad, range(sizes[axis]), pair, mode)
            dims = (*wide.shape[:axis], sizes[axis], *wide.shape[axis + 1 :])
            wide = gather_gradient(wide, places, dims, axis, engine=engine)
    return summed_to(wide, wide.shape, found, engine)


def expand_gradient(dy: Any, dims: Sequence[int], *, engine: Engine | None = None) -> AnyArray:
    """The gradient of x of expand(x, dims), for the gradient dy of its result: sums over what was repeated.

    dims: those of x.  dy: of f32, bf16 or f16; so is the result.  Raises InvalidArguments.
    """
    found, dims = floats("dy", dy), tuple(integers("dims", dims))
    own = (1,) * (found.ndim - len(dims)) + dims
    if len(dims) > found.ndim or any(n not in (1, m) for n, m in zip(own, found.shape, strict=True)):
        raise InvalidArguments(f"dims are {shown(dims)}, from the end on they must be 1 or as dy: {found.shape}")
    return summed_to(found, dims, found, engine)
