"""Text on a picture, by PP-OCRv4: one network finds lines, one sees whether they stand on their heads, one reads them.

python -m examples.ocr [PICTURE]        prints the lines; without PICTURE, of a page of a printed book

Source of the steps around the networks: https://github.com/RapidAI/RapidOCR, https://arxiv.org/abs/1911.08947.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy import ndimage
from scipy.spatial import ConvexHull, QhullError

import asmdnn as dnn
from examples.command import command
from examples.models import file

Floats = npt.NDArray[np.float32]
Corners = npt.NDArray[np.float64]  # (4, 2): x, y of a line's corners from the top left, clockwise as it is read

PACKAGE: Final = "rapidocr-onnxruntime"
DETECTOR: Final = "ch_PP-OCRv4_det_infer.onnx"
CLASSIFIER: Final = "ch_ppocr_mobile_v2.0_cls_infer.onnx"
RECOGNISER: Final = "ch_PP-OCRv4_rec_infer.onnx"
SHORT_SIDE: Final = 384  # of the picture that the detector sees, in pixels; a larger one is left as it is
STRIDE: Final = 32  # its dims are multiples
TEXT, SURE_TEXT = 0.3, 0.5  # of a pixel that is text, of a region's mean
GROWTH: Final = 1.6  # regions are the lines' hearts: they grow by this times area over perimeter
LEAST_SIDE: Final = 5  # pixels; less is dirt
LINE_HEIGHT: Final = 48
CLASSIFIER_WIDTH: Final = 192
WIDTH_STEP: Final = 320  # lines are padded to multiples, so that few widths need a network
UPSIDE_DOWN: Final = 0.5
SURE_LINE: Final = 0.5


@dataclass(frozen=True)
class Line:
    """A line of text, and how sure the recogniser is of it, from 0 to 1."""

    corners: Corners
    text: str
    confidence: float


class TextReader:
    """Reads pictures.  A network is made for each shape that occurs, and kept."""

    def __init__(self, engine: dnn.Engine | None = None) -> None:
        self.engine = engine
        self.networks: dict[tuple[str, tuple[int, ...]], dnn.Network] = {}

    def network(self, name: str, shape: tuple[int, ...]) -> dnn.Network:
        """The model in file `name` for an input of `shape`."""
        if (name, shape) not in self.networks:
            self.networks[name, shape] = dnn.load_onnx(file(PACKAGE, name), {"x": shape}, engine=self.engine)
        return self.networks[name, shape]

    def read(self, picture: Image.Image) -> list[Line]:
        """The lines, from top to bottom."""
        found = []
        for corners in self.find(picture):
            readings = [self.recognise(line) for line in self.ways_up(cut_out(picture, corners))]
            text, confidence = max(readings, key=lambda reading: reading[1])
            if text and confidence >= SURE_LINE:
                found.append(Line(corners, text, confidence))
        return sorted(found, key=lambda line: (line.corners[:, 1].min(), line.corners[:, 0].min()))

    def find(self, picture: Image.Image) -> Iterator[Corners]:
        """The corners of what looks like a line, in the picture's pixels."""
        x = detector_input(picture)
        probability = self.network(DETECTOR, x.shape)(x)[0, 0]
        high, wide = probability.shape
        scale = np.array([picture.width / wide, picture.height / high])
        for corners in regions(probability):
            yield corners * scale

    def ways_up(self, line: Image.Image) -> list[Image.Image]:
        """The line; and turned too if the classifier, which squeezes long lines and may be wrong, would turn it."""
        x = line_input(line, CLASSIFIER_WIDTH)
        ((_, upside_down),) = self.network(CLASSIFIER, x.shape)(x)
        return [line, line.transpose(Image.Transpose.ROTATE_180)] if upside_down > UPSIDE_DOWN else [line]

    def recognise(self, line: Image.Image) -> tuple[str, float]:
        """Its text, and the mean probability of its characters."""
        x = line_input(line, recogniser_width(line))
        net = self.network(RECOGNISER, x.shape)
        alphabet = ["", *net.model.metadata["character"].splitlines(), " "]
        return decoded(net(x)[0], alphabet)


def detector_input(picture: Image.Image) -> Floats:
    """(1, 3, h, w), from -1 to 1."""
    scale = max(1.0, SHORT_SIDE / min(picture.size))
    wide, high = (max(STRIDE, round(side * scale / STRIDE) * STRIDE) for side in picture.size)
    return normalized(picture.resize((wide, high), Image.Resampling.BICUBIC))[None]


def line_input(line: Image.Image, width: int) -> Floats:
    """(1, 3, 48, width), from -1 to 1: as wide as its height demands, or squeezed, and 0 after its end."""
    own = min(width, max(1, round(line.width * LINE_HEIGHT / line.height)))
    x = np.zeros((1, 3, LINE_HEIGHT, width), np.float32)
    x[0, :, :, :own] = normalized(line.resize((own, LINE_HEIGHT), Image.Resampling.BICUBIC))
    return x


def recogniser_width(line: Image.Image) -> int:
    """The width of the input that holds a line unsqueezed."""
    return -(-round(line.width * LINE_HEIGHT / line.height) // WIDTH_STEP) * WIDTH_STEP or WIDTH_STEP


def normalized(picture: Image.Image) -> Floats:
    """(3, h, w), blue first, as the models were trained."""
    pixels = np.asarray(picture.convert("RGB"), np.float32)[:, :, ::-1]
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)) / np.float32(127.5) - np.float32(1)


def regions(probability: Floats) -> Iterator[Corners]:
    """The rectangles around the regions of text, grown to the size of their lines."""
    labels, _ = ndimage.label(probability > TEXT)
    for i, place in enumerate(ndimage.find_objects(labels), 1):
        inside = labels[place] == i
        if probability[place][inside].mean() < SURE_TEXT:
            continue
        points = np.argwhere(inside)[:, ::-1] + [place[1].start, place[0].start]
        rectangle = smallest_rectangle(points)
        if rectangle is None:
            continue
        centre, axes, sides = rectangle
        sides = sides + 2 * GROWTH * sides.prod() / (2 * sides.sum())
        if sides.min() >= LEAST_SIDE:
            signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) / 2
            yield centre + (signs * sides) @ axes


def smallest_rectangle(points: npt.NDArray[Any]) -> tuple[Corners, Corners, Corners] | None:
    """(centre, its two axes, its sides) of the rectangle of the least area, the axis nearest to +x first.

    None for points in one line.  One of its sides lies on a side of the convex hull (Freeman, Shapira:
    Determining the minimum-area encasing rectangle for an arbitrary closed curve, 1975).
    """
    try:
        hull = points[ConvexHull(points).vertices].astype(np.float64)
    except QhullError:
        return None
    best = None
    for dx, dy in np.roll(hull, -1, axis=0) - hull:
        angle = (np.arctan2(dy, dx) + np.pi / 4) % (np.pi / 2) - np.pi / 4
        axes = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        turned = hull @ axes.T
        low, high = turned.min(axis=0), turned.max(axis=0)
        if best is None or (high - low).prod() < best[2].prod():
            best = (low + high) / 2 @ axes, axes, high - low
    return best


def cut_out(picture: Image.Image, corners: Corners) -> Image.Image:
    """The rectangle, turned so that its line is horizontal; one that is higher than wide is turned to the left."""
    wide, high = (round(float(np.linalg.norm(corners[i] - corners[0]))) for i in (1, 3))
    top_left, top_right, bottom_right, bottom_left = corners.tolist()
    quad = (*top_left, *bottom_left, *bottom_right, *top_right)
    line = picture.transform((max(1, wide), max(1, high)), Image.Transform.QUAD, quad, Image.Resampling.BICUBIC)
    return line.transpose(Image.Transpose.ROTATE_90) if high > 1.5 * wide else line


def decoded(probabilities: Floats, alphabet: list[str]) -> tuple[str, float]:
    """Text and mean confidence from (places, characters): of equal neighbours one counts, and character 0 is none.

    Source: connectionist temporal classification, Graves et al. 2006, with the best path.
    """
    best = probabilities.argmax(axis=1)
    counts = (best != 0) & (best != np.concatenate([[-1], best[:-1]]))
    sure = probabilities.max(axis=1)[counts]
    return "".join(alphabet[i] for i in best[counts]), float(sure.mean()) if sure.size else 0.0


def page() -> Path:
    """A page of a printed manual, photographed; from scikit-image."""
    return file("scikit-image", "data/page.png")


def main(words: list[str]) -> None:
    with Image.open(words[0] if words else page()) as picture:
        for line in TextReader().read(picture.convert("RGB")):
            print(f"{line.confidence:.2f}  {line.text}")


if __name__ == "__main__":
    command(main, __doc__, most=1)
