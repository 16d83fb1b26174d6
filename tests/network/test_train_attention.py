"""Attention that a graph has written out: trained by the fused kernels, with the numbers of its operators."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import optim
from tests.network.nets import compiled, engine, random

pytestmark = pytest.mark.isa("avx2")
N, HEADS, ROWS, SIZE = 2, 2, 6, 8
FUTURE = np.where(np.arange(ROWS) > np.arange(ROWS)[:, None], -np.inf, 0).astype(np.float32)
HIDDEN = np.where(np.arange(ROWS)[:, None] == 1, np.float32(-3e38), FUTURE).astype(np.float32)  # row 1 sees all alike


def step_of(kind: str, **options: Any) -> dnn.TrainingStep:
    """kind: "operator", such a "causal" one, or what is written out: "plain", "masked", a row "hidden", or
    "biased" by a trained mask."""
    g = dnn.Graph("attention", seed=3)
    x, t = g.input("x", (N, ROWS, HEADS * SIZE)), g.input("t", (N * ROWS,), np.int64)
    split = np.array([N, ROWS, HEADS, SIZE])
    q, k, v = (
        g.apply("Transpose", g.apply("Reshape", x @ g.parameter(name, (16, 16)), split), perm=(0, 2, 1, 3))
        for name in "qkv"
    )
    weights = None
    if kind in ("operator", "causal"):
        y = g.apply("Attention", q, k, v, is_causal=int(kind == "causal"))
    else:
        scores = (q @ g.apply("Transpose", k, perm=(0, 1, 3, 2))) / np.sqrt(SIZE)
        if kind != "plain":
            masks = {"masked": FUTURE, "hidden": HIDDEN}
            scores = scores + (masks[kind] if kind in masks else g.parameter("bias", (ROWS, ROWS)))
        weights = g.apply("Softmax", scores, axis=-1)
        y = weights @ v
    rows = g.apply("Reshape", g.apply("Transpose", y, perm=(0, 2, 1, 3)), np.array([N * ROWS, HEADS * SIZE]))
    loss = g.apply("SoftmaxCrossEntropyLoss", rows @ g.parameter("head", (16, 5)), t)
    outputs = {"weights": weights} if options.pop("shows", False) else None
    return g.train(loss, optim.SGD(0.1), outputs, engine=engine(2), **options)


def feeds() -> dict[str, Any]:
    return {"x": random(N, ROWS, HEADS * SIZE), "t": np.arange(N * ROWS) % 5}


def operators(step: dnn.TrainingStep) -> list[str]:
    return [node.op for node in step._nets.main.model.body.nodes]


@pytest.mark.parametrize("kind", ["operator", "causal", "plain", "masked"])
def test_the_forward_pass_leaves_its_sums(kind: str) -> None:
    """The gradient reads the logsumexp of rows; a network without a gradient leaves none."""
    step = step_of(kind)
    forward, backward = (x for x in compiled(step._nets.main).steps if "logsumexp" in x.buffers)
    assert isinstance(forward.pd.desc, dnn.AttentionForward)
    assert isinstance(backward.pd.desc, dnn.AttentionBackward)
    assert forward.pd.desc.causal == backward.pd.desc.causal == (kind == "causal")
    assert (forward.pd.desc.mask is None) == (kind != "masked")
    assert forward.buffers["logsumexp"] == backward.buffers["logsumexp"]
    assert all(found.fits for found in step.verify(feeds()))
    net = dnn.Graph("inference")
    x = net.input("x", (1, 2, 6, 8))
    made = compiled(net.compile(y=net.apply("Attention", x, x, x), engine=engine()))
    assert not any("logsumexp" in x.buffers for x in made.steps)


@pytest.mark.parametrize("kind", ["plain", "masked"])
def test_it_is_fused(kind: str) -> None:
    step = step_of(kind)
    step.check()
    assert step.is_native
    assert "AttentionGradient" in operators(step)
    assert "SoftmaxGradient" not in operators(step)
    assert all(found.fits for found in step.verify(feeds()))


def test_losses_are_those_of_the_operator() -> None:
    one, other, given = step_of("plain"), step_of("operator"), feeds()
    losses = [[step(**given) for _ in range(5)] for step in (one, other)]
    np.testing.assert_allclose(*losses, rtol=1e-6)
    assert losses[0][-1] < losses[0][0]


def test_causal_attention_is_that_of_a_mask() -> None:
    """Of gradients and losses, in plans that look at no future."""
    one, other, given = step_of("causal"), step_of("masked"), feeds()
    found, expected = one.gradients(**given), other.gradients(**given)
    for name, gradient in expected.items():
        np.testing.assert_allclose(found[name], gradient, rtol=1e-4, atol=1e-6)
    losses = [[step(**given) for _ in range(5)] for step in (one, other)]
    np.testing.assert_allclose(*losses, rtol=1e-6)


@pytest.mark.parametrize(("kind", "options"), [("biased", {}), ("plain", {"shows": True})])
def test_what_is_trained_or_read_inside_stays(kind: str, options: dict[str, Any]) -> None:
    """A mask with a gradient, and probabilities that a caller gets."""
    step = step_of(kind, **options)
    assert "SoftmaxGradient" in operators(step)
    assert all(found.fits for found in step.verify(feeds()))
    assert np.isfinite(step(**feeds()))


@pytest.mark.parametrize("kind", ["masked", "hidden"])
def test_masked_rows_do_not_see_the_future(kind: str) -> None:
    """Against the gradients of the operators themselves, by a caller's own graph."""
    fused, inside = step_of(kind), step_of(kind, shows=True)
    assert "AttentionGradient" in operators(fused)
    assert "SoftmaxGradient" in operators(inside)
    given = feeds()
    found, expected = (step.gradients(**given) for step in (fused, inside))
    for name, gradient in expected.items():
        np.testing.assert_allclose(found[name], gradient, rtol=1e-4, atol=1e-6)
