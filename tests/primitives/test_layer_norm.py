"""Layer normalization: statistics computed, written and given, in every layout; large means; bad input."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.normalization import moments, normalized
from tests.primitives.guarded import in_child
from tests.primitives.test_guard_pages import run_guarded
from tests.support.plans import emulate_plan

INFERENCE = dnn.PropKind.forward_inference
EPSILON = 1e-5


def numbers(*dims: int, seed: int = 0, mean: float = 1.0) -> Any:
    return (np.random.default_rng(seed).standard_normal(dims) + mean).astype(np.float32)


def wanted(x: Any, scale: Any = 1.0, shift: Any = 0.0, rms: bool = False) -> Any:
    x = x.astype(np.float64)
    return normalized(x, *moments(x, (-1,), rms), EPSILON) * scale + shift


def described(dims: tuple[int, ...], tag: str, rms: bool, statistics: bool = False, given: bool = False) -> Any:
    desc, vector = dnn.MemoryDesc(dims, dnn.f32, tag), dnn.MemoryDesc(dims[-1:], dnn.f32, "a")
    kept = dnn.MemoryDesc(dims[:-1], dnn.f32, "abcdef"[: len(dims) - 1])
    optional = {"variance": kept} | ({} if rms else {"mean": kept}) if statistics else {}
    return dnn.LayerNormForward(
        INFERENCE, desc, desc, EPSILON, vector, vector, **optional, use_global_stats=given, rms=rms
    )


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("kind", ["computed", "written", "given"])
@pytest.mark.parametrize(
    ("dims", "tag"),
    [
        ((3, 5), "ab"), ((7, 19), "ba"), ((2, 3, 300), "abc"), ((2, 3, 30), "bac"), ((2, 19, 3, 8), "aBcd8b"),
        ((2, 24), "aB8b"),
    ],
    ids=str,
)  # fmt: skip
def test_layouts(isa: str, dims: tuple[int, ...], tag: str, kind: str, rms: bool) -> None:
    desc = described(dims, tag, rms, kind != "computed", kind == "given")
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=2))
    pd.plan.check()
    assert pd.implementation.removeprefix("reorder+") == f"layer_norm:{isa}"
    memories = {
        name: dnn.Memory.from_numpy(np.abs(numbers(*d.dims, seed=i)) + np.float32(0.25), d)
        for i, (name, d) in enumerate(pd.plan.tensors.items())
    }
    x = numbers(*dims)
    memories["src"] = dnn.Memory.from_numpy(x, memories["src"].desc)
    arrays = {name: memory.numpy().copy() for name, memory in memories.items()}
    dnn.Primitive(pd).execute(**memories)
    result = wanted(x, arrays["scale"], arrays["shift"], rms)
    variance = (x.astype(np.float64) ** 2).mean(-1) if rms else x.astype(np.float64).var(-1)
    if kind == "given":
        centred = x if rms else x - arrays["mean"].astype(np.float64)[..., None]
        factor = 1 / np.sqrt(arrays["variance"].astype(np.float64)[..., None] + EPSILON)
        result = centred * factor * arrays["scale"] + arrays["shift"]
    elif kind == "written":
        np.testing.assert_allclose(memories["variance"].numpy(), variance, 3e-6)
        if not rms:
            np.testing.assert_allclose(memories["mean"].numpy(), x.astype(np.float64).mean(-1), 1e-6, 1e-6)
    np.testing.assert_allclose(memories["dst"].numpy(), result, 1e-5, 1e-5)
    assert memories["dst"].padding_is_zero()


@pytest.mark.emulated("avx512_core")
def test_emulated() -> None:
    x, pd = numbers(3, 35), dnn.primitive_desc(described((3, 35), "ab", False), engine=dnn.Engine(isa="avx512_core"))
    pd.plan.check()
    ones = numbers(35, seed=1)
    memories = {name: dnn.Memory.from_array(array) for name, array in (("src", x), ("scale", ones), ("shift", ones))}
    memories["dst"] = dnn.Memory(pd.plan.tensors["dst"])
    emulate_plan(pd.plan, memories)
    np.testing.assert_allclose(memories["dst"].numpy(), wanted(x, ones, ones), 1e-5, 1e-5)


@pytest.mark.parametrize("mean", [0.0, 100.0, 1e4, -1e6])
def test_large_means(isa: str, mean: float) -> None:
    """An error of the mean is one unit of its size, in standard deviations; the variance adds nothing to it."""
    x = numbers(16, 768, mean=mean)
    found = dnn.ops.layer_norm(x, engine=dnn.Engine(isa=isa))
    assert np.abs(found - wanted(x)).max() < 2e-6 + 4 * 2.0**-24 * abs(mean)
    first = numbers(16, 768)
    first[:, :16] += np.float32(1e4)
    assert np.abs(dnn.ops.layer_norm(first, engine=dnn.Engine(isa=isa)) - wanted(first)).max() < 2e-4
    alike = np.full((3, 70), mean, np.float32)
    assert np.array_equal(dnn.ops.layer_norm(alike, engine=dnn.Engine(isa=isa)), np.zeros_like(alike))


def test_arrays(isa: str) -> None:
    x, scale, shift = numbers(33, 50), numbers(50, seed=1), numbers(50, seed=2)
    engines = [dnn.Engine(isa=isa, threads=n) for n in (1, 2, 3)]
    results = [dnn.ops.layer_norm(x, scale, shift, post_ops=[dnn.Eltwise("relu")], engine=engine) for engine in engines]
    np.testing.assert_allclose(results[0], np.maximum(wanted(x, scale, shift), 0), 1e-5, 1e-5)
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2])
    np.testing.assert_allclose(dnn.ops.rms_norm(x, scale, engine=engines[0]), wanted(x, scale, rms=True), 1e-5, 1e-5)
    only = dnn.ops.layer_norm(x, shift=shift, engine=engines[0])
    np.testing.assert_allclose(only, wanted(x, 1.0, shift), 1e-5, 1e-5)
    assert dnn.ops.layer_norm(x, scale, shift, out=x, engine=engines[0]) is x
    assert dnn.ops.layer_norm(np.zeros((0, 5), np.float32), engine=engines[0]).shape == (0, 5)


def test_guard_pages(isa: str) -> None:
    def run() -> None:
        x, ones = numbers(5, 21), np.ones(21, np.float32)
        primitive = dnn.Primitive(dnn.primitive_desc(described((5, 21), "ab", False), engine=dnn.Engine(isa=isa)))
        for at_end in (True, False):
            run_guarded(primitive, {"src": x, "scale": ones, "shift": ones}, wanted(x, ones, ones), at_end, 1e-5)

    assert not in_child(run)


def test_bad_input() -> None:
    desc, row, rows = (dnn.MemoryDesc(dims, dnn.f32, "ab"[: len(dims)]) for dims in ((2, 3), (3,), (2,)))
    for arguments, says in (
        ({"dst": row}, "dst has dims"),
        ({"scale": rows}, r"scale has dims \(2,\), they must be \(3,\)"),
        ({"mean": rows}, "lacks variance"),
        ({"use_global_stats": True}, "needs mean and variance"),
        ({"rms": True, "mean": rows, "variance": rows}, "RMS form"),
        ({"epsilon": -1.0}, "epsilon must not be negative"),
        ({"src": row, "dst": row}, "needs rows and columns"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.LayerNormForward(**{"prop_kind": INFERENCE, "src": desc, "dst": desc} | arguments)  # type: ignore[arg-type]
    with pytest.raises(dnn.Unimplemented, match="post-op sum"):
        dnn.primitive_desc(dnn.LayerNormForward(INFERENCE, desc, desc), dnn.Attr([dnn.Sum()]))


def test_torch(isa: str) -> None:
    torch = pytest.importorskip("torch", reason="not compared with torch: pip install 'asmdnn[torch]'")
    x, scale, shift = numbers(17, 130), numbers(130, seed=1), numbers(130, seed=2)
    found = dnn.ops.layer_norm(x, scale, shift, engine=dnn.Engine(isa=isa))
    inputs = map(torch.from_numpy, (x, scale, shift))
    first, *rest = inputs
    np.testing.assert_allclose(found, torch.nn.functional.layer_norm(first, (130,), *rest).numpy(), 1e-5, 1e-5)
