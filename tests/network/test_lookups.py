"""GatherND and GatherElements natively: of numbers, integers and truths, by inputs and by constants."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import compiled, engine
from tests.support.drawing import RANDOM

TYPES = (np.float32, np.int64, np.bool_)


def check(op: str, x: Any, indices: Any, wanted: Any, is_constant: bool, **words: int) -> None:
    g = dnn.Graph()
    numbers = indices if is_constant else g.input("i", indices.shape, indices.dtype)
    net = g.compile(y=g.apply(op, g.input("x", x.shape, x.dtype), numbers, **words), engine=engine(2))
    segment = compiled(net)
    assert "gather:avx2" in [step.pd.implementation for step in segment.steps]
    net.check()
    found = net.run({"x": x} | ({} if is_constant else {"i": indices}))["y"]
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_gather_nd(depth: int, dtype: Any, is_constant: bool) -> None:
    x = RANDOM.integers(-2, 3, (4, 6, 5)).astype(dtype)
    indices = np.array([[[1, 2, 0], [0, -1, 4]], [[3, 0, -5], [3, 0, -5]]])[..., :depth]
    check("GatherND", x, indices, x[tuple(np.moveaxis(indices, -1, 0))], is_constant)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
def test_gather_nd_of_batches(dtype: Any, is_constant: bool) -> None:
    x = RANDOM.integers(-2, 3, (3, 6, 5)).astype(dtype)
    indices = RANDOM.integers(-6, 6, (3, 2, 1))
    wanted = np.stack([x[b, indices[b, :, 0]] for b in range(3)])
    check("GatherND", x, indices, wanted, is_constant, batch_dims=1)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_gather_elements(axis: int, dtype: Any, is_constant: bool) -> None:
    x = RANDOM.integers(-2, 3, (4, 6, 5)).astype(dtype)
    size = x.shape[axis]
    indices = RANDOM.integers(-size, size, (2, 3, 4))
    corner = x[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(indices.shape))]
    wanted = np.take_along_axis(corner, np.where(indices < 0, indices + size, indices), axis)
    check("GatherElements", x, indices, wanted, is_constant, axis=axis)


@pytest.mark.isa("avx2")
def test_a_mask_as_text_encoders_look_it_up() -> None:
    """Of open dims: a truth for each of (item, token), as torch exports masks of transformers."""
    g = dnn.Graph()
    mask = g.apply("Cast", g.input("mask", ("items", "tokens"), np.int64), to=9)
    pairs = g.input("pairs", ("items", "tokens", 2), np.int64)
    kept = g.apply("Where", g.apply("GatherND", mask, pairs), np.float32(0), np.float32(-1))
    net = g.compile(y=kept, engine=engine())
    for items, tokens in ((1, 4), (2, 7), (3, 5)):
        given = RANDOM.integers(0, 2, (items, tokens))
        where = np.stack(np.broadcast_arrays(np.arange(items)[:, None], np.arange(tokens)[None]), -1)
        found = net.run({"mask": given, "pairs": where})["y"]
        np.testing.assert_array_equal(found, given - 1.0)


def test_a_constant_out_of_range_is_refused() -> None:
    g = dnn.Graph()
    x = g.input("x", (4, 3))
    with pytest.raises(dnn.AsmdnnError):
        g.compile(y=g.apply("GatherND", x, np.array([[0, 3]])), engine=engine())


@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize(
    ("op", "dims", "indices"),
    [("Gather", (3, 0, 2), (1,)), ("Gather", (0, 0, 2), ()), ("GatherElements", (3, 0, 2), (3, 1, 2))],
)
def test_an_axis_without_elements_has_none_to_choose(
    op: str, dims: tuple[int, ...], indices: tuple[int, ...], is_constant: bool
) -> None:
    """Also where the result has no elements in any case."""
    g = dnn.Graph()
    zeros = np.zeros(indices, np.int64)
    y = g.apply(op, g.input("x", dims), zeros if is_constant else g.input("i", indices, np.int64), axis=1)
    with pytest.raises(dnn.InvalidArguments, match=f"{op} .*axis 1 of dims .* has no elements"):
        g.compile(y=y, engine=engine())


@pytest.mark.parametrize(("op", "indices"), [("Gather", (0,)), ("GatherElements", (3, 0, 2))])
def test_no_indices_choose_nothing(op: str, indices: tuple[int, ...]) -> None:
    g = dnn.Graph()
    y = g.apply(op, g.input("x", (3, 0, 2)), np.zeros(indices, np.int64), axis=1)
    assert g.compile(y=y, engine=engine()).run({"x": np.zeros((3, 0, 2), np.float32)})["y"].shape == (3, 0, 2)
