"""Modules that ask for what a network is not: training, inputs that share memory or are written, other types."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch", reason="the torch extra")

import torch
from torch import nn

import asmdnn as dnn
from asmdnn.aten import backend
from asmdnn.errors import Unimplemented
from tests.aten.test_torch import Function

X = torch.linspace(-1, 1, 60).reshape(3, 4, 5)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad():
        yield
    torch._dynamo.reset()


def compiled(function: Any) -> Any:
    module = function if isinstance(function, nn.Module) else Function(function)
    return torch.compile(module, backend=backend.asmdnn)


def test_batch_norm_in_training_mode_updates_its_statistics() -> None:
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 1)).train()
    other, x = copy.deepcopy(module), torch.linspace(-1, 2, 2 * 3 * 64).reshape(2, 3, 8, 8)
    call = compiled(module)
    for i in range(3):
        torch.testing.assert_close(call(x + i), other(x + i), atol=1e-5, rtol=0)
    for mine, wanted in zip(module.buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(mine, wanted)
    assert "torch computes aten._native_batch_norm_legit_functional.default (1)" in backend.explain()


def test_dropout_in_training_mode_draws_anew() -> None:
    call = compiled(nn.Sequential(nn.Linear(5, 64), nn.Dropout(0.5)).train())
    assert not torch.equal(call(X), call(X))
    assert "a module in training mode: call eval() first" in backend.explain()


def test_results_that_share_memory() -> None:
    """A view of an input is a copy; the input itself is returned by Dynamo."""

    def views(x: Any) -> Any:
        y = torch.relu(x @ x.mT)
        return x, x.view(-1), y, y, y[0]

    x = X.clone()
    for call in (compiled(views), dnn.from_torch(Function(views).eval(), (x,))):
        found = call(x)
        torch.testing.assert_close(found, views(x))
        found[1].fill_(7)
        assert torch.equal(x, X)


def test_inputs_that_share_memory_and_are_written() -> None:
    def written(a: Any, b: Any) -> Any:
        a.add_(1)
        return torch.relu(b @ b.mT)

    mine, eager = X.clone(), X.clone()
    torch.testing.assert_close(compiled(written)(mine, mine), written(eager, eager))
    assert torch.equal(mine, eager)


TYPES = (torch.complex64, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int16, torch.uint8)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_types_that_have_no_kernel_are_left_to_torch(dtype: Any) -> None:
    def products(x: Any) -> Any:
        return (x @ x.mT) * 2

    x, is_half = (X * 20).to(dtype), dtype in (torch.float16, torch.bfloat16)
    torch.testing.assert_close(compiled(products)(x), products(x), rtol=1e-2 if is_half else 1e-6, atol=0)
    assert backend.explain().startswith("1 native parts" if is_half else "0 native parts")
    if not is_half:
        with pytest.raises(Unimplemented, match=r"no translation is known of|ha(ve|s) no kernel"):
            dnn.from_torch(Function(products).eval(), (x,))


SCALARS = {  # functions of integers, with a number that their type does not have
    "sums": lambda x: x - 300,
    "products": lambda x: x * 0.5,
    "limits": lambda x: torch.clamp(x, 0.5, 1000),
    "choices": lambda x: torch.where(x > 3, x, 300),
    "comparisons": lambda x: x < 7.5,
    "truths": lambda x: (x.any(-1), x.all(0)),
    "sums of rows": lambda x: x.sum(-1),
}


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("name", SCALARS)
def test_integers_beside_other_numbers(name: str, dtype: Any) -> None:
    """As torch computes them, natively or not; a network of them all is right or refused."""

    def function(x: Any) -> Any:
        return SCALARS[name](x.flip(0)) if name != "sums" else SCALARS[name](x.flip(0)) + 1

    x = (X * 20).to(torch.int64).to(dtype)
    try:
        wanted = function(x)
    except RuntimeError:  # torch has no such number either
        return
    torch.testing.assert_close(compiled(function)(x), wanted)
    try:
        network = dnn.from_torch(Function(function).eval(), (x,))
    except Unimplemented:
        return
    torch.testing.assert_close(network(x), wanted)
