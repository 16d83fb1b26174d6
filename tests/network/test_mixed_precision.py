"""Training steps whose matrix products multiply bf16: where they do, how far from f32, and what stays f32."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine, random

BF16 = "avx512_core_bf16"
UNIT = 2.0**-8  # the most that rounding to bf16 changes a value by, as a share of it
ROWS, SIZES = 64, (64, 256, 128, 10)


def level(isa: str, threads: int = 1) -> dnn.Engine:
    return dnn.Engine(isa=isa, threads=threads, l2_bytes=1 << 20, machine="zen4")


def perceptron(isa: str, threads: int = 1, **options: Any) -> dnn.TrainingStep:
    g = dnn.Graph("perceptron", seed=3)
    h, t = g.input("x", (ROWS, SIZES[0])), g.input("t", (ROWS,), np.int64)
    for i, (rows, columns) in enumerate(pairwise(SIZES)):
        h = g.apply("Relu", h) if i else h
        h = h @ g.parameter(f"w{i}", (rows, columns)) + g.parameter(f"b{i}", (columns,), "zeros")
    loss = g.apply("SoftmaxCrossEntropyLoss", h, t)
    return g.train(loss, dnn.optim.SGD(0.05, momentum=0.9), engine=level(isa, threads), **options)


def feeds() -> dict[str, Any]:
    rng = np.random.default_rng(4)
    return {"x": rng.standard_normal((ROWS, SIZES[0])).astype(np.float32), "t": np.arange(ROWS) % SIZES[-1]}


def products(step: dnn.TrainingStep) -> list[str]:
    """The implementations of all matrix products."""
    (segment,) = step._nets.main.planned("looked at").segments
    return [one.pd.implementation for one in segment.steps if one.label.startswith("MatMul")]


def test_products_of_all_passes_multiply_bf16() -> None:
    """The large ones, of the forward pass and of both gradients; the small ones are faster in f32."""
    step = perceptron(BF16, precision="bf16")
    step.check()
    names = products(step)
    assert sum(name.endswith(BF16) for name in names) >= 3
    assert not any(name.endswith(BF16) for name in products(perceptron(BF16)))
    dtypes = {array.dtype for array in step.state_dict().values()}
    assert dtypes == {np.dtype(np.float32), np.dtype(np.int64)}


def attended(threads: int = 1, isa: str = BF16, rows: int = 64, **options: Any) -> dnn.TrainingStep:
    """Four heads of 32, causal."""
    g, heads, size = dnn.Graph("attended", seed=5), 4, 32
    x, t = g.input("x", (2, rows, heads * size)), g.input("t", (2 * rows,), np.int64)
    q, k, v = (
        g.apply(
            "Transpose",
            g.apply("Reshape", x @ g.parameter(name, (heads * size, heads * size)), np.array([2, rows, heads, size])),
            perm=(0, 2, 1, 3),
        )
        for name in "qkv"
    )
    y = g.apply("Transpose", g.apply("Attention", q, k, v, is_causal=options.pop("causal", 1)), perm=(0, 2, 1, 3))
    y = g.apply("Reshape", y, np.array([2 * rows, heads * size])) @ g.parameter("head", (heads * size, 5))
    loss = g.apply("SoftmaxCrossEntropyLoss", y, t)
    return g.train(loss, dnn.optim.SGD(0.1), engine=level(isa, threads), **options)


def of_attention(rows: int = 64) -> dict[str, Any]:
    rng = np.random.default_rng(6)
    return {"x": rng.standard_normal((2, rows, 128)).astype(np.float32), "t": np.arange(2 * rows) % 5}


def attentions(step: dnn.TrainingStep) -> list[Any]:
    (segment,) = step._nets.main.planned("looked at").segments
    return [one.pd for one in segment.steps if one.label.startswith("Attention")]


@pytest.mark.parametrize("causal", [0, 1])
def test_attention_multiplies_bf16(causal: int) -> None:
    """In the forward pass; its gradient reads the same numbers, and the logsumexp of their scores."""
    step = attended(precision="bf16", causal=causal)
    step.check()
    forward, backward = attentions(step)
    assert forward.implementation == f"attention:{BF16}"
    assert backward.implementation == "reorder+attention:avx512_core"
    assert {backward.desc.query.dtype, backward.desc.key.dtype, backward.desc.value.dtype} == {dnn.bf16}
    assert forward.desc.logsumexp is not None and backward.desc.logsumexp is not None
    assert {forward.desc.dst.dtype, backward.desc.diff_query.dtype} == {dnn.f32}
    assert not any(pd.implementation.endswith(BF16) for pd in attentions(attended(causal=causal)))
    slow = attended(isa="avx512_core", precision="bf16", causal=causal)
    assert not any(pd.desc.query.dtype == dnn.bf16 for pd in attentions(slow))


@pytest.mark.isa(BF16)
def test_steps_with_attention_learn_as_in_f32() -> None:
    """Gradients are off by roundings of what is multiplied; bits do not depend on threads."""
    narrow, wide, given = attended(precision="bf16"), attended(), of_attention()
    assert all(found.fits for found in narrow.verify(given))
    found, expected = narrow.gradients(**given), wide.gradients(**given)
    for name, gradient in expected.items():
        np.testing.assert_allclose(found[name], gradient, atol=4 * UNIT * np.abs(gradient).max(), err_msg=name)
    losses = [[step(**given) for _ in range(20)] for step in (narrow, wide)]
    np.testing.assert_allclose(*losses, rtol=4 * UNIT)
    for threads in (2, 3):
        other = attended(threads, precision="bf16")
        assert [other(**given) for _ in range(20)] == losses[0]


def test_a_value_is_converted_once_for_all_its_views() -> None:
    """The second layer's weights are multiplied as they are and transposed, of one copy."""
    (segment,) = perceptron(BF16, precision="bf16")._nets.main.planned("looked at").segments
    converting = [one for one in segment.steps if one.is_reorder and one.pd.plan.tensors["dst"].dtype == dnn.bf16]
    made = [one.buffers["src"] for one in converting]
    assert made and len(made) == len({*made})


@pytest.mark.isa("avx2")
def test_levels_without_such_products_stay_f32() -> None:
    given = feeds()
    one, two = perceptron("avx2", precision="bf16"), perceptron("avx2")
    assert [one(**given) for _ in range(3)] == [two(**given) for _ in range(3)]


@pytest.mark.isa(BF16)
def test_a_gradient_is_that_of_rounded_operands() -> None:
    """Of sum((x w) c) by w: x^T c, each product within two roundings, each sum within those of f32."""
    rows, k, n = 64, 256, 128
    g = dnn.Graph("linear")
    x, c = g.input("x", (rows, k)), g.input("c", (rows, n))
    w = g.parameter("w", (k, n))
    h = x @ w
    loss = g.apply("ReduceSum", h * c, keepdims=0)
    step = g.train(loss, dnn.optim.SGD(0.1), {"h": h}, engine=level(BF16), precision="bf16")
    given = {"x": random(rows, k), "c": random(rows, n)}
    found = step.gradients(**given)["w"]
    x, c = (given[name].astype(np.float64) for name in ("x", "c"))
    bound = (2 * UNIT + UNIT**2 + rows * 2.0**-23) * (abs(x).T @ abs(c))
    difference = abs(found - x.T @ c)
    assert (difference <= bound).all()
    (segment,) = step._nets.forward.planned("looked at").segments
    assert any(one.pd.implementation.endswith(BF16) for one in segment.steps)
    assert difference.max() > 0.1 * bound.min()  # it is rounded


@pytest.mark.isa(BF16)
def test_losses_fall_as_those_of_f32() -> None:
    given = feeds()
    losses = {}
    for word in ("f32", "bf16"):
        step = perceptron(BF16, precision=word)
        assert all(found.fits for found in step.verify(given))
        losses[word] = [step(**given) for _ in range(40)]
    np.testing.assert_allclose(losses["bf16"][:10], losses["f32"][:10], rtol=10 * UNIT)
    assert losses["bf16"][-1] < 0.2 * losses["bf16"][0]


@pytest.mark.isa(BF16)
def test_bits_are_those_of_every_number_of_threads() -> None:
    given, found = feeds(), []
    for threads in (1, 2, 3):
        step = perceptron(BF16, threads, precision="bf16", accumulate=2)
        for _ in range(4):
            step(**given)
        found.append(step.state_dict())
    assert all(np.array_equal(other[name], array) for other in found for name, array in found[0].items())


CHANNELS, SIDE = 256, 14


def convolved(**options: Any) -> dnn.TrainingStep:
    """sum(conv(x, w) c) by w and x, which is a parameter, too."""
    g = dnn.Graph("convolved", seed=1)
    x = g.parameter("x", (2, CHANNELS, SIDE, SIDE), random(2, CHANNELS, SIDE, SIDE))
    w = g.parameter("w", (CHANNELS, CHANNELS, 1, 1))
    h = g.apply("Conv", x, w)
    loss = g.apply("ReduceSum", h * g.input("c", (2, CHANNELS, SIDE, SIDE)), keepdims=0)
    return g.train(loss, dnn.optim.SGD(0.1), {"h": h}, engine=level(BF16), **options)


def test_convolutions_multiply_bf16() -> None:
    """Forward, by data and by weights; states and results stay f32."""
    found = {}
    for word in ("f32", "bf16"):
        step = convolved(precision=word)
        step.check()
        (segment,) = step._nets.main.planned("looked at").segments
        steps = [one for one in segment.steps if one.label.startswith("Conv")]
        found[word] = {one.label.split()[0]: one.pd.implementation.endswith(BF16) for one in steps}
    assert not any(found["f32"].values())
    assert found["bf16"]["Conv"]
    assert found["bf16"]["ConvTranspose"]
    assert found["bf16"]["ConvWeightsGradient"]
    assert {array.dtype for array in step.state_dict().values()} <= {np.dtype(np.float32), np.dtype(np.int64)}


@pytest.mark.isa(BF16)
def test_gradients_of_convolutions_are_those_of_rounded_operands() -> None:
    """Within two roundings of each product, against sums in double precision; and f32 where that is as fast."""
    step, c = convolved(precision="bf16"), random(2, CHANNELS, SIDE, SIDE)
    w, x = (step.parameters[name].astype(np.float64) for name in ("w", "x"))
    found = step.gradients(c=c)
    sums = CHANNELS * 2.0**-23
    wanted, size = (np.einsum("oi,nohw->nihw", f(w[:, :, 0, 0]), f(c.astype(np.float64))) for f in (np.array, abs))
    difference = abs(found["x"] - wanted)
    assert (difference <= (2 * UNIT + UNIT**2 + sums) * size).all()
    assert difference.max() > sums * size.max()  # it is rounded
    wanted, size = (np.einsum("nohw,nihw->oi", f(c.astype(np.float64)), f(x)) for f in (np.array, abs))
    difference = abs(found["w"][:, :, 0, 0] - wanted)
    assert (difference <= (2 * UNIT + UNIT**2 + 2 * SIDE * SIDE * 2.0**-23) * size).all()
    assert difference.max() > 2 * SIDE * SIDE * 2.0**-23 * size.max()
    assert all(found.fits for found in step.verify({"c": c}))


def layers(channels: int, groups: int, threads: int = 1, size: int = 3, **options: Any) -> dnn.TrainingStep:
    """Two convolutions, whose weights' gradients read the same maps as the other passes."""
    g = dnn.Graph("layers", seed=1)
    h = g.input("x", (4, channels, 28, 28))
    for name in ("a", "b"):
        w = g.parameter(name, (channels, channels // groups, size, size))
        h = g.apply("Relu", g.apply("Conv", h, w, pads=(size // 2,) * 4, group=groups))
    loss = g.apply("ReduceMean", h * h, keepdims=0)
    return g.train(loss, dnn.optim.SGD(0.1), engine=level(BF16, threads), **options)


@pytest.mark.isa(BF16)
@pytest.mark.parametrize(("channels", "groups", "size"), [(64, 1, 5), (64, 64, 3), (64, 4, 3)])
def test_gradients_by_weights(channels: int, groups: int, size: int) -> None:
    """Where it is expected to be faster, in one copy of each map; right, proved, of equal bits for all threads."""
    x, found = random(4, channels, 28, 28), []
    for threads in (1, 2, 3):
        step = layers(channels, groups, threads, size, precision="bf16")
        step.check()
        assert all(one.fits for one in step.verify({"x": x}))
        step(x=x)
        found.append(step.state_dict())
    (segment,) = step._nets.main.planned("looked at").segments
    names = [one.pd.implementation for one in segment.steps if one.label.startswith("ConvWeightsGradient")]
    assert len(names) == 2 and (groups > 1 or all(name.endswith(f"products:{BF16}") for name in names)), names
    assert all(np.array_equal(other[name], array) for other in found for name, array in found[0].items())


@pytest.mark.isa(BF16)
def test_gradients_by_weights_stay_with_winograd() -> None:
    """In f32, where that takes less than pairs."""
    (segment,) = layers(64, 1, precision="bf16")._nets.main.planned("looked at").segments
    names = [one.pd.implementation for one in segment.steps if one.label.startswith("ConvWeightsGradient")]
    assert [name.split("+")[-1] for name in names] == ["winograd:avx512_core"] * 2


def test_gradients_by_weights_stay_f32_where_nothing_multiplies_pairs() -> None:
    step = layers(64, 1, precision="f32")
    (segment,) = step._nets.main.planned("looked at").segments
    assert not any(one.pd.implementation.endswith(BF16) for one in segment.steps)


@pytest.mark.parametrize("word", ["f16", "fast", 16, None])
def test_words(word: Any) -> None:
    g = dnn.Graph("one")
    loss = g.apply("ReduceSum", g.input("x", (2, 3)) * g.parameter("w", (3,), "ones"), keepdims=0)
    with pytest.raises(dnn.InvalidArguments, match="precision must be one of f32, bf16, not "):
        g.train(loss, dnn.optim.SGD(0.1), precision=word, engine=engine())
