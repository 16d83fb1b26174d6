"""`--cumsum`: cumulative sums along an axis; of this library alone."""

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import TensorWork
from asmdnn.bench.titles import titled
from asmdnn.bench.words import INPLACE, LAYOUT, Settings, axis, flag
from asmdnn.definitions.reduction import cumulated, cumulative_error
from asmdnn.records import dataclass

LARGEST_VALUE = 16  # sums of so many as f32 counts are exact


@dataclass(frozen=True, slots=True)
class CumsumSettings(Settings):
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
        self.desc = self.sum = dnn.CumulativeSum(tensor, tensor, settings.axis, settings.exclusive, settings.reverse)

    def answer(self, data: TensorData) -> Answer:
        x, how = self.real(data, "src"), (self.sum.axis, self.sum.exclusive, self.sum.reverse)
        return Answer(cumulated("sum", x, *how), 0.0 if data.exact else cumulative_error(x, *how), "numpy")


DRIVER = Driver(
    "cumsum",
    CumsumSettings(),
    {
        "tag": LAYOUT,
        "axis": axis("the axis (1)"),
        "exclusive": flag("true: without the element itself; false (default)"),
        "reverse": flag("true: up to the end; false (default): from the beginning"),
        "inplace": INPLACE,
    },
    dims_problem(1),
    CumsumWork,
    example="--mode=CP --axis=1 --threads=1 512x768",
    title=titled("{tag} {dims} axis {axis}"),
    peers=(),
)
