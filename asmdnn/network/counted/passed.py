"""What an operator makes of a counted axis: where it is in the results, and what places that do not count must be."""

from collections.abc import Callable
from typing import TypeVar

from asmdnn.network.counted.collecting import COLLECTS, FilledPlaces
from asmdnn.network.counted.reading import CountedReading
from asmdnn.network.counted.rules import INDICES, RULES
from asmdnn.network.operators.evaluation import raise_own

Found = TypeVar("Found")


def passed_on(reading: CountedReading) -> FilledPlaces | None:
    """What a node needs where places do not count, and the axis of its results; None for one that mixes places."""
    op = reading.node.op
    axis = ruled(RULES[op], reading)
    if axis is not None:
        return FilledPlaces(dict.fromkeys(INDICES.get(op, ()), 0), axis)
    return ruled(COLLECTS[op], reading) if op in COLLECTS else None


def ruled(rule: Callable[[CountedReading], Found], reading: CountedReading) -> Found:
    """What a rule says.  Raises InvalidArguments for operands that do not fit."""
    try:
        return rule(reading)
    except Exception as error:  # whatever they lead to
        raise_own(error, reading.node, reading.values)
