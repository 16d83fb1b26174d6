"""A training step of a model in jax: layers in its functions, and the step, compiled once; it takes arrays over.

Images have channels last, which XLA's convolutions on CPUs read without a copy.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tools.training.layers import EPSILON, KEPT, Array, initial
from tools.training.models import Model
from tools.training.steps import MOMENTUM, RATE, Step, data

IMAGES = ("NHWC", "HWIO", "NHWC")


@dataclass
class JaxLayers:
    """parameters, statistics: by name; a layer that finds none makes its first values.  moved: statistics after it."""

    jax: Any
    parameters: dict[str, Any] = field(default_factory=dict)
    statistics: dict[str, Any] = field(default_factory=dict)
    moved: dict[str, Any] = field(default_factory=dict)

    def parameter(self, name: str, *dims: int) -> Any:
        """Weights of convolutions lie as HWIO."""
        if name not in self.parameters:
            made = initial(name, dims)
            self.parameters[name] = np.ascontiguousarray(made.transpose(2, 3, 1, 0) if len(dims) == 4 else made)
        return self.parameters[name]

    def conv(self, at: str, x: Any, channels: tuple[int, int], kernel: int, stride: int = 1, groups: int = 1) -> Any:
        w = self.parameter(f"{at}.w", channels[1], channels[0] // groups, kernel, kernel)
        around = ((kernel // 2,) * 2,) * 2
        return self.jax.lax.conv_general_dilated(
            x, w, (stride,) * 2, around, dimension_numbers=IMAGES, feature_group_count=groups
        )

    def bias_conv(self, at: str, x: Any, channels: tuple[int, int], kernel: int, padding: int) -> Any:
        w = self.parameter(f"{at}.w", channels[1], channels[0], kernel, kernel)
        y = self.jax.lax.conv_general_dilated(x, w, (1, 1), ((padding,) * 2,) * 2, dimension_numbers=IMAGES)
        return y + self.parameter(f"{at}.b", channels[1])

    def up(self, at: str, x: Any, channels: tuple[int, int]) -> Any:
        w = self.parameter(f"{at}.w", *channels, 2, 2).swapaxes(2, 3)[::-1, ::-1]
        return self.jax.lax.conv_transpose(x, w, (2, 2), "VALID", dimension_numbers=IMAGES)

    def norm(self, at: str, x: Any, channels: int) -> Any:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        for name, now in (("mean", mean), ("variance", variance)):
            before = self.statistics.get(f"{at}.{name}", np.full(channels, float(name == "variance"), np.float32))
            self.moved[f"{at}.{name}"] = KEPT * before + (1 - KEPT) * now
        scale, shift = self.parameter(f"{at}.scale", channels), self.parameter(f"{at}.shift", channels)
        return (x - mean) * (scale * self.jax.lax.rsqrt(variance + EPSILON)) + shift

    def relu(self, x: Any) -> Any:
        return self.jax.nn.relu(x)

    def relu6(self, x: Any) -> Any:
        return self.jax.nn.relu6(x)

    def gelu(self, x: Any) -> Any:
        return self.jax.nn.gelu(x, approximate=False)

    def max_pool(self, x: Any, kernel: int, stride: int, padding: int = 0) -> Any:
        window, step, around = (1, kernel, kernel, 1), (1, stride, stride, 1), ((0, 0), *((padding,) * 2,) * 2, (0, 0))
        return self.jax.lax.reduce_window(x, -np.inf, self.jax.lax.max, window, step, around)

    def mean(self, x: Any) -> Any:
        return x.mean((1, 2))

    def flat(self, x: Any) -> Any:
        return x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)

    def joined(self, x: Any, y: Any) -> Any:
        return self.jax.numpy.concatenate((x, y), 3)

    def linear(self, at: str, x: Any, sizes: tuple[int, int]) -> Any:
        return x @ self.parameter(f"{at}.w", *sizes) + self.parameter(f"{at}.b", sizes[1])

    def layer_norm(self, at: str, x: Any, size: int) -> Any:
        scale, shift = self.parameter(f"{at}.scale", size), self.parameter(f"{at}.shift", size)
        apart = x - x.mean(-1, keepdims=True)
        return apart * self.jax.lax.rsqrt((apart * apart).mean(-1, keepdims=True) + EPSILON) * scale + shift

    def attention(self, at: str, x: Any, dims: tuple[int, int, int], heads: int) -> Any:
        batch, length, width = dims
        q, k, v = (self.linear(f"{at}.{name}", x, (width, width)).reshape(batch, length, heads, -1) for name in "qkv")
        return self.linear(f"{at}.o", self.jax.nn.dot_product_attention(q, k, v).reshape(dims), (width, width))

    def lstm(self, at: str, x: Any, sizes: tuple[int, int]) -> Any:
        """Gates as ONNX has them: input, output, forget, cell."""
        size, units = sizes
        w, r = self.parameter(f"{at}.x", 1, 4 * units, size)[0], self.parameter(f"{at}.h", 1, 4 * units, units)[0]
        bias, sigmoid, tanh = self.parameter(f"{at}.b", 8 * units), self.jax.nn.sigmoid, self.jax.numpy.tanh
        read = x @ w.T + (bias[: 4 * units] + bias[4 * units :])

        def step(state: Any, now: Any) -> Any:
            h, c = state
            i, o, f, g = self.jax.numpy.split(now + h @ r.T, 4, 1)
            c = sigmoid(f) * c + sigmoid(i) * tanh(g)
            h = sigmoid(o) * tanh(c)
            return (h, c), h

        zero = self.jax.numpy.zeros((x.shape[1], units), np.float32)
        return self.jax.lax.scan(step, (zero, zero), read)[1]


def of_jax(jax: Any, model: Model, batch: int) -> Step:
    """What a step moves is donated: it becomes the memory of what is moved to."""
    x, t = (jax.numpy.asarray(last(array)) for array in data(model, batch))

    def loss_of(parameters: Any, statistics: Any) -> Any:
        layers = JaxLayers(jax, parameters, statistics)
        scores = jax.nn.log_softmax(model.scores(layers, x, batch))
        return -jax.numpy.take_along_axis(scores, t[..., None], -1).mean(), layers.moved

    def step(parameters: Any, momenta: Any, statistics: Any) -> Any:
        (loss, statistics), found = jax.value_and_grad(loss_of, has_aux=True)(parameters, statistics)
        momenta = jax.tree.map(lambda m, g: MOMENTUM * m + g, momenta, found)
        return jax.tree.map(lambda p, m: p - RATE * m, parameters, momenta), momenta, statistics, loss

    first = JaxLayers(jax)
    jax.eval_shape(lambda: model.scores(first, x, batch))  # makes the parameters
    statistics = {
        name: np.full(value.shape, float("variance" in name), np.float32) for name, value in first.moved.items()
    }
    state = [jax.tree.map(jax.numpy.array, kept) for kept in (first.parameters, first.parameters, statistics)]
    state[1] = jax.tree.map(jax.numpy.zeros_like, state[1])
    compiled = jax.jit(step, donate_argnums=(0, 1, 2))

    def call() -> float:
        *state[:], loss = compiled(*state)
        return float(loss)

    return call


def last(array: Array) -> Array:
    """Images of data() with channels last."""
    return array.transpose(0, 2, 3, 1) if array.ndim == 4 else array
