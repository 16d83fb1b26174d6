"""Softmax over one axis: dst = e^(x - max x) / sum of e^(x - max x), or its logarithm."""

from typing import Literal

from asmdnn.errors import InvalidArguments
from asmdnn.exact import exact
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.numbers import FORWARD, check_alg, check_prop_kind, finite
from asmdnn.primitives.shapes.tensors import check_descs, checked_axis
from asmdnn.records import dataclass
from asmdnn.types import PropKind

SoftmaxAlgorithm = Literal["accurate", "log"]
ALGORITHMS = ("accurate", "log")
NO_MASK = None


@exact
@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxForward:
    """dst = softmax(scale * src + mask) over `axis`; -1 is the last one.

    alg: "accurate", or "log" for the logarithm.  src and dst have the same dims, in any formats, `any` too; in place if
    they have one format.  mask: every dim is src's or 1; None adds nothing.  -infinity in it takes elements out.
    Source: oneDNN's softmax; the mask and the scale are those of attention.  Raises InvalidArguments.
    """

    prop_kind: PropKind
    alg: SoftmaxAlgorithm
    src: MemoryDesc
    dst: MemoryDesc
    axis: int
    mask: MemoryDesc | None = NO_MASK
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_prop_kind(self.prop_kind, FORWARD)
        check_alg("SoftmaxForward.alg", self.alg, ALGORITHMS)
        object.__setattr__(self, "scale", finite("SoftmaxForward.scale", self.scale))
        check_descs(self, "src", "dst", optional=("mask",))
        if self.dst.dims != self.src.dims:
            raise InvalidArguments(f"dst has dims {self.dst.dims}, src has {self.src.dims}: make them equal")
        object.__setattr__(self, "axis", checked_axis(self.axis, self.src))
        if self.mask is not None:
            check_broadcast("mask", self.mask, self.src)

    def __str__(self) -> str:
        what = "softmax" if self.alg == "accurate" else "logsoftmax"
        scaled = f" times {self.scale:g}" if self.scale != 1 else ""
        masked = f" plus {self.mask}" if self.mask is not None else ""
        return f"{what} of {self.src}{scaled}{masked} to {self.dst}, axis {self.axis}"


def check_broadcast(name: str, desc: MemoryDesc, model: MemoryDesc) -> None:
    """Raise InvalidArguments unless every dim is the model's or 1."""
    if desc.ndims != model.ndims or any(n not in (1, m) for n, m in zip(desc.dims, model.dims, strict=True)):
        raise InvalidArguments(f"{name} has dims {desc.dims}, each must be 1 or that of src: {model.dims}")
