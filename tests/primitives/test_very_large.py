"""Tensors of 2 GiB and more, which are planned and generated, never made: kernels that exist, or one sentence."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops
from asmdnn.memory.tags import LETTERS
from asmdnn.runtime.kernels import generate
from tests.support.drawing import RANDOM

ENGINE = dnn.Engine(isa="avx2", threads=2, machine="zen3")
LONGEST = (1 << 29) - 1  # f32 in 31 bits of bytes
INFERENCE = dnn.PropKind.forward_inference


def of(dims: tuple[int, ...], dtype: dnn.DataType = dnn.f32) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, LETTERS[: len(dims)])


def softmax(n: int, dtype: dnn.DataType) -> Any:
    return dnn.SoftmaxForward(prop_kind=INFERENCE, alg="accurate", src=of((n,), dtype), dst=of((n,), dtype), axis=0)


def sums(n: int, dtype: dnn.DataType) -> Any:
    return dnn.CumulativeSum(of((n,), dtype), of((n,), dtype), 0)


def layer_norm(n: int, dtype: dnn.DataType) -> Any:
    return dnn.LayerNormForward(INFERENCE, of((2, n), dtype), of((2, n), dtype), 1e-5)


def gradient(n: int, dtype: dnn.DataType) -> Any:
    return dnn.SoftmaxBackward("accurate", of((n,), dtype), of((n,), dtype), of((n,), dtype), 0)


def best(n: int, dtype: dnn.DataType, k: int = 1) -> Any:
    return dnn.TopKForward("max", of((n,), dtype), of((k,), dnn.s32), 0)


def largest_of(dims: tuple[int, ...], axis: int, dtype: dnn.DataType) -> Any:
    made = tuple(1 if dim == axis else n for dim, n in enumerate(dims))
    return dnn.ReductionForward("max", of(dims, dtype), of(made, dtype))


def gather(dims: tuple[int, ...], dtype: dnn.DataType) -> Any:
    return dnn.Gather(of(dims, dtype), of((7,), dnn.s32), of((7, *dims[1:]), dtype), 0)


def scatter(dims: tuple[int, ...], dtype: dnn.DataType) -> Any:
    return dnn.Scatter(of(dims, dtype), of((7,), dnn.s32), of((7, *dims[1:]), dtype), of(dims, dtype), 0)


ROWS = rf"rows have \d+ elements, kernels take up to {LONGEST} of 4 bytes: cut them"
APART = "are more than 2 GiB of f32 apart: reduce parts of it"
CHOSEN = r"axis 0 of src has 2147483656 elements, indices of 32 bits choose from 2147483647 at most: take a part of it"
TOO_LARGE: list[tuple[Any, str]] = [
    *((make(LONGEST + 1, dnn.f32), ROWS) for make in (softmax, sums, layer_norm, gradient, best)),
    *((make(LONGEST + 1, dnn.u8), ROWS) for make in (best, lambda n, dtype: best(n, dtype, 5))),
    (softmax(1 << 30, dnn.bf16), r"rows have 1073741824 elements, kernels take up to 1073741823 of 2 bytes"),
    (largest_of((2, 1 << 29), 0, dnn.u8), APART),
    (largest_of((2, 1 << 30), 1, dnn.f32), APART),
    (gather((2, 1 << 29), dnn.f32), "rows are 2 GiB or more apart"),
]


@pytest.mark.parametrize(("desc", "message"), TOO_LARGE)
def test_what_no_kernel_counts(desc: Any, message: str) -> None:
    with pytest.raises(dnn.Unimplemented, match=message):
        dnn.primitive_desc(desc, engine=ENGINE)


@pytest.mark.parametrize("make", [gather, scatter])
def test_axes_of_more_than_indices_name(make: Any) -> None:
    with pytest.raises(dnn.InvalidArguments, match=CHOSEN):
        make(((1 << 31) + 8,), dnn.u8)


def test_axes_of_more_than_places_count() -> None:
    with pytest.raises(dnn.InvalidArguments, match="axis 0 of src has 2147483656 elements: use 1 to 2147483647"):
        best((1 << 31) + 8, dnn.u8)
    for call in (lambda x: ops.argmax(x), lambda x: ops.argmin(x, 1), lambda x: ops.topk(x, 1)):
        with pytest.raises(dnn.InvalidArguments, match=r"x has no elements along axis -?1, of which none is the best"):
            call(np.zeros((2, 0), np.float32))


LARGE = {
    "softmax": softmax(LONGEST, dnn.f32),
    "softmax of columns": dnn.SoftmaxForward(
        prop_kind=INFERENCE, alg="accurate", src=of((1 << 28, 2)), dst=of((1 << 28, 2)), axis=0
    ),
    "sums": sums(LONGEST, dnn.f32),
    "best": best(LONGEST, dnn.u8, 5),
    "maximum": largest_of((2, (1 << 29) - 8), 0, dnn.u8),
    "gather": gather(((1 << 31) - 1,), dnn.u8),
    "gather far apart": gather((2, (1 << 30) + 8), dnn.u8),
    "scatter": scatter(((1 << 31) - 1,), dnn.u8),
    "scatter far apart": scatter((2, (1 << 30) + 8), dnn.u8),
    "gather of steps": dnn.Gather(
        dnn.MemoryDesc((3,), dnn.u8, strides=(1 << 30,)), of((3,), dnn.s32), of((3,), dnn.u8), 0
    ),
    "few indices far apart": dnn.Gather(
        of((9, 4)), dnn.MemoryDesc((7,), dnn.s32, strides=(1 << 28,)), of((7, 4)), 0
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LARGE)
def test_the_largest_that_kernels_count(name: str) -> None:
    """Each has code; what it is expected to take is bounded, too."""
    pd = dnn.primitive_desc(LARGE[name], engine=ENGINE)
    assert all(generate(spec) for spec in pd.plan.specs)
    assert all((phase.cycles > 0).all() for phase in pd.plan.phases)


@pytest.mark.isa("avx2")
def test_slices_that_go_backwards() -> None:
    """By steps, of which only the elements that are taken are looked at."""
    x = RANDOM.integers(0, 99, (7, 9, 5)).astype(np.int8)
    words = {-1: (-1, -99), -2: (8, 0), -3: (6, 1), 2: (1, 99), -8: (-1, -99), 1: (0, 99)}
    for steps in ((-1, -2, -3), (-3, 2, -8), (-2, 1, 2), (2, -8, -1)):
        starts, stops = zip(*(words[step] for step in steps), strict=True)
        wanted = x[tuple(slice(*each) for each in zip(starts, stops, steps, strict=True))]
        assert np.array_equal(ops.slice(x, starts, stops, steps), wanted)
