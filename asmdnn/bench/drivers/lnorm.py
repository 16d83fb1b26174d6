"""`--lnorm`: layer normalization over the last dim."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench import chains
from asmdnn.bench.attributes import AttributeSettings, options
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Case, Driver, PeerSide, TensorData, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.norms import FLAG_BITS, Doubles, arrays_of, flags, normalized_error
from asmdnn.bench.typed import check_in_place
from asmdnn.bench.values import joined
from asmdnn.bench.words import FIRST_DIM, INPLACE, Option, data_type, direction, tag
from asmdnn.errors import Unimplemented

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

PROP_KINDS = {"FWD_D": dnn.PropKind.forward_training, "FWD_I": dnn.PropKind.forward_inference}
EPSILON = 1e-5
# Numbers of oneDNN's C interface.
FORWARD = {"FWD_D": 64, "FWD_I": 96}
ARGUMENTS = {"src": 1, "dst": 17, "mean": 49, "variance": 50, "scale": 51, "shift": 52}


@dataclass(frozen=True, slots=True)
class LnormSettings(AttributeSettings):
    dir: str = "FWD_D"
    dt: str = "f32"
    ss_dt: str = "f32"
    tag: str = "abx"
    stat_tag: str = "abx"
    flags: str = ""
    inplace: bool = False
    mb: int = 0


LnormCase = Case[LnormSettings, DimsProblem]


class LnormWork(Work[TensorData]):
    exactness = (False,)
    peer_slack = 100.0

    def __init__(self, case: LnormCase) -> None:
        settings, dims = case.settings, case.problem.dims
        self.settings, self.dims = settings, dims
        source, _, target = settings.tag.partition(":")
        self.src = desc_of(dims, "f32", source)
        self.dst = self.src if target in ("", "any") else desc_of(dims, "f32", target)
        if settings.inplace:
            check_in_place(self.src, self.dst)
        self.given, self.is_training = "G" in settings.flags, settings.dir == "FWD_D"
        vector, statistics = desc_of(dims[-1:], "f32", "abx"), desc_of(dims[:-1], "f32", settings.stat_tag)
        has = {"scale": "C" in settings.flags, "shift": "H" in settings.flags}
        keeps = self.given or self.is_training
        self.rms = "M" in settings.flags
        self.descs = {"src": self.src, "dst": self.dst}
        self.descs |= {name: statistics for name in ("mean", "variance")[self.rms :] if keeps}
        self.descs |= {name: vector for name, is_there in has.items() if is_there}
        self.results = ("dst", *(("mean", "variance")[self.rms :] if keeps and not self.given else ()))
        self.in_place = {"dst": "src"} if settings.inplace else {}
        self.attr = settings.attr(dims)

    @property
    def argument_bytes(self) -> int:
        return sum(4 * math.prod(desc.padded_dims) for desc in self.descs.values())

    def describe(self) -> tuple[dnn.LayerNormForward, dnn.Attr]:
        optional = {name: desc for name, desc in self.descs.items() if name not in ("src", "dst")}
        kind = PROP_KINDS[self.settings.dir]
        return (
            dnn.LayerNormForward(
                kind, self.src, self.dst, EPSILON, **optional, use_global_stats=self.given, rms=self.rms
            ),
            self.attr,
        )

    def data(self, exact: bool) -> TensorData:
        arrays = arrays_of(self.descs, self.results, self.given, np.random.default_rng(1))
        return TensorData(arrays | chains.operands(self.attr, exact), exact)

    def answer(self, data: TensorData) -> Answer:
        arrays = {name: array.astype(np.float64) for name, array in data.arrays.items()}
        x = arrays["src"]
        mean, variance = self.statistics(arrays)
        factor = 1 / np.sqrt(variance + np.float64(np.float32(EPSILON)))
        scale, shift = arrays.get("scale", 1.0), arrays.get("shift", 0.0)
        values = (x - mean) * factor * scale + shift
        error = normalized_error(x - mean, factor, scale, shift, x)
        values, error = chains.apply(self.attr, values, error, data.arrays)
        size = np.abs(x).max(-1)
        bounds = {"mean": 2.0**-20 * size, "variance": 2.0**-20 * size * size}
        found = {"dst": (values, error), "mean": (mean[..., 0], bounds["mean"])}
        found["variance"] = (variance[..., 0], bounds["variance"])
        expected, tolerance = (joined([found[name][i] for name in self.results]) for i in range(2))
        return Answer(expected, tolerance, "numpy")

    def statistics(self, arrays: dict[str, Doubles]) -> tuple[Doubles, Doubles]:
        """With a last dim of 1."""
        x = arrays["src"]
        if self.given:
            variance = arrays["variance"][..., None]
            return np.zeros_like(variance) if self.rms else arrays["mean"][..., None], variance
        if self.rms:
            squares = (x * x).mean(-1, keepdims=True)
            return np.zeros_like(squares), squares
        return x.mean(-1, keepdims=True), x.var(-1, keepdims=True)

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor
        from asmdnn.bench.peers.onednn_attributes import tensors_of

        if self.rms:
            raise Unimplemented("onednn: version 3.2 has no RMS normalization")
        tensors = {name: Tensor(ARGUMENTS[name], desc) for name, desc in self.descs.items()} | tensors_of(self.attr)
        return OnednnPrimitive(self._of_onednn, tensors, isa, threads, self.results, self.in_place)

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        from asmdnn.bench.peers.onednn_attributes import attributes

        statistics = peer.layout(desc_of(self.dims[:-1], "f32", self.settings.stat_tag))
        bits = sum(FLAG_BITS[flag] for flag in self.settings.flags)
        return peer.describe(
            peer.lib.dnnl_layer_normalization_forward_primitive_desc_create,
            *(
                FORWARD[self.settings.dir],
                peer.descs["src"],
                peer.descs["dst"],
                statistics,
                EPSILON,
                bits,
                attributes(peer, self.attr, ()),
            ),
        )


def _tags(word: str) -> str:
    """That of both, or SRC:DST; `any` of dst is that of src."""
    source, _, target = word.partition(":")
    return tag(source) + (f":{tag(target)}" if target not in ("", "any") else "")


def _title(case: LnormCase) -> str:
    settings, dims = case.settings, "x".join(map(str, case.problem.dims))
    return f"{settings.dir} {settings.flags} {settings.tag} {dims}"


def _completed(settings: LnormSettings, problem: DimsProblem) -> tuple[LnormSettings, DimsProblem]:
    dims = (settings.mb or problem.dims[0], *problem.dims[1:])
    return replace(settings, mb=0), replace(problem, tensors=(dims,))


DRIVER = Driver(
    "lnorm",
    LnormSettings(),
    {
        "dir": Option("dir", direction(*PROP_KINDS), "FWD_D training (default), FWD_I inference", True),
        "dt": Option("dt", data_type("f32"), "data type: f32", True),
        "ss_dt": Option("ss_dt", data_type("f32"), "data type of scale and shift: f32", True),
        "tag": Option("tag", _tags, "layouts of src and dst: abx (default), axb, abx:axb, ...", True),
        "stat_tag": Option("stat_tag", tag, "layout of mean and variance: abx (default), axb, ...", True),
        "flags": Option("flags", flags("GCHM"), "G statistics are given, C scale, H shift, M without mean (RMS)", True),
        **options("linear:2:1, add:f32:per_oc"),
        "inplace": INPLACE,
        "mb": FIRST_DIM,
    },
    dims_problem(1),
    LnormWork,
    example="--mode=CP --dir=FWD_I --flags=CH --threads=1 --peer=onednn 128x768",
    notation="128x768",
    title=_title,
    completed=_completed,
)  # fmt: skip
