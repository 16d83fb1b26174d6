"""`--cumsum`: cumulative sums or products along an axis; of this library alone."""

from collections.abc import Mapping

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import TensorWork
from asmdnn.bench.titles import titled
from asmdnn.bench.words import INPLACE, LAYOUT, Settings, axis, flag, one_of, option
from asmdnn.definitions.reduction import cumulated, cumulative_error
from asmdnn.records import dataclass

LARGEST_VALUE = 16  # sums of so many as f32 counts are exact


@dataclass(frozen=True, slots=True)
class CumsumSettings(Settings):
    alg: str = "sum"
    tag: str = "abx"
    axis: int = 1
    exclusive: bool = False
    reverse: bool = False
    inplace: bool = False


class CumsumWork(TensorWork):
    largest = LARGEST_VALUE

    def __init__(self, case: Case[CumsumSettings, DimsProblem]) -> None:
        settings = case.settings
        tensor = desc_of(case.problem.dims, "f32", settings.tag)
        self.descs = {"src": tensor, "dst": tensor}
        self.in_place = {"dst": "src"} if settings.inplace else {}
        kind = dnn.CumulativeSum if settings.alg == "sum" else dnn.CumulativeProduct
        self.desc = self.sum = kind(tensor, tensor, settings.axis, settings.exclusive, settings.reverse)

    def sources(self, random: np.random.Generator, exact: bool) -> Mapping[str, Array]:
        """Products stay in range: of numbers near 1 and -1, or powers of 2."""
        if self.sum.alg == "sum":
            return super().sources(random, exact)
        dims = self.sum.src.dims
        spread = min(0.1, 10 / max(1, dims[self.sum.axis]) ** 0.5)
        sizes = random.choice([0.5, 1.0, 2.0], dims) if exact else random.uniform(1 - spread, 1 + spread, dims)
        return {"src": (sizes * random.choice([-1, 1], dims)).astype(np.float32)}

    def answer(self, data: TensorData) -> Answer:
        desc, x = self.sum, self.real(data, "src")
        how = desc.axis, desc.exclusive, desc.reverse
        error = 0.0 if data.exact else cumulative_error(x, *how, alg=desc.alg)
        return Answer(cumulated(desc.alg, x, *how), error, "numpy")


DRIVER = Driver(
    "cumsum",
    CumsumSettings(),
    {
        "alg": option(one_of("sum", "mul"), "sum (default), mul of products"),
        "tag": LAYOUT,
        "axis": axis("the axis (1)"),
        "exclusive": flag("true: without the element itself; false (default)"),
        "reverse": flag("true: up to the end; false (default): from the beginning"),
        "inplace": INPLACE,
    },
    dims_problem(1),
    CumsumWork,
    example="--mode=CP --axis=1 --threads=1 512x768",
    title=titled("{alg} {tag} {dims} axis {axis}"),
    peers=(),
)
