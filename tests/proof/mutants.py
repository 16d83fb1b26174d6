"""Real kernels with one thing wrong: bytes changed after the generator's back, or an instruction more before RET."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from asmdnn.generators.contract import Spec
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.code import Code, Line
from asmdnn.proof.contracts import contract_of, kernel_of
from asmdnn.proof.kernel import BrokenRule, Kernel, Violation
from asmdnn.proof.listing import decoded_text
from asmdnn.proof.prove import prove

Edit = Callable[[Assembler], None]


def violation_of(kernel: Kernel) -> Violation | None:
    try:
        prove(kernel)
    except BrokenRule as broken:
        return broken.violation
    return None


def with_code(spec: Spec, edit: Edit) -> Kernel:
    """The kernel of the spec, with more instructions before its first RET."""

    class Mutating(Assembler):
        edited = False

        def ret(self) -> None:
            if not self.edited:
                self.edited = True
                edit(self)
            super().ret()

    asm: Any = Mutating(spec.name, listing=True)
    spec.generate(asm)
    return Kernel(spec.name, contract_of(spec), asm.finish())


def with_bytes(spec: Spec, at: int, data: bytes, *, listed: bool = True) -> Kernel:
    """The kernel of the spec with other bytes at an offset; `listed`: and a listing that says so."""
    kernel = kernel_of(spec)
    changed = bytearray(kernel.code.data)
    changed[at : at + len(data)] = data
    code = replace(kernel.code, data=bytes(changed))
    return relisted(kernel, code) if listed else Kernel(kernel.name, kernel.contract, code)


def relisted(kernel: Kernel, code: Code) -> Kernel:
    """As if the generator had listed what the bytes decode to."""
    new = Kernel(kernel.name, kernel.contract, code)
    lines = tuple(
        Line(at, code.data[at : step.end], decoded_text(new, step), "", step.line.source)
        for at, step in new.steps.items()
    )
    return Kernel(kernel.name, kernel.contract, replace(code, lines=lambda: lines))


def find(spec: Spec, *starts: str, last: bool = False) -> Line:
    """The first, or the last, line of the kernel's listing that starts with one of the texts."""
    listing = kernel_of(spec).code.listing
    assert listing is not None
    found = [line for line in listing if line.text.startswith(starts)]
    return found[-1 if last else 0]


def jump_to(spec: Spec, target: int, *starts: str) -> Kernel:
    """With the last such jump going to `target`."""
    line = find(spec, *starts, last=True)
    size = 1 if len(line.data) == 2 else 4
    displacement = target - (line.offset + len(line.data))
    end = line.offset + len(line.data) - size
    return with_bytes(spec, end, displacement.to_bytes(size, "little", signed=True))
