"""`f.prove(n=range(300))`: the ABI, the level and the footprint of a function, for every stated value of its integers.

The rules are those of the library's kernels (docs/proving.md): a walk over the decoded bytes with pointers as symbols
and these integers as numbers.  Nothing is run.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, product
from math import prod
from operator import index
from typing import Any, Final

from asmdnn.asm.bounds import BoundedNumbers
from asmdnn.asm.footprint import Reach, Reaches
from asmdnn.asm.machine import MachineCode
from asmdnn.asm.prototype import INTEGER_REGISTERS, CType, Prototype
from asmdnn.errors import InvalidArguments, shown
from asmdnn.generators.contract import Footprint, Range
from asmdnn.proof import (
    assignment,
    control_flow,
    cpu_state,
    features,
    listing,
    provenance,
    saved_registers,
    stack_reads,
)
from asmdnn.proof.dataflow import states
from asmdnn.proof.decoder import require_decoder
from asmdnn.proof.facts import Access
from asmdnn.proof.footprint import Judge, contains
from asmdnn.proof.kernel import Contract, Kernel, PlacedInstruction
from asmdnn.proof.machine import RAX
from asmdnn.proof.register_parts import gp, vector
from asmdnn.proof.stack_bytes import StackUse, stack_use
from asmdnn.proof.values import NUMBER, AbstractValue, Base, Entry, number
from asmdnn.proof.walk import WalkState
from asmdnn.records import dataclass

MOST_CASES: Final = 20_000


@dataclass(frozen=True)
class FunctionProof:
    """What was proved.  cases: how many values of the integers; is_bounded: whether accesses were held to a footprint.

    unbounded: the most accesses in one case of which only the pointer is proved, since their distance is data.
    """

    name: str
    isa: str
    cases: int
    is_bounded: bool
    unbounded: int

    def __str__(self) -> str:
        what = f"footprint for {self.cases} cases" if self.is_bounded else "no footprint, as an integer has no values"
        rest = f"; {self.unbounded} accesses with only their pointer" if self.unbounded else ""
        return f"{self.name} at {self.isa}: ABI, level, stack and control flow hold; {what}{rest}"


def prove(
    prototype: Prototype, machine: MachineCode, extents: Reaches, values: Mapping[str, Any], *, calls: bool
) -> FunctionProof:
    """Raises BrokenRule, with the instruction and its line of Python, for the first rule that does not hold;
    InvalidArguments for values that fit no argument; Unimplemented when iced-x86 is missing."""
    require_decoder()
    integers = [argument for argument in prototype.arguments if argument.type.is_integer]
    ranges = {name: _values(prototype, name, stated) for name, stated in values.items()}
    cases = prod(map(len, ranges.values()))
    if cases > MOST_CASES:
        said = f"prove of {prototype.name!r} over {cases} cases or more: at most {MOST_CASES} are walked"
        raise InvalidArguments(f"{said}; state fewer values of {', '.join(ranges)}.")
    is_bounded = all(argument.name in ranges for argument in integers)
    unbounded = 0
    for case in product(*ranges.values()):
        known = dict(zip(ranges, case, strict=True))
        footprint = _footprint(prototype, extents, [known[a.name] for a in integers]) if is_bounded else None
        contract = Contract(machine.level.isa, 0, footprint, calls, _entry(prototype, known))
        unbounded = max(unbounded, _prove_case(Kernel(prototype.name, contract, machine.code)))
    return FunctionProof(prototype.name, machine.level.name, cases, is_bounded, unbounded)


def _values(prototype: Prototype, name: str, stated: Any) -> list[int]:
    found = next((a for a in prototype.arguments if a.name == name and a.type.is_integer), None)
    if found is None:
        raise InvalidArguments(f"prove({name}=...) names no integer argument of {prototype}.")
    several = stated if isinstance(stated, Iterable) else [stated]
    try:
        values = [index(value) for value in islice(several, MOST_CASES + 1)]  # of an iterator without an end, too
    except Exception:  # whatever the caller's object does
        values = []
    low, high = found.type.range
    if not values or not low <= min(values) <= max(values) <= high:
        raise InvalidArguments(f"prove({name}={shown(stated)}) needs one or more integers from {low} to {high}.")
    return values


def _footprint(prototype: Prototype, extents: Reaches, sizes: list[int]) -> Footprint:
    def ranges(side: Mapping[str, Reach]) -> Iterator[Range]:
        for i, argument in enumerate(prototype.arguments):
            if argument.name in side and (size := side[argument.name].size(*sizes)) > 0:
                yield Range(i, 0, size)

    reads, writes = map(tuple, map(ranges, extents))
    return Footprint(reads=reads, writes=writes)


def _entry(prototype: Prototype, known: Mapping[str, int]) -> Entry:
    """Pointers as symbols by the number of their argument, integers as far as they are known."""
    registers, stack, vectors = [], [], []
    for i, argument in enumerate(prototype.arguments):
        value = AbstractValue(Base("argument", i), 0) if argument.type.is_pointer else NUMBER
        if argument.name in known:
            value = number(known[argument.name])
        if argument.on_stack:
            stack.append(value)
        elif argument.type.is_float:
            vectors.append(argument.place)
        else:
            registers.append((INTEGER_REGISTERS[argument.place], value))
    return Entry(tuple(registers), tuple(stack), tuple(vectors), _result(prototype.result))


def _result(ctype: CType) -> int:
    """Where it must be at RET."""
    if ctype.is_void:
        return 0
    return vector(0) if ctype.is_float else gp(RAX, ctype.size_bytes)


def _prove_case(kernel: Kernel) -> int:
    """Where an address depends on an integer, it is only known in the walk, which follows the integer's value."""
    listing.check(kernel)
    features.check(kernel)
    control_flow.check(kernel)
    machine, footprint, restoring = BoundedNumbers(kernel), kernel.contract.footprint, set[int]()
    stack = dict[int, StackUse]()
    for step, state in states(machine):
        if not step.fact.inert:
            saved_registers.check(machine, step, state)
            cpu_state.check(machine, step, state)
            if footprint is None:
                provenance.check(machine, step, state)
                if use := stack_use(machine, step, state):
                    stack[step.offset] = use
            if assignment.restores(machine, step, state):
                restoring.add(step.offset)
    assignment.check(kernel, restoring)
    if footprint is None:
        stack_reads.check(kernel, stack)
        return 0
    judge = _Judge(kernel, footprint)
    judge.walk()
    return len(judge.unbounded)


class _Judge(BoundedNumbers, Judge):
    """What a function states is the most that it writes, not what it always writes."""

    def _check_rows(self, step: PlacedInstruction, access: Access, where: AbstractValue) -> None:
        """By an index that is data, below a bound: where that bound is within the footprint, this is proved."""
        base, at = where
        assert base is not None
        rows = range(base.group) if at is not None and access.mask is None else ()
        for is_write in (False, True):
            if access.writes if is_write else access.reads:
                allowed = self._allowed.get((Base("argument", base.number), is_write))
                starts = [(at or 0) + row * base.word for row in rows]
                if not starts or not allowed or not all(contains(allowed, b, b + access.size_bytes) for b in starts):
                    self._check_unbounded(step, base.number, is_write)

    def _check_unbounded(self, step: PlacedInstruction, argument: int, is_write: bool) -> None:
        if (Base("argument", argument), is_write) not in self._allowed:
            verb = "stores" if is_write else "reads"
            self._complain(f"it {verb} through argument {argument}, which the footprint does not say", step)
        self.unbounded.add(step.offset)

    def touch(self, state: WalkState, step: PlacedInstruction, access: Access, where: AbstractValue) -> None:
        if step.fact.mnemonic not in provenance.IMPLICIT:
            self._complain(provenance.offence(self, access, where), step)
        if self.elements(state, access) == []:
            return  # a mask without lanes touches nothing
        super().touch(state, step, access, where)

    def leave(self, state: WalkState, step: PlacedInstruction) -> None:
        pass
