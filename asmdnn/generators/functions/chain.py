"""Chains of post-ops: composed into one expression, and compiled for the registers that the kernel has left.

Chains of sum and relu alone, the usual ends of a convolution, are written out.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from asmdnn.generators.functions.code import apply_program
from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.postops import OLD_DST, Operand, PostOp, ReluOp, SumOp
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.values import Slots, Source
from asmdnn.isa.vector import Lanes, Vector

MOST_WORDS = 4  # of a chain in a kernel's name


def words_of(chain: Sequence[PostOp]) -> list[str]:
    """The chain in a kernel's name, which is a file name: of a long one the beginning."""
    names = [op.name for op in chain]
    return names if len(names) <= MOST_WORDS else [*names[: MOST_WORDS - 1], f"and{len(names) - MOST_WORDS + 1}"]


def is_written_out(chain: Sequence[PostOp]) -> bool:
    """Whether `apply_chain` takes it."""
    return all(isinstance(op, SumOp | ReluOp) for op in chain)


def apply_chain(chain: Sequence[PostOp], v: Vector, x: Any, dst: Any, lanes: Lanes, spare: Sequence[Any]) -> None:
    """x = chain(x), in order of appending; `dst` is where x will be stored, `spare` two registers to overwrite."""
    for op in chain:
        assert isinstance(op, SumOp | ReluOp)
        op.apply(v, x, dst, lanes, spare)


def operands_of(chain: Sequence[PostOp]) -> tuple[Operand | None, ...]:
    """Of all post-ops, each once."""
    return tuple(dict.fromkeys(operand for op in chain for operand in op.operands))


def names_of_operands(chain: Sequence[PostOp]) -> tuple[str, ...]:
    """The arguments of the kernel that the chain brings, in the order of their numbers, which leave none out."""
    numbers = {operand.argument for operand in operands_of(chain) if operand is not OLD_DST}
    return tuple(f"operand{number}" for number in sorted(numbers))


@lru_cache
def compose(chain: tuple[PostOp, ...]) -> Program:
    """The chain as one function of x and operands_of(chain)."""
    operands = operands_of(chain)
    build = Builder(1 + len(operands))
    value = dict(zip(operands, build.inputs[1:], strict=True))
    x = build.inputs[0]
    for op in chain:
        x = op.build(build, x, *(value[operand] for operand in op.operands))
    return build.finish(x)


def operands_read(chain: tuple[PostOp, ...]) -> tuple[Operand | None, ...]:
    """Those of operands_of(chain) that the result depends on: no others are read."""
    used = {step.immediate for step in compose(chain).steps if step.op == "input"}
    return tuple(operand for i, operand in enumerate(operands_of(chain), 1) if i in used)


def apply_composed(
    chain: tuple[PostOp, ...], v: Vector, x: Any, sources: Sequence[Source], spare: Sequence[Any], slots: Slots
) -> None:
    """x = chain(x), with a source for each of operands_of(chain)."""
    apply_program(compose(chain), v, x, sources, spare, slots)
