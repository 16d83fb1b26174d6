"""What reductions have beside tests/conformance: types, the tree, large sums, extremes, bad input."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.support.plans import proved_desc
from tests.support.tuning import tuned


def numbers(*dims: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(0.5, 1.5, dims).astype(np.float32)


def described(alg: str, dims: tuple[int, ...], axes: tuple[int, ...], tag: str, **more: float) -> dnn.ReductionForward:
    result = tuple(1 if dim in axes else n for dim, n in enumerate(dims))
    src, dst = dnn.MemoryDesc(dims, dnn.f32, tag), dnn.MemoryDesc(result, dnn.f32, "abcd"[: len(dims)])
    return dnn.ReductionForward(alg, src, dst, **more)  # type: ignore[arg-type]


def run(desc: dnn.ReductionForward, x: Any, engine: dnn.Engine, attr: Any = None, **more: dnn.Memory) -> Any:
    pd = proved_desc(desc, attr or dnn.Attr(), engine)
    assert pd.implementation.removeprefix("reorder+") in {f"{way}:{engine.isa}" for way in ("rows", "lanes", "plain")}
    dst = more.pop("dst", None) or dnn.Memory.from_numpy(np.full(desc.dst.dims, np.nan, np.float32), desc.dst)
    dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, desc.src), dst=dst, **more)
    return dst.numpy()


@pytest.mark.parametrize("dtype", [dnn.bf16, dnn.f16, dnn.s32, dnn.s8, dnn.u8], ids=str)
def test_other_types_are_converted_as_they_are_loaded(isa: str, dtype: Any) -> None:
    """The same bits as of f32, in every form; the plan has no phase more."""
    for dims, axes, tag in (((5, 70), (1,), "ab"), ((90, 37), (0,), "ab"), ((3, 16, 5, 9), (2, 3), "aBcd8b")):
        for alg in ("sum", "max", "logsumexp", "norm_lp_sum"):
            plain = described(alg, dims, axes, tag)
            src = dnn.MemoryDesc(dims, dtype, tag)
            typed = dnn.ReductionForward(alg, src, plain.dst)
            x = np.rint(3 * numbers(*dims)).astype(np.float32)
            engine = dnn.Engine(isa=isa, threads=2)
            memory = dnn.reorder(dnn.Memory.from_numpy(x, plain.src), src)
            pd = proved_desc(typed, engine=engine)
            assert len(pd.plan.phases) == len(dnn.primitive_desc(plain, engine=engine).plan.phases)
            dst = dnn.Memory(plain.dst)
            dnn.Primitive(pd).execute(src=memory, dst=dst)
            np.testing.assert_array_equal(dst.numpy(), run(plain, x, engine))


@pytest.mark.parametrize("made", [dnn.bf16, dnn.f16, dnn.s32, dnn.s8, dnn.u8], ids=str)
@pytest.mark.parametrize("read", [dnn.f32, None], ids=str)
def test_results_are_rounded_as_they_are_stored(isa: str, made: Any, read: Any) -> None:
    """The numbers of f32, rounded once, in every form; the plan has no phase more."""
    cases = (
        ((150, 7), (1,), "ab"),
        ((90, 37), (0,), "ab"),
        ((3, 16, 5, 9), (2, 3), "aBcd8b"),
        ((9, 5, 11), (2,), "bac"),
    )
    for dims, axes, tag in (*cases, ((200, 300), (0, 1), "ab")):
        for alg in ("mean", "max", "logsumexp", "norm_lp_sum"):
            plain = described(alg, dims, axes, tag)
            result = dnn.MemoryDesc(plain.dst.dims, dnn.f32, tag if tag == "bac" else plain.dst.tag)
            plain = dnn.ReductionForward(alg, plain.src, result)
            typed = dnn.ReductionForward(alg, *(
                dnn.MemoryDesc(t.dims, kind, t.tag) for t, kind in ((plain.src, read or made), (result, made))
            ))  # fmt: skip
            x = np.rint(60 * numbers(*dims) - 55).astype(np.float32).clip(0)
            engine = dnn.Engine(isa=isa, threads=2)
            pd = proved_desc(typed, engine=engine)
            assert len(pd.plan.phases) == len(dnn.primitive_desc(plain, engine=engine).plan.phases)
            src = dnn.reorder(dnn.Memory.from_numpy(x, plain.src), typed.src)
            dst = dnn.Memory(typed.dst)
            dnn.Primitive(pd).execute(src=src, dst=dst)
            exact = dnn.reorder(dnn.Memory.from_numpy(run(plain, x, engine), result), typed.dst)
            np.testing.assert_array_equal(dst.numpy(), exact.numpy())


@pytest.mark.parametrize("dims_axes", [((2, 3, 70), (2,)), ((2, 3, 70), (0, 2)), ((90, 5), (0,)), ((7, 9, 11), (0, 1))])
def test_trees(isa: str, dims_axes: Any) -> None:
    """Small chunks, unequal ones, and several levels; the same bits for every number of threads."""
    dims, axes = dims_axes
    x, desc = numbers(*dims), described("sum", dims, axes, "abc"[: len(dims)])
    spread = described("logsumexp", dims, axes, "abc"[: len(dims)])
    with tuned("reduction", row_elements=9, chunk_elements=20, lanes=8, merged=3):
        results = [run(desc, x, dnn.Engine(isa=isa, threads=n)) for n in (1, 2, 3)]
        found = run(spread, 100 * x, dnn.Engine(isa=isa, threads=1))
    np.testing.assert_allclose(results[0], x.astype(np.float64).sum(axes, keepdims=True), 1e-6)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])
    np.testing.assert_allclose(found, np.log(np.exp(100.0 * x.astype(np.float64)).sum(axes, keepdims=True)), 1e-6)


@pytest.mark.parametrize("tag", ["abcd", "acdb"])
def test_rows_from_memory_are_asked_for_in_the_order_in_which_they_lie(tag: str) -> None:
    """Whole ones, if no longer than Zen 5 takes at once: another kernel for the rest would read them twice.  Not lanes,
    whose rows are apart, nor what a cache holds."""
    engine = dnn.Engine(isa="avx512_core", threads=1, machine="zen5")
    for dims, piece in (((2, 16, 113, 97), 10961), ((2, 16, 113, 194), 10961), ((2, 16, 9, 9), 81)):
        plan = proved_desc(described("sum", dims, (2, 3), tag), engine=engine).plan
        first = [spec for spec in plan.specs if spec.along == "rows"]  # type: ignore[attr-defined]
        found = [(spec.elements, spec.prefetches) for spec in first]  # type: ignore[attr-defined]
        assert found == ([(piece, piece > 81)] if tag == "abcd" else [])


@pytest.mark.parametrize(
    ("alg", "elements", "levels"),
    [
        ("sum", 64, {"avx2"}),
        ("sum", 65, {"avx512_core"}),
        ("norm_lp_sum", 64, {"avx512_core"}),
        ("logsumexp", 64, {"avx2", "avx512_core"}),
    ],
)
def test_short_rows_take_ymm_registers(alg: str, elements: int, levels: set[str]) -> None:
    """Where nothing is computed before, as beside the maxima of a logsumexp."""
    engine = dnn.Engine(isa="avx512_core", threads=1, machine="zen4")
    pd = proved_desc(described(alg, (40, elements), (1,), "ab", p=3.0), engine=engine)
    assert pd.implementation == "rows:avx512_core"
    assert {spec.isa for spec in pd.plan.specs} == levels  # type: ignore[attr-defined]
    lanes = dnn.primitive_desc(described(alg, (elements, 40), (0,), "ab", p=3.0), engine=engine)
    assert {spec.isa for spec in lanes.plan.specs} == {"avx512_core"}  # type: ignore[attr-defined]


def test_post_ops(isa: str) -> None:
    x, old, factor = numbers(3, 8, 5), numbers(3, 1, 5, seed=1), numbers(3, 1, 5, seed=2)
    dst, other = dnn.Memory.from_array(old.copy()), dnn.Memory.from_array(factor)
    attr = dnn.Attr([dnn.Sum(0.5), dnn.Binary("mul", other.desc)])
    found = run(described("max", (3, 8, 5), (1,), "abc"), x, dnn.Engine(isa=isa), attr, dst=dst, binary_1=other)
    np.testing.assert_allclose(found, (x.max(1, keepdims=True) + 0.5 * old) * factor, 1e-6)


def test_extremes(isa: str) -> None:
    """Maxima and minima pass over NaN; exponentials do not overflow."""
    x = np.float32([[1, np.nan, 3, -2, 5, 6, 7, 8, 9], [-np.inf] * 9, [np.nan] * 9])
    engine = dnn.Engine(isa=isa)
    assert np.array_equal(dnn.ops.reduce(x, "max", 1, engine=engine), [9, -np.inf, -np.inf])
    assert np.array_equal(dnn.ops.reduce(x, "min", 1, engine=engine), [-2, -np.inf, np.inf])
    large = np.float32([[1e30, 0], [-np.inf, -np.inf], [-200, -200]])
    found = dnn.ops.reduce(large, "logsumexp", 1, engine=engine)
    np.testing.assert_allclose(found, [1e30, -np.inf, np.log(2) - 200], 1e-6)


def test_large_means(isa: str) -> None:
    """A sum of many numbers of one sign keeps six digits."""
    x = np.float32(1000) + np.random.default_rng(0).uniform(-1, 1, (3_000_000,)).astype(np.float32)
    wanted = x.sum(dtype=np.float64)
    assert abs(float(dnn.ops.reduce(x, engine=dnn.Engine(isa=isa))) / wanted - 1) < 1e-6
    down = x.reshape(-1, 3)
    found = dnn.ops.reduce(down, "mean", 0, engine=dnn.Engine(isa=isa))
    np.testing.assert_allclose(found, down.mean(0, dtype=np.float64), 1e-6)


def test_places_of_results(isa: str) -> None:
    """As those of numpy's functions: of the result's dims, whether reduced ones stay or not."""
    engine, x = dnn.Engine(isa=isa), np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for axis, keepdims, dims in ((1, False, (2, 4)), (1, True, (2, 1, 4)), ((0, 2), False, (3,)), (None, False, ())):
        out = np.zeros(dims, np.float32)
        assert dnn.ops.reduce(x, "sum", axis, keepdims=keepdims, out=out, engine=engine) is out
        assert np.array_equal(out, x.sum(axis, keepdims=keepdims))
    with pytest.raises(dnn.InvalidArguments, match=r"out has dims \(2, 1, 4\), the result has \(2, 4\)"):
        dnn.ops.reduce(x, "sum", 1, out=np.zeros((2, 1, 4), np.float32), engine=engine)


def test_bad_input() -> None:
    src, dst = dnn.MemoryDesc((2, 3), dnn.f32, "ab"), dnn.MemoryDesc((2, 1), dnn.f32, "ab")
    for arguments, says in (
        (("add", src, dst), "must be one of max, min, sum"),
        (("sum", dst, src), "dst has dims"),
        (("sum", src, dnn.MemoryDesc((2,), dnn.f32, "a")), "dst has dims"),
        (("norm_lp_sum", src, dst, 0.5), "p is 0.5"),
        (("sum", src, dst, 2.0, -1.0), "eps -1"),
        (("sum", dnn.MemoryDesc((2, 0), dnn.f32, "ab"), dst), "of no elements there is no reduction"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.ReductionForward(*arguments)  # type: ignore[arg-type]
    with pytest.raises(dnn.InvalidArguments, match="axis is 2, x has 2 dims"):
        dnn.ops.reduce(np.ones((2, 3), np.float32), axis=2)


def test_copies_of_a_reduction_and_of_its_post_ops_have_room_for_both() -> None:
    """Both plans copy what they call src, the second one a smaller one."""
    src, dst = dnn.MemoryDesc((5, 7, 8, 23, 5), dnn.u8, "abcde"), dnn.MemoryDesc((5, 7, 8, 23, 1), dnn.s8, "aBcde8b")
    attr = dnn.Attr([dnn.Eltwise("relu")])
    for isa in ("avx2", "avx512_core"):
        engine = dnn.Engine(isa=isa, threads=2)  # type: ignore[arg-type]
        dnn.primitive_desc(dnn.ReductionForward("norm_lp_max", src, dst, 2.0, 0.5), attr, engine).plan.check()
