"""A scale for every channel of src: of weights or of src, in every kind of plan, against float64."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.problems import parse_problem
from tests.primitives.conv_case import MACHINE, ConvCase
from tests.primitives.conv_reference import Data, expected, make_data, tolerance
from tests.primitives.guarded import guarded_memory, in_child
from tests.primitives.tensors import assert_within, holding, read
from tests.support.plans import execute

CASES = [  # problem, src, dst, weights, algorithm, implementation
    ("mb3ic37oc19ih9kh1", "any", "any", "any", "direct", "scale_weights+direct"),
    ("mb2ic24oc60ih5kh1", "axb", "aBx16b", "any", "direct", "scale_src+direct"),
    ("mb2ic24oc9ih6kh3ph1", "axb~3", "axb", "any", "direct", "scale_src+direct"),
    ("mb1ic19oc8ih40kh3ph1", "any", "any", "any", "direct", "scale_weights+direct"),
    ("mb2ic30oc12ih14kh1sh2", "abx", "abx", "any", "direct", "reorder+scale_weights+direct"),
    ("mb2ic12oc12ih14kh1", "axb", "axb", "xba", "direct", "pack+scale_weights+direct"),
    ("mb2ic12oc180ih5kh1", "bxa+5", "abx", "abx", "direct", "scale_src+product"),
    ("g24mb2ic24oc24ih9kh3ph1", "any", "any", "any", "direct", "scale_src+depthwise"),
    ("g4mb2ic16oc16ih9kh3ph1sh2", "abx", "abx", "any", "direct", "scale_src+reorder+grouped"),
    ("g3mb2ic60oc33ih9kh1", "axb", "axb", "any", "direct", "scale_src+direct"),
    ("mb2ic64oc64ih20kh3ph1", "any", "any", "abx", "auto", "scale_src+pack+winograd"),
    ("mb1ic300oc16iw40kw1", "any", "any", "any", "direct", "scale_weights+direct"),  # channels in two ranges
]


def planned(case: Any, mask: int, engine: dnn.Engine) -> tuple[ConvCase, dnn.PrimitiveDesc]:
    problem, src, dst, weights, algorithm, name = case
    conv = ConvCase(parse_problem(problem), src, dst, True, ("sum:0.5", "relu"), 0, weights)
    desc = replace(conv.desc(), algorithm=dnn.Algorithm[f"convolution_{algorithm}"])
    attr = dnn.Attr(conv.attr().post_ops, scales={"src": mask, "dst": 0})
    pd = dnn.primitive_desc(desc, attr, engine)
    assert pd.implementation.startswith(name)
    pd.plan.check()
    return conv, pd


def check(case: Any, mask: int, engine: dnn.Engine, emulated: bool = False) -> None:
    conv, pd = planned(case, mask, engine)
    data = make_data(conv, False)
    images, channels = conv.problem.src_dims[:2]
    scales = np.random.default_rng(1).uniform(-2, 2, (images if mask & 1 else 1, channels)).astype(np.float32)
    arrays: dict[str, Any] = data.arrays() | {"src_scales": scales.ravel(), "dst_scales": np.full(1, 0.5, np.float32)}
    memories = {name: holding(desc, arrays[name]) for name, desc in pd.plan.tensors.items()}
    execute(pd, memories, emulated)
    scaled = Data(data.src * along_channels(scales, data.src), data.weights, data.bias, data.old)
    slack = 20 if case[4] == "auto" else 2  # the product with a scale is rounded too, and divided by a half
    assert_within(read(memories["dst"]), 2 * expected(conv, scaled), slack * 2 * tolerance(conv, scaled))


def along_channels(scales: Any, src: Any) -> Any:
    return scales.reshape(*scales.shape, *[1] * (src.ndim - 2))


@pytest.mark.parametrize("case", CASES, ids=" ".join)
@pytest.mark.parametrize("mask", [2, 3], ids=["channels", "images and channels"])
def test_values(isa: str, case: Any, mask: int) -> None:
    check(case, mask, dnn.Engine("cpu", isa=isa, threads=2, l2_bytes=16384, machine=MACHINE))


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("case", [("mb2ic9oc3ih4kh1", *CASES[0][1:]), ("mb2ic9oc19ih3kh1", *CASES[1][1:])], ids=str)
def test_avx512_emulated(case: Any) -> None:
    check(case, 3, dnn.Engine("cpu", isa="avx512_core", threads=1, machine=MACHINE), emulated=True)


@pytest.mark.parametrize("threads", [1, 3])
def test_deconvolution(isa: str, threads: int) -> None:
    """2x2 with stride 2: each pixel of src adds a cell, so the answer is one matrix a cell."""
    mb, ic, oc, size = 2, 24, 5, 6
    dims = {"src": (mb, ic, size, size), "weights": (oc, ic, 2, 2), "dst": (mb, oc, 2 * size, 2 * size)}
    descs = {name: dnn.MemoryDesc(d, dnn.f32, "any") for name, d in dims.items()}
    desc = dnn.DeconvolutionForward(**descs, strides=(2, 2))
    engine = dnn.Engine("cpu", isa=isa, threads=threads, machine=MACHINE)
    pd = dnn.primitive_desc(desc, dnn.Attr(scales={"src": 3}), engine)
    assert pd.implementation == f"scale_weights+direct:{isa}"
    pd.plan.check()
    random = np.random.default_rng(0)
    arrays = {n: random.integers(-4, 5, d.dims).astype(np.float32) for n, d in pd.plan.tensors.items() if n != "dst"}
    memories = {name: holding(desc, arrays.get(name)) for name, desc in pd.plan.tensors.items()}
    dnn.Primitive(pd).execute(**memories)
    scaled = arrays["src"] * along_channels(arrays["src_scales"].reshape(mb, ic), arrays["src"])
    wanted = np.einsum("ncyx,ocrs->noyrxs", scaled, arrays["weights"]).reshape(dims["dst"])
    np.testing.assert_array_equal(read(memories["dst"]), wanted)


@pytest.mark.parametrize("at_end", [False, True], ids=["start", "end"])
@pytest.mark.parametrize("case", [CASES[0], CASES[1]], ids=str)
def test_between_guard_pages(isa: str, case: Any, at_end: bool) -> None:
    _, pd = planned(case, 3, dnn.Engine("cpu", isa=isa, threads=1, machine=MACHINE))
    memories, buffers = {}, []
    for name, desc in pd.plan.tensors.items():
        memories[name], buffer = guarded_memory(desc, at_end)
        memories[name].array[:] = 1
        buffers.append(buffer)
    primitive = dnn.Primitive(pd)
    assert not in_child(lambda: primitive.execute(**memories))


def test_nothing_to_scale(isa: str) -> None:
    """A src without pixels is padding alone; without images there is nothing."""
    for dims, out, pad in (((2, 4, 0, 3), (2, 8, 2, 3), 1), ((0, 4, 3, 3), (0, 8, 3, 3), 0)):
        src, dst = (dnn.MemoryDesc(d, dnn.f32, "any") for d in (dims, out))
        weights = dnn.MemoryDesc((8, 4, 1, 1), dnn.f32, "any")
        desc = dnn.ConvolutionForward(src, weights, dst, padding_l=(pad, 0), padding_r=(pad, 0))
        pd = dnn.primitive_desc(desc, dnn.Attr(scales={"src": 3}), dnn.Engine("cpu", isa=isa))
        pd.plan.check()
        memories = {name: holding(desc, None) for name, desc in pd.plan.tensors.items()}
        dnn.Primitive(pd).execute(**memories)
        assert not read(memories["dst"]).any()


def test_pixels_have_no_scales() -> None:
    conv = ConvCase(parse_problem("mb2ic24oc33ih5kh1"), "any", "any", False, ())
    with pytest.raises(dnn.Unimplemented, match="the mask 7, but only dims 0, 1 of src can have scales"):
        dnn.primitive_desc(conv.desc(), dnn.Attr(scales={"src": 7}))


def test_images_of_other_sizes_multiply_their_weights_by_the_same_records(isa: str) -> None:
    engine = dnn.Engine("cpu", isa=isa, threads=1, machine=MACHINE)
    plans = [planned((f"mb1ic32oc48ih40iw{width}kh1kw1", *CASES[0][1:]), 2, engine)[1].plan for width in (40, 56)]
    assert plans[0].phases[0].records is plans[1].phases[0].records
