"""Modules of torch as people write them, small; each with inputs."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1, groups=2)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu_(self.second(F.relu(self.norm(self.first(x)))) + x)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.top, self.down = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.up, self.out = nn.ConvTranspose2d(32, 16, 2, 2), nn.Conv2d(32, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        top = F.gelu(self.top(x))
        return torch.sigmoid(self.out(torch.cat([self.up(F.silu(self.down(top))), top], 1)))


class Sequences(nn.Module):
    """Two results, one of them of a getitem."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(100, 32)
        self.layers = nn.LSTM(32, 48, 2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(96, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y, (last, _) = self.layers(self.table(x))
        return self.out(y[:, -1]).log_softmax(-1), last


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(32, 48)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)[0]


class Block(nn.Module):
    """Of a language model: causal attention with one product for q, k and v."""

    def __init__(self) -> None:
        super().__init__()
        self.joint, self.out = nn.Linear(64, 192), nn.Linear(64, 64)
        self.before, self.behind = nn.LayerNorm(64), nn.LayerNorm(64)
        self.wide = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Dropout(0.1), nn.Linear(256, 64))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = self.joint(self.before(x)).view(batch, length, 3, 4, 16).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + self.out(y)
        return x + self.wide(self.behind(x))


class Mobile(nn.Module):
    """Depthwise, squeeze and excitation, a dictionary of results."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish(),
            nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.ReLU6(), nn.Conv2d(16, 24, 1), nn.MaxPool2d(2),
        )  # fmt: skip
        self.scale = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(24, 8, 1), nn.ReLU(), nn.Conv2d(8, 24, 1), nn.Hardsigmoid()
        )
        self.out = nn.Linear(24, 10)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        x = self.stem(x)
        x = x * self.scale(x)
        return {"logits": self.out(x.mean((2, 3))), "features": x}


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(64, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.attention(x, x, x)[0]
        return y


def modules() -> dict[str, tuple[nn.Module, tuple[Any, ...]]]:
    """By name, in evaluation mode, with inputs."""
    torch.manual_seed(0)
    found = {
        "perceptron": (
            nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 10), nn.Softmax(-1)), torch.randn(7, 20)
        ),
        "residual": (Residual(), torch.randn(2, 8, 20, 20)),
        "unet": (UNet(), torch.randn(1, 3, 32, 32)),
        "lstm": (Sequences(), torch.randint(0, 100, (3, 9))),
        "gru": (Gated(), torch.randn(9, 3, 32)),
        "block": (Block(), torch.randn(2, 10, 64)),
        "mobile": (Mobile(), torch.randn(2, 3, 64, 64)),
        "encoder": (
            nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2), torch.randn(2, 10, 64)
        ),
        "encoder, norms first": (
            nn.TransformerEncoderLayer(64, 4, 128, activation="gelu", batch_first=True, norm_first=True),
            torch.randn(2, 10, 64),
        ),
        "attention": (SelfAttention(), torch.randn(2, 10, 64)),
        "norms and resizing": (
            nn.Sequential(
                nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.Upsample(scale_factor=2), nn.InstanceNorm2d(8, affine=True),
                nn.Upsample(scale_factor=2, mode="bilinear"), nn.AvgPool2d(2),
            ),
            torch.randn(1, 3, 16, 16),
        ),
    }  # fmt: skip
    return {name: (module.eval(), (x,)) for name, (module, x) in found.items()}


class Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)
