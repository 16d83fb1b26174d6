"""A Program as instructions, of several vectors in turn: one pass over its steps, on registers that values.py finds."""

from collections.abc import Collection, Container, Mapping, Sequence
from typing import Final

from asmdnn.generators.functions.program import IN_MEMORY, Program, Step
from asmdnn.generators.functions.values import NOTHING_HELD, Slots, Source, Values
from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.formula import BINARY, COMMUTATIVE, SHIFTS, UNARY
from asmdnn.isa.vector import Vector

AFTER = 2  # then fewer values of different vectors are needed at the same time than with all in the same step
Held = tuple[Mapping[int, Register], Collection[int]]
NOTHING_TO_HOLD: Final[Held] = (NOTHING_HELD, ())
FUSED = {"fma": "VFMADD", "fnma": "VFNMADD"}


def apply_program(
    program: Program,
    v: Vector,
    x: Register,
    sources: Sequence[Source],
    spare: Sequence[Register],
    slots: Slots,
    held: Held = NOTHING_TO_HOLD,
) -> None:
    """x = program(x, sources), which has one result; `spare` are registers to overwrite.  held: steps whose values
    registers have, and after it steps whose values are to be loaded into theirs first."""
    (result,) = program.results
    values = Values(program.steps, (result,), [x, *sources], [*spare, x], slots, home=x)
    values.hold(*held)
    code = ProgramCode(program.steps, v, values)
    code.emit()
    code.finish_in(x, result)


def apply_to_each(
    program: Program,
    v: Vector,
    sources: Sequence[Sequence[Source | Register]],
    registers: Sequence[Register],
    slots: Slots,
    held: Held = NOTHING_TO_HOLD,
    shares: bool = False,
) -> list[list[Register]]:
    """The registers that hold each result of program(sources), for each of several vectors; sources[i] is where input i
    of each vector is: in memory, or in one of `registers`, which are overwritten.  All results must fit into them.
    held: as in `apply_program`, of constants and what vectors share.  shares: whether what is made of that alone is
    computed once; it takes a register from then on."""
    vectors = len(sources[0])
    common = {i for i, of_input in enumerate(sources) if is_common(of_input)}
    steps, number = side_by_side(program, vectors, alike(program, common, shares))
    flat = [source for of_input in sources for source in of_input]
    results = [[number[result, j] for j in range(vectors)] for result in program.results]
    together = [result for of_vectors in results for result in of_vectors]
    values = Values(steps, together, flat, registers, slots, keeps=vectors > 1)
    values.hold({number[i, 0]: register for i, register in held[0].items()}, [number[i, 0] for i in held[1]])
    ProgramCode(steps, v, values).emit()
    kept = [values.where[result] for result in together if result in values.where]
    return [[values.in_register(result, *kept) for result in of_vectors] for of_vectors in results]


def is_common(of_input: Sequence[Source | Register]) -> bool:
    """Whether an input is one element, or one vector, for all vectors."""
    first = of_input[0]
    alone = len(of_input) > 1 and all(source is first for source in of_input)
    return isinstance(first, Source) and (first.lanes is None or alone)


def alike(program: Program, common: Container[int], made: bool = False) -> set[int]:
    """The steps whose values are the same for all vectors: constants, inputs in `common`, and, if wanted, what is made
    of these alone, such as a weight of a row as f32.  Not results, whose registers stores may overwrite."""
    found: set[int] = set()
    for i, step in enumerate(program.steps):
        is_read = step.op in ("constant", "number") or (step.op == "input" and step.immediate in common)
        is_made = made and step.args and i not in program.results and found.issuperset(step.args)
        if is_read or is_made:
            found.add(i)
    return found


def side_by_side(
    program: Program, vectors: int, shared: Container[int]
) -> tuple[tuple[Step, ...], dict[tuple[int, int], int]]:
    """The steps of a program for several vectors in turn, each AFTER the one before it; and which of them is each
    of the program's for every vector.

    Input i of vector j is number i * vectors + j.  Steps that vectors share are one for all of them.
    """
    steps: list[Step] = []
    number: dict[tuple[int, int], int] = {}
    places = ((i + AFTER * j, j, i) for i in range(len(program.steps)) for j in range(vectors))
    for _, j, i in sorted(places):
        step = program.steps[i]
        if j and i in shared:
            number[i, j] = number[i, 0]
            continue
        number[i, j] = len(steps)
        immediate = step.immediate * vectors + j if step.op == "input" else step.immediate
        steps.append(Step(step.op, tuple(number[a, j] for a in step.args), immediate))
    return tuple(steps), number


class ProgramCode:
    """The emission of steps, whose values are where `values` says."""

    def __init__(self, steps: Sequence[Step], v: Vector, values: Values) -> None:
        self.steps, self.v, self.values = steps, v, values

    def emit(self) -> None:
        """The code of all steps."""
        for now, step in enumerate(self.steps):
            self.values.now = now
            if step.op not in IN_MEMORY:
                self.emit_step(step)
                self.values.free_slots()
        self.values.now = len(self.steps)

    def finish_in(self, x: Register, result: int) -> None:
        """x = the result, after which nothing is needed any more."""
        if self.values.where.get(result) is not x:
            if result in self.values.where:
                self.v.move(x, self.values.where[result])
            else:
                self.values.load(x, result)
        self.values.release((result,))
        self.values.free_slots()

    def emit_step(self, step: Step) -> None:
        op, args, asm = step.op, step.args, self.v.asm
        if op in FUSED:
            self.fused(FUSED[op], *args)
        elif op == "select":
            self.select(step)
        elif op == "table":
            index = self.values.in_register(args[0])
            entries = [self.steps[a].immediate for a in args[1:]]
            self.v.look_up(self.values.result(args[:1]), index, entries)
        elif op in BINARY:
            a, b = args
            if op in COMMUTATIVE and a not in self.values.where and b in self.values.where:
                a, b = b, a
            left = self.values.in_register(a)
            right = self.values.operand(b, left)
            getattr(asm, BINARY[op])(self.values.result(args, left), left, right)
        elif op in SHIFTS:
            source = self.values.in_register(args[0])
            getattr(asm, SHIFTS[op])(self.values.result(args, source), source, step.immediate)
        else:
            operand = self.values.operand(args[0])
            if op == "round":
                self.v.round(self.values.result(args), operand, step.immediate)
            else:
                getattr(asm, UNARY[op])(self.values.result(args), operand)

    def fused(self, family: str, a: int, b: int, c: int) -> None:
        """One operand is overwritten: one that is not needed any more, or else a copy of c."""
        dying = [arg for arg in (c, a, b) if arg in self.values.where and self.values.last_use(arg) <= self.values.now]
        if self.values.is_last:
            dying.sort(key=lambda arg: self.values.where[arg] is not self.values.home)
        if not dying or (dying[0] == c and c in (a, b)):
            self.fused_into_copy(family, a, b, c)
            return
        target = dying[0]
        if target == c:
            form, (first, second) = "231", (a, b)
        else:
            form, (first, second) = "213", (b if target == a else a, c)
        if (
            first not in self.values.where and second in self.values.where
        ):  # 132 and 231 swapped read the first from memory
            form, first, second = ("231" if form == "231" else "132"), second, first
        keep = self.values.where[target]
        left = self.values.in_register(first, keep)
        right = self.values.operand(second, keep, left)
        getattr(self.v.asm, f"{family}{form}PS")(keep, left, right)
        self.values.release((a, b, c))
        self.values.take(keep)
        self.values.define(keep)

    def fused_into_copy(self, family: str, a: int, b: int, c: int) -> None:
        if a not in self.values.where and b in self.values.where:
            a, b = b, a
        left = self.values.in_register(a)
        right = self.values.operand(b, left)
        keep = (left, right) if isinstance(right, Register) else (left,)
        target = self.values.take_result(*keep)
        if c in self.values.where:
            self.v.move(target, self.values.where[c])
        else:
            self.values.load(target, c)
        getattr(self.v.asm, f"{family}231PS")(target, left, right)
        self.values.release((a, b, c))
        self.values.define(target)

    def select(self, step: Step) -> None:
        """Compare, then blend; the condition takes a register in between, unless the ISA has masks."""
        v, (a, b, then, otherwise) = self.v, step.args
        left = self.values.in_register(a)
        right = self.values.operand(b, left)
        self.values.release((a, b), kept=(then, otherwise))
        condition = v.condition(self.values.take_register)
        v.compare(condition, left, right, step.immediate)
        zero = Step("constant", (), 0)
        if self.steps[otherwise] == zero:
            chosen = self.blend_operand(then, condition)
            target = self.blend_target(condition, step)
            v.keep(target, condition, chosen)
        else:
            base = self.values.in_register(otherwise, condition)
            chosen = self.blend_operand(then, condition, base)
            target = self.blend_target(condition, step)
            v.select(target, condition, chosen, base)
        self.values.define(target)

    def blend_operand(self, value: int, *keep: Register) -> Register | Pointer:
        """As `operand`; all lanes of an input are read, where a masked instruction would read the chosen ones."""
        if self.steps[value].op == "input":
            return self.values.in_register(value, *keep)
        return self.values.operand(value, *keep)

    def blend_target(self, condition: Register, step: Step) -> Register:
        """A register for the result of a blend, which has read its operands when it is written."""
        self.values.release(step.args)
        if not self.v.end_condition(condition):
            self.values.free.append(condition)
        return self.values.take_result()
