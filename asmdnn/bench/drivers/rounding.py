"""`--rounding`: stochastic rounding, which benchdnn has as an attribute of others."""

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem, tag_of_dst
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.drivers.dropout import SEED
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import TensorWork
from asmdnn.bench.values import rounded
from asmdnn.bench.words import FROM_TO, Settings, data_type, number, option
from asmdnn.definitions.stochastic_rounding import stochastically_rounded
from asmdnn.primitives.stochastic_rounding.stochastic_rounding import MOST_FIRST, WORDS
from asmdnn.records import dataclass

TYPES = ("f32", "bf16", "f16", "s8", "u8")


@dataclass(frozen=True, slots=True)
class RoundingSettings(Settings):
    ddt: str = "bf16"
    stag: str = "abx"
    dtag: str = "any"
    seed: int = 1
    first: int = 0


class RoundingWork(TensorWork):
    exactness = (False,)
    bounds = (-300, 300)  # integers of 8 bits end before

    def __init__(self, case: Case[RoundingSettings, DimsProblem]) -> None:
        settings, dims = case.settings, case.problem.dims
        self.settings = settings
        src, dst = desc_of(dims, "f32", settings.stag), desc_of(dims, settings.ddt, tag_of_dst(settings))
        self.descs = {"src": src, "dst": dst}
        self.desc = dnn.StochasticRounding(src, dst, WORDS * settings.first)

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        return {**super().sources(random, exact), "seed": np.array([self.settings.seed], np.int32)}

    def answer(self, data: TensorData) -> Answer:
        settings = self.settings
        values = stochastically_rounded(data.arrays["src"], settings.seed, WORDS * settings.first, settings.ddt)
        return Answer(rounded(values, self.descs["dst"].dtype), 0.0, "numpy")


DRIVER = Driver(
    "rounding",
    RoundingSettings(),
    {
        "ddt": option(data_type(*TYPES), f"data type of dst: bf16 (default), {', '.join(TYPES)}"),
        "stag": FROM_TO["stag"],
        "dtag": FROM_TO["dtag"],
        "seed": SEED,
        "first": option(number(0, MOST_FIRST // WORDS), "a fourth of the first element's index (0)"),
    },
    dims_problem(1),
    RoundingWork,
    example="--mode=CP --ddt=bf16 --threads=1 512x768",
    peers=(),
)
