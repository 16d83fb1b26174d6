"""Groups of a transform as instructions: sums of a few vectors with constant coefficients."""

from collections.abc import Mapping, Sequence
from struct import pack, unpack

from asmdnn.generators.winograd.forms import ResultGroup, Terms
from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.element import Element
from asmdnn.isa.vector import Lanes, Vector

Value = Register | Pointer | None  # None is zero


class WidenedLanes(Lanes):
    """Loads of elements of another type, all of a vector's or a tail's, as f32."""

    def __init__(self, element: Element, v: Vector, part: Lanes) -> None:
        self.element, self.v, self.part = element, v, part

    def load(self, dst: Register, src: Pointer) -> None:
        self.element.load(self.v, dst, src, self.part)


class Linear:
    """Emits groups; what is read from memory is read as `part` says.

    constants: registers that hold coefficients; others are operands in memory, beside a value in a register.
    copy: a register for what an instruction cannot read from memory: needed for a tail.
    """

    def __init__(self, v: Vector, part: Lanes, constants: Mapping[float, Register], copy: Register | None) -> None:
        self.v, self.part, self.constants, self.copy = v, part, constants, copy

    def group(self, group: ResultGroup, given: Sequence[Value], results: Sequence[Register], spare: Register) -> None:
        """results[k] = result k of the group on the values `given`."""
        values: dict[str, Value] = {f"d{i}": value for i, value in enumerate(given)}
        targets = {"s": spare, **{f"y{k}": register for k, register in enumerate(results)}}
        for name, terms in group.steps:
            self.sum(targets[name], terms, values)
            values[name] = targets[name]

    def sum(self, target: Register, terms: Terms, values: Mapping[str, Value]) -> None:
        """target = the sum of those terms that are not zero."""
        left = [(factor, x) for factor, name in terms if (x := values[name]) is not None]
        if not left:
            self.v.zero(target)
            return
        factor, first = left.pop(0)
        plain = next((i for i, (f, _) in enumerate(left) if abs(f) == 1), None)
        if factor != 1:
            self.scale(target, factor, first)
        elif isinstance(first, Register) and first is not target and plain is not None:
            self.add_plain(target, first, *left.pop(plain))  # three operands save a move
        else:
            self.fetch(target, first)
        for factor, x in left:
            self.add(target, factor, x)

    def fetch(self, target: Register, x: Register | Pointer) -> None:
        """target = x."""
        if not isinstance(x, Register):
            self.part.load(target, x)
        elif x is not target:
            self.v.move(target, x)

    def scale(self, target: Register, factor: float, x: Register | Pointer) -> None:
        """target = factor * x."""
        if factor in self.constants:
            self.v.mul(target, self.constants[factor], self.readable(x))
        elif isinstance(x, Register):
            self.v.mul(target, x, self.splat(factor))
        else:
            self.part.load(target, x)
            self.v.mul(target, target, self.splat(factor))

    def add(self, target: Register, factor: float, x: Register | Pointer) -> None:
        """target += factor * x."""
        if abs(factor) == 1:
            self.add_plain(target, target, factor, x)
            return
        held = self.constants.get(abs(factor))
        first, second = (self.readable(x), self.splat(abs(factor))) if held is None else (held, self.readable(x))
        asm = self.v.asm
        (asm.VFMADD231PS if factor > 0 else asm.VFNMADD231PS)(target, first, second)

    def add_plain(self, target: Register, first: Register, factor: float, x: Register | Pointer) -> None:
        """target = first + x, or first - x."""
        asm = self.v.asm
        (asm.VADDPS if factor > 0 else asm.VSUBPS)(target, first, self.readable(x))

    def readable(self, x: Register | Pointer) -> Register | Pointer:
        """x, or a copy of a tail that lies in memory: an instruction would read past it."""
        if isinstance(x, Register) or self.part is self.v:
            return x
        assert self.copy is not None
        self.part.load(self.copy, x)
        return self.copy

    def splat(self, factor: float) -> Pointer:
        return self.v.splat(unpack("<I", pack("<f", factor))[0])


def take_constants(v: Vector, group: ResultGroup) -> dict[float, Register]:
    """Registers with the coefficients that multiply what is transformed where that is read from memory."""
    first = {terms[0] for _, terms in group.steps}
    others = {(abs(factor), name) for _, terms in group.steps for factor, name in terms[1:]}
    factors = {factor for factor, name in first | others if name.startswith("d") and factor > 0} - {1}
    held = {factor: v.registers.take("coefficient") for factor in sorted(factors)}
    for factor, register in held.items():
        v.broadcast(register, v.asm.const(pack("<f", factor), 4, size=4))
    return held
