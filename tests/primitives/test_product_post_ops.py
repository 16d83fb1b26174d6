"""Products with long chains: tensors of every broadcast and layout, in every kind of plan, under both ISA levels."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.primitives.tensors import holding, read
from tests.support import functions
from tests.support.functions import swirl
from tests.support.plans import execute
from tests.support.tuning import by_whole_rows

# dims of src and weights, tags of src, weights, dst and of what post-ops read, the beginning of the implementation
PRODUCTS = [
    ((7, 20), (20, 19), "ab any ab ab", "tiles"),
    ((20, 9), (9, 33), "ab ab ab ba", "pack_operands+tiles"),
    ((112, 40), (40, 256), "ab ab ab ab", "packing_tiles+tiles"),
    ((13, 20), (20, 19), "ab ba ab ab", "pack_weights+tiles"),
    ((13, 20), (20, 19), "ab ab ba ba", "swap"),
    ((13, 20), (20, 19), "ab ab ba ab", ""),
    ((4, 16000), (16000, 24), "ab ab ab ab", "split_k"),
    ((1, 900), (900, 150), "ab ab ab ab", "rows"),
    ((5, 4, 9), (5, 9, 11), "abc abc abc abc", "tiles"),
    ((5, 4, 9), (1, 9, 11), "abc abc abc bac", ""),
    ((3, 1, 4, 9), (1, 2, 9, 11), "abcd abcd bacd abcd", ""),
]


def numbers(seed: int, dims: Any) -> Any:
    return np.random.default_rng(seed).standard_normal(dims).astype(np.float32)


class Chain:
    """Every kind of post-op, with a tensor per element, row, column, batch and for all."""

    def __init__(self, dims: tuple[int, ...], tag: str) -> None:
        ones = (1,) * len(dims)
        shapes = {"binary_1": (*ones[1:], dims[-1]), "binary_2": dims, "c_4": (*ones[2:], dims[-2], 1),
                  "prelu_5": (*dims[:-2], 1, 1), "binary_6": ones}  # fmt: skip
        self.arrays = {name: numbers(10 + i, shape) for i, (name, shape) in enumerate(shapes.items())}
        desc = {name: dnn.MemoryDesc(shape, dnn.f32, tag) for name, shape in shapes.items()}
        self.attr = dnn.Attr([
            dnn.Sum(0.5), dnn.Binary("mul", desc["binary_1"]), dnn.Binary("add", desc["binary_2"]),
            dnn.Eltwise("gelu_erf", scale=0.5), dnn.PostOp(swirl, c=desc["c_4"], slope=0.75),
            dnn.PReLU(desc["prelu_5"]), dnn.Binary("max", desc["binary_6"]),
        ])  # fmt: skip

    def answer(self, sums: Any, dst: Any) -> Any:
        a = self.arrays
        x = 0.5 * functions.forward("gelu_erf", (sums + 0.5 * dst) * a["binary_1"] + a["binary_2"])
        x = swirl(x, a["c_4"], 0.75)
        return np.maximum(np.where(x > 0, x, x * a["prelu_5"]), a["binary_6"])


def run(pd: dnn.PrimitiveDesc, arrays: dict[str, Any], emulated: bool) -> Any:
    memories = {name: holding(desc, arrays[name]) for name, desc in pd.plan.tensors.items()}
    pd.plan.check()
    execute(pd, memories, emulated)
    return read(memories["dst"])


def check_matmul(case: Any, engine: dnn.Engine, emulated: bool = False) -> None:
    src, weights, tags, name = case
    batch = np.broadcast_shapes(src[:-2], weights[:-2])
    dims = {"src": src, "weights": weights, "dst": (*batch, src[-2], weights[-1])}
    *plain, others = tags.split()
    chain = Chain(dims["dst"], others)
    arrays = {n: numbers(i, shape) for i, (n, shape) in enumerate(dims.items())} | chain.arrays
    arrays["weights"] = arrays["weights"] / np.float32(np.sqrt(src[-1]))
    descs = [dnn.MemoryDesc(dims[n], dnn.f32, tag) for n, tag in zip(dims, plain, strict=True)]
    pd = dnn.primitive_desc(dnn.MatMul(*descs), chain.attr, engine)
    assert pd.implementation.startswith(name)
    sums = np.matmul(arrays["src"].astype(np.float64), arrays["weights"].astype(np.float64))
    wanted = chain.answer(sums, arrays["dst"])
    np.testing.assert_allclose(run(pd, arrays, emulated), wanted, 2e-5, 2e-5)


@pytest.mark.parametrize("case", PRODUCTS, ids=str)
@pytest.mark.parametrize("threads", [1, 2])
def test_matmul(isa: str, case: Any, threads: int) -> None:
    if isa == "avx2":
        check_matmul(case, by_whole_rows(dnn.Engine(isa=isa, threads=threads)))


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("case", PRODUCTS[:2] + PRODUCTS[4:5], ids=str)
def test_avx512_emulated(case: Any) -> None:
    src, weights, tags, _ = case
    check_matmul((src, weights, tags, ""), dnn.Engine(isa="avx512_core", threads=1), emulated=True)


@pytest.mark.parametrize("tags", ["ab any ab", "ab ba ba"])
def test_inner_product(isa: str, tags: str) -> None:
    stag, wtag, dtag = tags.split()
    chain = Chain((6, 21), "ab")
    arrays = {"src": numbers(0, (6, 30)), "weights": numbers(1, (21, 30)) / np.float32(5), "dst": numbers(2, (6, 21))}
    tensors = {n: dnn.MemoryDesc(arrays[n].shape, dnn.f32, t) for n, t in zip(arrays, (stag, wtag, dtag), strict=True)}
    pd = dnn.primitive_desc(dnn.InnerProductForward(**tensors), chain.attr, dnn.Engine(isa=isa, threads=1))
    sums = arrays["src"].astype(np.float64) @ arrays["weights"].T.astype(np.float64)
    np.testing.assert_allclose(run(pd, arrays | chain.arrays, False), chain.answer(sums, arrays["dst"]), 2e-5, 2e-5)


def test_data_may_come_with_the_post_op() -> None:
    a, b, c = numbers(0, (5, 8)), numbers(1, (8, 12)), numbers(2, (1, 12))
    op = dnn.PostOp(lambda x, c: dnn.where(x > 0, x, c * x), c=dnn.Memory.from_array(c))
    x = a.astype(np.float64) @ b
    np.testing.assert_allclose(dnn.ops.matmul(a, b, post_ops=[op]), np.where(x > 0, x, c * x), 1e-5, 1e-5)


PLAIN = {n: dnn.MemoryDesc(d, dnn.f32, "ab") for n, d in (("src", (4, 16)), ("weights", (16, 8)), ("dst", (4, 8)))}


@pytest.mark.parametrize(
    ("attr", "message"),
    [
        (dnn.Attr(zero_points={"src": 0}), "zero points are for integers, and src is f32: leave them out"),
        (
            dnn.Attr(scales={"weights": 4}),
            "scales of weights have the mask 4, but only dims . of weights can have scales",
        ),
    ],
)
def test_refusals(attr: dnn.Attr, message: str) -> None:
    weights = dnn.MemoryDesc((8, 16), dnn.f32, "ab")
    for desc in (dnn.MatMul(**PLAIN), dnn.InnerProductForward(PLAIN["src"], weights, PLAIN["dst"])):
        with pytest.raises(dnn.Unimplemented, match=message):
            dnn.primitive_desc(desc, attr)


def test_a_tensor_that_does_not_fit() -> None:
    attr = dnn.Attr([dnn.Binary("add", dnn.MemoryDesc((3, 8), dnn.f32, "ab"))])
    with pytest.raises(dnn.InvalidArguments, match="binary_0 has dims"):
        dnn.primitive_desc(dnn.MatMul(**PLAIN), attr)
