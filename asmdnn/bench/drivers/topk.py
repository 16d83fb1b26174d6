"""`--topk`: the k largest or smallest numbers along an axis, and where they are; of this library alone."""

from dataclasses import dataclass, replace

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem, dims_words
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import TensorWork
from asmdnn.bench.values import joined, random_values
from asmdnn.bench.words import Option, Settings, boolean, number, one_of, tag
from asmdnn.errors import InvalidArguments
from asmdnn.memory.tags import MAX_NDIMS
from asmdnn.primitives.topk.description import ALGORITHMS

LARGEST_VALUE = 64  # integers have many ties


@dataclass(frozen=True, slots=True)
class TopKSettings(Settings):
    alg: str = "max"
    stag: str = "abx"
    dtag: str = "any"
    axis: int = 1
    k: int = 1
    values: bool = True
    last: bool = False


TopKCase = Case[TopKSettings, DimsProblem]


def order(x: Array, axis: int, largest: bool, last: bool) -> Array:
    """The indices that sort along an axis, the best first, of equal ones the first or the last."""
    keys = -x if largest else x
    if not last:
        return np.asarray(np.argsort(keys, axis, kind="stable"))
    return np.asarray(x.shape[axis] - 1 - np.argsort(np.flip(keys, axis), axis, kind="stable"))


class TopKWork(TensorWork):
    def __init__(self, case: TopKCase) -> None:
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
        return {"src": random_values(random, self.descs["src"].dims, dnn.f32, LARGEST_VALUE, exact)}

    def answer(self, data: TensorData) -> Answer:
        src, settings = data.arrays["src"], self.settings
        places = order(src, self.axis, settings.alg == "max", settings.last)
        places = np.take(places, range(settings.k), self.axis)
        found = [places] + [np.take_along_axis(src, places, self.axis)] * settings.values
        return Answer(joined([one.astype(np.float64) for one in found]), 0.0, "numpy")


def _title(case: TopKCase) -> str:
    settings = case.settings
    return f"top {settings.k} {settings.alg} {settings.stag} {dims_words(case.problem)} axis {settings.axis}"


def _completed(settings: TopKSettings, problem: DimsProblem) -> tuple[TopKSettings, DimsProblem]:
    axis = settings.axis + len(problem.dims) * (settings.axis < 0)
    return replace(settings, axis=axis), problem


DRIVER = Driver(
    "topk",
    TopKSettings(),
    {
        "alg": Option("alg", one_of(*ALGORITHMS), "max (default), min", True),
        "stag": Option("stag", tag, "layout of src: abx (default), axb, aBx16b, nchw, nChw8c, ...", True),
        "dtag": Option("dtag", tag, "layout of the results: any (default) is that of src", True),
        "axis": Option("axis", number(-MAX_NDIMS, MAX_NDIMS - 1), "the axis that is searched (1)", True),
        "k": Option("k", number(1), "how many (1)", True),
        "values": Option("values", boolean, "true (default): indices and numbers; false: indices alone", True),
        "last": Option("last", boolean, "true: the last of equal numbers, for k = 1; false (default)", True),
    },
    dims_problem(1),
    TopKWork,
    example="--mode=CP --axis=1 --k=5 --threads=1 128x1000",
    notation="128x1000",
    title=_title,
    completed=_completed,
    peers=(),
)
