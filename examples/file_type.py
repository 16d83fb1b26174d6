"""What is in a file?  Magika looks at its first and last 1,024 bytes and knows 214 types.

python -m examples.file_type [FILE ...]        without FILE: files of this project

Source: https://github.com/google/magika; https://arxiv.org/abs/2409.13768.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from examples.command import command
from examples.models import file

FOLDER: Final = "models/standard_v3_3"
ROOT: Final = Path(__file__).resolve().parent.parent
SHOWN: Final = ("README.md", "Makefile", "pyproject.toml", "examples/file_type.py", "docs/images/filter_bank.png")


class FileTypes:
    """The network and the names of its answers."""

    def __init__(self, engine: dnn.Engine | None = None) -> None:
        config = json.loads(file("magika", f"{FOLDER}/config.min.json").read_text())
        self.labels: list[str] = config["target_labels_space"]
        self.sides: tuple[int, int] = config["beg_size"], config["end_size"]
        self.block: int = config["block_size"]
        self.padding: int = config["padding_token"]
        model = file("magika", f"{FOLDER}/model.onnx")
        # Four nodes count integers; numpy computes them.
        self.net = dnn.load_onnx(model, {"bytes": (1, sum(self.sides))}, engine=engine, fallback="numpy")

    def features(self, content: bytes) -> npt.NDArray[np.int32]:
        """(1, 2048): the first and the last bytes without white space around them, padded."""
        first, last = self.sides
        head, tail = content[: self.block].lstrip()[:first], content[-self.block :].rstrip()[-last:]
        values = [*head, *[self.padding] * (first - len(head)), *[self.padding] * (last - len(tail)), *tail]
        return np.array([values], np.int32)

    def of(self, content: bytes) -> tuple[str, float]:
        """The type, and its probability."""
        (scores,) = self.net(self.features(content))
        best = int(scores.argmax())
        return self.labels[best], float(scores[best])


def main(words: Sequence[str]) -> None:
    types = FileTypes()
    for path in map(Path, words or [str(ROOT / name) for name in SHOWN]):
        label, probability = types.of(path.read_bytes())
        print(f"{path.name:24} {label:12} {probability:.3f}")


if __name__ == "__main__":
    command(main, __doc__, most=None)
