"""Arguments of recurrent layers for the bench: their dims, and data whose errors do not grow from step to step."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from asmdnn.bench.recurrent.problem import RnnProblem
from asmdnn.definitions.recurrent.cells import CELLS
from asmdnn.definitions.recurrent.layers import CONCAT, SUM
from asmdnn.records import dataclass

Floats = npt.NDArray[np.float32]
Dims = tuple[int, ...]
LSTM = "VANILLA_LSTM"
FIRST_GRADIENTS = ("src_layer", "weights_layer", "weights_iter", "src_iter", "bias")
LATER_GRADIENTS = ("diff_src_iter_c", "diff_weights_peephole", "diff_weights_projection")


class LayerWords(Protocol):
    """What says which layer: settings of the driver."""

    @property
    def dir(self) -> str: ...
    @property
    def alg(self) -> str: ...
    @property
    def direction(self) -> str: ...
    @property
    def activation(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ArgumentSizes:
    """Of all arguments of a problem, by name; formats are those of logical order."""

    alg: str
    direction: str
    problem: RnnProblem
    peephole: bool = False
    projection: bool = False

    @property
    def directions(self) -> int:
        return 2 if self.direction in (CONCAT, SUM) else 1

    def sources(self) -> dict[str, Dims]:
        """What is read."""
        p, cell, outer = self.problem, CELLS[self.alg], (self.problem.layers, self.directions)
        dims: dict[str, Dims] = {
            "src_layer": (p.steps, p.mb, p.slc),
            "src_iter": (*outer, p.mb, p.sic),
            "weights_layer": (*outer, p.slc, cell.gates, p.dhc),
            "weights_iter": (*outer, p.sic, cell.gates, p.dhc),
            "bias": (*outer, cell.biases, p.dhc),
        }
        dims |= {"src_iter_c": (*outer, p.mb, p.dhc)} if self.alg == LSTM else {}
        dims |= {"weights_peephole": (*outer, 3, p.dhc)} if self.peephole else {}
        return dims | ({"weights_projection": (*outer, p.dhc, p.dic)} if self.projection else {})

    def results(self) -> dict[str, Dims]:
        """What is written, in the order of the primitive's outputs."""
        p, outer = self.problem, (self.problem.layers, self.directions)
        channels = p.dic * (2 if self.direction == CONCAT else 1)
        dims: dict[str, Dims] = {"dst_layer": (p.steps, p.mb, channels), "dst_iter": (*outer, p.mb, p.dic)}
        return dims | ({"dst_iter_c": (*outer, p.mb, p.dhc)} if self.alg == LSTM else {})

    def gradients(self) -> dict[str, Dims]:
        """What a backward pass writes, in the order of the primitive's outputs."""
        dims = {f"diff_{name}": size for name, size in self.sources().items()}
        first = [f"diff_{name}" for name in FIRST_GRADIENTS]
        return {name: dims[name] for name in (*first, *(name for name in LATER_GRADIENTS if name in dims))}

    @property
    def flops(self) -> int:
        """Of the products of a forward pass."""
        p, outputs = self.problem, CELLS[self.alg].gates * self.problem.dhc
        inner = (p.slc + p.sic) * outputs + (p.dhc * p.dic if self.projection else 0)
        return 2 * p.steps * p.mb * p.layers * self.directions * inner


def filled(dims: Mapping[str, Dims], seed: int = 1) -> dict[str, Floats]:
    """Uniform numbers.  Weights shrink with the channels that they sum: those of an iteration such that its sums are
    contractions, so that rounding errors die out and bounds of them stay small."""
    random, found = np.random.default_rng(seed), {}
    for name, size in dims.items():
        scale = 1.0
        if name == "weights_layer":
            scale = 2 / np.sqrt(size[2])
        elif name in ("weights_iter", "weights_projection"):
            scale = 1 / size[2]
        found[name] = ((random.random(size, np.float32) * 2 - 1) * np.float32(scale)).astype(np.float32)
    return found
