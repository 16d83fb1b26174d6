"""Gradients of bf16 and f16: sums are f32, exact of small integers, and results the definition's, rounded once."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.typed import narrowed
from asmdnn.bench.values import decoded, encoded
from asmdnn.primitives.convolution_backward.grouped_calls import in_pairs
from asmdnn.primitives.core.description import asked
from asmdnn.records import replace
from asmdnn.types import FLOATS
from tests.primitives import test_conv_backward_data as of_data
from tests.primitives import test_conv_backward_weights as of_weights
from tests.primitives import test_lrn_backward as of_lrn
from tests.primitives import test_pooling_backward as of_pooling
from tests.primitives import test_resampling_backward as of_resampling
from tests.primitives.conv_case import MACHINE
from tests.primitives.gradient_case import proved

HALVES = (dnn.bf16, dnn.f16)
NAMES = ("avx2", "avx512_core", "avx512_core_bf16")
LEVELS = [pytest.param(level, marks=pytest.mark.isa(level)) for level in NAMES]
WIDE = ((), ("diff_src",), ("diff_dst",))
sampled = pytest.mark.parametrize(
    "every", [pytest.param(True, marks=pytest.mark.slow), False], ids=("every", "sample")
)  # of types of places and of tensors that stay f32: all of each shape, or in turn


def halved(desc: Any, dtype: dnn.DataType, *wide: str) -> Any:
    """The same with tensors of that type, but those named."""
    tensors = {name: tensor for name, tensor in asked(desc).items() if tensor.dtype in FLOATS and name not in wide}
    tags = {name: "any" if tensor.is_any else tensor.tag for name, tensor in tensors.items()}
    return replace(desc, **{name: dnn.MemoryDesc(tensors[name].dims, dtype, tag) for name, tag in tags.items()})


def results(desc: Any, arrays: Any, level: str, threads: int = 1) -> tuple[str, dict[str, Any]]:
    """The implementation, and results by name."""
    pd = proved(desc, level, threads)
    tensors = pd.plan.tensors
    given = {name: dnn.Memory.from_numpy(encoded(arrays[name], tensors[name].dtype), tensors[name]) for name in arrays}
    memories = {name: given.get(name) or dnn.Memory(tensor) for name, tensor in tensors.items()}
    dnn.Primitive(pd).execute(**memories)
    return pd.implementation, {name: decoded(memories[name].numpy(), tensors[name].dtype) for name in pd.plan.outputs}


def compare(desc: Any, arrays: Any, wanted: Any, level: str, errors: Any = None) -> str:
    """The implementation; results are right, and equal on 1 and 3 threads."""
    name, found = results(desc, arrays, level)
    assert {*found} == {*wanted}
    others = results(desc, arrays, level, 3)[1]
    for result, values in found.items():
        error = np.broadcast_to((errors or {}).get(result, 0.0), values.shape)
        right, allowed = narrowed(np.asarray(wanted[result], float), error, asked(desc)[result].dtype)
        assert (np.abs(values.astype(float) - right) <= allowed).all(), result
        assert np.array_equal(values, others[result]), result
    return name


LARGE = ("g19mb2ic19ih12oc19kh11ph5", "g19mb1ic19ih25oc19kh21sh2ph10", "g9mb1ic9ih9oc9kh9ph4")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("text", LARGE)
def test_large_depthwise_kernels(level: str, text: str, dtype: dnn.DataType) -> None:
    """They are multiplied as f32, of copies, from 100 positions for a pixel of diff_src on."""
    for tag in ("any", "nhwc", "nchw"):
        desc, arrays, wanted = of_data.gradient(text, tag, tag)
        for wide in ((), ("diff_src",)):
            way = compare(halved(desc, dtype, *wide), arrays, wanted, level)
            assert ("widen+depthwise:" in way) == ("kh9" not in text), way


CONVOLUTIONS = ("mb2ic20ih7oc24kh3sh2ph1", "mb1ic9ih6oc33kh1", "g19mb2ic19ih7oc19kh3ph1", "deconv:mb2ic20ih5oc24kh3sh2")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("text", CONVOLUTIONS)
@pytest.mark.one_in(2)
def test_convolutions(level: str, text: str, dtype: dnn.DataType) -> None:
    for tag in ("any", "nhwc", "nchw"):
        desc, arrays, wanted = of_data.gradient(text, tag, tag)
        for wide in ((), ("diff_src",)):
            compare(halved(desc, dtype, *wide), arrays, wanted, level)
        desc, arrays, wanted = of_weights.gradient(text, tag, tag)
        for wide in ((), ("diff_bias",), ("diff_weights", "diff_bias")):
            way = compare(halved(desc, dtype, *wide), arrays, wanted, level)
            assert any(word in way for word in ("reorder+", "products", "depthwise")), way


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_inner_products(level: str, dtype: dnn.DataType) -> None:
    random = np.random.default_rng(5)
    for dims, tag in (((5, 19), "ab"), ((5, 9, 3, 2), "acdb"), ((5, 9, 3, 2), "any")):
        x, w, dy = (random.integers(-4, 5, size).astype(np.float32) for size in (dims, (13, *dims[1:]), (5, 13)))
        src, weights = (dnn.MemoryDesc(array.shape, dnn.f32, tag) for array in (x, w))
        dst, bias = dnn.MemoryDesc(dy.shape, dnn.f32, "ab"), dnn.MemoryDesc((13,), dnn.f32, "a")
        k = int(np.prod(dims[1:]))
        back = (dy.astype(float) @ w.reshape(13, k)).reshape(dims)
        data = halved(dnn.InnerProductBackwardData(src, weights, dst), dtype)
        compare(data, {"weights": w, "diff_dst": dy}, {"diff_src": back}, level)
        wanted = {"diff_weights": (dy.T.astype(float) @ x.reshape(5, k)).reshape(w.shape), "diff_bias": dy.sum(axis=0)}
        desc = dnn.InnerProductBackwardWeights(src, weights, dst, bias)
        for wide in ((), ("diff_bias", "diff_weights")):
            compare(halved(desc, dtype, *wide), {"src": x, "diff_dst": dy}, wanted, level)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_of_no_images_gradients_are_zero(level: str, dtype: dnn.DataType) -> None:
    tensors = (dnn.MemoryDesc(dims, dtype, "ab") for dims in ((0, 19), (13, 19), (0, 13)))
    desc = dnn.InnerProductBackwardWeights(*tensors, dnn.MemoryDesc((13,), dtype, "a"))
    nothing = {"src": np.zeros((0, 19), np.float32), "diff_dst": np.zeros((0, 13), np.float32)}
    compare(desc, nothing, {"diff_weights": np.zeros((13, 19)), "diff_bias": np.zeros(13)}, level)


def is_image(text: str) -> bool:
    """Whether a problem has two spatial axes."""
    return "ih" in text and "id" not in text


PRODUCTS = (
    "mb3ic32ih9iw7oc40kh3kw3ph1pw1", "mb2ic24ih9iw12oc40kh3kw2dh1dw0ph2pw1", "mb4ic48iw40oc64kw5pw2sw3",
    "mb2ic64id3ih8iw9oc64kd3kh3kw3pd1ph1pw1", "mb3ic64ih9oc64kh1sh2", "mb4ic64ih8oc48kh1", "mb1ic64ih6oc48kh4ph4",
    "deconv:mb2ic40ih5oc48kh3sh2", "mb2ic64ih20oc64kh3sh3",
)  # fmt: skip


@pytest.mark.isa("avx512_core_bf16")
@pytest.mark.parametrize("text", PRODUCTS)
def test_weights_by_products_of_pairs(text: str) -> None:
    """A row of all pixels, with zeros for what lies beyond edges; strides have a row for each place in a cell."""
    level = "avx512_core_bf16"
    for tag in ("any", "nhwc", "nchw") if is_image(text) else ("any",):
        desc, arrays, wanted = of_weights.gradient(text, tag, tag)
        found = set()
        for wide in ((), ("diff_weights", "diff_bias")):
            pds = dnn.implementations(halved(desc, dnn.bf16, *wide), engine=dnn.Engine(isa=level, machine=MACHINE))
            found |= {pd.implementation for pd in pds if isinstance(pd, dnn.PrimitiveDesc)}
            compare(halved(desc, dnn.bf16, *wide), arrays, wanted, level)
        assert any("products" in name for name in found), found


GROUPS = (
    "g4mb2ic64ih9oc64kh3ph1", "g2mb4ic128ih17iw14oc128kh3kw3sh2sw2ph1pw1", "g3mb2ic48ih9oc72kh1",
    "g2mb2ic48iw30oc36kw5pw2",
)  # fmt: skip


@pytest.mark.isa("avx512_core_bf16")
@pytest.mark.parametrize("text", GROUPS)
def test_weights_of_groups_by_products_of_pairs(text: str) -> None:
    """A batch of products, where groups have as many channels as half a vector."""
    test_weights_by_products_of_pairs(text)


@pytest.mark.isa("avx512_core_bf16")
def test_groups_of_few_channels_are_no_products() -> None:
    desc, arrays, wanted = of_weights.gradient("g8mb1ic24ih6oc24kh3ph1", "any", "any")
    assert "padded" in compare(halved(desc, dnn.bf16), arrays, wanted, "avx512_core_bf16")


OF_ROWS = (
    "g19mb2ic19ih7oc19kh3sh2ph1", "g32mb1ic32ih20iw9oc32kh3kw5ph1pw2", "g16mb3ic16ih3oc16kh3ph1dh1",
    "g16mb1ic16iw40oc16kw31pw15", "g8mb1ic8id3ih4iw3oc8kd2kh3kw2pd1ph1pw0", "g48mb5ic48ih33iw70oc48kh5kw3sh2sw1ph2pw1",
    "g32mb1ic32id6ih9iw40oc32kd3kh3kw3sd2pd1ph1pw1", "g16mb1ic16ih1iw9oc16kh1kw3pw1",
    "deconv:g16mb1ic16ih5oc16kh4sh2ph1", "g19mb2ic38ih9iw23oc38kh5kw3ph2pw1dh1", "g8mb2ic32ih6oc32kh3sh2ph1",
    "g4mb1ic16id3ih4iw3oc16kd2kh3kw2pd1ph1pw0",
)  # fmt: skip


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("text", OF_ROWS)
@pytest.mark.one_in(5)
def test_weights_of_depthwise_kernels_and_small_groups(level: str, text: str, dtype: dnn.DataType) -> None:
    """Read as they are: rows in pairs where the level multiplies pairs, with one left or none, else widened."""
    own = "avx512_core" if dtype != dnn.bf16 and level != "avx2" else level
    for tag in ("any", "nhwc") if is_image(text) else ("any",):
        desc, arrays, wanted = of_weights.gradient(text, tag, tag)
        found = {compare(halved(desc, dtype), arrays, wanted, level)}
        found.add(compare(halved(desc, dtype, "diff_weights", "diff_bias"), arrays, wanted, level))
        assert all(name.endswith((f"depthwise:{own}", f"grouped:{own}")) for name in found), found
        mixed = compare(halved(desc, dtype, "src"), arrays, wanted, level)  # converted, as the two differ
        of_f32 = "avx2" if level == "avx2" else "avx512_core"
        assert mixed.endswith((f"depthwise:{of_f32}", f"grouped:{of_f32}")), mixed


def test_rows_in_pairs() -> None:
    """Neighbours at the right distance, each in one pair; what is left between images and at the end is alone."""
    lines = np.array([(0, 0), (8, 4), (16, 8), (40, 20), (48, 24)])
    firsts, left = in_pairs(lines, (8, 4))
    assert firsts.tolist() == [[0, 0], [40, 20]] and left.tolist() == [[16, 8]]
    firsts, left = in_pairs(lines[:0], (8, 4))
    assert firsts.shape == left.shape == (0, 2)


@pytest.mark.isa("avx512_core_bf16")
def test_products_of_pairs() -> None:
    """bf16 is multiplied as such, by convolutions' data and by inner products."""
    desc, arrays, wanted = of_data.gradient(CONVOLUTIONS[0], "nhwc", "nhwc")
    assert compare(halved(desc, dnn.bf16), arrays, wanted, "avx512_core_bf16").endswith(":avx512_core_bf16")
    tensors = (dnn.MemoryDesc(dims, dnn.bf16, "ab") for dims in ((64, 64), (32, 64), (64, 32)))
    pd = proved(dnn.InnerProductBackwardWeights(*tensors), "avx512_core_bf16")
    assert pd.implementation.endswith(":avx512_core_bf16")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("tag", of_lrn.TAGS)
def test_local_response_norm(level: str, tag: str, dtype: dnn.DataType) -> None:
    for which in of_lrn.CASES:
        for kept in (True, False):
            desc, arrays, _, _ = of_lrn.case(*which, tag, kept)
            arrays |= {name: decoded(encoded(arrays[name], dtype), dtype) for name in ("src", "diff_dst")}
            wanted, errors = of_lrn.answer(desc, arrays)
            arrays |= {"workspace": of_lrn.base_of(desc, arrays)} if kept else {}
            compare(halved(desc, dtype, "workspace"), arrays, wanted, level, errors)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("tag", of_resampling.TAGS[:3])
@pytest.mark.one_in(2)
def test_resampling(level: str, tag: str, dtype: dnn.DataType) -> None:
    for inner, outer in of_resampling.SIZES:
        for alg in ("nearest", "linear"):
            desc, arrays, wanted, error = of_resampling.case(alg, inner, outer, tag)
            for wide in ((), ("diff_src",), ("diff_dst",)):
                compare(halved(desc, dtype, *wide), arrays, wanted, level, {"diff_src": error})


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("tag", of_pooling.TAGS)
@sampled
@pytest.mark.one_in(3)
def test_pooling(level: str, tag: str, dtype: dnn.DataType, every: bool) -> None:
    kinds = [(places, wide) for wide in WIDE for places in (dnn.s32, dnn.u8)]
    for number, shape in enumerate(of_pooling.SHAPES):
        for places, wide in kinds if every else (kinds[number % len(kinds)],):
            desc, arrays, wanted = of_pooling.gradient(shape, "max", tag, places)
            compare(halved(desc, dtype, *wide), arrays, wanted, level)
        for alg in ("avg_include_padding", "avg_exclude_padding"):
            desc, arrays, wanted = of_pooling.gradient(shape, alg, tag)
            way = compare(halved(desc, dtype), arrays, wanted, level, {"diff_src": 1e-5})
            is_dense = tag == "aBx8b" or (tag == "axb" and shape[0][1] % 2 == 0)
            touches = shape in of_pooling.TOUCHING and is_dense
            assert way.startswith("spread:") == touches, (way, shape, tag)
            if touches:
                compare(halved(desc, dtype, "diff_src"), arrays, wanted, level, {"diff_src": 1e-5})


@pytest.mark.parametrize("level", LEVELS)
def test_means_that_move(level: str) -> None:
    desc, arrays, wanted = of_pooling.gradient(of_pooling.TOUCHING[1], "avg_include_padding", "axb")
    assert compare(halved(desc, dnn.bf16), arrays, wanted, level, {"diff_src": 1e-5}).startswith("spread:")


def test_results_whose_elements_overlap() -> None:
    """What is converted is not written twice to one place."""
    src, dst = (dnn.MemoryDesc((1, 8, 4, 4), dnn.bf16, "any") for _ in range(2))
    same = dnn.MemoryDesc((8, 8, 1, 1), dnn.bf16, strides=(8, 0, 1, 1))
    with pytest.raises(dnn.Unimplemented, match="elements of diff_weights overlap"):
        dnn.primitive_desc(dnn.ConvolutionBackwardWeights(src, same, dst))
