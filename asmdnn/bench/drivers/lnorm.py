"""`--lnorm`: layer normalization over the last dim."""

from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Case, Driver, TensorData, by_direction
from asmdnn.bench.judge import Answer
from asmdnn.bench.norm_gradients import NormGradientWork
from asmdnn.bench.norms import NormSettings, NormWork, norm_options
from asmdnn.bench.tensor_work import PROP_KINDS
from asmdnn.bench.titles import titled
from asmdnn.bench.words import data_type, of_two, option, tag, words_of_each
from asmdnn.definitions.normalization import inverse_deviation, moments, rows_error, statistics_error
from asmdnn.definitions.rounding import as_f32
from asmdnn.records import dataclass
from asmdnn.types import FLOAT_NAMES

EPSILON = 1e-5
STATISTICS_ULPS = 8
NO_RMS = "onednn: version 3.2 has no RMS normalization"
NO_HALVES = "onednn: version 3.2 has scale and shift of f32 alone"


@dataclass(frozen=True, slots=True)
class LnormSettings(NormSettings):
    ss_dt: str = "f32"
    stat_tag: str = "abx"


LnormCase = Case[LnormSettings, DimsProblem]


class LnormWork(NormWork):
    function = "layer_normalization_forward"

    def __init__(self, case: LnormCase) -> None:
        settings, dims = case.settings, case.problem.dims
        src, dst = _descs(case)
        super().__init__(settings, src, dst)
        self.rms = "M" in settings.flags
        statistics = desc_of(dims[:-1], "f32", settings.stat_tag)
        self.lacks = NO_RMS if self.rms else NO_HALVES if settings.ss_dt != "f32" else ""
        self.pass_on(EPSILON, statistics)
        self.add_tensors(statistics, desc_of(dims[-1:], settings.ss_dt, "abx"), ("mean", "variance")[self.rms :])
        kind, how = PROP_KINDS[settings.dir], {"use_global_stats": self.given, "rms": self.rms}
        self.desc = dnn.LayerNormForward(kind, src, dst, EPSILON, **self.optional, **how)  # type: ignore[arg-type]

    def answer(self, data: TensorData) -> Answer:
        x = self.real(data, "src")
        mean, variance = moments(x, (-1,), self.rms)
        if self.given:
            variance = self.real(data, "variance")[..., None]
            mean = mean if self.rms else self.real(data, "mean")[..., None]
        factor, row = inverse_deviation(variance, as_f32(EPSILON)), x.shape[-1:]
        scale, shift = (self.parameter(data, name, default, row) for name, default in (("scale", 1.0), ("shift", 0.0)))
        values = (x - mean) * factor * scale + shift
        errors = statistics_error(np.abs(x).max(-1), STATISTICS_ULPS)
        dst = self.judged(data, values, rows_error(x, x - mean, factor, scale, shift))
        return self.answers(dst, {"mean": (mean[..., 0], errors[0]), "variance": (variance[..., 0], errors[1])})


class LnormGradientWork(NormGradientWork):
    primitive = "layer_normalization"

    def __init__(self, case: LnormCase) -> None:
        settings, dims = case.settings, case.problem.dims
        self.settings, self.epsilon, self.rms = settings, EPSILON, "M" in settings.flags
        self.axes, self.summed = (len(dims) - 1,), tuple(range(len(dims) - 1))
        self.lacks = NO_RMS if self.rms else NO_HALVES if settings.ss_dt != "f32" else ""
        self.pass_on("mean")
        src, dst = _descs(case)
        self.take(src, dst, desc_of(dims[:-1], "f32", settings.stat_tag), desc_of(dims[-1:], settings.ss_dt, "abx"))
        how: dict[str, Any] = {"mean": None, **self.optional, "rms": self.rms, "use_global_stats": self.given}
        self.desc = dnn.LayerNormBackward(src, dst, src, epsilon=EPSILON, **how)

    def asked_for(self, parameters: list[str]) -> list[str]:
        return ["shift"] if "diff_shift" in self.results else []


def _descs(case: LnormCase) -> list[dnn.MemoryDesc]:
    """Of src and dst."""
    settings = case.settings
    ends = zip(words_of_each(settings.dt, 2), words_of_each(settings.tag, 2), strict=True)
    return [desc_of(case.problem.dims, kind, layout) for kind, layout in ends]


LAYOUTS = {
    "dt": option(of_two(data_type(*FLOAT_NAMES), "bf16:f32"), "data types of src and dst: f32 (default), bf16, f16"),
    "ss_dt": option(data_type(*FLOAT_NAMES), "data type of scale and shift: f32 (default), bf16, f16"),
    "tag": option(of_two(tag, "abx:axb"), "layouts of src and dst: abx (default), axb, abx:axb, ..."),
    "stat_tag": option(tag, "layout of mean and variance: abx (default), axb, ..."),
}
DRIVER = Driver(
    "lnorm",
    LnormSettings(),
    norm_options(LAYOUTS, "GCHM", "G statistics are given, C scale, H shift, M without mean (RMS)",
                 "linear:2:1, add:f32:per_oc"),
    dims_problem(1),
    by_direction(LnormWork, LnormGradientWork),
    example="--mode=CP --dir=FWD_I --flags=CH --threads=1 --peer=onednn 128x768",
    title=titled("{dir} {flags} {tag} {dims}"),
)  # fmt: skip
