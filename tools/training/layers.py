"""Layers of networks that are trained, in the operators of a graph; beside this file in torch's and jax's functions.

A model is written once, as a function of layers.  Names of parameters are the same on all sides, and so are their
first values, so that losses can be compared.
"""

from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np

import asmdnn as dnn

Array = np.ndarray[Any, Any]
KEPT, EPSILON = 0.9, 1e-5  # KEPT: the share of running statistics that a step leaves


class Layers(Protocol):
    """x: a value of the side.  Each layer makes its parameters, which are named after `at`."""

    def conv(
        self, at: str, x: Any, channels: tuple[int, int], kernel: int, stride: int = 1, groups: int = 1
    ) -> Any: ...
    def bias_conv(self, at: str, x: Any, channels: tuple[int, int], kernel: int, padding: int) -> Any: ...
    def up(self, at: str, x: Any, channels: tuple[int, int]) -> Any: ...
    def norm(self, at: str, x: Any, channels: int) -> Any: ...
    def relu(self, x: Any) -> Any: ...
    def relu6(self, x: Any) -> Any: ...
    def gelu(self, x: Any) -> Any: ...
    def max_pool(self, x: Any, kernel: int, stride: int, padding: int = 0) -> Any: ...
    def mean(self, x: Any) -> Any: ...
    def flat(self, x: Any) -> Any: ...
    def joined(self, x: Any, y: Any) -> Any: ...
    def linear(self, at: str, x: Any, sizes: tuple[int, int]) -> Any: ...
    def layer_norm(self, at: str, x: Any, size: int) -> Any: ...
    def attention(self, at: str, x: Any, dims: tuple[int, int, int], heads: int) -> Any: ...
    def lstm(self, at: str, x: Any, sizes: tuple[int, int]) -> Any: ...


def initial(name: str, dims: tuple[int, ...]) -> Array:
    """Scales are 1, other vectors 0; the rest has the deviation of He's rule."""
    if len(dims) == 1:
        return np.full(dims, float(name.endswith("scale")), np.float32)
    inputs = dims[0] if len(dims) == 2 else prod(dims[1:]) if len(dims) > 3 else dims[-1]
    random = np.random.default_rng(sum(name.encode()))
    deviation = np.sqrt(2 / inputs) / (2 if len(dims) == 3 else 1)
    return np.array(random.standard_normal(dims) * deviation, np.float32)


@dataclass
class GraphLayers:
    """In a graph's operators."""

    g: dnn.Graph

    def parameter(self, name: str, *dims: int) -> Any:
        return self.g.parameter(name, dims, initial(name, dims))

    def conv(self, at: str, x: Any, channels: tuple[int, int], kernel: int, stride: int = 1, groups: int = 1) -> Any:
        w, p = self.parameter(f"{at}.w", channels[1], channels[0] // groups, kernel, kernel), (kernel // 2,) * 4
        return self.g.apply("Conv", x, w, strides=(stride,) * 2, pads=p, group=groups)

    def bias_conv(self, at: str, x: Any, channels: tuple[int, int], kernel: int, padding: int) -> Any:
        w = self.parameter(f"{at}.w", channels[1], channels[0], kernel, kernel)
        b = self.parameter(f"{at}.b", channels[1])
        return self.g.apply("Conv", x, w, b, pads=(padding,) * 4)

    def up(self, at: str, x: Any, channels: tuple[int, int]) -> Any:
        return self.g.apply("ConvTranspose", x, self.parameter(f"{at}.w", *channels, 2, 2), strides=(2, 2))

    def norm(self, at: str, x: Any, channels: int) -> Any:
        mean = self.g.state(f"{at}.mean", (channels,))
        variance = self.g.state(f"{at}.variance", (channels,), initial=1)
        y, new_mean, new_variance = self.g.apply(
            "BatchNormalization", x, self.parameter(f"{at}.scale", channels), self.parameter(f"{at}.shift", channels),
            mean, variance, results=3, training_mode=1, momentum=KEPT, epsilon=EPSILON,
        )  # fmt: skip
        self.g.update(mean, new_mean)
        self.g.update(variance, new_variance)
        return y

    def relu(self, x: Any) -> Any:
        return self.g.apply("Relu", x)

    def relu6(self, x: Any) -> Any:
        return self.g.apply("Clip", x, 0.0, 6.0)

    def gelu(self, x: Any) -> Any:
        return self.g.apply("Gelu", x)

    def max_pool(self, x: Any, kernel: int, stride: int, padding: int = 0) -> Any:
        return self.g.apply("MaxPool", x, kernel_shape=(kernel,) * 2, strides=(stride,) * 2, pads=(padding,) * 4)

    def mean(self, x: Any) -> Any:
        return self.g.apply("Flatten", self.g.apply("GlobalAveragePool", x))

    def flat(self, x: Any) -> Any:
        return self.g.apply("Flatten", x)

    def joined(self, x: Any, y: Any) -> Any:
        return self.g.apply("Concat", x, y, axis=1)

    def linear(self, at: str, x: Any, sizes: tuple[int, int]) -> Any:
        return x @ self.parameter(f"{at}.w", *sizes) + self.parameter(f"{at}.b", sizes[1])

    def layer_norm(self, at: str, x: Any, size: int) -> Any:
        scale, shift = self.parameter(f"{at}.scale", size), self.parameter(f"{at}.shift", size)
        return self.g.apply("LayerNormalization", x, scale, shift, epsilon=EPSILON)

    def attention(self, at: str, x: Any, dims: tuple[int, int, int], heads: int) -> Any:
        batch, length, width = dims
        split = np.array([batch, length, heads, width // heads])
        q, k, v = (
            self.g.apply(
                "Transpose",
                self.g.apply("Reshape", self.linear(f"{at}.{name}", x, (width, width)), split),
                perm=(0, 2, 1, 3),
            )
            for name in "qkv"
        )
        y = self.g.apply("Transpose", self.g.apply("Attention", q, k, v), perm=(0, 2, 1, 3))
        return self.linear(f"{at}.o", self.g.apply("Reshape", y, np.array(dims)), (width, width))

    def lstm(self, at: str, x: Any, sizes: tuple[int, int]) -> Any:
        size, units = sizes
        w, r = self.parameter(f"{at}.x", 1, 4 * units, size), self.parameter(f"{at}.h", 1, 4 * units, units)
        b = self.g.apply("Reshape", self.parameter(f"{at}.b", 8 * units), np.array([1, -1]))
        y, *_ = self.g.apply("LSTM", x, w, r, b, hidden_size=units, results=3)
        return self.g.apply("Squeeze", y, np.array([1]))
