"""`--scatter`: rows of a table written by indices, or combined with what is there.  oneDNN has none."""

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import TensorWork
from asmdnn.bench.titles import titled
from asmdnn.bench.values import random_values
from asmdnn.bench.words import DT, Settings, axis, one_of, option, tag
from asmdnn.definitions.moves import scattered
from asmdnn.primitives.scatter.description import ALGORITHMS, MOVES
from asmdnn.records import dataclass

LARGEST_VALUE = {"mul": 1}  # so that products are numbers of all types
LARGE = 4


@dataclass(frozen=True, slots=True)
class ScatterSettings(Settings):
    dt: str = "f32"
    stag: str = "abx"
    alg: str = MOVES
    axis: int = 0


class ScatterWork(TensorWork):
    """Integers, whose sums are exact in every type."""

    exactness = (True,)

    def __init__(self, case: Case[ScatterSettings, DimsProblem]) -> None:
        settings, (dims, indices) = case.settings, case.problem.tensors
        at = settings.axis % len(dims)
        made = (*dims[:at], *indices, *dims[at + 1 :])
        src, numbers = desc_of(dims, settings.dt, settings.stag), desc_of(indices, "s32", "abx")
        updates, dst = desc_of(made, settings.dt, "abx"), desc_of(dims, settings.dt, settings.stag)
        self.descs = {"src": src, "indices": numbers, "updates": updates, "dst": dst}
        self.desc = self.scatter = dnn.Scatter(src, numbers, updates, dst, settings.axis, settings.alg)  # type: ignore[arg-type]

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        scatter, most = self.scatter, LARGEST_VALUE.get(self.scatter.alg, LARGE)
        return {
            "src": random_values(random, scatter.src.dims, scatter.src.dtype, most, True),
            "indices": random.integers(-scatter.limit, scatter.limit, scatter.indices.dims, np.int32),
            "updates": random_values(random, scatter.updates.dims, scatter.src.dtype, most, True),
        }

    def answer(self, data: TensorData) -> Answer:
        scatter, arrays = self.scatter, (self.real(data, "src"), data.arrays["indices"], self.real(data, "updates"))
        return Answer(scattered(*arrays, scatter.axis, scatter.alg), 0.0, "numpy")


DRIVER = Driver(
    "scatter",
    ScatterSettings(),
    {
        "dt": DT,
        "stag": option(tag, "layout of src and dst: abx (default), axb, nchw, nChw8c, ..."),
        "alg": option(one_of(*ALGORITHMS), f"what becomes of rows: {', '.join(ALGORITHMS)}"),
        "axis": axis("the axis of dst that indices count along (0)"),
    },
    dims_problem(2),
    ScatterWork,
    example="--mode=CP --threads=1 --alg=add 30522x768:128",
    title=titled("{dt} {alg} axis {axis} {problem}"),
    peers=(),
)
