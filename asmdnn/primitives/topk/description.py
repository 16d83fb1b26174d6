"""The k largest or smallest numbers along an axis."""

from typing import Literal

from asmdnn.errors import InvalidArguments, counted
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.numbers import check_alg, check_flag
from asmdnn.primitives.shapes.tensors import check_descs, check_tensor, checked_axis
from asmdnn.primitives.shapes.windows import MAX_SIZE
from asmdnn.records import dataclass
from asmdnn.types import s32

ALGORITHMS = ("max", "min")


@dataclass(frozen=True, slots=True)
class TopKForward:
    """dst = the indices of the k largest numbers of src along `axis`, the largest first; values = these numbers.

    alg: "max", or "min" for the smallest.  src: f32, bf16, f16, s8, u8; dst: s32, of src's dims but for k along the
    axis; values: of src's types and dst's dims, or None for none; any formats.  With k = 1 it is arg-max or arg-min.
    Of equal numbers that with the lowest index comes first, and 0 and -0 are equal, values then 0.  select_last, for
    k = 1: the highest index instead.  NaN comes before every number, as in numpy's and torch's argmax and argmin; with
    nan_last after all, as in torch.topk of the smallest.
    Source: ONNX's TopK, ArgMax and ArgMin.  Raises InvalidArguments.
    """

    alg: Literal["max", "min"]
    src: MemoryDesc
    dst: MemoryDesc
    axis: int
    values: MemoryDesc | None = None
    select_last: bool = False
    nan_last: bool = False

    def __post_init__(self) -> None:
        check_alg("TopKForward.alg", self.alg, ALGORITHMS)
        check_tensor("src", self.src)
        object.__setattr__(self, "axis", checked_axis(self.axis, self.src))
        for name in ("select_last", "nan_last"):
            check_flag(f"TopKForward.{name}", getattr(self, name))
        check_tensor("dst", self.dst)
        check_descs(self, optional=("values",), dims=self.dst.dims)
        if self.dst.dtype != s32:
            raise InvalidArguments(f"dst is {self.dst.dtype}, the indices must be s32")
        self._check_sizes()

    def _check_sizes(self) -> None:
        size, axis = self.src.dims[self.axis], self.axis
        k = self.k if self.dst.ndims == self.src.ndims else 0
        if self.dst.dims != (*self.src.dims[:axis], k, *self.src.dims[axis + 1 :]):
            raise InvalidArguments(f"dst has dims {self.dst.dims}, only axis {axis} may differ: {self.src.dims}")
        if not 1 <= size <= MAX_SIZE:
            reason = f"use 1 to {MAX_SIZE}, which indices of 32 bits count"
            raise InvalidArguments(f"axis {axis} of src has {counted(size, 'element')}: {reason}")
        if not 1 <= k <= size:
            raise InvalidArguments(f"k is {k}, src has {counted(size, 'element')} along axis {axis}: use 1 to {size}")
        if self.select_last and k > 1:
            raise InvalidArguments(f"TopKForward.select_last is of one result, k is {k}: leave it out")

    @property
    def k(self) -> int:
        return self.dst.dims[self.axis]

    def __str__(self) -> str:
        words = [f"top {self.k} {self.alg} of {self.src} to {self.dst}"]
        words += [f"and {self.values}"] * (self.values is not None) + [f"axis {self.axis}"]
        return " ".join(words + ["select_last"] * self.select_last + ["nan_last"] * self.nan_last)
