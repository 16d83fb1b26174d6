"""`--reduction`: reductions over the dims that the second tensor has as 1."""

import math
from typing import Any, cast

import numpy as np

import asmdnn as dnn
from asmdnn.bench import typed
from asmdnn.bench.attributes import AttributeSettings, options
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem, dims_words, types_word
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.quantization import real
from asmdnn.bench.tensor_work import Peer, TensorWork
from asmdnn.bench.values import decoded, encoded
from asmdnn.bench.words import DDT, FROM_TO, Option, data_type, one_of
from asmdnn.definitions.reduction import reduced, reduced_error
from asmdnn.errors import Unimplemented
from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.reduction.description import ALGORITHMS, ReductionAlgorithm
from asmdnn.records import dataclass

LARGEST_VALUE, LARGEST_CENTER = 4.0, 8
INTEGERS, TWOS = ("s32", "s8", "u8"), 3  # so many factors of a product are 2
ALGS = {alg: 0x2FFF2 + i for i, alg in enumerate(alg for alg in ALGORITHMS if alg != "logsumexp")}  # oneDNN's numbers


@dataclass(frozen=True, slots=True)
class ReductionSettings(AttributeSettings):
    alg: str = "sum"
    sdt: str = "f32"
    ddt: str = "f32"
    stag: str = "abx"
    dtag: str = "any"
    p: float = 2.0
    eps: float = 0.0


ReductionCase = Case[ReductionSettings, DimsProblem]


class ReductionWork(TensorWork):
    exactness = (False,)
    peer_slack = 1000.0
    function, post_ops = "reduction", ("sum", "eltwise", "binary")

    def __init__(self, case: ReductionCase) -> None:
        settings, (src, dst) = case.settings, case.problem.tensors
        layout = settings.stag if settings.dtag == "any" else settings.dtag
        self.descs = {"src": desc_of(src, settings.sdt, settings.stag), "dst": desc_of(dst, settings.ddt, layout)}
        self.attr, alg = settings.attr(dst), cast(ReductionAlgorithm, settings.alg)
        tensors = self.descs["src"], self.descs["dst"]
        self.desc = self.reduction = dnn.ReductionForward(alg, *tensors, settings.p, settings.eps)

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        """Products of many numbers stay in range: the more there are, the nearer each is to 1; a few integers are 2.
        Others have a center of their own for every result: the extremes of many integers would be equal everywhere."""
        desc, made = self.descs["src"], self.descs["dst"].dims
        count = math.prod(desc.dims) / math.prod(made)
        spread = min(0.1, 10 / math.sqrt(count))
        limits = (1 - spread, 1 + spread) if self.reduction.alg == "mul" else (-LARGEST_VALUE, LARGEST_VALUE)
        src = typed.numbers(random, desc.dims, desc.dtype, *limits)
        if self.reduction.alg != "mul":
            src = encoded(decoded(src, desc.dtype) + random.integers(0, LARGEST_CENTER, made), desc.dtype)
        elif desc.dtype.name in INTEGERS:
            src += (random.random(src.shape) < TWOS / max(count, 2 * TWOS)).astype(src.dtype)
        return {"src": src}

    def answer(self, data: TensorData) -> Answer:
        x, desc = self.real(data, "src"), self.reduction
        values = reduced(desc.alg, x, desc.reduced, desc.p, desc.eps)
        return self.judged(data, values, reduced_error(desc.alg, x, desc.reduced, values))

    def peer_arguments(self, peer: Peer) -> tuple[Any, ...]:
        desc = self.reduction
        if desc.alg not in ALGS:
            raise Unimplemented(f"onednn: there is no reduction {desc.alg}")
        return ALGS[desc.alg], peer.descs["src"], peer.descs["dst"], desc.p, desc.eps


def _alg(word: str) -> str:
    return one_of(*ALGORITHMS)(word.lower().removeprefix("reduction_"))


def _title(case: ReductionCase) -> str:
    settings = case.settings
    kinds = types_word(settings.sdt, settings.ddt)
    return f"{settings.alg} {kinds}{settings.stag} {dims_words(case.problem)}"


DRIVER = Driver(
    "reduction",
    ReductionSettings(),
    {
        "alg": Option("alg", _alg, "sum (default), max, min, mul, mean, logsumexp, norm_lp_max ...", True),
        "sdt": Option("sdt", data_type(), "data type of src: f32 (default), bf16, f16, s32, s8, u8", True),
        "ddt": DDT,
        "stag": FROM_TO["stag"],
        "dtag": FROM_TO["dtag"],
        "p": Option("p", real, "the power of norms (2), from 1 on", True, number_word),
        "eps": Option("eps", real, "of norms (0)", True, number_word),
        **options("linear:2:1, add:f32:per_oc, sum:0.5"),
    },
    dims_problem(2),
    ReductionWork,
    example="--mode=CP --alg=mean --threads=1 --peer=onednn 1x2048x7x7:1x2048x1x1",
    notation="1x2048x7x7:1x2048x1x1",
    title=_title,
)
