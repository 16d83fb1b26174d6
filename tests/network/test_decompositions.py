"""Operators that are decomposed into others: native, and equal to their definitions in double precision."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import AsmdnnError
from tests.network.nets import engine, random, reference

pytestmark = pytest.mark.isa("avx2")
INF = np.inf
TRUTHS = np.random.default_rng(3).random((2, 1, 5, 9)) > 0.4
TRUTHS[0, 0, 2] = False  # a row that sees no key


def run(op: str, arrays: list[Any], results: int = 1, constants: tuple[int, ...] = (), **attributes: Any) -> Any:
    """A network of one operator, and what it is fed; operands at the places `constants` are no inputs."""
    g = dnn.Graph(op)
    feeds = {f"x{i}": x for i, x in enumerate(arrays) if x is not None and i not in constants}
    symbols = {name: g.input(name, x.shape, x.dtype) for name, x in feeds.items()}
    operands = [symbols.get(f"x{i}", x) for i, x in enumerate(arrays)]
    made = g.apply(op, *operands, results=results, **attributes)
    made = made if results > 1 else (made,)
    return g.compile(engine=engine(2), **{f"y{i}": y for i, y in enumerate(made)}), feeds


def compare(net: dnn.Network, feeds: dict[str, Any], atol: float = 4e-6) -> None:
    net.check()
    found, wanted = net.run(feeds), reference(net, feeds)
    for name, y in wanted.items():
        assert found[name].shape == y.shape, name
        np.testing.assert_allclose(found[name], y, rtol=4e-6, atol=atol, err_msg=name)
    assert all(difference.fits for difference in net.verify(feeds))


Q, K, V = random(2, 4, 5, 8), random(2, 4, 9, 8), random(2, 4, 9, 6)
GROUPS = [Q, K[:, :2], V[:, :2]]
FLAT = [random(2, 5, 32), random(2, 9, 16), random(2, 9, 12)]
HEADS = {"q_num_heads": 4, "kv_num_heads": 2}
PAST = [random(2, 2, 3, 8), random(2, 2, 3, 6)]
LENGTHS = np.array([9, 5], np.int64)
ATTENTION: dict[str, tuple[list[Any], int, dict[str, Any]]] = {
    "plain": ([Q, K, V], 1, {}),
    "scaled": ([Q, K, V], 1, {"scale": 0.3, "softcap": 0.7}),
    "causal": ([Q, K, V], 1, {"is_causal": 1}),
    "window": ([Q, K, V], 1, {"left_window_size": 1, "right_window_size": 2}),
    "numbers": ([Q, K, V, random(5, 9)], 1, {}),
    "truths": ([Q, K, V, TRUTHS], 1, {"is_causal": 1}),
    "short mask": ([Q, K, V, TRUTHS[..., :6]], 1, {}),
    "groups": ([*GROUPS, random(2, 4, 5, 9)], 1, {}),
    "one mask for groups": ([*GROUPS, TRUTHS], 1, {}),
    "flat": (FLAT, 1, HEADS),
    "past": ([*FLAT, None, *PAST], 3, HEADS),
    "past and scores": ([*FLAT, random(5, 12), *PAST], 4, {**HEADS, "qk_matmul_output_mode": 2}),
    "weights": ([*GROUPS, TRUTHS], 4, {"qk_matmul_output_mode": 3}),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name: str) -> None:
    arrays, results, attributes = ATTENTION[name]
    net, feeds = run("Attention", arrays, results, **attributes)
    compare(net, feeds)


def test_scores_of_attention_stay_in_the_cache() -> None:
    for name in ("plain", "causal", "numbers", "groups", "past"):
        arrays, _, attributes = ATTENTION[name]
        net, _ = run("Attention", arrays, **attributes)
        assert "attention" in net.explain(), name


ANGLES = [random(12, 4), random(12, 4)]
PLACES = np.array([[0, 3, 4, 4, 11], [1, 2, 3, 4, 5]], np.int64)


@pytest.mark.parametrize("near", [0, 1])
@pytest.mark.parametrize("size", [0, 8])
def test_rotary_embedding(near: int, size: int) -> None:
    x = random(2, 5, 4 * (12 if size else 8))
    compare(*run("RotaryEmbedding", [x, *ANGLES, PLACES], num_heads=4, interleaved=near, rotary_embedding_dim=size))
    rows = [table[PLACES] for table in ANGLES]
    x = random(2, 4, 5, 12 if size else 8)
    compare(*run("RotaryEmbedding", [x, *rows], interleaved=near, rotary_embedding_dim=size))


X, CHANNELS = random(2, 6, 5, 7), abs(random(6)) + 0.5
LENGTHS = np.array([7, 0, 1, 3, 2])
CLASSES, TARGET = random(3, 7, 4), np.random.default_rng(5).integers(0, 7, (3, 4))
SEVERAL: dict[str, tuple[str, list[Any], int, tuple[int, ...], dict[str, Any]]] = {
    "moments": ("LayerNormalization", [X, random(5, 7), random(5, 7)], 3, (1, 2), {"axis": 2}),
    "scale of data": ("LayerNormalization", [X, random(7), random(7)], 1, (), {}),
    "rms of data": ("RMSNormalization", [X, random(5, 7)], 1, (), {"axis": 2}),
    "instances": ("InstanceNormalization", [X, CHANNELS, random(6)], 1, (), {}),
    "groups": ("GroupNormalization", [X, CHANNELS, random(6)], 1, (2,), {"num_groups": 3}),
    "batch": ("BatchNormalization", [X, CHANNELS, random(6), random(6), CHANNELS], 1, (), {}),
    "mean and variance": ("MeanVarianceNormalization", [X], 1, (), {}),
    "length 1": ("LpNormalization", [X * (X > 0.2)], 1, (), {"axis": 3, "p": 1}),
    "length 2": ("LpNormalization", [X * (X[..., :1] > 0)], 1, (), {"axis": -1}),
    "hardmax": ("Hardmax", [np.round(X * 4)], 1, (), {"axis": 1}),
    "row and column": ("MatMul", [random(9), random(9)], 1, (), {}),
    "row": ("MatMul", [random(9), random(3, 9, 4)], 1, (), {}),
    "column": ("MatMul", [random(3, 4, 9), random(9)], 1, (), {}),
    "gemm": ("Gemm", [random(9, 4), random(5, 9), random(4, 5)], 1, (), {"transA": 1, "transB": 1, "alpha": 0.5}),
    "gemm with a row": ("Gemm", [random(4, 9), random(9, 5), random(5)], 1, (1,), {"beta": 2.0}),
    "upper": ("Trilu", [X, np.array(-1)], 1, (1,), {}),
    "lower by data": ("Trilu", [X, np.array(2)], 1, (), {"upper": 0}),
    "centre": ("CenterCropPad", [X, np.array([3, 10])], 1, (1,), {"axes": (1, 3)}),
    "nothing reduced": ("ReduceL2", [X, np.zeros(0, np.int64)], 1, (1,), {"noop_with_empty_axes": 1}),
    "squares of nothing": ("ReduceSumSquare", [X, np.zeros(0, np.int64)], 1, (1,), {"noop_with_empty_axes": 1}),
    "logarithm": ("ReduceLogSum", [abs(X), np.array([1, 3])], 1, (1,), {"keepdims": 0}),
    "one hot": ("OneHot", [np.array([[0, 9], [-2, -7]]), np.array(7), random(2)], 1, (1,), {"axis": 1}),
    "sequences": ("ReverseSequence", [X[0, 0], np.array([5, 1, 2, 3, 4, 0, 5])], 1, (1,), {"time_axis": 0}),
    "sequences by data": ("ReverseSequence", [X[0], np.array([5, 1, 2, 0, 4])], 1, (), {"time_axis": 0}),
    "times in rows": ("ReverseSequence", [X[0, 0], LENGTHS], 1, (), {"time_axis": 1, "batch_axis": 0}),
    "truths in rows": ("ReverseSequence", [X[0, 0] > 0, LENGTHS], 1, (), {"time_axis": 1, "batch_axis": 0}),
    "windows": ("LpPool", [X], 1, (), {"kernel_shape": (3, 2), "pads": (1, 0, 0, 1), "p": 3}),
    "whole": ("GlobalLpPool", [X], 1, (), {}),
    "gated": ("SwiGLU", [X, random(2, 6, 5, 7)], 1, (), {"alpha": 1.5}),
    "loss": ("NegativeLogLikelihoodLoss", [CLASSES, TARGET], 1, (), {}),
    "loss of weights": ("NegativeLogLikelihoodLoss", [CLASSES, TARGET, abs(random(7))], 1, (), {"ignore_index": 2}),
    "sum of losses": ("SoftmaxCrossEntropyLoss", [CLASSES, TARGET], 2, (), {"reduction": "sum"}),
    "each loss": ("SoftmaxCrossEntropyLoss", [CLASSES, TARGET], 2, (), {"reduction": "none", "ignore_index": 1}),
    "both broadcast": ("Greater", [random(3, 1), random(1, 5)], 1, (), {}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SEVERAL)
def test_operators(name: str) -> None:
    op, arrays, results, constants, attributes = SEVERAL[name]
    compare(*run(op, arrays, results, constants, **attributes), atol=2e-5)


def test_lengths_beyond_the_steps() -> None:
    net, feeds = run("ReverseSequence", [X[0, 0], LENGTHS], time_axis=1, batch_axis=0)
    with pytest.raises(dnn.InvalidArguments, match=r"indices of ReverseSequence .*\[0, 0\] is 7, axis 1 of src has 7"):
        net.run(feeds | {"x1": LENGTHS + 1})
    compare(net, feeds)


def test_no_elements() -> None:
    for op, wanted in {"ReduceSum": 0.0, "ReduceMax": -INF, "ReduceLogSum": -INF}.items():
        net, feeds = run(op, [np.zeros((2, 0, 3), np.float32), np.array([1])], constants=(1,))
        assert (net.run(feeds)["y0"] == np.full((2, 1, 3), wanted)).all()


@pytest.mark.parametrize("label", [7, -1, 1 << 40])
@pytest.mark.parametrize("op", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
def test_a_target_that_is_no_class(op: str, label: int) -> None:
    """Refused, but for the one that is ignored."""
    net, feeds = run(op, [CLASSES, TARGET], reduction="none", ignore_index=-100)
    feeds["x1"] = np.where(TARGET == 2, -100, TARGET)
    found, wanted = net.run(feeds)["y0"], reference(net, feeds)["y0"]
    assert (found[TARGET == 2] == 0).all()
    assert np.allclose(found, wanted, atol=2e-5)
    feeds["x1"] = np.where(TARGET == 3, label, feeds["x1"])
    with pytest.raises(dnn.InvalidArguments, match=rf"x1\[.*\] is {label}, .*use 0 to 6, or -100, which is ignored"):
        net.run(feeds)
    with pytest.raises(ValueError, match=rf"targets are from .*{label}.*, of 7 classes"):
        reference(net, feeds)


def test_junk() -> None:
    """One sentence each, as of operators that are not decomposed."""
    for op, others, attributes in (
        ("Attention", (K, random(2, 3, 9, 8)), {}),
        ("Attention", (random(2, 3, 9, 8), V), {}),
        ("Gemm", (K, random(3)), {}),
        ("Trilu", (np.array([1, 2]),), {}),
        ("CenterCropPad", (np.array([3]),), {}),
        ("LpNormalization", (), {"p": 3}),
        ("SwiGLU", (), {}),
    ):
        with pytest.raises(AsmdnnError) as error:
            g = dnn.Graph("junk")
            g.compile(engine=engine(), y=g.apply(op, g.input("x", (2, 4, 5, 8)), *others, **attributes))
        assert op in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("dims", [(1, 1), (2, 2), (5, 3, 3), (2, 3, 4, 4)], ids=str)
def test_determinants_of_few_rows(dims: tuple[int, ...]) -> None:
    compare(*run("Det", [random(*dims)]))
    compare(*run("Det", [np.eye(dims[-1], dtype=np.float32)[::-1] * np.ones(dims, np.float32)]))


def test_determinants_of_many_rows_have_no_kernel() -> None:
    for n in (0, 5):
        with pytest.raises(dnn.Unimplemented, match=r"Det 0.*no primitive computes it"):
            run("Det", [random(2, n, n)])
