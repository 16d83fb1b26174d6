"""`--prelu`: src where it is positive, else weights times src."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench import chains, typed
from asmdnn.bench.attributes import AttributeSettings, options
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Case, Driver, PeerSide, TensorData, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.values import decoded, poison
from asmdnn.bench.words import INPLACE, Option, data_type, direction, tag
from asmdnn.errors import InvalidArguments, Unimplemented

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

PROP_KINDS = {"FWD_D": dnn.PropKind.forward_training, "FWD_I": dnn.PropKind.forward_inference}
UNIT = 2.0**-23
# Numbers of oneDNN's C interface.
FORWARD = {"FWD_D": 64, "FWD_I": 96}
ARGUMENTS = {"src": 1, "weights": 33, "dst": 17}


@dataclass(frozen=True, slots=True)
class PreluSettings(AttributeSettings):
    dir: str = "FWD_D"
    sdt: str = "f32"
    stag: str = "abx"
    inplace: bool = False


PreluCase = Case[PreluSettings, DimsProblem]


class PreluWork(Work[TensorData]):
    exactness = (False,)
    peer_slack = 10.0

    def __init__(self, case: PreluCase) -> None:
        settings, (src, weights) = case.settings, case.problem.tensors
        self.settings = settings
        kind, of_weights = (settings.sdt.split(":") * 2)[:2]
        layout, weights_layout = (settings.stag.split(":") * 2)[:2]
        tensor = desc_of(src, kind, layout)
        self.descs = {"src": tensor, "weights": desc_of(weights, of_weights, weights_layout), "dst": tensor}
        if self.descs["weights"].padded_dims != weights:  # blocks of few channels
            self.descs["weights"] = desc_of(weights, of_weights, "abx")
        self.in_place = {"dst": "src"} if settings.inplace else {}
        self.attr = settings.attr(src)

    @property
    def argument_bytes(self) -> int:
        return sum(math.prod(desc.padded_dims) * desc.dtype.size_bytes for desc in self.descs.values())

    def describe(self) -> tuple[dnn.PReLUForward, dnn.Attr]:
        return dnn.PReLUForward(PROP_KINDS[self.settings.dir], *self.descs.values()), self.attr

    def data(self, exact: bool) -> TensorData:
        random = np.random.default_rng(1)
        arrays = {name: typed.numbers(random, desc.dims, desc.dtype, -2, 2) for name, desc in self.descs.items()}
        arrays["dst"] = poison(self.descs["dst"].dims, self.descs["dst"].dtype)
        if self.attr.reads_dst():
            fresh = typed.numbers(random, arrays["src"].shape, self.descs["dst"].dtype, -1, 1)
            arrays["dst"] = arrays["src"] if self.in_place else fresh
        return TensorData({**arrays, **chains.operands(self.attr, exact)}, exact)

    def answer(self, data: TensorData) -> Answer:
        found = {name: decoded(data.arrays[name], desc.dtype) for name, desc in self.descs.items()}
        src, weights = (found[name].astype(np.float64) for name in ("src", "weights"))
        values = np.where(src > 0, src, weights * src)
        return typed.answer(self.attr, values, UNIT * np.abs(values), data.arrays, self.descs["dst"].dtype)

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor

        if self.attr.post_ops:
            raise Unimplemented("onednn: prelu has no post-ops")
        tensors = {name: Tensor(ARGUMENTS[name], desc) for name, desc in self.descs.items()}
        return OnednnPrimitive(self._of_onednn, tensors, isa, threads, ("dst",), self.in_place)

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        descs = [peer.descs[name] for name in ARGUMENTS]
        create = peer.lib.dnnl_prelu_forward_primitive_desc_create
        return peer.describe(create, FORWARD[self.settings.dir], *descs, peer.null)


def _types(word: str) -> str:
    """Of src and weights, one where they are the same."""
    names = list(map(data_type(), word.split(":")))
    if len(names) > 2:
        raise InvalidArguments("must be the types of src and weights, such as f32 or u8:f32")
    return ":".join(dict.fromkeys(names))


def _tags(word: str) -> str:
    """Of all tensors, or of src and weights, of which `any` is src's."""
    layout, *more = map(tag, word.split(":"))
    if len(more) > 1:
        raise InvalidArguments("must be the layout of all tensors, or of src and of weights, such as axb:abx")
    return layout if not more or more[0] in ("any", layout) else f"{layout}:{more[0]}"


def _title(case: PreluCase) -> str:
    kinds = f"{case.settings.sdt} " if case.settings.sdt != "f32" else ""
    return f"{kinds}{case.settings.stag} {':'.join('x'.join(map(str, dims)) for dims in case.problem.tensors)}"


DRIVER = Driver(
    "prelu",
    PreluSettings(),
    {
        "dir": Option("dir", direction(*PROP_KINDS), "FWD_D training (default), FWD_I inference", True),
        "sdt": Option("sdt", _types, "data types of src, which is dst's, and weights: f32 (default), u8:f32", True),
        "stag": Option("stag", _tags, "layouts: abx (default), axb, aBx16b, ..., or of src and weights, axb:abx", True),
        **options("linear:2:1, add:f32:per_oc, sum:0.5"),
        "inplace": INPLACE,
    },
    dims_problem(2),
    PreluWork,
    example="--mode=CP --stag=abx,axb --threads=1 --peer=onednn 1x64x112x112:1x64x1x1",
    notation="1x64x112x112:1x64x1x1",
    title=_title,
)  # fmt: skip
