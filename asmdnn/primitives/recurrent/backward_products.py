"""Products of the backward pass with packed weights: the phases of a step, which all steps share."""

from dataclasses import dataclass, replace

from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Phase
from asmdnn.primitives.attributes.attr import Sum
from asmdnn.primitives.attributes.chain import Chain, Link
from asmdnn.primitives.products.plan import multiply
from asmdnn.primitives.products.product import Matrix, Panels, Product
from asmdnn.primitives.products.target import Ending, Target

ADDS = Ending(Chain((Link(Sum(1.0)),)))  # to what dst holds


@dataclass(frozen=True, slots=True)
class Key:
    """What the phases of a step's product depend on."""

    weights: str
    start: int
    depth: int
    row_bytes: tuple[int, int]
    adds: bool


class StepProducts:
    """Phases between the buffers "rows of step" and "result of step", of `count` rows."""

    def __init__(self, assembly: Assembly, tensors: dict[str, MemoryDesc], count: int, target: Target) -> None:
        self.assembly, self.tensors, self.count, self.target = assembly, tensors, count, target
        self.known: dict[Key, list[Phase]] = {}

    def phases(self, weights: str, start: int, depth: int, row_bytes: tuple[int, int], adds: bool) -> list[Phase]:
        """weights: a tensor in panels, from a byte on, so many rows of each."""
        key = Key(weights, start, depth, row_bytes, adds)
        if key not in self.known:
            self.known[key] = self._made(key)
        return self.known[key]

    def _made(self, key: Key) -> list[Phase]:
        desc = self.tensors[key.weights]
        src = Matrix("rows of step", 0, (), key.row_bytes[0], 4)
        dst = Matrix("result of step", 0, (), key.row_bytes[1], 4)
        product = Product((), self.count, desc.dims[2], key.depth, src, panels_from(key.weights, desc, key.start), dst)
        made = Assembly()
        made.scratch |= self.assembly.scratch  # so that rooms get other names
        multiply(made, product, adding(self.target) if key.adds else self.target)
        self.assembly.scratch |= made.scratch
        self.assembly.constants |= made.constants
        return made.phases


def panels_from(name: str, desc: MemoryDesc, start: int) -> Panels:
    """Panels of the third dim: every row has one element of each of the dims behind it."""
    width = desc.inner_blocks[0][1]
    return Panels(name, start, (), 4 * width, 4 * desc.strides[2], width)


def adding(target: Target) -> Target:
    return replace(target, ending=ADDS)
