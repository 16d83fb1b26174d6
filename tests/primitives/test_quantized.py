"""Products with weights of 4 and 8 bits: against sums of exactly rounded rows, on every level; plans and junk."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from tests.primitives.guarded import in_child
from tests.primitives.test_guard_pages import run_guarded
from tests.support.plans import emulate_plan, proved_desc

TYPES: dict[dnn.DataType, Any] = {dnn.f32: np.float32, dnn.bf16: ml_dtypes.bfloat16, dnn.f16: np.float16}
ROUNDOFF = {dnn.f32: 0.0, dnn.bf16: 2.0**-8, dnn.f16: 2.0**-11}
CASES = [(1, 32, 1, 16), (1, 256, 200, 32), (2, 96, 70, 48), (3, 128, 33, 128), (4, 64, 130, 64), (9, 512, 19, 256)]
LEVELS = ["avx2", "avx2_vnni", "avx512_core", "avx512_core_vnni"]


class Problem:
    """Numbers of a product (m, k, n, group); offsets: zero points that differ; bits: of weights."""

    def __init__(
        self, case: tuple[int, ...], src: dnn.DataType, dst: dnn.DataType, offsets: bool, bits: int = 4
    ) -> None:
        self.bits, most = bits, 2**bits
        (self.m, self.k, self.n, self.group), random = case, np.random.default_rng(case)
        self.src_type, self.dst_type = src, dst
        self.x = random.uniform(-3, 3, (self.m, self.k)).astype(TYPES[src])
        self.octets = random.integers(0, 256, (self.k * bits // 8, self.n)).astype(np.uint8)
        self.scales = random.uniform(0.5, 2, (self.k // self.group, self.n)).astype(np.float32)
        points = random.integers(0, most, self.scales.shape) if offsets else np.full(self.scales.shape, most // 2)
        self.points, self.offsets = points, (self.scales * points).astype(np.float32) if offsets else None

    @property
    def desc(self) -> dnn.QuantizedMatMul:
        scales = dnn.MemoryDesc(self.scales.shape, dnn.f32, "any")
        return dnn.QuantizedMatMul(
            dnn.MemoryDesc((self.m, self.k), self.src_type, "ab"),
            dnn.MemoryDesc(self.octets.shape, dnn.u8, "any"),
            scales,
            dnn.MemoryDesc((self.m, self.n), self.dst_type, "ab"),
            None if self.offsets is None else scales,
            2.0 ** (self.bits - 1) if self.offsets is None else 0.0,
        )

    def memories(self, pd: dnn.PrimitiveDesc) -> dict[str, dnn.Memory]:
        given = {"src": self.x, "weights": self.octets, "scales": self.scales, "offsets": self.offsets}
        plain = {name: dnn.Memory.from_array(x) for name, x in given.items() if x is not None}
        packed = {name: dnn.reorder(memory, pd.plan.tensors[name]) for name, memory in plain.items()}
        return {**packed, "dst": dnn.Memory(pd.plan.tensors["dst"])}

    def wanted(self, rounds: bool = True) -> tuple[Any, Any]:
        """Of src rounded by groups, as f32 rounds, or as it is; and the size of what is summed."""
        groups = self.x.astype(np.float32).reshape(self.m, -1, self.group)
        most = np.abs(groups).max(2, keepdims=True)
        octets = np.rint(groups * (np.float32(127) / most)).astype(np.float64)
        rounded = octets * (most * np.float32(1 / 127)).astype(np.float64)
        if not rounds:
            rounded = groups.astype(np.float64)
        halves = self.octets.reshape(-1, 1, 4, self.n)
        numbers = np.concatenate((halves & 15, halves >> 4), 1) if self.bits == 4 else halves
        nibbles = numbers.reshape(-1, self.group, self.n).astype(np.float64)
        weights = (nibbles - self.points[:, None]) * self.scales[:, None]
        sizes = (np.abs(nibbles) + self.points[:, None]) * self.scales[:, None]
        x, size = rounded.reshape(self.m, self.k), np.abs(rounded).reshape(self.m, self.k)
        return x @ weights.reshape(self.k, self.n), size @ sizes.reshape(self.k, self.n)

    def check(self, dst: Any, rounds: bool = True) -> None:
        wanted, size = self.wanted(rounds)
        bound = (32 if rounds else self.k + 8) * 2.0**-24 * size + ROUNDOFF[self.dst_type] * (np.abs(wanted) + 2.0**-14)
        assert (np.abs(dst.view(TYPES[self.dst_type]).astype(np.float64) - wanted) <= bound).all()


@pytest.mark.parametrize("level", [pytest.param(x, marks=pytest.mark.isa(x)) for x in LEVELS])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_products(level: str, case: tuple[int, ...], bits: int) -> None:
    for src, dst, offsets in ((dnn.f32, dnn.f32, True), (dnn.bf16, dnn.bf16, False), (dnn.f16, dnn.f32, True)):
        problem = Problem(case, src, dst, offsets, bits)
        pd = proved_desc(problem.desc, engine=dnn.Engine(isa=level, threads=2))
        assert pd.implementation == f"nibbles:{level}"
        memories = problem.memories(pd)
        dnn.Primitive(pd).execute(**memories)
        problem.check(memories["dst"].numpy())


F32_SUMS = dnn.Attr(accumulation_mode="f32")


@pytest.mark.parametrize("level", [pytest.param(x, marks=pytest.mark.isa(x)) for x in ("avx2", "avx512_core")])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("case", [*CASES, (12, 64, 65, 32), (29, 96, 130, 48)], ids=str)
def test_products_of_src_as_it_is(level: str, case: tuple[int, ...], bits: int) -> None:
    """Sums in f32: (k + a few) roundings of what is summed; equal bits for any number of threads."""
    for src, dst, offsets in ((dnn.f32, dnn.f32, True), (dnn.bf16, dnn.bf16, False), (dnn.f16, dnn.f32, True)):
        problem, found = Problem(case, src, dst, offsets, bits), []
        for threads in (1, 3):
            pd = proved_desc(problem.desc, F32_SUMS, dnn.Engine(isa=level, threads=threads))
            assert pd.implementation == f"{'reorder+' * (src != dnn.f32)}unpacking:{level}"
            memories = problem.memories(pd)
            dnn.Primitive(pd).execute(**memories)
            found.append(memories["dst"].numpy())
            problem.check(found[-1], rounds=False)
        assert np.array_equal(*found)


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("level", ["avx2", "avx512_core"])
@pytest.mark.parametrize("bits", [4, 8])
def test_src_as_it_is_emulated(level: str, bits: int) -> None:
    for rows in (1, 4):
        problem = Problem((rows, 64, 21, 32), dnn.bf16, dnn.f32, rows == 1, bits)
        pd = proved_desc(problem.desc, F32_SUMS, engine=dnn.Engine(isa=level, threads=1))
        memories = problem.memories(pd)
        emulate_plan(pd.plan, memories)
        problem.check(memories["dst"].numpy(), rounds=False)


@pytest.mark.emulated("avx512_core_vnni")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("bits", [4, 8])
def test_plans_and_emulated(level: str, bits: int) -> None:
    """Every level: what may be touched, and the same bits, as sums of a group are exact and others in one order."""
    problem = Problem((3, 64, 21, 32), dnn.bf16, dnn.f32, True, bits)
    results = []
    for isa in dict.fromkeys(("avx2", level)):
        pd = proved_desc(problem.desc, engine=dnn.Engine(isa=isa, threads=1))
        memories = problem.memories(pd)
        emulate_plan(pd.plan, memories)
        problem.check(memories["dst"].numpy())
        results.append(memories["dst"].numpy())
    assert np.array_equal(results[0], results[-1])


def test_weights_of_other_formats_and_strides(isa: str) -> None:
    """Plain weights are packed with every call, rows that are not dense are copied."""
    problem = Problem((5, 64, 40, 32), dnn.f32, dnn.f32, True)
    src = dnn.MemoryDesc((5, 64), dnn.f32, "ba")
    plain = {name: dnn.Memory.from_array(getattr(problem, name)) for name in ("scales", "offsets")}
    plain["weights"] = dnn.Memory.from_array(problem.octets)
    dst = dnn.MemoryDesc((5, 40), dnn.f32, strides=(64, 1))
    desc = dnn.QuantizedMatMul(src, plain["weights"].desc, plain["scales"].desc, dst, plain["offsets"].desc)
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=2))
    assert pd.implementation == f"reorder+nibbles:{isa}"
    result = dnn.Memory(dst)
    dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(problem.x, src), dst=result, **plain)
    problem.check(np.ascontiguousarray(result.numpy()))


def test_special_values(isa: str) -> None:
    """A row of zeros is 0; NaN and infinity leave no number in their rows, and all in others."""
    problem = Problem((5, 64, 8, 32), dnn.f32, dnn.f32, False)
    problem.x[1], problem.x[2, 3], problem.x[3, 40] = 0, np.nan, np.inf
    pd = dnn.primitive_desc(problem.desc, engine=dnn.Engine(isa=isa))
    memories = problem.memories(pd)
    dnn.Primitive(pd).execute(**memories)
    found = memories["dst"].numpy()
    assert (found[1] == 0).all()
    assert not np.isfinite(found[2:4]).any()
    assert np.isfinite(found[[0, 4]]).all()


def test_guard_pages(isa: str) -> None:
    def run(offsets: bool, attr: dnn.Attr) -> None:
        problem = Problem((3, 96, 70, 48), dnn.f32, dnn.f32, offsets)
        pd = dnn.primitive_desc(problem.desc, attr, engine=dnn.Engine(isa=isa))
        memories = problem.memories(pd)
        del memories["dst"]
        arrays = {name: memory.numpy() for name, memory in memories.items()}
        wanted, size = problem.wanted(rounds=attr is not F32_SUMS)
        for at_end in (True, False):
            run_guarded(dnn.Primitive(pd), arrays, wanted, at_end, 104 * 2.0**-24 * size.max())

    for offsets in (False, True):
        for attr in (dnn.Attr(), F32_SUMS):
            assert not in_child(lambda offsets=offsets, attr=attr: run(offsets, attr))  # type: ignore[misc]


def t(*dims: int, dtype: dnn.DataType = dnn.f32) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, "any")


@pytest.mark.parametrize(("tensors", "says"), [
    ((t(2, 64), t(32, 5), t(2, 5), t(2, 5)), "weights are f32"),
    ((t(2, 64), t(31, 5, dtype=dnn.u8), t(2, 5), t(2, 5)), "they must be u8 of k rows, 64, or of half as many"),
    ((t(2, 64), t(32, 5, dtype=dnn.u8), t(3, 5), t(2, 5)), "scales have 3 rows, they must divide k, 64"),
    ((t(2, 64), t(32, 5, dtype=dnn.u8), t(8, 5), t(2, 5)), "groups are of 8 k, they must be of 16 to 256"),
    ((t(2, 512), t(256, 5, dtype=dnn.u8), t(1, 5), t(2, 5)), "groups are of 512 k"),
    ((t(2, 64), t(32, 5, dtype=dnn.u8), t(2, 6), t(2, 5)), "scales have dims"),
    ((t(2, 64), t(32, 5, dtype=dnn.u8), t(2, 5, dtype=dnn.bf16), t(2, 5)), "scales are bf16, they must be f32"),
    ((t(2, 64), t(32, 5, dtype=dnn.u8), t(2, 5), t(3, 5)), "dst has dims"),
    ((t(2, 64), t(32, 5, dtype=dnn.u8), t(2, 5), t(2, 5), t(1, 5)), "offsets has dims"),
    ((t(2, 64), t(32, 5, dtype=dnn.u8), t(2, 5), t(2, 5), None, 16.0), "zero_point is 16.0, it must be whole"),
    ((t(2, 64), t(32, 5, dtype=dnn.u8), t(2, 5), t(2, 5), None, 0.5), "zero_point is 0.5"),
    ((t(2, 64), t(32, 5, dtype=dnn.u8), t(2, 5), t(2, 5), t(2, 5), 8.0), "but offsets are given"),
    ((t(1, 2, 64), t(32, 5, dtype=dnn.u8), t(2, 5), t(2, 5)), "src has 3 dims, it must be a matrix"),
])  # fmt: skip
def test_bad_descriptions(tensors: tuple[Any, ...], says: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=says):
        dnn.QuantizedMatMul(*tensors)


@pytest.mark.parametrize(("attr", "says"), [
    (dnn.Attr([dnn.Sum()]), "post-op sum is not implemented"),
    (dnn.Attr(scales={"src": 0}), "scales and zero points are not implemented"),
    (dnn.Attr(accumulation_mode="f16"), "accumulation_mode is f16, but sums are f32 here"),
])  # fmt: skip
def test_what_is_refused(attr: dnn.Attr, says: str) -> None:
    desc = dnn.QuantizedMatMul(t(2, 64), t(32, 5, dtype=dnn.u8), t(2, 5), t(2, 5))
    with pytest.raises(dnn.Unimplemented, match=says):
        dnn.primitive_desc(desc, attr)
    with pytest.raises(dnn.Unimplemented, match="src is s8, only f32, bf16, f16 is implemented"):
        dnn.primitive_desc(dnn.QuantizedMatMul(t(2, 64, dtype=dnn.s8), *[desc.weights, desc.scales, desc.dst]))


def test_nothing_to_do() -> None:
    for m, n in ((0, 5), (2, 0)):
        desc = dnn.QuantizedMatMul(t(m, 64), t(32, n, dtype=dnn.u8), t(2, n), t(m, n))
        assert not dnn.primitive_desc(desc).plan.phases[0].records.size
