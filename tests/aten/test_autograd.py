"""Gradients of arrays, and of graphs whose operators torch has too, against torch's autograd in double precision."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("torch", reason="the torch extra")

import torch
import torch.nn.functional as F

import asmdnn as dnn
from asmdnn import ops, recurrent

RELATIVE = 2e-5  # of the largest element: f32's sums of a few hundred products
ENGINE = dnn.Engine(threads=1)


def real(*dims: int, least: float | None = None) -> np.ndarray:
    """Numbers of which no two are equal, from `least` on if it is given."""
    found = np.random.default_rng(sum(dims)).permutation(int(np.prod(dims))).astype(np.float32)
    found = (found + 0.5) / len(found) * 3 - 1.5 + (0 if least is None else 1.5 + least)
    return np.asarray(found, np.float32).reshape(dims)


class Case(NamedTuple):
    """leaves: arrays that gradients are by; forward: of torch's tensors; ours: of dy and the arrays."""

    leaves: tuple[np.ndarray, ...]
    forward: Callable[..., Any]
    ours: Callable[..., Any]


IMAGE, ROWS, PLACES = real(2, 4, 9, 8), real(6, 10), np.array([[3, 0], [3, 5]])
WINDOW = {"stride": 2, "padding": 1}
ALONG = torch.tensor(PLACES)


def eltwise(alg: str, forward: Any, alpha: float = 0.0, beta: float = 0.0, least: float | None = None) -> Case:
    return Case((real(5, 7, least=least),), forward, lambda dy, x: ops.eltwise_gradient(dy, x, alg, alpha, beta))  # type: ignore[arg-type]


def binary(alg: str, forward: Any) -> Case:
    return Case(
        (ROWS, real(1, 10, least=0.5)), forward, lambda dy, a, b: ops.binary_gradient(alg, dy, a, b)
    )


def reduced(alg: Any, forward: Any, **more: Any) -> Case:
    x = real(3, 5, 4, least=0.1)
    return Case((x,), forward, lambda dy, x: ops.reduce_gradient(dy, x, alg, 1, **more))


def best_of_planes(x: np.ndarray, sizes: Any) -> Any:
    return ops.adaptive_max_pool(x, sizes, return_indices=True)[1]


ARRAYS: dict[str, list[Case]] = {
    "eltwise_gradient": [
        eltwise("relu", lambda x: F.leaky_relu(x, 0.25), 0.25), eltwise("tanh", torch.tanh), eltwise("exp", torch.exp),
        eltwise("elu", lambda x: F.elu(x, 0.5), 0.5), eltwise("square", torch.square), eltwise("abs", torch.abs),
        eltwise("sqrt", torch.sqrt, least=0.1), eltwise("log", torch.log, least=0.1), eltwise("mish", F.mish),
        eltwise("soft_relu", F.softplus, 1.0), eltwise("logistic", torch.sigmoid), eltwise("gelu_erf", F.gelu),
        eltwise("gelu_tanh", lambda x: F.gelu(x, approximate="tanh")), eltwise("swish", F.silu, 1.0),
        eltwise("hardswish", F.hardswish, 1 / 6, 0.5), eltwise("hardsigmoid", F.hardsigmoid, 1 / 6, 0.5),
        eltwise("clip", lambda x: torch.clamp(x, -0.5, 0.7), -0.5, 0.7), eltwise("pow", lambda x: x**3, 1.0, 3.0),
    ],
    "prelu_gradient": [Case((IMAGE, real(4)), F.prelu, lambda dy, x, w: ops.prelu_gradient(dy, x, w[:, None, None]))],
    "binary_gradient": [
        binary("add", torch.add), binary("sub", torch.sub), binary("mul", torch.mul), binary("div", torch.div),
        binary("max", torch.maximum), binary("min", torch.minimum),
    ],
    "select_gradient": [
        Case(
            (ROWS, real(10)), lambda a, b: torch.where(torch.tensor(ROWS > 0.3), a, b),
            lambda dy, a, b: ops.select_gradient(dy, ROWS > 0.3, a, b),
        )
    ],
    "batch_norm_gradient": [
        Case(
            (IMAGE, real(4), real(4)), lambda x, s, b: F.batch_norm(x, None, None, s, b, training=True),
            lambda dy, x, s, b: ops.batch_norm_gradient(dy, x, s),
        )
    ],
    "group_norm_gradient": [
        Case(
            (IMAGE, real(4), real(4)), lambda x, s, b: F.group_norm(x, 2, s, b),
            lambda dy, x, s, b: ops.group_norm_gradient(dy, x, 2, s),
        )
    ],
    "layer_norm_gradient": [
        Case(
            (ROWS, real(10), real(10)), lambda x, s, b: F.layer_norm(x, (10,), s, b),
            lambda dy, x, s, b: ops.layer_norm_gradient(dy, x, s),
        )
    ],
    "rms_norm_gradient": [
        Case(
            (ROWS, real(10)), lambda x, s: F.rms_norm(x, (10,), s, 1e-5),
            lambda dy, x, s: ops.rms_norm_gradient(dy, x, s),
        )
    ],
    "lrn_gradient": [
        Case(
            (IMAGE,), lambda x: F.local_response_norm(x, 3, 0.5, 0.75, 2.0),
            lambda dy, x: ops.lrn_gradient(dy, x, 3, alpha=0.5, beta=0.75, k=2.0),
        )
    ],
    "softmax_gradient": [
        Case((ROWS,), lambda x: x.softmax(0), lambda dy, x: ops.softmax_gradient(dy, ops.softmax(x, 0), 0))
    ],
    "log_softmax_gradient": [
        Case((ROWS,), lambda x: x.log_softmax(1), lambda dy, x: ops.log_softmax_gradient(dy, ops.log_softmax(x, 1), 1))
    ],
    "inner_product_input_gradient": [
        Case(
            (ROWS,), lambda x: F.linear(x, torch.tensor(real(8, 10)).double()),
            lambda dy, x: ops.inner_product_input_gradient(dy, real(8, 10)),
        ),
    ],
    "inner_product_weight_gradient": [
        Case(
            (real(8, 10), real(8)), lambda w, b: F.linear(torch.tensor(ROWS).double(), w, b),
            lambda dy, w, b: ops.inner_product_weight_gradient(ROWS, dy),
        )
    ],
    "matmul_gradient": [Case((real(3, 6, 5), real(5, 7)), torch.matmul, ops.matmul_gradient)],
    "reduce_gradient": [
        reduced("sum", lambda x: x.sum(1)), reduced("mean", lambda x: x.mean(1)), reduced("mul", lambda x: x.prod(1)),
        reduced("max", lambda x: x.amax(1)), reduced("min", lambda x: x.amin(1)),
        reduced("norm_lp_sum", lambda x: x.norm(3, 1), p=3.0),
    ],
    "cumsum_gradient": [
        Case((ROWS,), lambda x: x.cumsum(1), lambda dy, x: ops.cumsum_gradient(dy, 1)),
        Case((ROWS,), lambda x: x.flip(0).cumsum(0).flip(0), lambda dy, x: ops.cumsum_gradient(dy, 0, reverse=True)),
    ],
    "weighted_sum_gradient": [
        Case((ROWS, ROWS), lambda a, b: 2 * a - 0.5 * b, lambda dy, a, b: ops.weighted_sum_gradient(dy, (2.0, -0.5)))
    ],
    "dropout_gradient": [
        Case(
            (ROWS,), lambda x: x * torch.tensor(ROWS > 0) / 0.75,
            lambda dy, x: ops.dropout_gradient(dy, (ROWS > 0).astype(np.uint8), 0.25),
        )
    ],
    "concat_gradient": [
        Case((real(2, 3), real(5, 3)), lambda a, b: torch.cat((a, b)), lambda dy, a, b: ops.concat_gradient(dy, (2, 5)))
    ],
    "split_gradient": [
        Case(
            (ROWS,), lambda x: torch.cat([part * n for n, part in enumerate(x.split(2), 1)]),
            lambda dy, x: ops.split_gradient([dy[2 * n : 2 * n + 2] * np.float32(n + 1) for n in range(3)]),
        )
    ],
    "slice_gradient": [
        Case((ROWS,), lambda x: x[1:6:2, 3:9], lambda dy, x: ops.slice_gradient(dy, x.shape, (1, 3), (6, 9), (2, 1)))
    ],
    "expand_gradient": [
        Case((real(6, 1),), lambda x: x.expand(3, 6, 4), lambda dy, x: ops.expand_gradient(dy, x.shape))
    ],
    "pad_gradient": [
        Case(
            (IMAGE,), lambda x, mode=mode: F.pad(x, (1, 2, 3, 0), mode),
            lambda dy, x, mine=mine: ops.pad_gradient(dy, ((0, 0), (0, 0), (3, 0), (1, 2)), mine),
        )
        for mode, mine in (("constant", "constant"), ("reflect", "reflect"), ("replicate", "edge"))
    ],
    "gather_gradient": [
        Case((ROWS,), lambda x: x[:, ALONG], lambda dy, x: ops.gather_gradient(dy, PLACES, x.shape, 1))
    ],
    "embedding_gradient": [
        Case((ROWS,), lambda x: F.embedding(ALONG, x), lambda dy, x: ops.embedding_gradient(dy, PLACES, 6))
    ],
    "scatter_gradient": [
        Case(
            (ROWS, real(2, 10)), lambda x, u: x.index_add(0, ALONG[0], u),
            lambda dy, x, u: ops.scatter_gradient(dy, PLACES[0], reduction="add"),
        )
    ],
    "topk_gradient": [
        Case(
            (ROWS,), lambda x: x.topk(3).values, lambda dy, x: ops.topk_gradient(dy, ops.topk(x, 3)[1], x.shape)
        )
    ],
    "avg_pool_gradient": [
        Case(
            (IMAGE,), lambda x: F.avg_pool2d(x, 3, 2, 1),
            lambda dy, x: ops.avg_pool_gradient(dy, x.shape, 3, **WINDOW),
        ),
        Case((real(2, 3, 11),), lambda x: F.avg_pool1d(x, 2), lambda dy, x: ops.avg_pool_gradient(dy, x.shape, 2)),
    ],
    "max_pool_gradient": [
        Case(
            (IMAGE,), lambda x: F.max_pool2d(x, 3, 2, 1),
            lambda dy, x: ops.max_pool_gradient(
                dy, ops.max_pool(x, 3, **WINDOW, return_indices=True)[1], x.shape, 3, **WINDOW
            ),
        )
    ],
    "adaptive_avg_pool_gradient": [
        Case(
            (IMAGE,), lambda x: F.adaptive_avg_pool2d(x, (4, 3)),
            lambda dy, x: ops.adaptive_avg_pool_gradient(dy, x.shape),
        )
    ],
    "adaptive_max_pool_gradient": [
        Case(
            (IMAGE,), lambda x: F.adaptive_max_pool2d(x, (4, 3)),
            lambda dy, x: ops.adaptive_max_pool_gradient(dy, best_of_planes(x, (4, 3)), x.shape),
        )
    ],
    "resize_gradient": [
        Case(
            (IMAGE,), lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False),
            lambda dy, x: ops.resize_gradient(dy, x.shape, factor=2, mode="linear"),
        )
    ],
    "attention_gradient": [
        Case(
            tuple(real(1, 2, n, 4) for n in (5, 7, 7)), F.scaled_dot_product_attention, ops.attention_gradient
        )
    ],
    "conv_input_gradient": [
        Case(
            (real(2, 6, 9),), lambda x: F.conv1d(x, torch.tensor(real(4, 3, 3)).double(), groups=2, **WINDOW),
            lambda dy, x: ops.conv_input_gradient(dy, real(4, 3, 3), x.shape, groups=2, **WINDOW),
        ),
        Case(
            (real(1, 2, 5, 6, 4),), lambda x: F.conv3d(x, torch.tensor(real(3, 2, 3, 2, 3)).double()),
            lambda dy, x: ops.conv_input_gradient(dy, real(3, 2, 3, 2, 3), x.shape),
        ),
    ],
    "conv_weight_gradient": [
        Case(
            (real(6, 4, 3, 3), real(6)), lambda w, b: F.conv2d(torch.tensor(IMAGE).double(), w, b, **WINDOW),
            lambda dy, w, b: ops.conv_weight_gradient(IMAGE, dy, 3, **WINDOW),
        ),
        Case(
            (real(4, 1, 3, 3), real(4)), lambda w, b: F.conv2d(torch.tensor(IMAGE).double(), w, b, groups=4),
            lambda dy, w, b: ops.conv_weight_gradient(IMAGE, dy, 3, groups=4),
        ),
    ],
    "conv_transpose_input_gradient": [
        Case(
            (IMAGE,), lambda x: F.conv_transpose2d(x, torch.tensor(real(4, 3, 3, 3)).double(), **WINDOW),
            lambda dy, x: ops.conv_transpose_input_gradient(dy, real(4, 3, 3, 3), **WINDOW),
        )
    ],
    "conv_transpose_weight_gradient": [
        Case(
            (real(4, 3, 3, 3), real(3)),
            lambda w, b: F.conv_transpose2d(torch.tensor(IMAGE).double(), w, b, **WINDOW),
            lambda dy, w, b: ops.conv_transpose_weight_gradient(IMAGE, dy, 3, **WINDOW),
        )
    ],
}  # fmt: skip
RECURRENT = {"rnn_gradient": "rnn", "lstm_gradient": "lstm", "gru_gradient": "lbr_gru"}


def torch_gradients(case: Case) -> tuple[np.ndarray, list[np.ndarray]]:
    """A gradient of the result, and those of the leaves."""
    leaves = [torch.tensor(array).double().requires_grad_() for array in case.leaves]
    result = case.forward(*leaves)
    dy = real(*result.shape)
    result.backward(torch.tensor(dy).double())
    return dy, [np.asarray(leaf.grad) for leaf in leaves]


def compare(found: Any, wanted: np.ndarray, name: str = "") -> None:
    assert found.shape == wanted.shape and found.dtype == np.float32, name
    assert np.abs(found - wanted).max(initial=0) <= RELATIVE * max(1.0, np.abs(wanted).max(initial=0)), name


@pytest.mark.parametrize(("name", "number"), [(name, i) for name, cases in ARRAYS.items() for i in range(len(cases))])
def test_gradients_of_arrays(name: str, number: int) -> None:
    case = ARRAYS[name][number]
    dy, wanted = torch_gradients(case)
    found = case.ours(dy, *case.leaves)
    for one, right in zip(found if isinstance(found, list | tuple) else [found], wanted, strict=True):
        compare(one.reshape(right.shape), right)


def test_every_function_of_gradients_is_here() -> None:
    assert {*ARRAYS, *RECURRENT} == {name for name in ops.__all__ if name.endswith("_gradient")}


@pytest.mark.parametrize("name", RECURRENT)
@pytest.mark.parametrize("both", [False, True])
def test_gradients_of_recurrent_layers(name: str, both: bool) -> None:
    """Of the output and of the last states, by input, first states and weights."""
    cell = RECURRENT[name]
    torch.manual_seed(1)
    kind = {"rnn": torch.nn.RNN, "lstm": torch.nn.LSTM, "lbr_gru": torch.nn.GRU}[cell]
    layer = kind(5, 9, bidirectional=both)
    directions, states = 1 + both, 1 + (cell == "lstm")
    weights = recurrent.from_torch(cell, layer.state_dict())
    layer = layer.double()
    src, first = real(6, 3, 5), [real(directions, 3, 9) / (i + 1) for i in range(states)]
    x, *h = (torch.tensor(array).double().requires_grad_() for array in (src, *first))
    y, last = layer(x, tuple(h) if cell == "lstm" else h[0])
    diffs = [real(*y.shape), *(real(directions, 3, 9) * (i - 2) for i in range(states))]
    torch.autograd.backward([y, *(last if cell == "lstm" else [last])], [torch.tensor(d).double() for d in diffs])
    more: dict[str, Any] = {"linear_before_reset": True} if cell == "lbr_gru" else {}
    more |= {"direction": "bidirectional_concat"} if both else {}
    ends = dict(zip(("dh", "dc"), (d[None] for d in diffs[1:]), strict=False))
    found = getattr(ops, name)(diffs[0], src, weights, *(array[None] for array in first), **ends, **more)
    compare(found[0], np.asarray(x.grad), "src")
    for one, wanted in zip(found[2:], h, strict=True):
        compare(one[0], np.asarray(wanted.grad), "state")
    grads = {key: parameter.grad.float() for key, parameter in layer.named_parameters()}
    of_weights = recurrent.from_torch(cell, grads)
    for key in ("weights_layer", "weights_iter"):
        compare(found[1][key], of_weights[key], key)
    gates = found[1]["bias"].shape[2]  # torch has two biases whose gradients are equal; a GRU's fourth is inside
    halved = of_weights["bias"] / (np.array([2, 2, 1, 1])[:gates, None] if cell == "lbr_gru" else 2)
    compare(found[1]["bias"], halved.astype(np.float32), "bias")


GRAPHS: dict[str, tuple[str, np.ndarray, tuple[Any, ...], dict[str, Any], Callable[[Any], Any]]] = {
    "fmod": ("Mod", ROWS, (np.float32(0.7),), {"fmod": 1}, lambda x: torch.fmod(x, 0.7)),
    "cumprod": (
        "CumProd", ROWS * (np.arange(60).reshape(6, 10) % 7 != 3), (np.array(1),), {}, lambda x: x.cumprod(1)
    ),
    "det": ("Det", real(3, 4, 4), (), {}, torch.linalg.det),
    "mirrored": (
        "Pad", IMAGE, (np.array([0, 0, 1, 2, 0, 0, 3, 0]),), {"mode": "reflect"},
        lambda x: F.pad(x, (2, 0, 1, 3), "reflect"),
    ),
    "periodic": (
        "Pad", IMAGE, (np.array([0, 0, 1, 2, 0, 0, 3, 0]),), {"mode": "wrap"},
        lambda x: F.pad(x, (2, 0, 1, 3), "circular"),
    ),
    "powers": (
        "Pow", real(6, 10, least=0.0), (np.arange(10, dtype=np.float32) / 3,), {},
        lambda x: x ** torch.tensor(np.arange(10, dtype=np.float32) / 3).double(),
    ),
    "shares": ("LpNormalization", ROWS, (), {"p": 1, "axis": 1}, lambda x: F.normalize(x, 1, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_gradients_of_graphs(name: str) -> None:
    op, given, operands, attributes, forward = GRAPHS[name]
    dy, (wanted,) = torch_gradients(Case((given,), forward, forward))
    graph = dnn.Graph(name)
    x = graph.input("x", given.shape)
    y = graph.apply(op, x, *operands, **attributes)
    loss = graph.apply("ReduceSum", graph.apply("Mul", y, dy), keepdims=0)
    (dx,) = graph.gradients(loss, [x])
    compare(graph.compile(engine=ENGINE, fallback="numpy", dx=dx).run({"x": given})["dx"], wanted)
