"""Words in array calls: "same" and "valid" for padding, "relu" and "sum" for post-ops; older names of arguments."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops
from tests.support.drawing import RANDOM

X, W = (np.random.default_rng(0).standard_normal(dims).astype(np.float32) for dims in ((2, 8, 9, 12), (16, 8, 3, 4)))


@pytest.mark.parametrize(
    ("stride", "dilation", "pads"),
    [
        (1, 1, (1, 1, 1, 2)),  # 3 - 1 and 4 - 1 pixels of padding, the odd one after
        (2, 1, (1, 1, 1, 1)),  # 5 results from 9: 4 * 2 + 3 - 9 = 2; 6 from 12: 5 * 2 + 4 - 12 = 2
        (1, (2, 1), (2, 1, 2, 2)),
        ((4, 5), 1, (1, 1, 1, 1)),  # 3 from 9: 8 + 3 - 9 = 2; 3 from 12: 10 + 4 - 12 = 2
    ],
)
def test_same(stride: Any, dilation: Any, pads: tuple[int, ...]) -> None:
    """As ONNX's SAME_UPPER; the numbers are worked out by hand."""
    wanted = ops.conv2d(X, W, stride=stride, dilation=dilation, padding=pads)
    found = ops.conv2d(X, W, stride=stride, dilation=dilation, padding="same")
    strides = (stride, stride) if isinstance(stride, int) else stride
    assert found.shape[2:] == tuple(-(-size // s) for size, s in zip(X.shape[2:], strides, strict=True))
    assert np.array_equal(found, wanted)


def test_valid_and_1d_and_bytes() -> None:
    assert np.array_equal(ops.conv2d(X, W, padding="valid"), ops.conv2d(X, W))
    line, kernel = X[:, :, 0], np.ascontiguousarray(W[:, :, 0])
    assert np.array_equal(ops.conv1d(line, kernel, padding="same"), ops.conv1d(line, kernel, padding=(1, 2)))
    x, w = RANDOM.integers(0, 255, X.shape, np.uint8), RANDOM.integers(-128, 127, W.shape).astype(np.int8)
    assert np.array_equal(ops.conv2d(x, w, padding="same"), ops.conv2d(x, w, padding=(1, 1, 1, 2)))


def test_a_kept_call_asks_for_the_shape_again() -> None:
    for pixels in (9, 6, 9):
        x = np.ascontiguousarray(X[:, :, :pixels])
        assert ops.conv2d(x, W, stride=2, padding="same").shape == (2, 16, -(-pixels // 2), 6)


@pytest.mark.parametrize("chain", [["relu"], ("relu",), "relu", [dnn.Eltwise("relu")]])
def test_post_ops_by_their_words(chain: Any) -> None:
    wanted = np.maximum(ops.conv2d(X, W), 0)
    assert np.array_equal(ops.conv2d(X, W, post_ops=chain), wanted)
    a, b = X[0, 0], np.ascontiguousarray(X[0, 1].T)
    assert np.array_equal(ops.matmul(a, b, post_ops=chain), np.maximum(ops.matmul(a, b), 0))
    assert np.array_equal(ops.eltwise(X, "abs", post_ops=chain), np.abs(X))


def test_sum_and_several() -> None:
    out = np.ones((2, 16, 9, 12), np.float32)
    result = ops.conv2d(X, W, padding="same", post_ops=["sum", "relu"], out=out)
    assert np.allclose(result, np.maximum(ops.conv2d(X, W, padding="same") + 1, 0), atol=1e-5)
    assert dnn.Attr(["sum", "tanh"]) == dnn.Attr([dnn.Sum(), dnn.Eltwise("tanh")])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: ops.conv2d(X, W, padding="sane"), "padding must be .* not 'sane': did you mean same?"),
        (lambda: ops.conv2d(X, W, padding="full"), "padding must be .* not 'full': these are same, valid"),
        (lambda: ops.conv_transpose2d(X, W[:8], padding="same"), "padding must be integers, not 'same'"),
        (lambda: ops.conv2d(X, W, post_ops=["rleu"]), "post_ops has the word 'rleu', .*did you mean relu?"),
        (lambda: ops.conv2d(X, W, post_ops=("rleu",)), "post_ops has the word 'rleu', .*did you mean relu?"),
        (lambda: dnn.Attr("soft_relu"), "alpha must not be 0 for soft_relu"),
        (lambda: ops.matmul(X[0, 0], X[0, 1].T, post_ops=[7]), r"post_ops\[0\] must be a Sum"),
    ],
)
def test_refusals(call: Any, says: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=says):
        call()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ops.eltwise("relu", X), "^x is the text 'relu', where an array is wanted: the array comes first$"),
        (lambda: ops.reduce("sum", X), "^x is the text 'sum', .*: the array comes first$"),
        (lambda: ops.conv2d("same", W), "^x is the text 'same', .*: the array comes first$"),
        (lambda: ops.binary(X, X, "add"), "^b is the text 'add', where an array is wanted: the algorithm comes first$"),
        (lambda: ops.binary(X, 2, "add"), "^b is the text 'add', .*: the algorithm comes first$"),
        (lambda: ops.matmul(X, "relu"), "^b is the text 'relu', where an array is wanted$"),
        (lambda: ops.conv2d(X, "same"), "^weights is the text 'same', where an array is wanted$"),
        (lambda: ops.softmax(np.array(["a", "b"])), "^x has dtype <U1, convert it to float32$"),
    ],
)
def test_a_word_in_the_place_of_an_array(call: Any, said: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=said):
        call()


def test_older_names_of_arguments() -> None:
    bias, dy = RANDOM.standard_normal(16).astype(np.float32), np.ones((2, 16, 7, 9), np.float32)
    assert np.array_equal(ops.conv2d(X, W, b=bias), ops.conv2d(X, W, bias))  # type: ignore[call-arg]
    found = ops.conv_input_gradient(dy, w=W, image=X.shape)  # type: ignore[call-arg]
    assert np.array_equal(found, ops.conv_input_gradient(dy, W, dims=X.shape))
    assert np.array_equal(ops.conv2d(X, W, scales={"w": 2}), ops.conv2d(X, W, scales={"weights": 2}))


def test_an_argument_has_one_name() -> None:
    with pytest.raises(dnn.InvalidArguments, match="b is the older name of bias: leave it out"):
        ops.conv2d(X, W, bias=None, b=np.zeros(16, np.float32))  # type: ignore[call-arg]
    with pytest.raises(dnn.InvalidArguments, match="w is the older name of weights: leave it out"):
        ops.conv2d(X, W, scales={"w": 2, "weights": 2})
    with pytest.raises(TypeError, match="image"):
        ops.matmul(X, X, image=(1, 2))  # type: ignore[call-arg]
    a, b = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
    assert np.array_equal(ops.matmul(a=a, b=b), a @ b)  # a name of its own there
