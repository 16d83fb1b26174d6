"""Rules take all arguments of torch's operators; and numbers without axes, of which torch takes axis 0 and -1."""

from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

import pytest

pytest.importorskip("torch", reason="the torch extra")

import torch
import torch.nn.functional as F

import asmdnn as dnn
from asmdnn.aten.translation import rules
from tests.aten.modules import Function

ENGINE = dnn.Engine(threads=1)


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad():
        yield


def schemas() -> dict[str, Any]:
    """Of the operators that torch has; some names are of no overload."""
    found = {}
    for name in rules():
        operator, _, overload = name.rpartition(".")
        known = getattr(getattr(torch.ops.aten, operator, None), overload, None)
        if known is not None:
            found[name] = known._schema
    return found


def test_rules_take_all_arguments() -> None:
    """A rule that does not know of one is a TypeError for whoever gives it."""
    refused = []
    for name, schema in schemas().items():
        given = [a.name for a in schema.arguments if not a.kwarg_only]
        named = {a.name: a for a in schema.arguments if a.kwarg_only}
        try:
            signature(rules()[name]).bind("context", *given, **named)
        except TypeError as error:
            refused.append((name, str(error)))
    assert len(schemas()) > 200
    assert not refused


@pytest.mark.parametrize(("beta", "threshold"), [(1, 20), (2.0, 20), (1, 0.5), (0.5, -1.0), (-1.5, 3)])
def test_softplus(beta: float, threshold: float) -> None:
    x = torch.linspace(-6, 6, 97)
    net = dnn.from_torch(Function(lambda x: F.softplus(x, beta, threshold)).eval(), (x,), engine=ENGINE)
    assert torch.allclose(net(x), F.softplus(x.double(), beta, threshold).float(), rtol=1e-5, atol=1e-5)


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(-1),
    "mean": lambda x: x.mean(0, keepdim=True),
    "variance": lambda x: x.var(0, correction=0),
    "deviation": lambda x: x.std(-1, correction=0),
    "norm": lambda x: x.norm(dim=0),
    "full_like": lambda x: x + torch.full_like(x, 2),
    "lerp": lambda x: torch.lerp(x, x * 2, 0.25),
    "softmax": lambda x: x.softmax(-1) + 1,
    "log_softmax": lambda x: x.log_softmax(0) + 1,
    "argmax": lambda x: x.argmax(0) + 1,
    "logcumsumexp": lambda x: x.logcumsumexp(0) + 1,
    "largest": lambda x: x.amax(0),
    "transpose": lambda x: x.transpose(0, -1) + 1,
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_without_axes(name: str) -> None:
    x = torch.tensor(1.5)
    found, expected = dnn.from_torch(Function(NUMBERS[name]).eval(), (x,), engine=ENGINE)(x), NUMBERS[name](x)
    assert found.shape == expected.shape == ()
    assert torch.allclose(found, expected, equal_nan=True)


LEFT: dict[str, Callable[[Any], Any]] = {
    **NUMBERS,
    "variance of one": lambda x: (x * 2).var(0),
    "sort": lambda x: (x * 2).sort(0)[0],
    "topk": lambda x: (x * 2).topk(1)[0],
    "cumsum": lambda x: (x * 2).cumsum(0),
    "gather": lambda x: (x * 2).gather(0, torch.zeros((), dtype=torch.int64)),
    "flip": lambda x: (x * 2).flip(0),
}


@pytest.mark.parametrize("name", LEFT)
def test_a_compiled_function_of_a_number(name: str) -> None:
    """What has no kernel is left to torch."""
    x = torch.tensor(1.5)
    found = torch.compile(LEFT[name], backend="asmdnn")(x)
    assert torch.allclose(found, LEFT[name](x), equal_nan=True)
