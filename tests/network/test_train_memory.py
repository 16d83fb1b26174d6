"""Steps that compute parts of the forward pass again: in less memory, with the same bits."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import optim
from asmdnn.errors import PlanError
from asmdnn.network.joining import arena
from asmdnn.network.training.memory import Keeping, by_cost, by_parts, flow_of, kept_as
from asmdnn.network.training.networks import StepNetworks
from asmdnn.network.training.recipe import LOSS
from asmdnn.network.training.step import TrainingStep
from tests.network.architectures import ARCHITECTURES
from tests.network.nets import engine

pytestmark = pytest.mark.isa("avx2")
STEPS, BLOCKS, DIMS, WIDE, MUCH = 3, 3, (4, 16, 32, 32), 128, 1 << 30
QUICK = ("mobilenet", "transformer")
Arrays = dict[str, Any]


def in_another_way(step: TrainingStep, keeping: Keeping) -> TrainingStep:
    """The same step as another way of keeping makes it."""
    nets = StepNetworks(step._recipe)
    net = step._nets.main
    nets.__dict__["fitted"] = kept_as(net, flow_of(net, LOSS), keeping)
    return TrainingStep(step._recipe, nets)


def after_steps(step: TrainingStep, feeds: Arrays) -> tuple[list[float], Arrays]:
    return [step(**feeds) for _ in range(STEPS)], step.state_dict()


def assert_same(one: tuple[list[float], Arrays], other: tuple[list[float], Arrays]) -> None:
    assert one[0] == other[0]
    assert one[1].keys() == other[1].keys()
    assert all(np.array_equal(array, other[1][name]) for name, array in one[1].items())


def steps_again(step: TrainingStep) -> list[str]:
    """The operators of steps that make values again."""
    (segment,) = step._nets.main.segments
    return [node.op for one in segment.steps if one.label.endswith(", again") for node in one.nodes]


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in ARCHITECTURES]
)
def test_every_way_has_the_bits_of_keeping_everything(name: str) -> None:
    architecture = ARCHITECTURES[name]
    step, feeds = architecture.step(engine(2)), architecture.given()
    expected, again = after_steps(step, feeds), list[str]()
    for keeping in (by_cost(1), by_cost(1e9), by_parts(2), by_parts(3)):
        other = in_another_way(step, keeping)
        other.check()
        assert other.is_native
        again += steps_again(other)
        assert_same(after_steps(other, feeds), expected)
    assert again
    assert not steps_again(step)


def deep(named: bool = True, channels: int = DIMS[1], size: int = 3, **options: Any) -> TrainingStep:
    """Convolutions with batch norm and dropout, each block's sum a checkpoint."""
    g = dnn.Graph("deep", seed=1)
    x, t = g.input("x", (DIMS[0], channels, *DIMS[2:])), g.input("t", DIMS[:1], np.int64)
    for i in range(BLOCKS):
        mean, variance = g.state(f"mean{i}", (channels,)), g.state(f"variance{i}", (channels,), initial=1)
        scale, shift = g.parameter(f"scale{i}", (channels,), "ones"), g.parameter(f"shift{i}", (channels,), "zeros")
        h = g.apply("Conv", x, g.parameter(f"w{i}", (channels, channels, size, size)), pads=(size // 2,) * 4)
        h, *now = g.apply("BatchNormalization", h, scale, shift, mean, variance, results=3, training_mode=1)
        for state, value in zip((mean, variance), now, strict=True):
            g.update(state, value)
        h = g.apply("Dropout", g.apply("Relu", h), 0.25, np.array(True))
        x = g.apply("Add", x, h, name=f"block{i}" if named else "")
    scores = g.apply("Flatten", g.apply("GlobalAveragePool", x)) @ g.parameter("head", (channels, 5))
    loss = g.apply("SoftmaxCrossEntropyLoss", scores, t)
    return g.train(loss, optim.SGD(0.1, momentum=0.9), {"scores": scores}, engine=engine(2), **options)


def feeds(channels: int = DIMS[1]) -> Arrays:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((DIMS[0], channels, *DIMS[2:])).astype(np.float32)
    return {"x": x, "t": rng.integers(0, 5, DIMS[0])}


def test_what_costs_next_to_nothing_is_made_again() -> None:
    """Where nobody says how much memory a step may take: a tenth less of it, for a fiftieth more of its cycles."""
    plain, step = deep(channels=WIDE, size=5, memory_limit=MUCH), deep(channels=WIDE, size=5)
    (before,), (after,) = (one._nets.main.segments for one in (plain, step))
    assert step.memory_bytes <= 0.9 * plain.memory_bytes
    assert before.plan.cycles < after.plan.cycles <= 1.02 * before.plan.cycles
    assert "what costs next to nothing is made again" in step.explain()
    step.check()
    assert_same(after_steps(step, feeds(WIDE)), after_steps(plain, feeds(WIDE)))


def test_a_limit_is_kept() -> None:
    plain = deep(memory_limit=MUCH)
    limit = (in_another_way(plain, by_cost(1)).memory_bytes + plain.memory_bytes) // 2
    less = deep(memory_limit=limit)
    less.check()
    assert less.memory_bytes <= limit < plain.memory_bytes
    assert steps_again(less)
    assert "everything is kept" in plain.explain()
    assert f"a call takes {less.memory_bytes} bytes" in less.explain()
    assert_same(after_steps(less, feeds()), after_steps(plain, feeds()))


def test_a_limit_that_nothing_fits() -> None:
    with pytest.raises(dnn.InvalidArguments, match=r"memory_limit is 1000 bytes, and a call takes \d+ at least \(.*\)"):
        deep(memory_limit=1000)


def test_checkpoints_are_kept() -> None:
    """Convolutions between them are computed again, but for those of the last part."""
    step = deep(checkpoints=["block*"])
    assert steps_again(step).count("Conv") == BLOCKS
    assert_same(after_steps(step, feeds()), after_steps(deep(), feeds()))
    assert steps_again(deep(checkpoints="block1")).count("Conv") == 2


def test_other_options_go_with_it() -> None:
    options: dict[str, Any] = {"accumulate": 2, "ema": 0.9, "check_finite": True, "clip_norm": 0.1}
    again = deep(checkpoints=["block*"], **options)
    again.check()
    assert steps_again(again)
    assert_same(after_steps(again, feeds()), after_steps(deep(**options), feeds()))


def test_halves_go_with_it() -> None:
    one, other = deep(checkpoints=["block*"]), deep()
    for step in (one, other):
        step.apply(step.gradients(**feeds()))
    assert all(np.array_equal(array, other.state_dict()[name]) for name, array in one.state_dict().items())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory_limit": 0}, r"memory_limit must be an integer from 1 to 2\*\*53, not 0"),
        ({"memory_limit": "1 GB"}, r"memory_limit must be an integer from 1 to 2\*\*53, not '1 GB'"),
        ({"checkpoints": ["blok*"]}, r"checkpoints has 'blok\*', which no node is named: block0, block1"),
        ({"checkpoints": ["b"], "named": False}, r"no node is named: none has, give apply\(\.\.\., name='block'\)"),
        ({"checkpoints": 3}, r"checkpoints must be names of nodes, such as \['block.\*'\], not 3"),
        ({"checkpoints": [3]}, r"checkpoints must be names of nodes"),
    ],
)
def test_what_is_no_memory(options: dict[str, Any], message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        deep(**options)


def test_own_scratch_of_primitives_shares_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of Winograd's is done with before the next one begins; were they put anywhere, the proof would say so."""
    g, made = dnn.Graph("winograd"), dnn.Engine(isa="avx2", threads=2, machine="zen3")
    x = g.input("x", DIMS)
    for i in range(4):
        x = g.apply("Relu", g.apply("Conv", x, g.parameter(f"w{i}", (16, 16, 3, 3)), pads=(1, 1, 1, 1)))
    net = g.compile(y=x, engine=made)
    net.check()
    (segment,) = net.segments
    joined = segment.joined.plan
    own = sum(joined.scratch_bytes[name] for name in joined.per_part)
    assert len(joined.per_part) == 8
    assert segment.plan.scratch_bytes[arena.OWN_SCRATCH] == own // 4
    monkeypatch.setattr(arena, "best_gap", lambda size, taken: 0)
    with pytest.raises(PlanError, match="share bytes of a part's own scratch"):
        arena.check_own_scratch(joined)
