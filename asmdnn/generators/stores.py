"""Stores whose kind code chooses when it runs: past the caches where dst is aligned to a vector, and plainly where it
is not; rounded by one instruction where that is exact, and by steps where it is not."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from asmdnn.isa.assembler import Assembler, Pointer, Register
from asmdnn.isa.element import Element
from asmdnn.isa.elements import element_of
from asmdnn.isa.vector import Lanes, Vector

ROUNDING_REGISTERS = 2  # that `store_results` overwrites
Places = Sequence[tuple[Pointer, Lanes]]


@contextmanager
def if_aligned(asm: Assembler, pointer: Any, alignment: int, scratch: Any) -> Iterator[None]:
    """What only runs where the pointer is a multiple of `alignment`.  A body that is to be the whole kernel there ends
    with a return; what follows is then for other pointers."""
    unaligned = asm.new_label("unaligned")
    asm.MOV(scratch, pointer)
    asm.AND(scratch, alignment - 1)
    asm.JNZ(unaligned)
    yield
    asm.bind(unaligned)


def emit_stored(
    v: Vector,
    dst: Register,
    run: Callable[[Callable[..., None]], None],
    streaming: bool,
    scratch: Register | None = None,
) -> None:
    """The rest of a kernel, which `run` emits for a kind of store: streaming ones where that is asked for and dst is a
    multiple of a vector, else plain ones."""
    asm = v.asm
    if streaming:
        rest = scratch or asm.gp.take("bytes past a vector")
        with if_aligned(asm, dst, v.bytes, rest):
            if not scratch:
                asm.gp.free(rest)
            run(v.stream)
            asm.ret()
    run(v.store)
    asm.ret()


def store_results(
    v: Vector, element: Element, values: Sequence[Register], places: Places, spare: Sequence[Register]
) -> None:
    """Vectors of what the element is stored as; they are overwritten."""
    if element.narrows_pairs:
        store_rounded(v, element, values, places, spare)
        return
    for value, (at, part) in zip(values, places, strict=True):
        element.lanes(v, part).store_last(at, value)


def store_rounded(
    v: Vector, native: Element, values: Sequence[Register], places: Places, spare: Sequence[Register]
) -> None:
    """Vectors of f32, which stay, to elements of a type that an instruction rounds to, but for some numbers, such as
    denormals: where one of the vectors has any, all are rounded by steps."""
    asm, by_steps, (x, other, *_) = v.asm, element_of(native.dtype), spare
    rounded, stored = asm.new_label("rounded at once"), asm.new_label("stored")
    native.find_others(v, values)
    asm.JZ(rounded)
    for value, (at, part) in zip(values, places, strict=True):
        v.move(x, value)
        by_steps.store(v, at, x, part, (other, other))  # what is NaN is in a mask, and takes no register
    asm.JMP(stored)
    asm.bind(rounded)
    store_at_once(v, native, values, places, spare)
    asm.bind(stored)


def store_at_once(
    v: Vector, native: Element, values: Sequence[Register], places: Places, spare: Sequence[Register]
) -> None:
    """The same of numbers that the instruction rounds as it is wanted."""
    left = [*zip(values, places, strict=True)]
    while left:
        (low, (at, part)), *left = left
        x = spare[len(left) % len(spare)]
        if left and part is v and left[0][1] == (at.shifted(v.lanes * native.size_bytes), v):
            (high, _), *left = left
            native.narrow_both(v, x, low, high)
            v.store(at.sized(v.bytes), x)
        else:
            native.narrow_to(v, x, low)
            native.store_packed(v, at, x, part)
