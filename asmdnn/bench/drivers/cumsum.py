"""`--cumsum`: cumulative sums along an axis; of this library alone."""

import math
from dataclasses import dataclass

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Array, Case, Driver, TensorData, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.values import poison, random_values
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


class CumsumWork(Work[TensorData]):
    def __init__(self, case: CumsumCase) -> None:
        settings = case.settings
        self.settings, self.tensor = settings, desc_of(case.problem.dims, "f32", settings.tag)
        self.in_place = {"dst": "src"} if settings.inplace else {}
        flags = (settings.exclusive, settings.reverse)
        self.desc = dnn.CumulativeSum(self.tensor, self.tensor, settings.axis, *flags)

    @property
    def argument_bytes(self) -> int:
        return 2 * 4 * math.prod(self.tensor.padded_dims)

    def describe(self) -> tuple[dnn.CumulativeSum, dnn.Attr]:
        return self.desc, dnn.Attr()

    def data(self, exact: bool) -> TensorData:
        dims = self.tensor.dims
        src = random_values(np.random.default_rng(1), dims, dnn.f32, LARGEST_VALUE, exact)
        return TensorData({"src": src, "dst": poison(dims, dnn.f32)}, exact)

    def answer(self, data: TensorData) -> Answer:
        """Within a rounding for each number that is added, in the size of all."""
        x, how = data.arrays["src"].astype(np.float64), (self.desc.axis, self.desc.exclusive, self.desc.reverse)
        error = UNIT_ROUNDOFF * x.shape[self.desc.axis] * sums(np.abs(x), *how)
        return Answer(sums(x, *how), 0.0 if data.exact else error, "numpy")


def _title(case: CumsumCase) -> str:
    settings = case.settings
    return f"{settings.tag} {'x'.join(map(str, case.problem.dims))} axis {settings.axis}"


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
