"""Pooling problems as benchdnn writes them: convolution's keys without output channels: `mb1ic64_ih112kh3sh2ph1`."""

from asmdnn.bench.axis import AXES
from asmdnn.bench.problem_text import check_given, check_memory, entries, quoting
from asmdnn.bench.problems import DEFAULT_MB, ConvProblem, axes_of
from asmdnn.definitions.windows import SlidingWindow
from asmdnn.records import dataclass

TELLING = "ioksp"  # a dilation alone gives no axis: ih8kh3dh1dw1 is a square
Axes = tuple[int, ...]
Sizes = tuple[Axes, Axes, Axes, Axes, Axes]
_KEYS = ("mb", "ic", *(kind + axis for kind in "iokspd" for axis in AXES))


@dataclass(frozen=True, slots=True)
class PoolProblem(ConvProblem):
    """A pooling: a convolution's sizes, of which it has as many output channels as input channels."""

    @property
    def kernel(self) -> tuple[int, ...]:
        return tuple(axis.k for axis in self.axes)

    @property
    def sizes(self) -> Sizes:
        """As descriptions have them: kernel, strides, dilations, padding before and after."""
        return self.kernel, self.strides, self.dilations, self.padding_l, self.padding_r

    @property
    def window(self) -> SlidingWindow:
        """Of the definition."""
        return SlidingWindow(self.kernel, self.strides, tuple(d + 1 for d in self.dilations), *self.sizes[3:])

    def __str__(self) -> str:
        """The canonical string; `parse_problem` gives the problem back."""
        return ConvProblem.__str__(self).replace(f"oc{self.oc}", "", 1)


def parse_problem(text: str) -> PoolProblem:
    """The problem that `text` describes.  Raises InvalidArguments that quotes it and names the entry that is wrong."""
    with quoting(text):
        numbers, name = entries(text, _KEYS)
        check_given(numbers, "ic")
        channels = numbers["ic"]
        problem = PoolProblem(
            numbers.get("mb", DEFAULT_MB), 1, channels, channels, axes_of(numbers, telling=TELLING), name
        )
        check_memory(src=problem.src_dims, dst=problem.dst_dims)
        return problem
