"""Convolution with long chains: tensors of every broadcast, in nhwc and blocked dst, under both ISA levels."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.convolution import convolution
from asmdnn.definitions.windows import SlidingWindow
from tests.support import functions
from tests.support.functions import swirl
from tests.support.plans import emulate_plan

MB, OC = 2, 19


def numbers(seed: int, *dims: int) -> Any:
    return np.random.default_rng(seed).standard_normal(dims).astype(np.float32)


def convolve(x: Any, w: Any, b: Any, pad: int) -> Any:
    window = SlidingWindow(w.shape[2:], (1, 1), (1, 1), (pad, pad), (pad, pad))
    return convolution(x.astype(np.float64), w.astype(np.float64), window) + b[:, None, None]


class Layer:
    """A convolution whose chain has every kind of post-op, and its answer."""

    def __init__(self, tag: str, kernel: int, size: int, ic: int = 12) -> None:
        shapes = {"binary_1": (1, OC, 1, 1), "binary_3": (MB, OC, size, size), "c_4": (MB, 1, size, size),
                  "prelu_5": (1, OC, 1, 1), "binary_6": (1, 1, 1, 1)}  # fmt: skip
        self.arrays = {name: numbers(i, *shape) for i, (name, shape) in enumerate(shapes.items())}
        x, w, b = numbers(7, MB, ic, size, size), numbers(8, OC, ic, kernel, kernel) / np.float32(4), numbers(9, OC)
        self.arrays |= {"src": x, "weights": w, "bias": b, "dst": numbers(10, MB, OC, size, size)}
        plain = {
            name: dnn.MemoryDesc(array.shape, dnn.f32, "abcd") for name, array in self.arrays.items() if name != "bias"
        }
        free = {n: dnn.MemoryDesc(self.arrays[n].shape, dnn.f32, tag) for n in ("src", "dst")}
        self.attr = dnn.Attr([
            dnn.Eltwise("gelu_erf", scale=0.5), dnn.Binary("mul", plain["binary_1"]), dnn.Sum(0.5, 1.0),
            dnn.Binary("add", dnn.MemoryDesc(shapes["binary_3"], dnn.f32, tag)),
            dnn.PostOp(swirl, c=plain["c_4"], slope=0.75), dnn.PReLU(plain["prelu_5"]),
            dnn.Binary("max", plain["binary_6"]),
        ])  # fmt: skip
        weights, bias = dnn.MemoryDesc(w.shape, dnn.f32, "any"), dnn.MemoryDesc(b.shape, dnn.f32, "a")
        pad = (kernel // 2, kernel // 2)
        self.desc = dnn.ConvolutionForward(**free, weights=weights, bias=bias, padding_l=pad, padding_r=pad)

    def answer(self) -> Any:
        a = self.arrays
        sums = convolve(a["src"], a["weights"], a["bias"], self.desc.padding_l[0])
        x = 0.5 * functions.forward("gelu_erf", sums) * a["binary_1"] + 0.5 * (a["dst"] - 1.0) + a["binary_3"]
        x = swirl(x, a["c_4"], 0.75)
        return np.maximum(np.where(x > 0, x, x * a["prelu_5"]), a["binary_6"])

    def check(self, pd: dnn.PrimitiveDesc, dst: dnn.Memory) -> None:
        np.testing.assert_allclose(dst.numpy(), self.answer(), 1e-4, 1e-4)
        assert dst.padding_is_zero()

    def memories(self, pd: dnn.PrimitiveDesc) -> dict[str, dnn.Memory]:
        return {name: dnn.Memory.from_numpy(self.arrays[name], desc) for name, desc in pd.plan.tensors.items()}


CASES = [("any", 3, 9, 12), ("acdb", 3, 7, 12), ("acdb", 1, 5, 12), ("any", 1, 6, 300)]


@pytest.mark.parametrize(("tag", "kernel", "size", "ic"), CASES)
def test_chain(isa: str, tag: str, kernel: int, size: int, ic: int) -> None:
    layer = Layer(tag, kernel, size, ic)
    pd = dnn.primitive_desc(layer.desc, layer.attr, dnn.Engine(isa=isa, machine="zen3"))
    assert pd.implementation == f"direct:{isa}"
    pd.plan.check()
    memories = layer.memories(pd)
    dnn.Primitive(pd).execute(**memories)
    layer.check(pd, memories["dst"])


@pytest.mark.emulated("avx512_core")
def test_chain_emulated() -> None:
    layer = Layer("any", 1, 3)
    pd = dnn.primitive_desc(layer.desc, layer.attr, dnn.Engine(isa="avx512_core", threads=1))
    pd.plan.check()
    memories = layer.memories(pd)
    emulate_plan(pd.plan, memories)
    layer.check(pd, memories["dst"])


def test_32_post_ops(isa: str) -> None:
    chain = [dnn.Eltwise("linear", 1.0, 1.0)] * 31 + [dnn.Eltwise("tanh")]
    x, w = numbers(0, 1, 8, 4, 4), numbers(1, 8, 8, 1, 1)
    wanted = np.tanh(convolve(x, w, np.zeros(8), 0) + 31)
    np.testing.assert_allclose(dnn.ops.conv2d(x, w, post_ops=chain), wanted, 1e-5)


def test_data_comes_with_the_post_op(isa: str) -> None:
    """And a second call with other data, whose primitive is the first one's, uses its own."""
    x, w = numbers(0, 1, 8, 4, 4), numbers(1, 8, 8, 1, 1)
    for seed in (2, 3):
        c = numbers(seed, 1, 8, 1, 1)
        y = dnn.ops.conv2d(x, w, post_ops=[dnn.PostOp(swirl, c=c, slope=1.0)])
        np.testing.assert_allclose(y, swirl(convolve(x, w, np.zeros(8), 0), c, 1.0), 1e-4, 1e-4)


def test_what_no_tile_can_read_is_copied(isa: str) -> None:
    """Pixels at distances that vary, channels apart, other blocks than dst's: into the format that tiles read."""
    layer = Layer("acdb", 3, 7)
    for shape, tag in (
        ((1, OC, 1, 7), "abcd"),
        ((1, OC, 7, 7), "abcd"),
        ((MB, 1, 7, 1), "abcd"),
        ((1, OC, 7, 7), "aBcd5b"),
    ):
        tensor = dnn.MemoryDesc(shape, dnn.f32, tag)
        pd = dnn.primitive_desc(layer.desc, dnn.Attr([dnn.Binary("add", tensor)]), dnn.Engine(isa=isa, machine="zen3"))
        assert pd.implementation == f"reorder+direct:{isa}"
        pd.plan.check()
        arrays = layer.arrays | {"binary_0": numbers(11, *shape)}
        memories = {name: dnn.Memory.from_numpy(arrays[name], desc) for name, desc in pd.plan.tensors.items()}
        dnn.Primitive(pd).execute(**memories)
        sums = convolve(arrays["src"], arrays["weights"], arrays["bias"], 1)
        np.testing.assert_allclose(memories["dst"].numpy(), sums + arrays["binary_0"], 1e-5, 1e-5)
