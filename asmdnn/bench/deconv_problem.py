"""Deconvolution problems: the strings of convolutions, whose sizes fit together the other way round.

A missing output is (i - 1) * s + the kernel's extent - 2 * p; the padding after is what is left to be cut off, and is
negative where outputs are added (frameworks' output padding).
"""

from asmdnn.bench.axis import ProblemAxis
from asmdnn.bench.problem_text import Impossible
from asmdnn.bench.problems import ConvProblem, parse_problem


class DeconvAxis(ProblemAxis):
    """One spatial axis of a deconvolution; p is cut off in front of the first output."""

    __slots__ = ()

    @property
    def padding_needed(self) -> int:
        """What is to be cut off after the last output."""
        return (self.i - 1) * self.s + self.kernel_extent - self.o - self.p

    @property
    def padding_after(self) -> int:
        return self.padding_needed

    def output(self, letter: str) -> int:
        """The size with equal padding on both sides.  Raises InvalidArguments if there is none."""
        made = (self.i - 1) * self.s + self.kernel_extent - 2 * self.p
        if made < 1:
            raise Impossible(f"p{letter}{self.p} leaves nothing of the {made + 2 * self.p} outputs")
        return made

    def check_output(self, letter: str) -> None:
        """Raise InvalidArguments for an output that the other sizes cannot make."""
        if self.padding_needed <= -self.s:
            sizes = "".join(f" {kind}{letter}{getattr(self, kind)}" for kind in "ikspd")
            raise Impossible(
                f"o{letter}{self.o} does not fit{sizes}: {-self.padding_needed} outputs would be after the last window"
            )

    def taps_inside(self) -> int:
        """How many (input, kernel tap) pairs reach an output."""
        count = 0
        for tap in range(self.k):
            shift = self.p - tap * (self.d + 1)  # input i reaches output i * s - shift
            first = max(0, -(-shift // self.s))
            last = min(self.i - 1, (self.o - 1 + shift) // self.s)
            count += max(0, last - first + 1)
        return count


def parse_deconv_problem(text: str) -> ConvProblem:
    """The deconvolution that `text` describes.  Raises InvalidArguments as `parse_problem`."""
    return parse_problem(text, DeconvAxis)
