"""`--softmax`: softmax and its logarithm over one axis."""

import numpy as np

import asmdnn as dnn
from asmdnn.bench import typed
from asmdnn.bench.attributes import ScaledSettings, options, scales_of
from asmdnn.bench.dims import DimsProblem, dims_problem, ends
from asmdnn.bench.driver import Array, Case, Driver, TensorData, by_direction
from asmdnn.bench.gradients import GradientWork
from asmdnn.bench.judge import Answer
from asmdnn.bench.peers.onednn_numbers import SOFTMAX
from asmdnn.bench.quantization import joined, quantities
from asmdnn.bench.tensor_work import DATA_DIRECTION, FORWARD, PROP_KINDS, TensorWork
from asmdnn.bench.titles import titled
from asmdnn.bench.values import encoded
from asmdnn.bench.words import FIRST_DIM, FROM_TO, INPLACE, axis, one_of, option, renamed
from asmdnn.definitions.rounding import UNIT
from asmdnn.definitions.softmax import softmax, softmax_error, softmax_gradient
from asmdnn.errors import Unimplemented
from asmdnn.primitives.softmax.description import SoftmaxAlgorithm
from asmdnn.records import dataclass


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


class SoftmaxWork(TensorWork):
    exactness = (False,)
    bounds = (-8, 8)
    peer_slack = 10.0
    function, post_ops = "softmax_forward", ("eltwise", "binary")

    def __init__(self, case: SoftmaxCase) -> None:
        settings, dims = case.settings, case.problem.dims
        src, dst = ends(settings, dims)
        self.is_log, self.descs = settings.alg == "LOGSOFTMAX", {"src": src, "dst": dst}
        if settings.inplace:
            self.replaces("src")
        self.scales = scales_of(settings.scales, {"src": dims, "dst": dims}, {"src": 1, "dst": 1})
        self.quantities, self.attr = self.scales.arrays, settings.attr(dims, scales=self.scales.masks)
        alg: SoftmaxAlgorithm = "log" if self.is_log else "accurate"
        desc = dnn.SoftmaxForward(PROP_KINDS[settings.dir], alg, src, dst, settings.axis)
        self.desc, self.axis = desc, desc.axis
        self.takes = FORWARD[settings.dir], SOFTMAX[settings.alg], "src", "dst", self.axis

    def answer(self, data: TensorData) -> Answer:
        """The scales of src are of results, in oneDNN, too."""
        x, scales = self.real(data, "src"), self.scales.source * self.scales.factor
        values, error = softmax(x, self.axis, self.is_log), softmax_error(x, self.axis, self.is_log)
        values, error = values * scales, (error + UNIT * np.abs(values)) * np.abs(scales)
        return self.judged(data, values, error, self.scales.divisor)


class SoftmaxGradientWork(GradientWork):
    """diff_src of diff_dst and dst, which the forward pass has left; sdt and stag are diff_src's."""

    peer_slack = 10.0
    primitive, reads = "softmax", ("dst",)

    def __init__(self, case: SoftmaxCase) -> None:
        settings, dims = case.settings, case.problem.dims
        self.is_log = settings.alg == "LOGSOFTMAX"
        if settings.scales:
            raise Unimplemented("--attr-scales of a gradient is not built")
        diff_src, dst = ends(settings, dims)
        self.descs = {"dst": dst, "diff_dst": dst, "diff_src": diff_src}
        self.attr = settings.attr(dims)
        if settings.inplace:
            self.replaces("diff_dst", "diff_src")
        desc = dnn.SoftmaxBackward("log" if self.is_log else "accurate", dst, dst, diff_src, settings.axis)
        self.desc, self.axis = desc, desc.axis
        self.forward_takes = SOFTMAX[settings.alg], "src", "dst", self.axis

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        desc = self.descs["dst"]
        y = softmax(random.uniform(-4, 4, desc.dims), self.axis, self.is_log)
        return {"dst": encoded(y, desc.dtype), "diff_dst": typed.numbers(random, desc.dims, desc.dtype, *self.bounds)}

    def answer(self, data: TensorData) -> Answer:
        found = softmax_gradient(self.real(data, "dst"), self.real(data, "diff_dst"), self.axis, self.is_log)
        return self.gradients({"diff_src": found})


ALG = renamed({"softmax_accurate": "softmax", "softmax_log": "logsoftmax"}, one_of(*SOFTMAX))
DRIVER = Driver(
    "softmax",
    SoftmaxSettings(),
    {
        "dir": DATA_DIRECTION,
        **FROM_TO,
        "alg": option(ALG, "SOFTMAX (default), LOGSOFTMAX"),
        "axis": axis("the axis that sums to 1 (1)"),
        **options("linear:2:1, add:f32:per_oc"),
        "attr-scales": option(quantities(("src", "dst"), whole=False), "src:common:0.5+dst:common:2", joined),
        "inplace": INPLACE,
        "mb": FIRST_DIM,
    },
    dims_problem(1),
    by_direction(SoftmaxWork, SoftmaxGradientWork),
    example="--mode=CP --axis=1 --threads=1 --peer=onednn 128x1000",
    title=titled("{alg} {backward}{stag} {dims} axis {axis}"),
)  # fmt: skip
