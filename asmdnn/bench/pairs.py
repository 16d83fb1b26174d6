"""`--conv` with a depthwise post-op: both convolutions as cases of their own, and oneDNN's two primitives for them."""

from collections.abc import Callable

import numpy as np

from asmdnn.bench.axis import ProblemAxis
from asmdnn.bench.driver import Array, Data, TensorData
from asmdnn.bench.post_ops import DepthwiseWord, Word
from asmdnn.bench.problems import ConvProblem
from asmdnn.bench.tensor_work import Peer
from asmdnn.records import replace


def depthwise_of(words: tuple[Word, ...]) -> tuple[int, DepthwiseWord] | None:
    """Where in a chain the depthwise post-op is, and what it is; None without one."""
    return next(((i, word) for i, word in enumerate(words) if isinstance(word, DepthwiseWord)), None)


def second_problem(problem: ConvProblem, word: DepthwiseWord) -> ConvProblem:
    """The depthwise convolution after a convolution."""
    axes = []
    for axis, letter in zip(problem.axes, "dhw"[-len(problem.axes) :], strict=True):
        open_axis = ProblemAxis(axis.o, 0, word.kernel, word.stride, word.padding, 0)
        axes.append(open_axis._replace(o=open_axis.output(letter)))
    channels = problem.oc
    return replace(problem, groups=channels, ic=channels, oc=channels, axes=tuple(axes))


class TwoPrimitives:
    """A PeerSide of two primitives, one after the other.  `connect` makes the second one on the memory of the first's
    dst; at: the number of the depthwise post-op in the chain."""

    def __init__(self, first: Peer, connect: Callable[[Peer], Peer], at: int) -> None:
        self._first, self._at = first, at
        self._second = connect(first)
        self.implementation = f"{first.implementation} and {self._second.implementation}"
        run_first, run_second = first.run, self._second.run

        def run() -> None:
            run_first()
            run_second()

        self.run = run

    def write(self, data: Data) -> None:
        before = {name: array for name, array in data.arrays.items() if name != "dst"}
        middle = np.zeros(self._second.dims_of("src"), np.float32)
        self._first.write(TensorData({**before, "dst": middle}, data.exact))
        own = {"src": middle, "dst": data.arrays["dst"]}
        own |= {name: data.arrays[f"dw_{name}_{self._at}"] for name in ("weights", "bias")}
        for name, array in data.arrays.items():
            kind, _, number = name.rpartition("_")
            if number.isdecimal() and int(number) > self._at:
                own[f"{kind}_{int(number) - self._at - 1}"] = array
        self._second.write(TensorData(own, data.exact))

    def compute(self, data: Data) -> Array:
        self.write(data)
        self.run()
        return self._second.read()

    def close(self) -> None:
        self._second.close()
        self._first.close()
