"""What lies between products, at the edges of what is legal: tensors that span more than 2 GiB, and empty ones."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn

FAR = 2**30  # elements: 4 GiB
DIMS, HALF, ONE = (2, 8, 16, 18), (2, 8, 8, 9), (2, 8, 1, 1)


def spread(dims: tuple[int, ...], strides: tuple[int, ...], dtype: dnn.DataType = dnn.f32) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, strides=strides)


def far(dims: tuple[int, ...], axis: int, dtype: dnn.DataType = dnn.f32) -> dnn.MemoryDesc:
    """Row-major, but for one axis, whose neighbours are 4 GiB apart."""
    strides, step = [0] * len(dims), 1
    for dim in reversed(range(len(dims))):
        strides[dim] = FAR if dim == axis else step
        step *= 1 if dim == axis else dims[dim]
    return spread(dims, tuple(strides), dtype)


def described(axis: int) -> list[Any]:
    small, result = far(HALF, axis), far(ONE, axis)
    best = far((2, 1, *DIMS[2:]), axis, dnn.s32)
    return [
        dnn.PoolingForward("max", far(DIMS, axis), small, (2, 2), (2, 2)),
        dnn.PoolingForward("max", far(DIMS, axis), small, (2, 2), (2, 2), indices=far(HALF, axis, dnn.s32)),
        dnn.ResamplingForward("nearest", small, far(DIMS, axis)),
        dnn.ResamplingForward("linear", small, far(DIMS, axis)),
        dnn.ReductionForward("sum", far(DIMS, axis), result),
        dnn.TopKForward("max", far(DIMS, axis), best, 1),
        dnn.PReLUForward(dnn.PropKind.forward_inference, far(DIMS, axis), far(ONE, axis), far(DIMS, axis)),
    ]


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_images_channels_and_rows_more_than_2_gib_apart(axis: int, isa: str) -> None:
    """They are planned, or refused in a sentence: rows may be too far apart for a window.  Nothing is executed."""
    engine = dnn.Engine(isa=isa, threads=2, machine="zen3")
    for desc in described(axis):
        try:
            plan = dnn.primitive_desc(desc, engine=engine).plan
        except dnn.Unimplemented as error:
            assert axis == 2 and "spans more than" in str(error)
        else:
            assert max(int(phase.records.max()) for phase in plan.phases) > 2**31 or plan.scratch_bytes or axis == 2


@pytest.mark.parametrize("dims", [(0, 3, 4, 5), (2, 0, 4, 5)])
def test_nothing_to_compute(isa: str, dims: tuple[int, ...]) -> None:
    engine, x = dnn.Engine(isa=isa), np.zeros(dims, np.float32)
    assert dnn.ops.max_pool(x, 2, engine=engine).shape == (*dims[:2], 2, 2)
    assert dnn.ops.max_pool(x, 2, return_indices=True, engine=engine)[1].size == 0
    assert dnn.ops.resize(x, factor=2, mode="linear", engine=engine).shape == (*dims[:2], 8, 10)
    assert dnn.ops.argmax(x, 2, engine=engine).size == dnn.ops.topk(x, 2, 3, engine=engine)[0].size == 0
    assert dnn.ops.prelu(x, np.ones(dims[1], np.float32), engine=engine).shape == dims
    assert dnn.ops.cumsum(x, 1, engine=engine).shape == dims
    assert dnn.ops.binary("add", x, x, engine=engine).shape == dims
