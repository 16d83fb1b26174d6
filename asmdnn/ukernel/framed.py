"""From the library's kernels, which take a frame of words, to functions with plain arguments.

The words are stored to memory of the call, and the kernel's own code follows: some five instructions more.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from asmdnn.asm import FunctionBuilder, Pointer, Register, mem
from asmdnn.generators.contract import Footprint, Range, Spec
from asmdnn.ukernel.kernel import KernelText, Pointed, UKernel

WORD_BYTES: Final = 8


def framed(spec: Spec, words: Sequence[tuple[str, Pointed]], text: str, *, streams: bool = False) -> UKernel:
    """The kernel of `spec` as a function.  words: by the frame's words the arguments, without sizes, which are those
    of the spec's footprint."""
    claim = spec.footprint()
    assert claim is not None
    order = [spec.frame.index(word) for word, _ in words]
    buffers = [_sized(buffer, claim, at) for at, (_, buffer) in zip(order, words, strict=True)]
    described = KernelText(spec.name, spec.isa, tuple(buffers), text, streams)
    return UKernel(described, _body(spec, order))


def _sized(buffer: Pointed, claim: Footprint, argument: int) -> Pointed:
    def end(ranges: tuple[Range, ...]) -> str:
        last = max((x.end_bytes for x in ranges if x.argument == argument), default=0)
        return str(last) if last else ""

    return Pointed(buffer.name, buffer.dtype, end(claim.reads), end(claim.writes))


def _body(spec: Spec, order: Sequence[int]) -> Callable[..., None]:
    def body(f: FunctionBuilder, *arguments: Register) -> None:
        enter(f, dict(zip(order, arguments, strict=True)), len(spec.frame))
        spec.generate(f.asm)

    return body


def enter(f: FunctionBuilder, arguments: dict[int, Register], words: int) -> Pointer:
    """The arguments, by the numbers of their words, in a frame of the call's own, to which `f.asm.frame` points."""
    f.role("the frame")
    frame = f.local(WORD_BYTES * words)
    for number, argument in arguments.items():
        f.MOV(beyond(frame, WORD_BYTES * number), argument)
    f.gp.free(*arguments.values())
    f.gp.claim(f.asm.frame, "frame")
    f.LEA(f.asm.frame, frame)
    return frame


def beyond(pointer: Pointer, distance_bytes: int) -> Any:
    """A word so many bytes after an operand."""
    return mem(pointer.form.base, pointer.displacement + distance_bytes, size=WORD_BYTES)
