"""`--suppression`: of boxes that overlap too much those of the best scores, of this library alone."""

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem, dims_words
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.quantization import real
from asmdnn.bench.tensor_work import TensorWork
from asmdnn.bench.titles import titled
from asmdnn.bench.words import Settings, number, option, tag
from asmdnn.definitions.suppression import suppressed
from asmdnn.errors import InvalidArguments
from asmdnn.records import dataclass

GRID, SIDE = 32, 8  # places of corners, and the longest side, in the same unit: many boxes touch and many are equal
LEVELS = 64  # of scores, so that there are ties


@dataclass(frozen=True, slots=True)
class SuppressionSettings(Settings):
    stag: str = "abx"
    dtag: str = "abx"
    most: int = 100
    overlap: float = 0.5
    least: float = 0.1


class SuppressionWork(TensorWork):
    """The same arithmetic as the definition, so that results are equal."""

    exactness = (False,)

    def __init__(self, case: Case[SuppressionSettings, DimsProblem]) -> None:
        settings, dims = case.settings, case.problem.dims
        if len(dims) != 3 or not dims[2]:
            raise InvalidArguments(f"{dims_words(case.problem)}: it must be images, classes and boxes")
        images, classes, boxes = dims
        self.settings, self.most = settings, min(settings.most, boxes)
        self.descs = {
            "corners": desc_of((images, 4, boxes), "f32", settings.stag),
            "scores": desc_of(dims, "f32", settings.stag),
            "dst": desc_of((images, classes, self.most), "s32", settings.dtag),
        }
        self.desc = dnn.NonMaxSuppression(**self.descs, overlap=settings.overlap, least=settings.least)

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        images, _, boxes = self.descs["corners"].dims
        lower = random.integers(0, GRID, (images, 2, boxes))
        corners = np.concatenate((lower, lower + random.integers(0, SIDE, lower.shape)), 1)
        scores = random.integers(0, LEVELS, self.descs["scores"].dims) / LEVELS
        return {"corners": corners.astype(np.float32), "scores": scores.astype(np.float32)}

    def answer(self, data: TensorData) -> Answer:
        arrays, settings = data.arrays, self.settings
        found = suppressed(arrays["corners"], arrays["scores"], self.most, settings.overlap, settings.least)
        return Answer(found.astype(np.float64), 0.0, "numpy")


DRIVER = Driver(
    "suppression",
    SuppressionSettings(),
    {
        "stag": option(tag, "layout of corners and scores: abx (default), axb, ..."),
        "dtag": option(tag, "layout of dst: abx (default), axb, ..."),
        "most": option(number(1), "boxes of a class, at most (100)"),
        "overlap": option(real, "the share beyond which a box is left out (0.5)"),
        "least": option(real, "scores are above it (0.1)"),
    },
    dims_problem(1),
    SuppressionWork,
    example="--mode=CP --most=100 --threads=1 1x20x2000",
    title=titled("the best {most} of {dims} boxes"),
    peers=(),
)
