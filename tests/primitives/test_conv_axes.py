"""Attributes, threads and ranges of channels with one spatial axis and with three, as the other files test with two."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.primitives.conv_case import ConvCase, case_of
from tests.primitives.conv_reference import by_channel, make_data, sums
from tests.primitives.conv_run import check_results, run
from tests.primitives.test_conv_phases import SMALL_L2_BYTES
from tests.support.plans import emulate_plan

LINES = (
    "mb2ic17iw13oc19ow7kw5sw2pw2 any any bias -",
    "mb2ic17iw13oc19ow13kw3pw1 ncw nwc bias -",
    "mb2ic12id3ih4iw5oc19od3oh2ow5kd3kh3kw3sd1sh2sw1pd1ph1pw1 any any bias -",
    "mb2ic20id2ih3iw3oc19od2oh3ow3kd1kh1kw1pd0ph0pw0 ncdhw ndhwc bias - oidhw",
)
CASES = [case_of(line) for line in LINES]


def numbers(seed: int, *dims: int) -> Any:
    return np.random.default_rng(seed).uniform(0.5, 1.5, dims).astype(np.float32)


class Scaled:
    """A convolution with all scales, a bias, and tensors of every broadcast; and its answer."""

    def __init__(self, case: ConvCase) -> None:
        dims, axes = case.problem.dst_dims, len(case.problem.axes)
        mb, oc, *pixels = dims
        shapes = {
            "binary_0": (1, oc, *[1] * axes),
            "binary_1": dims,
            "binary_2": (mb, 1, *pixels),
            "binary_3": (1,) * len(dims),
        }
        tensors = {name: dnn.MemoryDesc(shape, dnn.f32, "abcde"[: len(shape)]) for name, shape in shapes.items()}
        full = dnn.MemoryDesc(dims, dnn.f32, "any")  # dst's own format, whatever that is
        words = zip(("mul", "add", "max", "add"), {**tensors, "binary_1": full}.values(), strict=True)
        self.attr = dnn.Attr([dnn.Binary(*word) for word in words], scales={"src": 0, "weights": 1, "dst": 2})
        self.case, data = case, make_data(case, integers=False)
        self.arrays = {name: numbers(seed, *shape) for seed, (name, shape) in enumerate(shapes.items())}
        self.arrays |= {"src_scales": numbers(5, 1), "weights_scales": numbers(6, oc), "dst_scales": numbers(7, oc)}
        self.arrays |= {"src": data.src, "weights": data.weights, "bias": data.bias}

    def answer(self) -> Any:
        a = {name: array.astype(np.float64) for name, array in self.arrays.items()}
        scales = by_channel(self.case, a["weights_scales"]) * a["src_scales"]
        x = sums(self.case, a["src"], a["weights"]) * scales + by_channel(self.case, a["bias"])
        x = np.maximum(x * a["binary_0"] + a["binary_1"], a["binary_2"]) + a["binary_3"]
        return x / by_channel(self.case, a["dst_scales"])

    def memories(self, pd: dnn.PrimitiveDesc) -> dict[str, dnn.Memory]:
        found = {n: dnn.Memory.from_numpy(self.arrays[n], d) for n, d in pd.plan.tensors.items() if n != "dst"}
        return found | {"dst": dnn.Memory(pd.dst_desc)}

    def check(self, memories: dict[str, dnn.Memory]) -> None:
        np.testing.assert_allclose(memories["dst"].numpy(), self.answer(), 1e-4, 1e-4)
        assert memories["dst"].padding_is_zero()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_scales_and_tensors(isa: str, case: ConvCase) -> None:
    scaled = Scaled(case)
    pd = dnn.primitive_desc(case.desc(), scaled.attr, dnn.Engine(isa=isa, threads=1, l2_bytes=512 << 10))
    pd.plan.check()
    memories = scaled.memories(pd)
    dnn.Primitive(pd).execute(**memories)
    scaled.check(memories)


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("case", CASES[::2], ids=str)
def test_scales_and_tensors_emulated(case: ConvCase) -> None:
    scaled = Scaled(case)
    pd = dnn.primitive_desc(case.desc(), scaled.attr, dnn.Engine(isa="avx512_core", threads=1, l2_bytes=1 << 20))
    memories = scaled.memories(pd)
    emulate_plan(pd.plan, memories)
    scaled.check(memories)


LONG = [
    case_of("mb2ic40iw60oc33ow60kw5pw2 any any bias sum+relu"),
    case_of("mb1ic48id4ih5iw6oc33od4oh5ow6kd3kh3kw3pd1ph1pw1 ndhwc ncdhw bias sum:0.5+relu oidhw"),
]


@pytest.mark.parametrize("case", LONG, ids=str)
def test_ranges_of_channels(isa: str, case: ConvCase) -> None:
    small = replace(case, l2_bytes=SMALL_L2_BYTES)
    pd = dnn.primitive_desc(small.desc(), small.attr(), dnn.Engine(isa=isa, threads=1, l2_bytes=SMALL_L2_BYTES))
    assert sum(phase.continues for phase in pd.plan.phases) >= 1
    pd.plan.check()
    check_results(dnn.Primitive(pd), small)


@pytest.mark.parametrize("case", LONG, ids=str)
def test_every_count_of_threads_gives_the_same_bytes(isa: str, case: ConvCase) -> None:
    data, results = make_data(case, integers=False), set()
    for threads in (1, 2, 5):
        engine = dnn.Engine(isa=isa, threads=threads, l2_bytes=SMALL_L2_BYTES)
        pd = dnn.primitive_desc(case.desc(), case.attr(), engine)
        assert pd.plan.parts(pd.threads) == threads
        results.add(run(dnn.Primitive(pd), data).tobytes())
    assert len(results) == 1
