"""`--eltwise`: element-wise functions of a tensor, and their gradients."""

from typing import Any, cast

import numpy as np

import asmdnn as dnn
from asmdnn.bench import dims, older, typed
from asmdnn.bench.attributes import AttributeSettings, options
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem, dims_words
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.peers.onednn_numbers import ELTWISE
from asmdnn.bench.quantization import real
from asmdnn.bench.tensor_work import FORWARD, PROP_KINDS, Peer, TensorWork
from asmdnn.bench.words import FIRST_DIM, LAYOUT, Option, data_type, direction, flag, one_of
from asmdnn.definitions.elementwise import forward, rounding_error, slope
from asmdnn.definitions.rounding import as_f32
from asmdnn.errors import Unimplemented
from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.elementwise.eltwise import BACKWARD_ALGS, FORWARD_ALGS, USE_DST
from asmdnn.records import dataclass, replace
from asmdnn.types import EltwiseAlgorithm, EltwiseBackwardAlgorithm

OF_DST = "_dst"  # benchdnn's ending of use_dst_for_bwd
WORDS = (*FORWARD_ALGS, *(alg.replace(USE_DST, OF_DST) for alg in BACKWARD_ALGS if alg.endswith(USE_DST)))
OF_POSITIVE = ("log", "pow", "sqrt", "reciprocal", "rsqrt")
LARGEST_VALUE, LEAST_POSITIVE = 4.0, 0.125


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


class EltwiseWork(TensorWork):
    exactness = (False,)
    peer_slack = 10_000.0  # oneDNN's approximations, such as that of log around 1
    function, post_ops = "eltwise_forward", ("eltwise", "binary")

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
        if self.is_backward:
            alg = cast(EltwiseBackwardAlgorithm, self.alg + USE_DST * self.of_dst)
            self.desc = dnn.EltwiseBackward(alg, tensor, tensor, tensor, *numbers)
        else:
            kind, function = PROP_KINDS[settings.dir], cast(EltwiseAlgorithm, self.alg)
            self.desc = dnn.EltwiseForward(kind, function, tensor, tensor, *numbers)

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        desc = self.descs[self.data_name]
        least = LEAST_POSITIVE if self.alg in OF_POSITIVE else -LARGEST_VALUE
        arrays = {self.data_name: typed.numbers(random, desc.dims, desc.dtype, least, LARGEST_VALUE)}
        gradient = {"diff_dst": typed.numbers(random, desc.dims, desc.dtype, -1, 1)} if self.is_backward else {}
        return arrays | gradient

    def answer(self, data: TensorData) -> Answer:
        x, numbers = self.real(data, self.data_name), (as_f32(self.settings.alpha), as_f32(self.settings.beta))
        if self.is_backward:
            gradient = self.real(data, "diff_dst")
            values = gradient * slope(self.alg, x, *numbers, self.of_dst)
            error, dtype = rounding_error(values, gradient), self.descs["diff_src"].dtype
            return Answer(*typed.narrowed(values, error, dtype), "numpy")
        values = forward(self.alg, x, *numbers)
        return self.judged(data, values, rounding_error(values))

    def peer_arguments(self, peer: Peer) -> tuple[Any, ...]:
        settings, descs = self.settings, [peer.descs[name] for name in self.descs]
        if settings.alg not in ELTWISE:
            raise Unimplemented(f"onednn: there is no function {settings.alg}")
        kind = FORWARD.get(settings.dir, FORWARD["FWD_D"])
        return kind, ELTWISE[settings.alg], descs[0], descs[-1], settings.alpha, settings.beta

    def onednn(self, peer: Peer) -> Any:
        forward = super().onednn(peer)
        if not self.is_backward:
            return forward
        data, diff_dst, diff_src = (peer.descs[name] for name in self.descs)
        numbers = self.settings.alpha, self.settings.beta
        create = peer.lib.dnnl_eltwise_backward_primitive_desc_create
        return peer.describe(create, ELTWISE[self.settings.alg], diff_src, diff_dst, data, *numbers, forward, peer.null)


def _work(case: EltwiseCase) -> EltwiseWork | str:
    """Or why there is no such function."""
    alg, is_backward = case.settings.alg, case.settings.dir == "BWD_D"
    if is_backward and alg.replace(OF_DST, USE_DST) not in BACKWARD_ALGS:
        return f"{alg} has no gradient"
    return EltwiseWork(case)


def _title(case: EltwiseCase) -> str:
    settings = case.settings
    numbers = "".join(f" {number:g}" for number in (settings.alpha, settings.beta) if number)
    backward = " backward" if settings.dir == "BWD_D" else ""
    kind = f" {settings.dt}" if settings.dt != "f32" else ""
    return f"{settings.alg}{numbers}{backward}{kind} {settings.tag} {dims_words(case.problem)}"


def _alg(word: str) -> str:
    name = word.lower().removeprefix("eltwise_").replace(USE_DST, OF_DST)
    return name if name in older.FUNCTIONS else one_of(*WORDS)(name)


def _completed(settings: EltwiseSettings, problem: DimsProblem) -> tuple[EltwiseSettings, DimsProblem]:
    alg, alpha, beta = older.function(settings.alg, settings.alpha, settings.beta)
    return dims.completed(replace(settings, alg=alg, alpha=alpha, beta=beta), problem)


DRIVER = Driver(
    "eltwise",
    EltwiseSettings(),
    {
        "dir": Option("dir", direction(*PROP_KINDS, "BWD_D"),
                      "FWD_D training (default), FWD_I inference, BWD_D backward", True),
        "dt": Option("dt", data_type(), "data type: f32 (default), bf16, f16, s32, s8, u8", True),
        "tag": LAYOUT,
        "alg": Option("alg", _alg, "relu (default), tanh, ..., and tanh_dst, ... backward from the result", True),
        "alpha": Option("alpha", real, "the function's alpha (0)", True, number_word),
        "beta": Option("beta", real, "the function's beta (0)", True, number_word),
        **options("linear:2:1, add:f32:per_oc, sum:0.5"),
        "inplace": flag("inplace", "true: the result replaces src, or diff_dst; false (default)"),
        "mb": FIRST_DIM,
    },
    dims_problem(1),
    _work,
    example="--mode=CP --alg=tanh,gelu_erf --threads=1 --peer=onednn 1x64x28x28",
    notation="1x64x28x28",
    title=_title,
    completed=_completed,
)  # fmt: skip
