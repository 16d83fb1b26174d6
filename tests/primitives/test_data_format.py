"""Images with channels last are what views of them with channels second are, into results with channels last."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn

ops = dnn.ops
WORDS = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
CASES: dict[str, tuple[int, Callable[..., Any]]] = {
    "conv1d": (1, lambda x, w, **k: ops.conv1d(x, w, padding=1, **k)),
    "conv2d": (2, lambda x, w, **k: ops.conv2d(x, w, stride=2, padding="same", post_ops=["relu"], **k)),
    "conv3d": (3, lambda x, w, **k: ops.conv3d(x, w, **k)),
    "packed": (2, lambda x, w, **k: ops.conv2d(x, ops.pack_conv_weights(w), **k)),
    "max_pool": (2, lambda x, w, **k: ops.max_pool(x, 2, **k)),
    "avg_pool": (3, lambda x, w, **k: ops.avg_pool(x, 2, **k)),
    "adaptive_max_pool": (1, lambda x, w, **k: ops.adaptive_max_pool(x, 2, **k)),
    "adaptive_avg_pool": (2, lambda x, w, **k: ops.adaptive_avg_pool(x, 1, **k)),
    "resize": (2, lambda x, w, **k: ops.resize(x, (3, 4), **k)),
}


def last(x: Any) -> Any:
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


@pytest.mark.parametrize("of", [np.float32, np.float16])
@pytest.mark.parametrize("name", CASES)
def test_equal_results(name: str, of: Any, isa: str) -> None:
    """Of small integers, whose sums are exact; means of powers of two of them, too."""
    axes, call = CASES[name]
    engine, random = dnn.Engine(isa=isa), np.random.default_rng(axes)
    x = random.integers(-4, 4, (2, 8, *(8, 6, 4)[:axes])).astype(of)
    w = random.integers(-2, 2, (16, 8, *(3,) * axes)).astype(of)
    wanted = last(call(x, w, engine=engine))
    found = call(last(x), w, data_format=WORDS[axes], engine=engine)
    assert found.flags.c_contiguous and found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, 1e-3, 0)
    out = np.empty_like(wanted)
    assert call(last(x), w, data_format=WORDS[axes], out=out, engine=engine) is out
    assert np.array_equal(out, found)


def test_indices_and_bytes() -> None:
    random = np.random.default_rng(0)
    x, w = random.integers(0, 9, (1, 4, 6, 8), np.uint8), random.integers(-3, 3, (5, 4, 3, 3), np.int8)
    assert np.array_equal(ops.conv2d(last(x), w, data_format="NHWC"), last(ops.conv2d(x, w)))
    values, indices = ops.max_pool(last(x), 2, return_indices=True, data_format="NHWC")
    for found, wanted in zip((values, indices), ops.max_pool(x, 2, return_indices=True), strict=True):
        assert np.array_equal(found, last(wanted))
    assert np.array_equal(ops.max_pool(x, 2, data_format="NCHW"), ops.max_pool(x, 2))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"data_format": "NHCW"}, "data_format must be NCHW or NHWC for x of 4 dims, not 'NHCW'"),
        ({"data_format": 3}, "data_format must be NCHW or NHWC"),
        ({"data_format": "NHWC", "groups": 0}, "groups must be an integer of at least 1"),
        ({"data_format": "NHWC", "out": np.empty((1, 3, 4, 4), np.float32)}, r"result has \(1, 4, 4, 3\)"),
    ],
)
def test_bad_words(options: dict[str, Any], says: str) -> None:
    x, w = np.ones((1, 6, 6, 2), np.float32), np.ones((3, 2, 3, 3), np.float32)
    with pytest.raises(dnn.InvalidArguments, match=says):
        ops.conv2d(x, w, **options)
    with pytest.raises(dnn.InvalidArguments, match="x has 3 dims, 4 are needed"):
        ops.conv2d(x[0], w, data_format="NHWC")


def test_words_that_resemble_a_known_one() -> None:
    x = np.ones((1, 2), np.float32)
    for call, near in (
        (lambda: ops.eltwise(x, "rleu"), "relu"),  # type: ignore[arg-type]
        (lambda: ops.reduce(x, "summ"), "sum"),  # type: ignore[arg-type]
        (lambda: dnn.Engine(isa="avx512core"), "avx512_core"),  # type: ignore[arg-type]
        (lambda: dnn.Engine(machine="zen_4"), "zen4"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=rf"did you mean {near}\?$"):
            call()
