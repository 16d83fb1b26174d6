"""Scales of src, weights and dst at run time: of every mask, with bias and post-ops, in every kind of plan."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.primitives.conv_case import MACHINE
from tests.primitives.guarded import guarded_memory, in_child
from tests.primitives.tensors import holding, read
from tests.primitives.test_conv_post_ops import convolve
from tests.primitives.test_product_post_ops import PRODUCTS, numbers
from tests.support.plans import execute
from tests.support.tuning import by_whole_rows

Masks = dict[str, int]
SLOPE = 0.25
POST_OPS = [dnn.Sum(0.5), dnn.Eltwise("relu", SLOPE)]
NAMES = ("src", "weights", "dst")


def positive(seed: int, size: int) -> Any:
    return np.random.default_rng(seed).uniform(0.5, 2, size).astype(np.float32)


class Scaled:
    """Scales of masks, and the answer: `kept` maps dims of src and weights to those of dst."""

    def __init__(self, masks: Masks, dims: dict[str, tuple[int, ...]], kept: dict[str, dict[int, int]]) -> None:
        self.masks, self.dst = masks, dims["dst"]
        every = {dim: dim for dim in range(len(self.dst))}
        self.arrays, self.factors = {}, {}
        for i, (name, mask) in enumerate(masks.items()):
            where = kept.get(name, every)
            shape = [1] * len(self.dst)
            for dim, at in where.items():
                if mask >> dim & 1:
                    shape[at] = dims[name][dim]
            self.arrays[f"{name}_scales"] = positive(50 + i, int(np.prod(shape)))
            self.factors[name] = self.arrays[f"{name}_scales"].astype(np.float64).reshape(shape)

    def answer(self, sums: Any, bias: Any, old: Any, post_ops: bool) -> Any:
        x = sums * self.factors.get("src", 1.0) * self.factors.get("weights", 1.0) + bias
        if post_ops:
            x = x + 0.5 * old
            x = np.where(x > 0, x, SLOPE * x)
        return x / self.factors.get("dst", 1.0)


def check(
    desc: Any, scaled: Scaled, arrays: dict[str, Any], wanted: Any, post_ops: bool, engine: dnn.Engine, emulated: bool
) -> dnn.PrimitiveDesc:
    """The result, on poisoned memory unless it is read, with its padding zero."""
    pd = dnn.primitive_desc(desc, dnn.Attr(POST_OPS if post_ops else (), scaled.masks), engine)
    pd.plan.check()
    arrays = arrays | scaled.arrays
    memories = {
        name: holding(tensor, arrays[name] if post_ops or name != "dst" else None)
        for name, tensor in pd.plan.tensors.items()
    }
    execute(pd, memories, emulated)
    np.testing.assert_allclose(read(memories["dst"]), wanted, 2e-5, 2e-5)
    return pd


def matmul_masks(ndims: int) -> list[Masks]:
    rows, columns, batch = 1 << ndims - 2, 1 << ndims - 1, (1 << ndims - 2) - 1
    return [
        {"src": 0},
        {"weights": columns},
        {"dst": 0},
        {"src": rows | batch, "weights": columns, "dst": columns},
        {"src": 0, "weights": columns | batch, "dst": rows | columns | batch},
    ]


def check_matmul(case: Any, index: int, post_ops: bool, engine: dnn.Engine, emulated: bool = False) -> None:
    src, weights, tags, name = case
    *plain, _ = tags.split()
    batch = np.broadcast_shapes(src[:-2], weights[:-2])
    dims = {"src": src, "weights": weights, "dst": (*batch, src[-2], weights[-1])}
    n = len(src)
    same = {dim: dim for dim in range(n - 2)}
    kept = {"src": same | {n - 2: n - 2}, "weights": same | {n - 1: n - 1}}
    scaled = Scaled(matmul_masks(n)[index], dims, kept)
    arrays = {role: numbers(i, dims[role]) for i, role in enumerate(dims)}
    arrays["weights"] = arrays["weights"] / np.float32(np.sqrt(src[-1]))
    arrays["bias"] = numbers(7, (*(1,) * (n - 1), weights[-1]))
    descs = {role: dnn.MemoryDesc(dims[role], dnn.f32, tag) for role, tag in zip(NAMES, plain, strict=True)}
    bias = dnn.MemoryDesc(arrays["bias"].shape, dnn.f32, "abcdef"[:n])
    sums = np.matmul(arrays["src"].astype(np.float64), arrays["weights"].astype(np.float64))
    wanted = scaled.answer(sums, arrays["bias"], arrays["dst"], post_ops)
    pd = check(dnn.MatMul(**descs, bias=bias), scaled, arrays, wanted, post_ops, engine, emulated)
    if name != "pack_operands+tiles" and (name, index) != ("swap", 4):  # what post-ops read, and scales, decides there
        assert pd.implementation.startswith(name)


@pytest.mark.parametrize("case", PRODUCTS, ids=str)
@pytest.mark.parametrize("index", range(5))
@pytest.mark.parametrize("post_ops", [False, True], ids=["alone", "post-ops"])
@pytest.mark.one_in(3)
def test_matmul(isa: str, case: Any, index: int, post_ops: bool) -> None:
    check_matmul(case, index, post_ops, by_whole_rows(dnn.Engine(isa=isa, threads=2)))


def test_a_batch_that_shares_weights(isa: str) -> None:
    """Scales by rows keep the batch from becoming rows; its weights are packed once, in a phase of their own."""
    dims = {"src": (2, 512, 300), "weights": (1, 300, 40), "dst": (2, 512, 40)}
    arrays = {role: numbers(i, dims[role]) for i, role in enumerate(dims)}
    arrays["weights"] = arrays["weights"] / np.float32(np.sqrt(300))
    scaled = Scaled({"src": 2}, dims, {"src": {1: 1}})
    desc = dnn.MatMul(*(dnn.MemoryDesc(dims[role], dnn.f32, "abc") for role in NAMES))
    wanted = scaled.answer(arrays["src"].astype(np.float64) @ arrays["weights"], 0.0, None, False)
    pd = check(desc, scaled, arrays, wanted, False, dnn.Engine(isa=isa, threads=2), False)
    assert pd.implementation == f"pack_weights+tiles:{isa}"


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("case", [PRODUCTS[0], PRODUCTS[8]], ids=str)
def test_matmul_avx512_emulated(case: Any) -> None:
    check_matmul(case, 3, True, dnn.Engine(isa="avx512_core", threads=1), emulated=True)


MB, IC, OC = 2, 12, 19
CHANNELS = [
    {"src": 0},
    {"weights": 1},
    {"dst": 2},
    {"src": 1, "weights": 1, "dst": 2},
    {"src": 0, "weights": 0, "dst": 0},
]


def check_conv(tag: str, kernel: int, ic: int, masks: Masks, post_ops: bool, engine: dnn.Engine, emulated: bool) -> str:
    size = 3 if emulated else 7
    dims = {"src": (MB, ic, size, size), "weights": (OC, ic, kernel, kernel), "dst": (MB, OC, size, size)}
    scaled = Scaled(masks, dims, {"src": {0: 0}, "weights": {0: 1}})
    arrays = {role: numbers(i, dims[role]) for i, role in enumerate(dims)} | {"bias": numbers(7, OC)}
    arrays["weights"] = arrays["weights"] / np.float32(np.sqrt(ic) * kernel)
    tags = {"src": tag, "weights": "any", "dst": tag}
    tensors = {role: dnn.MemoryDesc(dims[role], dnn.f32, tags[role]) for role in dims}
    pad = (kernel // 2, kernel // 2)
    bias = dnn.MemoryDesc((OC,), dnn.f32, "a")
    desc = dnn.ConvolutionForward(**tensors, bias=bias, padding_l=pad, padding_r=pad)
    sums = convolve(arrays["src"], arrays["weights"], np.zeros(OC), pad[0])
    wanted = scaled.answer(sums, arrays["bias"][:, None, None], arrays["dst"], post_ops)
    return check(desc, scaled, arrays, wanted, post_ops, engine, emulated).implementation


@pytest.mark.parametrize("masks", CHANNELS, ids=str)
@pytest.mark.parametrize(
    ("tag", "kernel", "ic", "name"),
    [
        ("any", 3, 12, "direct"),
        ("acdb", 3, 12, "direct"),
        ("aBcd16b", 1, 300, "direct"),
        ("abcd", 3, 30, "reorder+direct"),
    ],
)
@pytest.mark.parametrize("post_ops", [False, True], ids=["alone", "post-ops"])
def test_convolution(isa: str, tag: str, kernel: int, ic: int, name: str, masks: Masks, post_ops: bool) -> None:
    """Channels that fill no vector: their padding in dst stays zero, whatever is divided there."""
    assert check_conv(tag, kernel, ic, masks, post_ops, dnn.Engine(isa=isa, machine=MACHINE), False) == f"{name}:{isa}"


@pytest.mark.emulated("avx512_core")
def test_convolution_avx512_emulated() -> None:
    check_conv("any", 1, IC, CHANNELS[3], True, dnn.Engine(isa="avx512_core", threads=1), emulated=True)


@pytest.mark.parametrize("masks", CHANNELS, ids=str)
@pytest.mark.parametrize("wtag", ["any", "ab", "ba"])
@pytest.mark.parametrize("post_ops", [False, True], ids=["alone", "post-ops"])
def test_inner_product(isa: str, masks: Masks, wtag: str, post_ops: bool) -> None:
    dims = {"src": (6, 30), "weights": (21, 30), "dst": (6, 21)}
    scaled = Scaled(masks, dims, {"src": {0: 0}, "weights": {0: 1}})
    arrays = {role: numbers(i, dims[role]) for i, role in enumerate(dims)} | {"bias": numbers(7, 21)}
    tags = {"src": "ab", "weights": wtag, "dst": "ab"}
    tensors = {role: dnn.MemoryDesc(dims[role], dnn.f32, tags[role]) for role in dims}
    desc = dnn.InnerProductForward(**tensors, bias=dnn.MemoryDesc((21,), dnn.f32, "a"))
    sums = arrays["src"].astype(np.float64) @ arrays["weights"].T.astype(np.float64)
    wanted = scaled.answer(sums, arrays["bias"], arrays["dst"], post_ops)
    check(desc, scaled, arrays, wanted, post_ops, dnn.Engine(isa=isa, threads=1), False)


@pytest.mark.parametrize("at_end", [False, True], ids=["start", "end"])
def test_between_guard_pages(isa: str, at_end: bool) -> None:
    """Of scales, no byte but their own is read."""
    dims = {"src": (5, 30), "weights": (30, 21), "dst": (5, 21)}
    descs = {role: dnn.MemoryDesc(dims[role], dnn.f32, "ab") for role in dims}
    pd = dnn.primitive_desc(dnn.MatMul(**descs), dnn.Attr(scales={"src": 1, "weights": 2, "dst": 3}))
    memories, buffers = {}, []
    for name, desc in pd.plan.tensors.items():
        memories[name], buffer = guarded_memory(desc, at_end)
        memories[name].array[:] = 2
        buffers.append(buffer)
    primitive = dnn.Primitive(pd)

    def run() -> None:
        primitive.execute(**memories)
        assert np.all(memories["dst"].array == 30 * 2**4 / 2)

    assert not in_child(run)


def matmul(**changes: Any) -> dnn.MatMul:
    dims = {"src": (4, 16), "weights": (16, 8), "dst": (4, 8)}
    return dnn.MatMul(**{role: dnn.MemoryDesc(dims[role], dnn.f32, "ab") for role in dims} | changes)


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        ({"src": 2}, "scales of src have the mask 2, but only dims 0 of src can have scales"),
        ({"weights": 1}, "scales of weights have the mask 1, but only dims 1 of weights can have scales"),
        ({"dst": 4}, "scales of dst have the mask 4, but only dims 0, 1 of dst can have scales"),
        ({"dst": 1 << 60}, "but only dims 0, 1 of dst can have scales"),
    ],
)
def test_masks_that_cannot_be(masks: Masks, message: str) -> None:
    with pytest.raises(dnn.Unimplemented, match=f"tiles:.*{message}"):
        dnn.primitive_desc(matmul(), dnn.Attr(scales=masks))


def test_backward_and_others_refuse() -> None:
    attr, matrix = dnn.Attr(scales={"src": 0}), dnn.MemoryDesc((8, 8), dnn.f32, "ab")
    backward = dnn.InnerProductBackwardData(matrix, matrix, matrix)
    eltwise = dnn.EltwiseForward(dnn.PropKind.forward_inference, "relu", matrix, matrix)
    for desc, message in ((backward, "scales of a backward pass"), (eltwise, "scales and zero points")):
        with pytest.raises(dnn.Unimplemented, match=f"{message} are not implemented"):
            dnn.primitive_desc(desc, attr)


def test_wrong_arguments(isa: str) -> None:
    pd = dnn.primitive_desc(matmul(), dnn.Attr(scales={"weights": 2}))
    assert pd.plan.tensors["weights_scales"] == dnn.MemoryDesc((8,), dnn.f32, "a")
    memories = {name: dnn.Memory(desc) for name, desc in pd.plan.tensors.items()}
    primitive = dnn.Primitive(pd)
    short = dnn.Memory(dnn.MemoryDesc((1,), dnn.f32, "a"))
    with pytest.raises(dnn.InvalidArguments, match=r"weights_scales is f32 1 .*this primitive takes f32 8 "):
        primitive.execute(**memories | {"weights_scales": short})
    del memories["weights_scales"]
    with pytest.raises(dnn.InvalidArguments, match="arguments must be src, weights, dst, weights_scales, not"):
        primitive.execute(**memories)


def test_no_rows(isa: str) -> None:
    empty = dnn.MemoryDesc((0, 16), dnn.f32, "ab"), dnn.MemoryDesc((0, 8), dnn.f32, "ab")
    pd = dnn.primitive_desc(matmul(src=empty[0], dst=empty[1]), dnn.Attr(scales={"src": 1, "dst": 3}))
    dnn.Primitive(pd).execute(**{name: dnn.Memory(desc) for name, desc in pd.plan.tensors.items()})


def test_values_are_those_of_the_call(isa: str) -> None:
    """Scales are read when the call runs: zero, infinity and NaN are numbers as others are."""
    pd = dnn.primitive_desc(matmul(), dnn.Attr(scales={"src": 0, "dst": 0}))
    memories = {name: dnn.Memory(desc) for name, desc in pd.plan.tensors.items()}
    for name in ("src", "weights"):
        memories[name].array[:] = 1
    run = dnn.Primitive(pd).bind(**memories)
    for src, dst, wanted in ((2, 4, 8), (-3, 1, -48), (1, 0, np.inf), (0, 1, 0), (np.nan, 1, np.nan), (1, np.inf, 0)):
        memories["src_scales"].array[:], memories["dst_scales"].array[:] = src, dst
        run()
        np.testing.assert_array_equal(memories["dst"].array, np.float32(wanted))
