"""A reorder into the format of weights that are sums of two bf16."""

from asmdnn.generators.move.conversion import Conversion
from asmdnn.memory import MemoryDesc
from asmdnn.memory.split import HIGH, LOW, PARTS, SplitDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.primitives.reorder.schedule import ScaledConversion, reorder_phases
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.types import f32

WHOLE, REST = "weights in parts", "weights less high parts"  # scratch


def add_split(assembly: Assembly, source: tuple[str, MemoryDesc], target: tuple[str, SplitDesc]) -> None:
    """Phases that bring weights, a buffer and its format, into another one.  What is left of weights without their high
    parts is exact in f32."""
    (src, given), (dst, split) = source, target
    whole = row_major(split.storage.dims, split.storage)
    parts = parts_of(whole, split.depth)
    rest = MemoryDesc(given.dims, f32, LETTERS[: given.ndims])
    assembly.scratch |= {WHOLE: whole.size_bytes, REST: rest.size_bytes}
    less = ScaledConversion(Conversion(given.dtype.name, f32.name, sum=-1.0))
    steps = [
        *((given, parts[part], src, WHOLE, None) for part in HIGH),
        (parts[HIGH[0]], rest, WHOLE, REST, None),
        (given, rest, src, REST, less),
        (rest, parts[LOW], REST, WHOLE, None),
        (whole, split.storage, WHOLE, dst, None),
    ]
    for before, after, *places, scaled in steps:
        assembly.add(reorder_phases(before, after, (*places,), assembly.tuning, scaled, isa=assembly.isa))


def parts_of(whole: MemoryDesc, depth: int) -> list[MemoryDesc]:
    """Equal parts of a plain tensor, one after another along a dim."""
    dims = list(whole.dims)
    dims[depth] //= PARTS
    begins = [[0] * whole.ndims for _ in range(PARTS)]
    for part, begin in enumerate(begins):
        begin[depth] = part * dims[depth]
    return [whole.submemory(dims, begin) for begin in begins]
