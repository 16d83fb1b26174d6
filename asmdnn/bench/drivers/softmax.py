"""`--softmax`: softmax and its logarithm over one axis."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench import typed
from asmdnn.bench.attributes import ScaledSettings, options, scales_of
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem, dims_words, with_first
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.quantization import joined, quantities
from asmdnn.bench.tensor_work import FORWARD, FORWARD_DIRECTION, PROP_KINDS, TensorWork
from asmdnn.bench.values import decoded
from asmdnn.bench.words import FIRST_DIM, FROM_TO, INPLACE, Option, number, one_of
from asmdnn.memory.tags import MAX_NDIMS
from asmdnn.primitives.softmax.description import SoftmaxAlgorithm

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

LARGEST_VALUE = 8.0
UNIT, ULPS = 2.0**-23, 12
SHORTEST_VECTORS = 64  # half a rounding for each sum of 4 vectors of 8
ALGS = {"SOFTMAX": 0x30000, "LOGSOFTMAX": 0x30001}  # oneDNN's numbers


@dataclass(frozen=True, slots=True)
class SoftmaxSettings(ScaledSettings):
    dir: str = "FWD_D"
    sdt: str = "f32"
    ddt: str = "f32"
    stag: str = "abx"
    dtag: str = "any"
    alg: str = "SOFTMAX"
    axis: int = 1
    inplace: bool = False
    mb: int = 0


SoftmaxCase = Case[SoftmaxSettings, DimsProblem]


def softmax(x: Array, axis: int, log: bool) -> tuple[Array, Array]:
    """The result in float64; and its error: that of rounding x - max x, which e^x takes over, and some roundings, with
    those of the longest chain of sums."""
    ulps = ULPS + x.shape[axis] / SHORTEST_VECTORS
    differences = x.astype(np.float64)
    differences -= differences.max(axis, keepdims=True)
    powers = np.exp(differences)
    total = powers.sum(axis, keepdims=True)
    if log:
        result = differences - np.log(total)
        return result, ulps * UNIT * (1 + np.abs(differences) + np.log(total))
    result = powers / total
    return result, UNIT * result * (ulps + np.abs(differences)) + 2.0**-126


class SoftmaxWork(TensorWork):
    exactness = (False,)
    peer_slack = 10.0
    post_ops = ("eltwise", "binary")

    def __init__(self, case: SoftmaxCase) -> None:
        settings, dims = case.settings, case.problem.dims
        self.settings, self.is_log = settings, settings.alg == "LOGSOFTMAX"
        src = desc_of(dims, settings.sdt, settings.stag)
        dst = desc_of(dims, settings.ddt, settings.stag if settings.dtag == "any" else settings.dtag)
        self.descs = {"src": src, "dst": dst}
        if settings.inplace:
            typed.check_in_place(src, dst)
        self.in_place = {"dst": "src"} if settings.inplace else {}
        self.scales = scales_of(settings.scales, {"src": dims, "dst": dims}, {"src": 1, "dst": 1})
        self.quantities, self.attr = self.scales.arrays, settings.attr(dims, scales=self.scales.masks)
        alg: SoftmaxAlgorithm = "log" if self.is_log else "accurate"
        self.desc = dnn.SoftmaxForward(PROP_KINDS[settings.dir], alg, src, dst, settings.axis)
        self.axis = self.desc.axis

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        src = self.descs["src"]
        return {"src": typed.numbers(random, src.dims, src.dtype, -LARGEST_VALUE, LARGEST_VALUE)}

    def answer(self, data: TensorData) -> Answer:
        """The scales of src are of results, in oneDNN, too."""
        x, scales = decoded(data.arrays["src"], self.descs["src"].dtype), self.scales.source * self.scales.factor
        values, error = softmax(x.astype(np.float32), self.axis, self.is_log)
        values, error = values * scales, (error + UNIT * np.abs(values)) * np.abs(scales)
        return typed.answer(self.attr, values, error, data.arrays, self.descs["dst"].dtype, self.scales.divisor)

    def onednn(self, peer: "OnednnPrimitive") -> Any:
        what = FORWARD[self.settings.dir], ALGS[self.settings.alg], peer.descs["src"], peer.descs["dst"], self.axis
        return peer.describe(peer.lib.dnnl_softmax_forward_primitive_desc_create, *what, self.attributes_of(peer))


def _alg(word: str) -> str:
    return one_of(*ALGS)(word.lower().removesuffix("_accurate").replace("softmax_log", "logsoftmax"))


def _title(case: SoftmaxCase) -> str:
    settings = case.settings
    return f"{settings.alg.lower()} {settings.stag} {dims_words(case.problem)} axis {settings.axis}"


def _completed(settings: SoftmaxSettings, problem: DimsProblem) -> tuple[SoftmaxSettings, DimsProblem]:
    return replace(settings, mb=0), with_first(settings.mb, problem)


DRIVER = Driver(
    "softmax",
    SoftmaxSettings(),
    {
        "dir": FORWARD_DIRECTION,
        **FROM_TO,
        "alg": Option("alg", _alg, "SOFTMAX (default), LOGSOFTMAX", True),
        "axis": Option("axis", number(-MAX_NDIMS, MAX_NDIMS - 1), "the axis that sums to 1 (1)", True),
        **options("linear:2:1, add:f32:per_oc"),
        "attr-scales": Option("scales", quantities(("src", "dst"), whole=False),
                              "src:common:0.5+dst:common:2", True, joined),
        "inplace": INPLACE,
        "mb": FIRST_DIM,
    },
    dims_problem(1),
    SoftmaxWork,
    example="--mode=CP --axis=1 --threads=1 --peer=onednn 128x1000",
    notation="128x1000",
    title=_title,
    completed=_completed,
)  # fmt: skip
