"""A kernel under proof: its bytes decoded, its listing, and the contract that it has to keep."""

from collections.abc import Mapping
from functools import cached_property
from typing import Final

from asmdnn.generators.contract import Footprint
from asmdnn.isa.code import Code, Line
from asmdnn.isa.layout import POOL_ALIGNMENT_BYTES
from asmdnn.isa.levels import Isa
from asmdnn.proof.decoder import fact_at
from asmdnn.proof.facts import Fact
from asmdnn.proof.values import Entry
from asmdnn.records import altered, dataclass, field

LEAVES: Final = ("return", "jump", "indirect jump", "trap")  # which execution does not pass


@dataclass(frozen=True, slots=True)
class Contract:
    """What a kernel may do.

    level: the ISA level whose features it may use, None for those of every 64-bit CPU.  arguments: words of the frame
    that it may read, None for a structure of any size (the executor's).  footprint: None where no bounds are claimed.
    calls: whether it calls functions whose addresses it is given.  entry: what registers and the stack hold when a
    function of C is called; None for a kernel, which gets a frame.
    """

    level: Isa | None
    arguments: int | None
    footprint: Footprint | None
    calls: bool = False
    entry: Entry | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a kernel breaks, and the instruction that breaks it (None: the kernel as a whole)."""

    kernel: str
    rule: str
    reason: str
    line: Line | None = None

    def __str__(self) -> str:
        head = f"{self.kernel} breaks the rule '{self.rule}': {self.reason}"
        if self.line is None:
            return head
        where = f"{self.line.offset:6x}  {self.line.data.hex():20}  {self.line.text}"
        return f"{head}\n{where}    {self.line.source or 'no source line'}"


class BrokenRule(Exception):
    """Raised where a rule is checked; carries the Violation."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(str(violation))
        self.violation = violation


@dataclass(frozen=True, slots=True)
class PlacedInstruction:
    """An instruction at its place."""

    offset: int
    fact: Fact
    line: Line
    by_table: tuple[int, ...] = ()  # where a jump by a table may go

    @property
    def end(self) -> int:
        return self.offset + self.fact.length

    @property
    def target(self) -> int:
        """Of a direct jump."""
        return self.offset + self.fact.target


@dataclass(frozen=True, eq=False)
class Kernel:
    """name, contract and code; `steps` are its instructions by offset, as far as the decoder finds any."""

    name: str
    contract: Contract
    code: Code
    steps: Mapping[int, PlacedInstruction] = field(init=False)
    code_bytes: int = field(init=False)  # of instructions; after them fill and constants
    pool_start: int = field(init=False)

    def __post_init__(self) -> None:
        lines = self.code.listing
        assert lines, "a kernel is proved from its listing"
        end = lines[-1].offset + len(lines[-1].data)
        object.__setattr__(self, "code_bytes", end)
        object.__setattr__(self, "pool_start", end + -end % POOL_ALIGNMENT_BYTES)
        object.__setattr__(self, "steps", dict(self._decode(end)))

    def held_to(self, name: str, contract: Contract) -> "Kernel":
        """The same code under another contract."""
        found: Kernel = altered(self, name=name, contract=contract)
        return found

    @cached_property
    def blocks(self) -> "dict[int, list[PlacedInstruction]]":
        """Instructions that run one after the other, by the offset of the first.  The control flow must be proved."""
        starts, waiting = {0}, [0]
        while waiting:  # where jumps go to, and what stands after one
            here = waiting.pop()
            while self.steps[here].fact.flow in ("next", "indirect call"):
                here = self.steps[here].end
            new = [target for target in followers(self.steps[here]) if target not in starts]
            starts.update(new)
            waiting += new
        blocks = {}
        for start in starts:
            block, here = [self.steps[start]], self.steps[start].end
            while block[-1].fact.flow in ("next", "indirect call") and here not in starts:
                block.append(self.steps[here])
                here = block[-1].end
            blocks[start] = block
        return blocks

    def _decode(self, end: int) -> "list[tuple[int, PlacedInstruction]]":
        """One instruction after the other, from the first byte on."""
        assert self.code.listing is not None
        lines = {line.offset: line for line in self.code.listing}
        tables = iter(self.code.tables)
        found, here = [], 0
        while here < end:
            fact = fact_at(self.code.data[:end], here)
            if fact is None:
                break
            line = lines.get(here) or Line(here, self.code.data[here : here + fact.length], fact.text, "", "")
            targets = next(tables, ()) if fact.flow == "indirect jump" else ()
            found.append((here, PlacedInstruction(here, fact, line, targets)))
            here += fact.length
        return found

    def broken(self, rule: str, reason: str, step: PlacedInstruction | Line | None = None) -> BrokenRule:
        """The exception to raise."""
        return BrokenRule(
            Violation(self.name, rule, reason, step.line if isinstance(step, PlacedInstruction) else step)
        )


def followers(step: PlacedInstruction) -> tuple[int, ...]:
    """Offsets where execution can go on after an instruction, calls having returned."""
    if step.fact.flow == "jump":
        return (step.target,)
    if step.fact.flow == "branch":
        return (step.target, step.end)
    if step.by_table:
        return tuple(dict.fromkeys(step.by_table))
    return () if step.fact.flow in LEAVES else (step.end,)
