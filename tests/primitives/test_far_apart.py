"""Elements hundreds of MiB apart: code reaches 2 GiB, so what it takes at once lies nearer, or is copied."""

from typing import Any

import pytest

import asmdnn as dnn
from asmdnn.runtime.kernels import generate
from tests.support.plans import proved_desc

INFERENCE = dnn.PropKind.forward_inference
FAR = 1 << 28  # elements
IMAGE, APART = (1, 16, 4, 4), (16 * FAR, FAR, 4, 1)
PIXELS = (16 * FAR, 1, 4 * FAR, FAR)  # channels last


def of(dims: tuple[int, ...], strides: tuple[int, ...] = (), dtype: dnn.DataType = dnn.f32) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, strides=strides) if strides else dnn.MemoryDesc(dims, dtype, "abcd"[: len(dims)])


def weights(dims: tuple[int, ...]) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dnn.f32, "any")


DESCS: dict[str, Any] = {
    "eltwise": dnn.EltwiseForward(INFERENCE, "relu", of((9, 3)), of((9, 3), (FAR, 1))),
    "binary": dnn.BinaryForward("add", of((8, 8), (1 << 24, 1)), of((8, 1), (1 << 24, 1)), of((8, 8), (FAR, 1))),
    "prelu": dnn.PReLUForward(INFERENCE, of(IMAGE, APART), of((1, 16, 1, 1)), of(IMAGE)),
    "layer norm": dnn.LayerNormForward(INFERENCE, of((9, 3)), of((9, 3), (FAR, 1)), 1e-5),
    "batch norm": dnn.BatchNormForward(INFERENCE, of(IMAGE, PIXELS), of(IMAGE), 1e-5),
    "group norm": dnn.GroupNormForward(INFERENCE, of(IMAGE), of(IMAGE, PIXELS), 2, 1e-5),
    "softmax": dnn.SoftmaxForward(
        prop_kind=INFERENCE, alg="accurate", src=of((9, 8), (FAR, 1)), dst=of((9, 8), (FAR, 1)), axis=1
    ),
    "best": dnn.TopKForward("max", of((17, 3)), of((17, 2), (16 * FAR, 8 * FAR), dnn.s32), 1),
    "gradient of weights": dnn.ConvolutionBackwardWeights(
        of((1, 32, 5)), weights((64, 32, 1)), of((1, 64, 5), (5 * FAR, 1, FAR))
    ),
    "gradient of weights, copied": dnn.ConvolutionBackwardWeights(
        of((1, 3, 5)), weights((8, 3, 3)), of((1, 8, 3), (3 * FAR, 1, FAR))
    ),
    "matrices of a row": dnn.MatMul(of((5, 1, 30)), weights((1, 30, 1)), of((5, 1, 1), (4 * FAR, 1, 1))),
}


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
@pytest.mark.parametrize("name", DESCS)
def test_code_reaches_it(name: str, isa: Any) -> None:
    pd = proved_desc(DESCS[name], engine=dnn.Engine(isa=isa, threads=2, machine="zen3"))
    assert all(generate(spec) for spec in pd.plan.specs)
