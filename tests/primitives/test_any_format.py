"""Whatever formats tensors and operands of post-ops have, whichever dims are 1 or 0, there is a plan, and it is right.

And no plan refuses its own choice: asked again with the formats that it has chosen for `any`, it is the same plan.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asmdnn as dnn
from asmdnn.definitions.convolution import convolution
from asmdnn.definitions.windows import SlidingWindow
from asmdnn.primitives.products.gemm import Gemm
from tests.primitives import every_kind
from tests.primitives.formats import RandomChain, broadcast, chains, check, formats, integers, quick, thorough

SIZES = st.sampled_from((0, 1, 1, 2, 3, 5, 8, 9, 17))
pytestmark = pytest.mark.isa("avx2")


def by_name(*names: str) -> dict[str, str]:
    return {name: name for name in names}


@st.composite
def matmuls(draw: st.DrawFn) -> tuple[Any, ...]:
    batch = tuple(draw(st.lists(st.sampled_from((0, 1, 2, 3)), max_size=2)))
    m, n, k = draw(SIZES), draw(SIZES), draw(SIZES)
    src_batch = draw(broadcast(batch))
    weights_batch = tuple(b if s == 1 else draw(st.sampled_from((1, b))) for s, b in zip(src_batch, batch, strict=True))
    dims = {"src": (*src_batch, m, k), "weights": (*weights_batch, k, n), "dst": (*batch, m, n)}
    if draw(st.booleans()):
        dims["bias"] = draw(broadcast(dims["dst"]))
    chain = draw(chains(dims["dst"]))
    desc = dnn.MatMul(**{name: draw(formats(shape)) for name, shape in dims.items()})
    arrays = {name: integers(i, shape) for i, (name, shape) in enumerate(dims.items())}
    sums = np.matmul(arrays["src"], arrays["weights"]) + arrays.get("bias", 0)
    answer = chain.answer(np.broadcast_to(sums, dims["dst"]), arrays["dst"])
    return desc, chain, arrays, {"dst": answer}, by_name(*dims)


@st.composite
def gemms(draw: st.DrawFn) -> tuple[Any, ...]:
    m, n, k = draw(SIZES), draw(SIZES), draw(SIZES)
    a, b, c = integers(0, (m, k)), integers(1, (k, n)), integers(2, (m, n))
    beta = draw(st.sampled_from(("zero", "one", "any")))
    desc = Gemm(*(draw(formats(x.shape)) for x in (a, b, c)), unit_alpha=draw(st.booleans()), beta=beta)
    alpha = 2.0 if desc.scaled else 1.0
    wanted = alpha * (a @ b) + {"zero": 0.0, "one": 1.0, "any": 3.0}[beta] * c
    arrays = {"a": a, "b": b, "c": c, "scale": np.float32([2, 3])}
    return desc, RandomChain(), arrays, {"c": wanted}, by_name("a", "b", "c")


def flat(x: Any) -> Any:
    return x.reshape(x.shape[0], int(np.prod(x.shape[1:])))


@st.composite
def inner_products(draw: st.DrawFn) -> tuple[Any, ...]:
    n, o = draw(SIZES), draw(SIZES)
    rest = tuple(draw(st.lists(st.sampled_from((0, 1, 1, 2, 3, 8, 9)), min_size=1, max_size=3)))
    src, weights, dst, bias = (integers(i, dims) for i, dims in enumerate(((n, *rest), (o, *rest), (n, o), (o,))))
    s, w, d = (draw(formats(x.shape)) for x in (src, weights, dst))
    b = draw(st.sampled_from((None, draw(formats(bias.shape)))))
    kind = draw(st.sampled_from(("forward", "backward data", "backward weights")))
    chain = draw(chains(dst.shape)) if kind == "forward" else RandomChain()
    wanted = {}
    if kind == "forward":
        desc: Any = dnn.InnerProductForward(s, w, d, b)
        arrays = {"src": src, "weights": weights, "dst": dst, "bias": bias}
        wanted["dst"] = chain.answer(flat(src) @ flat(weights).T + (0 if b is None else bias), dst)
    elif kind == "backward data":
        desc = dnn.InnerProductBackwardData(s, w, d)
        arrays = {"diff_src": src, "weights": weights, "diff_dst": dst}
        wanted["diff_src"] = (dst @ flat(weights)).reshape(src.shape)
    else:
        desc = dnn.InnerProductBackwardWeights(s, w, d, b)
        arrays = {"src": src, "diff_weights": weights, "diff_dst": dst, "diff_bias": bias}
        wanted["diff_weights"] = (dst.T @ flat(src)).reshape(weights.shape)
        wanted |= {} if b is None else {"diff_bias": dst.sum(0)}
    return desc, chain, arrays, wanted, by_name(*desc.tensors())


@st.composite
def eltwises(draw: st.DrawFn) -> tuple[Any, ...]:
    dims = tuple(draw(st.lists(SIZES, min_size=1, max_size=4)))
    x, y = integers(0, dims), integers(1, dims)
    if draw(st.booleans()):
        desc: Any = dnn.EltwiseBackward("square", *(draw(formats(dims)) for _ in range(3)))
        fields = {"src": "data", "diff_dst": "diff_dst", "diff_src": "diff_src"}
        return desc, RandomChain(), {"src": x, "diff_dst": y, "diff_src": y}, {"diff_src": 2 * x * y}, fields
    chain = draw(chains(dims))
    kind = dnn.PropKind.forward_inference
    desc = dnn.EltwiseForward(kind, "linear", draw(formats(dims)), draw(formats(dims)), alpha=2.0, beta=1.0)
    return desc, chain, {"src": x, "dst": y}, {"dst": chain.answer(2 * x + 1, y)}, by_name("src", "dst")


@st.composite
def binaries(draw: st.DrawFn) -> tuple[Any, ...]:
    dims = tuple(draw(st.lists(SIZES, min_size=1, max_size=4)))
    shapes = {"src0": draw(broadcast(dims)), "src1": draw(broadcast(dims)), "dst": dims}
    chain = draw(chains(dims))
    desc = dnn.BinaryForward("mul", *(draw(formats(shape)) for shape in shapes.values()))
    arrays = {name: integers(i, shape) for i, (name, shape) in enumerate(shapes.items())}
    product = np.broadcast_to(arrays["src0"] * arrays["src1"], dims)
    return desc, chain, arrays, {"dst": chain.answer(product, arrays["dst"])}, by_name(*shapes)


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[Any, ...]:
    """Operands of post-ops in any format; src and dst in those that are usual."""
    choices = ((1, 2), (1, 3, 9), (1, 3, 8, 19), (1, 3, 5), (1, 4, 6), (1, 3))
    mb, ic, oc, height, width, kernel = (draw(st.sampled_from(sizes)) for sizes in choices)
    pad = kernel // 2
    dims = (mb, oc, height, width)
    src, weights, dst = integers(0, (mb, ic, height, width)), integers(1, (oc, ic, kernel, kernel)), integers(2, dims)
    chain = draw(chains(dims))
    tags = [draw(st.sampled_from(("any", "acdb", "abcd"))), draw(st.sampled_from(("any", "acdb", "abcd", "aBcd16b")))]
    desc = dnn.ConvolutionForward(
        src=dnn.MemoryDesc(src.shape, dnn.f32, tags[0]),
        weights=dnn.MemoryDesc(weights.shape, dnn.f32, "any"),
        dst=dnn.MemoryDesc(dims, dnn.f32, tags[1]),
        padding_l=(pad, pad),
        padding_r=(pad, pad),
    )
    sums = convolution(src, weights, SlidingWindow((kernel, kernel), (1, 1), (1, 1), (pad, pad), (pad, pad)))
    arrays = {"src": src, "weights": weights, "dst": dst}
    return desc, chain, arrays, {"dst": chain.answer(sums, dst)}, by_name("src", "weights", "dst")


KINDS = {
    "matmul": matmuls(), "gemm": gemms(), "inner product": inner_products(), "eltwise": eltwises(),
    "binary": binaries(), "convolution": convolutions(),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_some(kind: str) -> None:
    quick(given(KINDS[kind])(lambda case: check(*case)))()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many(kind: str) -> None:
    thorough(given(KINDS[kind])(lambda case: check(*case)))()


def left_to_the_library(desc: Any) -> Iterator[Any]:
    """The description with `any` as the format of one tensor, then of one more each time."""
    for name in desc.__slots__:
        tensor = getattr(desc, name)
        if not isinstance(tensor, dnn.MemoryDesc):
            continue
        free = dnn.MemoryDesc(tensor.dims, tensor.dtype, "any")
        with contextlib.suppress(dnn.InvalidArguments):  # which says that it needs a format
            yield replace(desc, **{name: free})
            desc = replace(desc, **{name: free})


def test_planners_choose_a_format_wherever_one_may_be_left_to_them() -> None:
    engine = dnn.Engine(isa="avx2", threads=1, machine="zen3")
    for desc in (*every_kind.WITH_POST_OPS, *every_kind.others()):
        for free in left_to_the_library(desc):
            with contextlib.suppress(dnn.Unimplemented):
                pd = dnn.primitive_desc(free, engine=engine)
                assert not any(tensor.is_any for tensor in pd.plan.tensors.values())


REPEATED: list[Any] = [
    lambda src, dst: dnn.EltwiseForward(every_kind.INFERENCE, "relu", src, dst),
    lambda src, dst: dnn.BinaryForward("add", src, dnn.MemoryDesc((1, 19, 5), dnn.f32, "abc"), dst),
    lambda src, dst: dnn.SoftmaxForward(every_kind.INFERENCE, "accurate", src, dst, 2),
    lambda src, dst: dnn.GroupNormForward(every_kind.INFERENCE, src, dst, 1),
    lambda src, dst: dnn.LayerNormForward(every_kind.INFERENCE, src, dst),
    lambda src, dst: dnn.LRNForward(every_kind.INFERENCE, "lrn_across_channels", src, dst),
    lambda src, dst: dnn.CumulativeSum(src, dst, 1),
]


@pytest.mark.parametrize("strides", [(0, 5, 1), (0, 1, 19), (5, 0, 1), (95, 5, 0)], ids=str)
@pytest.mark.parametrize("number", range(len(REPEATED)))
def test_results_do_not_lie_as_a_source_that_is_repeated(number: int, strides: tuple[int, ...]) -> None:
    """In the order of the source otherwise, and with the numbers of a copy."""
    dims, engine, results = (3, 19, 5), dnn.Engine(isa="avx2", threads=1), []
    size = 1 + sum((n - 1) * s for n, s in zip(dims, strides, strict=True))
    stored = integers(0, (size,))
    repeated = dnn.MemoryDesc(dims, dnn.f32, strides=strides)
    for src in (repeated, dnn.MemoryDesc(dims, dnn.f32, "abc")):
        desc = REPEATED[number](src, dnn.MemoryDesc(dims, dnn.f32, "any"))
        pd = dnn.primitive_desc(desc, engine=engine)
        pd.plan.check()
        memories = {name: dnn.Memory(tensor) for name, tensor in pd.plan.tensors.items()}
        memories["src0" if "src0" in memories else "src"] = dnn.Memory(
            src, stored if src is repeated else stored[repeated.offsets()].reshape(-1)
        )
        dnn.Primitive(pd).execute(**memories)
        results.append(memories["dst"].numpy())
        if src is repeated and not strides[0]:
            assert pd.dst_desc.tag == ("abc" if strides[1] > strides[2] else "acb")
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-6)


def of_blocks(dtype: dnn.DataType = dnn.f32, channels: int = 5, rows: int = 4) -> dnn.MemoryDesc:
    return dnn.MemoryDesc((2, channels, rows, 3), dtype, "aBcd8b")


VECTOR, TRAINING = dnn.MemoryDesc((5,), dnn.f32, "a"), every_kind.TRAINING
BESIDE_DST: dict[str, Any] = {
    "max pooling": dnn.PoolingForward(
        "max", of_blocks(), of_blocks(rows=2), (2, 1), (2, 1), indices=of_blocks(dnn.s32, rows=2)
    ),
    "adaptive": dnn.AdaptivePooling("max", of_blocks(), of_blocks(rows=2), of_blocks(dnn.s32, rows=2)),
    "response": dnn.LRNForward(TRAINING, "lrn_across_channels", of_blocks(), of_blocks(), workspace=of_blocks()),
    "batch norm": dnn.BatchNormForward(
        TRAINING, of_blocks(), of_blocks(), mean=VECTOR, variance=VECTOR, fuse="norm_relu", workspace=of_blocks(dnn.u8)
    ),
    "best": dnn.TopKForward("max", of_blocks(), of_blocks(dnn.s32), 2, of_blocks()),
    "dropout": dnn.Dropout(of_blocks(), of_blocks(), of_blocks(dnn.u8)),
}


@pytest.mark.parametrize("name", BESIDE_DST)
def test_what_is_made_beside_dst_has_zeros_in_its_padding(name: str) -> None:
    pd = dnn.primitive_desc(BESIDE_DST[name], engine=dnn.Engine(isa="avx2", threads=1))
    pd.plan.check()
    memories = {name: dnn.Memory(tensor) for name, tensor in pd.plan.tensors.items()}
    for output in pd.plan.outputs:
        memories[output].array.view(np.uint8)[:] = 77
    memories["src"] = dnn.Memory.from_numpy(integers(0, pd.src_desc.dims), pd.src_desc)
    dnn.Primitive(pd).execute(**memories)
    assert len(pd.plan.outputs) > 1
    assert all(memories[output].padding_is_zero() for output in pd.plan.outputs)
