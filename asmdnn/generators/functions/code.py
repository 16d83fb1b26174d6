"""A Program as instructions: one pass over its steps, on the registers that expression_values.py finds.

A program can be applied to several vectors in turn, step by step.
"""

from collections.abc import Container, Sequence

from asmdnn.generators.functions.program import Program, Step
from asmdnn.generators.functions.values import Slots, Source, Values
from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.vector import Vector

BEHIND = 2  # then fewer values of different vectors are needed at the same time than with all in the same step
COMMUTATIVE = {"add": "VADDPS", "mul": "VMULPS", "and": "VANDPS", "or": "VORPS", "xor": "VXORPS", "iadd": "VPADDD"}
BINARY = {
    **COMMUTATIVE, "sub": "VSUBPS", "div": "VDIVPS", "min": "VMINPS", "max": "VMAXPS", "andn": "VANDNPS",
    "isub": "VPSUBD",
}  # fmt: skip
UNARY = {"sqrt": "VSQRTPS", "to_float": "VCVTDQ2PS", "to_int": "VCVTPS2DQ"}
SHIFTS = {"shl": "VPSLLD", "shr": "VPSRLD", "sar": "VPSRAD"}
FUSED = {"fma": "VFMADD", "fnma": "VFNMADD"}


def apply_program(
    program: Program, v: Vector, x: Register, sources: Sequence[Source], spare: Sequence[Register], slots: Slots
) -> None:
    """x = program(x, sources); `spare` are registers to overwrite."""
    code = ProgramCode(program.steps, (program.result,), v, [x, *sources], [*spare, x], slots)
    code.emit()
    code.finish_in(x, program.result)


def apply_to_each(
    program: Program, v: Vector, sources: Sequence[Sequence[Source]], registers: Sequence[Register], slots: Slots
) -> list[Register]:
    """The registers that hold program(sources) for each of several vectors; sources[i] is where input i of each is."""
    vectors = len(sources[0])
    common = {i for i, of_input in enumerate(sources) if of_input[0].lanes is None}
    steps, results = side_by_side(program, vectors, common)
    flat = [source for of_input in sources for source in of_input]
    code = ProgramCode(steps, results, v, flat, registers, slots, keeps=vectors > 1)
    code.emit()
    return [code.in_register(result) for result in results]


def side_by_side(program: Program, vectors: int, common: Container[int]) -> tuple[tuple[Step, ...], tuple[int, ...]]:
    """The steps of a program for several vectors in turn, each BEHIND the one before it, and where their results are.

    Input i of vector j is number i * vectors + j.  Constants and inputs in `common` are one step for all vectors.
    """
    steps: list[Step] = []
    number: dict[tuple[int, int], int] = {}
    places = ((i + BEHIND * j, j, i) for i in range(len(program.steps)) for j in range(vectors))
    for _, j, i in sorted(places):
        step = program.steps[i]
        if j and (step.op == "constant" or (step.op == "input" and step.immediate in common)):
            number[i, j] = number[i, 0]
            continue
        number[i, j] = len(steps)
        immediate = step.immediate * vectors + j if step.op == "input" else step.immediate
        steps.append(Step(step.op, tuple(number[a, j] for a in step.args), immediate))
    return tuple(steps), tuple(number[program.result, j] for j in range(vectors))


class ProgramCode(Values):
    """The emission of steps."""

    def emit(self) -> None:
        """The code of all steps."""
        for now, step in enumerate(self.steps):
            self.now = now
            if step.op not in ("input", "constant"):
                self.emit_step(step)
                self.free_slots()
        self.now = len(self.steps)

    def finish_in(self, x: Register, result: int) -> None:
        """x = the result, after which nothing is needed any more."""
        if self.where.get(result) is not x:
            if result in self.where:
                self.v.move(x, self.where[result])
            else:
                self.load(x, result)
        self.release((result,))
        self.free_slots()

    def emit_step(self, step: Step) -> None:
        op, args, asm = step.op, step.args, self.v.asm
        if op in FUSED:
            self.fused(FUSED[op], *args)
        elif op == "select":
            self.select(step)
        elif op in BINARY:
            a, b = args
            if op in COMMUTATIVE and a not in self.where and b in self.where:
                a, b = b, a
            left = self.in_register(a)
            right = self.operand(b, left)
            getattr(asm, BINARY[op])(self.result(args, left), left, right)
        elif op in SHIFTS:
            source = self.in_register(args[0])
            getattr(asm, SHIFTS[op])(self.result(args, source), source, step.immediate)
        else:
            operand = self.operand(args[0])
            if op == "round":
                self.v.round(self.result(args), operand, step.immediate)
            else:
                getattr(asm, UNARY[op])(self.result(args), operand)

    def fused(self, family: str, a: int, b: int, c: int) -> None:
        """One operand is overwritten: one that is not needed any more, or else a copy of c."""
        dying = [arg for arg in (c, a, b) if arg in self.where and self.last_use(arg) <= self.now]
        if not dying or (dying[0] == c and c in (a, b)):
            self.fused_into_copy(family, a, b, c)
            return
        target = dying[0]
        if target == c:
            form, (first, second) = "231", (a, b)
        else:
            form, (first, second) = "213", (b if target == a else a, c)
        if first not in self.where and second in self.where:  # 132 and 231 swapped read the first from memory
            form, first, second = ("231" if form == "231" else "132"), second, first
        keep = self.where[target]
        left = self.in_register(first, keep)
        right = self.operand(second, keep, left)
        getattr(self.v.asm, f"{family}{form}PS")(keep, left, right)
        self.release((a, b, c))
        self.take(keep)
        self.define(keep)

    def fused_into_copy(self, family: str, a: int, b: int, c: int) -> None:
        if a not in self.where and b in self.where:
            a, b = b, a
        left = self.in_register(a)
        right = self.operand(b, left)
        keep = (left, right) if isinstance(right, Register) else (left,)
        target = self.take_register(*keep)
        if c in self.where:
            self.v.move(target, self.where[c])
        else:
            self.load(target, c)
        getattr(self.v.asm, f"{family}231PS")(target, left, right)
        self.release((a, b, c))
        self.define(target)

    def select(self, step: Step) -> None:
        """Compare, then blend; the condition takes a register in between, unless the ISA has masks."""
        v, (a, b, then, otherwise) = self.v, step.args
        left = self.in_register(a)
        right = self.operand(b, left)
        self.release((a, b), kept=(then, otherwise))
        condition = v.condition(self.take_register)
        v.compare(condition, left, right, step.immediate)
        zero = Step("constant", (), 0)
        if self.steps[otherwise] == zero:
            chosen = self.blend_operand(then, condition)
            target = self.blend_target(condition, step)
            v.keep(target, condition, chosen)
        else:
            base = self.in_register(otherwise, condition)
            chosen = self.blend_operand(then, condition, base)
            target = self.blend_target(condition, step)
            v.select(target, condition, chosen, base)
        self.define(target)

    def blend_operand(self, value: int, *keep: Register) -> Register | Pointer:
        """As `operand`; all lanes of an input are read, where a masked instruction would read the chosen ones."""
        if self.steps[value].op == "input":
            return self.in_register(value, *keep)
        return self.operand(value, *keep)

    def blend_target(self, condition: Register, step: Step) -> Register:
        """A register for the result of a blend, which has read its operands when it is written."""
        self.release(step.args)
        if not self.v.end_condition(condition):
            self.free.append(condition)
        return self.take_register()
