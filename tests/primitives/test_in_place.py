"""Results that replace an input: where kernels do so themselves, and where tensors are copied around them."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn

DIMS = (2, 19, 5, 6)
INFERENCE = dnn.PropKind.forward_inference


def numbers(*dims: int) -> Any:
    return np.random.default_rng(1).standard_normal(dims).astype(np.float32)


@pytest.mark.parametrize("dtype", [dnn.bf16, dnn.s8, dnn.f32], ids=str)
@pytest.mark.parametrize("kind", ["softmax", "tanh"])
def test_a_result_replaces_its_source(isa: str, kind: str, dtype: dnn.DataType) -> None:
    desc = dnn.MemoryDesc(DIMS, dtype, "acdb")
    operation: Any = dnn.EltwiseForward(INFERENCE, "tanh", desc, desc)
    if kind == "softmax":
        operation = dnn.SoftmaxForward(INFERENCE, "log", desc, desc, 2)
    engine = dnn.Engine(isa=isa, threads=2)
    primitive = dnn.Primitive(dnn.primitive_desc(operation, engine=engine))
    reordered = kind == "softmax" and dtype != dnn.f32
    assert primitive.pd.implementation.startswith("reorder+") == reordered
    plain = dnn.Memory.from_numpy(9 * numbers(*DIMS), dnn.MemoryDesc(DIMS, dnn.f32, "abcd"))
    src, dst, same = dnn.Memory(desc), dnn.Memory(desc), dnn.Memory(desc)
    for memory in (src, same):
        dnn.reorder(plain, memory)
    primitive.execute(src=src, dst=dst)
    primitive.execute(src=same, dst=same)
    assert np.array_equal(same.array, dst.array) and not np.array_equal(same.array, src.array)


def test_an_output_of_another_descriptor_takes_no_inputs_place(isa: str) -> None:
    """The mean at the start of src would be written while src is read."""
    src, mean = dnn.MemoryDesc((8, 8), dnn.f32, "ab"), dnn.MemoryDesc((8,), dnn.f32, "a")
    desc = dnn.LayerNormForward(dnn.PropKind.forward_training, src, src, mean=mean, variance=mean)
    primitive = dnn.Primitive(dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa)))
    assert "src" in primitive.pd.plan.in_place
    x = dnn.Memory.from_numpy(numbers(8, 8), src)
    start = dnn.Memory(mean, x.array[:8])
    with pytest.raises(dnn.InvalidArguments, match="mean overlaps src"):
        primitive.execute(src=x, dst=dnn.Memory(src), mean=start, variance=dnn.Memory(mean))
