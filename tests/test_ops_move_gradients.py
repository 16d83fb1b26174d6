"""Gradients of moves, look-ups and adaptive poolings: <function(x), dy> = <x, gradient(dy)>, exactly on integers."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops

TYPES = (np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16))
KINDS = pytest.mark.parametrize("kind", TYPES, ids=str)


def integers(seed: int, *dims: int, kind: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, dims).astype(kind)


def agree(x: np.ndarray, y: np.ndarray, dy: np.ndarray, dx: np.ndarray) -> None:
    """The gradient is what the forward pass is the adjoint of, in dy's type."""
    assert dx.shape == x.shape and dx.dtype == dy.dtype and not np.shares_memory(dx, dy)
    wide = [array.astype(np.float64) for array in (y, dy, x, dx)]
    assert np.vdot(wide[0], wide[1]) == np.vdot(wide[2], wide[3])


@KINDS
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat_and_split(kind: Any, axis: int) -> None:
    dy = integers(1, 6, 6, 6, kind=kind)
    parts = ops.concat_gradient(dy, [1, 3, 2], axis)
    wanted = np.split(dy, [1, 4], axis)
    assert all(np.array_equal(found, right) for found, right in zip(parts, wanted, strict=True))
    assert np.array_equal(ops.split_gradient(parts, axis), dy)
    assert np.array_equal(ops.split_gradient(parts, axis, out=(out := np.empty_like(dy))), dy) and out.any()


SLICES = [
    ((1, 0, 2), (5, 6, 3), ()), ((-4, 1, 0), (6, -1, 6), (2, 3, 1)), ((5, 4, 0), (-7, 0, 6), (-2, -1, 4)),
    ((0, 3, 0), (6, 3, 6), ()),
]  # fmt: skip


@KINDS
@pytest.mark.parametrize("words", SLICES)
def test_slices(kind: Any, words: Any) -> None:
    x = integers(1, 6, 6, 6, kind=kind)
    y = ops.slice(x, *words)
    dy = integers(2, *y.shape, kind=kind)
    dx = ops.slice_gradient(dy, x.shape, *words)
    wanted = np.zeros_like(x)
    steps = words[2] or (1, 1, 1)
    wanted[tuple(np.s_[a:b:c] for a, b, c in zip(*words[:2], steps, strict=True))] = dy
    assert np.array_equal(dx, wanted) and dx.dtype == kind


@KINDS
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize("widths", [1, ((0, 0), (2, 1), (0, 3)), ((2, 0), (0, 0), (0, 0)), 0])
def test_padding(kind: Any, mode: Any, widths: Any) -> None:
    x = integers(1, 4, 5, 6, kind=kind)
    y = ops.pad(x, widths, mode)
    dy = integers(2, *y.shape, kind=kind)
    agree(x, y, dy, ops.pad_gradient(dy, widths, mode))


@KINDS
@pytest.mark.parametrize(("dims", "wide"), [((3, 1), (2, 3, 4)), ((4,), (3, 4)), ((2, 3), (2, 3)), ((1, 1), (5, 4))])
def test_expansion(kind: Any, dims: Any, wide: Any) -> None:
    x, dy = integers(1, *dims, kind=kind), integers(2, *wide, kind=kind)
    agree(x, ops.expand(x, wide), dy, ops.expand_gradient(dy, dims))


@KINDS
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dims", [(4,), (2, 3), ()])
def test_gathers(kind: Any, axis: int, dims: tuple[int, ...]) -> None:
    """Indices that come several times are summed; negative ones count from the end."""
    x = integers(1, 3, 4, 5, kind=kind)
    indices = np.random.default_rng(3).integers(-3, 3, dims)
    y = ops.gather(x, indices, axis)
    dy = integers(2, *y.shape, kind=kind)
    agree(x, y, dy, ops.gather_gradient(dy, indices, x.shape, axis))
    out = np.empty_like(x)
    assert ops.gather_gradient(dy, indices, x.shape, axis, out=out) is out
    if axis == 0 and len(dims) == 1:
        table = integers(1, 7, 5, kind=kind)
        rows = ops.embedding(table, indices)
        dy = integers(2, *rows.shape, kind=kind)
        agree(table, rows, dy, ops.embedding_gradient(dy, indices, 7))


@KINDS
@pytest.mark.parametrize("reduction", ["none", "add"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatters(kind: Any, reduction: Any, axis: int) -> None:
    x, indices = integers(1, 6, 6, 6, kind=kind), np.array([[0, 3], [5, -3], [0, 2]])
    updates = integers(2, *ops.gather(x, indices, axis).shape, kind=kind)
    y = ops.scatter(x, indices, updates, axis, reduction)
    dy = integers(3, *y.shape, kind=kind)
    dx, dupdates = ops.scatter_gradient(dy, indices, axis, reduction)
    assert dx.dtype == dupdates.dtype == kind and dupdates.shape == updates.shape and dx.shape == x.shape
    sides = [(y, dy), (x, dx), (updates, dupdates)]
    whole, *parts = (np.vdot(a.astype(np.float64), b.astype(np.float64)) for a, b in sides)
    assert whole == sum(parts)


@KINDS
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_the_best(kind: Any, axis: int) -> None:
    x = np.random.default_rng(1).permutation(120).reshape(4, 5, 6).astype(kind)
    values, indices = ops.topk(x, 3, axis)
    dy = integers(2, *values.shape, kind=kind)
    wanted = np.zeros_like(x)
    np.put_along_axis(wanted, indices, dy, axis)
    found = ops.topk_gradient(dy, indices, x.shape, axis)
    assert np.array_equal(found, wanted) and found.dtype == kind
    assert np.array_equal(ops.topk_gradient(dy, indices.astype(np.int32), x.shape, axis), wanted)


ADAPTIVE = [
    ((7,), (3,)),
    ((8, 6), (4, 3)),
    ((7, 5), (3, 4)),
    ((5, 5), (1, 1)),
    ((3, 4), (5, 7)),
    ((4, 5, 6), (2, 3, 4)),
]


@KINDS
@pytest.mark.parametrize(("image", "size"), ADAPTIVE)
def test_adaptive_pooling(isa: str, kind: Any, image: Any, size: Any) -> None:
    engine, x = dnn.Engine(isa=isa), np.random.default_rng(1).permutation(12 * int(np.prod(image)))
    x = x.reshape(2, 6, *image).astype(np.float32)
    dy = integers(2, 2, 6, *size, kind=kind)
    y = ops.adaptive_avg_pool(x, size, engine=engine)
    dx = ops.adaptive_avg_pool_gradient(dy, x.shape, engine=engine)
    sides = [np.vdot(a.astype(np.float64), b.astype(np.float64)) for a, b in ((y, dy), (x, dx))]
    size_of = {2: 2.0**-9, 4: 2.0**-22}[kind.itemsize] if kind != TYPES[2] else 2.0**-12
    allowed = size_of * float(np.abs(x).astype(np.float64).ravel() @ np.abs(dx).astype(np.float64).ravel())
    assert abs(sides[0] - sides[1]) <= 4 * allowed and dx.dtype == kind
    best, places = ops.adaptive_max_pool(x, size, return_indices=True, engine=engine)
    dx = ops.adaptive_max_pool_gradient(dy, places, x.shape, engine=engine)
    assert np.vdot(best.astype(np.float64), dy.astype(np.float64)) == np.vdot(x.astype(np.float64), dx.astype(float))
    assert dx.dtype == kind and dx.shape == x.shape


D, ROWS = integers(1, 3, 4), np.array([0, 1, 2])
PLANE = integers(1, 1, 2, 3, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.concat_gradient(D, [1, 1]), "give sizes that make it up"),
        (lambda: ops.concat_gradient(D.astype(np.int8), [1, 2]), "dy has dtype int8, convert it to float32"),
        (lambda: ops.split_gradient([]), "arrays must be a sequence of one array or more"),
        (lambda: ops.slice_gradient(D, (3, 4), (0, 0), (3, 3)), r"dy has dims \(3, 4\), the result has \(3, 3\)"),
        (lambda: ops.slice_gradient(D, (3,), (0, 0), (3, 3)), "dims must be 2 integers"),
        (lambda: ops.slice_gradient(D, (10**5000, 1), (0, 0), (3, 3)), "dims must be 2 integers"),
        (lambda: ops.slice_gradient(D, (3, 4), (0,), (3, 4)), "must be 2 integers each, steps not 0"),
        (lambda: ops.slice_gradient(D, (3, 4), (0, 0), (3, 4), (1, 0)), "must be 2 integers each, steps not 0"),
        (lambda: ops.pad_gradient(D, 2), "padding of 2 leaves none of them to x"),
        (lambda: ops.pad_gradient(D, 1, "wrap"), "mode must be one of"),
        (lambda: ops.pad_gradient(D, ((1, 1),)), "widths must be an integer >= 0, or 2 pairs of them"),
        (lambda: ops.expand_gradient(D, (3, 3)), "from the end on they must be 1 or as dy"),
        (lambda: ops.expand_gradient(D, (1, 1, 3, 4)), "from the end on they must be 1 or as dy"),
        (lambda: ops.gather_gradient(D, ROWS, (5,)), "dims must be 2 integers"),
        (lambda: ops.gather_gradient(D, ROWS, (2, 4)), "indices"),
        (lambda: ops.gather_gradient(D, ROWS[:2], (5, 4)), "^dy has dims"),
        (lambda: ops.gather_gradient(D, ROWS.astype(float), (5, 4)), "indices have dtype float64"),
        (lambda: ops.embedding_gradient(np.float32(1), ROWS, 4), "dy is a scalar"),
        (lambda: ops.embedding_gradient(D, ROWS, 2.5), "rows must be integers"),
        (lambda: ops.scatter_gradient(D, ROWS, 0, "mul"), "reduction must be one of none, add, not 'mul'"),
        (lambda: ops.scatter_gradient(D, ROWS + 1, 0), "indices"),
        (lambda: ops.topk_gradient(D, ROWS, (3, 9)), r"dy has dims \(3, 4\), indices \(3,\)"),
        (lambda: ops.topk_gradient(D, np.full((3, 4), 9), (3, 9)), "indices must be from 0 to 8"),
        (lambda: ops.adaptive_avg_pool_gradient(D, (3, 4)), "3 to 5 are needed"),
        (lambda: ops.adaptive_avg_pool_gradient(PLANE, (1, 3, 6, 6)), "images and channels must be equal"),
        (lambda: ops.adaptive_max_pool_gradient(PLANE, PLANE, (1, 2, 6, 6)), "indices must be int64 or int32"),
        (lambda: ops.adaptive_max_pool_gradient(PLANE, np.full(PLANE.shape, 36), (1, 2, 6, 6)), "from 0 to 35"),
    ],
)
def test_mistakes(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        call()
