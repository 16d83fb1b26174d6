"""`--reduction`: reductions over the dims that the second tensor has as 1."""

import math
from typing import cast

import numpy as np

import asmdnn as dnn
from asmdnn.bench import typed
from asmdnn.bench.attributes import AttributeSettings, options
from asmdnn.bench.dims import DimsProblem, dims_problem, ends
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.peers.onednn_numbers import REDUCTION
from asmdnn.bench.quantization import real
from asmdnn.bench.tensor_work import TensorWork
from asmdnn.bench.titles import titled
from asmdnn.bench.values import decoded, encoded
from asmdnn.bench.words import FROM_TO, after, one_of, option
from asmdnn.definitions.reduction import reduced, reduced_error
from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.reduction.description import ALGORITHMS, ReductionAlgorithm
from asmdnn.records import dataclass

LARGEST_VALUE, LARGEST_CENTRE = 4.0, 8
INTEGERS, TWOS = ("s32", "s8", "u8"), 3  # so many factors of a product are 2


@dataclass(frozen=True, slots=True)
class ReductionSettings(AttributeSettings):
    alg: str = "sum"
    sdt: str = "f32"
    ddt: str = "f32"
    stag: str = "abx"
    dtag: str = "any"
    p: float = 2.0
    eps: float = 0.0


class ReductionWork(TensorWork):
    exactness = (False,)
    peer_slack = 1000.0
    function, post_ops = "reduction", ("sum", "eltwise", "binary")

    def __init__(self, case: Case[ReductionSettings, DimsProblem]) -> None:
        settings, (whole, made) = case.settings, case.problem.tensors
        src, dst = ends(settings, whole, made)
        self.descs, self.attr = {"src": src, "dst": dst}, settings.attr(made)
        alg, numbers = cast(ReductionAlgorithm, settings.alg), (settings.p, settings.eps)
        self.desc = self.reduction = dnn.ReductionForward(alg, src, dst, *numbers)
        self.takes = self.number_of(REDUCTION, "reduction", alg), "src", "dst", *numbers

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        """Products of many numbers stay in range: the more there are, the nearer each is to 1; a few integers are 2.
        Others have a centre of their own for every result: the extremes of many integers would be equal everywhere."""
        desc, made = self.descs["src"], self.descs["dst"].dims
        count = math.prod(desc.dims) / math.prod(made)
        spread = min(0.1, 10 / math.sqrt(count))
        limits = (1 - spread, 1 + spread) if self.reduction.alg == "mul" else (-LARGEST_VALUE, LARGEST_VALUE)
        src = typed.numbers(random, desc.dims, desc.dtype, *limits)
        if self.reduction.alg != "mul":
            src = encoded(decoded(src, desc.dtype) + random.integers(0, LARGEST_CENTRE, made), desc.dtype)
        elif desc.dtype.name in INTEGERS:
            src += (random.random(src.shape) < TWOS / max(count, 2 * TWOS)).astype(src.dtype)
        return {"src": src}

    def answer(self, data: TensorData) -> Answer:
        x, desc = self.real(data, "src"), self.reduction
        values = reduced(desc.alg, x, desc.reduced, desc.p, desc.eps)
        return self.judged(data, values, reduced_error(desc.alg, x, desc.reduced, values))


DRIVER = Driver(
    "reduction",
    ReductionSettings(),
    {
        "alg": option(after("reduction_", one_of(*ALGORITHMS)),
                      "sum (default), max, min, mul, mean, logsumexp, norm_lp_max ..."),
        **FROM_TO,
        "p": option(real, "the power of norms (2), from 1 on", number_word),
        "eps": option(real, "of norms (0)", number_word),
        **options("linear:2:1, add:f32:per_oc, sum:0.5"),
    },
    dims_problem(2),
    ReductionWork,
    example="--mode=CP --alg=mean --threads=1 --peer=onednn 1x2048x7x7:1x2048x1x1",
    title=titled("{alg} {types}{stag} {dims}"),
)  # fmt: skip
