"""Gradients of softmax, layer and RMS normalization: float64 definitions, finite differences, formats, mistakes."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops
from tests.primitives.conv_case import layout
from tests.primitives.gradient_case import check

ROUND = 2.0**-24


def real(seed: int, *dims: int) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, dims).astype(np.float32)


def softmax(x: Any, axis: int, log: bool) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    y = e / e.sum(axis, keepdims=True)
    return np.log(y) if log else y


def of_softmax(y: Any, dy: Any, axis: int, log: bool) -> Any:
    y, dy = y.astype(float), dy.astype(float)
    if log:
        return dy - np.exp(y) * dy.sum(axis, keepdims=True)
    return y * (dy - (dy * y).sum(axis, keepdims=True))


def of_norm(x: Any, dy: Any, scale: Any, epsilon: float, rms: bool) -> tuple[Any, Any, Any]:
    x, dy = x.astype(float), dy.astype(float)
    mean = 0 if rms else x.mean(-1, keepdims=True)
    factor = 1 / np.sqrt(np.square(x - mean).mean(-1, keepdims=True) + epsilon)
    h, g = (x - mean) * factor, dy * scale
    of_g = 0 if rms else g.mean(-1, keepdims=True)
    rows = tuple(range(x.ndim - 1))
    return factor * (g - of_g - h * (g * h).mean(-1, keepdims=True)), (dy * h).sum(rows), dy.sum(rows)


SOFTMAX = [  # dims, axis, formats of dst, diff_dst, diff_src
    ((5, 19), 1, ("ab", "ab", "ab")), ((7, 130), 1, ("any", "ab", "any")), ((3, 21, 4, 5), 1, ("abcd", "abcd", "abcd")),
    ((3, 21, 4, 5), 1, ("acdb", "acdb", "acdb")), ((2, 16, 3, 5), 1, ("aBcd8b", "aBcd8b", "aBcd8b")),
    ((4, 9), 0, ("ab", "ab", "ab")), ((6, 33), 1, ("ba", "ab", "ab")), ((3, 1), 1, ("ab", "ab", "ab")),
    ((9,), 0, ("a",) * 3),
]  # fmt: skip


def softmax_case(dims: tuple[int, ...], axis: int, tags: tuple[str, ...], log: bool) -> Any:
    y = softmax(3 * real(1, *dims).astype(float), axis, log).astype(np.float32)
    dy = real(2, *dims)
    desc = dnn.SoftmaxBackward("log" if log else "accurate", *(layout(dims, tag) for tag in tags), axis)
    return desc, {"dst": y, "diff_dst": dy}, {"diff_src": of_softmax(y, dy, axis, log)}


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("dims", "axis", "tags"), SOFTMAX, ids=str)
def test_softmax(isa: str, dims: tuple[int, ...], axis: int, tags: tuple[str, ...], log: bool) -> None:
    pd = check(*softmax_case(dims, axis, tags, log), isa, ROUND * (64 + 4 * dims[axis]) * (1 + dims[axis] * log))
    copied = (tags[0] != tags[1] and "any" not in tags) or "8b" in tags[0]
    lanes = axis < len(dims) - 1 and tags[0] in ("ab", "abcd")
    assert pd.implementation == f"{'reorder+' * copied}{'lanes' if lanes else 'rows'}:{isa}"


def test_softmax_in_place(isa: str) -> None:
    desc, arrays, wanted = softmax_case((5, 19), 1, ("ab", "ab", "ab"), False)
    engine = dnn.Engine(isa=isa, threads=1)
    y, dy = (dnn.Memory.from_array(arrays[name].copy()) for name in ("dst", "diff_dst"))
    dnn.Primitive(dnn.primitive_desc(desc, engine=engine)).execute(dst=y, diff_dst=dy, diff_src=dy)
    assert np.allclose(dy.numpy(), wanted["diff_src"], atol=1e-6)


NORMS = [((6, 19), "ab"), ((2, 3, 64), "abc"), ((5, 40), "ba"), ((130, 8), "ab"), ((2, 3, 33), "bac")]


def norm_case(dims: tuple[int, ...], tag: str, rms: bool, scaled: bool = True) -> Any:
    x, dy, scale = real(1, *dims), real(2, *dims), real(3, dims[-1])
    mean = x.astype(float).mean(-1)
    variance = np.square(x.astype(float)).mean(-1) if rms else x.astype(float).var(-1)
    dx, dscale, dshift = of_norm(x, dy, scale.astype(float) if scaled else 1.0, 1e-3, rms)
    rows, columns = (dnn.MemoryDesc(d, dnn.f32, "abc"[: len(d)]) for d in (dims[:-1], dims[-1:]))
    tensors = (layout(dims, tag), layout(dims, tag), layout(dims, tag), None if rms else rows, rows)
    more = {"scale": columns if scaled else None, "diff_scale": columns, "diff_shift": None if rms else columns}
    desc = dnn.LayerNormBackward(*tensors, 1e-3, **more, rms=rms)
    arrays = {"src": x, "diff_dst": dy, "variance": variance.astype(np.float32)}
    arrays |= {} if rms else {"mean": mean.astype(np.float32)}
    arrays |= {"scale": scale} if scaled else {}
    wanted = {"diff_src": dx, "diff_scale": dscale} | ({} if rms else {"diff_shift": dshift})
    return desc, arrays, wanted


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize(("dims", "tag"), NORMS, ids=str)
def test_norms(isa: str, dims: tuple[int, ...], tag: str, rms: bool) -> None:
    check(*norm_case(dims, tag, rms), isa, ROUND * 256 * max(dims))
    check(*norm_case(dims, tag, rms, scaled=False), isa, ROUND * 256 * max(dims))


def differences(f: Any, x: Any, dy: Any) -> Any:
    """The gradient of <f(x), dy> by central differences, in float64."""
    found = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[at] = 1e-5
        found[at] = ((f(x + step) - f(x - step)) * dy).sum() / 2e-5
    return found


def test_ops_against_finite_differences() -> None:
    x, dy, scale = (array.astype(float) for array in (real(1, 3, 7), real(2, 3, 7), real(3, 7)))
    arrays = [array.astype(np.float32) for array in (dy, x, scale)]

    def norm(x: Any, rms: bool) -> Any:
        mean = 0 if rms else x.mean(-1, keepdims=True)
        return (x - mean) / np.sqrt(np.square(x - mean).mean(-1, keepdims=True) + 1e-5) * scale

    for log, forward, back in (
        (False, ops.softmax, ops.softmax_gradient), (True, ops.log_softmax, ops.log_softmax_gradient)
    ):  # fmt: skip
        for axis in (0, -1):
            wanted = differences(lambda x, axis=axis, log=log: softmax(x, axis, log), x, dy)
            assert np.allclose(back(arrays[0], forward(arrays[1], axis), axis), wanted, atol=1e-5)
    dx, dscale, dshift = ops.layer_norm_gradient(*arrays)
    assert np.allclose(dx, differences(lambda x: norm(x, False), x, dy), atol=1e-4)
    assert np.allclose((dscale, dshift), of_norm(x, dy, scale, 1e-5, False)[1:], atol=1e-4)
    dx, dscale = ops.rms_norm_gradient(*arrays)
    assert np.allclose(dx, differences(lambda x: norm(x, True), x, dy), atol=1e-4)
    assert np.allclose(dscale, of_norm(x, dy, scale, 1e-5, True)[1], atol=1e-4)


def test_group_norm_against_finite_differences() -> None:
    """Of two groups of one channel, which are the same but for their scales."""
    x, dy = (real(seed, 3, 1, 7) for seed in (1, 2))
    scale = np.array([2, 3], np.float32)
    dx, dscale, dshift = ops.group_norm_gradient(*(np.repeat(array, 2, 1) for array in (dy, x)), 2, scale)

    def norm(x: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)

    wanted = differences(norm, x.astype(float), dy.astype(float))
    assert np.allclose(dx, wanted * scale[:, None], atol=1e-4)
    assert np.allclose(dscale, (norm(x.astype(float)) * dy).sum(), atol=1e-4)
    assert np.allclose(dshift, dy.sum(), atol=1e-5)


def test_nothing(isa: str) -> None:
    tensor = dnn.MemoryDesc((0, 5), dnn.f32, "ab")
    empty = np.zeros((0, 5), np.float32)
    desc = dnn.SoftmaxBackward("log", tensor, tensor, tensor, 1)
    check(desc, {"dst": empty, "diff_dst": empty}, {"diff_src": empty}, isa)


X, ROWS, COLUMNS = (dnn.MemoryDesc(dims, dnn.f32, "any") for dims in ((4, 6), (4,), (6,)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dnn.SoftmaxBackward("fast", X, X, X, 1), "SoftmaxBackward.alg"),
        (lambda: dnn.SoftmaxBackward("log", X, ROWS, X, 1), "diff_dst has dims .4,., they must be .4, 6."),
        (lambda: dnn.SoftmaxBackward("log", X, X, X, 2), "axis is 2, src has 2 dims"),
        (lambda: dnn.LayerNormBackward(X, X, X, None, ROWS), "mean is None: an RMS norm has none"),
        (lambda: dnn.LayerNormBackward(X, X, X, ROWS, ROWS, rms=True), "mean is .*: an RMS norm has none"),
        (lambda: dnn.LayerNormBackward(X, X, X, ROWS, None), "variance must be a MemoryDesc"),
        (lambda: dnn.LayerNormBackward(X, X, X, ROWS, ROWS, scale=ROWS), "scale has dims .4,., they must be .6,."),
        (lambda: dnn.LayerNormBackward(X, X, X, ROWS, ROWS, -1.0), "epsilon"),
        (lambda: ops.softmax_gradient(real(1, 3, 4), real(1, 4, 3)), "dy has dims"),
        (lambda: ops.layer_norm_gradient(real(1, 3), real(1, 3)), "x has 1 dim, rows and columns are needed"),
    ],
)
def test_mistakes(call: Any, message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        call()


def test_what_is_not_implemented() -> None:
    desc = dnn.SoftmaxBackward("log", X, X, X, 1)
    with pytest.raises(dnn.Unimplemented, match="a gradient has no post-ops, scales or zero points"):
        dnn.primitive_desc(desc, dnn.Attr([dnn.Eltwise("relu")]))
    half = dnn.MemoryDesc((4, 6), dnn.s8, "ab")
    with pytest.raises(dnn.Unimplemented, match="is s8, only f32"):
        dnn.primitive_desc(dnn.SoftmaxBackward("log", half, half, half, 1))
