"""Element-wise primitives: functions and gradients in every layout, in place, with post-ops; bad input."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.corpus.elementwise import PARAMETERS
from asmdnn.generators.functions.eltwise.algorithms import ALGORITHMS
from asmdnn.primitives.elementwise.eltwise import BACKWARD_ALGS, USE_DST
from tests.support import functions
from tests.support.plans import emulate_plan
from tests.support.slopes import slope
from tests.support.tuning import tuned

INFERENCE = dnn.PropKind.forward_inference
DIMS = (2, 19, 5, 7)
NONE = dnn.Attr()
TAGS = ("abcd", "acdb", "aBcd8b", "aBcd16b", "dcba")


def numbers(*dims: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(0.1, 2, dims).astype(np.float32)


def memory(array: Any, tag: str) -> dnn.Memory:
    return dnn.Memory.from_numpy(array, dnn.MemoryDesc(array.shape, dnn.f32, tag))


def run(desc: Any, attr: dnn.Attr = NONE, **memories: dnn.Memory) -> dnn.PrimitiveDesc:
    pd = dnn.primitive_desc(desc, attr)
    pd.plan.check()
    dnn.Primitive(pd).execute(**memories)
    return pd


@pytest.mark.parametrize("alg", ALGORITHMS)
def test_forward(isa: str, alg: str) -> None:
    x, parameters = numbers(*DIMS), PARAMETERS.get(alg, (0.0, 0.0))
    src, dst = memory(x, "aBcd16b"), memory(np.full(DIMS, np.nan, np.float32), "aBcd16b")
    run(dnn.EltwiseForward(INFERENCE, alg, src.desc, dst.desc, *parameters), src=src, dst=dst)
    np.testing.assert_allclose(dst.numpy(), functions.forward(alg, x.astype(np.float64), *parameters), 1e-6, 1e-6)
    assert dst.padding_is_zero(), "also where f(0) is not 0"


@pytest.mark.parametrize("alg", BACKWARD_ALGS)
def test_backward(isa: str, alg: str) -> None:
    function, parameters = alg.removesuffix(USE_DST), PARAMETERS.get(alg.removesuffix(USE_DST), (0.0, 0.0))
    x, gradient = numbers(3, 40), numbers(3, 40, seed=1) - np.float32(1)
    wanted = gradient * slope(function, x.astype(np.float64), *parameters)
    name = "dst" if alg.endswith(USE_DST) else "src"
    data = functions.forward(function, x.astype(np.float64), *parameters).astype(np.float32) if name == "dst" else x
    memories = {name: memory(data, "ab"), "diff_dst": memory(gradient, "ab"), "diff_src": memory(gradient, "ab")}
    desc = dnn.EltwiseBackward(alg, *(m.desc for m in memories.values()), *parameters)
    run(desc, **memories)
    np.testing.assert_allclose(memories["diff_src"].numpy(), wanted, 1e-4, 1e-5)
    memories["diff_src"] = memories["diff_dst"]
    run(desc, **memories)
    np.testing.assert_allclose(memories["diff_src"].numpy(), wanted, 1e-4, 1e-5, err_msg="in place")


@pytest.mark.parametrize("src_tag", TAGS)
@pytest.mark.parametrize("dst_tag", TAGS)
def test_layouts(isa: str, src_tag: str, dst_tag: str) -> None:
    x = numbers(*DIMS)
    src, dst = memory(x, src_tag), memory(np.full(DIMS, np.nan, np.float32), dst_tag)
    desc = dnn.EltwiseForward(INFERENCE, "exp", src.desc, dst.desc)
    try:
        run(desc, src=src, dst=dst)
    except dnn.Unimplemented as error:
        assert "are not dense in the same dim: reorder one of them" in str(error)
        return
    np.testing.assert_allclose(dst.numpy(), np.exp(x), 1e-6)
    assert dst.padding_is_zero()


@pytest.mark.parametrize(
    ("level", "tag", "channels", "zeroed"),
    [
        ("avx512_core", "aBcd16b", 24, {0, 8}),
        ("avx512_core", "aBcd16b", 3, {13}),
        ("avx2", "aBcd8b", 3, {5}),
        ("avx2", "aBcd16b", 17, {0, 15}),
        ("avx2", "aBcd16b", 24, {0, 8}),
    ],
)
@pytest.mark.parametrize("dtype", [dnn.f32, dnn.bf16], ids=str)
def test_padding_of_blocks_is_stored_with_what_is_before_it(
    level: str, tag: str, channels: int, zeroed: set[int], dtype: dnn.DataType
) -> None:
    """By the same kernel, a part of whose vector it is; 1 of 0 for exp shows what is not cleared."""
    desc = dnn.MemoryDesc((2, channels, 5, 7), dtype, tag)
    pd = dnn.primitive_desc(dnn.EltwiseForward(INFERENCE, "exp", desc, desc), engine=dnn.Engine(isa=level, threads=1))
    pd.plan.check()
    assert {spec.zeroed for spec in pd.plan.specs} == zeroed  # type: ignore[attr-defined]
    x = dnn.reorder(memory(numbers(2, channels, 5, 7), "abcd"), desc)
    made = dnn.Memory(desc)
    made.array.view(np.uint8)[:] = 77
    emulate_plan(pd.plan, {"src": x, "dst": made})
    assert made.padding_is_zero()
    plain = dnn.MemoryDesc((2, channels, 5, 7), dnn.f32, "abcd")
    wanted, found = (dnn.reorder(each, plain).numpy() for each in (x, made))
    np.testing.assert_allclose(found, np.exp(wanted), 2**-8 if dtype == dnn.bf16 else 1e-6)


def test_rows_apart_and_any(isa: str) -> None:
    x = numbers(6, 50)
    src = dnn.Memory.from_array(np.pad(x, ((0, 0), (0, 9)))[:, :50])
    free = dnn.MemoryDesc((6, 50), dnn.f32, "any")
    dst = dnn.Memory(src.desc)
    pd = run(dnn.EltwiseForward(INFERENCE, "square", src.desc, free), src=src, dst=dst)
    assert pd.dst_desc == src.desc
    assert np.array_equal(dst.numpy(), x * x)


def test_in_place_and_threads(isa: str) -> None:
    x = numbers(7, 11, 1300)
    results = []
    for threads in (1, 2):
        m = memory(x, "abc")
        desc = dnn.EltwiseForward(INFERENCE, "tanh", m.desc, m.desc)
        pd = dnn.primitive_desc(desc, engine=dnn.Engine(threads=threads))
        assert len(pd.plan.phases[0].records) > 1
        dnn.Primitive(pd).execute(src=m, dst=m)
        results.append(m.numpy())
    assert np.array_equal(*results)
    np.testing.assert_allclose(results[0], np.tanh(x), 1e-6)
    with pytest.raises(dnn.InvalidArguments, match="dst overlaps src"):
        shifted = dnn.Memory(m.desc, np.concatenate((m.array, m.array))[1 : 1 + m.array.size])
        whole = dnn.Memory(m.desc, shifted.array.base[: m.array.size])  # type: ignore[index]
        dnn.Primitive(pd).execute(src=whole, dst=shifted)


def streaming_run(isa: str, execute: Any) -> None:
    """To aligned memory, and to memory that is not."""
    x = numbers(2, 16 * 9 + 5)
    desc = dnn.MemoryDesc(x.shape, dnn.f32, "ab")
    with tuned("elementwise", streaming_bytes=1):
        engine = dnn.Engine(isa=isa, threads=1)
    pd = dnn.primitive_desc(dnn.EltwiseForward(INFERENCE, "exp", desc, desc), engine=engine)
    assert any(spec.streaming for spec in pd.plan.specs)
    pd.plan.check()
    for shift in (0, 1):
        room = dnn.Memory(dnn.MemoryDesc((x.size + 16,), dnn.f32, "a")).array
        src, dst = memory(x, "ab"), dnn.Memory(desc, room[shift : shift + x.size])
        execute(pd, {"src": src, "dst": dst})
        np.testing.assert_allclose(dst.numpy(), np.exp(x), 1e-6)


def test_streaming(isa: str) -> None:
    streaming_run(isa, lambda pd, memories: dnn.Primitive(pd).execute(**memories))


@pytest.mark.emulated("avx512_core")
def test_streaming_emulated() -> None:
    streaming_run("avx512_core", lambda pd, memories: emulate_plan(pd.plan, memories))


@pytest.mark.parametrize("tag", ["abcd", "acdb", "aBcd8b"])
@pytest.mark.parametrize("broadcast", [(1, 1, 1, 1), (1, 19, 1, 1), (2, 1, 5, 7), (2, 19, 5, 7), (1, 1, 1, 7)], ids=str)
def test_binary(isa: str, tag: str, broadcast: tuple[int, ...]) -> None:
    a, b, old = numbers(*DIMS), numbers(*broadcast, seed=1), numbers(*DIMS, seed=2)
    src0, src1, dst = memory(a, tag), memory(b, tag if b.shape == DIMS else "abcd"), memory(old, tag)
    attr = dnn.Attr([dnn.Sum(0.5), dnn.Binary("max", src1.desc)])
    desc = dnn.BinaryForward("sub", src0.desc, src1.desc, dst.desc)
    run(desc, attr, src0=src0, src1=src1, dst=dst, binary_1=src1)
    wanted = np.maximum(a - b + np.float32(0.5) * old, b)
    np.testing.assert_allclose(dst.numpy(), wanted, 1e-6, 1e-6)
    assert dst.padding_is_zero()


@pytest.mark.parametrize("alg", functions.BINARY)
def test_binary_algorithms(isa: str, alg: str) -> None:
    a, b = np.float32([1, 2, 3, 0, -0.0] * 5), np.float32([2, 2, 1, 5, -7] * 5)
    memories = {"src0": memory(a, "a"), "src1": memory(b, "a"), "dst": memory(a, "a")}
    run(dnn.BinaryForward(alg, *(m.desc for m in memories.values())), **memories)
    assert np.array_equal(memories["dst"].numpy(), functions.BINARY[alg](a, b).astype(np.float32))


SPECIAL = np.float32([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2.0**20, 1e-45, -6, 3, -3, 0.1])


@pytest.mark.parametrize("alg", ["fmod", "mod", "and", "or", "xor"])
def test_remainders_and_logic_are_numpys(isa: str, alg: str) -> None:
    """Bit by bit, where a quotient is below 2^46; NaN beyond."""
    a, b = (x.ravel().copy() for x in np.meshgrid(SPECIAL, SPECIAL))
    random = np.random.default_rng(0)
    many = [(random.standard_normal(5000) * size).astype(np.float32) for size in (1e6, 1, 1e12)]
    a, b = np.concatenate((a, many[0], many[2])), np.concatenate((b, many[1], many[0]))
    memories = {"src0": memory(a, "a"), "src1": memory(b, "a"), "dst": memory(a, "a")}
    run(dnn.BinaryForward(alg, *(m.desc for m in memories.values())), **memories)
    with np.errstate(all="ignore"):
        wanted = functions.BINARY[alg](a, b).astype(np.float32)
        if alg in ("fmod", "mod"):
            wanted[np.isfinite(a) & np.isfinite(b) & (np.abs(a.astype(np.float64) / b) >= 2.0**46)] = np.nan
    result = memories["dst"].numpy()
    known = ~np.isnan(wanted)
    assert np.array_equal(result, wanted, equal_nan=True)
    assert np.array_equal(np.signbit(result[known]), np.signbit(wanted[known]))


def test_select(isa: str) -> None:
    """src0 where src2 is not 0, and where it is NaN; each broadcast."""
    random = np.random.default_rng(0)
    dims = {"src0": (3, 1, 19), "src1": (3, 5, 1), "dst": (3, 5, 19), "src2": (1, 5, 19)}
    arrays = {name: random.integers(-1, 2, size).astype(np.float32) for name, size in dims.items()}
    arrays["src2"][0, 1, 2] = np.nan
    memories = {name: memory(array, "abc") for name, array in arrays.items()}
    run(dnn.BinaryForward("select", *(m.desc for m in memories.values())), **memories)
    wanted = np.where(arrays["src2"] != 0, arrays["src0"], arrays["src1"])
    assert np.array_equal(memories["dst"].numpy(), wanted)


F = dnn.MemoryDesc((2, 3), dnn.f32, "ab")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dnn.EltwiseForward(INFERENCE, "gelus", F, F), "EltwiseForward.alg must be one of relu, .*not 'gelus'"),
        (lambda: dnn.EltwiseForward(dnn.PropKind.backward_data, "exp", F, F), "prop_kind must be PropKind.forward_t"),
        (lambda: dnn.EltwiseForward(INFERENCE, "exp", F, F, 1.0), "EltwiseForward.alpha must be 0 for exp, not 1.0"),
        (lambda: dnn.EltwiseForward(INFERENCE, "clip", F, F, 2.0, 1.0), "alpha is 2.0, for clip it must not be above"),
        (lambda: dnn.EltwiseForward(INFERENCE, "soft_relu", F, F), "alpha must not be 0 for soft_relu"),
        (lambda: dnn.EltwiseForward(INFERENCE, "exp", F, dnn.MemoryDesc((3, 2), dnn.f32, "ab")), "dst has dims"),
        (lambda: dnn.EltwiseForward(INFERENCE, "exp", None, F), "src must be a MemoryDesc"),  # type: ignore[arg-type]
        (lambda: dnn.EltwiseBackward("round", F, F, F), "EltwiseBackward.alg must be one of .*not 'round'"),
        (lambda: dnn.EltwiseBackward("log_use_dst_for_bwd", F, F, F), "must be one of"),
        (lambda: dnn.EltwiseBackward("elu_use_dst_for_bwd", F, F, F, -1.0), "alpha must not be negative"),
        (lambda: dnn.BinaryForward("pow", F, F, F), "BinaryForward.alg must be one of add, .*not 'pow'"),
        (lambda: dnn.BinaryForward("select", F, F, F), "src2 is None: it is the condition of select"),
        (lambda: dnn.BinaryForward("add", F, F, F, F), "src2 is .*: it is the condition of select, and of nothing el"),
        (lambda: dnn.BinaryForward("add", F, dnn.MemoryDesc((3, 1), dnn.f32, "ab"), F), "src1 has dims"),
        (lambda: dnn.Binary("add", np.zeros(3)), "Binary.src1 must be a MemoryDesc"),  # type: ignore[arg-type]
        (lambda: dnn.PReLU(dnn.MemoryDesc((3,), dnn.s8, "a")), "PReLU.weights is s8, it must be f32"),
        (lambda: run(dnn.EltwiseForward(INFERENCE, "exp", F, F),
                     dnn.Attr([dnn.Binary("add", dnn.MemoryDesc((2, 2), dnn.f32, "ab"))])), "binary_0 has dims"),
    ],
)  # fmt: skip
def test_bad_input(make: Any, message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        make()


@pytest.mark.parametrize(("images", "streams"), [(3, False), (4, True)])
@pytest.mark.parametrize("kind", ["eltwise", "layer_norm"])
def test_streams_where_all_tensors_exceed_their_share_of_l3(kind: str, images: int, streams: bool) -> None:
    """src and dst of 9.6 MB each stay in 32 MiB, of 12.8 MB they do not."""
    x = dnn.MemoryDesc((images * 64 * 112, 112), dnn.f32, "ab")
    desc: Any = dnn.EltwiseForward(dnn.PropKind.forward_inference, "relu", x, x)
    if kind == "layer_norm":
        desc = dnn.LayerNormForward(dnn.PropKind.forward_inference, x, x)
    specs = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx2", threads=1, machine="zen3")).plan.specs
    assert {getattr(spec, "streaming", False) or getattr(spec, "streams", False) for spec in specs} == {streams}


def test_a_sum_of_two_counts_three_tensors() -> None:
    """8.4 MB each: past the caches, though src and dst alone would stay."""
    x = dnn.MemoryDesc((1, 1 << 21), dnn.f32, "ab")
    pd = dnn.primitive_desc(dnn.BinaryForward("add", x, x, x), engine=dnn.Engine(isa="avx2", threads=1, machine="zen3"))
    assert all(spec.streaming for spec in pd.plan.specs)  # type: ignore[attr-defined]
