"""`--gather`: rows of a table, or parts along any axis, by indices.  oneDNN has none; the words are ours."""

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import TensorWork
from asmdnn.bench.titles import titled
from asmdnn.bench.values import random_values
from asmdnn.bench.words import DT, Settings, axis, option, tag
from asmdnn.records import dataclass

LARGEST_VALUE = 100  # integers to this are numbers of all types


@dataclass(frozen=True, slots=True)
class GatherSettings(Settings):
    dt: str = "f32"
    stag: str = "abx"
    axis: int = 0


class GatherWork(TensorWork):
    """Elements are moved, so one kind of data is enough."""

    exactness = (True,)

    def __init__(self, case: Case[GatherSettings, DimsProblem]) -> None:
        settings, (dims, indices) = case.settings, case.problem.tensors
        at = settings.axis % len(dims)
        made = (*dims[:at], *indices, *dims[at + 1 :])
        src, numbers = desc_of(dims, settings.dt, settings.stag), desc_of(indices, "s32", "abx")
        dst = desc_of(made, settings.dt, "abx")
        self.descs = {"src": src, "indices": numbers, "dst": dst}
        self.desc = self.gather = dnn.Gather(src, numbers, dst, settings.axis)

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        src, limit = self.gather.src, self.gather.limit
        return {
            "src": random_values(random, src.dims, src.dtype, LARGEST_VALUE, True),
            "indices": random.integers(-limit, limit, self.gather.indices.dims, np.int32),
        }

    def answer(self, data: TensorData) -> Answer:
        return Answer(np.take(self.real(data, "src"), data.arrays["indices"], self.gather.axis), 0.0, "numpy")


DRIVER = Driver(
    "gather",
    GatherSettings(),
    {
        "dt": DT,
        "stag": option(tag, "layout of src: abx (default), axb, nchw, nChw8c, ..."),
        "axis": axis("the axis of src that indices count along (0)"),
    },
    dims_problem(2),
    GatherWork,
    example="--mode=CP --threads=1 30522x768:128",
    title=titled("{dt} axis {axis} {problem}"),
    peers=(),
)
