"""Chains of 32 post-ops, the most there are, that read more tensors than a CPU has registers for pointers."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.primitives.formats import integers
from tests.primitives.tensors import holding, read
from tests.support.plans import emulate_plan

MOST = 32
KINDS = ("add", "prelu", "max", "sub")


def f32(*dims: int, tag: str = "any") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dnn.f32, tag)


class Chain:
    """Tensors of the result's dims, of its second dim, of one number, in turn."""

    def __init__(self, dims: tuple[int, ...]) -> None:
        shapes = (dims, (1, dims[1], *[1] * (len(dims) - 2)), (1,) * len(dims))
        self.post_ops: list[Any] = []
        self.arrays: dict[str, Any] = {}
        for i in range(MOST):
            values = integers(100 + i, shapes[i % 3]) * (0.5 if KINDS[i % 4] == "prelu" else 1.0)
            desc = f32(*values.shape)
            self.post_ops.append(dnn.PReLU(desc) if KINDS[i % 4] == "prelu" else dnn.Binary(KINDS[i % 4], desc))
            self.arrays[f"{'prelu' if KINDS[i % 4] == 'prelu' else 'binary'}_{i}"] = np.float32(values)

    def answer(self, x: Any) -> Any:
        steps = {"add": np.add, "max": np.maximum, "sub": np.subtract, "prelu": lambda x, w: np.where(x > 0, x, x * w)}
        for i, values in enumerate(self.arrays.values()):
            x = steps[KINDS[i % 4]](x, values.astype(np.float64))
        return x


X, W, B = integers(0, (5, 12)), integers(1, (12, 19)), integers(2, (5, 19))
IMAGE, FILTER = integers(3, (2, 9, 4, 5)), integers(4, (19, 9, 1, 1))
CASES: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "matmul": (dnn.MatMul(f32(5, 12), f32(12, 19), f32(5, 19)), {"src": X, "weights": W}, X @ W),
    "inner product": (dnn.InnerProductForward(f32(5, 12), f32(19, 12), f32(5, 19)), {"src": X, "weights": W.T}, X @ W),
    "rows": (
        dnn.MatMul(f32(1, 300), f32(300, 150, tag="ab"), f32(1, 150)),
        {"src": integers(5, (1, 300)), "weights": integers(6, (300, 150))},
        integers(5, (1, 300)) @ integers(6, (300, 150)),
    ),
    "eltwise": (
        dnn.EltwiseForward(dnn.PropKind.forward_inference, "abs", f32(5, 19), f32(5, 19)), {"src": B}, np.abs(B),
    ),
    "binary": (dnn.BinaryForward("mul", f32(5, 19), f32(5, 19), f32(5, 19)), {"src0": B, "src1": X @ W}, B * (X @ W)),
    "convolution": (
        dnn.ConvolutionForward(f32(2, 9, 4, 5), f32(19, 9, 1, 1), f32(2, 19, 4, 5)),
        {"src": IMAGE, "weights": FILTER},
        np.einsum("nchw,oc->nohw", IMAGE, FILTER[:, :, 0, 0]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CASES)
def test_executed(isa: str, kind: str) -> None:
    desc, arrays, x = CASES[kind]
    chain = Chain(desc.dst.dims)
    pd = dnn.primitive_desc(desc, dnn.Attr(chain.post_ops), dnn.Engine(isa=isa, threads=2))
    pd.plan.check()
    memories = {name: holding(d, (arrays | chain.arrays).get(name)) for name, d in pd.plan.tensors.items()}
    dnn.Primitive(pd).execute(**memories)
    np.testing.assert_allclose(read(memories["dst"]), chain.answer(x), 1e-5, 1e-5)


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("kind", CASES)
def test_emulated(kind: str) -> None:
    desc, arrays, x = CASES[kind]
    chain = Chain(desc.dst.dims)
    pd = dnn.primitive_desc(desc, dnn.Attr(chain.post_ops), dnn.Engine(isa="avx512_core", threads=1))
    memories = {name: holding(d, (arrays | chain.arrays).get(name)) for name, d in pd.plan.tensors.items()}
    emulate_plan(pd.plan, memories)
    np.testing.assert_allclose(read(memories["dst"]), chain.answer(x), 1e-5, 1e-5)


@pytest.mark.parametrize("alg", ["pow", "gelu_erf", "mish"])
def test_long_functions(isa: str, alg: str) -> None:
    """32 of the longest ones: more values than registers, and code far longer than other kernels have."""
    x = np.linspace(0.5, 2, 21, dtype=np.float32).reshape(1, 21)
    parameters = {"alpha": 1.0, "beta": 1.001} if alg == "pow" else {}
    attr = dnn.Attr([dnn.Eltwise(alg, **parameters)] * MOST)
    first = dnn.Attr([dnn.Eltwise(alg, **parameters)])
    y, one_by_one = dnn.ops.matmul(x, np.eye(21, dtype=np.float32), post_ops=attr.post_ops), x
    for _ in range(MOST):
        one_by_one = dnn.ops.matmul(one_by_one, np.eye(21, dtype=np.float32), post_ops=first.post_ops)
    np.testing.assert_array_equal(y, one_by_one)
