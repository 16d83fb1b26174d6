"""`asmdnn.ops.conv1d` to `conv3d` with groups, and their adjoints `conv_transpose1d` to 3d."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops
from asmdnn.definitions.convolution import convolution, deconvolution
from asmdnn.definitions.windows import SlidingWindow

CONV = {1: ops.conv1d, 2: ops.conv2d, 3: ops.conv3d}
TRANSPOSE = {1: ops.conv_transpose1d, 2: ops.conv_transpose2d, 3: ops.conv_transpose3d}
SIZES = {1: (11,), 2: (9, 8), 3: (4, 6, 5)}
WINDOWS: list[dict[str, Any]] = [
    {},
    {"stride": 2, "padding": 1},
    {"dilation": 2, "padding": 3, "groups": 2},
    {"stride": 3, "dilation": 2, "padding": 2, "groups": 4},
]


def integers(seed: int, *dims: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(seed).integers(-4, 4, dims, endpoint=True).astype(np.float32)


def window_of(w: Any, window: dict[str, Any]) -> SlidingWindow:
    """groups apart; padding is the same on all sides."""
    axes = w.ndim - 2
    sizes = (window.get("stride", 1), window.get("dilation", 1), *[window.get("padding", 0)] * 2)
    return SlidingWindow(w.shape[2:], *((size,) * axes for size in sizes))


def convolved(x: Any, w: Any, window: dict[str, Any]) -> Any:
    """In float64."""
    return convolution(x.astype(np.float64), w.astype(np.float64), window_of(w, window), window.get("groups", 1))


def spread(x: Any, w: Any, window: dict[str, Any], more: int = 0) -> Any:
    """The adjoint, of weights (i, o / groups, ...)."""
    g, sizes = window.get("groups", 1), window_of(w, window)
    pairs = zip(x.shape[2:], *sizes.fields(), strict=True)
    outputs = tuple((n - 1) * s + (k - 1) * d + 1 + more - a - b for n, k, s, d, a, b in pairs)
    turned = w.reshape(g, len(w) // g, *w.shape[1:]).swapaxes(1, 2).reshape(-1, len(w) // g, *w.shape[2:])
    return deconvolution(x.astype(np.float64), turned.astype(np.float64), sizes, outputs, g)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions(isa: str, axes: int, window: dict[str, Any]) -> None:
    g = window.get("groups", 1)
    x, w, b = integers(1, 2, 8, *SIZES[axes]), integers(2, 12, 8 // g, *[3, 2, 3][:axes]), integers(3, 12)
    with dnn.max_cpu_isa(isa):
        result = CONV[axes](x, w, b, **window)
        packed = ops.pack_conv_weights(w, x.shape, **window)
        again = CONV[axes](x, packed, b, **window)
    wanted = convolved(x, w, window) + b.reshape(-1, *[1] * axes)
    assert np.array_equal(result, wanted)
    assert np.array_equal(again, wanted)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_transposed(isa: str, axes: int, window: dict[str, Any]) -> None:
    g, more = window.get("groups", 1), window.get("stride", 1) - 1
    x, w, b = integers(1, 2, 8, *SIZES[axes]), integers(2, 8, 12 // g, *[3, 2, 4][:axes]), integers(3, 12)
    with dnn.max_cpu_isa(isa):
        result = TRANSPOSE[axes](x, w, b, **window, output_padding=more)
        again = TRANSPOSE[axes](x, ops.pack_conv_transpose_weights(w, **window), b, **window)
        turned = TRANSPOSE[axes](x, np.asfortranarray(w), b, **window)
    assert np.array_equal(result, spread(x, w, window, more) + b.reshape(-1, *[1] * axes))
    assert np.array_equal(again, spread(x, w, window) + b.reshape(-1, *[1] * axes))
    assert np.array_equal(again, turned)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_one_is_the_adjoint_of_the_other(isa: str, axes: int) -> None:
    """<conv(x), y> = <x, conv_transpose(y)> for the same weights."""
    window = {"stride": 2, "padding": 1, "groups": 2}
    x, w = integers(1, 1, 8, *[n | 1 for n in SIZES[axes]]), integers(2, 6, 4, *[3] * axes)
    with dnn.max_cpu_isa(isa):
        forward = CONV[axes](x, w, **window)
        y = integers(3, *forward.shape)
        back = TRANSPOSE[axes](y, w, **window)
    assert np.vdot(forward.astype(np.float64), y) == np.vdot(x.astype(np.float64), back)


def test_against_torch() -> None:
    torch = pytest.importorskip("torch", reason="not compared with torch: pip install '.[torch]'")
    x, w = integers(1, 2, 8, 7, 9), integers(2, 8, 3, 4, 3)
    window = {"stride": (2, 3), "padding": (1, 0), "output_padding": (1, 2), "groups": 4, "dilation": 1}
    wanted = torch.nn.functional.conv_transpose2d(torch.from_numpy(x), torch.from_numpy(w), **window).numpy()
    assert np.array_equal(ops.conv_transpose2d(x, w, **window), wanted)


def test_paddings_before_and_after() -> None:
    x, w = integers(1, 1, 4, 9), integers(2, 5, 4, 3)
    assert np.array_equal(ops.conv1d(x, w, padding=(3, 1)), ops.conv1d(np.pad(x, ((0, 0), (0, 0), (3, 1))), w))
    x, w = integers(1, 1, 4, 3, 4, 5), integers(2, 5, 4, 2, 2, 2)
    wide = np.pad(x, ((0, 0), (0, 0), (0, 3), (1, 4), (2, 5)))
    assert np.array_equal(ops.conv3d(x, w, padding=(0, 1, 2, 3, 4, 5)), ops.conv3d(wide, w))


X, W = integers(1, 1, 8, 6, 6), integers(2, 8, 4, 3, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.conv2d(X, W, groups=3), "the first must be a multiple of groups, 3"),
        (lambda: ops.conv2d(X, W), "x has 8 channels, weights are for 4: make them equal"),
        (lambda: ops.conv2d(X, W, groups=4), "x has 8 channels, weights are for 16: make them equal"),
        (lambda: ops.conv2d(X, W, groups=0), "groups must be an integer of at least 1, below .*, not 0"),
        (lambda: ops.conv2d(X, W, groups=2.0), "groups must be an integer"),  # type: ignore[arg-type]
        (lambda: ops.conv2d(X, ops.pack_conv_weights(W, groups=2)), "groups is 1, weights are packed for 2"),
        (lambda: ops.conv1d(X, W), "x has 4 dims, 3 are needed"),
        (lambda: ops.conv3d(X[0], W[0]), "x has 3 dims, 5 are needed"),
        (lambda: ops.conv1d(X[0], W[0], padding=(1, 2, 3)), "padding must be one or two integers"),
        (lambda: ops.conv2d(X, W, groups=2, stride=(1, 1, 1)), "stride must be one or two integers"),
        (lambda: ops.conv_transpose2d(X, W, stride=2, output_padding=2), "output_padding is 2, it must be below"),
        (lambda: ops.conv_transpose2d(X, W, output_padding=-1), "output_padding must be .* at least 0"),
        (lambda: ops.conv_transpose2d(X, W, padding=9), "padding leaves nothing"),
        (lambda: ops.conv_transpose2d(X, W[:4]), "x has 8 channels, weights are for 4: make them equal"),
        (lambda: ops.pack_conv_weights(W[0, 0]), "weights has dims"),
        (lambda: ops.pack_conv_weights(W, dims=(1, 8, 6), groups=2), "dims must be four"),
    ],
)
def test_what_does_not_fit(call: Any, message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        call()


@pytest.mark.parametrize("image", [None, (1, 4, 5, 5)], ids=["usual", "given"])
def test_packing_does_not_grow_with_strides(isa: str, image: tuple[int, ...] | None) -> None:
    """A result of 255 * 255 parts; the format follows from one of them."""
    w = integers(2, 4, 8, 3, 3)
    packed = ops.pack_conv_transpose_weights(w, image, stride=255, engine=dnn.Engine(isa=isa))
    assert packed.desc == ops.pack_conv_transpose_weights(w, image, stride=3, engine=dnn.Engine(isa=isa)).desc
