"""The description of a forward resampling, validated at once."""

from typing import Literal

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.exact import exact
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.numbers import check_alg, finite
from asmdnn.primitives.resampling.taps import COORDINATES, ROUNDINGS, ResampleTaps, taps_of
from asmdnn.primitives.shapes.tensors import check_descs
from asmdnn.records import dataclass

ALGORITHMS = ("nearest", "linear", "cubic")
ResamplingAlgorithm = Literal["nearest", "linear", "cubic"]
Coordinates = Literal["half_pixel", "align_corners", "asymmetric"]
NearestRounding = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


@exact
@dataclass(frozen=True, slots=True, eq=False)
class ResamplingForward:
    """dst is src, (n, c, [d, [h,]] w), at the places that dst's elements have in src, along each spatial axis.

    alg: "nearest", "linear" between 2, 4 or 8 neighbours, or "cubic" of one or two axes (Keys' with -0.75).
    factors: dst's size over src's for each axis, as the caller's framework gives it; by default the quotient of sizes.
    coordinates: element o of dst is at (o + 1/2) / factor - 1/2 in src ("half_pixel"), at o (I - 1) / (O - 1)
    ("align_corners"), or at o / factor ("asymmetric").  rounding: what the nearest is; the default is oneDNN's.
    Places outside of src are the nearest element's.  The words are ONNX's.  Raises InvalidArguments.
    """

    alg: ResamplingAlgorithm
    src: MemoryDesc
    dst: MemoryDesc
    factors: tuple[float, ...] = ()
    coordinates: Coordinates = "half_pixel"
    rounding: NearestRounding = "round_prefer_ceil"

    def __post_init__(self) -> None:
        check_alg("ResamplingForward.alg", self.alg, ALGORITHMS)
        check_alg("ResamplingForward.coordinates", self.coordinates, tuple(COORDINATES))
        check_alg("ResamplingForward.rounding", self.rounding, tuple(ROUNDINGS))
        check_descs(self, "src", "dst")
        if not 3 <= self.src.ndims <= 5:
            raise InvalidArguments(f"src must have 3, 4 or 5 dims, not {self.src.ndims}: {self.src.dims}")
        if self.dst.ndims != self.src.ndims or self.dst.dims[:2] != self.src.dims[:2]:
            raise InvalidArguments(f"dst has dims {self.dst.dims}, images and channels must be src's: {self.src.dims}")
        sizes = list(zip(self.src.dims[2:], self.dst.dims[2:], strict=True))
        if any(made and not size for size, made in sizes):
            raise InvalidArguments(f"src has dims {self.src.dims}, it has no elements to make {self.dst.dims} of")
        if self.alg == "cubic" and len(sizes) > 2:
            raise InvalidArguments("alg cubic is for one or two spatial axes, not three")
        if not isinstance(self.factors, tuple) or len(self.factors) not in (0, len(sizes)):
            raise InvalidArguments(f"factors must be {counted(len(sizes), 'number')}, not {shown(self.factors)}")
        factors = self.factors or tuple(made / size if size else 1.0 for size, made in sizes)
        factors = tuple(finite(f"factors[{axis}]", factor) for axis, factor in enumerate(factors))
        if min(factors) <= 0 and 0 not in self.dst.dims:
            raise InvalidArguments(f"factors must be above 0, not {shown(self.factors)}")
        object.__setattr__(self, "factors", factors)

    def taps(self, axis: int) -> ResampleTaps:
        """What each result along an axis is made of."""
        size, made = self.src.dims[2 + axis], self.dst.dims[2 + axis]
        return taps_of(self.alg, size, made, self.factors[axis], self.coordinates, self.rounding)

    def __str__(self) -> str:
        factors = "x".join(f"{factor:g}" for factor in self.factors)
        return f"resampling {self.alg} {self.coordinates} of {self.src} to {self.dst}, factors {factors}"
