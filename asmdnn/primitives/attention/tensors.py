"""The tensors of attention: those of a description in formats, and what kernels and products read of them."""

from collections.abc import Mapping

from asmdnn.isa.dot import Types, multiplied
from asmdnn.isa.lines import L1_SETS_BYTES, LINE_BYTES
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attention.description import AttentionForward
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.widening import fast_pairs
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.primitives.shapes.tensors import check_tensors
from asmdnn.types import FLOAT_NAMES, f32

SUMS = "logsumexp"
MOST_SUM = 1024.0  # of one that gives probabilities as exactly as maxima and sums do: it is rounded to 2^-24 of itself
INPUTS = ("query", "key", "value", "dst", "mask", SUMS)


def passed_of(desc: AttentionForward, attr: Attr) -> dict[str, MemoryDesc]:
    """The tensors, in formats.  Raises Refused."""
    refuse_attr(attr)
    asked = {name: getattr(desc, name) for name in INPUTS if getattr(desc, name) is not None}
    passed = {name: row_major(t.dims, t) if t.is_any else t for name, t in asked.items()}
    for name in outputs_of(passed):
        check_tensors(passed, name, FLOAT_NAMES)
    return passed


def outputs_of(passed: Mapping[str, MemoryDesc]) -> tuple[str, ...]:
    return ("dst", SUMS) if SUMS in passed else ("dst",)


def types_of(passed: Mapping[str, MemoryDesc], engine: Engine) -> tuple[Types, ...]:
    """What both products may multiply, best first: bf16 where all are and the level does, fast enough; f32."""
    widened = multiplied(f32, f32, engine.isa)
    pairs = fast_pairs((passed[name].dtype for name in ("query", "key", "value")), engine)
    return (widened,) if pairs is None else (pairs, widened)


def as_read(tensor: MemoryDesc, dense: bool = True, multiplied: bool = False) -> MemoryDesc:
    """The format in which kernels read rows of a tensor: its own, or row-major.  dense: whether rows have to be.

    multiplied: by tiles.  Such rows that would share sets of L1, as those of 16 heads of 64 side by side, are copied.
    """
    is_plain = not tensor.inner_blocks and (not dense or tensor.strides[3] == 1 or tensor.dims[3] == 1)
    read = tensor if is_plain else row_major(tensor.dims, tensor)
    size, (_, heads, rows, depth) = tensor.dtype.size_bytes, tensor.dims
    if not multiplied or rows == 1 or read.strides[2] * size % L1_SETS_BYTES:
        return read
    row = depth if depth * size % L1_SETS_BYTES else depth + LINE_BYTES // size
    return MemoryDesc(tensor.dims, tensor.dtype, strides=(heads * rows * row, rows * row, row, 1))


def part_of(packed: MemoryDesc, dims: tuple[int, int]) -> MemoryDesc:
    """The first rows and columns of packed weights."""
    if packed.is_any or packed.dims == dims:
        return packed
    return MemoryDesc(dims, packed.dtype, strides=packed.strides, inner_blocks=packed.inner_blocks)


def stride(tensor: MemoryDesc, dim: int) -> int:
    """0 where a dim is repeated."""
    return tensor.strides[dim] if tensor.dims[dim] > 1 else 0
