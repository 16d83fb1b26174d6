"""`--cumsum`: cumulative sums along an axis; of this library alone."""

from dataclasses import dataclass

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem, dims_words
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import TensorWork
from asmdnn.bench.values import random_values
from asmdnn.bench.words import INPLACE, LAYOUT, Option, Settings, boolean, number
from asmdnn.memory.tags import MAX_NDIMS

LARGEST_VALUE = 16  # sums of so many as f32 counts are exact
UNIT_ROUNDOFF = 2.0**-24


@dataclass(frozen=True, slots=True)
class CumsumSettings(Settings):
    tag: str = "abx"
    axis: int = 1
    exclusive: bool = False
    reverse: bool = False
    inplace: bool = False


CumsumCase = Case[CumsumSettings, DimsProblem]


def sums(x: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
    """In float64."""
    ordered = np.flip(x, axis) if reverse else x
    total = np.cumsum(ordered, axis, dtype=np.float64) - (ordered if exclusive else 0)
    return np.flip(total, axis) if reverse else total


class CumsumWork(TensorWork):
    def __init__(self, case: CumsumCase) -> None:
        settings = case.settings
        tensor = desc_of(case.problem.dims, "f32", settings.tag)
        self.descs = {"src": tensor, "dst": tensor}
        self.in_place = {"dst": "src"} if settings.inplace else {}
        flags = self.flags = (settings.exclusive, settings.reverse)
        self.desc = dnn.CumulativeSum(tensor, tensor, settings.axis, *flags)
        self.axis = self.desc.axis

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        return {"src": random_values(random, self.descs["src"].dims, dnn.f32, LARGEST_VALUE, exact)}

    def answer(self, data: TensorData) -> Answer:
        """Within a rounding for each number that is added, in the size of all."""
        x = data.arrays["src"].astype(np.float64)
        error = UNIT_ROUNDOFF * x.shape[self.axis] * sums(np.abs(x), self.axis, *self.flags)
        return Answer(sums(x, self.axis, *self.flags), 0.0 if data.exact else error, "numpy")


def _title(case: CumsumCase) -> str:
    settings = case.settings
    return f"{settings.tag} {dims_words(case.problem)} axis {settings.axis}"


DRIVER = Driver(
    "cumsum",
    CumsumSettings(),
    {
        "tag": LAYOUT,
        "axis": Option("axis", number(-MAX_NDIMS, MAX_NDIMS - 1), "the axis (1)", True),
        "exclusive": Option("exclusive", boolean, "true: without the element itself; false (default)", True),
        "reverse": Option("reverse", boolean, "true: up to the end; false (default): from the beginning", True),
        "inplace": INPLACE,
    },
    dims_problem(1),
    CumsumWork,
    example="--mode=CP --axis=1 --threads=1 512x768",
    notation="512x768",
    title=_title,
    peers=(),
)
