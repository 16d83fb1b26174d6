"""Modules of torch on disk: planned and packed once for all processes, and never with weights of another time."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="the torch extra")

import torch
from torch import nn

import asmdnn as dnn
from asmdnn.aten import backend
from asmdnn.errors import InvalidArguments
from tests.network.keeping import files, is_kept, own_directory

ENGINE = dnn.Engine(threads=1)


directory = pytest.fixture(own_directory)


@pytest.fixture(autouse=True)
def without_gradients(directory: Path) -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def made() -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(3)
    layers = nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 36, 10)
    return nn.Sequential(*layers).eval(), torch.randn(2, 3, 8, 8)


def compiled(module: nn.Module) -> Any:
    torch._dynamo.reset()
    return torch.compile(module, backend=backend.asmdnn, options={"engine": ENGINE})


def the_part() -> Any:
    (graph,) = [graph for graph in backend._graphs if graph._runs]
    (part,) = next(reversed(graph._runs.values()))._parts  # type: ignore[union-attr]
    return part


def test_from_torch_is_found_again(directory: Path) -> None:
    module, x = made()
    first = dnn.from_torch(module, (x,), engine=ENGINE)
    assert not is_kept(first.network)
    wanted = first(x)
    assert len(files(directory)) == 1
    again = dnn.from_torch(made()[0], (x,), engine=ENGINE)
    assert is_kept(again.network)
    assert torch.equal(again(x), wanted)
    assert is_kept(again.network)
    assert again.network.explain() == first.network.explain()
    assert [step.label for part in again.network.segments for step in part.steps] != []  # type: ignore[union-attr]
    assert len(files(directory)) == 1


def test_other_weights_are_not_found(directory: Path) -> None:
    module, x = made()
    dnn.from_torch(module, (x,), engine=ENGINE)(x)
    module[0].weight.view(-1)[5] += 1e-3
    other = dnn.from_torch(module, (x,), engine=ENGINE)
    assert not is_kept(other.network)
    torch.testing.assert_close(other(x), module(x), rtol=0, atol=1e-5)
    assert len(files(directory)) == 2


def test_states_that_are_loaded_are_not_kept(directory: Path) -> None:
    """They would fill the disk."""
    module, x = made()
    before = dnn.from_torch(module, (x,), engine=ENGINE)(x)
    net = dnn.from_torch(module, (x,), engine=ENGINE)
    assert is_kept(net.network)
    net.load_state_dict({name: value + 1 for name, value in module.state_dict().items()})
    assert not is_kept(net.network)
    assert not torch.equal(net(x), before)
    net.load_state_dict(module.state_dict())
    assert torch.equal(net(x), before)
    assert len(files(directory)) == 1


@pytest.mark.parametrize("is_found", [False, True])
def test_weights_are_those_of_the_translation(is_found: bool) -> None:
    module, x = made()
    wanted = module(x)
    if is_found:
        dnn.from_torch(made()[0], (x,), engine=ENGINE)(x)
    net = dnn.from_torch(module, (x,), engine=ENGINE)
    assert is_kept(net.network) == is_found
    for parameter in module.parameters():
        parameter.data.zero_()
    torch.testing.assert_close(net(x), wanted, rtol=0, atol=1e-5)
    if is_found:
        with pytest.raises(InvalidArguments, match="the module's weights have changed since it was translated"):
            net.network.verify({"input 0": x.numpy()})
    else:
        assert all(one.fits for one in net.network.verify({"input 0": x.numpy()}))


def test_compiled_modules_are_found_again_but_weights_that_change_are_not_kept(directory: Path) -> None:
    module, x = made()
    run = compiled(module)
    wanted = run(x)
    assert not is_kept(the_part().network)
    assert len(files(directory)) == 1
    run = compiled(module)
    assert torch.equal(run(x), wanted)
    assert is_kept(the_part().network)
    module.load_state_dict({name: value + 0.1 for name, value in module.state_dict().items()})
    torch.testing.assert_close(run(x), module(x), rtol=0, atol=1e-4)
    assert not is_kept(the_part().network)
    assert len(files(directory)) == 1, "they would fill the disk"


def test_nodes_in_numpy(directory: Path) -> None:
    """They are kept with the rest."""

    class Flips(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.flip(1) * 2

    x, module = torch.randn(2, 3), Flips().eval()
    wanted = dnn.from_torch(module, (x,), engine=ENGINE, fallback="numpy")(x)
    assert len(files(directory)) == 1
    again = dnn.from_torch(module, (x,), engine=ENGINE, fallback="numpy")
    assert is_kept(again.network)
    assert torch.equal(again(x), wanted)
    with pytest.raises(InvalidArguments, match="fallback"):
        dnn.from_torch(module, (x,), engine=ENGINE, fallback="Numpy")
