"""A walk over a kernel with concrete integers: loops run as often as they do, and every address is base + offset.

Arguments are symbols, vectors are not known but for the masks of tails.  Where a branch depends on data, both ways are
walked, and states that meet again after it are joined; so the walk covers every call of the kernel.  In a loop that is
so for each round; rounds are joined only if there are so many that their number may depend on data, too.
"""

from collections import Counter
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final

from asmdnn.generators.contract import KernelWords, TapList
from asmdnn.proof import saved_registers, tap_lists
from asmdnn.proof.chosen import chosen_elements
from asmdnn.proof.facts import NO_REGISTER, RSP, Access, Fact
from asmdnn.proof.flags import decide, tested_value
from asmdnn.proof.kernel import Kernel, PlacedInstruction, followers
from asmdnn.proof.machine import Interpreter
from asmdnn.proof.stack_bytes import StackBytes, stack_use
from asmdnn.proof.stack_reads import check_use
from asmdnn.proof.state import WORD_BYTES, State
from asmdnn.proof.values import CODE, NUMBER, AbstractValue, Base, number, on_stack

RULE: Final = "footprint"
MOST_STEPS: Final = 5_000_000
MOST_VISITS: Final = 128  # of a meeting point in a loop, with what is known in each round, before rounds are joined
MASK_BITS: Final = {"b": 0xFF, "w": 0xFFFF, "d": 0xFFFF_FFFF, "q": 0xFFFF_FFFF_FFFF_FFFF}  # by KMOV's last letter
Touched = tuple[int, int, int]  # argument, first byte, end


class WalkState(State):
    """Also mask registers, vectors that came from the constants, and what has been written on every path to here.

    same: arguments that a comparison has shown to be one address.
    """

    __slots__ = ("masks", "same", "stack", "vectors", "written")

    def __init__(self) -> None:
        super().__init__()
        self.masks: dict[int, int] = {}
        self.vectors: dict[int, bytes] = {}
        self.written: set[Touched] = set()
        self.same: frozenset[tuple[int, int]] = frozenset()
        self.stack = StackBytes()

    def copy(self) -> "WalkState":
        other = super().copy()
        assert isinstance(other, WalkState)
        other.masks, other.vectors, other.written = dict(self.masks), dict(self.vectors), set(self.written)
        other.same, other.stack = self.same, self.stack
        return other

    def join(self, other: State) -> bool:
        assert isinstance(other, WalkState)
        before = (self.masks, self.vectors, self.written, self.same, self.stack)
        self.masks = dict(self.masks.items() & other.masks.items())
        self.vectors = dict(self.vectors.items() & other.vectors.items())
        self.written = written_by_both(self.written, other.written)
        self.same &= other.same
        self.stack = self.stack.shared(other.stack)
        return super().join(other) or before != (self.masks, self.vectors, self.written, self.same, self.stack)


def written_by_both(some: set[Touched], others: set[Touched]) -> set[Touched]:
    """Ranges that are alike, and what of the rest overlaps: one way may store at once what another does in parts."""
    both = some & others
    rest, further = some - both, others - both
    return both | overlap(rest, further) if rest and further else both


def overlap(some: set[Touched], others: set[Touched]) -> set[Touched]:
    """The bytes in both, in the fewest ranges."""
    found, left, right = set(), merged(some), merged(others)
    while left and right:
        (a, begin, end), (b, first, last) = left[-1], right[-1]
        if a == b and max(begin, first) < min(end, last):
            found.add((a, max(begin, first), min(end, last)))
        (left if (a, begin) >= (b, first) else right).pop()
    return found


def merged(ranges: set[Touched]) -> list[Touched]:
    """The same bytes in the fewest ranges, in order."""
    found: list[Touched] = []
    for argument, begin, end in sorted(ranges):
        if found and found[-1][0] == argument and begin <= found[-1][2]:
            found[-1] = (argument, found[-1][1], max(found[-1][2], end))
        else:
            found.append((argument, begin, end))
    return found


class Walker(Interpreter):
    """Walks one kernel whose control flow and provenance are proved.  `touch` and `leave` judge; see footprint.py."""

    def __init__(self, kernel: Kernel, taps: TapList | None, words: KernelWords | None = None) -> None:
        super().__init__(kernel)
        self.taps, self.words = taps, words
        self._blocks = kernel.blocks
        masks = {a.mask[1] for step in kernel.steps.values() for a in step.fact.accesses if a.mask}
        self._active = {
            start: [step for step in block if not step.fact.inert or masks & {*step.fact.vectors_written}]
            for start, block in self._blocks.items()
        }
        ends = (block[-1] for block in self._blocks.values())
        # Where a branch on data has led to, and where one of its ways leaps over the other.
        self._meeting = {s.target for s in ends if s.fact.flow == "jump" and s.target > s.offset}
        self._pending: dict[int, WalkState] = {}
        self._walked: dict[int, WalkState] = {}
        self._visits: Counter[int] = Counter()
        self._order: list[int] = []
        self._steps = 0

    def touch(self, state: WalkState, step: PlacedInstruction, access: Access, where: AbstractValue) -> None:
        """Called for every access to anything but the stack."""
        raise NotImplementedError

    def leave(self, state: WalkState, step: PlacedInstruction) -> None:
        """Called at every RET."""
        raise NotImplementedError

    def walk(self) -> None:
        """All paths, lowest offset first, so that what comes before a meeting point is done when it is passed."""
        at_call = WalkState()
        at_call.enter(self.kernel.contract.entry)
        self._arrive(0, at_call)
        while self._order:
            start = heappop(self._order)
            state = self._pending.pop(start)
            self._walked[start] = state.copy()
            self._run(state, start)

    def _arrive(self, here: int, state: WalkState) -> None:
        """Go on from here later, unless nothing new is known."""
        self._meeting.add(here)
        if here in self._pending:
            self._pending[here].join(state)
            return
        if here in self._walked:
            joined = self._walked[here].copy()
            if not joined.join(state):
                return
            self._visits[here] += 1
            if self._visits[here] > MOST_VISITS:
                state = joined
        self._pending[here] = state
        heappush(self._order, here)

    def _run(self, state: WalkState, here: int) -> None:
        """Up to RET, a branch on data, or a meeting point."""
        while True:
            for step in self._active[here]:
                self.execute(state, step)
            self._steps += len(self._active[here])
            last = self._blocks[here][-1]
            if self._steps > MOST_STEPS:
                raise self.kernel.broken(RULE, f"it is still running after {MOST_STEPS} instructions", last)
            if last.fact.flow == "return":
                self.leave(state, last)
                return
            if last.by_table:
                for target in followers(last):
                    self._arrive(target, state.copy())
                return
            if last.fact.flow == "branch":
                taken = decide(last.fact.mnemonic, state)
                if taken is None:
                    for target, other in self._both(state, last):
                        self._arrive(target, other)
                    return
                here = last.target if taken else last.end
            else:
                here = last.target if last.fact.flow == "jump" else last.end
            if here in self._meeting:
                self._arrive(here, state)
                return

    def _both(self, state: WalkState, branch: PlacedInstruction) -> Iterator[tuple[int, WalkState]]:
        """Where a branch on data leads, and what is known there."""
        tested, mnemonic = tested_value(state), branch.fact.mnemonic
        of_taps = tested is not None and tested.base is not None and tested.base.kind in tap_lists.COUNTS
        for target, taken in ((branch.target, True), (branch.end, False)):
            other = state.copy()
            other.compare = None
            if mnemonic in ("je", "jne") and taken == (mnemonic == "je"):
                other.same |= {*equal_arguments(state)}
            if self.taps and tested and of_taps and tested.offset is not None and mnemonic in ("je", "jne"):
                tap_lists.assume(self.taps, other, tested, is_zero=taken == (mnemonic == "je"))
            yield target, other

    def execute(self, state: WalkState, step: PlacedInstruction) -> None:
        fact, of_stack = step.fact, RSP in step.fact.gp_written
        for access, where in self.touched(state, step):
            if not (access.reads or access.writes):
                continue
            if not on_stack(where):
                self.touch(state, step, access, where)
                continue
            of_stack = True
            is_plain = access.base == RSP and access.index == NO_REGISTER
            if not is_plain and fact.flow == "next":  # the rule "stack" has left what it did not know
                top = state.registers[RSP].offset
                assert top is not None
                saved_registers.check_access(self.kernel, step, where, access, top)
        if of_stack and (use := stack_use(self, step, state)):
            check_use(self.kernel, step, state.stack, use)
            state.stack = state.stack.after(use)
        if not fact.inert:
            self.apply(state, step)
        self._follow_masks(state, step, fact)

    def elements(self, state: State, access: Access) -> list[int] | None:
        assert isinstance(state, WalkState)
        return chosen_elements(state.masks, state.vectors, access)

    def _follow_masks(self, state: WalkState, step: PlacedInstruction, fact: Fact) -> None:
        for mask in fact.masks_written:
            source = self.read(state, step, fact.operands[1]) if fact.mnemonic.startswith("kmov") else NUMBER
            state.masks.pop(mask, None)
            if source.base is None and source.offset is not None:
                state.masks[mask] = source.offset & MASK_BITS[fact.mnemonic[-1]]
        for vector in fact.vectors_written:
            state.vectors.pop(vector, None)
            constant = self._constant(state, step, fact)
            if constant:
                state.vectors[vector] = constant

    def _constant(self, state: WalkState, step: PlacedInstruction, fact: Fact) -> bytes:
        """What a plain load from the constants gives."""
        plain = fact.mnemonic.startswith(("vmovu", "vmova", "vmovdq")) and len(fact.accesses) == 1
        if not plain or not fact.accesses[0].reads or fact.accesses[0].mask:
            return b""
        base, at = self.address(state, step, fact.accesses[0])
        known = base == CODE and at is not None and at >= 0
        return self.kernel.code.data[at : at + fact.accesses[0].size_bytes] if known and at is not None else b""

    def load(self, state: State, where: AbstractValue, size_bytes: int) -> AbstractValue:
        if self.taps and where.base is not None and where.base.kind in ("start", "tuple"):
            return tap_lists.load(self.taps, where)
        if self.words and where.base == Base("argument", self.words.argument):
            return number_at(self.words, where.offset, size_bytes)
        found = super().load(state, where, size_bytes)
        is_list = self.taps is not None and found == AbstractValue(Base("argument", self.taps.argument), 0)
        return tap_lists.first_position(self.taps) if self.taps is not None and is_list else found


def equal_arguments(state: WalkState) -> Iterator[tuple[int, int]]:
    """Both orders of two arguments that are one address if the flags say so."""
    kind, a, b = state.compare or ("", NUMBER, NUMBER)
    at_start = all(value.base is not None and value.base.kind == "argument" and value.offset == 0 for value in (a, b))
    if kind == "difference" and at_start and a.base is not None and b.base is not None:
        yield from ((a.base.number, b.base.number), (b.base.number, a.base.number))


def number_at(words: KernelWords, at: int | None, size_bytes: int) -> AbstractValue:
    """What is read at a byte of numbers that a kernel is called with; some number where that is none of them."""
    is_word = at is not None and size_bytes == WORD_BYTES and at in range(0, WORD_BYTES * len(words.values), WORD_BYTES)
    return number(words.values[at // WORD_BYTES]) if is_word and at is not None else NUMBER
