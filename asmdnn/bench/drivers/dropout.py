"""`--dropout`: elements zeroed at random, which benchdnn has as an attribute of others."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.quantization import real
from asmdnn.bench.tensor_work import TensorWork
from asmdnn.bench.words import Option, Settings, number, tag
from asmdnn.errors import InvalidArguments

MULTIPLIERS, WEYL, ROUNDS, LOW = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10, np.uint64(0xFFFFFFFF)
LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True, slots=True)
class DropoutSettings(Settings):
    tag: str = "abx"
    p: float = 0.5
    seed: int = 1


DropoutCase = Case[DropoutSettings, DimsProblem]


class DropoutWork(TensorWork):
    exactness = (False,)
    results = ("dst", "mask")

    def __init__(self, case: DropoutCase) -> None:
        self.settings, dims = case.settings, case.problem.dims
        tensor, mask = (desc_of(dims, kind, case.settings.tag) for kind in ("f32", "u8"))
        self.descs = {"src": tensor, "dst": tensor, "mask": mask}
        self.desc = dnn.Dropout(*self.descs.values())

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        return {
            "src": random.uniform(-1, 1, self.descs["src"].dims).astype(np.float32),
            "probability": np.array([self.settings.p], np.float32),
            "seed": np.array([self.settings.seed], np.int32),
        }

    def answer(self, data: TensorData) -> Answer:
        src, p = data.arrays["src"], data.arrays["probability"][0]
        kept = random_bits(src.size, self.settings.seed) > float(LOW) * np.float64(p)
        factor = np.float32(1) / (np.float32(1) - p) if p < 1 else np.float32(0)
        results = np.where(kept, src.ravel() * factor, 0), kept
        return Answer(np.concatenate(results).astype(np.float64), 0.0, "numpy")


def random_bits(count: int, seed: int) -> npt.NDArray[np.uint64]:
    """Those of elements 0 to count - 1, by the formulas of Philox4x32-10."""
    quads = np.uint64(4) * np.arange(-(-count // 4), dtype=np.uint64)
    words, keys = [quads + np.uint64(i) & LOW for i in range(4)], [np.uint64(seed % 2**32)] * 2
    for _ in range(ROUNDS):
        first, second = (words[2 * i] * np.uint64(factor) for i, factor in enumerate(MULTIPLIERS))
        high = [product >> np.uint64(32) for product in (second, first)]
        words = [high[0] ^ words[1] ^ keys[0], second & LOW, high[1] ^ words[3] ^ keys[1], first & LOW]
        keys = [key + np.uint64(step) & LOW for key, step in zip(keys, WEYL, strict=True)]
    return np.stack(words).T.ravel()[:count]


def _probability(word: str) -> float:
    found = real(word)
    if not 0 <= found <= 1:
        raise InvalidArguments("a probability is from 0 to 1")
    return found


DRIVER = Driver(
    "dropout",
    DropoutSettings(),
    {
        "tag": Option("tag", tag, "layout of all tensors: abx (default), axb, nchw, ...", True),
        "p": Option("p", _probability, "probability that an element is zeroed (0.5)", True),
        "seed": Option("seed", number(-LARGEST_SEED - 1, LARGEST_SEED), "of the generator (1)", True),
    },
    dims_problem(1),
    DropoutWork,
    example="--mode=CP --p=0.1 --threads=1 512x768",
    notation="512x768",
    peers=(),
)
