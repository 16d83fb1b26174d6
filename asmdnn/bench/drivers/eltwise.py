"""`--eltwise`: element-wise functions of a tensor, and their gradients."""

from typing import Any, cast

import numpy as np

import asmdnn as dnn
from asmdnn.bench import older
from asmdnn.bench.attributes import AttributeSettings, options
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Case, Driver, TensorData, completed
from asmdnn.bench.gradients import GradientWork
from asmdnn.bench.judge import Answer
from asmdnn.bench.peers.onednn_numbers import ELTWISE
from asmdnn.bench.quantization import real
from asmdnn.bench.tensor_work import DATA_DIRECTION, FORWARD, PROP_KINDS, Peer, TensorWork
from asmdnn.bench.titles import titled
from asmdnn.bench.words import DT, FIRST_DIM, LAYOUT, flag, one_of, option
from asmdnn.definitions.elementwise import forward, rounding_error, slope
from asmdnn.definitions.rounding import Doubles, as_f32
from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.elementwise.eltwise import BACKWARD_ALGS, FORWARD_ALGS, USE_DST
from asmdnn.records import dataclass, replace
from asmdnn.types import EltwiseAlgorithm, EltwiseBackwardAlgorithm

OF_DST = "_dst"  # benchdnn's ending of use_dst_for_bwd
WORDS = (*FORWARD_ALGS, *(alg.replace(USE_DST, OF_DST) for alg in BACKWARD_ALGS if alg.endswith(USE_DST)))
OF_POSITIVE = ("log", "pow", "sqrt", "reciprocal", "rsqrt")
LARGEST_VALUE, LEAST_POSITIVE = 4.0, 0.125
NEAR = 2.0**-22  # of x: what a product and a sum of f32 may have moved it by
SMOOTH = 2.0**-10  # of a slope: what it changes by so near without a corner, at most


@dataclass(frozen=True, slots=True)
class EltwiseSettings(AttributeSettings):
    dir: str = "FWD_D"
    dt: str = "f32"
    tag: str = "abx"
    alg: str = "relu"
    alpha: float = 0.0
    beta: float = 0.0
    inplace: bool = False
    mb: int = 0


EltwiseCase = Case[EltwiseSettings, DimsProblem]


class EltwiseWork(GradientWork):
    peer_slack = 10_000.0  # oneDNN's approximations, such as that of log around 1
    primitive, function, post_ops = "eltwise", "eltwise_forward", ("eltwise", "binary")

    def __init__(self, case: EltwiseCase) -> None:
        settings = self.settings = case.settings
        tensor = desc_of(case.problem.dims, settings.dt, settings.tag)
        self.attr = settings.attr(case.problem.dims)
        self.is_backward, numbers = settings.dir == "BWD_D", (settings.alpha, settings.beta)
        self.of_dst = settings.alg.endswith(OF_DST) and self.is_backward  # forward it is the same function
        self.alg, self.data_name = settings.alg.removesuffix(OF_DST), "dst" if self.of_dst else "src"
        names = (self.data_name, "diff_dst", "diff_src") if self.is_backward else ("src", "dst")
        self.descs, self.results = dict.fromkeys(names, tensor), names[-1:]
        self.in_place = {names[-1]: names[-2]} if settings.inplace else {}
        self.forward_takes = self.number_of(ELTWISE, "function", settings.alg), "src", "dst", *numbers
        self.reads = (self.data_name,)
        least = LEAST_POSITIVE if self.alg in OF_POSITIVE else -LARGEST_VALUE
        self.bounds_of = {self.data_name: (least, LARGEST_VALUE)}
        if self.is_backward:
            alg = cast(EltwiseBackwardAlgorithm, self.alg + USE_DST * self.of_dst)
            self.desc = dnn.EltwiseBackward(alg, tensor, tensor, tensor, *numbers)
        else:
            kind, function = PROP_KINDS[settings.dir], cast(EltwiseAlgorithm, self.alg)
            self.desc = dnn.EltwiseForward(kind, function, tensor, tensor, *numbers)
            self.takes = FORWARD[settings.dir], *self.forward_takes

    def answer(self, data: TensorData) -> Answer:
        x, numbers = self.real(data, self.data_name), (as_f32(self.settings.alpha), as_f32(self.settings.beta))
        if self.is_backward:
            gradient = self.real(data, "diff_dst")
            values = gradient * slope(self.alg, x, *numbers, self.of_dst)
            error = rounding_error(values, gradient) + np.abs(gradient * self.jump(x, *numbers))
            return self.gradients({"diff_src": (values, error)})
        values = forward(self.alg, x, *numbers)
        return self.judged(data, values, rounding_error(values))

    def jump(self, x: Doubles, alpha: float, beta: float) -> Doubles:
        """Of the slope between both sides of x, as near as f32 rounds: at a corner either one is right.  0 elsewhere.

        With alpha 0.16 and beta 0.5 hardswish has its corner next to 3.125, which f32 rounds onto it.
        """
        with np.errstate(invalid="ignore"):  # infinite on both sides
            low, high = (slope(self.alg, x * (1 + side * NEAR), alpha, beta, self.of_dst) for side in (-1, 1))
            return np.where(np.abs(high - low) > SMOOTH * (np.abs(low) + np.abs(high)), high - low, 0)

    def onednn(self, peer: Peer) -> Any:
        return super().onednn(peer) if self.is_backward else TensorWork.onednn(self, peer)


def _work(case: EltwiseCase) -> EltwiseWork | str:
    """Or why there is no such function."""
    alg, is_backward = case.settings.alg, case.settings.dir == "BWD_D"
    if is_backward and alg.replace(OF_DST, USE_DST) not in BACKWARD_ALGS:
        return f"{alg} has no gradient"
    return EltwiseWork(case)


def _alg(word: str) -> str:
    name = word.lower().removeprefix("eltwise_").replace(USE_DST, OF_DST)
    return name if name in older.FUNCTIONS else one_of(*WORDS)(name)


def _completed(settings: EltwiseSettings, problem: DimsProblem) -> tuple[Any, Any]:
    alg, alpha, beta = older.function(settings.alg, settings.alpha, settings.beta)
    return completed(replace(settings, alg=alg, alpha=alpha, beta=beta), problem)


DRIVER = Driver(
    "eltwise",
    EltwiseSettings(),
    {
        "dir": DATA_DIRECTION,
        "dt": DT,
        "tag": LAYOUT,
        "alg": option(_alg, "relu (default), tanh, ..., and tanh_dst, ... backward from the result"),
        "alpha": option(real, "the function's alpha (0)", number_word),
        "beta": option(real, "the function's beta (0)", number_word),
        **options("linear:2:1, add:f32:per_oc, sum:0.5"),
        "inplace": flag("true: the result replaces src, or diff_dst; false (default)"),
        "mb": FIRST_DIM,
    },
    dims_problem(1),
    _work,
    example="--mode=CP --alg=tanh,gelu_erf --threads=1 --peer=onednn 1x64x28x28",
    title=titled("{alg} {numbers}{backward}{types}{tag} {dims}"),
    completed=_completed,
)  # fmt: skip
