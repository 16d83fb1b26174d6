"""Shared by the kernels of products: src's footprint, the broadcast of an element, sums and their places in memory, and
the frame of kernels that read two matrices and write one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from asmdnn.generators.contract import Range
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.dot import GROUP_BYTES, Types
from asmdnn.isa.element import Element
from asmdnn.isa.vector import Broadcast, Lanes, Vector

OPERANDS = ("src", "weights", "dst")
SRC, WEIGHTS, DST = range(len(OPERANDS))
BROADCASTS = 4  # registers that take turns holding a broadcast source element


def src_spans(rows: int, row_bytes: int, depth_bytes: int, groups: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(begin, size) of the parts of src that are read: groups of k of these sizes, depth_bytes apart, in rows row_bytes
    apart.  Contiguous parts are joined."""
    if groups and depth_bytes == GROUP_BYTES:
        yield from ((r * row_bytes, sum(groups)) for r in range(rows))
    elif groups and row_bytes == GROUP_BYTES == groups[-1]:
        yield from ((k * depth_bytes, GROUP_BYTES * rows) for k in range(len(groups)))
    else:
        yield from ((r * row_bytes + k * depth_bytes, size) for r in range(rows) for k, size in enumerate(groups))


def src_of(rows: int, row_bytes: int, depth_bytes: int, groups: Sequence[int]) -> list[Range]:
    """The same as ranges."""
    spans = src_spans(rows, row_bytes, depth_bytes, groups)
    return [Range(SRC, begin, begin + size) for begin, size in spans]


def passes_of(types: Types, depth: int, groups: int) -> int:
    """Over `depth` elements of k, so many groups at a time; a partial group has a pass of its own."""
    whole, cut = divmod(depth, types.group)
    return -(-whole // groups) + bool(cut)


def load_operands(asm: Assembler) -> tuple[Register, Register, Register]:
    """The pointers to src, weights and dst from the frame, in registers of their own."""
    src, weights, dst = (asm.gp.take(name) for name in OPERANDS)
    for argument, pointer in enumerate((src, weights, dst)):
        asm.MOV(pointer, mem(asm.frame, 8 * argument))
    return src, weights, dst


def sums_at(
    first: Pointer, acc: Sequence[Sequence[Register]], parts: Sequence[Lanes], row_bytes: int = 0
) -> Iterator[tuple[Register, Pointer, Lanes]]:
    """Every vector of sums with its place in memory and its lanes, row after row, that are row_bytes apart; vectors
    are as far apart as `first` is wide."""
    for r, sums in enumerate(acc):
        for j, (x, part) in enumerate(zip(sums, parts, strict=True)):
            yield x, first.shifted(r * row_bytes + j * first.size), part


@contextmanager
def partial_sums(
    v: Vector, acc: Sequence[Sequence[Register]], at: Register, columns: int, row_bytes: int = 0, *, first: bool
) -> Iterator[list[Lanes]]:
    """Around code that adds to sums, which memory holds between passes: nothing, before the first one.  Yields how to
    access each vector of a row."""
    with v.parts(len(acc[0]), columns) as parts:
        for x, place, part in () if first else sums_at(mem(at, size=v.bytes), acc, parts, row_bytes):
            part.load(x, place)
        yield parts
        for x, place, part in sums_at(mem(at, size=v.bytes), acc, parts, row_bytes):
            part.store_last(place, x)


def in_chunks(
    asm: Assembler,
    count: int,
    chunk: int,
    steps: Sequence[tuple[Register, int]],
    emit: Callable[[int], None],
    name: str,
) -> None:
    """What `emit` does to `count` elements, for a chunk of them at a time, and for the rest.

    Pointers go on by their steps from chunk to chunk, and are left as they were.
    """
    chunks, rest = divmod(count, chunk)
    if chunks:
        with asm.repeated(chunks, "chunks left", f"chunks of {name}"):
            emit(chunk)
            for pointer, step in steps:
                asm.ADD(pointer, step)
    if rest:
        emit(rest)
    for pointer, step in steps if chunks else ():
        asm.SUB(pointer, chunks * step)


def load_repeated(v: Vector, element: Element, x: Register, at: Pointer) -> None:
    """x = one element in every lane, as f32."""
    (element.repeated(v) or Broadcast(v)).load(x, at.sized(element.size_bytes))
    element.to_f32(v, x)
