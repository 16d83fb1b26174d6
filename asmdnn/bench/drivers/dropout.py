"""`--dropout`: elements zeroed at random, which benchdnn has as an attribute of others."""

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.quantization import real
from asmdnn.bench.tensor_work import TensorWork
from asmdnn.bench.values import joined
from asmdnn.bench.words import Settings, number, option, tag
from asmdnn.definitions.dropout import dropped
from asmdnn.errors import InvalidArguments
from asmdnn.records import dataclass

LARGEST_SEED = 2**31 - 1
SEED = option(number(-LARGEST_SEED - 1, LARGEST_SEED), "of the generator (1)")


@dataclass(frozen=True, slots=True)
class DropoutSettings(Settings):
    tag: str = "abx"
    p: float = 0.5
    seed: int = 1


class DropoutWork(TensorWork):
    exactness = (False,)
    results = ("dst", "mask")

    def __init__(self, case: Case[DropoutSettings, DimsProblem]) -> None:
        self.settings, dims = case.settings, case.problem.dims
        tensor, mask = (desc_of(dims, kind, case.settings.tag) for kind in ("f32", "u8"))
        self.descs = {"src": tensor, "dst": tensor, "mask": mask}
        self.desc = dnn.Dropout(*self.descs.values())

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        numbers = {"probability": (self.settings.p, np.float32), "seed": (self.settings.seed, np.int32)}
        given = {name: np.array([value], kind) for name, (value, kind) in numbers.items()}
        return {**super().sources(random, exact), **given}

    def answer(self, data: TensorData) -> Answer:
        probability, seed = data.arrays["probability"].item(), data.arrays["seed"].item()
        results = dropped(data.arrays["src"], probability, seed)
        return Answer(joined([one.astype(np.float64) for one in results]), 0.0, "numpy")


def _probability(word: str) -> float:
    found = real(word)
    if not 0 <= found <= 1:
        raise InvalidArguments("a probability is from 0 to 1")
    return found


DRIVER = Driver(
    "dropout",
    DropoutSettings(),
    {
        "tag": option(tag, "layout of all tensors: abx (default), axb, nchw, ..."),
        "p": option(_probability, "probability that an element is zeroed (0.5)"),
        "seed": SEED,
    },
    dims_problem(1),
    DropoutWork,
    example="--mode=CP --p=0.1 --threads=1 512x768",
    peers=(),
)
