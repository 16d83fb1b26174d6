"""A result that would be written where an input is still read."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn


def numbers(*dims: int) -> Any:
    return np.random.default_rng(1).standard_normal(dims).astype(np.float32)


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
