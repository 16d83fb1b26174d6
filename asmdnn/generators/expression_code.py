"""A Program on registers: one pass over its steps, with the values that are needed last on the stack when short of
registers (Belady's rule, as linear-scan allocators apply it to straight code).

Constants are operands in memory and take no register, unless an instruction has no room for them.  Three registers are
enough for every program, since every instruction takes one of its operands from memory.

A program can be applied to several vectors in turn, step by step.  They share the registers; what is read from memory
more than once stays in one as long as no computed value needs it: a core loads two vectors a cycle and multiplies as
many, so that reading a constant for every multiplication of every vector would cost as much as multiplying.
"""

from bisect import bisect_left
from collections.abc import Container, Sequence
from dataclasses import dataclass

from asmdnn.generators.expression import Program, Step
from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.vector import Lanes, Vector

FEWEST_REGISTERS = 3
NEVER = 1 << 30
BEHIND = 2  # then fewer values of different vectors are needed at the same time than with all in the same step
COMMUTATIVE = {"add": "VADDPS", "mul": "VMULPS", "and": "VANDPS", "or": "VORPS", "xor": "VXORPS", "iadd": "VPADDD"}
BINARY = {
    **COMMUTATIVE, "sub": "VSUBPS", "div": "VDIVPS", "min": "VMINPS", "max": "VMAXPS", "andn": "VANDNPS",
    "isub": "VPSUBD",
}  # fmt: skip
UNARY = {"sqrt": "VSQRTPS", "to_float": "VCVTDQ2PS", "to_int": "VCVTPS2DQ"}
SHIFTS = {"shl": "VPSLLD", "shr": "VPSRLD", "sar": "VPSRAD"}
FUSED = {"fma": "VFMADD", "fnma": "VFNMADD"}


@dataclass(frozen=True, slots=True)
class Source:
    """Where an argument behind the first is read: a vector of lanes, or one element for all of them."""

    at: Pointer
    lanes: Lanes | None  # None for one element


class Slots:
    """Places on the stack for values, shared by all programs of a kernel; what one gives back the next one takes."""

    def __init__(self, v: Vector) -> None:
        self.v = v
        self.free: list[Pointer] = []

    def take(self) -> Pointer:
        return self.free.pop() if self.free else self.v.asm.stack(self.v.bytes)


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


class ProgramCode:
    """The emission of steps.  Inputs are registers, which it overwrites, or sources; `registers` include the former.

    keeps: whether what memory holds may stay in a register between uses.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        results: Sequence[int],
        v: Vector,
        inputs: Sequence[Register | Source],
        registers: Sequence[Register],
        slots: Slots,
        keeps: bool = False,
    ) -> None:
        assert len(registers) >= FEWEST_REGISTERS, "a program needs three registers"
        self.steps, self.v, self.inputs, self.slots, self.keeps = steps, v, inputs, slots, keeps
        self.free = [*registers]
        self.where: dict[int, Register] = {}
        self.spilled: dict[int, Pointer] = {}
        self.unread: list[Pointer] = []
        self.uses: list[list[int]] = [[] for _ in steps]
        for i, step in enumerate(steps):
            for a in set(step.args):
                self.uses[a].append(i)
        for result in results:
            self.uses[result].append(len(steps))
        self.now = 0
        for i, step in enumerate(steps):
            if step.op == "input" and not isinstance(x := inputs[step.immediate], Source):
                self.free.remove(x)
                self.where[i] = x

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

    def result(self, args: Sequence[int], prefer: Register | None = None) -> Register:
        """A register for the step's value, after its arguments are released."""
        self.release(args)
        if prefer is not None and prefer in self.free:
            self.free.remove(prefer)
            self.define(prefer)
            return prefer
        target = self.take_register()
        self.define(target)
        return target

    def define(self, register: Register) -> None:
        self.where[self.now] = register

    def operand(self, value: int, *keep: Register) -> Register | Pointer:
        """A register that holds the value, or memory that an instruction can read it from."""
        if value in self.where:
            return self.where[value]
        if self.keeps and len(self.free) > 1 and self.last_use(value) > self.now:  # one register for the result
            return self.in_register(value, *keep)
        return self.memory(value) or self.in_register(value, *keep)

    def memory(self, value: int) -> Pointer | None:
        step = self.steps[value]
        if value in self.spilled:
            return self.spilled[value]
        if step.op == "constant":
            return self.v.splat(step.immediate)
        source = self.source(step)
        return source.at if source.lanes is self.v else None

    def source(self, step: Step) -> Source:
        source = self.inputs[step.immediate]
        assert isinstance(source, Source)  # a register is never lost: it is spilled
        return source

    def in_register(self, value: int, *keep: Register) -> Register:
        """A register that holds the value; registers in `keep` are not disturbed."""
        if value not in self.where:
            target = self.take_register(*keep)
            self.load(target, value)
            self.where[value] = target
        return self.where[value]

    def load(self, target: Register, value: int) -> None:
        step = self.steps[value]
        if value in self.spilled:
            self.v.load(target, self.spilled[value])
        elif step.op == "constant":
            if step.immediate == 0:
                self.v.zero(target)
            else:
                self.v.broadcast(target, self.v.asm.const(step.immediate.to_bytes(4, "little"), 4, size=4))
        else:
            source = self.source(step)
            if source.lanes is None:
                self.v.broadcast(target, source.at)
            else:
                source.lanes.load(target, source.at)

    def last_use(self, value: int) -> int:
        return self.uses[value][-1] if self.uses[value] else -1

    def next_use(self, value: int) -> int:
        """The first use from this step on: a value that this very step reads comes first."""
        uses = self.uses[value]
        at = bisect_left(uses, self.now)
        return uses[at] if at < len(uses) else NEVER

    def release(self, args: Sequence[int], kept: Sequence[int] = ()) -> None:
        """Registers and slots of arguments that no later step reads are free."""
        for arg in set(args) - set(kept):
            if self.last_use(arg) <= self.now:
                if arg in self.where:
                    self.free.append(self.where.pop(arg))
                if arg in self.spilled:  # the instruction that reads the slot may still be to come
                    self.unread.append(self.spilled.pop(arg))

    def free_slots(self) -> None:
        self.slots.free += self.unread
        self.unread.clear()

    def take(self, register: Register) -> None:
        if register in self.free:
            self.free.remove(register)

    def take_register(self, *keep: Register) -> Register:
        """A free register; else that of the value that is needed last, which goes to the stack unless memory has it."""
        if self.free:
            return self.free.pop()
        candidates = [value for value, register in self.where.items() if register not in keep]
        victim = max(candidates, key=lambda value: (self.keeps and self.is_cheap(value), self.next_use(value)))
        register = self.where.pop(victim)
        if victim not in self.spilled and not self.is_cheap(victim):
            self.spilled[victim] = self.slots.take()
            self.v.store(self.spilled[victim], register)
        return register

    def is_cheap(self, value: int) -> bool:
        """Whether it can be loaded again from where it came from."""
        step = self.steps[value]
        return step.op == "constant" or (step.op == "input" and isinstance(self.inputs[step.immediate], Source))
