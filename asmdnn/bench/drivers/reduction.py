"""`--reduction`: reductions over the dims that the second tensor has as 1."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.bench import chains, typed
from asmdnn.bench.attributes import AttributeSettings, options
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Case, Driver, PeerSide, TensorData, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.quantization import real
from asmdnn.bench.values import decoded, encoded, poison
from asmdnn.bench.words import Option, data_type, one_of, tag
from asmdnn.errors import Unimplemented
from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.reduction.description import ALGORITHMS, ReductionAlgorithm

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

Doubles = npt.NDArray[np.float64]
UNIT = 2.0**-23
LARGEST_VALUE, LARGEST_CENTER = 4.0, 8
INTEGERS, TWOS = ("s32", "s8", "u8"), 3  # so many factors of a product are 2
# Numbers of oneDNN's C interface.
ALGS = {alg: 0x2FFF2 + i for i, alg in enumerate(alg for alg in ALGORITHMS if alg != "logsumexp")}
SRC, DST = 1, 17


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


def reduced(alg: str, x: Doubles, axes: tuple[int, ...], p: float, eps: float) -> Doubles:
    """By numpy, with dims of 1."""

    def norm(exponent: float, combine: Callable[[Doubles, float], Doubles]) -> Doubles:
        return combine((np.abs(x) ** p).sum(axes, keepdims=True), eps) ** exponent

    functions: dict[str, Callable[[], Any]] = {
        "max": lambda: x.max(axes, keepdims=True),
        "min": lambda: x.min(axes, keepdims=True),
        "sum": lambda: x.sum(axes, keepdims=True),
        "mul": lambda: x.prod(axes, keepdims=True),
        "mean": lambda: x.mean(axes, keepdims=True),
        "norm_lp_max": lambda: norm(1 / p, np.maximum),
        "norm_lp_sum": lambda: norm(1 / p, np.add),
        "norm_lp_power_p_max": lambda: norm(1.0, np.maximum),
        "norm_lp_power_p_sum": lambda: norm(1.0, np.add),
        "logsumexp": lambda: np.log(np.exp(x).sum(axes, keepdims=True)),
    }
    return np.asarray(functions[alg](), np.float64)


class ReductionWork(Work[TensorData]):
    exactness = (False,)
    peer_slack = 1000.0

    def __init__(self, case: ReductionCase) -> None:
        settings, (src, dst) = case.settings, case.problem.tensors
        self.settings = settings
        self.src = desc_of(src, settings.sdt, settings.stag)
        self.dst = desc_of(dst, settings.ddt, settings.stag if settings.dtag == "any" else settings.dtag)
        self.attr = settings.attr(dst)
        alg = cast(ReductionAlgorithm, settings.alg)
        self.desc = dnn.ReductionForward(alg, self.src, self.dst, settings.p, settings.eps)

    @property
    def argument_bytes(self) -> int:
        return sum(math.prod(desc.padded_dims) * desc.dtype.size_bytes for desc in (self.src, self.dst))

    def describe(self) -> tuple[dnn.ReductionForward, dnn.Attr]:
        return self.desc, self.attr

    def data(self, exact: bool) -> TensorData:
        """Products of many numbers stay in range: the more there are, the nearer each is to 1; a few integers are 2.
        Others have a center of their own for every result: the extremes of many integers would be equal everywhere."""
        random = np.random.default_rng(1)
        count = math.prod(self.src.dims) / math.prod(self.dst.dims)
        spread = min(0.1, 10 / math.sqrt(count))
        limits = (1 - spread, 1 + spread) if self.desc.alg == "mul" else (-LARGEST_VALUE, LARGEST_VALUE)
        dst = poison(self.dst.dims, self.dst.dtype)
        if self.attr.reads_dst():
            dst = typed.numbers(random, self.dst.dims, self.dst.dtype, -1, 1)
        src = typed.numbers(random, self.src.dims, self.src.dtype, *limits)
        if self.desc.alg != "mul":
            centers = random.integers(0, LARGEST_CENTER, self.dst.dims)
            src = encoded(decoded(src, self.src.dtype) + centers, self.src.dtype)
        elif self.src.dtype.name in INTEGERS:
            src += (random.random(src.shape) < TWOS / max(count, 2 * TWOS)).astype(src.dtype)
        return TensorData({"src": src, "dst": dst, **chains.operands(self.attr, exact)}, exact)

    def answer(self, data: TensorData) -> Answer:
        """The tree is 64 wide: roundings of a chunk's longest chain, and of some levels, in the size of the terms."""
        x, desc = decoded(data.arrays["src"], self.src.dtype).astype(np.float64), self.desc
        values = reduced(desc.alg, x, desc.reduced, desc.p, desc.eps)
        count = math.prod(desc.src.dims) // math.prod(desc.dst.dims)
        roundings = min(count, 1024) + 8
        size = np.abs(values)
        if desc.alg in ("sum", "mean"):
            size = reduced(desc.alg, np.abs(x), desc.reduced, desc.p, desc.eps)
        error = UNIT * roundings * size if desc.alg not in ("max", "min") else 0.0 * size
        if desc.alg == "mul":
            error = 2 * UNIT * (count + 8) * size
        if desc.alg == "logsumexp":
            error = UNIT * (roundings + 2 * (LARGEST_VALUE + LARGEST_CENTER)) * (1 + size)
        return typed.answer(self.attr, values, error, data.arrays, self.dst.dtype)

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor
        from asmdnn.bench.peers.onednn_attributes import tensors_of

        if self.desc.alg not in ALGS:
            raise Unimplemented(f"onednn: there is no reduction {self.desc.alg}")
        tensors = {"src": Tensor(SRC, self.src), "dst": Tensor(DST, self.dst), **tensors_of(self.attr)}
        return OnednnPrimitive(self._of_onednn, tensors, isa, threads)

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        from asmdnn.bench.peers.onednn_attributes import attributes

        return peer.describe(
            peer.lib.dnnl_reduction_primitive_desc_create,
            *(
                ALGS[self.desc.alg],
                peer.descs["src"],
                peer.descs["dst"],
                self.desc.p,
                self.desc.eps,
                attributes(peer, self.attr, ("sum", "eltwise", "binary")),
            ),
        )


def _alg(word: str) -> str:
    return one_of(*ALGORITHMS)(word.lower().removeprefix("reduction_"))


def _title(case: ReductionCase) -> str:
    settings = case.settings
    dims = ":".join("x".join(map(str, dims)) for dims in case.problem.tensors)
    kinds = "" if settings.sdt == settings.ddt == "f32" else f"{settings.sdt} to {settings.ddt} "
    return f"{settings.alg} {kinds}{settings.stag} {dims}"


DRIVER = Driver(
    "reduction",
    ReductionSettings(),
    {
        "alg": Option("alg", _alg, "sum (default), max, min, mul, mean, logsumexp, norm_lp_max ...", True),
        "sdt": Option("sdt", data_type(), "data type of src: f32 (default), bf16, f16, s32, s8, u8", True),
        "ddt": Option("ddt", data_type(), "data type of dst: f32 (default), bf16, f16, s32, s8, u8", True),
        "stag": Option("stag", tag, "layout of src: abx (default), axb, aBx16b, nchw, nChw8c, ...", True),
        "dtag": Option("dtag", tag, "layout of dst: any (default) is that of src", True),
        "p": Option("p", real, "the power of norms (2), from 1 on", True, number_word),
        "eps": Option("eps", real, "of norms (0)", True, number_word),
        **options("linear:2:1, add:f32:per_oc, sum:0.5"),
    },
    dims_problem(2),
    ReductionWork,
    example="--mode=CP --alg=mean --threads=1 --peer=onednn 1x2048x7x7:1x2048x1x1",
    notation="1x2048x7x7:1x2048x1x1",
    title=_title,
)  # fmt: skip
