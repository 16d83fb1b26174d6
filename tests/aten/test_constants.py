"""What a graph computes of constants is data; what is random, and what callers may write to, is not."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="the torch extra")

import torch
import torch.nn.functional as F
from torch import nn

import asmdnn as dnn
from asmdnn.aten import backend
from asmdnn.errors import Unimplemented
from tests.aten.test_torch import ENGINE, Function, assert_equal


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


X = torch.randn(3, 5, 6)


def mask_of_packed_positions(x: Any) -> Any:
    """As language models write it: pairs of indices into data, a difference, one that reads a shape alone."""
    positions = torch.arange(5).expand(3, -1)
    starts = torch.diff(positions, prepend=positions.new_ones(3, 1), dim=-1) != 1
    packed = starts.cumsum(-1)
    rows, columns = torch.arange(3)[:, None], torch.arange(5)[None]
    return x.masked_fill((packed[rows, columns] == 1)[..., None], -1.0) @ (x.mT + x.new_ones(5))


def buckets(x: Any) -> Any:
    """As T5's positions: what is too large for a network is data, and its use is not."""
    apart = torch.arange(6)[None] - torch.arange(5)[:, None]
    large = (torch.log(apart.float().abs() / 2) * 2).to(torch.int64)
    large = torch.min(large, torch.full_like(large, 3))
    return (x + torch.where(apart < 2, apart, large).float()) @ x.mT


FUNCTIONS = {"packed positions": mask_of_packed_positions, "buckets": buckets}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operators_without_a_rule(name: str) -> None:
    function = FUNCTIONS[name]
    net = dnn.from_torch(Function(function).eval(), (X,), engine=ENGINE)
    assert net.network.refused == {}
    assert_equal(net(X), function(X))
    assert_equal(torch.compile(Function(function), backend=backend.asmdnn)(X), function(X))
    assert "torch computes nothing" in backend.explain()


def test_weights_that_are_computed_are_never_stale() -> None:
    """By an operator without a rule, of a parameter."""

    class Computed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6, 6))

        def forward(self, x: Any) -> Any:
            return F.relu(x @ torch.linalg.matrix_exp(self.weight))

    module = Computed().eval()
    assert_equal(dnn.from_torch(module, (X,), engine=ENGINE)(X), module(X))
    compiled = torch.compile(module, backend=backend.asmdnn)
    for _ in range(2):
        assert_equal(compiled(X), module(X))
        assert "torch computes nothing" in backend.explain()
        module.weight.mul_(-0.5)


def test_random_numbers_are_drawn_in_every_call() -> None:
    """A seed gives torch's numbers; a network has none to give."""

    def function(x: Any) -> Any:
        return F.relu(x @ x.mT) + torch.rand(5)

    compiled = torch.compile(Function(function), backend=backend.asmdnn)
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        found.append(compiled(X))
        torch.manual_seed(seed)
        assert_equal(found[-1], function(X))
    assert not torch.equal(*found)
    with pytest.raises(Unimplemented, match=r"no translation is known of aten\.rand\.default"):
        dnn.from_torch(Function(function).eval(), (X,))


def test_results_are_not_the_graphs_constants() -> None:
    """A caller writes to what it gets; the next call gives the same."""

    def function(x: Any) -> Any:
        table = torch.linalg.matrix_exp(torch.eye(4))
        return x @ x.mT, torch.arange(4), torch.as_strided(table, (2, 2), (1, 4)), table

    compiled = torch.compile(Function(function), backend=backend.asmdnn)
    for _ in range(2):
        found = compiled(X)
        assert_equal(found, function(X))
        for tensor in found:
            tensor.fill_(7)


def test_integers_that_networks_do_not_hold() -> None:
    """The part is left to torch for those, and native for others; an index out of range is torch's error."""

    def function(i: Any, table: Any) -> Any:
        return (i + 1) * 2 - i, F.relu(table[i.clamp(max=9)] @ table.mT)

    table = torch.randn(10, 6)
    compiled = torch.compile(Function(function), backend=backend.asmdnn)
    for numbers in ([1, 2], [3, 1 << 40], [2, 2]):
        i = torch.tensor(numbers)
        assert_equal(compiled(i, table), function(i, table))
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        compiled(torch.tensor([0, -11]), table)


def test_what_is_folded_is_not_computed_again() -> None:
    """A product is left."""
    net = dnn.from_torch(Function(lambda x: x @ torch.linalg.matrix_exp(torch.eye(6))).eval(), (X,), engine=ENGINE)
    assert "1 primitives" in repr(net)
    assert_equal(net(X), X * np.e)
