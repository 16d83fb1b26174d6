"""`--topk`: the k largest or smallest numbers along an axis, and where they are; of this library alone."""

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import TensorWork
from asmdnn.bench.titles import titled
from asmdnn.bench.values import joined, random_values
from asmdnn.bench.words import Settings, axis, flag, number, one_of, option, tag
from asmdnn.definitions.reduction import top
from asmdnn.errors import InvalidArguments
from asmdnn.primitives.topk.description import ALGORITHMS
from asmdnn.records import dataclass, replace

LARGEST_VALUE, RISE = 64, 8  # integers have many ties; from one to the next


@dataclass(frozen=True, slots=True)
class TopKSettings(Settings):
    alg: str = "max"
    stag: str = "abx"
    dtag: str = "any"
    axis: int = 1
    k: int = 1
    values: bool = True
    last: bool = False


class TopKWork(TensorWork):
    def __init__(self, case: Case[TopKSettings, DimsProblem]) -> None:
        settings, dims = case.settings, case.problem.dims
        if not -len(dims) <= settings.axis < len(dims):
            raise InvalidArguments(f"--axis={settings.axis}: the problem has {len(dims)} dims")
        self.settings, self.axis = settings, settings.axis % len(dims)
        found = tuple(settings.k if dim == self.axis else n for dim, n in enumerate(dims))
        self.results = ("dst", "values")[: 1 + settings.values]
        kinds = dict(zip(self.results, ("s32", "f32"), strict=False))
        self.descs = {"src": desc_of(dims, "f32", settings.stag)}
        self.descs |= {name: desc_of(found, kind, settings.dtag) for name, kind in kinds.items()}
        tensors = self.descs["src"], self.descs["dst"], self.axis, self.descs.get("values")
        self.desc = dnn.TopKForward(settings.alg, *tensors, settings.last)  # type: ignore[arg-type]

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        """Integers rise towards the better ones, so that every part of a row counts."""
        x = random_values(random, self.descs["src"].dims, dnn.f32, LARGEST_VALUE, exact)
        if exact:
            rise = RISE * np.arange(x.shape[self.axis]) * (1 if self.settings.alg == "max" else -1)
            x += rise.reshape([-1 if dim == self.axis else 1 for dim in range(x.ndim)])
        return {"src": x}

    def answer(self, data: TensorData) -> Answer:
        settings = self.settings
        values, places = top(self.real(data, "src"), settings.k, self.axis, settings.alg == "max", settings.last)
        return Answer(joined([places.astype(np.float64), values][: len(self.results)]), 0.0, "numpy")


def _completed(settings: TopKSettings, problem: DimsProblem) -> tuple[TopKSettings, DimsProblem]:
    return replace(settings, axis=settings.axis + len(problem.dims) * (settings.axis < 0)), problem


DRIVER = Driver(
    "topk",
    TopKSettings(),
    {
        "alg": option(one_of(*ALGORITHMS), "max (default), min"),
        "stag": option(tag, "layout of src: abx (default), axb, aBx16b, nchw, nChw8c, ..."),
        "dtag": option(tag, "layout of the results: any (default) is that of src"),
        "axis": axis("the axis that is searched (1)"),
        "k": option(number(1), "how many (1)"),
        "values": flag("true (default): indices and numbers; false: indices alone"),
        "last": flag("true: the last of equal numbers, for k = 1; false (default)"),
    },
    dims_problem(1),
    TopKWork,
    example="--mode=CP --axis=1 --k=5 --threads=1 128x1000",
    title=titled("top {k} {alg} {stag} {dims} axis {axis}"),
    completed=_completed,
    peers=(),
)
