"""ASMDNN_CHECK=1: plans are proven when a primitive is made, and padding is verified after every execution.

For finding a defect, of asmdnn or of a caller that writes into the padding; a call takes many times longer.
"""

from collections.abc import Callable, Mapping

from asmdnn import environment
from asmdnn.errors import AsmdnnError
from asmdnn.memory import Memory
from asmdnn.planning.plan import Plan


class PaddingError(AsmdnnError):
    """A primitive did not leave zeros in the padding of a result: a defect of asmdnn."""


def is_checking() -> bool:
    """Whether ASMDNN_CHECK asks for it."""
    return environment.flag(environment.CHECK, default=False)


def check_padding(plan: Plan, memories: Mapping[str, Memory]) -> None:
    """Raise PaddingError, with the primitive, the memory and the first index, unless all outputs' padding is zero."""
    for name in plan.outputs:
        index = memories[name].first_stray()
        if index is not None:
            raise PaddingError(
                f"{plan.implementation} left {name}, {memories[name]}, with padding that is not zero at index {index}: "
                "report it with the lines of pd.explain()"
            )


def checked(call: Callable[[], None], plan: Plan, memories: Mapping[str, Memory]) -> Callable[[], None]:
    """`call`, and then check_padding."""

    def call_and_check() -> None:
        call()
        check_padding(plan, memories)

    return call_and_check
