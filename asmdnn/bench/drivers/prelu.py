"""`--prelu`: src where it is positive, else weights times src."""

from typing import TYPE_CHECKING, Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.attributes import AttributeSettings, options
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem, dims_words
from asmdnn.bench.driver import Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import FORWARD, FORWARD_DIRECTION, PROP_KINDS, TensorWork
from asmdnn.bench.words import INPLACE, Option, data_type, tag
from asmdnn.definitions.elementwise import prelu
from asmdnn.definitions.rounding import UNIT
from asmdnn.errors import InvalidArguments
from asmdnn.records import dataclass

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive


@dataclass(frozen=True, slots=True)
class PreluSettings(AttributeSettings):
    dir: str = "FWD_D"
    sdt: str = "f32"
    stag: str = "abx"
    inplace: bool = False


PreluCase = Case[PreluSettings, DimsProblem]


class PreluWork(TensorWork):
    exactness = (False,)
    bounds = (-2, 2)
    peer_slack = 10.0
    function = "prelu_forward"

    def __init__(self, case: PreluCase) -> None:
        settings, (src, weights) = case.settings, case.problem.tensors
        kind, of_weights = (settings.sdt.split(":") * 2)[:2]
        layout, weights_layout = (settings.stag.split(":") * 2)[:2]
        tensor, slopes = desc_of(src, kind, layout), desc_of(weights, of_weights, weights_layout)
        if slopes.padded_dims != weights:  # blocks of few channels
            slopes = desc_of(weights, of_weights, "abx")
        self.descs = {"src": tensor, "weights": slopes, "dst": tensor}
        self.in_place = {"dst": "src"} if settings.inplace else {}
        self.attr, self.kind = settings.attr(src), FORWARD[settings.dir]
        self.desc = dnn.PReLUForward(PROP_KINDS[settings.dir], tensor, slopes, tensor)

    def answer(self, data: TensorData) -> Answer:
        values = prelu(self.real(data, "src"), self.real(data, "weights"))
        return self.judged(data, values, UNIT * np.abs(values))

    def peer_arguments(self, peer: "OnednnPrimitive") -> tuple[Any, ...]:
        return self.kind, *(peer.descs[name] for name in self.descs)


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
    return f"{kinds}{case.settings.stag} {dims_words(case.problem)}"


DRIVER = Driver(
    "prelu",
    PreluSettings(),
    {
        "dir": FORWARD_DIRECTION,
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
