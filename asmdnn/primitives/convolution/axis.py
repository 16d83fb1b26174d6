"""Spatial axes of convolutions and deconvolutions: sizes, and which kernel positions reach which pixels."""

import numpy as np

from asmdnn.planning.phase import Int64
from asmdnn.planning.written import Bools
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class AxisSteps:
    """The numbers first, first + step, ... below `size`."""

    first: int
    step: int
    size: int


@dataclass(frozen=True, slots=True)
class Axis:
    """One spatial axis, in oneDNN's letters: input and output size, kernel positions, stride, dilation (1 is dense
    here), padding before the first element, which is negative where the first window begins inside.

    positions, pixels: for a part of a deconvolution, its kernel positions and its pixels of dst; otherwise all.
    """

    i: int
    o: int
    k: int
    s: int
    d: int
    p: int
    positions: AxisSteps | None = None
    pixels: AxisSteps | None = None

    @property
    def is_pointwise(self) -> bool:
        """Whether output x reads only input x."""
        return self.k == self.s == 1 and self.p == 0 and self.i == self.o and self.positions is self.pixels is None

    @property
    def is_sampled(self) -> bool:
        """Whether output x reads input s x alone."""
        return self.k == 1 and self.p == 0 and self.positions is self.pixels is None

    @property
    def positions_of_pixel(self) -> float:
        """Kernel positions that reach a pixel of dst, away from edges."""
        return self.k

    @property
    def step(self) -> float:
        """Source pixels between the windows of neighbouring output pixels."""
        return self.s

    @property
    def extent(self) -> int:
        """From a window's first source pixel to after its last one."""
        return (self.k - 1) * self.d + 1

    @property
    def places(self) -> int:
        """Pixels of dst one after another that are reached by different kernel positions, away from edges."""
        return 1

    def windows(self, at: Int64) -> Int64:
        """The source pixels where the windows of output pixels begin, some in the padding."""
        return at * self.s - self.p

    def steps(self, at: Int64) -> Int64:
        """Source pixels from a window's first to what kernel positions read."""
        return at * self.d

    def positions_in(self, at: Int64) -> Int64:
        """np.clip(at, 0, k) in a fifth of the time."""
        inside: Int64 = np.minimum(np.maximum(at, 0), self.k)
        return inside

    def reach(self, outputs: Int64) -> Int64:
        """int64[.., 2]: of some outputs the kernel positions [low, high) that lie inside the image; low = high if none
        does."""
        start = self.windows(outputs)
        low = self.positions_in(-(start // self.d))
        high = self.positions_in(-((start - self.i) // self.d))
        return np.stack((low, np.maximum(low, high)), -1)

    def reached(self, reach: Int64, at: Int64) -> Bools:
        """bool[positions, pixels]: which kernel positions reach pixels that have these rows of `reach`."""
        here = at[:, None]
        return (reach[:, 0] <= here) & (here < reach[:, 1])

    @property
    def all_positions(self) -> AxisSteps:
        return self.positions or AxisSteps(0, 1, self.k)

    @property
    def all_pixels(self) -> AxisSteps:
        return self.pixels or AxisSteps(0, 1, self.o)


@dataclass(frozen=True, slots=True)
class TransposedAxis(Axis):
    """An axis of a deconvolution: output y adds for kernel positions r the source pixel (y + p - r * d) / s,
    where that is one.

    y's window begins at the source pixel (y + p) // s, and positions read backwards from there: of all r that reach y,
    r * d leaves the same rest as y + p when divided by s.
    """

    @property
    def positions_of_pixel(self) -> float:
        return self.k / self.s

    @property
    def step(self) -> float:
        return 1 / self.s

    @property
    def places(self) -> int:
        return self.s

    def windows(self, at: Int64) -> Int64:
        return (at + self.p) // self.s

    def steps(self, at: Int64) -> Int64:
        return -(at * self.d // self.s)

    def reach(self, outputs: Int64) -> Int64:
        """int64[.., 3]: kernel positions [low, high) of which some reach the image, and the rest to leave."""
        start = outputs + self.p
        high = self.positions_in(start // self.d + 1)
        low = self.positions_in(-(((self.i - 1) * self.s - start) // self.d))
        return np.stack((low, np.maximum(low, high), start % self.s), -1)

    def reached(self, reach: Int64, at: Int64) -> Bools:
        same: Bools = at[:, None] * self.d % self.s == reach[:, 2]
        return Axis.reached(self, reach, at) & same
