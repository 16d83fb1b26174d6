"""f32 as three products of bf16 by tiles of AMX, emulated: `fpmath_mode` bf16x3."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.own import laid_out
from asmdnn.bench.taps import sums_of
from asmdnn.isa.levels import AVX512_CORE_AMX
from asmdnn.memory.split import SplitDesc
from asmdnn.ops.arguments import widened
from asmdnn.ops.products import weights_desc
from asmdnn.planning.codec import decode_plan, encode_plan
from tests.primitives.test_amx_rasters import DEAR_CALLS, TypedDeconv
from tests.primitives.typed_conv import UNIT_ROUNDOFF, TypedConv, holding, stored
from tests.support.plans import execute, proved_desc

ISA = AVX512_CORE_AMX.name
EMULATED = pytest.mark.emulated(ISA)
ATTR = dnn.Attr(fpmath_mode="bf16x3")
F32 = (dnn.f32, dnn.f32, dnn.f32)
SHARE = 3.1 * 2.0**-16  # of a product's size, what is left out of it


def planned(desc: Any, attr: dnn.Attr = ATTR, isa: str = ISA) -> dnn.PrimitiveDesc:
    return proved_desc(desc, attr, dnn.Engine(isa=isa, threads=2, l2_bytes=1 << 20, machine="zen3", tuning=DEAR_CALLS))


def packed(weights: Any, desc: dnn.MemoryDesc, tag: str = "") -> dnn.Memory:
    """f32 in a format, by a reorder if it is one of sums of two."""
    if desc.holds_elements:
        return holding(desc, weights)
    plain = dnn.MemoryDesc(desc.dims, dnn.f32, tag or "abcde"[: desc.ndims])
    pd, made = planned(dnn.Reorder(plain, desc), dnn.Attr()), dnn.Memory(desc)
    assert pd.implementation == "split:avx512_core"
    execute(pd, {"src": holding(plain, weights), "dst": made}, emulated=True)
    assert made.padding_is_zero()
    return made


def computed(pd: dnn.PrimitiveDesc, data: dict[str, Any]) -> Any:
    """dst, with weights that are packed before."""
    tensors = pd.plan.tensors
    memories = {name: holding(tensor, data[name]) for name, tensor in tensors.items() if name != "weights"}
    memories["weights"] = packed(data["weights"], tensors["weights"])
    execute(pd, memories, emulated=True)
    return memories["dst"].numpy()


def bound(size: Any, terms: int) -> Any:
    """Of three sums, and of the parts that are left out of each product."""
    share = 3 * terms * UNIT_ROUNDOFF
    return size * (SHARE + share / (1 - share))


def product(m: int, k: int, n: int, tags: tuple[str, str, str], batch: int = 0) -> dnn.MatMul:
    dims = [(*[batch] * bool(batch), *pair) for pair in ((m, k), (k, n), (m, n))]
    return dnn.MatMul(*(dnn.MemoryDesc(d, dnn.f32, tag) for d, tag in zip(dims, tags, strict=True)))


@EMULATED
@pytest.mark.parametrize("tags", [("any", "any", "any"), ("ab", "ab", "ab"), ("ba", "ba", "ab")], ids="/".join)
@pytest.mark.parametrize("sizes", [(40, 33, 50), (17, 64, 32), (100, 7, 33)])
def test_products(sizes: tuple[int, int, int], tags: tuple[str, str, str]) -> None:
    """Nearer than bf16 by far, with weights that are packed once if their format is open, and else in every call."""
    pd, random = planned(product(*sizes, tags)), np.random.default_rng(0)
    is_open = tags[1] == "any"
    assert pd.implementation == f"bf16x3+{'reorder+' * (not is_open)}amx+tiles:{ISA}", pd.refusals
    assert isinstance(pd.weights_desc, SplitDesc) == is_open
    m, k, n = sizes
    src, weights = (random.standard_normal(dims).astype(np.float32) for dims in ((m, k), (k, n)))
    found = computed(pd, {"src": src, "weights": weights, "dst": np.zeros((m, n))})
    size = np.abs(src).astype(np.float64) @ np.abs(weights)
    error = np.abs(found - src.astype(np.float64) @ weights)
    assert (error <= bound(size, k)).all()
    assert (error / size).max() < 2.0**-13  # and bf16 alone would have some 2^-8


@EMULATED
@pytest.mark.parametrize(
    ("form", "text"),
    [
        (TypedConv, "mb2ic20ih6oc33oh6kh3ph1"),
        (TypedConv, "mb1ic32ih7oc16oh4kh1sh2ph0"),
        (TypedDeconv, "mb1ic16ih5oc20oh10kh4sh2ph1"),
    ],
)
@pytest.mark.parametrize("tags", [("any", "any", "any"), ("aBcd8b", "abcd", "abcd")], ids="/".join)
def test_convolutions(form: type[TypedConv], text: str, tags: tuple[str, str, str]) -> None:
    case = form(text, F32, dnn.f32, tags)
    pd, data = planned(case.desc()), case.data()
    assert pd.implementation.startswith("bf16x3+") and "amx" in pd.implementation, pd.refusals
    assert isinstance(pd.weights_desc, SplitDesc) == (tags[1] == "any")
    wanted, size = (sums_of(case.problem, f(data["src"]), f(data["weights"])) for f in (np.asarray, np.abs))
    bias = data["bias"].reshape(1, -1, 1, 1)
    error = np.abs(computed(pd, data) - wanted - bias)
    assert (error <= bound(size, case.problem.reduction) + 2 * UNIT_ROUNDOFF * np.abs(bias)).all()


@EMULATED
def test_rows_apart() -> None:
    """Of src, and of matrices of a batch: what lies between them is not touched."""
    random, dims = np.random.default_rng(6), (2, 20, 33)
    weights, dst = dnn.MemoryDesc((1, 33, 40), dnn.f32, "any"), dnn.MemoryDesc((2, 20, 40), dnn.f32, "abc")
    pd = planned(dnn.MatMul(dnn.MemoryDesc(dims, dnn.f32, strides=(1000, 41, 1), offset0=3), weights, dst))
    assert pd.implementation == f"bf16x3+amx+tiles:{ISA}", pd.refusals
    src, w = (random.standard_normal(d).astype(np.float32) for d in (dims, (1, 33, 40)))
    found = computed(pd, {"src": src, "weights": w, "dst": np.zeros((2, 20, 40))})
    assert (np.abs(found - src.astype(np.float64) @ w) <= bound(np.abs(src).astype(np.float64) @ np.abs(w), 33)).all()


def test_rows_too_far_apart_for_code() -> None:
    """Have calls of their own."""
    src = dnn.MemoryDesc((20, 33), dnn.f32, strides=(1 << 30, 1))
    weights, dst = dnn.MemoryDesc((33, 40), dnn.f32, "any"), dnn.MemoryDesc((20, 40), dnn.f32, "ab")
    pd = planned(dnn.MatMul(src, weights, dst))
    assert pd.implementation.startswith("bf16x3+") and pd.plan.phases[0].count == 20, pd.explain()


@EMULATED
@pytest.mark.parametrize("spatial", [(), (3, 2)])
def test_inner_products(spatial: tuple[int, ...]) -> None:
    random, m, channels, n = np.random.default_rng(1), 33, 10, 35
    dims = (m, channels, *spatial), (n, channels, *spatial), (m, n)
    pd = planned(dnn.InnerProductForward(*(dnn.MemoryDesc(d, dnn.f32, "any") for d in dims)))
    assert pd.implementation == f"bf16x3+amx+tiles:{ISA}" and isinstance(pd.weights_desc, SplitDesc), pd.refusals
    src, weights = (random.standard_normal(d).astype(np.float32) for d in dims[:2])
    found = computed(pd, {"src": src, "weights": weights, "dst": np.zeros((m, n))})
    x, w = src.reshape(m, -1).astype(np.float64), weights.reshape(n, -1)
    assert (np.abs(found - x @ w.T) <= bound(np.abs(x) @ np.abs(w).T, w.shape[1])).all()


@EMULATED
def test_gradients_of_data() -> None:
    """That of a convolution sums over output channels, of a weights' dim that is not the forward pass's."""
    random = np.random.default_rng(2)
    dims = {"diff_src": (2, 9, 6, 6), "weights": (20, 9, 3, 3), "diff_dst": (2, 20, 6, 6)}
    tensors = {name: dnn.MemoryDesc(d, dnn.f32, "any") for name, d in dims.items()}
    pd = planned(dnn.ConvolutionBackwardData(**tensors, padding_l=(1, 1), padding_r=(1, 1)))
    assert pd.implementation.startswith("bf16x3+") and isinstance(pd.weights_desc, SplitDesc), pd.refusals
    assert pd.weights_desc.depth == 0
    weights, diff_dst = (random.standard_normal(dims[name]).astype(np.float32) for name in ("weights", "diff_dst"))
    memories = {"weights": packed(weights, pd.weights_desc), "diff_dst": holding(pd.plan.tensors["diff_dst"], diff_dst)}
    memories["diff_src"] = dnn.Memory(pd.plan.tensors["diff_src"])
    execute(pd, memories, emulated=True)

    def summed(d: Any, w: Any) -> Any:
        around = np.pad(d.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(around, (3, 3), axis=(2, 3))
        return np.einsum("noyxrs,ocrs->ncyx", windows, w[:, :, ::-1, ::-1])

    error = np.abs(memories["diff_src"].numpy() - summed(diff_dst, weights))
    assert (error <= bound(summed(np.abs(diff_dst), np.abs(weights)), 20 * 9)).all()


@EMULATED
@pytest.mark.parametrize("tag", ["ab", "ba", "Ba16b"])
def test_a_reorder_splits_weights(tag: str) -> None:
    """Into what numpy makes of their bits: high parts to nearest even, and what they leave as well; of bf16 nothing."""
    random, (k, n) = np.random.default_rng(3), (33, 50)
    values = (random.standard_normal((k, n)) * 2.0 ** random.integers(-20, 20, (k, n))).astype(np.float32)
    values[0, :4] = 0, -0.0, 1 + 2.0**-8, 2.0**-120
    desc = SplitDesc(dnn.MemoryDesc((3 * k, n), dnn.bf16, "BA32b2a"), 0)
    high = nearest(values)
    low = nearest(values - as_f32(high))
    deep = np.zeros((100, 64), np.uint16)
    deep[: 3 * k, :n] = np.concatenate((high, high, low))
    wanted = deep.reshape(50, 2, 2, 32).transpose(2, 0, 3, 1).ravel()  # panel, group, column, of a group
    made = packed(values, desc, tag)
    assert np.array_equal(made.array & 0x7FFF, wanted & 0x7FFF)
    assert np.array_equal(made.array[wanted & 0x7FFF != 0], wanted[wanted & 0x7FFF != 0])  # zeros have either sign
    assert np.array_equal(laid_out(values, dnn.f32, desc).array & 0x7FFF, wanted & 0x7FFF)
    of_halves = packed(as_f32(high), desc).array
    exact = dnn.Memory.from_numpy(stored(as_f32(high), dnn.bf16), desc)
    assert np.array_equal(of_halves, exact.array)


def nearest(values: Any) -> Any:
    """Upper halves of f32, to nearest even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def as_f32(upper: Any) -> Any:
    return (upper.astype(np.uint32) << 16).view(np.float32)


@EMULATED
def test_packed_weights_serve_any_number_of_rows() -> None:
    """Few rows by vectors, within the same bound; plans are written and read."""
    random, (k, n) = np.random.default_rng(4), (40, 48)
    engine = dnn.Engine(isa=ISA, threads=1, machine="sapphire_rapids")
    free = planned(product(64, k, n, ("ab", "any", "ab")))
    weights = random.standard_normal((k, n)).astype(np.float32)
    for rows, name in ((1, "bf16x3+tiles:avx512_core_bf16"), (40, f"bf16x3+amx+tiles:{ISA}")):
        pd = proved_desc(replace(product(rows, k, n, ("ab", "any", "ab")), weights=free.weights_desc), ATTR, engine)
        assert (pd.implementation, pd.weights_desc) == (name, free.weights_desc)
        src = random.standard_normal((rows, k)).astype(np.float32)
        found = computed(pd, {"src": src, "weights": weights, "dst": np.zeros((rows, n))})
        error = np.abs(found - src.astype(np.float64) @ weights)
        assert (error <= bound(np.abs(src).astype(np.float64) @ np.abs(weights), k)).all()
        kept, _ = decode_plan(encode_plan(pd.plan, ()))
        assert kept.tensors == pd.plan.tensors


def test_arrays_pack_for_many_rows() -> None:
    engine, batch = dnn.Engine(isa=ISA, threads=1, machine="sapphire_rapids"), 4
    desc = weights_desc((1024, 64), engine, ATTR)
    assert isinstance(desc, SplitDesc)
    wide = widened("b", desc, 3)
    assert isinstance(wide, SplitDesc)
    assert (wide.dims, wide.depth, wide.size_bytes) == ((1, 1024, 64), 1, desc.size_bytes)
    src, dst = (dnn.MemoryDesc((batch, 96, size), dnn.f32, "abc") for size in (1024, 64))
    assert dnn.primitive_desc(dnn.MatMul(src, wide, dst), ATTR, engine).weights_desc == wide
    assert weights_desc((1024, 64), dnn.Engine(isa="avx2", threads=1), ATTR).dtype == dnn.f32


def test_what_split_weights_refuse() -> None:
    desc = SplitDesc(dnn.MemoryDesc((3 * 40, 48), dnn.bf16, "BA32b2a"), 0)
    memory = dnn.Memory(desc)
    calls = (
        memory.numpy,
        memory.view,
        lambda: desc.offset((0, 0)),
        lambda: desc.reshape((48, 40)),
        lambda: dnn.reorder(memory, dnn.MemoryDesc(desc.dims, dnn.f32, "ab")),
        lambda: dnn.primitive_desc(dnn.Shuffle(desc, desc, 1, 2)),
        lambda: SplitDesc(dnn.MemoryDesc((121, 48), dnn.bf16, "ab"), 0),
        lambda: SplitDesc(dnn.MemoryDesc((120, 48), dnn.f32, "ab"), 0),
        lambda: SplitDesc(dnn.MemoryDesc((120, 48), dnn.bf16, "any"), 0),
        lambda: SplitDesc(dnn.MemoryDesc((120, 48), dnn.bf16, "ab"), 2),
        lambda: SplitDesc(desc, 0),
    )
    for call in calls:
        with pytest.raises((dnn.InvalidArguments, dnn.Unimplemented)):
            call()


@pytest.mark.parametrize("mode", ["strict", "bf16", "any", "bf16x3"])
@pytest.mark.parametrize("src", [dnn.f32, dnn.bf16], ids=str)
@pytest.mark.parametrize("isa", [ISA, "avx512_core_bf16", "avx2"])
def test_nothing_else_reads_split_weights(mode: Any, src: dnn.DataType, isa: Any) -> None:
    """Of products, inner products, 1x1 and 3x3 convolutions, deconvolutions; nor without the mode, or tiles."""
    free = ("any", "any", "any")
    descs: list[Any] = [
        product(40, 40, 48, ("ab", "any", "ab")),
        product(1, 40, 48, ("ab", "any", "ab")),
        dnn.InnerProductForward(*(dnn.MemoryDesc(d, dnn.f32, "any") for d in ((40, 20), (48, 20), (40, 48)))),
        TypedConv("mb2ic20ih6oc33oh6kh3ph1", F32, tags=free).desc(),
        TypedConv("mb2ic20ih6oc33oh6kh1", F32, tags=free).desc(),
        TypedDeconv("mb1ic16ih5oc20oh10kh4sh2ph1", F32, tags=free).desc(),
    ]
    for desc in descs:
        weights = planned(descs[0] if desc is descs[1] else desc).weights_desc
        given = replace(desc, src=dnn.MemoryDesc(desc.src.dims, src, "any"), weights=weights)
        engine = dnn.Engine(isa=isa, threads=1, machine="zen3")
        if (mode, src, isa) == ("bf16x3", dnn.f32, ISA):
            assert dnn.primitive_desc(given, ATTR, engine).implementation.startswith("bf16x3+")
            continue
        with pytest.raises(dnn.Unimplemented, match=r"split:|three products"):
            dnn.primitive_desc(given, dnn.Attr(fpmath_mode=mode), engine)


@pytest.mark.parametrize(
    ("desc", "isa", "reason"),
    [
        (product(40, 64, 48, ("ab", "ab", "ab")), "avx512_core_bf16", "avx512_core_bf16 has no tiles"),
        (product(0, 64, 48, ("ab", "ab", "ab")), ISA, "there is nothing to multiply"),
        (product(1, 64, 48, ("ab", "ab", "ab")), ISA, "vectors are expected to be faster than tiles"),
        (product(64, 1024, 1024, ("ab", "ab", "ab")), ISA, "cycles are expected"),
        (TypedConv("g2mb1ic64ih6oc64oh6kh3ph1", F32).desc(), ISA, "weights have 2 groups"),
    ],
)
def test_why_f32_stays(desc: Any, isa: str, reason: str) -> None:
    engine = dnn.Engine(isa=isa, threads=1, machine="sapphire_rapids")
    pd, strict = dnn.primitive_desc(desc, ATTR, engine), dnn.primitive_desc(desc, engine=engine)
    assert (pd.implementation, pd.weights_desc) == (strict.implementation, strict.weights_desc)
    assert any(x.implementation.startswith("bf16x3:") and reason in x.reason for x in pd.refusals), pd.refusals


def test_many_rows_take_them() -> None:
    """What makes the parts of weights in every call pays from some hundreds of rows on; that of src always."""
    engine = dnn.Engine(isa=ISA, threads=1, machine="sapphire_rapids")
    for tag, rows, pays in (("ab", 64, False), ("ab", 512, True), ("any", 16, True), ("any", 128, True)):
        pd = dnn.primitive_desc(product(rows, 1024, 1024, ("ab", tag, "ab")), ATTR, engine)
        assert pd.implementation.startswith("bf16x3+") is pays
