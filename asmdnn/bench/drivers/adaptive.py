"""`--adaptive`: pooling to a size that is given; oneDNN has none, the words are ours."""

import numpy as np

import asmdnn as dnn
from asmdnn.bench import chains, typed
from asmdnn.bench.attributes import AttributeSettings, options
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import TensorWork
from asmdnn.bench.words import DT, LAYOUT, flag, one_of, option
from asmdnn.definitions.rounding import UNIT_ROUNDOFF
from asmdnn.definitions.windows import adaptive_largest, adaptive_means
from asmdnn.records import dataclass

LARGEST_VALUE = 100  # integers to this are numbers of all types, and sums of a window of them are exact


@dataclass(frozen=True, slots=True)
class AdaptiveSettings(AttributeSettings):
    dt: str = "f32"
    tag: str = "abx"
    alg: str = "max"
    indices: bool = False


class AdaptiveWork(TensorWork):
    largest = LARGEST_VALUE

    def __init__(self, case: Case[AdaptiveSettings, DimsProblem]) -> None:
        settings, (dims, self.sizes) = case.settings, case.problem.tensors
        src, dst = (desc_of(shape, settings.dt, settings.tag) for shape in (dims, dims[:2] + self.sizes))
        indices = desc_of(dst.dims, "s32", settings.tag) if settings.indices else None
        self.alg, self.descs = settings.alg, {"src": src, "dst": dst} | ({"indices": indices} if indices else {})
        self.results = ("dst", "indices")[: 1 + settings.indices]
        self.attr = settings.attr(dst.dims)
        self.exactness = chains.exactness(self.attr)
        self.desc = dnn.AdaptivePooling(settings.alg, src, dst, indices)

    def answer(self, data: TensorData) -> Answer:
        x = self.real(data, "src")
        if self.alg == "avg":
            mean, error = adaptive_means(x, self.sizes)
            return self.judged(data, mean, UNIT_ROUNDOFF * np.abs(mean) if data.exact else error)
        values, where = adaptive_largest(x, self.sizes)
        found = self.judged(data, values, 0.0)
        return typed.together([(found.values, found.tolerance), (where, 0.0)]) if len(self.results) > 1 else found


DRIVER = Driver(
    "adaptive",
    AdaptiveSettings(),
    {
        "dt": DT,
        "tag": LAYOUT,
        "alg": option(one_of("max", "avg"), "max (default), avg"),
        "indices": flag("true: where maxima are, too; false (default)"),
        **options("linear:2:1, add:f32:per_oc, sum:0.5"),
    },
    dims_problem(2),
    AdaptiveWork,
    example="--mode=CP --tag=abx,axb --alg=avg --threads=1 1x512x14x14:7x7",
    peers=(),
)
