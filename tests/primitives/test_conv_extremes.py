"""Convolutions at the edges of what is legal: nothing to compute, nothing to read, and tensors beyond 2 GiB."""

from dataclasses import replace
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.problems import parse_problem
from tests.primitives.conv_case import MACHINE, ConvCase
from tests.primitives.conv_reference import expected, make_data
from tests.primitives.tensors import assert_within, holding, read
from tests.support.plans import proved_desc

GIB = 2**30 // 4  # in elements
MAP_NORESERVE = 0x4000  # of Linux; Python's mmap names it from 3.14 on


def described(
    src: tuple[int, ...], weights: tuple[int, ...], dst: tuple[int, ...], pad: int, tag: str, wei: str
) -> dnn.ConvolutionForward:
    axes = len(src) - 2
    formats = {"src": (src, tag), "weights": (weights, wei), "dst": (dst, tag), "bias": ((dst[1],), "a")}
    tensors = {name: dnn.MemoryDesc(dims, dnn.f32, f) for name, (dims, f) in formats.items()}
    return dnn.ConvolutionForward(**tensors, padding_l=(pad,) * axes, padding_r=(pad,) * axes)


EMPTY = {
    "a batch of 0": ((0, 24, 6, 6), (40, 24, 3, 3), (0, 40, 6, 6), 1),
    "no rows of dst": ((2, 24, 2, 6), (40, 24, 3, 3), (2, 40, 0, 4), 0),
    "no rows of src": ((2, 24, 0, 6), (40, 24, 3, 3), (2, 40, 0, 6), 1),
    "1D": ((0, 24, 6), (40, 24, 3), (0, 40, 6), 1),
    "3D": ((3, 24, 6, 6, 2), (40, 24, 3, 3, 3), (3, 40, 4, 4, 0), 0),
}


@pytest.mark.parametrize("wei", ["any", "abx", "ABx8b16a"])
@pytest.mark.parametrize("tag", ["any", "abx", "axb", "aBx8b"])
@pytest.mark.parametrize("what", EMPTY)
def test_nothing_to_compute(isa: str, what: str, tag: str, wei: str) -> None:
    *dims, pad = EMPTY[what]
    if what == "no rows of src":
        dims[2] = (2, 40, 0, 6)
        desc = replace(described(*dims, pad, tag, wei), padding_l=(1, 1), padding_r=(1, 1))
    else:
        desc = described(*dims, pad, tag, wei)
    attr = dnn.Attr([dnn.Sum(0.5), dnn.Eltwise("relu")], scales={"weights": 1})
    pd = proved_desc(desc, attr, dnn.Engine(isa=isa, threads=2, l2_bytes=512 << 10, machine=MACHINE))
    assert pd.implementation == f"nothing:{isa}"
    again = desc.with_formats({name: pd.plan.tensors[name] for name in desc.tensors()})
    assert dnn.primitive_desc(again, attr, pd.engine).plan.tensors == pd.plan.tensors
    dnn.Primitive(pd).execute(**{name: dnn.Memory(d) for name, d in pd.plan.tensors.items()})


@pytest.mark.parametrize("tag", ["any", "abx", "axb", "aBx8b"])
def test_nothing_to_read(isa: str, tag: str) -> None:
    """An image without rows, but padding: dst has the bias, through the post-ops."""
    desc = described((2, 24, 0, 5), (40, 24, 3, 3), (2, 40, 4, 9), 3, tag, "any")
    engine = dnn.Engine(isa=isa, threads=1, l2_bytes=512 << 10, machine=MACHINE)
    pd = proved_desc(desc, dnn.Attr([dnn.Eltwise("relu")]), engine)
    bias = np.arange(-20, 20).astype(np.float32)
    memories = {n: holding(d, bias if n == "bias" else None) for n, d in pd.plan.tensors.items()}
    dnn.Primitive(pd).execute(**memories)
    wanted = np.broadcast_to(np.maximum(bias, 0)[:, None, None], (2, 40, 4, 9))
    assert np.array_equal(read(memories["dst"]), wanted)


def strided(dims: tuple[int, ...], strides: tuple[int, ...], *blocks: tuple[int, int]) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dnn.f32, strides=strides, inner_blocks=blocks)


FAR_PROBLEM = "mb2ic24ih4iw3oc40oh4ow3kh3kw3ph1pw1"
FAR = {
    "rows of src": ("src", strided((2, 24, 4, 3), (32 * GIB, 1, GIB, 24)), "direct"),
    "pixels of src": ("src", strided((2, 24, 4, 3), (32 * GIB, 1, 2 * GIB, GIB // 2 + 24)), "direct"),
    "blocks of src": ("src", strided((2, 24, 4, 3), (32 * GIB, 3 * GIB, 24, 8), (1, 8)), "direct"),
    "channels of src": ("src", strided((2, 24, 4, 3), (32 * GIB, GIB, 3, 1)), "reorder+direct"),
    "rows of dst": ("dst", strided((2, 40, 4, 3), (32 * GIB, 1, GIB, 40)), "direct"),
    "pixels of dst": ("dst", strided((2, 40, 4, 3), (32 * GIB, 1, 4 * GIB, GIB)), "direct"),
    "blocks of dst": ("dst", strided((2, 40, 4, 3), (32 * GIB, 3 * GIB, 48, 16), (1, 16)), "direct"),
    "channels of dst": ("dst", strided((2, 40, 4, 3), (64 * GIB, GIB, 3, 1)), "reorder+direct"),
    "weights": ("weights", strided((40, 24, 3, 3), (GIB, 9, 3, 1)), "pack+direct"),
}


def sparse(desc: dnn.MemoryDesc) -> dnn.Memory:
    """A memory of which only pages that are touched exist."""
    pages = mmap(-1, desc.size_bytes, flags=MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
    return dnn.Memory(desc, np.frombuffer(pages, np.float32), padding_is_zero=True)


@pytest.mark.parametrize("what", FAR)
def test_tensors_beyond_2_gib(isa: str, what: str) -> None:
    """Offsets are 64 bits wide wherever a plan or a kernel adds them up, and displacements stay small."""
    name, desc, implementation = FAR[what]
    case = ConvCase(parse_problem(FAR_PROBLEM), "any", "any", True, ("sum", "relu"))
    engine = dnn.Engine(isa=isa, threads=1, l2_bytes=512 << 10, machine=MACHINE)
    pd = dnn.primitive_desc(case.desc().with_formats({name: desc}), case.attr(), engine)
    assert pd.implementation == f"{implementation}:{isa}"
    if name != "dst":
        pd.plan.check()  # which counts how often every element of dst is written: not of 40 GiB
    data = make_data(case, integers=True)
    memories = {n: sparse(d) if n == name else dnn.Memory(d) for n, d in pd.plan.tensors.items()}
    for argument, values in data.arrays().items():
        memories[argument].array[memories[argument].desc.offsets()] = values
    dnn.Primitive(pd).execute(**memories)
    dst = memories["dst"]
    assert_within(dst.array[dst.desc.offsets()], expected(case, data), 0.0)


@pytest.mark.parametrize("window", ["kh3kw3ph1pw1", "kh3kw7ph1pw3"])
def test_few_far_channels(window: str) -> None:
    """Planes of 1.2 GB: a tap of several channels would need displacements beyond 32 bits."""
    src = strided((1, 3, 4, 3), (3 * GIB, GIB + 77, 3, 1))
    case = ConvCase(parse_problem(f"mb1ic3ih4iw3oc16oh4ow3{window}"), "any", "any", True, ())
    pd = proved_desc(case.desc().with_formats({"src": src}), engine=dnn.Engine(isa="avx2", threads=1))
    assert pd.implementation == "direct:avx2"
    data = make_data(case, integers=True)
    memories = {n: sparse(d) if n == "src" else dnn.Memory(d) for n, d in pd.plan.tensors.items()}
    for argument, values in data.arrays().items():
        memories[argument].array[memories[argument].desc.offsets()] = values
    dnn.Primitive(pd).execute(**memories)
    dst = memories["dst"]
    assert_within(dst.array[dst.desc.offsets()], expected(case, data), 0.0)
