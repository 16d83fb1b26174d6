"""Reduction over dims: max, min, sum, mul, mean, norms, and the logarithm of a sum of exponentials."""

from typing import Literal

from asmdnn.errors import InvalidArguments
from asmdnn.exact import exact
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.numbers import check_alg, finite
from asmdnn.primitives.shapes.tensors import check_tensor
from asmdnn.records import dataclass

ReductionAlgorithm = Literal[
    "max", "min", "sum", "mul", "mean", "norm_lp_max", "norm_lp_sum", "norm_lp_power_p_max", "norm_lp_power_p_sum",
    "logsumexp",
]  # fmt: skip
ALGORITHMS = (
    "max", "min", "sum", "mul", "mean", "norm_lp_max", "norm_lp_sum", "norm_lp_power_p_max", "norm_lp_power_p_sum",
    "logsumexp",
)  # fmt: skip
NORM = "norm_lp"


@exact
@dataclass(frozen=True, slots=True, eq=False)
class ReductionForward:
    """dst = src reduced over the dims that dst has as 1.

    alg: max, min, sum, mul, mean; norm_lp_sum: (eps + sum of |x|^p)^(1/p), norm_lp_max: max(eps, sum of |x|^p)^(1/p),
    norm_lp_power_p_sum and norm_lp_power_p_max: the same without the root; logsumexp: log of the sum of e^x.
    p from 1 on, eps from 0 on.  Any formats.  Maxima and minima pass over NaN.  Source: oneDNN's reduction.
    Raises InvalidArguments.
    """

    alg: ReductionAlgorithm
    src: MemoryDesc
    dst: MemoryDesc
    p: float = 2.0
    eps: float = 0.0

    def __post_init__(self) -> None:
        check_alg("ReductionForward.alg", self.alg, ALGORITHMS)
        for name in ("p", "eps"):
            object.__setattr__(self, name, finite(f"ReductionForward.{name}", getattr(self, name)))
        if self.p < 1 or self.eps < 0:
            raise InvalidArguments(f"ReductionForward.p is {self.p:g} and eps {self.eps:g}: from 1 on, and from 0 on")
        check_tensor("src", self.src)
        check_tensor("dst", self.dst)
        fits = [n in (1, m) for n, m in zip(self.dst.dims, self.src.dims, strict=False)]
        if self.dst.ndims != self.src.ndims or not all(fits):
            raise InvalidArguments(f"dst has dims {self.dst.dims}, each must be 1 or that of src: {self.src.dims}")
        if 0 in self.src.dims:
            raise InvalidArguments(f"src has dims {self.src.dims}: of no elements there is no reduction")

    @property
    def reduced(self) -> tuple[int, ...]:
        """The dims."""
        return tuple(dim for dim, (n, m) in enumerate(zip(self.dst.dims, self.src.dims, strict=True)) if n < m)

    def __str__(self) -> str:
        numbers = f" p {self.p:g} eps {self.eps:g}" if self.alg.startswith(NORM) else ""
        return f"reduction {self.alg}{numbers} of {self.src} to {self.dst}"
