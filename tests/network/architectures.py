"""Six architectures that are trained, each written twice: in the graph's operators, and in torch's functions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn import optim

Symbols = Mapping[str, Any]
RANDOM_SEED = 5


@dataclass(frozen=True)
class Architecture:
    """weights: dims of parameters by name; feeds: dims of the inputs of floats; classes: dims of the labels, and how
    many there are; graph, torch: the loss, of what makes it, parameters and inputs by name; tokens: dims of an input of
    numbers of words, and how many there are."""

    weights: Mapping[str, tuple[int, ...]]
    feeds: Mapping[str, tuple[int, ...]]
    classes: tuple[tuple[int, ...], int]
    graph: Callable[[dnn.Graph, Symbols], Any]
    torch: Callable[[Any, Symbols], Any]
    optimizer: Any
    torch_optimizer: Callable[[Any, Any], Any]
    tokens: tuple[tuple[int, ...], int] | None = None

    def initial(self) -> dict[str, np.ndarray]:
        """Scales are 1 and what else has one dim is 0; weights have the deviation of He's rule."""
        random, found = np.random.default_rng(RANDOM_SEED), {}
        for name, dims in self.weights.items():
            if len(dims) == 1:
                found[name] = np.full(dims, float("scale" in name), np.float32)
            else:
                inputs = dims[-2] if len(dims) < 4 else np.prod(dims[1:])
                found[name] = (random.standard_normal(dims) / np.sqrt(inputs)).astype(np.float32)
        return found

    def given(self) -> dict[str, np.ndarray]:
        random = np.random.default_rng(RANDOM_SEED + 1)
        found = {name: random.standard_normal(dims).astype(np.float32) for name, dims in self.feeds.items()}
        if self.tokens is not None:
            found["words"] = random.integers(0, self.tokens[1], self.tokens[0])
        return found | {"t": random.integers(0, self.classes[1], self.classes[0])}

    def step(self, engine: dnn.Engine) -> Any:
        g = dnn.Graph("architecture")
        values = {name: g.input(name, array.shape, array.dtype) for name, array in self.given().items()}
        values |= {name: g.parameter(name, array.shape, array) for name, array in self.initial().items()}
        return g.train(self.graph(g, values), self.optimizer, engine=engine)


def classified(g: dnn.Graph, scores: Any, v: Symbols) -> Any:
    return g.apply("SoftmaxCrossEntropyLoss", scores, v["t"])


def i64(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def mlp(g: dnn.Graph, v: Symbols) -> Any:
    h = v["x"]
    for i in range(2):
        h = g.apply("Relu", h @ v[f"w{i}"] + v[f"b{i}"])
    return classified(g, h @ v["w2"] + v["b2"], v)


def torch_mlp(torch: Any, v: Symbols) -> Any:
    h = v["x"]
    for i in range(2):
        h = torch.relu(h @ v[f"w{i}"] + v[f"b{i}"])
    return torch.nn.functional.cross_entropy(h @ v["w2"] + v["b2"], v["t"])


def normalized(g: dnn.Graph, x: Any, v: Symbols, at: str) -> Any:
    """By the statistics of the batch; the running ones are not kept."""
    (size,) = g.parameters[f"{at}.scale"]
    y, *_ = g.apply(
        "BatchNormalization", x, v[f"{at}.scale"], v[f"{at}.shift"], np.zeros(size, np.float32),
        np.ones(size, np.float32), results=3, training_mode=1,
    )  # fmt: skip
    return y


def torch_normalized(torch: Any, x: Any, v: Symbols, at: str) -> Any:
    return torch.nn.functional.batch_norm(x, None, None, v[f"{at}.scale"], v[f"{at}.shift"], training=True)


def cnn(g: dnn.Graph, v: Symbols) -> Any:
    h = g.apply("Relu", normalized(g, g.apply("Conv", v["x"], v["a"], pads=(1, 1, 1, 1)), v, "n"))
    h = g.apply("MaxPool", h, kernel_shape=(2, 2), strides=(2, 2))
    h = g.apply("Relu", normalized(g, g.apply("Conv", h, v["b"], strides=(2, 2), pads=(1, 1, 1, 1)), v, "m"))
    return classified(g, g.apply("Flatten", g.apply("GlobalAveragePool", h)) @ v["head"], v)


def torch_cnn(torch: Any, v: Symbols) -> Any:
    f = torch.nn.functional
    h = torch.relu(torch_normalized(torch, f.conv2d(v["x"], v["a"], padding=1), v, "n"))
    h = f.max_pool2d(h, 2)
    h = torch.relu(torch_normalized(torch, f.conv2d(h, v["b"], stride=2, padding=1), v, "m"))
    return f.cross_entropy(h.mean((2, 3)) @ v["head"], v["t"])


def mobilenet(g: dnn.Graph, v: Symbols) -> Any:
    """An inverted residual: points, a depthwise convolution, points, and the sum."""
    h = g.apply("Clip", normalized(g, g.apply("Conv", v["x"], v["expand"]), v, "n"), 0.0, 6.0)
    h = g.apply("Clip", normalized(g, g.apply("Conv", h, v["deep"], group=24, pads=(1, 1, 1, 1)), v, "m"), 0.0, 6.0)
    h = v["x"] + normalized(g, g.apply("Conv", h, v["project"]), v, "o")
    return classified(g, g.apply("Flatten", g.apply("GlobalAveragePool", h)) @ v["head"], v)


def torch_mobilenet(torch: Any, v: Symbols) -> Any:
    f = torch.nn.functional
    h = torch_normalized(torch, f.conv2d(v["x"], v["expand"]), v, "n").clamp(0, 6)
    h = torch_normalized(torch, f.conv2d(h, v["deep"], groups=24, padding=1), v, "m").clamp(0, 6)
    h = v["x"] + torch_normalized(torch, f.conv2d(h, v["project"]), v, "o")
    return f.cross_entropy(h.mean((2, 3)) @ v["head"], v["t"])


def unet(g: dnn.Graph, v: Symbols) -> Any:
    """One level: down, up by a transposed convolution, joined with what was before, and a class for every pixel."""
    pads = {"pads": (1, 1, 1, 1)}
    high = g.apply("Relu", g.apply("Conv", v["x"], v["in"], v["in.shift"], **pads))
    low = g.apply("MaxPool", high, kernel_shape=(2, 2), strides=(2, 2))
    low = g.apply("Relu", g.apply("Conv", low, v["low"], v["low.shift"], **pads))
    up = g.apply("ConvTranspose", low, v["up"], strides=(2, 2))
    joined = g.apply("Relu", g.apply("Conv", g.apply("Concat", high, up, axis=1), v["join"], **pads))
    return classified(g, g.apply("Conv", joined, v["out"]), v)


def torch_unet(torch: Any, v: Symbols) -> Any:
    f = torch.nn.functional
    high = torch.relu(f.conv2d(v["x"], v["in"], v["in.shift"], padding=1))
    low = torch.relu(f.conv2d(f.max_pool2d(high, 2), v["low"], v["low.shift"], padding=1))
    up = f.conv_transpose2d(low, v["up"], stride=2)
    joined = torch.relu(f.conv2d(torch.cat((high, up), 1), v["join"], padding=1))
    return f.cross_entropy(f.conv2d(joined, v["out"]), v["t"])


UNITS = 16


def lstm(g: dnn.Graph, v: Symbols) -> Any:
    """Both directions; the last states say the class."""
    x = g.apply("Gather", v["table"], v["words"])
    weights = (v[name] for name in ("w", "r", "both"))
    _, last, _ = g.apply("LSTM", x, *weights, hidden_size=UNITS, direction="bidirectional", results=3)
    rows = g.apply("Reshape", g.apply("Transpose", last, perm=(1, 0, 2)), i64(6, 2 * UNITS))
    return classified(g, rows @ v["head"], v)


def torch_lstm(torch: Any, v: Symbols) -> Any:
    """Gates in ONNX's order."""
    x, ends = v["table"][v["words"]], []
    for d in range(2):
        h = c = torch.zeros(x.shape[1], UNITS, dtype=x.dtype)
        for row in x.flip(0) if d else x:
            sums = row @ v["w"][d].T + h @ v["r"][d].T + v["both"][d].reshape(2, -1).sum(0)
            i, o, f, g = sums.chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        ends.append(h)
    return torch.nn.functional.cross_entropy(torch.cat(ends, 1) @ v["head"], v["t"])


BATCH, LENGTH, HEADS, WIDTH = 4, 6, 2, 16


def transformer(g: dnn.Graph, v: Symbols) -> Any:
    """A causal block in front of a class for every place."""
    x = g.apply("Gather", v["table"], v["words"]) + v["places"]
    h = g.apply("LayerNormalization", x, v["n.scale"], v["n.shift"])
    split = i64(BATCH, LENGTH, HEADS, WIDTH // HEADS)
    q, k, o = (
        g.apply("Transpose", g.apply("Reshape", h @ v[name], split), perm=(0, 2, 1, 3)) for name in ("q", "k", "v")
    )
    y = g.apply("Transpose", g.apply("Attention", q, k, o, is_causal=1), perm=(0, 2, 1, 3))
    x = x + g.apply("Reshape", y, i64(BATCH, LENGTH, WIDTH)) @ v["o"]
    h = g.apply("LayerNormalization", x, v["m.scale"], v["m.shift"])
    x = x + g.apply("Gelu", h @ v["up"] + v["up.shift"]) @ v["down"]
    return classified(g, g.apply("Reshape", x @ v["head"], i64(BATCH * LENGTH, 7)), v)


def torch_transformer(torch: Any, v: Symbols) -> Any:
    f = torch.nn.functional
    x = v["table"][v["words"]] + v["places"]
    h = f.layer_norm(x, (WIDTH,), v["n.scale"], v["n.shift"])
    q, k, o = ((h @ v[name]).reshape(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for name in ("q", "k", "v"))
    y = f.scaled_dot_product_attention(q, k, o, is_causal=True).transpose(1, 2)
    x = x + y.reshape(BATCH, LENGTH, WIDTH) @ v["o"]
    h = f.layer_norm(x, (WIDTH,), v["m.scale"], v["m.shift"])
    x = x + f.gelu(h @ v["up"] + v["up.shift"]) @ v["down"]
    return f.cross_entropy((x @ v["head"]).reshape(-1, 7), v["t"])


def norm(at: str, size: int) -> dict[str, tuple[int, ...]]:
    return {f"{at}.scale": (size,), f"{at}.shift": (size,)}


DESCENT = optim.SGD(0.05, momentum=0.9), lambda torch, p: torch.optim.SGD(p, 0.05, momentum=0.9)
ADAM = optim.Adam(0.01, eps=1e-3), lambda torch, p: torch.optim.Adam(p, 0.01, eps=1e-3)
ADAMW = (
    optim.AdamW(0.01, eps=1e-3, weight_decay=0.1),
    lambda torch, p: torch.optim.AdamW(p, 0.01, eps=1e-3, weight_decay=0.1),
)
ARCHITECTURES = {
    "mlp": Architecture(
        {"w0": (12, 32), "b0": (32,), "w1": (32, 24), "b1": (24,), "w2": (24, 5), "b2": (5,)},
        {"x": (16, 12)}, ((16,), 5), mlp, torch_mlp, *DESCENT,
    ),
    "cnn": Architecture(
        {"a": (8, 3, 3, 3), **norm("n", 8), "b": (16, 8, 3, 3), **norm("m", 16), "head": (16, 5)},
        {"x": (8, 3, 12, 12)}, ((8,), 5), cnn, torch_cnn, *ADAM,
    ),
    "mobilenet": Architecture(
        {
            "expand": (24, 8, 1, 1), **norm("n", 24), "deep": (24, 1, 3, 3), **norm("m", 24),
            "project": (8, 24, 1, 1), **norm("o", 8), "head": (8, 5),
        },
        {"x": (6, 8, 9, 9)}, ((6,), 5), mobilenet, torch_mobilenet, *DESCENT,
    ),
    "unet": Architecture(
        {
            "in": (8, 2, 3, 3), "in.shift": (8,), "low": (16, 8, 3, 3), "low.shift": (16,), "up": (16, 8, 2, 2),
            "join": (8, 16, 3, 3), "out": (3, 8, 1, 1),
        },
        {"x": (3, 2, 12, 12)}, ((3, 12, 12), 3), unet, torch_unet, *ADAM,
    ),
    "lstm": Architecture(
        {"table": (11, 8), "w": (2, 64, 8), "r": (2, 64, 16), "both": (2, 128), "head": (32, 4)},
        {}, ((6,), 4), lstm, torch_lstm, *ADAM, tokens=((9, 6), 11),
    ),
    "transformer": Architecture(
        {
            "table": (7, 16), "places": (6, 16), **norm("n", 16), "q": (16, 16), "k": (16, 16), "v": (16, 16),
            "o": (16, 16), **norm("m", 16), "up": (16, 64), "up.shift": (64,), "down": (64, 16), "head": (16, 7),
        },
        {}, ((24,), 7), transformer, torch_transformer, *ADAMW, tokens=((4, 6), 7),
    ),
}  # fmt: skip
