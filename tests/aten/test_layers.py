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


NO_STATISTICS = {"running_mean": None, "running_var": None}
ELEMENTS = (
    "relu", "leaky_relu", "relu6", "elu", "gelu", "silu", "mish", "sigmoid", "tanh", "softplus", "hardswish",
    "hardsigmoid",
)  # fmt: skip
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
    "max_pool1d": ("max_pool1d", [(2, 5, 19)], {"kernel_size": 3, "dilation": 2}),
    "max_pool3d": ("max_pool3d", [(1, 3, 5, 6, 7)], {"kernel_size": 2, "ceil_mode": True}),
    "avg_pool1d": ("avg_pool1d", [(2, 5, 19)], {"kernel_size": 3, "stride": 2, "padding": 1}),
    "avg_pool3d": ("avg_pool3d", [(1, 3, 5, 6, 7)], {"kernel_size": 2}),
    "adaptive_avg_pool1d": ("adaptive_avg_pool1d", [(2, 5, 19)], {"output_size": 4}),
    "adaptive_avg_pool2d": ("adaptive_avg_pool2d", [(2, 5, 9, 8)], {"output_size": (4, 3)}),
    "adaptive_avg_pool3d": ("adaptive_avg_pool3d", [(1, 3, 5, 6, 7)], {"output_size": 1}),
    "nearest": ("interpolate", [(2, 5, 6, 7)], {"scale_factor": 2.5}),
    "nearest to a size": ("interpolate", [(2, 5, 6, 7)], {"size": (4, 11)}),
    "nearest-exact": ("interpolate", [(2, 5, 9)], {"size": 5, "mode": "nearest-exact"}),
    "linear": ("interpolate", [(2, 5, 9)], {"scale_factor": 2, "mode": "linear"}),
    "bilinear": ("interpolate", [(2, 5, 6, 7)], {"scale_factor": (1.5, 2), "mode": "bilinear"}),
    "corners": ("interpolate", [(2, 5, 6, 7)], {"size": (9, 4), "mode": "bilinear", "align_corners": True}),
    "trilinear": ("interpolate", [(1, 3, 3, 4, 5)], {"scale_factor": 2, "mode": "trilinear"}),
    "bicubic": ("interpolate", [(2, 5, 6, 7)], {"scale_factor": 2, "mode": "bicubic"}),
    "linear layer": ("linear", [(3, 4, 19), (5, 19), (5,)], {}),
    "linear layer without a bias": ("linear", [(7, 19), (5, 19)], {}),
    "batch_norm": ("batch_norm", [(3, 5, 4, 6), (5,), (5,)], NO_STATISTICS | {"training": True}),
    "group_norm": ("group_norm", [(3, 6, 4, 6), (6,), (6,)], {"num_groups": 3}),
    "instance_norm": ("instance_norm", [(3, 5, 4, 6), (5,), (5,)], {}),
    "prelu": ("prelu", [(3, 5, 4, 6), (5,)], {}),
    "prelu of one slope": ("prelu", [(7, 5), (1,)], {}),
    **{name: (name, [(5, 19)], {}) for name in ELEMENTS},
    "gelu by tanh": ("gelu", [(5, 19)], {"approximate": "tanh"}),
    "local_response_norm": ("local_response_norm", [(2, 9, 4, 4)], {"size": 5, "alpha": 0.5, "k": 2.0}),
    "softmax": ("softmax", [(3, 4, 19)], {"dim": 1}),
    "log_softmax": ("log_softmax", [(7, 19)], {"dim": -1}),
    "layer_norm": ("layer_norm", [(3, 4, 19), (19,), (19,)], {"normalized_shape": (19,)}),
    "rms_norm": ("rms_norm", [(3, 4, 19), (19,)], {"normalized_shape": (19,), "eps": 1e-5}),
    "attention": ("scaled_dot_product_attention", [(2, 4, 9, 8), (2, 4, 11, 8), (2, 4, 11, 5)], {}),
    "causal": ("scaled_dot_product_attention", [(2, 4, 9, 8)] * 3, {"is_causal": True}),
}
OF_CHANNELS = ("input", "weight", "bias")
NAMES = {"layer_norm": OF_CHANNELS, "rms_norm": ("input", "weight"), "batch_norm": OF_CHANNELS,
         "group_norm": OF_CHANNELS, "instance_norm": OF_CHANNELS}  # fmt: skip


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


def test_all_layers_are_here() -> None:
    named = {name for name, value in vars(dnn.torch).items() if callable(value)}
    assert named - {"embedding"} == {name for name, *_ in CASES.values()}


@pytest.mark.parametrize("training", [True, False])
def test_running_statistics(training: bool) -> None:
    """In training they are moved, without a gradient; else they are those that normalise, and stay."""
    found = []
    for module, kind in ((dnn.torch, torch.float32), (F, torch.float64)):
        sizes = enumerate([(3, 5, 4, 6), (5,)])
        x, scale = (tensor(*size, seed=i).detach().to(kind).requires_grad_() for i, size in sizes)
        mean, variance = torch.linspace(-1, 1, 5, dtype=kind), torch.linspace(0.5, 2, 5, dtype=kind)
        y = module.batch_norm(x, mean, variance, scale, training=training, momentum=0.25)
        (y * y * torch.linspace(-1, 1, y.numel(), dtype=kind).reshape(y.shape)).sum().backward()
        assert not mean.requires_grad
        found.append([y, x.grad, scale.grad, mean, variance])
    for ours, theirs in zip(*found, strict=True):
        assert float((ours.double() - theirs).abs().max()) <= 1e-5 * float(theirs.abs().max())


def test_embedding() -> None:
    found = []
    places = torch.tensor([[1, 3, 1], [0, 6, 2]])
    for module in (dnn.torch, F):
        table = tensor(7, 5)
        y = module.embedding(places, table, padding_idx=3)
        (y * torch.arange(30.0).reshape(y.shape)).sum().backward()
        found.append([y, table.grad])
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(*found, strict=True))
    with pytest.raises(dnn.InvalidArguments, match=r"input must be a tensor of torch.int32 or torch.int64"):
        dnn.torch.embedding(places.float(), table)


def test_a_block_without_torchs_kernels() -> None:
    """Norms with running statistics, activations and a head: five steps as those of torch's layers."""
    losses = []
    for module in (dnn.torch, F):
        sizes = enumerate([(8, 3, 8, 8), (6, 3, 3, 3), (6,), (4, 6)])
        x, w, scale, head = (tensor(*size, seed=i) for i, size in sizes)
        statistics = torch.zeros(6), torch.ones(6)
        optimizer = torch.optim.SGD([w, scale, head], lr=0.05)
        for _ in range(5):
            optimizer.zero_grad()
            h = module.batch_norm(module.conv2d(x.detach(), w, padding=1), *statistics, scale, training=True)
            h = module.adaptive_avg_pool2d(module.gelu(h), 1).flatten(1)
            loss = -module.log_softmax(module.linear(h, head), 1)[:, 1].mean()
            loss.backward()
            optimizer.step()
        losses.append([float(loss.detach()), *statistics[1].tolist()])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


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
    with pytest.raises(dnn.InvalidArguments, match=r"input has dims \(1, 5, 1, 1\), one value for each channel"):
        dnn.torch.batch_norm(tensor(1, 5, 1, 1), None, None, training=True)
    with pytest.raises(dnn.InvalidArguments, match="running_mean and running_var must be given where"):
        dnn.torch.batch_norm(x, None, None)
    with pytest.raises(dnn.InvalidArguments, match=r"mode must be one of nearest, .*bicubic, not 'area'"):
        dnn.torch.interpolate(x, 3, mode="area")
    with pytest.raises(dnn.InvalidArguments, match="approximate must be 'none' or 'tanh', not 'erf'"):
        dnn.torch.gelu(x, "erf")
    with pytest.raises(dnn.InvalidArguments, match="attn_mask requires a gradient"):
        dnn.torch.scaled_dot_product_attention(*[tensor(1, 1, 2, 4)] * 3, attn_mask=tensor(2, 2))
    with pytest.raises(dnn.InvalidArguments, match="is_causal is for as many rows as keys, not 2 and 3"):
        dnn.torch.scaled_dot_product_attention(tensor(1, 1, 2, 4), *[tensor(1, 1, 3, 4)] * 2, is_causal=True)
    (first,) = torch.autograd.grad(dnn.torch.conv2d(x, w).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()
