"""The reference of recurrent layers: against finite differences, torch, and one sequence at a time."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import asmdnn as dnn
from asmdnn.definitions.recurrent.bounded import Bounded
from asmdnn.definitions.recurrent.cells import CELLS
from asmdnn.definitions.recurrent.layers import CONCAT, LEFT2RIGHT, RIGHT2LEFT, SUM, Net, ReferenceRun
from asmdnn.definitions.recurrent.values import Function
from tests.definitions.in_f32 import ORDERS, array_of

Floats = npt.NDArray[Any]
Arrays = dict[str, Floats]
STEP = 1e-5  # of central differences: off by its square, and by rounding errors over it
TORCH = {"VANILLA_RNN": "RNN", "VANILLA_LSTM": "LSTM", "LBR_GRU": "GRU"}
NAMES = {"VANILLA_RNN": "rnn", "VANILLA_LSTM": "lstm", "LBR_GRU": "lbr_gru"}


def arrays_of(
    net: Net, sizes: tuple[int, int, int, int], layers: int = 1, peephole: bool = False, projection: int = 0
) -> Arrays:
    """float64, of t, n, c, u."""
    random, cell = np.random.default_rng(3), CELLS[net.alg]
    (t, n, c, units), directions = sizes, 2 if net.direction in (CONCAT, SUM) else 1
    outer, recurrent = (layers, directions), projection or units
    dims: dict[str, tuple[int, ...]] = {
        "src_layer": (t, n, c),
        "src_iter": (*outer, n, recurrent),
        "weights_layer": (*outer, c, cell.gates, units),
        "weights_iter": (*outer, recurrent, cell.gates, units),
        "bias": (*outer, cell.biases, units),
    }
    if net.alg == "VANILLA_LSTM":
        dims["src_iter_c"] = (*outer, n, units)
        dims |= {"weights_peephole": (*outer, 3, units)} if peephole else {}
        dims |= {"weights_projection": (*outer, units, recurrent)} if projection else {}
    return {name: random.uniform(-1, 1, size) for name, size in dims.items()}


def diffs_of(run: ReferenceRun) -> Arrays:
    random = np.random.default_rng(4)
    return {f"diff_{name}": random.uniform(-1, 1, x.value.shape) for name, x in run.results.items()}


def nets() -> Iterator[tuple[Net, dict[str, Any]]]:
    for alg in CELLS:
        yield Net(alg), {}
        yield Net(alg, RIGHT2LEFT), {"layers": 2}
        yield Net(alg, SUM), {"layers": 2}
        yield Net(alg, CONCAT), {"layers": 2}
    yield Net("VANILLA_RNN", LEFT2RIGHT, Function("relu", 0.25)), {"layers": 2}
    yield Net("VANILLA_RNN", CONCAT, Function("logistic")), {}
    yield Net("VANILLA_LSTM"), {"peephole": True}
    yield Net("VANILLA_LSTM", SUM), {"projection": 3, "layers": 2}
    yield Net("VANILLA_LSTM", RIGHT2LEFT), {"peephole": True, "projection": 2}


def channels_of(net: Net, more: dict[str, Any]) -> int:
    """Of src_layer for 3 units: stacked layers read what they write."""
    return 2 if more.get("layers", 1) == 1 else (6 if net.direction == CONCAT else 3)


@pytest.mark.parametrize("lengths", [None, np.array([3, 1])], ids=["equal", "lengths"])
@pytest.mark.parametrize(("net", "more"), list(nets()))
def test_gradients_are_finite_differences(net: Net, more: dict[str, Any], lengths: Any) -> None:
    arrays = arrays_of(net, (3, 2, channels_of(net, more), 3), **more)
    run = ReferenceRun(net, arrays, lengths)
    diffs = diffs_of(run)
    gradients = run.gradients(diffs)
    assert gradients.keys() == {f"diff_{name}" for name in arrays}
    random = np.random.default_rng(5)
    for name, array in arrays.items():
        way = random.standard_normal(array.shape)
        ends = (ReferenceRun(net, arrays | {name: array + sign * STEP * way}, lengths).results for sign in (1, -1))
        plus, minus = (sum((diffs[f"diff_{n}"] * x.value).sum() for n, x in end.items()) for end in ends)
        assert (gradients[f"diff_{name}"].value * way).sum() == pytest.approx((plus - minus) / (2 * STEP), abs=1e-7)


@pytest.mark.parametrize(("net", "more"), list(nets()))
def test_lengths_are_one_sequence_at_a_time(net: Net, more: dict[str, Any]) -> None:
    arrays = arrays_of(net, (4, 3, channels_of(net, more), 3), **more)
    lengths = np.array([2, 4, 1])
    together = ReferenceRun(net, arrays, lengths).results
    for n, steps in enumerate(lengths):
        one = {name: x[:, :, n : n + 1] if name.startswith("src_iter") else x for name, x in arrays.items()}
        alone = ReferenceRun(net, one | {"src_layer": arrays["src_layer"][:steps, n : n + 1]}).results
        assert np.allclose(together["dst_layer"].value[:steps, n], alone["dst_layer"].value[:, 0], 0, 1e-14)
        assert not together["dst_layer"].value[steps:, n].any()
        for state in together.keys() - {"dst_layer"}:
            assert np.allclose(together[state].value[:, :, n], alone[state].value[:, :, 0], 0, 1e-14)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize(
    ("alg", "projection"), [("VANILLA_RNN", 0), ("VANILLA_LSTM", 0), ("VANILLA_LSTM", 3), ("LBR_GRU", 0)]
)
def test_torch_computes_the_same(alg: str, projection: int, layers: int, bidirectional: bool) -> None:
    """Layers one after the other, as torch's bidirectional layers read both directions of the one before."""
    torch = pytest.importorskip("torch", reason="the reference is not compared with torch: pip install '.[torch]'")
    torch.manual_seed(1)
    proj = {"proj_size": projection} if projection else {}
    module = getattr(torch.nn, TORCH[alg])(5, 4, layers, bidirectional=bidirectional, dtype=torch.float64, **proj)
    x = torch.randn(6, 2, 5, dtype=torch.float64, requires_grad=True)
    out, _ = module(x)
    diff = torch.randn_like(out)
    out.backward(diff)
    state = module.state_dict()
    direction = CONCAT if bidirectional else LEFT2RIGHT
    runs, src = [], x.detach().numpy()
    for layer in range(layers):
        weights = dnn.recurrent.from_torch(NAMES[alg], state, layer)
        runs.append(ReferenceRun(Net(alg, direction), {"src_layer": src, **weights}))
        src = runs[-1].results["dst_layer"].value
    assert np.abs(src - out.detach().numpy()).max() < 1e-6  # the weights are rounded to f32
    gradient = diff.numpy()
    gradients = dict(module.named_parameters())
    for layer in reversed(range(layers)):
        found = runs[layer].gradients({"diff_dst_layer": gradient})
        gradient = found["diff_src_layer"].value
        own_names = [name for name in found if name.startswith(("diff_weights", "diff_bias"))]
        weights = {name.removeprefix("diff_"): found[name].value for name in own_names}
        for name, own in dnn.recurrent.to_torch(NAMES[alg], weights, layer).items():
            theirs = gradients[name].grad.numpy()
            if alg == "LBR_GRU" and "bias_hh" in name:
                own, theirs = own[8:], theirs[8:]  # the others are the other bias's
            elif "bias_hh" in name:
                continue
            assert np.abs(own - theirs).max() < 1e-5, name
    assert np.abs(gradient - x.grad.numpy()).max() < 1e-6


def rounded(monkeypatch: pytest.MonkeyPatch, order: Any) -> None:
    """Operations on `Bounded` have the results of f32 from now on, with sums in that order."""

    def f32(function: Any) -> Any:
        return lambda *x: Bounded(function(*(each.value.astype(np.float32).view(array_of(order)) for each in x)))

    one = np.float32(1)
    monkeypatch.setattr(Bounded, "_rounded", lambda self, value, error: Bounded(value.astype(np.float32)))
    monkeypatch.setattr(Bounded, "__matmul__", f32(lambda a, b: a @ b))
    monkeypatch.setattr(Bounded, "sum_rows", f32(lambda x: x.sum(0)))
    monkeypatch.setattr(Bounded, "logistic", f32(lambda x: one / (one + np.exp(-x))))
    monkeypatch.setattr(Bounded, "tanh", f32(np.tanh))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("net", "more"), list(nets()))
def test_f32_reaches_a_share_of_the_bounds_but_not_more(
    net: Net, more: dict[str, Any], order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of weights by which errors do not grow."""
    arrays = arrays_of(net, (3, 2, channels_of(net, more), 3), **more)
    arrays = {name: (x / 3 if "weights" in name else x).astype(np.float32) for name, x in arrays.items()}
    run = ReferenceRun(net, arrays)
    diffs = {name: x.astype(np.float32) for name, x in diffs_of(run).items()}
    wanted = {**run.results, **run.gradients(diffs)}
    rounded(monkeypatch, order)
    run = ReferenceRun(net, arrays)
    found = {**run.results, **run.gradients(diffs)}
    for name, one in wanted.items():
        share = (np.abs(found[name].value - one.value) / one.bound).max()
        assert 0.004 <= share <= 1, name


def test_bounds_of_operations() -> None:
    random = np.random.default_rng(1)
    a, b = (random.uniform(-2, 2, (8, 8)).astype(np.float32) for _ in range(2))
    for f32, bounded in (
        (a @ b, Bounded(a) @ Bounded(b)),
        (a * b - a, Bounded(a) * Bounded(b) - Bounded(a)),
        ((a * b) @ a, (Bounded(a) * Bounded(b)) @ Bounded(a)),
        ((a * b).sum(0), (Bounded(a) * Bounded(b)).sum_rows()),
        (np.tanh(a * b), (Bounded(a) * Bounded(b)).tanh()),
    ):
        assert (np.abs(f32 - bounded.value) <= bounded.bound).all()
        assert (bounded.bound <= 1e-4).all()


def test_errors_of_functions_that_are_bounded_are_bounded() -> None:
    """Else those of many layers exceed all numbers, and nothing is right."""
    vague = Bounded(np.array([-1.0, 0.0, 3.0]), np.full(3, 1e300))
    assert (vague.tanh().bound <= 2).all()
    assert (vague.logistic().bound <= 1).all()
