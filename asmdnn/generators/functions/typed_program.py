"""Programs of elements of other types than f32, in which they compute: lanes are brought to it, and rounded from it.

What that takes of each type is in isa/elements.py.
"""

from functools import lru_cache

from asmdnn.generators.functions.chain import compose_all
from asmdnn.generators.functions.expression import Builder, Term
from asmdnn.generators.functions.postops import PostOp, is_of_integers
from asmdnn.generators.functions.program import Program, Step
from asmdnn.isa.element import Element
from asmdnn.isa.elements import element_of
from asmdnn.isa.formula import float_of


@lru_cache
def typed_program(chains: tuple[tuple[PostOp, ...], ...], kinds: tuple[str, ...], results: tuple[str, ...]) -> Program:
    """The chains as functions of lanes: kinds are the types of x and of all operands, results those of the values."""
    program = compose_all(chains)
    return program if any(map(is_of_integers, chains)) else of_lanes(program, kinds, results)


@lru_cache
def of_lanes(program: Program, kinds: tuple[str, ...], results: tuple[str, ...], *, saturated: bool = False) -> Program:
    """The program as a function of lanes: of these types the first inputs, f32 those after them, and the results.

    saturated: results are bytes, and what stores them raises what is below the least to that.
    """
    if {*kinds, *results} == {"f32"}:
        return program
    build = Builder(max(program.inputs, len(kinds)))
    lanes = zip(build.inputs, (*kinds, *["f32"] * (len(build.inputs) - len(kinds))), strict=True)
    values = build.insert_all(program, [element_of(kind).widened(build, x) for x, kind in lanes])
    return build.finish(*(narrowed(build, value, kind, saturated) for value, kind in zip(values, results, strict=True)))


def narrowed(build: Builder, x: Term, kind: str, saturated: bool) -> Term:
    """An f32 as a lane of that type."""
    element = element_of(kind)
    x = unclamped(build, x, element)
    if element.limits and (chosen := chosen_integer(build, x, element)) is not None:
        return chosen
    return element.narrowed_above(build, x) if saturated else element.narrowed(build, x)


def unclamped(build: Builder, x: Term, element: Element) -> Term:
    """x without a relu after all else, where the least number of the type is 0, which x is raised to then."""
    step = build.step_of(x)
    if not element.limits or element.limits[0] != 0 or step.op != "max":
        return x
    least, inner = (Term(build, arg) for arg in step.args)
    return inner if build.step_of(least) == Step("constant", (), 0) else x


def without_relu(program: Program) -> Program:
    """The same without a relu after all else, for a caller that raises the result to 0 anyhow."""
    (result,) = program.results
    step = program.steps[result]
    if step.op != "max" or program.steps[step.args[0]] != Step("constant", (), 0):
        return program
    return Program(program.steps[:result], (step.args[1],))


def chosen_integer(build: Builder, x: Term, element: Element) -> Term | None:
    """A lane of x where x is a number, or a choice of numbers, such as 1 or 0: they are rounded now; else None."""
    step = build.step_of(x)
    if step.op == "constant":
        number = float_of(step.immediate)
        return build.bits(element.lane(number)) if number == number else None
    if step.op != "select":
        return None
    then, otherwise = (chosen_integer(build, Term(build, i), element) for i in step.args[2:])
    if then is None or otherwise is None:
        return None
    left, right = (Term(build, i) for i in step.args[:2])
    return build.op("select", left, right, then, otherwise, immediate=step.immediate)
