"""Each definition against one that is not ours: scipy's, those of ONNX's reference, published or obvious answers.

What networks have of them is also compared with ONNX's node tests (tests/network/test_operators.py).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import ndimage, signal, special

from asmdnn.definitions import (
    convolution,
    dropout,
    elementwise,
    moves,
    normalization,
    products,
    reduction,
    resampling,
    rounding,
    softmax,
    windows,
)
from asmdnn.definitions.stochastic_rounding import stochastically_rounded
from asmdnn.definitions.suppression import suppressed
from asmdnn.definitions.windows import SlidingWindow
from asmdnn.primitives.elementwise.eltwise import BACKWARD_ALGS, USE_DST
from asmdnn.types import bf16, f8_e4m3, f8_e5m2, f16, f32, s8, u8
from tests.support.functions import FORWARD
from tests.support.philox import philox, rounded_to_bf16, stochastic
from tests.support.slopes import slope, terms

X = np.random.default_rng(0).uniform(-3, 3, (3, 4, 5, 6))
Q, K, V = (np.random.default_rng(1).uniform(-1, 1, dims) for dims in ((2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 3)))
GROUPED = np.random.default_rng(2).uniform(-1, 1, (6, 2, 2, 3))
GROUPED_3X3 = np.random.default_rng(4).uniform(-1, 1, (6, 2, 3, 3))
FILTERS = np.random.default_rng(3).uniform(-1, 1, (3, 4, 2, 3))
PARAMETERS = {
    "clip": (-1.0, 2.0), "clip_v2": (-1.0, 2.0), "soft_relu": (1.5, 0.0), "pow": (2.0, 3.0), "elu": (1.5, 0.0),
}  # fmt: skip
POSITIVE = ("log", "sqrt", "rsqrt", "reciprocal")
THREE = SlidingWindow((3, 3), (1, 1), (1, 1), (1, 1), (1, 1))
SPREAD = SlidingWindow((2, 3), (2, 1), (1, 2), (1, 0), (0, 3))
INSIDE = SlidingWindow((2, 3), (1, 1), (1, 1), (0, 0), (0, 0))


def onnx_reference(op: str, *arrays: Any, **attributes: Any) -> Any:
    """The first result of an operator, of float64."""
    onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
    from onnx.reference import ReferenceEvaluator

    names = [f"x{i}" for i in range(len(arrays))]
    node = onnx.helper.make_node(op, names, ["y"], **attributes)
    infos = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, None) for name in (*names, "y")]
    graph = onnx.helper.make_graph([node], "one", infos[:-1], infos[-1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 22)])
    return ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=True)))[0]


def resampled(x: Any, alg: str, **more: Any) -> Any:
    return resampling.resampled(x, alg, (10, 9), (2.0, 1.5), **more)[0]


def resized(x: Any, mode: str, **more: Any) -> Any:
    return onnx_reference("Resize", x, np.zeros(0), np.array([1, 1, 2.0, 1.5]), mode=mode, **more)


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "softmax": (lambda x: softmax.softmax(x, 1), lambda x: special.softmax(x, 1)),
    "softmax of axes": (lambda x: softmax.softmax(x, (1, 2)), lambda x: special.softmax(x, (1, 2))),
    "log softmax": (lambda x: softmax.softmax(x, 2, log=True), lambda x: special.log_softmax(x, 2)),
    "logsumexp": (lambda x: reduction.reduced("logsumexp", 300 * x, (1, 2)),
                  lambda x: special.logsumexp(300 * x, (1, 2), keepdims=True)),
    "norm": (lambda x: reduction.reduced("norm_lp_sum", x[0, 0], (1,), 3.0),
             lambda x: np.linalg.norm(x[0, 0], 3, 1, keepdims=True)),
    "norm of eps": (lambda x: reduction.reduced("norm_lp_max", 0 * x, (1,), 2.0, 4.0), lambda x: 0 * x[:, :1] + 2),
    "power": (lambda x: reduction.reduced("norm_lp_power_p_sum", x, (3,), 2.0), lambda x: onnx_reference(
        "ReduceSumSquare", x, np.array([3]))),
    "product": (lambda x: reduction.reduced("mul", x, (0, 3)), lambda x: onnx_reference(
        "ReduceProd", x, np.array([0, 3]))),
    "cumulated": (lambda x: reduction.cumulated("sum", x, 1, True, True), lambda x: onnx_reference(
        "CumSum", x, np.array(1), exclusive=1, reverse=1)),
    "top": (lambda x: reduction.top(x, 3, 2)[0], lambda x: np.sort(x, 2)[:, :, :1:-1]),
    "smallest": (lambda x: reduction.top(x, 2, 1, largest=False)[1], lambda x: np.argsort(x, 1)[:, :2]),
    "batch norm": (
        lambda x: normalization.normalized(x, *normalization.moments(x, (0, 2, 3)), 0.125),
        lambda x: onnx_reference("BatchNormalization", x, np.ones(4), np.zeros(4), x.mean((0, 2, 3)),
                                 x.var((0, 2, 3)), epsilon=0.125)),
    "layer norm": (lambda x: normalization.normalized(x, *normalization.moments(x, (3,)), 0.125),
                   lambda x: onnx_reference("LayerNormalization", x, np.ones(6), epsilon=0.125)),
    "rms": (lambda x: normalization.normalized(x, *normalization.moments(x, (3,), rms=True), 0.0),
            lambda x: x / np.linalg.norm(x, 2, 3, keepdims=True) * np.sqrt(6)),
    "group norm": (
        lambda x: normalization.normalized(
            *(lambda g: (g, *normalization.moments(g, (2, 3))))(normalization.by_groups(x, 2)), 0.125).reshape(x.shape),
        lambda x: onnx_reference("GroupNormalization", x, np.ones(4), np.zeros(4), num_groups=2, epsilon=0.125)),
    "lrn": (lambda x: normalization.local_response(x, (1,), 3, 0.5, 0.75, 2.0),
            lambda x: x / (2 + 0.5 * ndimage.uniform_filter(x * x, (1, 3, 1, 1), mode="constant")) ** 0.75),
    "lrn within": (lambda x: normalization.local_base(x, (2, 3), 3, 9.0, 0.0), lambda x: 9 * ndimage.uniform_filter(
        x * x, (1, 1, 3, 3), mode="constant")),
    "max": (lambda x: windows.largest(x, THREE, x)[0], lambda x: ndimage.maximum_filter(
        x, (1, 1, 3, 3), mode="constant", cval=-np.inf)),
    "place of max": (lambda x: windows.largest(x, SPREAD, x)[1], lambda x: windows.largest(x, SPREAD, x)[0]),
    "mean": (lambda x: windows.window_means(x, THREE, True)[0], lambda x: ndimage.uniform_filter(
        x, (1, 1, 3, 3), mode="constant")),
    "mean inside": (lambda x: windows.window_means(x, SPREAD, False)[0], lambda x: onnx_reference(
        "AveragePool", x, kernel_shape=(2, 3), strides=(2, 1), dilations=(1, 2), pads=(1, 0, 0, 3))),
    "convolution": (lambda x: convolution.convolution(x, GROUPED, SPREAD, 2), lambda x: onnx_reference(
        "Conv", x, GROUPED, group=2, strides=(2, 1), dilations=(1, 2), pads=(1, 0, 0, 3))),
    "deconvolution": (lambda x: convolution.deconvolution(x, FILTERS, SPREAD, (8, 10)), lambda x: onnx_reference(
        "ConvTranspose", x, FILTERS.swapaxes(0, 1), strides=(2, 1), dilations=(1, 2), pads=(1, 0, 1, 0))),
    "correlated": (lambda x: convolution.convolution(x[:1, :1], FILTERS[:1, :1], INSIDE),
                   lambda x: signal.correlate(x[:1, :1], FILTERS[:1, :1], "valid")),
    "linear": (lambda x: resampled(x, "linear"), lambda x: resized(x, "linear")),
    "cubic": (lambda x: resampled(x, "cubic", coordinates="asymmetric"),
              lambda x: resized(x, "cubic", coordinate_transformation_mode="asymmetric")),
    "nearest": (lambda x: resampled(x, "nearest", rounding="floor"),
                lambda x: resized(x, "nearest", nearest_mode="floor")),
    "corners": (lambda x: resampled(x, "linear", coordinates="align_corners"), lambda x: ndimage.zoom(
        x, (1, 1, 2, 1.5), order=1)),
    "elu": (lambda x: elementwise.elu(x, 1.5), lambda x: onnx_reference("Elu", x, alpha=1.5)),
    "celu": (lambda x: elementwise.elu(x, 0.5, 0.5), lambda x: onnx_reference("Celu", x, alpha=0.5)),
    "softsign": (elementwise.softsign, lambda x: onnx_reference("Softsign", x)),
    "above": (lambda x: elementwise.above(x, 1.25), lambda x: onnx_reference("ThresholdedRelu", x, alpha=1.25)),
    "shuffled": (lambda x: moves.shuffled(x, 1, 2), lambda x: x[:, [0, 2, 1, 3]]),
    "attention": (lambda x: softmax.attention(Q, K, V, 0.5, -x[0, 0, 0, 0]), lambda x: np.einsum(
        "nhqk,nhkd->nhqd", special.softmax(0.5 * np.einsum("nhqd,nhkd->nhqk", Q, K[:, [0, 0, 1, 1]]), -1),
        V[:, [0, 0, 1, 1]])),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_others_compute(name: str) -> None:
    ours, theirs = CASES[name]
    np.testing.assert_allclose(ours(X), theirs(X), 1e-5, 2e-6)  # the reference of ONNX computes parts in f32
    single = ours(X.astype(np.float32))
    assert single.dtype in (np.float32, np.int64, np.float64)
    np.testing.assert_allclose(single, ours(X.astype(np.float32).astype(np.float64)), 1e-3, 1e-5)


@pytest.mark.parametrize("alg", elementwise.FORWARD)
def test_functions(alg: str) -> None:
    """By scipy; in f32 as in f64; infinities are where they belong."""
    x = np.linspace(0.25, 6, 97) if alg in POSITIVE else np.linspace(-6, 6, 97)
    numbers = PARAMETERS.get(alg, (0.5, 0.25))
    np.testing.assert_allclose(elementwise.forward(alg, x, *numbers), FORWARD[alg](x, *numbers), 1e-12, 1e-14)
    single = elementwise.forward(alg, x.astype(np.float32), *numbers)
    assert single.dtype == np.float32
    exact = elementwise.forward(alg, x.astype(np.float32).astype(np.float64), *numbers)
    assert (np.abs(single - exact) <= elementwise.rounding_error(exact)).all()


@pytest.mark.parametrize("alg", BACKWARD_ALGS)
def test_slopes(alg: str) -> None:
    name, of_dst = alg.removesuffix(USE_DST), alg.endswith(USE_DST)
    x = np.linspace(0.3, 0.9, 31) if of_dst or name in POSITIVE else np.linspace(-5.9, 5.9, 60)
    numbers = PARAMETERS.get(name, (0.5, 0.25))
    wanted = slope(name, x, *numbers, of_dst)
    error = np.abs(elementwise.slope(name, x, *numbers, of_dst) - wanted)
    assert (error <= 1e-11 * np.maximum(np.maximum(np.abs(wanted), terms(name, x, numbers[0])), 1e-9)).all()


def test_functions_do_not_overflow() -> None:
    """In f32, where e^x does from 89 on."""
    far = np.float32([-1e30, -1000, 1000, 1e30])
    assert elementwise.logistic(far).tolist() == [0, 0, 1, 1]
    assert elementwise.softplus(far).tolist() == [0, 0, 1000, far[3]]
    assert elementwise.forward("relu", np.float32([-np.inf, np.inf])).tolist() == [0, np.inf]
    with np.errstate(all="raise"):  # e^x is taken where x is negative, only
        assert elementwise.forward("elu", np.float32([-np.inf, 1e4, np.inf]), 2.0).tolist() == [-2, 1e4, np.inf]
    assert np.isfinite(reduction.reduced("logsumexp", far, (0,))).all()


def test_maxima_of_nan_and_of_equal_numbers() -> None:
    x = np.float32([[[1, 1, np.nan, 0]]])
    window = SlidingWindow((2,), (1,), (1,), (0,), (0,))
    values, places = windows.largest(x, window, np.arange(4).reshape(1, 1, 4))
    np.testing.assert_array_equal(values[0, 0], [1, np.nan, np.nan])
    assert places.ravel().tolist() == [0, 2, 2]
    with pytest.raises(ValueError, match=r"a window of \(5,\) does not fit"):
        SlidingWindow((5,), (1,), (1,), (0,), (0,)).outputs((4,))


def test_philox() -> None:
    """The known answers of the paper's library, Random123."""
    ones = 0xFFFFFFFF
    pi = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0]
    for counter, key, wanted in (
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([ones] * 4, [ones] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (pi[:4], pi[4:], [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
    ):
        for function in (dropout.philox, philox):  # the second one is of the kernels' reference
            assert function(np.array(counter, np.uint64)[:, None], key)[:, 0].tolist() == wanted
    values, stays = dropout.dropped(np.ones((100, 70), np.float32), 0.3, 5)
    assert 0.68 < stays.mean() < 0.72
    assert np.array_equal(values, np.where(stays, np.float32(1) / np.float32(0.7), 0))


@pytest.mark.parametrize("spreads", [False, True])
def test_gradients_of_convolutions_are_differences(spreads: bool) -> None:
    """Both sums are linear in x and in the weights, so that a difference is the gradient but for rounding."""
    groups, random = 2, np.random.default_rng(7)
    x, weights = random.uniform(-1, 1, (2, 4, 5, 6)), random.uniform(-1, 1, (6, 2, 2, 3))
    forward = convolution.spreading(SPREAD, (9, 7)) if spreads else convolution.sliding(SPREAD)
    y = convolution.summed(x, weights, forward, groups)
    diff = random.uniform(-1, 1, y.shape)
    window = SlidingWindow(*SPREAD.fields()[:4], (0, 0))
    if spreads:  # what is cut off after the last output
        after = tuple(
            (i - 1) * s + (k - 1) * d + 1 - o - a
            for i, o, k, s, d, a, _ in zip((5, 6), (9, 7), *SPREAD.fields(), strict=True)
        )
        backward = convolution.sliding(SlidingWindow(*SPREAD.fields()[:4], after))
    else:
        backward = convolution.spreading(window, (5, 6))
    of_x = convolution.summed(diff, convolution.turned(weights, groups), backward, groups)
    of_weights = convolution.weights_gradient(x, diff, forward, groups).reshape(weights.shape)
    for at in [(0, 0, 0, 0), (1, 3, 4, 5), (1, 2, 2, 3)]:
        moved = x.copy()
        moved[at] += 1
        assert of_x[at] == pytest.approx(((convolution.summed(moved, weights, forward, groups) - y) * diff).sum())
    for at in [(0, 0, 0, 0), (5, 1, 1, 2), (3, 0, 1, 1)]:
        moved = weights.copy()
        moved[at] += 1
        assert of_weights[at] == pytest.approx(((convolution.summed(x, moved, forward, groups) - y) * diff).sum())


def test_sizes_bound_the_absolute_products() -> None:
    """Cauchy and Schwarz: norms are no less, and equal where one operand is a multiple of the other."""
    positions = convolution.sliding(THREE)
    size = convolution.sums_size(X, GROUPED_3X3, positions, 2)
    assert np.all(size >= convolution.summed(np.abs(X), np.abs(GROUPED_3X3), positions, 2) * (1 - 1e-12))
    same = np.ones((1, 2, 3, 3)), np.full((1, 2, 3, 3), 2.0)
    inside = convolution.sliding(SlidingWindow((3, 3), (1, 1), (1, 1), (0, 0), (0, 0)))
    assert convolution.sums_size(*same, inside).item() == pytest.approx(36)
    a, b = X[0, 0], X[0, 1].T
    assert np.all(products.product_size(a, b) >= (np.abs(a) @ np.abs(b)) * (1 - 1e-12))
    diff = convolution.summed(X, GROUPED_3X3, positions, 2)
    bound = convolution.weights_gradient_size(X, diff, 9, 2)
    assert np.all(bound >= convolution.weights_gradient(np.abs(X), np.abs(diff), positions, 2) * (1 - 1e-12))


def test_gamma_is_a_little_more_than_the_roundings() -> None:
    assert rounding.gamma(1) == pytest.approx(2.0**-24, rel=1e-6) and rounding.gamma(1) > 2.0**-24
    assert rounding.gamma(2**23) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", [f32, bf16, f16, f8_e4m3, f8_e5m2, s8, u8], ids=str)
@pytest.mark.parametrize("size", [1e-42, 1e-5, 1.0, 100.0])
def test_stochastic_rounding(kind: Any, size: float) -> None:
    """Element by element in integers of Python, also of subnormal numbers."""
    x = (size * X).astype(np.float32).ravel()
    x[:3] = np.inf, -np.inf, np.nan
    wanted = rounded_to_bf16(x, 8, 5) if kind == f32 else stochastic(x, kind, 8, 5)
    np.testing.assert_array_equal(stochastically_rounded(x, 5, 8, kind.name), wanted.astype(np.float32))


def test_boxes_that_are_left_out() -> None:
    """By hand: the second and the fourth share half, the first and the second a third, which ties with no limit."""
    corners = np.float32([[[0, 0, 5, 0], [0, 1, 5, 0], [2, 2, 6, 2], [2, 3, 7, 2.5]]])
    scores = np.float32([[[0.7, 0.9, 0.2, 0.8], [0.1, 0.1, 0.6, np.nan]]])
    assert suppressed(corners, scores, 3, 0.4, 0.05).tolist() == [[[1, 0, 2], [2, 0, 1]]]
    assert suppressed(corners, scores, 4, 0.5, 0.5).tolist() == [[[1, 3, -1, -1], [2, -1, -1, -1]]]
