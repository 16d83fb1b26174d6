"""Functions on views: columns, rows apart, transposed and reversed arrays give what dense copies of them give."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops

Make = Callable[[Any, dnn.Engine], tuple[Callable[..., Any], list[tuple[int, ...]]]]
SIZES = (1, 1, 2, 3, 5, 8, 9, 16, 17, 33, 64, 70)
ROUNDS = 25


def view(random: Any, dims: tuple[int, ...]) -> Any:
    """An array of these dims: of another order of dims, with gaps, or both, or dense."""
    order = random.permutation(len(dims))
    steps = [int(random.choice([1, 1, 1, 2, 3])) for _ in dims]
    room = [n * step + int(random.choice([0, 0, 1, 5])) for n, step in zip(dims, steps, strict=True)]
    base = random.standard_normal([room[i] for i in order]).astype(np.float32)
    turned = base.transpose(np.argsort(order))
    return turned[tuple(slice(0, n * step, step) for n, step in zip(dims, steps, strict=True))]


def sizes(random: Any, count: int) -> list[int]:
    return [int(n) for n in random.choice(SIZES, count)]


def product(random: Any, engine: dnn.Engine) -> Any:
    m, n, k = sizes(random, 3)
    return partial(ops.matmul, engine=engine), [(m, k), (k, n)]


def batch(random: Any, engine: dnn.Engine) -> Any:
    m, n, k, b = sizes(random, 4)
    return partial(ops.matmul, engine=engine), [(min(b, 5), m, k), (min(b, 5) if random.random() < 0.5 else 1, k, n)]


def biased(random: Any, engine: dnn.Engine) -> Any:
    m, n, k = sizes(random, 3)
    return partial(ops.matmul, post_ops=["relu"], engine=engine), [(m, k), (k, n), (n,)]


def layer(random: Any, engine: dnn.Engine) -> Any:
    m, n, k = sizes(random, 3)
    return partial(ops.inner_product, engine=engine), [(m, k), (n, k)]


def input_gradient(random: Any, engine: dnn.Engine) -> Any:
    m, n, k = sizes(random, 3)
    return partial(ops.inner_product_input_gradient, engine=engine), [(m, n), (n, k)]


def weight_gradient(random: Any, engine: dnn.Engine) -> Any:
    m, n, k = sizes(random, 3)
    return lambda x, dy: ops.inner_product_weight_gradient(x, dy, engine=engine)[0], [(m, k), (m, n)]


def convolution(random: Any, engine: dnn.Engine) -> Any:
    channels, made, size = sizes(random, 3)
    return partial(ops.conv2d, padding=1, engine=engine), [(1, channels, min(size, 9), 6), (made, channels, 3, 3)]


def attention(random: Any, engine: dnn.Engine) -> Any:
    rows, keys, depth, made = sizes(random, 4)
    return partial(ops.attention, engine=engine), [(1, 2, rows, depth), (1, 2, keys, depth), (1, 2, keys, made)]


def elementwise(random: Any, engine: dnn.Engine) -> Any:
    dims = tuple(sizes(random, 3))
    return lambda x, y: ops.binary("add", ops.eltwise(x, "tanh", engine=engine), y, engine=engine), [dims, dims]


def rows(random: Any, engine: dnn.Engine) -> Any:
    axis = int(random.integers(3))
    return partial(ops.softmax, axis=axis, engine=engine), [tuple(sizes(random, 3))]


def sums(random: Any, engine: dnn.Engine) -> Any:
    axis = int(random.integers(3))
    return partial(ops.reduce, alg="sum", axis=axis, engine=engine), [tuple(sizes(random, 3))]


def norm(random: Any, engine: dnn.Engine) -> Any:
    dims = tuple(sizes(random, 2))
    return partial(ops.layer_norm, engine=engine), [dims, dims[1:], dims[1:]]


def pooling(random: Any, engine: dnn.Engine) -> Any:
    n, channels, size = sizes(random, 3)
    return partial(ops.max_pool, kernel=3, padding=1, engine=engine), [(min(n, 2), channels, min(size, 12), 9)]


def joined(random: Any, engine: dnn.Engine) -> Any:
    axis, dims = int(random.integers(3)), sizes(random, 3)
    both = [tuple(n if dim == axis else m for dim, m in enumerate(dims)) for n in sizes(random, 2)]
    return lambda x, y: ops.concat([x, y], axis, engine=engine), both


def part(random: Any, engine: dnn.Engine) -> Any:
    dims = tuple(sizes(random, 3))
    steps = tuple(int(n) for n in random.choice([-3, -1, 1, 2], 3))
    starts, stops = ([n if (step > 0) == is_end else -n - 1 for n, step in zip(dims, steps, strict=True)]
                     for is_end in (False, True))  # fmt: skip
    return partial(ops.slice, starts=starts, stops=stops, steps=steps, engine=engine), [dims]


def padded(random: Any, engine: dnn.Engine) -> Any:
    widths = [(int(n), int(m)) for n, m in random.integers(0, 3, (3, 2))]
    return partial(ops.pad, widths=widths, mode="edge", engine=engine), [tuple(sizes(random, 3))]


def taken(random: Any, engine: dnn.Engine) -> Any:
    dims, axis = tuple(sizes(random, 3)), int(random.integers(3))
    indices = random.integers(-dims[axis], dims[axis], (3, 4))[:, :: int(random.choice([1, 2, -1]))]
    return partial(ops.gather, indices=indices, axis=axis, engine=engine), [dims]


def changed(random: Any, engine: dnn.Engine) -> Any:
    dims, axis = tuple(sizes(random, 3)), int(random.integers(3))
    indices = random.integers(-dims[axis], dims[axis], (2, 3))
    updates = (*dims[:axis], 2, 3, *dims[axis + 1 :])
    how = {"axis": axis, "reduction": str(random.choice(["none", "add"])), "engine": engine}
    return lambda x, y: ops.scatter(x, indices, y, **how), [dims, updates]


KINDS: tuple[Any, ...] = (
    product, batch, biased, layer, input_gradient, weight_gradient, convolution, attention, elementwise, rows, sums,
    norm, pooling, joined, part, padded, taken, changed,
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_views(isa: str, kind: Make) -> None:
    random, engine = np.random.default_rng(KINDS.index(kind)), dnn.Engine(isa=isa, threads=1)
    for _ in range(ROUNDS):
        function, dims = kind(random, engine)
        arrays = [view(random, each) for each in dims]
        found, wanted = (function(*some) for some in (arrays, [np.ascontiguousarray(x) for x in arrays]))
        scale = max(1.0, float(np.abs(wanted).max(initial=0)))
        said = f"{dims}, strides {[x.strides for x in arrays]}"
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * scale, err_msg=said)


@pytest.mark.parametrize("rows", [8, 64, 1000])
@pytest.mark.parametrize("step", [2, 6])
def test_a_column_of_a_matrix(isa: str, rows: int, step: int) -> None:
    """Its elements are no dense column, though it is one column."""
    random, engine = np.random.default_rng(rows), dnn.Engine(isa=isa, threads=1)
    a, w = (random.standard_normal(dims).astype(np.float32) for dims in ((rows, 64), (64, step)))
    column = w[:, 1:2]
    found = ops.matmul(a, column, engine=engine)
    np.testing.assert_allclose(found, a.astype(np.float64) @ column, rtol=0, atol=1e-4)
    strides = [[s // x.itemsize for s in x.strides] for x in (a, column, found)]
    dims = (a.shape, column.shape, found.shape)
    tensors = [dnn.MemoryDesc(n, dnn.f32, strides=own) for n, own in zip(dims, strides, strict=True)]
    pd = dnn.primitive_desc(dnn.MatMul(*tensors), engine=engine)
    pd.plan.check()
    assert pd.implementation == f"pack_weights+dots:{isa}"
