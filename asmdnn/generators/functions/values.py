"""Where the values of a program are while its code is emitted: in registers, on the stack, or in memory.

When registers are short, the value that is needed last goes to the stack (Belady's rule, as linear-scan allocators
apply it to straight code).  Constants are operands in memory and take no register, unless an instruction has no room
for them.  Three registers are enough for every program, since every instruction takes one of its operands from memory.

Several vectors share the registers; what is read from memory more than once stays in one as long as no computed value
needs it: a core loads two vectors a cycle and multiplies as many, so that reading a constant for every multiplication
of every vector would cost as much as multiplying.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from asmdnn.generators.functions.program import Step
from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.records import dataclass

FEWEST_REGISTERS = 3
NEVER = 1 << 30
NOTHING_HELD: Final[Mapping[int, Register]] = {}


@dataclass(frozen=True, slots=True)
class Source:
    """Where an argument after the first is read: a vector of lanes, or one element for all of them.

    `locate` gives the place; it may emit the load of a pointer, which the next two instructions find in its register.
    """

    locate: Callable[[], Pointer]
    lanes: Lanes | None  # None for one element


class Slots:
    """Places on the stack for values, shared by all programs of a kernel; what one gives back the next one takes.

    numbers: where those lie that the kernel is told, as `Vector.splat_at` reads them.
    """

    def __init__(self, v: Vector) -> None:
        self.v = v
        self.numbers: Sequence[Pointer] = ()
        self.free: list[Pointer] = []

    def take(self) -> Pointer:
        return self.free.pop() if self.free else self.v.asm.stack(self.v.bytes)


class Values:
    """The values of steps.  Inputs are registers, which are overwritten, or sources; `registers` include the former.

    Between two steps every value that a later step, or a result, needs is in one register of `where`, or else on the
    stack (`spilled`), or in memory that it can be read from again (constants and sources).  A value that was spilled
    and loaded again is in both.  No register holds two values; what holds none is in `free`.

    keeps: whether what memory holds may stay in a register between uses.  home: where the last value is wanted, so that
    it need not be moved there.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        results: Sequence[int],
        inputs: Sequence[Register | Source],
        registers: Sequence[Register],
        slots: Slots,
        keeps: bool = False,
        home: Register | None = None,
    ) -> None:
        assert len(registers) >= FEWEST_REGISTERS, "a program needs three registers"
        self.steps, self.v, self.inputs, self.slots = steps, slots.v, inputs, slots
        self.keeps, self.home, self.held = keeps, home, NOTHING_HELD
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

    def hold(self, held: Mapping[int, Register], loaded: Collection[int]) -> None:
        """Values in registers, not among those given, before and after the program; `loaded` are brought there now."""
        self.held = held
        self.where |= held
        for value in loaded:
            self.load(held[value], value)

    def result(self, args: Sequence[int], prefer: Register | None = None) -> Register:
        """A register for the step's value, after its arguments are released."""
        self.release(args)
        target = prefer if prefer in self.free and not self.goes_home() else self.take_result()
        self.take(target)
        self.define(target)
        return target

    @property
    def is_last(self) -> bool:
        return self.now == len(self.steps) - 1

    def goes_home(self) -> bool:
        """Whether the step's value is the last one, and its register is free."""
        return self.is_last and self.home in self.free

    def take_result(self, *keep: Register) -> Register:
        """A register for the step's value: the one where it is wanted if that is free."""
        if self.home is not None and self.goes_home():
            self.free.remove(self.home)
            return self.home
        return self.take_register(*keep)

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
        if step.op == "number":
            return self.v.splat_at(self.slots.numbers[step.immediate])
        source = self.source(step)
        return source.locate() if source.lanes is self.v else None

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
        elif step.op == "number":
            self.load_number(target, self.slots.numbers[step.immediate])
        else:
            source = self.source(step)
            if source.lanes is None:
                self.v.broadcast(target, source.locate())
            else:
                source.lanes.load(target, source.locate())

    def load_number(self, target: Register, place: Pointer) -> None:
        operand = self.v.splat_at(place)
        if operand.bcode:
            self.v.broadcast(target, place)
        else:
            self.v.load(target, operand)

    def last_use(self, value: int) -> int:
        if value in self.held:
            return NEVER
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
        candidates = [v for v, register in self.where.items() if register not in keep and v not in self.held]
        victim = max(candidates, key=lambda value: (self.keeps and self.is_cheap(value), self.next_use(value)))
        register = self.where.pop(victim)
        if victim not in self.spilled and not self.is_cheap(victim):
            self.spilled[victim] = self.slots.take()
            self.v.store(self.spilled[victim], register)
        return register

    def is_cheap(self, value: int) -> bool:
        """Whether it can be loaded again from where it came from."""
        step = self.steps[value]
        if step.op == "input":
            return isinstance(self.inputs[step.immediate], Source)
        return step.op in ("constant", "number")
