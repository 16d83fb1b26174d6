"""Recurrent layers over time, in float64 with bounds for f32.

Arguments have the names and dims of oneDNN's RNN primitives, in logical order:

    src_layer [t, n, slc]             src_iter, src_iter_c [l, d, n, sic or units]
    weights_layer [l, d, slc, g, u]   weights_iter [l, d, sic, g, u]      bias [l, d, biases, u]
    weights_peephole [l, d, 3, u]     weights_projection [l, d, u, sic]
    dst_layer [t, n, sic], or 2 sic of bidirectional_concat, and dst_iter, dst_iter_c as the sources

A layer reads what the one before gives: the outputs of both directions, concatenated or added, as in torch and ONNX.
(In oneDNN both directions are stacks of their own, whose last layers' outputs are joined.)
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from asmdnn.definitions.recurrent.bounded import Bounded, Floats, concatenated, stacked, zeros
from asmdnn.definitions.recurrent.cells import CELLS
from asmdnn.definitions.recurrent.values import Function, StepValues, Weights, added, no_gradients
from asmdnn.records import dataclass

Arrays = Mapping[str, npt.NDArray[np.float32] | Floats]
Lengths = npt.NDArray[np.int64]
Results = dict[str, Bounded]
LEFT2RIGHT, RIGHT2LEFT, CONCAT, SUM = "left2right", "right2left", "concat", "sum"
TANH = Function("tanh")
WEIGHTS = ("layer", "iter", "bias", "peephole", "projection")


@dataclass(frozen=True, slots=True)
class Net:
    """alg: a name of CELLS; direction: left2right, right2left, concat or sum."""

    alg: str
    direction: str = LEFT2RIGHT
    function: Function = TANH

    def is_reversed(self, direction: int) -> bool:
        """Whether the direction of that number goes from the last step to the first."""
        return direction == 1 or self.direction == RIGHT2LEFT

    def joined(self, outputs: list[Bounded]) -> Bounded:
        """What the directions give together; outputs [t, n, u]."""
        if len(outputs) == 1:
            return outputs[0]
        return concatenated(outputs, 2) if self.direction == CONCAT else self.function.hands.of(outputs[0] + outputs[1])

    def parted(self, gradient: Bounded, directions: int) -> list[Bounded]:
        """The gradients of each direction's output."""
        if self.direction != CONCAT:
            return [gradient] * directions
        units = gradient.value.shape[2] // 2
        return [gradient[:, :, :units], gradient[:, :, units:]]


class Pass:
    """A layer in one direction over a whole sequence: forward when it is made.

    lengths: steps of each sequence; later ones leave the state as it was, and give 0.
    """

    def __init__(
        self, net: Net, reverse: bool, src: Bounded, state: tuple[Bounded, Bounded | None], weights: Weights,
        lengths: Lengths | None,
    ) -> None:  # fmt: skip
        self.net, self.weights = net, weights
        steps = len(src.value)
        self.order = range(steps - 1, -1, -1) if reverse else range(steps)
        self.live = None if lengths is None else (np.arange(steps)[:, None] < lengths)[:, :, None]
        self.steps: dict[int, StepValues] = {}
        cell, (h, c), outputs = CELLS[net.alg], state, {}
        for t in self.order:
            step = self.steps[t] = cell.forward(src[t], h, c, weights, net.function)
            outputs[t] = self._where_live(t, step.h, 0.0)
            h = self._where_live(t, step.h, h)
            c = None if c is None or step.c is None else self._where_live(t, step.c, c)
        self.output = stacked([outputs[t] for t in range(steps)])
        self.h, self.c = h, c

    def _where_live(self, t: int, new: Bounded, old: Bounded | float) -> Bounded:
        return new if self.live is None else new.where(self.live[t], old)

    def gradients(
        self, output: Bounded, h: Bounded, c: Bounded | None
    ) -> tuple[Bounded, Bounded, Bounded | None, Weights]:
        """Of source, first states and weights, from those of output and last states."""
        cell, total, found = CELLS[self.net.alg], no_gradients(self.weights), {}
        for t in reversed(self.order):
            dh, dc = self._where_live(t, output[t] + h, 0.0), None if c is None else self._where_live(t, c, 0.0)
            one = cell.backward(self.steps[t], dh, dc, self.weights, self.net.function)
            total, found[t] = added(total, one.weights), one.x
            h = self._where_live(t, one.h, h)
            c = None if c is None or one.c is None else self._where_live(t, one.c, c)
        return stacked([found[t] for t in range(len(found))]), h, c, total


class ReferenceRun:
    """All layers in all directions.  results: dst_layer, dst_iter and, of an LSTM, dst_iter_c."""

    def __init__(self, net: Net, arrays: Arrays, lengths: Lengths | None = None) -> None:
        self.net = net
        self.layers, self.directions, _, _, _ = arrays["weights_layer"].shape
        x = Bounded(arrays["src_layer"])
        self.passes: dict[tuple[int, int], Pass] = {}
        for layer in range(self.layers):
            outputs = []
            for d in range(self.directions):
                weights = weights_of(arrays, layer, d, CELLS[net.alg].biases)
                state = self._state(arrays, layer, d, weights)
                one = self.passes[layer, d] = Pass(net, net.is_reversed(d), x, state, weights, lengths)
                outputs.append(one.output)
            x = net.joined(outputs)
        self.results: Results = {"dst_layer": x, "dst_iter": self._by_layer("h")}
        if net.alg == "VANILLA_LSTM":
            self.results["dst_iter_c"] = self._by_layer("c")

    def _state(self, arrays: Arrays, layer: int, d: int, weights: Weights) -> tuple[Bounded, Bounded | None]:
        images = arrays["src_layer"].shape[1]
        h = arrays.get("src_iter")
        c = arrays.get("src_iter_c")
        recurrent, _, units = weights.iter.value.shape
        first = zeros(images, recurrent) if h is None else Bounded(h[layer, d])
        if self.net.alg != "VANILLA_LSTM":
            return first, None
        return first, zeros(images, units) if c is None else Bounded(c[layer, d])

    def _by_layer(self, state: str) -> Bounded:
        return by_layer({at: getattr(one, state) for at, one in self.passes.items()}, self.layers, self.directions)

    def gradients(self, diffs: Arrays) -> Results:
        """diff_src_layer, diff_src_iter, diff_weights_layer and so on of diff_dst_layer, diff_dst_iter and
        diff_dst_iter_c, the last two 0 if they are not there."""
        output = Bounded(diffs["diff_dst_layer"])
        states, cells, weights = {}, {}, {}
        for layer in reversed(range(self.layers)):
            parts, sources = self.net.parted(output, self.directions), []
            for d in range(self.directions):
                one = self.passes[layer, d]
                dh = Bounded(diffs["diff_dst_iter"][layer, d]) if "diff_dst_iter" in diffs else of_zeros(one.h)
                dc = None
                if one.c is not None:
                    dc = Bounded(diffs["diff_dst_iter_c"][layer, d]) if "diff_dst_iter_c" in diffs else of_zeros(one.c)
                source, states[layer, d], dc, weights[layer, d] = one.gradients(parts[d], dh, dc)
                sources.append(source)
                if dc is not None:
                    cells[layer, d] = dc
            output = sources[0] if len(sources) == 1 else sources[0] + sources[1]
        size = self.layers, self.directions
        found = {"diff_src_layer": output}
        found["diff_src_iter"] = by_layer(states, *size)
        if cells:
            found["diff_src_iter_c"] = by_layer(cells, *size)
        for name in WEIGHTS:
            if getattr(weights[0, 0], name) is not None:
                argument = "diff_bias" if name == "bias" else f"diff_weights_{name}"
                found[argument] = by_layer({at: getattr(w, name) for at, w in weights.items()}, *size)
        return found


def weights_of(arrays: Arrays, layer: int, direction: int, biases: int) -> Weights:
    """Of one layer in one direction; a bias that is not there is 0."""
    found = {name: arrays.get("bias" if name == "bias" else f"weights_{name}") for name in WEIGHTS}
    here = {name: None if array is None else Bounded(array[layer, direction]) for name, array in found.items()}
    first, recurrent = here["layer"], here["iter"]
    assert first is not None and recurrent is not None
    bias = here["bias"] or zeros(biases, first.value.shape[2])
    return Weights(first, recurrent, bias, here["peephole"], here["projection"])


def by_layer(parts: Mapping[tuple[int, int], Bounded], layers: int, directions: int) -> Bounded:
    """[l, d, ...] of what each layer in each direction has."""
    return stacked([stacked([parts[layer, d] for d in range(directions)]) for layer in range(layers)])


def of_zeros(like: Bounded) -> Bounded:
    return zeros(*like.value.shape)
