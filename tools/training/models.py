"""Networks that are trained, by size of batch: what they read, and how scores come of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tools.training.layers import Layers

Scores = Callable[[Layers, Any, int], Any]


@dataclass(frozen=True)
class Model:
    """scores: of layers, an input and the size of the batch; dims: of the input for a batch; labels: dims of what it is
    to find; classes: how many there are."""

    scores: Scores
    dims: Callable[[int], tuple[int, ...]]
    labels: Callable[[int], tuple[int, ...]]
    classes: int


def mlp(o: Layers, x: Any, batch: int) -> Any:
    x = o.relu(o.linear("a", x, (64, 256)))
    return o.linear("c", o.relu(o.linear("b", x, (256, 128))), (128, 10))


def lenet(o: Layers, x: Any, batch: int) -> Any:
    x = o.max_pool(o.relu(o.bias_conv("a", x, (1, 6), 5, 2)), 2, 2)
    x = o.max_pool(o.relu(o.bias_conv("b", x, (6, 16), 5, 0)), 2, 2)
    x = o.relu(o.linear("c", o.flat(x), (400, 120)))
    return o.linear("e", o.relu(o.linear("d", x, (120, 84))), (84, 10))


def cnn(o: Layers, x: Any, batch: int) -> Any:
    """As the one that learns to read digits."""
    for at, channels in (("a", (1, 16)), ("b", (16, 32))):
        x = o.max_pool(o.relu(o.bias_conv(at, x, channels, 3, 1)), 2, 2)
    return o.linear("head", o.flat(x), (128, 10))


def resnet18(o: Layers, x: Any, batch: int) -> Any:
    x = o.max_pool(o.relu(o.norm("stem.n", o.conv("stem", x, (3, 64), 7, 2), 64)), 3, 2, 1)
    width = 64
    for stage, channels in enumerate((64, 128, 256, 512)):
        for block in range(2):
            at, stride = f"{stage}.{block}", 2 if stage and not block else 1
            h = o.relu(o.norm(f"{at}.n", o.conv(f"{at}.a", x, (width, channels), 3, stride), channels))
            h = o.norm(f"{at}.m", o.conv(f"{at}.b", h, (channels, channels), 3), channels)
            if width != channels:
                x = o.norm(f"{at}.o", o.conv(f"{at}.c", x, (width, channels), 1, stride), channels)
            x, width = o.relu(h + x), channels
    return o.linear("head", o.mean(x), (512, 1000))


def resnet50(o: Layers, x: Any, batch: int) -> Any:
    """A stride is that of the 3x3 convolution, as torchvision has it."""
    x = o.max_pool(o.relu(o.norm("stem.n", o.conv("stem", x, (3, 64), 7, 2), 64)), 3, 2, 1)
    width = 64
    for stage, count in enumerate((3, 4, 6, 3)):
        inner, wide = 64 << stage, 256 << stage
        for block in range(count):
            at, stride = f"{stage}.{block}", 2 if stage and not block else 1
            h = o.relu(o.norm(f"{at}.n", o.conv(f"{at}.a", x, (width, inner), 1), inner))
            h = o.relu(o.norm(f"{at}.m", o.conv(f"{at}.b", h, (inner, inner), 3, stride), inner))
            h = o.norm(f"{at}.p", o.conv(f"{at}.c", h, (inner, wide), 1), wide)
            if width != wide:
                x = o.norm(f"{at}.o", o.conv(f"{at}.d", x, (width, wide), 1, stride), wide)
            x, width = o.relu(h + x), wide
    return o.linear("head", o.mean(x), (2048, 1000))


MOBILE = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def mobilenet(o: Layers, x: Any, batch: int) -> Any:
    """MobileNet V2."""
    x, width = o.relu6(o.norm("stem.n", o.conv("stem", x, (3, 32), 3, 2), 32)), 32
    for stage, (times, channels, count, stride) in enumerate(MOBILE):
        for block in range(count):
            at, wide, step = f"{stage}.{block}", width * times, 1 if block else stride
            h = x if times == 1 else o.relu6(o.norm(f"{at}.n", o.conv(f"{at}.a", x, (width, wide), 1), wide))
            h = o.relu6(o.norm(f"{at}.m", o.conv(f"{at}.b", h, (wide, wide), 3, step, wide), wide))
            h = o.norm(f"{at}.o", o.conv(f"{at}.c", h, (wide, channels), 1), channels)
            x, width = x + h if step == 1 and width == channels else h, channels
    x = o.relu6(o.norm("last.n", o.conv("last", x, (320, 1280), 1), 1280))
    return o.linear("head", o.mean(x), (1280, 1000))


def unet(o: Layers, x: Any, batch: int) -> Any:
    """Three levels, a class for every pixel."""

    def twice(at: str, x: Any, channels: tuple[int, int]) -> Any:
        x = o.relu(o.norm(f"{at}.n", o.conv(f"{at}.a", x, channels, 3), channels[1]))
        return o.relu(o.norm(f"{at}.m", o.conv(f"{at}.b", x, (channels[1], channels[1]), 3), channels[1]))

    high = twice("high", x, (3, 32))
    middle = twice("middle", o.max_pool(high, 2, 2), (32, 64))
    low = twice("low", o.max_pool(middle, 2, 2), (64, 128))
    middle = twice("middle.up", o.joined(middle, o.up("low.up", low, (128, 64))), (128, 64))
    high = twice("high.up", o.joined(high, o.up("up", middle, (64, 32))), (64, 32))
    return o.bias_conv("out", high, (32, 8), 1, 0)


def lstm(o: Layers, x: Any, batch: int) -> Any:
    """A class for every one of 32 steps."""
    return o.linear("head", o.lstm("lstm", x, (128, 256)), (256, 64))


LENGTH, WIDTH, HEADS = 128, 256, 4


def encoder(o: Layers, x: Any, batch: int) -> Any:
    """Two layers of a transformer, a class for every place."""
    dims = (batch, LENGTH, WIDTH)
    for i in range(2):
        x = x + o.attention(f"{i}.attention", o.layer_norm(f"{i}.n", x, WIDTH), dims, HEADS)
        h = o.gelu(o.linear(f"{i}.up", o.layer_norm(f"{i}.m", x, WIDTH), (WIDTH, 4 * WIDTH)))
        x = x + o.linear(f"{i}.down", h, (4 * WIDTH, WIDTH))
    return o.linear("head", x, (WIDTH, 64))


def images(size: int, channels: int = 3) -> Callable[[int], tuple[int, ...]]:
    return lambda batch: (batch, channels, size, size)


def one_each(batch: int) -> tuple[int, ...]:
    return (batch,)


MODELS = {
    "mlp": Model(mlp, lambda batch: (batch, 64), one_each, 10),
    "lenet": Model(lenet, images(28, 1), one_each, 10),
    "cnn": Model(cnn, images(8, 1), one_each, 10),
    "resnet18": Model(resnet18, images(224), one_each, 1000),
    "resnet50": Model(resnet50, images(224), one_each, 1000),
    "mobilenet": Model(mobilenet, images(224), one_each, 1000),
    "unet": Model(unet, images(128), lambda batch: (batch, 128, 128), 8),
    "lstm": Model(lstm, lambda batch: (32, batch, 128), lambda batch: (32, batch), 64),
    "encoder": Model(encoder, lambda batch: (batch, LENGTH, WIDTH), lambda batch: (batch, LENGTH), 64),
}
