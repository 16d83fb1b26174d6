"""What PReLU has beside tests/conformance: arrays, and bad input."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn

INFERENCE = dnn.PropKind.forward_inference
DIMS = (2, 19, 5, 7)


def numbers(*dims: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-2, 2, dims).astype(np.float32)


def test_arrays(isa: str) -> None:
    x, weights, engine = numbers(*DIMS), numbers(19, seed=1), dnn.Engine(isa=isa)
    wanted = np.where(x > 0, x, weights[:, None, None] * x)
    assert np.array_equal(dnn.ops.prelu(x, weights, engine=engine), wanted)
    one = dnn.ops.prelu(x, np.float32([0.25]).reshape(1, 1, 1, 1), post_ops=[dnn.Eltwise("abs")], engine=engine)
    assert np.array_equal(one, np.abs(np.where(x > 0, x, np.float32(0.25) * x)))
    assert np.isnan(dnn.ops.prelu(np.float32([np.nan]), np.float32([0]), engine=engine)).all()


def test_bad_input() -> None:
    desc, other = dnn.MemoryDesc((2, 3), dnn.f32, "ab"), dnn.MemoryDesc((2, 4), dnn.f32, "ab")
    for tensors, says in (
        ((desc, other, desc), "weights has dims"),
        ((desc, desc, other), "dst has dims"),
        ((desc, None, desc), "weights must be a MemoryDesc"),
        ((desc, dnn.MemoryDesc((3,), dnn.f32, "a"), desc), "weights has dims"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.PReLUForward(INFERENCE, *tensors)  # type: ignore[arg-type]
