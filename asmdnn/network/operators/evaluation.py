"""A node computed by its definition in numpy, and whatever numpy says to operands that do not fit as one sentence."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

import numpy as np

from asmdnn.errors import LONGEST_VALUE, InvalidArguments, OutOfMemory, Unimplemented, shortened
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.table import operator_of

REASON = "reason"  # the attribute of an error with what follows the operands


def results_of(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    """The results of a node, None standing for an input that is left out.

    Raises InvalidArguments for operands that do not fit together, Unimplemented, OutOfMemory.
    """
    operator = operator_of(node)
    assert operator is not None, "folding refuses unknown operators"
    with own_errors(node, inputs):
        return tuple(np.asarray(result) for result in operator.results(node, *inputs))


@contextmanager
def own_errors(node: Node, inputs: Sequence[Array | Value | None]) -> Iterator[None]:
    """What is done inside with a node's operands raises errors of this library alone, and no warnings of arithmetic."""
    try:
        with np.errstate(all="ignore"):
            yield
    except Exception as error:
        raise_own(error, node, inputs)


def raise_own(error: Exception, node: Node, inputs: Sequence[Array | Value | None]) -> NoReturn:
    """The library's error for what was raised while something was done with a node's operands."""
    is_of_node = isinstance(error, InvalidArguments) and str(error).startswith(f"{node} ")
    if is_of_node or isinstance(error, Unimplemented | OutOfMemory):
        raise error
    if isinstance(error, MemoryError):
        message = f"{node} needs more memory than there is: free some, or make its operands smaller"
        raise OutOfMemory(message) from None
    given = ", ".join("nothing" if x is None else f"{x.dtype.name}{list(x.shape)}" for x in inputs)
    said = str(getattr(error, REASON, error))  # also of a node that this one is decomposed into
    reason = shortened(" ".join(said.split()), LONGEST_VALUE)  # whatever numpy says to operands that do not fit
    dims = shortened(given, LONGEST_VALUE)
    refusal = InvalidArguments(f"{node} cannot be computed of {dims or 'nothing'}: {reason}")
    setattr(refusal, REASON, said)
    raise refusal from None
