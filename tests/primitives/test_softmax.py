"""Softmax: every kind of kernel in every layout, masks, scales, post-ops, in place; extremes; bad input."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.softmax import softmax, softmax_error
from tests.primitives.guarded import in_child
from tests.primitives.test_guard_pages import run_guarded
from tests.support.plans import emulate_plan

INFERENCE = dnn.PropKind.forward_inference
ALGS = ("accurate", "log")
CASES = [
    ((5, 7), 1, "ab"), ((7, 19), -1, "ba"), ((33, 49), 1, "ab"), ((3, 300), 1, "ab"), ((70, 3), 0, "ab"),
    ((2, 21, 5, 9), 1, "abcd"), ((2, 21, 5, 9), 1, "acdb"), ((2, 16, 5, 9), 1, "aBcd8b"), ((2, 21, 5, 9), 3, "aBcd8b"),
    ((2, 16, 3, 9), 3, "aBcd8b"), ((3, 1, 4), 1, "abc"), ((2, 3, 4), 0, "acb"), ((1,), 0, "a"),
]  # fmt: skip


def numbers(*dims: int, seed: int = 0, size: float = 4.0) -> Any:
    return np.random.default_rng(seed).uniform(-size, size, dims).astype(np.float32)


def described(alg: str, desc: dnn.MemoryDesc, axis: int, **more: Any) -> dnn.SoftmaxForward:
    return dnn.SoftmaxForward(INFERENCE, alg, desc, desc, axis, **more)  # type: ignore[arg-type]


def assert_near(result: Any, x: Any, axis: int, alg: str) -> None:
    log = alg == "log"
    assert (np.abs(result - softmax(x.astype(np.float64), axis, log)) <= softmax_error(x, axis, log)).all()


@pytest.mark.parametrize("alg", ALGS)
@pytest.mark.parametrize(("dims", "axis", "tag"), CASES, ids=str)
def test_layouts(isa: str, dims: tuple[int, ...], axis: int, tag: str, alg: str) -> None:
    x, desc = numbers(*dims), dnn.MemoryDesc(dims, dnn.f32, tag)
    pd = dnn.primitive_desc(described(alg, desc, axis), engine=dnn.Engine(isa=isa, threads=2))
    pd.plan.check()
    assert pd.implementation.removeprefix("reorder+") in (f"rows:{isa}", f"lanes:{isa}")
    src, dst = dnn.Memory.from_numpy(x, desc), dnn.Memory.from_numpy(np.full(dims, np.nan, np.float32), desc)
    dnn.Primitive(pd).execute(src=src, dst=dst)
    assert_near(dst.numpy(), x, axis, alg)
    assert dst.padding_is_zero()
    if "src" in pd.plan.in_place:
        dnn.Primitive(pd).execute(src=src, dst=src)
        assert np.array_equal(src.numpy(), dst.numpy())


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize(("dims", "axis", "tag"), [((5, 19), 1, "ab"), ((2, 3, 21), 1, "abc"), ((2, 300), 1, "ab")])
def test_emulated(dims: tuple[int, ...], axis: int, tag: str) -> None:
    x, desc = numbers(*dims), dnn.MemoryDesc(dims, dnn.f32, tag)
    pd = dnn.primitive_desc(described("accurate", desc, axis), engine=dnn.Engine(isa="avx512_core", threads=1))
    pd.plan.check()
    dst = dnn.Memory(desc)
    emulate_plan(pd.plan, {"src": dnn.Memory.from_numpy(x, desc), "dst": dst})
    assert_near(dst.numpy(), x, axis, "accurate")


@pytest.mark.parametrize("alg", ALGS)
@pytest.mark.parametrize(("dims", "axis"), [((3, 4, 60), 2), ((3, 4, 12), 2), ((3, 12, 20), 1)])
@pytest.mark.parametrize("masked", [(3, 1, 1), (1, 1, None), (3, 4, None), (1, None, 1)], ids=str)
def test_mask_scale_and_post_ops(
    isa: str, alg: str, dims: tuple[int, ...], axis: int, masked: tuple[int | None, ...]
) -> None:
    mask_dims = tuple(m if m in (1, n) else n for m, n in zip(masked, dims, strict=True))
    x, mask, factor = numbers(*dims), numbers(*mask_dims, seed=1), numbers(*dims, seed=2)
    result = dnn.ops.softmax if alg == "accurate" else dnn.ops.log_softmax
    chain = [dnn.PostOp(lambda x, factor: x * factor, factor=factor)]
    scores, log = np.float32(0.25) * x + mask, alg == "log"
    wanted, bound = softmax(scores.astype(np.float64), axis, log), softmax_error(scores, axis, log)
    found = result(x, axis, mask=mask, scale=0.25, post_ops=chain, engine=dnn.Engine(isa=isa))
    assert (np.abs(found - wanted * factor) <= 8 * bound * np.abs(factor) + 1e-6).all()


@pytest.mark.parametrize("tag", ["abc", "acb", "aBc8b"])
@pytest.mark.parametrize("masks", [{"src": 0, "dst": 0}, {"src": 1 << 1}, {"dst": 1 << 2}], ids=str)
def test_scales(isa: str, tag: str, masks: dict[str, int]) -> None:
    """Those of src multiply results in front of post-ops, as oneDNN's do, those of dst divide them behind."""
    dims = (2, 19, 5)
    x, desc = numbers(*dims), dnn.MemoryDesc(dims, dnn.f32, tag)
    sizes = {name: dims[mask // 2] if mask else 1 for name, mask in masks.items()}
    scales = {name: np.random.default_rng(1).uniform(0.5, 2, size) for name, size in sizes.items()}
    spread = {"src": np.ones((1, 1, 1)), "dst": np.ones((1, 1, 1))}
    for name, mask in masks.items():
        spread[name] = scales[name].reshape([-1 if mask >> dim & 1 else 1 for dim in range(3)])
    attr = dnn.Attr([dnn.Eltwise("linear", 2.0, 1.0)], scales=masks)
    pd = dnn.primitive_desc(described("accurate", desc, 1), attr, dnn.Engine(isa=isa, threads=2))
    pd.plan.check()
    assert pd.implementation.removeprefix("reorder+") in (f"rows:{isa}", f"lanes:{isa}")
    dst = dnn.Memory(desc)
    more = {f"{name}_scales": dnn.Memory.from_array(values.astype(np.float32)) for name, values in scales.items()}
    dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, desc), dst=dst, **more)
    wanted = softmax(x.astype(np.float64), 1)
    assert np.abs(dst.numpy() - (2 * wanted * spread["src"] + 1) / spread["dst"]).max() < 1e-5
    assert dst.padding_is_zero()


def test_extremes(isa: str) -> None:
    """Masked elements are 0; where everything is masked, or NaN or infinite, nothing is a number."""
    engine = dnn.Engine(isa=isa)
    for count in (6, 100):
        x = np.zeros((5, count), np.float32)
        x[0, 2:], x[1], x[2, 1], x[3, 1], x[4, 3] = -np.inf, -np.inf, np.nan, np.inf, 1e30
        found = dnn.ops.softmax(x, engine=engine)
        assert np.array_equal(found[0], [0.5, 0.5, *[0.0] * (count - 2)])
        assert np.isnan(found[1:4]).all()
        assert np.array_equal(found[4], np.arange(count) == 3)
        assert np.array_equal(
            dnn.ops.log_softmax(x[4:], engine=engine)[0], np.where(np.arange(count) == 3, 0, -x[4, 3])
        )


def test_threads_give_the_same_bits(isa: str) -> None:
    for axis, x in ((1, numbers(301, 130)), (1, numbers(3, 21, 500))):
        results = [dnn.ops.softmax(x, axis, engine=dnn.Engine(isa=isa, threads=n)) for n in (1, 2, 3)]
        assert np.array_equal(results[0], results[1])
        assert np.array_equal(results[0], results[2])
        out = x.copy()
        assert dnn.ops.softmax(out, axis, out=out, engine=dnn.Engine(isa=isa)) is out
        assert np.array_equal(out, results[0])


def test_guard_pages(isa: str) -> None:
    def run(dims: tuple[int, ...], axis: int) -> None:
        x, desc = numbers(*dims), dnn.MemoryDesc(dims, dnn.f32, "abcd"[: len(dims)])
        primitive = dnn.Primitive(dnn.primitive_desc(described("accurate", desc, axis), engine=dnn.Engine(isa=isa)))
        for at_end in (True, False):
            run_guarded(primitive, {"src": x}, softmax(x, axis), at_end, 1e-6)

    for dims, axis in (((5, 7), 1), ((9, 13), 1), ((2, 101), 1), ((2, 5, 13), 1)):
        assert not in_child(lambda dims=dims, axis=axis: run(dims, axis))  # type: ignore[misc]


def test_no_elements(isa: str) -> None:
    assert dnn.ops.softmax(np.zeros((0, 5), np.float32)).shape == (0, 5)


def test_bad_input() -> None:
    desc = dnn.MemoryDesc((2, 3), dnn.f32, "ab")
    other = dnn.MemoryDesc((2, 4), dnn.f32, "ab")
    for arguments, says in (
        ((INFERENCE, "accurate", desc, other, 1), "dst has dims"),
        ((INFERENCE, "accurate", desc, desc, 2), "axis is 2, src has 2 dims: use -2 to 1"),
        ((INFERENCE, "accurate", desc, desc, True), "axis must be an integer"),
        ((INFERENCE, "exact", desc, desc, 1), "must be one of accurate, log"),
        ((INFERENCE, "accurate", desc, None, 1), "dst must be a MemoryDesc"),
        ((INFERENCE, "accurate", desc, desc, 1, other), "mask has dims"),
        ((INFERENCE, "accurate", desc, desc, 1, None, float("nan")), "scale must be a finite"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.SoftmaxForward(*arguments)
    with pytest.raises(dnn.Unimplemented, match="post-op sum is not implemented"):
        dnn.primitive_desc(described("accurate", desc, 1), dnn.Attr([dnn.Sum()]))


def test_torch(isa: str) -> None:
    torch = pytest.importorskip("torch", reason="not compared with torch: pip install 'asmdnn[torch]'")
    x = numbers(17, 130)
    wanted = torch.softmax(torch.from_numpy(x), -1).numpy()
    np.testing.assert_allclose(dnn.ops.softmax(x, engine=dnn.Engine(isa=isa)), wanted, 1e-5)
