"""What layer normalization has beside tests/conformance: large means, arrays, bad input."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.normalization import moments, normalized

INFERENCE = dnn.PropKind.forward_inference
EPSILON = 1e-5


def numbers(*dims: int, seed: int = 0, mean: float = 1.0) -> Any:
    return (np.random.default_rng(seed).standard_normal(dims) + mean).astype(np.float32)


def wanted(x: Any, scale: Any = 1.0, shift: Any = 0.0, rms: bool = False) -> Any:
    x = x.astype(np.float64)
    return normalized(x, *moments(x, (-1,), rms), EPSILON) * scale + shift


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
    torch = pytest.importorskip("torch", reason="not compared with torch: pip install '.[torch]'")
    x, scale, shift = numbers(17, 130), numbers(130, seed=1), numbers(130, seed=2)
    found = dnn.ops.layer_norm(x, scale, shift, engine=dnn.Engine(isa=isa))
    inputs = map(torch.from_numpy, (x, scale, shift))
    first, *rest = inputs
    np.testing.assert_allclose(found, torch.nn.functional.layer_norm(first, (130,), *rest).numpy(), 1e-5, 1e-5)
