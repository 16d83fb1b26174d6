"""asmdnn.torch: values and gradients of torch's own functions, memory that is shared, mistakes."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn

torch = pytest.importorskip("torch", reason="the functions are autograd's: pip install torch")
F = torch.nn.functional
ROUND = 2.0**-24


def tensor(*dims: int, seed: int = 0) -> Any:
    made = np.random.default_rng([seed, *dims]).normal(size=dims)
    return torch.tensor(made, dtype=torch.float32, requires_grad=True)


CASES: dict[str, Any] = {  # function, dims of tensors, other arguments
    "conv1d": ("conv1d", [(2, 6, 19), (8, 3, 3), (8,)], {"stride": 2, "padding": 1, "groups": 2}),
    "conv2d": ("conv2d", [(2, 6, 9, 7), (8, 6, 3, 3), (8,)], {"padding": 1}),
    "conv2d strided": ("conv2d", [(2, 6, 9, 7), (8, 6, 3, 3)], {"stride": (2, 1), "dilation": 2}),
    "depthwise": ("conv2d", [(2, 16, 9, 7), (16, 1, 3, 3), (16,)], {"padding": 1, "groups": 16}),
    "conv3d": ("conv3d", [(1, 4, 5, 6, 7), (8, 4, 3, 3, 3), (8,)], {"padding": 1}),
    "conv_transpose1d": ("conv_transpose1d", [(2, 4, 9), (4, 6, 3), (6,)], {"stride": 2, "output_padding": 1}),
    "conv_transpose2d": ("conv_transpose2d", [(2, 4, 5, 6), (4, 6, 3, 3), (6,)], {"stride": 2, "padding": 1}),
    "conv_transpose3d": ("conv_transpose3d", [(1, 4, 3, 3, 4), (4, 2, 3, 3, 3)], {}),
    "max_pool2d": ("max_pool2d", [(2, 5, 9, 8)], {"kernel_size": 3, "stride": 2, "padding": 1}),
    "avg_pool2d": ("avg_pool2d", [(2, 5, 9, 8)], {"kernel_size": 3, "padding": 1, "count_include_pad": False}),
    "local_response_norm": ("local_response_norm", [(2, 9, 4, 4)], {"size": 5, "alpha": 0.5, "k": 2.0}),
    "softmax": ("softmax", [(3, 4, 19)], {"dim": 1}),
    "log_softmax": ("log_softmax", [(7, 19)], {"dim": -1}),
    "layer_norm": ("layer_norm", [(3, 4, 19), (19,), (19,)], {"normalized_shape": (19,)}),
    "rms_norm": ("rms_norm", [(3, 4, 19), (19,)], {"normalized_shape": (19,), "eps": 1e-5}),
    "attention": ("scaled_dot_product_attention", [(2, 4, 9, 8), (2, 4, 11, 8), (2, 4, 11, 5)], {}),
    "causal": ("scaled_dot_product_attention", [(2, 4, 9, 8)] * 3, {"is_causal": True}),
}
NAMES = {"layer_norm": ("input", "weight", "bias"), "rms_norm": ("input", "weight")}


@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients(case: str) -> None:
    name, dims, more = CASES[case]
    found = []
    for module, kind in ((dnn.torch, torch.float32), (F, torch.float64)):
        tensors = [tensor(*size, seed=i).detach().to(kind).requires_grad_() for i, size in enumerate(dims)]
        named = dict(zip(NAMES.get(name, ()), tensors, strict=False))
        y = getattr(module, name)(**named, **more) if named else getattr(module, name)(*tensors, **more)
        (y * torch.linspace(-1, 1, y.numel(), dtype=kind).reshape(y.shape)).sum().backward()
        found.append([y, *(x.grad for x in tensors)])
    for ours, theirs in zip(*found, strict=True):
        assert ours.dtype == torch.float32
        room = 64 * ROUND * max(1.0, float(theirs.detach().abs().max())) * np.sqrt(sum(np.prod(size) for size in dims))
        assert float((ours.double() - theirs).abs().max()) <= room


def test_only_what_is_wanted() -> None:
    x, w = tensor(2, 6, 9, 7).detach(), tensor(8, 6, 3, 3)
    dnn.torch.conv2d(x, w).sum().backward()
    assert x.grad is None
    assert w.grad is not None
    assert not dnn.torch.conv2d(x, w.detach()).requires_grad


def test_memory_is_shared() -> None:
    """Kernels read torch's memory: a change of it is seen, and nothing was copied before."""
    x = tensor(4, 4).detach()
    seen = dnn.ops.softmax(x)
    assert np.shares_memory(np.from_dlpack(x), x.numpy())
    x += torch.arange(16.0).reshape(4, 4)
    assert not np.array_equal(dnn.torch.softmax(x, -1).numpy(), seen)


def test_a_network_learns() -> None:
    """Layers among torch's own; the loss falls as with torch's layers alone."""
    losses = []
    for module in (dnn.torch, F):
        x, w, v = tensor(8, 1, 8, 8, seed=1).detach(), tensor(4, 1, 3, 3, seed=2), tensor(64, 3, seed=3)
        optimizer, wanted = torch.optim.SGD([w, v], lr=0.01), torch.arange(8) % 3
        for _ in range(5):
            optimizer.zero_grad()
            h = module.max_pool2d(torch.relu(module.conv2d(x, w, padding=1)), 2)
            loss = F.nll_loss(module.log_softmax(h.flatten(1) @ v, 1), wanted)
            loss.backward()
            optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_mistakes() -> None:
    x, w = tensor(1, 2, 5, 5), tensor(4, 2, 3, 3)
    with pytest.raises(dnn.InvalidArguments, match=r"weight is torch.float64 on cpu, only torch.float32"):
        dnn.torch.conv2d(x, w.double())
    with pytest.raises(dnn.InvalidArguments, match="input must be a tensor of torch"):
        dnn.torch.conv2d(np.ones((1, 2, 5, 5), np.float32), w)
    with pytest.raises(dnn.InvalidArguments, match="input must be a tensor of torch, not None"):
        dnn.torch.softmax(None, -1)
    with pytest.raises(dnn.InvalidArguments, match="normalized_shape must be the last dim alone"):
        dnn.torch.layer_norm(x, (5, 5))
    with pytest.raises(dnn.InvalidArguments, match="attn_mask requires a gradient"):
        dnn.torch.scaled_dot_product_attention(*[tensor(1, 1, 2, 4)] * 3, attn_mask=tensor(2, 2))
    with pytest.raises(dnn.InvalidArguments, match="is_causal is for as many rows as keys, not 2 and 3"):
        dnn.torch.scaled_dot_product_attention(tensor(1, 1, 2, 4), *[tensor(1, 1, 3, 4)] * 2, is_causal=True)
    (first,) = torch.autograd.grad(dnn.torch.conv2d(x, w).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()
