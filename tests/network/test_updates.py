"""All that a parameter's update writes is one pass, behind a convolution's gradient too, with the bits of several."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import optim
from asmdnn.generators.functions.expression import Builder
from asmdnn.network.fusion.updates import UpdateMaps
from asmdnn.primitives.attributes.user_post_op import traced_before
from tests.network.nets import engine

pytestmark = pytest.mark.isa("avx2")
IMAGES, SMALL = (4, 16, 6, 6), 1 << 12
OPTIMIZERS: Mapping[str, optim.Optimizer] = {
    "momentum": optim.SGD(0.05, momentum=0.9),
    "nesterov": optim.SGD(0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "adam": optim.Adam(0.01, weight_decay=1e-3),
    "adamw": optim.AdamW(0.01),
    "rmsprop": optim.RMSprop(0.01, momentum=0.5),
    "lion": optim.Lion(0.001, weight_decay=0.1),
}
OPTIONS: Mapping[str, dict[str, Any]] = {
    "clipped": {"clip_norm": 0.1},
    "averaged": {"ema": 0.9},
    "summed": {"accumulate": 2},
    "finite": {"check_finite": True},
    "bf16": {"precision": "bf16", "rounding": "stochastic"},
}
READ_TWICE = ("clipped", "summed", "finite")  # gradients: by what looks at their size, or adds them up


def step_of(
    optimizer: optim.Optimizer, threads: int = 1, l2_bytes: int = 512 << 10, **options: Any
) -> dnn.TrainingStep:
    """With a small L2 updates are behind the gradients of convolutions."""
    g = dnn.Graph("images", seed=0)
    x, t = g.input("x", IMAGES), g.input("t", IMAGES[:1], np.int64)
    w, b = g.parameter("w", (32, 16, 3, 3)), g.parameter("b", (32,), "zeros")
    h = g.apply("Conv", x, w, b, pads=(1, 1, 1, 1), strides=(2, 2))
    h = g.apply("Relu", g.apply("Conv", g.apply("Relu", h), g.parameter("pointwise", (48, 32, 1, 1))))
    scores = g.apply("Flatten", h) @ g.parameter("head", (48 * 9, 5))
    loss = g.apply("SoftmaxCrossEntropyLoss", scores, t)
    return g.train(
        loss, optimizer, engine=dnn.Engine(isa="avx2", threads=threads, l2_bytes=l2_bytes, machine="zen3"), **options
    )


def behind_gradients(step: dnn.TrainingStep) -> int:
    """How many updates are."""
    return sum("ConvWeightsGradient" in line and " + PythonMap" in line for line in step.explain().splitlines())


def after_steps(step: dnn.TrainingStep) -> tuple[list[float], dict[str, Any]]:
    """Losses of four calls, and all that is kept then."""
    rng = np.random.default_rng(0)
    x, t = rng.standard_normal(IMAGES).astype(np.float32), rng.integers(0, 5, IMAGES[0])
    return [step(x=x, t=t) for _ in range(4)], step.state_dict()


def assert_same(one: tuple[list[float], dict[str, Any]], other: tuple[list[float], dict[str, Any]]) -> None:
    assert one[0] == other[0]
    assert one[1].keys() == other[1].keys()
    for name, array in one[1].items():
        np.testing.assert_array_equal(array, other[1][name], name)


def apart(monkeypatch: pytest.MonkeyPatch, make: Callable[[], dnn.TrainingStep]) -> dnn.TrainingStep:
    """The same where each value that is stored has a kernel of its own."""
    with monkeypatch.context() as patch:
        patch.setattr(UpdateMaps, "grown", lambda *_: None)
        step = make()
        assert step.memory_bytes  # it is planned here
        return step


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_one_pass_has_the_bits_of_several(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = (512 << 10, SMALL)  # of L2, on which products depend, too
    several = {kind: after_steps(apart(monkeypatch, partial(step_of, OPTIMIZERS[name], 1, kind))) for kind in kinds}
    for threads, l2_bytes in product((1, 2, 3), kinds):
        step = step_of(OPTIMIZERS[name], threads, l2_bytes)
        step.check()
        assert step.is_native
        assert behind_gradients(step) == (0 if l2_bytes > SMALL else len(("pointwise",)))  # w's has sums of b
        assert_same(after_steps(step), several[l2_bytes])


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("optimizer", ["momentum", "adamw"])
def test_so_it_has_beside_other_options(name: str, optimizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make = partial(step_of, OPTIMIZERS[optimizer], 2, SMALL, **OPTIONS[name])
    step = make()
    step.check()
    assert bool(behind_gradients(step)) is (name not in READ_TWICE)
    assert_same(after_steps(step), after_steps(apart(monkeypatch, make)))


def test_a_step_without_moments_is_behind_the_gradient_too(monkeypatch: pytest.MonkeyPatch) -> None:
    make = partial(step_of, optim.SGD(0.05), 2, SMALL)
    step = make()
    step.check()
    assert behind_gradients(step) == len(("pointwise",))
    assert_same(after_steps(step), after_steps(apart(monkeypatch, make)))


def test_halves_have_the_bits_of_a_step() -> None:
    """The first half delivers gradients, so that nothing is behind them."""
    one, two = (step_of(OPTIMIZERS["adamw"], 2, SMALL) for _ in range(2))
    rng = np.random.default_rng(0)
    x, t = rng.standard_normal(IMAGES).astype(np.float32), rng.integers(0, 5, IMAGES[0])
    for _ in range(2):
        loss, found = one(x=x, t=t), two.gradients(x=x, t=t)
        two.apply(found)
        assert_same(([loss], one.state_dict()), ([float(found["loss"])], two.state_dict()))


def test_a_parameter_takes_one_kernel() -> None:
    """But those of products, whose first moment the product's own kernel writes."""
    lines = step_of(OPTIMIZERS["adamw"]).explain().splitlines()
    assert sum("PythonMap" in line for line in lines) == len(("w", "b", "pointwise", "head"))
    lines = step_of(OPTIMIZERS["momentum"]).explain().splitlines()
    assert sum("PythonMap" in line for line in lines) == len(("w", "b", "pointwise", "head with its product", "head"))


@pytest.mark.parametrize("l2_bytes", [512 << 10, SMALL])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_value_is_that_of_its_definition(name: str, l2_bytes: int) -> None:
    step = step_of(OPTIMIZERS[name], 1, l2_bytes)
    rng = np.random.default_rng(0)
    examined = step.verify({"x": rng.standard_normal(IMAGES).astype(np.float32), "t": rng.integers(0, 5, IMAGES[0])})
    assert examined
    assert all(each.fits for each in examined), [str(each) for each in examined if not each.fits]


def test_truths_between_maps_are_no_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that is clipped where another one grows: the comparison is inside one kernel, or made twice."""

    def make() -> dnn.Network:
        g = dnn.Graph("states", seed=0)
        x, one, two = g.input("x", (7, 9)), g.state("one", (7, 9)), g.state("two", (7, 9))
        grows = g.apply("Greater", x, one)
        now = g.update(one, g.apply("Where", grows, x, one))
        g.update(two, g.apply("Where", grows, now + two, two * 0.5))
        return g.compile(y=now * 2, engine=engine())

    x = np.random.default_rng(0).standard_normal((3, 7, 9)).astype(np.float32)
    first, second = np.zeros((2, 7, 9), np.float32)
    net = make()
    net.check()
    for each in x:
        grows = each > first
        first = np.where(grows, each, first)
        second = np.where(grows, first + second, second * np.float32(0.5))
        np.testing.assert_array_equal(net(each), first * 2)
        np.testing.assert_array_equal(net.state["two"], second)


def storing(dims: tuple[int, ...]) -> dnn.Attr:
    """A post-op with two further values: dst = t + x, and x t and x x."""
    build = Builder(2)
    x, t = build.inputs
    program = build.finish(t + x, x * t, x * x)
    return dnn.Attr([traced_before(program, lambda x, t: x + t, {"t": dnn.MemoryDesc(dims, dnn.f32, "ab")})])


def test_further_values_are_outputs_of_an_elementwise_function() -> None:
    dims = (5, 37)
    desc = dnn.MemoryDesc(dims, dnn.f32, "ab")
    forward = dnn.EltwiseForward(dnn.PropKind.forward_inference, "linear", desc, desc, 1.0, -0.0)
    pd = dnn.primitive_desc(forward, storing(dims), engine())
    pd.plan.check()
    assert pd.plan.outputs == ("dst", "dst_0_0", "dst_0_1")
    x, t = np.random.default_rng(0).standard_normal((2, *dims)).astype(np.float32)
    results = {name: dnn.Memory.from_array(np.full(dims, np.nan, np.float32)) for name in pd.plan.outputs}
    sources = {"src": dnn.Memory.from_array(x), "t_0": dnn.Memory.from_array(t)}
    dnn.Primitive(pd).execute(dnn.Stream(pd.engine), **sources, **results)
    for name, wanted in zip(pd.plan.outputs, (x + t, x * t, x * x), strict=True):
        np.testing.assert_array_equal(results[name].view(), wanted)


def test_other_primitives_and_types_refuse_further_values() -> None:
    dims, why = (4, 4), "stores further values"
    desc, bf16 = (dnn.MemoryDesc(dims, dtype, "ab") for dtype in (dnn.f32, dnn.bf16))
    with pytest.raises(dnn.Unimplemented, match=why):
        dnn.primitive_desc(dnn.MatMul(desc, desc, desc), storing(dims), engine())
    linear = dnn.EltwiseForward(dnn.PropKind.forward_inference, "linear", bf16, bf16, 1.0, -0.0)
    with pytest.raises(dnn.Unimplemented, match="only f32"):
        dnn.primitive_desc(linear, storing(dims), engine())
