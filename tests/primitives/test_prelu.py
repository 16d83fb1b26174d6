"""What PReLU has beside tests/conformance: arrays, and bad input."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.support.plans import proved_desc
from tests.support.tuning import tuned

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


@pytest.mark.parametrize("written_out", [1 << 14, 1], ids=["records", "rounds"])
@pytest.mark.parametrize(("whole_row", "kernels"), [(4096, 2), (8192, 1)], ids=["pieces", "whole"])
def test_rows_of_many_channels(isa: str, whole_row: int, kernels: int, written_out: int) -> None:
    """Pieces of a row follow one another in dst; a class may want rows of so many elements whole."""
    x, weights = numbers(2, 40, 5001), numbers(1, 40, 1, seed=1)
    src, one = dnn.MemoryDesc(x.shape, dnn.f32, "abc"), dnn.MemoryDesc(weights.shape, dnn.f32, "abc")
    with tuned("elementwise", whole_row=whole_row), tuned("phases", written_out=written_out, round_records=8):
        engine = dnn.Engine(isa=isa, threads=2)
        pd = proved_desc(dnn.PReLUForward(INFERENCE, src, one, src), engine=engine)
    assert len(pd.plan.specs) == kernels
    for phase in pd.plan.phases:
        assert np.all(np.diff(phase.records[:, 2]) > 0), "in the order of dst"
    assert any(phase.repeats for phase in pd.plan.phases) == (written_out == 1)
    assert len(pd.plan.phases) == 1
    dst = dnn.Memory(src)
    dnn.Primitive(pd).execute(src=dnn.Memory(src, x), weights=dnn.Memory(one, weights), dst=dst)
    assert np.array_equal(dst.numpy(), np.where(x > 0, x, weights * x))


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
