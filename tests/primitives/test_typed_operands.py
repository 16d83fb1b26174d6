"""Tensors that post-ops read beside results of any primitive: of every type, with the bits of f32."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.support.plans import proved_desc

INFERENCE, TRAINING = dnn.PropKind.forward_inference, dnn.PropKind.forward_training
DIMS = (2, 6, 5, 7)


def image(dims: tuple[int, ...] = DIMS, tag: str = "acdb") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dnn.f32, tag)


VECTOR = dnn.MemoryDesc(DIMS[1:2], dnn.f32, "a")
ROWS = dnn.MemoryDesc((9, 13), dnn.f32, "ab")
KINDS: Mapping[str, Callable[[], Any]] = {
    "softmax": lambda: dnn.SoftmaxForward(INFERENCE, "accurate", ROWS, ROWS, axis=1),
    "layer norm": lambda: dnn.LayerNormForward(INFERENCE, ROWS, ROWS),
    "batch norm": lambda: dnn.BatchNormForward(TRAINING, image(), image(), mean=VECTOR, variance=VECTOR),
    "group norm": lambda: dnn.GroupNormForward(INFERENCE, image(), image(), groups=3),
    "pooling": lambda: dnn.PoolingForward("max", image(), image((2, 6, 3, 5)), kernel=(3, 3)),
    "resampling": lambda: dnn.ResamplingForward("linear", image(), image((2, 6, 10, 14))),
    "reduction": lambda: dnn.ReductionForward("sum", ROWS, dnn.MemoryDesc((9, 1), dnn.f32, "ab")),
}


@pytest.mark.parametrize("dtype", [dnn.bf16, dnn.f16, dnn.s32, dnn.s8, dnn.u8], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_operands_of_every_type(isa: str, kind: str, dtype: dnn.DataType) -> None:
    """Small whole numbers, which all types hold."""
    desc, engine = KINDS[kind](), dnn.Engine(isa=isa, threads=2)
    dims, rng = desc.dst.dims, np.random.default_rng(0)
    src, numbers = (rng.integers(1, 9, n).astype(np.float32) for n in (desc.src.dims, dims))
    found = []
    for of in (dnn.f32, dtype):
        operand = dnn.MemoryDesc(dims, of, "abcd"[: len(dims)])
        pd = proved_desc(desc, dnn.Attr([dnn.Binary("mul", operand), dnn.Eltwise("relu")]), engine)
        given = {"src": src, "binary_0": numbers}
        memories = {name: dnn.Memory(tensor) for name, tensor in pd.plan.tensors.items()}
        for name, array in given.items():
            plain = dnn.MemoryDesc(array.shape, dnn.f32, "abcd"[: array.ndim])
            memories[name] = dnn.reorder(dnn.Memory.from_numpy(array, plain), pd.plan.tensors[name])
        dnn.Primitive(pd).execute(**memories)
        assert pd.plan.tensors["binary_0"].dtype == of
        found.append(memories["dst"].numpy())
    assert np.abs(found[0]).max() > 0
    np.testing.assert_array_equal(found[0], found[1])
