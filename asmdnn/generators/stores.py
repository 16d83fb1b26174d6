"""Kernels that store past the caches where dst is aligned to a vector, and plainly where it is not."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from asmdnn.isa.assembler import Assembler, Register
from asmdnn.isa.vector import Vector


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


def emit_stored(v: Vector, dst: Register, run: Callable[[Callable[..., None]], None], streaming: bool) -> None:
    """The rest of a kernel, which `run` emits for a kind of store: streaming ones where that is asked for and dst is a
    multiple of a vector, else plain ones."""
    asm = v.asm
    if streaming:
        rest = asm.gp.take("bytes past a vector")
        with if_aligned(asm, dst, v.bytes, rest):
            asm.gp.free(rest)
            run(v.stream)
            asm.ret()
    run(v.store)
    asm.ret()
