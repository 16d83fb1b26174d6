"""`--random`: random numbers by a seed, which benchdnn has not."""

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import TensorWork
from asmdnn.bench.words import Settings, number, one_of, option, tag
from asmdnn.definitions.random_numbers import NORMAL_ERROR, drawn
from asmdnn.records import dataclass

MOST = 10**10 - 1  # words of ten digits


@dataclass(frozen=True, slots=True)
class RandomSettings(Settings):
    tag: str = "abx"
    dist: str = "uniform"
    seed: int = 1
    stream: int = 0


class RandomWork(TensorWork):
    exactness = (False,)

    def __init__(self, case: Case[RandomSettings, DimsProblem]) -> None:
        self.settings = case.settings
        self.descs = {"dst": desc_of(case.problem.dims, "f32", case.settings.tag)}
        self.desc = dnn.RandomNumbers(self.descs["dst"], case.settings.dist, case.settings.stream)

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        return {"seed": np.array([self.settings.seed], np.int64).view(np.int32)}

    def answer(self, data: TensorData) -> Answer:
        settings, dims = self.settings, self.descs["dst"].dims
        values = drawn(settings.dist, settings.seed, settings.stream, self.descs["dst"].nelems()).reshape(dims)
        return self.judged(data, values, NORMAL_ERROR * np.abs(values) if settings.dist == "normal" else 0.0)


DRIVER = Driver(
    "random",
    RandomSettings(),
    {
        "tag": option(tag, "layout of dst: abx (default), axb, nchw, ..."),
        "dist": option(one_of("uniform", "normal"), "distribution: uniform (default), normal"),
        "seed": option(number(-MOST, MOST), "of the generator (1)"),
        "stream": option(number(-MOST, MOST), "other ones have other numbers (0)"),
    },
    dims_problem(1),
    RandomWork,
    example="--mode=CP --dist=normal --threads=1 512x768",
    peers=(),
)
