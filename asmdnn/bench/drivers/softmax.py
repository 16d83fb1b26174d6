"""`--softmax`: softmax and its logarithm over one axis."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench import chains, typed
from asmdnn.bench.attributes import ScaledSettings, options, scales_of
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Array, Case, Driver, PeerSide, TensorData, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.quantization import joined, quantities
from asmdnn.bench.values import decoded, poison
from asmdnn.bench.words import FIRST_DIM, INPLACE, Option, data_type, direction, number, one_of, tag
from asmdnn.memory.tags import MAX_NDIMS

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

PROP_KINDS = {"FWD_D": dnn.PropKind.forward_training, "FWD_I": dnn.PropKind.forward_inference}
LARGEST_VALUE = 8.0
UNIT, ULPS = 2.0**-23, 12
SHORTEST_VECTORS = 64  # half a rounding for each sum of 4 vectors of 8
# Numbers of oneDNN's C interface.
FORWARD = {"FWD_D": 64, "FWD_I": 96}
ALGS = {"SOFTMAX": 0x30000, "LOGSOFTMAX": 0x30001}
SRC, DST = 1, 17


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


def softmax(x: Array, axis: int, log: bool, is_scaled: bool = False) -> tuple[Array, Array]:
    """The result in float64; and its error: that of rounding x - max x, which e^x takes over, and some roundings, with
    those of the longest chain of sums, and of x where it is a product."""
    ulps: Any = ULPS + x.shape[axis] / SHORTEST_VECTORS
    ulps = ulps + is_scaled * np.abs(x).max(axis, keepdims=True)
    differences = x.astype(np.float64)
    differences -= differences.max(axis, keepdims=True)
    powers = np.exp(differences)
    total = powers.sum(axis, keepdims=True)
    if log:
        result = differences - np.log(total)
        return result, ulps * UNIT * (1 + np.abs(differences) + np.log(total))
    result = powers / total
    return result, UNIT * result * (ulps + np.abs(differences)) + 2.0**-126


class SoftmaxWork(Work[TensorData]):
    exactness = (False,)
    peer_slack = 10.0

    def __init__(self, case: SoftmaxCase) -> None:
        settings, dims = case.settings, case.problem.dims
        self.settings, self.dims = settings, dims
        self.src = desc_of(dims, settings.sdt, settings.stag)
        self.dst = desc_of(dims, settings.ddt, settings.stag if settings.dtag == "any" else settings.dtag)
        self.in_place = {"dst": "src"} if settings.inplace else {}
        self.scales = scales_of(settings.scales, {"src": dims, "dst": dims}, {"src": 1, "dst": 1})
        self.attr = settings.attr(dims, scales=self.scales.masks)
        if settings.inplace:
            typed.check_in_place(self.src, self.dst)
        self.desc = dnn.SoftmaxForward(
            PROP_KINDS[settings.dir], "log" if self.is_log else "accurate", self.src, self.dst, settings.axis
        )

    @property
    def is_log(self) -> bool:
        return self.settings.alg == "LOGSOFTMAX"

    @property
    def argument_bytes(self) -> int:
        return sum(math.prod(desc.padded_dims) * desc.dtype.size_bytes for desc in (self.src, self.dst))

    def describe(self) -> tuple[dnn.SoftmaxForward, dnn.Attr]:
        return self.desc, self.attr

    def data(self, exact: bool) -> TensorData:
        src = typed.numbers(np.random.default_rng(1), self.dims, self.src.dtype, -LARGEST_VALUE, LARGEST_VALUE)
        arrays = {"src": src, "dst": poison(self.dims, self.dst.dtype)}
        return TensorData({**arrays, **self.scales.arrays, **chains.operands(self.attr, exact)}, exact)

    def answer(self, data: TensorData) -> Answer:
        x = decoded(data.arrays["src"], self.src.dtype) * (self.scales.source * self.scales.factor)
        values, error = softmax(x, self.desc.axis, self.is_log, bool(self.settings.scales))
        return typed.answer(self.attr, values, error, data.arrays, self.dst.dtype, self.scales.divisor)

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor
        from asmdnn.bench.peers.onednn_attributes import quantities_of, tensors_of

        tensors = {"src": Tensor(SRC, self.src), "dst": Tensor(DST, self.dst), **tensors_of(self.attr)}
        tensors |= quantities_of(self.scales.arrays)
        return OnednnPrimitive(self._of_onednn, tensors, isa, threads, ("dst",), self.in_place)

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        from asmdnn.bench.peers.onednn_attributes import attributes

        return peer.describe(
            peer.lib.dnnl_softmax_forward_primitive_desc_create,
            *(
                FORWARD[self.settings.dir],
                ALGS[self.settings.alg],
                peer.descs["src"],
                peer.descs["dst"],
                self.desc.axis,
                attributes(peer, self.attr, ("eltwise", "binary")),
            ),
        )


def _alg(word: str) -> str:
    return one_of(*ALGS)(word.lower().removesuffix("_accurate").replace("softmax_log", "logsoftmax"))


def _title(case: SoftmaxCase) -> str:
    settings, dims = case.settings, "x".join(map(str, case.problem.dims))
    return f"{settings.alg.lower()} {settings.stag} {dims} axis {settings.axis}"


def _completed(settings: SoftmaxSettings, problem: DimsProblem) -> tuple[SoftmaxSettings, DimsProblem]:
    dims = (settings.mb or problem.dims[0], *problem.dims[1:])
    return replace(settings, mb=0), replace(problem, tensors=(dims,))


DRIVER = Driver(
    "softmax",
    SoftmaxSettings(),
    {
        "dir": Option("dir", direction(*PROP_KINDS), "FWD_D training (default), FWD_I inference", True),
        "sdt": Option("sdt", data_type(), "data type of src: f32 (default), bf16, f16, s32, s8, u8", True),
        "ddt": Option("ddt", data_type(), "data type of dst: f32 (default), bf16, f16, s32, s8, u8", True),
        "stag": Option("stag", tag, "layout of src: abx (default), axb, aBx16b, nchw, nChw8c, ...", True),
        "dtag": Option("dtag", tag, "layout of dst: any (default) is that of src", True),
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
