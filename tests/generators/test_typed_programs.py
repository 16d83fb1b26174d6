"""Programs that end in other types than f32: a choice of numbers is rounded when the kernel is made."""

import pytest

from asmdnn.generators.functions.expression import Builder, Term
from asmdnn.generators.functions.postops import ExpressionOp
from asmdnn.generators.functions.typed_program import typed_program


def steps_of(kind: str, *numbers: float) -> tuple[list[str], set[int]]:
    """The operations, and the constants, of numbers[0] where x > 0, else numbers[1] where x < 0, else the last one."""
    build = Builder(1)
    (x,) = build.inputs
    inner: Term = build.where(x < 0.0, *numbers[1:])
    op = ExpressionOp(build.finish(build.where(x > 0.0, numbers[0], inner)), ())
    program = typed_program(((op,),), ("f32",), (kind,))
    constants = {step.immediate for step in program.steps if step.op == "constant"}
    return [step.op for step in program.steps if step.op not in ("input", "constant")], constants


@pytest.mark.parametrize(
    ("kind", "numbers", "integers"),
    [
        ("u8", (1.0, 300.0, -5.0), {0, 1, 255}),
        ("s8", (2.5, -200.0, -1.0), {0, 2, 2**32 - 128, 2**32 - 1}),
        ("s32", (3.5, 1e30, 0.0), {0, 4, 2147483520}),
    ],
)
def test_chosen_numbers_are_rounded_now(kind: str, numbers: tuple[float, ...], integers: set[int]) -> None:
    assert steps_of(kind, *numbers) == (["select", "select"], integers)


def test_what_is_no_number_is_rounded_by_the_kernel() -> None:
    operations, _ = steps_of("u8", 1.0, float("nan"), 0.0)
    assert operations[-1] == "to_int"
