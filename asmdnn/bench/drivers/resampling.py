"""`--resampling`: a tensor on a finer or a coarser grid."""

from typing import Any, cast

import asmdnn as dnn
from asmdnn.bench import chains
from asmdnn.bench.attributes import AttributeSettings, options
from asmdnn.bench.dims import desc_of
from asmdnn.bench.driver import Case, Driver, TensorData, by_direction, completed
from asmdnn.bench.gradients import GradientWork
from asmdnn.bench.judge import Answer
from asmdnn.bench.peers.onednn_numbers import RESAMPLING
from asmdnn.bench.resampling_problem import ResamplingProblem, parse_problem
from asmdnn.bench.tensor_work import FORWARD, TensorWork
from asmdnn.bench.titles import titled
from asmdnn.bench.words import DDT, IMAGES, LAYOUT, SDT, after, data_type, direction, lacking, one_of, option
from asmdnn.definitions.resampling import resampled, resampled_gradient
from asmdnn.primitives.resampling.description import ALGORITHMS, ResamplingAlgorithm
from asmdnn.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class ResamplingSettings(AttributeSettings):
    """dt: of both, if it is given."""

    dir: str = "FWD_I"
    dt: str = ""
    sdt: str = "f32"
    ddt: str = "f32"
    tag: str = "abx"
    alg: str = "nearest"
    mb: int = 0


ResamplingCase = Case[ResamplingSettings, ResamplingProblem]


class ForwardWork(TensorWork):
    exactness = (False,)
    bounds = (-64, 64)
    function, post_ops = "resampling_forward", ("sum", "eltwise", "binary")

    def __init__(self, case: ResamplingCase) -> None:
        settings, problem = case.settings, case.problem
        src, dst = (
            desc_of((problem.mb, problem.ic, *sizes), kind, settings.tag)
            for sizes, kind in ((problem.inner, settings.sdt), (problem.outer, settings.ddt))
        )
        self.descs, self.attr = {"src": src, "dst": dst}, settings.attr(dst.dims)
        self.peer_slack = chains.peer_slack(self.attr)
        self.desc = self.resampling = dnn.ResamplingForward(cast(ResamplingAlgorithm, settings.alg), src, dst)
        self.takes = FORWARD["FWD_I"], self.number_of(RESAMPLING, "resampling", settings.alg), None, "src", "dst"

    def answer(self, data: TensorData) -> Answer:
        desc = self.resampling
        how = desc.alg, desc.dst.dims[2:], desc.factors, desc.coordinates, desc.rounding
        return self.judged(data, *resampled(self.real(data, "src"), *how))


class GradientOfResampling(GradientWork):
    """diff_src of diff_dst."""

    primitive = "resampling"

    def __init__(self, case: ResamplingCase) -> None:
        settings, problem = case.settings, case.problem
        ends = {"diff_dst": (problem.outer, settings.ddt), "diff_src": (problem.inner, settings.sdt)}
        self.descs = {k: desc_of((problem.mb, problem.ic, *n), dt, settings.tag) for k, (n, dt) in ends.items()}
        self.attr = settings.attr(self.descs["diff_src"].dims)
        alg = cast(ResamplingAlgorithm, settings.alg)
        self.desc = self.resampling = dnn.ResamplingBackward(alg, self.descs["diff_src"], self.descs["diff_dst"])
        self.forward_takes = self.number_of(RESAMPLING, "resampling", settings.alg), None, "src", "dst"

    def answer(self, data: TensorData) -> Answer:
        desc = self.resampling
        how = desc.alg, desc.diff_src.dims[2:], desc.factors, desc.coordinates, desc.rounding
        return self.gradients({"diff_src": resampled_gradient(self.real(data, "diff_dst"), *how)})


def _completed(settings: ResamplingSettings, problem: ResamplingProblem) -> tuple[Any, Any]:
    sdt, ddt = settings.dt or settings.sdt, settings.dt or settings.ddt
    return completed(replace(settings, dt="", sdt=sdt, ddt=ddt), problem)


ALG = lacking({"linear_no_shift": "linear_no_shift was a function of one version of oneDNN"}, one_of(*ALGORITHMS))
DRIVER = Driver(
    "resampling",
    ResamplingSettings(),
    {
        "dir": option(direction("FWD_D", "FWD_I", "BWD_D"),
                      "FWD_I inference (default), FWD_D training: the same, BWD_D backward"),
        "dt": option(data_type(), "both data types, in older words", describes=False),
        "sdt": SDT,
        "ddt": DDT,
        "tag": LAYOUT,
        "alg": option(after("resampling_", ALG), "nearest (default), linear, cubic"),
        **options("linear:2:1, add:f32:per_oc, sum:0.5"),
        "mb": IMAGES,
    },
    parse_problem,
    by_direction(ForwardWork, GradientOfResampling),
    example="--mode=CP --tag=axb,aBx8b --alg=linear --threads=1 --peer=onednn mb1ic256_ih20oh40",
    notation='mb1ic256_ih20oh40n"name"',
    title=titled("{alg} {backward}{types}{tag} {problem}"),
    completed=_completed,
)  # fmt: skip
