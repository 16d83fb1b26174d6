"""The characters on a small picture, by convolutions and a bidirectional LSTM (ddddocr's common.onnx).

python -m examples.characters [PICTURE]        without PICTURE: some that are drawn here
"""

import ast
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib import get_data_path
from PIL import Image, ImageDraw, ImageFont

import asmdnn as dnn
from examples.command import command
from examples.models import file

HEIGHT = 64
WORDS = ("asm42", "KERNEL", "7x7pool")


class CharacterReader:
    """Reads pictures; a network is made for each width that occurs."""

    def __init__(self, engine: dnn.Engine | None = None) -> None:
        self.engine = engine
        self.networks: dict[int, dnn.Network] = {}

    @cached_property
    def alphabet(self) -> list[str]:
        """The character of each class: a list in the package's source, which is read, not run."""
        tree = ast.parse(file("ddddocr", "ddddocr/charsets.py").read_text(encoding="utf-8"))
        (values,) = (
            node.value
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CHARSET_BETA"
        )
        found: list[str] = ast.literal_eval(values)
        return found

    def network(self, width: int) -> dnn.Network:
        if width not in self.networks:
            model = file("ddddocr", "ddddocr/common.onnx")
            self.networks[width] = dnn.load_onnx(model, {"input1": (1, 1, HEIGHT, width)}, engine=self.engine)
        return self.networks[width]

    def read(self, picture: Image.Image) -> str:
        """The characters: at each of the places the best class, equal neighbours once, class 0 being none."""
        x = pixels(picture)
        best = self.network(x.shape[3])(x)[:, 0].argmax(axis=1)
        return "".join(self.alphabet[i] for i, before in zip(best, [0, *best[:-1]], strict=True) if i != before)


def pixels(picture: Image.Image) -> npt.NDArray[np.float32]:
    """(1, 1, 64, w), grey, from 0 to 1."""
    grey = picture.convert("L").resize((round(picture.width * HEIGHT / picture.height), HEIGHT))
    return np.asarray(grey, np.float32)[None, None] / np.float32(255)


def drawn(word: str) -> Image.Image:
    """A word as a picture of 160 x 64."""
    picture = Image.new("L", (160, HEIGHT), 255)
    font = ImageFont.truetype(Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", 30)
    ImageDraw.Draw(picture).text((80, 32), word, 30, font, "mm")
    return picture


def main(words: list[str]) -> None:
    reader = CharacterReader()
    if words:
        with Image.open(words[0]) as picture:
            print(reader.read(picture))
    else:
        for word in WORDS:
            print(f"drawn {word}, read {reader.read(drawn(word))}")


if __name__ == "__main__":
    command(main, __doc__, most=1)
