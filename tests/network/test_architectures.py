"""Whole training steps of six architectures, 20 of them: against torch in double precision, and against the definitions
of the step's own operators."""

from typing import Any

import numpy as np
import pytest

from asmdnn.network.operators.evaluation import results_of
from asmdnn.network.operators.own import OWN
from tests.network.architectures import ARCHITECTURES
from tests.network.nets import engine

pytestmark = pytest.mark.isa("avx2")
STEPS = 20
LOSSES, PARAMETERS = {"rtol": 1e-4}, {"rtol": 1e-3, "atol": 1e-4}  # as of other steps


def wide(x: Any) -> Any:
    return x.astype(np.float64) if x.dtype == np.float32 else x


def by_definitions(step: Any, feeds: dict[str, Any]) -> tuple[list[float], dict[str, Any]]:
    """Losses and states in double precision, by the nodes of the step's network."""
    body = step._nets.main.model.body
    states = {name: wide(array) for name, array in step.state_dict().items()}
    constants, losses = {name: wide(array) for name, array in body.constants.items()}, []
    for number in range(1, STEPS + 1):
        known = {**constants, **{name: wide(x) for name, x in feeds.items()}, **states}
        step._own.move(number)
        known |= {name: wide(array) for name, array in step._own.arrays.items()}
        for node in body.nodes:
            inputs = [known[x] if x else None for x in node.inputs]
            known |= dict(zip(node.outputs, results_of(node, inputs), strict=False))
        written = [node for node in body.nodes if node.op == "Written" and node.domain == OWN]
        states |= {node.get("state"): known[node.inputs[0]] for node in written}
        losses.append(float(np.ravel(known[body.outputs[0]])[0]))
    return losses, states


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_steps_are_those_of_the_definitions(name: str) -> None:
    architecture = ARCHITECTURES[name]
    step, feeds = architecture.step(engine(2)), architecture.given()
    step.check()
    assert step.is_native
    losses, states = by_definitions(step, feeds)
    assert all(difference.fits for difference in step.verify(feeds))
    np.testing.assert_allclose([step(**feeds) for _ in range(STEPS)], losses, **LOSSES)
    assert losses[-1] < 0.9 * losses[0]
    for parameter in step.parameters:
        np.testing.assert_allclose(step.parameters[parameter], states[parameter], **PARAMETERS)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_steps_are_those_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="the torch extra")
    architecture = ARCHITECTURES[name]
    step, feeds = architecture.step(engine(2)), architecture.given()
    inputs = {name: torch.tensor(wide(x)) for name, x in feeds.items()}
    weights = {name: torch.tensor(wide(x), requires_grad=True) for name, x in architecture.initial().items()}
    optimizer = architecture.torch_optimizer(torch, [*weights.values()])
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = architecture.torch(torch, {**inputs, **weights})
        loss.backward()
        optimizer.step()
        np.testing.assert_allclose(step(**feeds), float(loss.detach()), **LOSSES)
    for parameter, tensor in weights.items():
        np.testing.assert_allclose(step.parameters[parameter], tensor.detach().numpy(), **PARAMETERS)


def test_all_gradients_of_a_layer_are_verified() -> None:
    """Not its first result alone."""
    step = ARCHITECTURES["lstm"].step(engine())
    found = [each for each in step.verify(ARCHITECTURES["lstm"].given()) if each.label.startswith("RecurrentGradient")]
    assert len({each.result for each in found}) == 4  # by x, w, r, and both biases
    assert all(each.fits and each.largest > 0 for each in found)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_bits_are_those_of_every_number_of_threads(name: str) -> None:
    architecture, found = ARCHITECTURES[name], []
    for threads in (1, 2, 3, 7):
        step = architecture.step(engine(threads))
        losses = [step(**architecture.given()) for _ in range(3)]
        found.append((losses, {name: array.tobytes() for name, array in step.state_dict().items()}))
    assert found[0] == found[1] == found[2] == found[3]
