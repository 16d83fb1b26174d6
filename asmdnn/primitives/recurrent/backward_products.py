"""Products of the backward pass with packed weights: the phases of a step, which all steps share."""

from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Phase
from asmdnn.primitives.attributes.chain import Chain, Link
from asmdnn.primitives.attributes.post_ops import Sum
from asmdnn.primitives.products.matrices import Panels
from asmdnn.primitives.products.plan import multiply
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.target import Epilogue, Target
from asmdnn.primitives.recurrent.rows import BufferRows
from asmdnn.records import dataclass, replace

ROWS, RESULT, BESIDE = "rows of step", "result of step", "beside result"
ADDS = Epilogue(Chain((Link(Sum(1.0)),)))  # to what dst holds


@dataclass(frozen=True, slots=True)
class Key:
    """What the phases of a step's product depend on.  weights: a tensor in panels, from byte `start` on `depth` rows of
    each.  beside_bytes: the distance of the rows of what is added, None if nothing is."""

    count: int
    weights: str
    start: int
    depth: int
    row_bytes: tuple[int, int]
    beside_bytes: int | None


class StepProducts:
    """Phases from the buffer ROWS to RESULT, with what is in BESIDE added."""

    def __init__(self, assembly: Assembly, tensors: dict[str, MemoryDesc], target: Target) -> None:
        self.assembly, self.tensors, self.target = assembly, tensors, target
        self.known: dict[Key, list[Phase]] = {}

    def phases(self, key: Key) -> list[Phase]:
        """Of so many rows."""
        if key not in self.known:
            self.known[key] = self._made(key)
        return self.known[key]

    def _made(self, key: Key) -> list[Phase]:
        desc = self.tensors[key.weights]
        ends = zip((ROWS, RESULT), key.row_bytes, strict=True)
        src, dst = (BufferRows(name, (0,), row_bytes).matrix() for name, row_bytes in ends)
        beside = None if key.beside_bytes is None else BufferRows(BESIDE, (0,), key.beside_bytes).matrix()
        weights = panels_from(key.weights, desc, key.start)
        product = Product(
            batch=(), m=key.count, n=desc.dims[2], k=key.depth, src=src, weights=weights, dst=dst, bias=beside
        )
        made = Assembly(self.target.tuning, self.target.isa)
        made.scratch |= self.assembly.scratch  # so that rooms get other names
        multiply(made, product, self.target)
        self.assembly.scratch |= made.scratch
        self.assembly.constants |= made.constants
        return made.phases


def panels_from(name: str, desc: MemoryDesc, start: int) -> Panels:
    """Panels of the third dim: every row has one element of each of the dims after it."""
    width = desc.inner_blocks[0][1]
    return Panels(
        buffer=name,
        start_bytes=start,
        batch_bytes=(),
        row_bytes=width * desc.dtype.size_bytes,
        panel_bytes=desc.strides_bytes[2],
        columns=width,
        dtype=desc.dtype,
    )


def adding(target: Target) -> Target:
    return replace(target, epilogue=ADDS)
