"""Products by tiles of AMX, emulated: which are, and what comes out, over tails, types, batches and threads."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.dot.amx import AmxTileSpec
from asmdnn.isa.levels import AVX512_CORE_AMX, LEVELS
from asmdnn.isa.tiles import NEAR, Far
from asmdnn.planning.host import executable_isas
from asmdnn.planning.of_classes import tuning_of
from asmdnn.planning.product_tuning import ProductTuning
from asmdnn.planning.tuning import DEFAULT
from asmdnn.primitives.products.amx import call_cycles
from asmdnn.runtime.kernels import generate
from tests.primitives.typed_case import TypedCase, compare, memories_of
from tests.support.plans import emulate_plan, proved_desc

C = TypedCase
ISA = AVX512_CORE_AMX.name
EMULATED = pytest.mark.emulated(ISA)
FREE = {"amx_rows": 1, "amx_call_cycles": 1, "amx_step_cycles": 0.1, "amx_end_cycles": 1}
FREE |= {"amx_even_cycles": 1e-9, "amx_split_cycles": 1e-9}  # src is read where it lies
ALWAYS = replace(DEFAULT, products=replace(DEFAULT.products, **FREE))  # type: ignore[arg-type]


def check(case: TypedCase, words: str = "amx", seed: int = 0) -> dnn.PrimitiveDesc:
    """Emulate the plan by tiles, which has these words in its name, and compare every element."""
    pd = replace(case, tuning=ALWAYS).planned(ISA)
    assert pd.implementation.startswith(words) and pd.implementation.endswith(f":{ISA}"), pd.implementation
    data = case.data(seed)
    memories = memories_of(pd, data)
    wanted, tolerance = case.expected(data, ISA)
    emulate_plan(pd.plan, memories)
    compare(memories["dst"], case, wanted, tolerance)
    return pd


@EMULATED
@pytest.mark.parametrize("types", ["u8:s8:s32", "s8:s8:s32", "bf16:bf16:f32"])
@pytest.mark.parametrize("wtag", ["any", "ab", "ba"])
def test_tails(types: str, wtag: str) -> None:
    """Of rows, columns and depth around tiles and blocks; weights in panels, or packed before."""
    for m, n, k in ((2, 40, 70), (16, 17, 200), (31, 64, 131), (50, 16, 193), (64, 33, 257), (97, 130, 66)):
        check(C(m, n, k, types, wtag), "amx+tiles" if wtag == "any" else "amx+pack_weights+tiles")


@EMULATED
@pytest.mark.parametrize("src", ["u8", "s8"])
def test_sums_of_bytes_are_exact(src: str) -> None:
    """The least and the largest bytes, equal bit for bit to sums of 64 bits."""
    for k in (64, 65, 127, 1000, 2050):
        check(C(34, 40, k, f"{src}:s8:s32", extreme=True), seed=k)


@EMULATED
@pytest.mark.parametrize("types", ["u8:s8", "s8:s8", "bf16:bf16"])
@pytest.mark.parametrize("dst", ["f32", "bf16", "f16", "s8", "u8"])
def test_results(types: str, dst: str) -> None:
    """Every type of dst, after a bias, scales by column and what dst held."""
    of_bytes = types != "bf16:bf16"
    case = C(35, 45, 131, f"{types}:{dst}", bias="f32", scaled=of_bytes, sum_scale=0.5)
    check(case)
    check(replace(case, bias="bf16", scaled=False, sum_scale=0.0))


@EMULATED
@pytest.mark.parametrize("src", ["u8", "s8"])
def test_zero_points(src: str) -> None:
    """Of src, which is not shifted for tiles, and of dst; weights with and without sums of columns after them."""
    for wtag in ("any", "ab"):
        check(C(35, 45, 131, f"{src}:s8:s32", wtag, zero_points=(7, None)), "")
        check(C(35, 45, 131, f"{src}:s8:u8", wtag, zero_points=(-3, 5), scaled=True), "")


def planned(src: Any, weights: Any, dst: Any, **fields: Any) -> dnn.PrimitiveDesc:
    engine = dnn.Engine(isa=ISA, threads=1, l2_bytes=2 << 20, machine="sapphire_rapids", **fields)
    return proved_desc(dnn.MatMul(src, weights, dst), engine=engine)


@EMULATED
def test_a_batch_and_weights_that_it_shares() -> None:
    random = np.random.default_rng(3)
    for shared in (False, True):
        a = random.integers(0, 256, (2, 40, 150)).astype(np.uint8)
        b = random.integers(-128, 128, (1 if shared else 2, 150, 70)).astype(np.int8)
        dst = dnn.MemoryDesc((2, 40, 70), dnn.s32, "abc")
        src = dnn.MemoryDesc((2, 40, 150), dnn.u8, "abc")
        pd = planned(src, dnn.MemoryDesc(b.shape, dnn.s8, "any"), dst, tuning=ALWAYS)
        assert pd.implementation.startswith("amx")
        memories = {"src": dnn.Memory.from_array(a), "weights": dnn.Memory.from_array(b), "dst": dnn.Memory(dst)}
        memories["weights"] = dnn.reorder(memories["weights"], pd.plan.tensors["weights"])
        emulate_plan(pd.plan, memories)
        assert np.array_equal(memories["dst"].numpy(), a.astype(np.int64) @ b.astype(np.int64))


@EMULATED
def test_rows_with_gaps_between_them() -> None:
    """And what lies there stays: src is read as far as k, dst is written as far as n."""
    random = np.random.default_rng(4)
    a, b = (random.integers(-128, 128, dims).astype(np.int8) for dims in ((33, 150), (137, 50)))
    a[:, 137:] = 127
    src = dnn.MemoryDesc((33, 137), dnn.s8, strides=(150, 1))
    dst = dnn.MemoryDesc((33, 50), dnn.s32, strides=(61, 1))
    pd = planned(src, dnn.MemoryDesc((137, 50), dnn.s8, "any"), dst, tuning=ALWAYS)
    assert pd.implementation == f"amx+tiles:{ISA}"
    memories = {"src": dnn.Memory(src), "weights": dnn.Memory.from_array(b), "dst": dnn.Memory(dst)}
    memories["src"].array[:] = a.ravel()[: memories["src"].array.size]
    memories["dst"].array[:] = 77
    memories["weights"] = dnn.reorder(memories["weights"], pd.plan.tensors["weights"])
    emulate_plan(pd.plan, memories)
    got = np.lib.stride_tricks.as_strided(memories["dst"].array, (33, 50), (244, 4))
    assert np.array_equal(got, a[:, :137].astype(np.int64) @ b.astype(np.int64))
    assert (memories["dst"].array == 77).sum() >= 32 * 11


@pytest.mark.parametrize("of", ["src", "dst", "bias", "operand"])
@pytest.mark.parametrize("step", [1 << 29, 3 << 30])
def test_tensors_that_reach_far(of: str, step: int) -> None:
    """Matrices, or rows, so many bytes apart: code steps over 2 GiB at most, so that calls have fewer of them."""
    for dims, shared, strides in (((5, 20, 64), (1, 64, 64), (step, 256, 4)), ((300, 64), (64, 64), (step >> 4, 4))):
        tensors = {name: dnn.MemoryDesc(dims, dnn.f32, "abc"[: len(dims)]) for name in ("dst", "bias", "operand")}
        tensors["src"] = dnn.MemoryDesc(dims, dnn.bf16, "abc"[: len(dims)])
        dtype = tensors[of].dtype
        tensors[of] = dnn.MemoryDesc(dims, dtype, strides=(*(x // dtype.size_bytes for x in strides[:-1]), 1))
        operand = tensors.pop("operand")
        desc = dnn.MatMul(weights=dnn.MemoryDesc(shared, dnn.bf16, "any"), **tensors)
        attr = dnn.Attr([dnn.Binary("add", operand)] * (of == "operand"))
        pd = proved_desc(desc, attr, dnn.Engine(isa=ISA, threads=1, machine="sapphire_rapids"))
        assert "amx" in pd.implementation or len(dims) == 2
        assert all(generate(spec) for spec in pd.plan.specs)


def test_few_rows_are_left_to_vectors() -> None:
    for types in ("bf16:bf16:f32", "u8:s8:s32", "s8:s8:s32"):
        for m in (1, 4, 15):
            assert "amx" not in C(m, 768, 768, types).planned(ISA).implementation
        assert C(16, 768, 768, types).planned(ISA).implementation == f"amx+tiles:{ISA}"


def test_small_products_are_left_to_vectors() -> None:
    """The configuration alone takes longer, and the refusal says so."""
    pd = C(17, 16, 8, "u8:s8:s32").planned(ISA)
    assert "amx" not in pd.implementation
    assert any("cycles are expected" in str(x) and str(x).startswith(f"amx:{ISA}") for x in pd.refusals)


@pytest.mark.parametrize("level", [x.name for x in LEVELS if x is not AVX512_CORE_AMX])
def test_other_levels_plan_what_they_did(level: str) -> None:
    assert "amx" not in C(128, 768, 768, "u8:s8:s32").planned(level).implementation


@pytest.mark.parametrize("types", ["f32:f32:f32", "f16:f16:f16"])
def test_other_types_are_left_to_vectors(types: str) -> None:
    assert "amx" not in C(128, 768, 768, types).planned(ISA).implementation


def test_weights_have_the_format_that_vectors_read() -> None:
    """So that weights packed for many rows serve few."""
    for types in ("bf16:bf16:f32", "u8:s8:s32", "s8:s8:s32"):
        formats = {str(C(m, 768, 768, types).planned(ISA).plan.tensors["weights"]) for m in (1, 16, 512)}
        assert len(formats) == 1


def test_the_plan_does_not_depend_on_threads() -> None:
    one, two = (C(100, 300, 500, "u8:s8:s32").planned(ISA, threads=n).plan for n in (1, 2))
    assert one.specs == two.specs
    assert all(np.array_equal(a.records, b.records) for a, b in zip(one.phases, two.phases, strict=True))


def test_calls_are_long_beside_their_configuration() -> None:
    """Few rows take several panels a call, many rows one; the src of a call stays in half of L2."""
    by = ProductTuning()
    for m, n, k, most in ((16, 768, 768, 8), (128, 768, 768, 24), (512, 768, 3072, 96)):
        phase = C(m, n, k, "bf16:bf16:f32", l2_bytes=2 << 20).planned(ISA).plan.phases[-1]
        assert len(phase.records) <= most
        assert phase.cycles.min() > 4 * by.amx_call_cycles
        assert all(2 * k * spec.tile.rows <= 1 << 20 for spec in phase.kernels)


def test_expected_cycles_are_those_that_were_measured() -> None:
    """On an Emerald Rapids: a block of 32 x 32 x 256 bf16 in L1 took 762 cycles, its stores at the end; with the
    configuration 1809.  256x256:256x256 took 23.6 us, 62,500 cycles, in 8 calls."""
    by = replace(ProductTuning(), amx_step_cycles=67.0)  # in L1
    block = call_cycles(32, 32, 128, by)
    assert abs(block - 1809) < 1809 / 5 and abs(block - by.amx_call_cycles - 762) < 762 / 4
    row = tuning_of("sapphire_rapids", ISA).products
    assert abs(8 * call_cycles(256, 32, 128, row) - 62_500) < 62_500 / 5


def far_and_near(m: int, n: int, k: int) -> tuple[Far, int]:
    """What a call of bf16 reads past L1, and how many panels it takes at once."""
    case = C(m, n, k, "bf16:bf16:f32", tuning=tuning_of("sapphire_rapids", ISA), l2_bytes=2 << 20)
    spec = case.planned(ISA).plan.phases[-1].kernels[0]
    assert isinstance(spec, AmxTileSpec)
    return spec.far, spec.panels_at_once


def test_operands_that_leave_l1_to_others() -> None:
    """L1 has 48 KiB; a block's src and a panel of weights have 64 bytes for each element of k."""
    assert far_and_near(256, 256, 128) == (NEAR, 4)  # all panels of a call stay
    assert far_and_near(256, 256, 256) == (NEAR, 2)
    assert far_and_near(256, 256, 512) == (Far(src=True), 1)  # a panel stays for all rows
    assert far_and_near(256, 256, 1024) == (Far(src=True, weights=True), 1)
    assert far_and_near(16, 768, 768) == (Far(weights=True), 1)  # rows of one tile stay for all panels
    assert far_and_near(16, 768, 1024) == (NEAR, 1)


@EMULATED
@pytest.mark.parametrize("types", ["u8:s8:s32", "bf16:bf16:f32"])
@pytest.mark.parametrize(("k", "copies"), [(200, True), (448, False), (512, True)])
def test_src_is_copied_where_its_rows_are_no_odd_number_of_lines_apart(types: str, k: int, copies: bool) -> None:
    """Rows of 64 bytes are multiplied as they lie, if they are an odd number of lines apart."""
    depth = k if types.startswith("u8") else k // 2
    by = replace(ALWAYS.products, amx_even_cycles=1e3, amx_split_cycles=1e3)
    case = C(40, 70, depth, types, tuning=replace(ALWAYS, products=by))
    pd, data = case.planned(ISA), case.data(1)
    assert pd.implementation == f"amx{'+pack_src' * copies}+tiles:{ISA}"
    memories, (wanted, tolerance) = memories_of(pd, data), case.expected(data, ISA)
    emulate_plan(pd.plan, memories)
    compare(memories["dst"], case, wanted, tolerance)


def test_rows_of_one_block_are_not_copied() -> None:
    """They stay in L1 for all panels."""
    for m, words in ((16, "amx+tiles"), (32, "amx+tiles"), (64, "amx+pack_src+tiles")):
        assert C(m, 1024, 512, "bf16:bf16:f32").planned(ISA).implementation == f"{words}:{ISA}"


def test_pairs_that_are_slow_on_a_class_do_not_count_for_tiles() -> None:
    """On Sapphire Rapids bf16 is widened where pairs would be slower; tiles are neither."""
    bf16 = dnn.bf16
    pd = planned(
        dnn.MemoryDesc((128, 768), bf16, "ab"), dnn.MemoryDesc((768, 768), bf16, "any"),
        dnn.MemoryDesc((128, 768), bf16, "ab"),
    )  # fmt: skip
    assert pd.implementation == f"amx+pack_src+tiles:{ISA}"


def test_f32_may_be_rounded_for_tiles() -> None:
    sizes = (((256, 768), "ab"), ((768, 768), "any"), ((256, 768), "ab"))
    f32 = [dnn.MemoryDesc(dims, dnn.f32, tag) for dims, tag in sizes]
    engine = dnn.Engine(isa=ISA, threads=1, l2_bytes=2 << 20, machine="sapphire_rapids")
    pd = proved_desc(dnn.MatMul(*f32), dnn.Attr(fpmath_mode="bf16"), engine)
    assert "amx" in pd.implementation and pd.implementation.startswith("bf16")


@EMULATED
@pytest.mark.parametrize("types", ["u8:s8:s32", "bf16:bf16:bf16"])
def test_inner_products(types: str) -> None:
    """As matrices of channels and positions, in the formats that are chosen."""
    case = C(20, 40, 16 * 6, types)
    src, weights, dst = case.dtypes()
    desc = dnn.InnerProductForward(
        dnn.MemoryDesc((20, 16, 2, 3), src, "any"), dnn.MemoryDesc((40, 16, 2, 3), weights, "any"),
        dnn.MemoryDesc((20, 40), dst, "any"),
    )  # fmt: skip
    pd = proved_desc(desc, engine=dnn.Engine(isa=ISA, threads=1, machine="zen3", tuning=ALWAYS))
    assert pd.implementation == f"amx+tiles:{ISA}"
    data = case.data()
    memories = {name: dnn.Memory(tensor) for name, tensor in pd.plan.tensors.items()}
    for name, dims in (("src", (20, 2, 3, 16)), ("weights", (2, 3, 16, 40))):  # as matrices, channels last
        order = (0, 3, 1, 2) if name == "src" else (3, 2, 0, 1)
        values = np.ascontiguousarray(data[name].reshape(dims).transpose(order))
        plain = dnn.Memory(dnn.MemoryDesc(values.shape, pd.plan.tensors[name].dtype, "abcd"))
        plain.array[:] = values.ravel()
        memories[name] = dnn.reorder(plain, pd.plan.tensors[name])
    emulate_plan(pd.plan, memories)
    compare(memories["dst"], case, *case.expected(data, ISA))


def test_a_cpu_without_the_level_says_so() -> None:
    pd = C(64, 64, 64, "u8:s8:s32").planned(ISA)
    if AVX512_CORE_AMX in executable_isas():
        pytest.skip("this CPU has AMX")
    with pytest.raises(dnn.Unimplemented, match=f"isa {ISA} cannot be executed here"):
        dnn.Primitive(pd)


@pytest.mark.parametrize("apart", [600, 608])
def test_a_product_without_steps_is_left_to_vectors(apart: int) -> None:
    """Whose rows take no room in a cache; matrices that share weights share a call, also if they do not touch."""
    src, weights = dnn.MemoryDesc((3, 20, 0), dnn.bf16, "abc"), dnn.MemoryDesc((1, 0, 30), dnn.bf16, "abc")
    dst = dnn.MemoryDesc((3, 20, 30), dnn.bf16, strides=(apart, 30, 1))
    pd = dnn.primitive_desc(dnn.MatMul(src, weights, dst), engine=dnn.Engine(isa=ISA, threads=1, tuning=ALWAYS))
    assert "amx" not in pd.implementation
    assert any("there are no steps of k" in str(refusal) for refusal in pd.refusals)


@pytest.mark.parametrize(("rows", "asks"), [(4096, True), (256, False), (32, False)])
def test_lines_of_results_beyond_l2_are_asked_for(rows: int, asks: bool) -> None:
    """Those of the next block; of one block there is none."""
    src, dst = dnn.MemoryDesc((rows, 256), dnn.bf16, "ab"), dnn.MemoryDesc((rows, 512), dnn.bf16, "ab")
    weights = dnn.MemoryDesc((256, 512), dnn.bf16, "any")
    engine = dnn.Engine(isa=ISA, threads=1, machine="sapphire_rapids", l2_bytes=1 << 20)
    pd = dnn.primitive_desc(dnn.MatMul(src, weights, dst), dnn.Attr([dnn.Binary("add", dst)]), engine=engine)
    tiles = [spec.tile for phase in pd.plan.phases for spec in phase.kernels if isinstance(spec, AmxTileSpec)]
    assert tiles and all(tile.prefetches_dst is asks for tile in tiles)
