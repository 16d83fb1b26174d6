"""Layers of torch.nn that are several operators here, beside torch; aliases, types and truths that are refused."""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch", reason="the torch extra")

import torch
import torch.nn.functional as F
from torch import nn

import asmdnn as dnn
from asmdnn.aten import backend
from asmdnn.errors import InvalidArguments, Unimplemented
from tests.aten.modules import Function

ENGINE = dnn.Engine(threads=1)
RELATIVE = 1e-5


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad():
        yield


torch.manual_seed(7)
X, WORDS = torch.randn(3, 4, 6), torch.randint(0, 50, (4, 6))
LAYERS: dict[str, tuple[nn.Module, tuple[Any, ...]]] = {
    "Bilinear": (nn.Bilinear(5, 6, 7), (torch.randn(4, 5), torch.randn(4, 6))),
    "Bilinear without bias": (nn.Bilinear(5, 6, 7, bias=False), (torch.randn(2, 4, 5), torch.randn(2, 4, 6))),
    "EmbeddingBag, mean": (nn.EmbeddingBag(50, 8, mode="mean"), (WORDS,)),
    "EmbeddingBag, sum": (nn.EmbeddingBag(50, 8, mode="sum"), (WORDS,)),
    "EmbeddingBag, max": (nn.EmbeddingBag(50, 8, mode="max"), (WORDS,)),
    "CosineSimilarity": (nn.CosineSimilarity(dim=1), (X, X.flip(0) + 1)),
    "RReLU": (nn.RReLU(0.1, 0.4), (X,)),
    "Unfold": (nn.Unfold((2, 3), padding=1, stride=2), (torch.randn(2, 6, 9, 11),)),
    "AdaptiveMaxPool1d": (nn.AdaptiveMaxPool1d(4), (X,)),
    "AdaptiveAvgPool3d": (nn.AdaptiveAvgPool3d((2, 3, 2)), (torch.randn(1, 4, 5, 6, 7),)),
    "circular Conv2d": (
        nn.Conv2d(6, 4, 3, padding=(1, 2), padding_mode="circular"), (torch.randn(2, 6, 9, 11),)
    ),
    "AdaptiveLogSoftmaxWithLoss": (
        Function(nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10]).log_prob), (torch.randn(4, 16),)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    module, inputs = LAYERS[name]
    module.eval()
    net = dnn.from_torch(module, inputs, engine=ENGINE)
    assert net.network.refused == {}
    wanted = module(*inputs)
    torch.testing.assert_close(net(*inputs), wanted, rtol=0, atol=RELATIVE * float(wanted.abs().max()))


def test_results_are_no_aliases() -> None:
    """Of inputs, of parameters, of one another; as from_torch and as torch.compile."""
    weight = torch.randn(3, 4)

    class Aliases(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(weight.clone())

        def forward(self, x: torch.Tensor) -> Any:
            y = x @ self.weight
            return y, y.view(-1), x.t(), self.weight * 1

    module, x = Aliases().eval(), torch.randn(2, 3)
    before, wanted = x.clone(), [part.clone() for part in module(x)]
    for run in (dnn.from_torch(module, (x,), engine=ENGINE), torch.compile(module, backend=backend.asmdnn)):
        for _ in range(2):
            found = run(x)
            for a, b in zip(found, wanted, strict=True):
                torch.testing.assert_close(a, b, rtol=0, atol=1e-5)
            found[0].zero_()
            if isinstance(run, nn.Module):  # torch.compile keeps torch's aliases
                continue
            assert torch.equal(found[1] != 0, wanted[1] != 0)
            for part in found[1:]:
                part.fill_(7)
            assert torch.equal(x, before)
            assert torch.equal(module.weight, weight)


@pytest.mark.parametrize(
    ("function", "inputs", "what"),
    [
        (lambda x: F.max_pool2d(x, 2, return_indices=True), (torch.randn(1, 2, 4, 4),), "its result 1 has no trans"),
        (
            lambda i, starts: F.embedding_bag(i, torch.ones(50, 8), starts),
            (WORDS.flatten(), torch.tensor([0, 5, 9])),
            "bags of several sizes, or with padding",
        ),
        (lambda x: F.adaptive_avg_pool1d(x, 150), (torch.randn(1, 2, 200),), "windows of different sizes"),
        (lambda x: F.rrelu(x, training=True), (X,), "no translation|training mode|cannot trace"),
        (lambda x: F.lp_pool1d(torch.view_as_complex(x), 2, 2), (torch.randn(2, 8, 2),), "complex|cannot trace"),
        (lambda x: x + 1, (torch.zeros(3, dtype=torch.complex64),), r"torch\.complex64"),
        (lambda x: x * 2, (torch.zeros(3, dtype=torch.int16),), r"torch\.int16"),
    ],
)  # fmt: skip
def test_refusals(function: Any, inputs: Any, what: str) -> None:
    with pytest.raises(Unimplemented, match=what) as raised:
        dnn.from_torch(Function(function).eval(), inputs, engine=ENGINE)
    assert "\n" not in str(raised.value)


def test_a_compiled_model_in_training_mode_is_left_to_torch_where_it_draws() -> None:
    module, x = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5), nn.Linear(6, 6)).train(), torch.randn(64, 6)
    compiled = torch.compile(module, backend=backend.asmdnn, options={"engine": ENGINE})
    torch.manual_seed(1)
    first = compiled(x)
    assert not torch.equal(first, compiled(x)), "random numbers are drawn in every call"
    with pytest.raises(InvalidArguments, match=r"the module is in training mode: call module\.eval\(\) first"):
        dnn.from_torch(module, (x,))
