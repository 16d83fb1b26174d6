"""A Program on registers: one pass over its steps, with the values that are needed last on the stack when short of
registers (Belady's rule, as linear-scan allocators apply it to straight code).

Constants are operands in memory and take no register, unless an instruction has no room for them.  Three registers are
enough for every program, since every instruction takes one of its operands from memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from asmdnn.generators.expression import Program, Step
from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.vector import Lanes, Vector

FEWEST_REGISTERS = 3
NEVER = 1 << 30
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
    for _ in ProgramCode(program, v, x, sources, spare, slots).emit():
        pass


class ProgramCode:
    """The emission of one program; `emit` yields after each step, so that several can be interleaved."""

    def __init__(
        self,
        program: Program,
        v: Vector,
        x: Register,
        sources: Sequence[Source],
        spare: Sequence[Register],
        slots: Slots,
    ) -> None:
        assert len(spare) + 1 >= FEWEST_REGISTERS, "a program needs three registers"
        self.program, self.v, self.x, self.sources, self.slots = program, v, x, sources, slots
        self.free = [*spare, x]
        self.where: dict[int, Register] = {}
        self.spilled: dict[int, Pointer] = {}
        self.unread: list[Pointer] = []
        self.uses: list[list[int]] = [[] for _ in program.steps]
        for i, step in enumerate(program.steps):
            for a in set(step.args):
                self.uses[a].append(i)
        self.uses[program.result].append(len(program.steps))
        self.now = 0
        for i, step in enumerate(program.steps):
            if step == Step("input", (), 0):
                self.free.remove(x)
                self.where[i] = x

    def emit(self) -> Iterator[None]:
        """The code; x holds the result at the end."""
        for now, step in enumerate(self.program.steps):
            self.now = now
            if step.op not in ("input", "constant"):
                self.emit_step(step)
                self.free_slots()
                yield
        self.now = len(self.program.steps)
        result = self.program.result
        if self.where.get(result) is not self.x:
            if result in self.where:
                self.v.move(self.x, self.where[result])
            else:
                self.load(self.x, result)
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
        if self.program.steps[otherwise] == zero:
            chosen = self.operand(then, condition)
            target = self.blend_target(condition, step)
            v.keep(target, condition, chosen)
        else:
            base = self.in_register(otherwise, condition)
            chosen = self.operand(then, condition, base)
            target = self.blend_target(condition, step)
            v.select(target, condition, chosen, base)
        self.define(target)

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
        return self.memory(value) or self.in_register(value, *keep)

    def memory(self, value: int) -> Pointer | None:
        step = self.program.steps[value]
        if value in self.spilled:
            return self.spilled[value]
        if step.op == "constant":
            return self.v.splat(step.immediate)
        source = self.sources[step.immediate - 1]
        return source.at if source.lanes is self.v else None

    def in_register(self, value: int, *keep: Register) -> Register:
        """A register that holds the value; registers in `keep` are not disturbed."""
        if value not in self.where:
            target = self.take_register(*keep)
            self.load(target, value)
            self.where[value] = target
        return self.where[value]

    def load(self, target: Register, value: int) -> None:
        step = self.program.steps[value]
        if value in self.spilled:
            self.v.load(target, self.spilled[value])
        elif step.op == "constant":
            if step.immediate == 0:
                self.v.zero(target)
            else:
                self.v.broadcast(target, self.v.asm.const(step.immediate.to_bytes(4, "little"), 4, size=4))
        else:
            source = self.sources[step.immediate - 1]
            if source.lanes is None:
                self.v.broadcast(target, source.at)
            else:
                source.lanes.load(target, source.at)

    def last_use(self, value: int) -> int:
        return self.uses[value][-1] if self.uses[value] else -1

    def next_use(self, value: int) -> int:
        """The first use from this step on: a value that this very step reads comes first."""
        return next((i for i in self.uses[value] if i >= self.now), NEVER)

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
        """A free register; if there is none, that of the value that is needed last, which goes to the stack."""
        if self.free:
            return self.free.pop()
        candidates = [value for value, register in self.where.items() if register not in keep]
        victim = max(candidates, key=self.next_use)
        register = self.where.pop(victim)
        if victim not in self.spilled and not self.is_cheap(victim):
            self.spilled[victim] = self.slots.take()
            self.v.store(self.spilled[victim], register)
        return register

    def is_cheap(self, value: int) -> bool:
        """Whether it can be loaded again from where it came from."""
        step = self.program.steps[value]
        return step.op == "constant" or (step.op == "input" and step.immediate > 0)
