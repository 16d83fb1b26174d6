"""Functions of a lane, written once for whoever computes them: as steps of a program, or here, in a few registers.

A formula is f(ops, x): it asks `ops` for operations on values and returns the last one.  The Builder of
generators/functions/expression.py makes a program of it, `emit` instructions at once, and `computed` a number.
"""

from collections.abc import Callable, Sequence
from operator import add, and_, mul, or_, sub
from struct import pack, unpack
from typing import Final, NamedTuple, Protocol, TypeVar

from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.vector import Vector

V = TypeVar("V")

COMMUTATIVE: Final = {
    "add": "VADDPS", "mul": "VMULPS", "and": "VANDPS", "or": "VORPS", "xor": "VXORPS", "iadd": "VPADDD",
}  # fmt: skip
BINARY: Final = {
    **COMMUTATIVE, "sub": "VSUBPS", "div": "VDIVPS", "min": "VMINPS", "max": "VMAXPS", "andn": "VANDNPS",
    "isub": "VPSUBD",
}  # fmt: skip
UNARY: Final = {"sqrt": "VSQRTPS", "to_float": "VCVTDQ2PS", "to_int": "VCVTPS2DQ"}
SHIFTS: Final = {"shl": "VPSLLD", "shr": "VPSRLD", "sar": "VPSRAD"}
LESS, UNORDERED, NOT_LESS = 0x11, 0x03, 0x15  # VCMPPS's predicates


class Operations(Protocol[V]):
    """What a formula may ask for; generators/functions/program.py says what each step computes."""

    def op(self, op: str, *args: V | float, immediate: int = 0) -> V:
        """A step of BINARY, UNARY or SHIFTS (by `immediate`), or a select (VCMPPS's predicate is `immediate`)."""

    def bits(self, bits: int) -> V:
        """The constant with these 32 bits."""


Formula = Callable[[Operations[int], int], int]


class _Step(NamedTuple):
    op: str
    args: tuple[int, ...] = ()
    immediate: int = 0


class _Recorder:
    """Steps in a list; number 0 is x."""

    def __init__(self) -> None:
        self.steps = [_Step("input")]

    def op(self, op: str, *args: int | float, immediate: int = 0) -> int:
        numbers = (self.bits(bits_of(a)) if isinstance(a, float) else a for a in args)
        return self.add(_Step(op, tuple(numbers), immediate))

    def bits(self, bits: int) -> int:
        return self.add(_Step("constant", (), bits))

    def add(self, step: _Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1


def emit(v: Vector, formula: Formula, x: Register, spare: Sequence[Register]) -> None:
    """x = formula(x) in every lane.  `spare` are overwritten, and must be enough; of the operands of a step only those
    that instructions take from memory may be constants."""
    recorder = _Recorder()
    result = formula(recorder, 0)
    emitter = _Emitter(v, recorder.steps, result, x, spare)
    for now, step in enumerate(recorder.steps):
        if step.op not in ("input", "constant"):
            emitter.emit(now, step)
    if emitter.where[result] is not x:
        v.move(x, emitter.where[result])


class _Emitter:
    """Which values are in which registers, while their steps become instructions."""

    def __init__(self, v: Vector, steps: Sequence[_Step], result: int, x: Register, spare: Sequence[Register]) -> None:
        self.v, self.steps, self.where, self.free = v, steps, {0: x}, [*spare]
        self.last_use = {a: i for i, step in enumerate(steps) for a in step.args} | {result: len(steps)}

    def emit(self, now: int, step: _Step) -> None:
        asm, operands = self.v.asm, [self.operand(a) for a in step.args]
        if step.op == "select":
            self.where[now] = self.select(now, step, operands)
            return
        self.release(now, step.args)
        self.where[now] = target = self.free.pop()
        if step.op in SHIFTS:
            getattr(asm, SHIFTS[step.op])(target, *operands, step.immediate)
        else:
            getattr(asm, BINARY.get(step.op) or UNARY[step.op])(target, *operands)

    def operand(self, value: int) -> Register | Pointer:
        return self.where[value] if value in self.where else self.v.splat(self.steps[value].immediate)

    def release(self, now: int, args: Sequence[int]) -> None:
        """Registers of values that no later step reads."""
        self.free += [self.where.pop(a) for a in dict.fromkeys(args) if a in self.where and self.last_use[a] == now]

    def select(self, now: int, step: _Step, operands: Sequence[Register | Pointer]) -> Register:
        """The register of the result; the condition may take that of a value that is just compared."""
        left, right, then, otherwise = operands
        assert isinstance(left, Register) and isinstance(otherwise, Register)
        self.release(now, [a for a in step.args[:2] if a not in step.args[2:]])
        condition = self.v.condition(self.free.pop)
        self.v.compare(condition, left, right, step.immediate)
        self.release(now, step.args)
        target = self.free.pop()
        self.v.select(target, condition, then, otherwise)
        if not self.v.end_condition(condition):
            self.free.append(condition)
        return target


class _Lane:
    """Steps that are computed at once, on 32 bits."""

    def bits(self, bits: int) -> int:
        return bits

    def op(self, op: str, *args: int | float, immediate: int = 0) -> int:
        words = [bits_of(a) if isinstance(a, float) else a for a in args]
        numbers = [float_of(word) for word in words]
        a, b = numbers[0], numbers[1] if len(numbers) > 1 else 0.0
        if op in _ON_BITS:
            return int(_ON_BITS[op](*words)) % 2**32
        if op in ("shl", "shr", "sar"):
            signed = words[0] - (words[0] >> 31 << 32)
            return {"shl": words[0] << immediate, "shr": words[0] >> immediate, "sar": signed >> immediate}[op] % 2**32
        if op == "select":
            holds = {LESS: a < b, NOT_LESS: not a < b, UNORDERED: a != a or b != b}[immediate]
            return words[2] if holds else words[3]
        if op in ("min", "max"):  # the second one of NaN, and of zeros
            return words[0] if (a < b if op == "min" else a > b) else words[1]
        if op == "to_float":
            return bits_of(float(words[0] - (words[0] >> 31 << 32)))
        if op == "to_int":
            return round(a) % 2**32 if -(2**31) <= a < 2**31 else 2**31
        return bits_of(_ON_NUMBERS[op](a, b))


_ON_BITS: Final = {"and": and_, "or": or_, "iadd": add, "isub": sub}
_ON_NUMBERS: Final = {"add": add, "sub": sub, "mul": mul}  # in f64 and then f32, which rounds as once


def computed(formula: Formula, x: int) -> int:
    """The bits of formula(x), x being the bits of a lane."""
    return formula(_Lane(), x)


def bits_of(number: float) -> int:
    """The f32 nearest to `number`, as the unsigned integer of the same bits; beyond f32, infinity."""
    try:
        return int.from_bytes(pack("<f", number), "little")
    except OverflowError:
        return 0x7F800000 if number > 0 else 0xFF800000


def float_of(bits: int) -> float:
    """The f32 with these bits."""
    return float(unpack("<f", bits.to_bytes(4, "little"))[0])
