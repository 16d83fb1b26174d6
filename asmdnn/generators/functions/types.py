"""What elements of other types than f32 mean in a program, which computes in f32: brought to it, and rounded from it.

Values are lanes as isa/typed.py loads and stores them.  Integers saturate, NaN becomes the least; from f32 they, bf16
and f16 are rounded to nearest even; NaN stays NaN in bf16 and f16, and what is too large for f16 becomes infinite.
"""

from functools import lru_cache
from typing import Final

from asmdnn.generators.functions.chain import compose_all, operands_of
from asmdnn.generators.functions.expression import Builder, Condition, Value
from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.functions.program import Predicate, Program, float_of

SIZE_BYTES: Final = {"f32": 4, "s32": 4, "bf16": 2, "f16": 2, "s8": 1, "u8": 1}
LIMITS: Final = {"s32": (-(2.0**31), 2147483520.0), "s8": (-128.0, 127.0), "u8": (0.0, 255.0)}  # of f32 numbers
BF16_BITS, BF16_ROUND, BF16_QUIET = 16, 0x7FFF, 0x400000


def widened(build: Builder, x: Value, kind: str) -> Value:
    """A lane as f32."""
    if kind == "bf16":
        return build.op("shl", x, immediate=BF16_BITS)
    return build.op("to_float", x) if kind in LIMITS else x


def narrowed(build: Builder, x: Value, kind: str) -> Value:
    """An f32 as a lane of that type."""
    if kind in LIMITS:
        chosen = chosen_integer(build, x, kind)
        if chosen is not None:
            return chosen
        least, most = LIMITS[kind]
        return build.op("to_int", build.op("min", most, build.op("max", x, least)))
    if kind != "bf16":
        return x
    odd = build.op("and", build.op("shr", x, immediate=BF16_BITS), build.bits(1))
    rounded = build.op("iadd", build.op("iadd", x, build.bits(BF16_ROUND)), odd)
    quiet = build.op("or", x, build.bits(BF16_QUIET))
    kept = build.where(Condition(Predicate.unordered, x, x), quiet, rounded)
    return build.op("shr", kept, immediate=BF16_BITS)


def chosen_integer(build: Builder, x: Value, kind: str) -> Value | None:
    """A lane of x where x is a number, or a choice of numbers, such as 1 or 0: they are rounded now; else None."""
    step, (least, most) = build.step_of(x), LIMITS[kind]
    if step.op == "constant":
        number = float_of(step.immediate)
        return build.bits(round(min(max(number, least), most)) % 2**32) if number == number else None
    if step.op != "select":
        return None
    then, otherwise = (chosen_integer(build, Value(build, i), kind) for i in step.args[2:])
    if then is None or otherwise is None:
        return None
    left, right = (Value(build, i) for i in step.args[:2])
    return build.op("select", left, right, then, otherwise, immediate=step.immediate)


@lru_cache
def typed_program(chains: tuple[tuple[PostOp, ...], ...], kinds: tuple[str, ...], results: tuple[str, ...]) -> Program:
    """The chains as functions of lanes: kinds are the types of x and of all operands, results those of the values."""
    build = Builder(1 + len(operands_of([op for chain in chains for op in chain])))
    inputs = [widened(build, x, kind) for x, kind in zip(build.inputs, kinds, strict=True)]
    values = build.insert_all(compose_all(chains), inputs)
    return build.finish(*(narrowed(build, value, kind) for value, kind in zip(values, results, strict=True)))
