"""Workspaces of another forward pass: what does not fit is refused, and what fits but is other data stays in bounds."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn

AVX2 = dnn.Engine(isa="avx2", threads=1)
DIMS = (2, 8, 6, 6)
ALL = (2, 8, 3, 3)
X, Y = dnn.MemoryDesc(DIMS, dnn.f32, "nchw"), dnn.MemoryDesc(ALL, dnn.f32, "nchw")


def pooled(kind: dnn.DataType = dnn.s32) -> Any:
    places = dnn.MemoryDesc(ALL, kind, "nchw")
    return "indices", dnn.PoolingBackward("max", X, Y, (2, 2), (2, 2), indices=places)


def local() -> Any:
    return "workspace", dnn.LRNBackward("lrn_across_channels", X, X, X, workspace=X)


def fused() -> Any:
    mask, c = dnn.MemoryDesc(DIMS, dnn.u8, "nchw"), dnn.MemoryDesc((8,), dnn.f32, "a")
    return "workspace", dnn.BatchNormBackward(X, X, X, c, c, fuse="norm_relu", workspace=mask)


@pytest.mark.parametrize("make", [pooled, lambda: pooled(dnn.u8), local, fused])
def test_one_of_other_dims_is_refused(make: Any) -> None:
    name, desc = make()
    pd = dnn.primitive_desc(desc, engine=AVX2)
    memories = {argument: dnn.Memory(tensor) for argument, tensor in pd.plan.tensors.items()}
    own = pd.plan.tensors[name]
    for dims, dtype in (((1, *own.dims[1:]), own.dtype), (own.dims, dnn.s8)):
        memories[name] = dnn.Memory(dnn.MemoryDesc(dims, dtype, "nchw"))
        with pytest.raises(dnn.InvalidArguments, match=name):
            dnn.Primitive(pd).execute(**memories)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(
    ("kind", "place"), [*((dnn.s32, at) for at in (-(2**31), -1, 36, 2**31 - 1)), (dnn.u8, 4), (dnn.u8, 255)]
)
def test_places_of_no_pixel_are_passed_over(kind: dnn.DataType, place: int) -> None:
    """They name where gradients go, in src or in a window: none goes outside, whatever they are."""
    _, desc = pooled(kind)
    pd = dnn.primitive_desc(desc, engine=AVX2)
    memories = {argument: dnn.Memory(tensor) for argument, tensor in pd.plan.tensors.items()}
    memories["diff_dst"].array[...] = 1
    memories["indices"].array[...] = place
    dnn.Primitive(pd).execute(**memories)
    assert not memories["diff_src"].array.any()


@pytest.mark.isa("avx2")
def test_places_of_another_pass_move_nothing_out_of_their_windows() -> None:
    """Those of an image that is turned around name pixels of other windows, or fit by chance."""
    x = np.random.default_rng(0).permutation(np.prod(DIMS)).reshape(DIMS).astype(np.float32)
    y, places = dnn.ops.max_pool(x, 2, stride=2, return_indices=True, engine=AVX2)
    foreign = np.ascontiguousarray(places[:, :, ::-1])
    assert not dnn.ops.max_pool_gradient(y, foreign, DIMS, 2, stride=2, engine=AVX2)[:, :, [0, 1, 4, 5]].any()
