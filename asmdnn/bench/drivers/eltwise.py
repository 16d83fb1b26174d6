"""`--eltwise`: element-wise functions of a tensor, and their gradients."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

import asmdnn as dnn
from asmdnn.bench import chains, older, typed
from asmdnn.bench.attributes import AttributeSettings, options
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Case, Driver, PeerSide, TensorData, Work
from asmdnn.bench.elementwise import forward, rounding, slope
from asmdnn.bench.judge import Answer
from asmdnn.bench.peers.onednn_numbers import ELTWISE
from asmdnn.bench.quantization import real
from asmdnn.bench.values import decoded, poison
from asmdnn.bench.words import FIRST_DIM, LAYOUT, Option, boolean, data_type, direction, one_of
from asmdnn.errors import Unimplemented
from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.elementwise.eltwise import BACKWARD_ALGS, FORWARD_ALGS, USE_DST
from asmdnn.types import EltwiseAlgorithm, EltwiseBackwardAlgorithm

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

PROP_KINDS = {"FWD_D": dnn.PropKind.forward_training, "FWD_I": dnn.PropKind.forward_inference}
OF_DST = "_dst"  # benchdnn's ending of use_dst_for_bwd
WORDS = (*FORWARD_ALGS, *(alg.replace(USE_DST, OF_DST) for alg in BACKWARD_ALGS if alg.endswith(USE_DST)))
OF_POSITIVE = ("log", "pow", "sqrt", "reciprocal", "rsqrt")
LARGEST_VALUE, LEAST_POSITIVE = 4.0, 0.125
# Numbers of oneDNN's C interface.
FORWARD = {"FWD_D": 64, "FWD_I": 96, "BWD_D": 64}
SRC, DST, DIFF_SRC, DIFF_DST = 1, 17, 129, 145


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


class EltwiseWork(Work[TensorData]):
    exactness = (False,)
    peer_slack = 10_000.0  # oneDNN's approximations, such as that of log around 1

    def __init__(self, case: EltwiseCase) -> None:
        settings = self.settings = case.settings
        self.tensor = desc_of(case.problem.dims, settings.dt, settings.tag)
        self.attr = settings.attr(case.problem.dims)
        self.is_backward = settings.dir == "BWD_D"
        self.of_dst = settings.alg.endswith(OF_DST) and self.is_backward  # forward it is the same function
        self.alg = settings.alg.removesuffix(OF_DST)
        self.data_name = "dst" if self.of_dst else "src"
        self.names = (self.data_name, "diff_dst", "diff_src") if self.is_backward else ("src", "dst")
        source, self.result = self.names[-2:]
        self.in_place = {self.result: source} if settings.inplace else {}

    @property
    def argument_bytes(self) -> int:
        return len(self.names) * math.prod(self.tensor.padded_dims) * self.tensor.dtype.size_bytes

    def describe(self) -> tuple[dnn.EltwiseForward | dnn.EltwiseBackward, dnn.Attr]:
        settings, tensor, numbers = self.settings, self.tensor, (self.settings.alpha, self.settings.beta)
        if self.is_backward:
            alg = cast(EltwiseBackwardAlgorithm, self.alg + USE_DST * self.of_dst)
            return dnn.EltwiseBackward(alg, tensor, tensor, tensor, *numbers), self.attr
        forward = cast(EltwiseAlgorithm, self.alg)
        return dnn.EltwiseForward(PROP_KINDS[settings.dir], forward, tensor, tensor, *numbers), self.attr

    def data(self, exact: bool) -> TensorData:
        random, dims = np.random.default_rng(1), self.tensor.dims
        least = LEAST_POSITIVE if self.alg in OF_POSITIVE else -LARGEST_VALUE
        arrays = {name: poison(dims, self.tensor.dtype) for name in self.names}
        arrays[self.data_name] = typed.numbers(random, dims, self.tensor.dtype, least, LARGEST_VALUE)
        if self.is_backward:
            arrays["diff_dst"] = typed.numbers(random, dims, self.tensor.dtype, -1, 1)
        elif self.attr.reads_dst():
            fresh = typed.numbers(random, dims, self.tensor.dtype, -1, 1)
            arrays["dst"] = arrays["src"] if self.in_place else fresh
        return TensorData(arrays | chains.operands(self.attr, exact), exact)

    def answer(self, data: TensorData) -> Answer:
        dtype, factors = self.tensor.dtype, (self.settings.alpha, self.settings.beta)
        x = decoded(data.arrays[self.data_name], dtype).astype(np.float32)
        if self.is_backward:
            gradient = decoded(data.arrays["diff_dst"], dtype).astype(np.float64)
            values = gradient * slope(self.alg, x, *factors, self.of_dst)
            return Answer(*typed.narrowed(values, rounding(values, gradient), dtype), "numpy")
        values = forward(self.alg, x, *factors)
        return typed.answer(self.attr, values, rounding(values), data.arrays, dtype)

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor
        from asmdnn.bench.peers.onednn_attributes import tensors_of

        numbers = {"src": SRC, "dst": DST, "diff_src": DIFF_SRC, "diff_dst": DIFF_DST}
        tensors: Mapping[str, Tensor] = {name: Tensor(numbers[name], self.tensor) for name in self.names}
        tensors = {**tensors, **tensors_of(self.attr)}
        return OnednnPrimitive(self._of_onednn, tensors, isa, threads, (self.result,), self.in_place)

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        from asmdnn.bench.peers.onednn_attributes import attributes

        settings, descs = self.settings, [peer.descs[name] for name in self.names]
        if settings.alg not in ELTWISE:
            raise Unimplemented(f"onednn: there is no function {settings.alg}")
        alg, numbers = ELTWISE[settings.alg], (settings.alpha, settings.beta)
        forward = peer.describe(
            peer.lib.dnnl_eltwise_forward_primitive_desc_create,
            *(
                FORWARD[settings.dir],
                alg,
                descs[0],
                descs[-1],
                *numbers,
                attributes(peer, self.attr, ("eltwise", "binary")),
            ),
        )
        if not self.is_backward:
            return forward
        data, diff_dst, diff_src = descs
        return peer.describe(
            peer.lib.dnnl_eltwise_backward_primitive_desc_create,
            *(alg, diff_src, diff_dst, data, *numbers, forward, peer.null),
        )


def _work(case: EltwiseCase) -> EltwiseWork | str:
    """Or why there is no such function."""
    alg, is_backward = case.settings.alg, case.settings.dir == "BWD_D"
    if is_backward and alg.replace(OF_DST, USE_DST) not in BACKWARD_ALGS:
        return f"{alg} has no gradient"
    return EltwiseWork(case)


def _title(case: EltwiseCase) -> str:
    settings, dims = case.settings, "x".join(map(str, case.problem.dims))
    numbers = "".join(f" {number:g}" for number in (settings.alpha, settings.beta) if number)
    backward = " backward" if settings.dir == "BWD_D" else ""
    kind = f" {settings.dt}" if settings.dt != "f32" else ""
    return f"{settings.alg}{numbers}{backward}{kind} {settings.tag} {dims}"


def _alg(word: str) -> str:
    name = word.lower().removeprefix("eltwise_").replace(USE_DST, OF_DST)
    return name if name in older.FUNCTIONS else one_of(*WORDS)(name)


def _completed(settings: EltwiseSettings, problem: DimsProblem) -> tuple[EltwiseSettings, DimsProblem]:
    dims = (settings.mb or problem.dims[0], *problem.dims[1:])
    alg, alpha, beta = older.function(settings.alg, settings.alpha, settings.beta)
    settings = replace(settings, alg=alg, alpha=alpha, beta=beta, mb=0)
    return settings, replace(problem, tensors=(dims,))


DRIVER = Driver(
    "eltwise",
    EltwiseSettings(),
    {
        "dir": Option("dir", direction(*FORWARD), "FWD_D training (default), FWD_I inference, BWD_D backward", True),
        "dt": Option("dt", data_type(), "data type: f32 (default), bf16, f16, s32, s8, u8", True),
        "tag": LAYOUT,
        "alg": Option("alg", _alg, "relu (default), tanh, ..., and tanh_dst, ... backward from the result", True),
        "alpha": Option("alpha", real, "the function's alpha (0)", True, number_word),
        "beta": Option("beta", real, "the function's beta (0)", True, number_word),
        **options("linear:2:1, add:f32:per_oc, sum:0.5"),
        "inplace": Option("inplace", boolean, "true: the result replaces src, or diff_dst; false (default)", True),
        "mb": FIRST_DIM,
    },
    dims_problem(1),
    _work,
    example="--mode=CP --alg=tanh,gelu_erf --threads=1 --peer=onednn 1x64x28x28",
    notation="1x64x28x28",
    title=_title,
    completed=_completed,
)  # fmt: skip
