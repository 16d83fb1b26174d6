"""A training step of a model in torch: layers in its functions, and the step."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from tools.training.layers import EPSILON, KEPT, initial
from tools.training.models import Model
from tools.training.steps import MOMENTUM, RATE, Step, data


@dataclass
class TorchLayers:
    """In torch's functions, on tensors that are made with the first call."""

    torch: Any
    parameters: dict[str, Any] = field(default_factory=dict)
    states: dict[str, Any] = field(default_factory=dict)
    modules: dict[str, Any] = field(default_factory=dict)

    @property
    def f(self) -> Any:
        return self.torch.nn.functional

    def parameter(self, name: str, *dims: int) -> Any:
        if name not in self.parameters:
            tensor = self.torch.tensor(initial(name, dims))
            if len(dims) == 4:
                tensor = tensor.contiguous(memory_format=self.torch.channels_last)
            self.parameters[name] = tensor.requires_grad_(True)
        return self.parameters[name]

    def state(self, name: str, made: Callable[[], Any]) -> Any:
        return self.states.setdefault(name, made()) if name not in self.states else self.states[name]

    def conv(self, at: str, x: Any, channels: tuple[int, int], kernel: int, stride: int = 1, groups: int = 1) -> Any:
        w = self.parameter(f"{at}.w", channels[1], channels[0] // groups, kernel, kernel)
        return self.f.conv2d(x, w, stride=stride, padding=kernel // 2, groups=groups)

    def bias_conv(self, at: str, x: Any, channels: tuple[int, int], kernel: int, padding: int) -> Any:
        w = self.parameter(f"{at}.w", channels[1], channels[0], kernel, kernel)
        b = self.parameter(f"{at}.b", channels[1])
        return self.f.conv2d(x, w, b, padding=padding)

    def up(self, at: str, x: Any, channels: tuple[int, int]) -> Any:
        return self.f.conv_transpose2d(x, self.parameter(f"{at}.w", *channels, 2, 2), stride=2)

    def norm(self, at: str, x: Any, channels: int) -> Any:
        mean = self.state(f"{at}.mean", lambda: self.torch.zeros(channels))
        variance = self.state(f"{at}.variance", lambda: self.torch.ones(channels))
        scale, shift = self.parameter(f"{at}.scale", channels), self.parameter(f"{at}.shift", channels)
        return self.f.batch_norm(x, mean, variance, scale, shift, training=True, momentum=1 - KEPT, eps=EPSILON)

    def relu(self, x: Any) -> Any:
        return self.torch.relu(x)

    def relu6(self, x: Any) -> Any:
        return self.f.relu6(x)

    def gelu(self, x: Any) -> Any:
        return self.f.gelu(x)

    def max_pool(self, x: Any, kernel: int, stride: int, padding: int = 0) -> Any:
        return self.f.max_pool2d(x, kernel, stride, padding)

    def mean(self, x: Any) -> Any:
        return x.mean((2, 3))

    def flat(self, x: Any) -> Any:
        return x.flatten(1)

    def joined(self, x: Any, y: Any) -> Any:
        return self.torch.cat((x, y), 1)

    def linear(self, at: str, x: Any, sizes: tuple[int, int]) -> Any:
        return x @ self.parameter(f"{at}.w", *sizes) + self.parameter(f"{at}.b", sizes[1])

    def layer_norm(self, at: str, x: Any, size: int) -> Any:
        scale, shift = self.parameter(f"{at}.scale", size), self.parameter(f"{at}.shift", size)
        return self.f.layer_norm(x, (size,), scale, shift, EPSILON)

    def attention(self, at: str, x: Any, dims: tuple[int, int, int], heads: int) -> Any:
        batch, length, width = dims
        q, k, v = (
            self.linear(f"{at}.{name}", x, (width, width)).reshape(batch, length, heads, -1).transpose(1, 2)
            for name in "qkv"
        )
        y = self.f.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        return self.linear(f"{at}.o", y.reshape(dims), (width, width))

    def lstm(self, at: str, x: Any, sizes: tuple[int, int]) -> Any:
        """Gates of torch are input, forget, cell, output; of ONNX input, output, forget, cell."""
        size, units = sizes
        if at not in self.modules:
            module = self.torch.nn.LSTM(size, units)
            dims = {"x": (1, 4 * units, size), "h": (1, 4 * units, units)}
            with self.torch.no_grad():
                for name, target in (("x", module.weight_ih_l0), ("h", module.weight_hh_l0)):
                    i, o, f, c = np.split(initial(f"{at}.{name}", dims[name])[0], 4)
                    target.copy_(self.torch.tensor(np.concatenate((i, f, c, o))))
                module.bias_ih_l0.zero_()
                module.bias_hh_l0.zero_()
            self.modules[at] = module
            self.parameters |= {f"{at}.{name}": value for name, value in module.named_parameters()}
        return self.modules[at](x)[0]


def of_torch(torch: Any, model: Model, batch: int, compiles: bool = False) -> Step:
    """Images have channels last, as torch's pages recommend; the optimizer's update is one fused call."""
    layers, (x, t) = TorchLayers(torch), (torch.tensor(array) for array in data(model, batch))
    if x.ndim == 4:
        x = x.contiguous(memory_format=torch.channels_last)

    def loss_of() -> Any:
        scores = model.scores(layers, x, batch)
        if t.ndim == 2:
            return torch.nn.functional.cross_entropy(scores.reshape(prod(t.shape), -1), t.reshape(-1))
        return torch.nn.functional.cross_entropy(scores, t)

    loss_of()
    optimizer = torch.optim.SGD(list(layers.parameters.values()), RATE, momentum=MOMENTUM, fused=True)
    forward = torch.compile(loss_of) if compiles else loss_of

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        loss = forward()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step
