"""Loops, conditions and switches in the body of a function.  Each is a few instructions, said with it."""

import inspect
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from asmdnn.asm.function_assembler import FunctionAssembler
from asmdnn.errors import InvalidArguments
from asmdnn.isa.assembler import Label, Register, low32, mem

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="Structure")
MOST_CASES: Final = 1 << 12
OPPOSITE: Final = {
    "E": "NE", "Z": "NZ", "B": "AE", "C": "NC", "BE": "A", "L": "GE", "LE": "G", "S": "NS", "O": "NO", "P": "NP",
}  # fmt: skip
OPPOSITES: Final = {**OPPOSITE, **{other: one for one, other in OPPOSITE.items()}}


def opened_by_with(
    block: Callable[Concatenate[S, P], Generator[T, None, None]],
) -> Callable[Concatenate[S, P], AbstractContextManager[T]]:
    """As contextmanager, of a block that the builder knows from then on."""

    @wraps(block)
    def made(self: S, /, *args: P.args, **kwargs: P.kwargs) -> AbstractContextManager[T]:
        written = block(self, *args, **kwargs)
        self._blocks.append((block.__name__, written))
        return contextmanager(lambda: written)()

    return made


class Structure:
    """The part of a FunctionBuilder that is about control flow.  Counts and conditions are unsigned unless said."""

    asm: FunctionAssembler
    _blocks: list[tuple[str, Generator[Any, None, None]]]

    def check_blocks(self) -> None:
        """Raise InvalidArguments for a block that was called, and not opened: it has written nothing."""
        for name, block in self._blocks:
            if inspect.getgeneratorstate(block) == inspect.GEN_CREATED:
                where = self.asm.name
                raise InvalidArguments(
                    f"{name}(...) of {where!r} has written nothing: write with f.{name}(...): before it."
                )

    @opened_by_with
    def steps(self, count: Register, step: int, name: str = "steps") -> Generator[None, None, None]:
        """while count >= step: the body; count -= step.  No round at all is fine; the remainder stays in `count`.

        count: a 64-bit register, unsigned.  step: 1 to 2^31 - 1.  CMP, JB before; SUB, CMP, JAE after the body.
        """
        if not 0 < step < 1 << 31:
            raise InvalidArguments(f"steps of {step}: a step is from 1 to {(1 << 31) - 1}.")
        asm = self.asm
        again, end = asm.new_label(name), asm.new_label(f"after {name}")
        self._compare(count, step)
        asm.JB(end)
        asm.bind(again)
        yield
        asm.SUB(count, step)
        self._compare(count, step)
        asm.JAE(again)
        asm.bind(end)

    def _compare(self, count: Register, step: int) -> None:
        self.asm.CMP(count, step)

    @opened_by_with
    def loop(self, name: str = "loop") -> Generator["tuple[Label, Label]", None, None]:
        """Again and again until a jump leaves; yields the labels (start, end): `f.JZ(end)` leaves."""
        start, end = self.asm.new_label(name), self.asm.new_label(f"after {name}")
        self.asm.bind(start)
        yield start, end
        self.asm.JMP(start)
        self.asm.bind(end)

    @opened_by_with
    def when(self, condition: str) -> Generator[None, None, None]:
        """The block runs if the flags say so: "E", "B", "AE", "L", "NZ", ... as in the name of the jump."""
        end = self.asm.new_label(f"after when {condition}")
        self._jump_unless(condition, end)
        yield
        self.asm.bind(end)

    @opened_by_with
    def either(
        self, condition: str
    ) -> Generator["tuple[AbstractContextManager[None], AbstractContextManager[None]]", None, None]:
        """Yields two blocks: `with f.either("B") as (then, otherwise): with then: ...; with otherwise: ...`."""
        other, end = self.asm.new_label(f"unless {condition}"), self.asm.new_label(f"after either {condition}")
        self._jump_unless(condition, other)

        @contextmanager
        def then() -> Iterator[None]:
            yield
            self.asm.JMP(end)

        @contextmanager
        def otherwise() -> Iterator[None]:
            self.asm.bind(other)
            yield

        yield then(), otherwise()
        if other.piece < 0:
            raise InvalidArguments(f"either({condition!r}) has no otherwise block: use when({condition!r}).")
        self.asm.bind(end)

    @opened_by_with
    def switch(
        self, value: Register, cases: Iterable[int], name: str = "switch"
    ) -> Generator["SwitchCases", None, None]:
        """A jump by table: `with f.switch(op, range(3)) as case: with case(0): ...; with case.other: ...`.

        value: a 64-bit register, signed.  Cases without a block, and values that are none, go to `case.other`, or on.
        MOV, CMP, CMOVAE, LEA, MOVSXD, ADD, JMP.  Raises InvalidArguments for no case or too many, and for two blocks of
        one.
        """
        wanted = sorted(set(cases))
        if not wanted or wanted[-1] - wanted[0] >= MOST_CASES:
            raise InvalidArguments(f"switch over {wanted[:3]}... needs 1 to {MOST_CASES} values from least to largest.")
        found = SwitchCases(self.asm, wanted, name)
        found.jump(value)
        yield found
        found.close()

    def _jump_unless(self, condition: str, target: Label) -> None:
        suffix = condition.upper() if isinstance(condition, str) else ""
        if suffix not in OPPOSITES:
            import difflib

            near = difflib.get_close_matches(suffix, OPPOSITES, 2)
            hint = f": did you mean {' or '.join(near)}?" if near else f": {', '.join(sorted(OPPOSITES))} are."
            raise InvalidArguments(f"condition {condition!r} is none of a jump's{hint}")
        getattr(self.asm, "J" + OPPOSITES[suffix])(target)


class SwitchCases:
    """The blocks of a switch: `case(value)`, and `case.other`."""

    def __init__(self, asm: FunctionAssembler, values: Sequence[int], name: str) -> None:
        self._asm, self._values = asm, list(values)
        self._labels = {value: asm.new_label(f"{name} {value}") for value in values}
        self._other, self._end = asm.new_label(f"{name}, other"), asm.new_label(f"after {name}")

    def jump(self, value: Register) -> None:
        """The jump to the block of `value`.  At the end of a block it leads to the next one, by a jump of its own that
        the CPU predicts by itself: how interpreters go from operation to operation."""
        asm, least, largest = self._asm, self._values[0], self._values[-1]
        targets = [self._labels.get(at, self._other) for at in range(least, largest + 1)]
        with asm.gp.taken("case") as case, asm.gp.taken("jump table") as table:
            asm.MOV(case, value)
            if least:
                asm.SUB(case, least)
            asm.MOV(low32(table), len(targets))  # the entry after the last case is that of all other values
            asm.CMP(case, len(targets) + 1)
            asm.CMOVAE(case, table)
            asm.LEA(table, asm.jump_table([*targets, self._other]))
            asm.MOVSXD(case, mem(table, index=case, scale=4, size=4))
            asm.ADD(case, table)
            asm.JMP(case)

    @contextmanager
    def __call__(self, value: int) -> Iterator[None]:
        """The block of one value."""
        if value not in self._labels:
            raise InvalidArguments(f"case {value} is not one of {self._values}.")
        with self._block(self._labels[value], f"case {value}"):
            yield

    @property
    @contextmanager
    def other(self) -> Iterator[None]:
        """The block of all other values."""
        with self._block(self._other, "other"):
            yield

    def close(self) -> None:
        """What has no block goes on after."""
        open_labels = [label for label in (*self._labels.values(), self._other) if label.piece < 0]
        if self._other in open_labels:
            for label in open_labels:
                self._asm.bind(label)
        elif open_labels:
            raise InvalidArguments(f"{open_labels[0].name!r} has no block: leave it out of the cases, and it is other.")
        self._asm.bind(self._end)

    @contextmanager
    def _block(self, label: Label, what: str) -> Iterator[None]:
        if label.piece >= 0:
            raise InvalidArguments(f"{what} of a switch has two blocks.")
        self._asm.bind(label)
        yield
        self._asm.JMP(self._end)
