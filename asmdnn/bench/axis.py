"""One spatial axis of a convolution, in benchdnn's letters."""

from typing import NamedTuple

from asmdnn.bench.problem_text import Impossible

AXES = "dhw"


class ProblemAxis(NamedTuple):
    """One spatial axis: input and output size, kernel, stride, padding before, dilation (0 is dense)."""

    i: int
    o: int
    k: int
    s: int
    p: int
    d: int

    @property
    def kernel_extent(self) -> int:
        """Input elements from the first to the last kernel tap."""
        return (self.k - 1) * (self.d + 1) + 1

    @property
    def padding_needed(self) -> int:
        """Padding after the last input element that the output size implies; negative when inputs stay unread."""
        return (self.o - 1) * self.s - self.i + self.kernel_extent - self.p

    @property
    def padding_after(self) -> int:
        """As descriptions have it: a stride that leaves the last inputs unread needs none."""
        return max(0, self.padding_needed)

    def output(self, letter: str) -> int:
        """The size with equal padding on both sides.  Raises InvalidArguments if there is none."""
        room = self.i + 2 * self.p - self.kernel_extent
        if room < 0:
            raise Impossible(
                f"the kernel spans {self.kernel_extent} elements, which do not fit into "
                f"i{letter}{self.i} with p{letter}{self.p}"
            )
        return room // self.s + 1

    def check_output(self, letter: str) -> None:
        """Raise InvalidArguments for an output that the other sizes cannot make."""
        if self.padding_needed <= -self.s:
            sizes = "".join(f" {kind}{letter}{getattr(self, kind)}" for kind in "ikspd")
            raise Impossible(
                f"o{letter}{self.o} does not fit{sizes}: it leaves {-self.padding_needed} input elements unread"
            )

    def taps_inside(self) -> int:
        """How many (output, kernel tap) pairs read a real input element and not padding."""
        count = 0
        for tap in range(self.k):
            shift = self.p - tap * (self.d + 1)  # output o reads input o * s - shift
            first = max(0, -(-shift // self.s))
            last = min(self.o - 1, (self.i - 1 + shift) // self.s)
            count += max(0, last - first + 1)
        return count
