"""Products of the backward pass: the phases of a step's, which all steps share."""

from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Phase
from asmdnn.primitives.attributes.chain import Chain, Link
from asmdnn.primitives.attributes.post_ops import Sum
from asmdnn.primitives.products.matrices import Panels
from asmdnn.primitives.products.multiplier import Multiplier
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.target import Epilogue
from asmdnn.primitives.recurrent.rows import BufferRows
from asmdnn.records import dataclass

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

    def __init__(self, assembly: Assembly, tensors: dict[str, MemoryDesc], multiplier: Multiplier) -> None:
        self.assembly, self.tensors, self.multiplier = assembly, tensors, multiplier
        self.known: dict[Key, list[Phase]] = {}

    def phases(self, key: Key) -> list[Phase]:
        """Of so many rows."""
        if key not in self.known:
            self.known[key] = self._made(key)
        return self.known[key]

    def _made(self, key: Key) -> list[Phase]:
        desc, types = self.tensors[key.weights], self.multiplier.types
        of_rows, of_result = key.row_bytes
        src = BufferRows(ROWS, (0,), of_rows, types.src).matrix().in_groups(types.group)
        dst = BufferRows(RESULT, (0,), of_result).matrix()
        beside = None if key.beside_bytes is None else BufferRows(BESIDE, (0,), key.beside_bytes).matrix()
        product = Product(
            batch=(),
            m=key.count,
            n=desc.dims[2],
            k=key.depth // types.group,
            src=src,
            weights=panels_from(key.weights, desc, key.start, types.group),
            dst=dst,
            bias=beside,
            types=types,
        )
        made = Assembly(self.multiplier.target.tuning, self.multiplier.target.isa)
        made.scratch |= self.assembly.scratch  # so that rooms get other names
        self.multiplier.add(made, product)
        self.assembly.scratch |= made.scratch
        self.assembly.constants |= made.constants
        return made.phases


def panels_from(name: str, desc: MemoryDesc, start: int, group: int) -> Panels:
    """Panels of the third dim: every row has one element, or a group, of the dims after it."""
    width = desc.inner_blocks[0][1]
    return Panels(
        buffer=name,
        start_bytes=start,
        batch_bytes=(),
        row_bytes=width * group * desc.dtype.size_bytes,
        panel_bytes=desc.strides_bytes[2],
        columns=width,
        dtype=desc.dtype,
        group=group,
    )
