"""The description of a backward resampling, validated at once."""

from asmdnn.exact import exact
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.core.backward import BackwardDesc
from asmdnn.primitives.resampling.description import (
    Coordinates,
    NearestRounding,
    ResamplingAlgorithm,
    ResamplingForward,
)
from asmdnn.records import dataclass


@exact
@dataclass(frozen=True, slots=True, eq=False)
class ResamplingBackward(BackwardDesc):
    """diff_src[i] is the sum over all o of diff_dst[o] times the weight of src[i] in dst[o]: a resampling's adjoint.

    diff_src, diff_dst: dims of src and dst of the forward pass, f32, bf16 or f16, in any formats, `any` too.
    alg, factors, coordinates, rounding: those of `ResamplingForward`.  The sums are in the order of diff_dst's
    elements.  Raises InvalidArguments.
    """

    FORWARD = ResamplingForward

    alg: ResamplingAlgorithm
    diff_src: MemoryDesc
    diff_dst: MemoryDesc
    factors: tuple[float, ...] = ()
    coordinates: Coordinates = "half_pixel"
    rounding: NearestRounding = "round_prefer_ceil"

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", self.forward().factors)

    def forward(self) -> ResamplingForward:
        """The forward pass.  Raises InvalidArguments."""
        names = self.factors, self.coordinates, self.rounding
        return ResamplingForward(self.alg, self.diff_src, self.diff_dst, *names)

    def __str__(self) -> str:
        factors = "x".join(f"{factor:g}" for factor in self.factors)
        words = f"resampling {self.alg} {self.coordinates} backward of {self.diff_dst} to {self.diff_src}"
        return f"{words}, factors {factors}"
