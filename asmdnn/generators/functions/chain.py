"""Chains of post-ops: composed into one expression, and compiled for the registers that the kernel has left."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from asmdnn.generators.functions.code import apply_program
from asmdnn.generators.functions.expression import MAX_STEPS, Builder
from asmdnn.generators.functions.postops import OLD_DST, Operand, PostOp
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.values import Slots, Source
from asmdnn.isa.vector import Vector

MOST_WORDS = 4  # of a chain in a kernel's name


def chain_words(chain: Sequence[PostOp]) -> list[str]:
    """The chain in a kernel's name, which is a file name: of a long one the beginning."""
    names = [op.name for op in chain]
    return names if len(names) <= MOST_WORDS else [*names[: MOST_WORDS - 1], f"and{len(names) - MOST_WORDS + 1}"]


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
    return compose_all((chain,))


@lru_cache
def compose_all(chains: tuple[tuple[PostOp, ...], ...]) -> Program:
    """Several functions of one x as one, with a result for each; what they have in common is computed once."""
    operands = operands_of([op for chain in chains for op in chain])
    build = Builder(1 + len(operands))
    value = dict(zip(operands, build.inputs[1:], strict=True))
    results = []
    for chain in chains:
        x = build.inputs[0]
        for op in chain:
            x = op.build(build, x, *(value[operand] for operand in op.operands))
        results.append(x)
    return build.finish(*results, most_steps=sum(map(len, chains)) * MAX_STEPS + 1)


def operands_read(chain: tuple[PostOp, ...]) -> tuple[Operand | None, ...]:
    """Those of operands_of(chain) that the result depends on: no others are read."""
    used = {step.immediate for step in compose(chain).steps if step.op == "input"}
    return tuple(operand for i, operand in enumerate(operands_of(chain), 1) if i in used)


def apply_composed(
    chain: tuple[PostOp, ...], v: Vector, x: Any, sources: Sequence[Source], spare: Sequence[Any], slots: Slots
) -> None:
    """x = chain(x), with a source for each of operands_of(chain)."""
    apply_program(compose(chain), v, x, sources, spare, slots)
