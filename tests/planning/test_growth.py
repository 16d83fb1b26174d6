"""Plans do not grow with rows: what is written out stays small, is proved, and computes the same on every team."""

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.primitives.core.implementation import plans
from tools.planning import KINDS

MOST_RECORDS = 1 << 15
FOLDED = ("matmul m x 64 : 64 x 64", "inner product m x 64", "reorder m x 17 x 7, abc to aBc8b", "shuffle m x 64 x 7")
ENGINE = dnn.Engine(isa="avx2", threads=2, l2_bytes=512 << 10)


@pytest.mark.parametrize("kind", KINDS)
def test_records_of_a_hundred_million_rows(kind: str) -> None:
    plan = dnn.primitive_desc(KINDS[kind](10**8), engine=ENGINE).plan
    assert sum(len(phase.records) for phase in plan.phases) <= 2 * MOST_RECORDS
    if kind in FOLDED:
        plan.check()


@pytest.mark.parametrize("dims", [(40_000, 16, 64), (300_001, 64, 1), (100_003, 3, 40), (50, 16, 100_000)], ids=str)
def test_products_in_rounds(isa: str, dims: tuple[int, int, int]) -> None:
    m, k, n = dims
    random = np.random.default_rng(m)
    src, weights = (random.integers(-3, 4, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    descs = [dnn.MemoryDesc(shape, dnn.f32, "ab") for shape in ((m, k), (k, n), (m, n))]
    for threads in (1, 3):
        pd = dnn.primitive_desc(dnn.MatMul(*descs), engine=dnn.Engine(threads=threads, l2_bytes=512 << 10))
        pd.plan.check()
        memories = {name: dnn.Memory(desc) for name, desc in pd.plan.tensors.items()}
        memories["src"].array[...] = src.reshape(memories["src"].array.shape)
        memories["weights"].array[...] = weights.reshape(memories["weights"].array.shape)
        dnn.Primitive(pd).execute(**memories)
        assert np.array_equal(memories["dst"].array.reshape(m, n), src @ weights)


def test_a_batch_of_images_in_rounds(isa: str) -> None:
    """1x1 with an operand for each image, so that a product is the answer."""
    images, channels, pixels = 5000, 8, 16
    random = np.random.default_rng(1)
    src = random.integers(-3, 4, (images, channels, pixels)).astype(np.float32)
    weights = random.integers(-3, 4, (channels, channels)).astype(np.float32)
    added = random.integers(-3, 4, (images, 1, 1)).astype(np.float32)
    free = dnn.MemoryDesc((images, channels, 4, 4), dnn.f32, "nhwc")
    attr = dnn.Attr([dnn.Binary("add", dnn.MemoryDesc((images, 1, 1, 1), dnn.f32, "abcd"))])
    any_weights = dnn.MemoryDesc((channels, channels, 1, 1), dnn.f32, "any")
    engine = dnn.Engine(threads=2)
    pd = dnn.primitive_desc(dnn.ConvolutionForward(src=free, weights=any_weights, dst=free), attr, engine)
    memories = {name: dnn.Memory(desc) for name, desc in pd.plan.tensors.items()}
    memories["src"] = dnn.Memory(free, np.ascontiguousarray(src.transpose(0, 2, 1)).ravel())
    plain = dnn.Memory(dnn.MemoryDesc(any_weights.dims, dnn.f32, "abcd"), weights.ravel())
    packing = dnn.primitive_desc(dnn.Reorder(plain.desc, memories["weights"].desc), engine=engine)
    dnn.Primitive(packing).execute(src=plain, dst=memories["weights"])
    memories["binary_0"] = dnn.Memory(pd.plan.tensors["binary_0"], added.ravel())
    pd.plan.check()
    dnn.Primitive(pd).execute(**memories)
    found = memories["dst"].array.reshape(images, pixels, channels).transpose(0, 2, 1)
    assert np.array_equal(found, np.einsum("oc,icp->iop", weights, src) + added)


def desc(*dims: int, tag: str = "any") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dnn.f32, tag)


# What would take long if planning walked over every tile, row or result in Python.
REQUESTS: dict[str, Callable[[], Any]] = {
    "first layer of C3D": lambda: dnn.ConvolutionForward(
        src=desc(2, 3, 16, 112, 112),
        weights=desc(64, 3, 3, 3, 3),
        dst=desc(2, 64, 16, 112, 112),
        padding_l=(1, 1, 1),
        padding_r=(1, 1, 1),
    ),
    "head of a text detector": lambda: dnn.DeconvolutionForward(
        src=desc(2, 64, 368, 640), weights=desc(1, 64, 2, 2), dst=desc(2, 1, 736, 1280), strides=(2, 2)
    ),
    "ten million rows of pixels": lambda: dnn.ConvolutionForward(
        src=desc(1, 64, 10**7, 28),
        weights=desc(64, 64, 3, 3),
        dst=desc(1, 64, 10**7, 28),
        padding_l=(1, 1),
        padding_r=(1, 1),
    ),
    "end of DeepLab v3": lambda: dnn.ResamplingForward(
        "linear", desc(2, 21, 65, 65, tag="axb"), desc(2, 21, 513, 513, tag="axb")
    ),
    "linear resampling of ten thousand rows": lambda: dnn.ResamplingForward(
        "linear", desc(1, 8, 10**4, 8, tag="abcd"), desc(1, 8, 15_000, 16, tag="abcd")
    ),
    "cubic resampling of a hundred thousand columns": lambda: dnn.ResamplingForward(
        "cubic", desc(1, 8, 2, 10**5, tag="abcd"), desc(1, 8, 3, 150_000, tag="abcd")
    ),
    "pooling of a million images": lambda: dnn.PoolingForward(
        "max", desc(10**6, 64, 56, 56, tag="axb"), desc(10**6, 64, 28, 28, tag="axb"), (2, 2), (2, 2)
    ),
    "pooling of ten million rows": lambda: dnn.PoolingForward(
        "max", desc(1, 64, 10**7, 56, tag="abx"), desc(1, 64, 5 * 10**6, 28, tag="abx"), (2, 2), (2, 2)
    ),
    "pooling of a million pixels a row": lambda: dnn.PoolingForward(
        "max", desc(1, 64, 56, 10**6, tag="axb"), desc(1, 64, 28, 5 * 10**5, tag="axb"), (2, 2), (2, 2)
    ),
}


def winograd(images: int, rows: int) -> Any:
    tensor = desc(images, 64, rows, 28)
    return dnn.ConvolutionForward(
        src=tensor, weights=desc(64, 64, 3, 3), dst=tensor, padding_l=(1, 1), padding_r=(1, 1), algorithm="winograd"
    )


REQUESTS["Winograd's algorithm on ten thousand images"] = lambda: winograd(10**4, 28)
REQUESTS["Winograd's algorithm on ten thousand rows"] = lambda: winograd(1, 10**4)
REQUESTS["five thousand input channels"] = lambda: dnn.ConvolutionForward(
    src=desc(1, 5000, 28, 28),
    weights=desc(64, 5000, 3, 3),
    dst=desc(1, 64, 28, 28),
    padding_l=(1, 1),
    padding_r=(1, 1),
)
REQUESTS["a depthwise layer of ten million rows"] = lambda: dnn.ConvolutionForward(
    src=desc(1, 64, 10**7, 28),
    weights=desc(64, 1, 1, 3, 3),
    dst=desc(1, 64, 10**7, 28),
    padding_l=(1, 1),
    padding_r=(1, 1),
)
REQUESTS["a wide depthwise layer"] = lambda: dnn.ConvolutionForward(
    src=desc(1, 64, 28, 10**6),
    weights=desc(64, 1, 1, 3, 3),
    dst=desc(1, 64, 28, 10**6),
    padding_l=(1, 1),
    padding_r=(1, 1),
)
MOST_CALLS = 30_000  # of Python and C functions; 200,000 take some 100 ms


@pytest.mark.parametrize("name", REQUESTS)
def test_planning_calls_few_functions(name: str) -> None:
    request, calls = REQUESTS[name](), 0
    dnn.primitive_desc(request, engine=ENGINE)  # modules are loaded, what is known of the machine is there
    plans.shrink(0)

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    gc.collect()
    gc.disable()  # what dies meanwhile is other tests', and its callbacks are functions, too
    sys.setprofile(count)
    try:
        dnn.primitive_desc(request, engine=ENGINE)
    finally:
        sys.setprofile(None)
        gc.enable()
    assert 0 < calls <= MOST_CALLS
