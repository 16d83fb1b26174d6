"""Comparing a result with the answer, element by element."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.records import dataclass

SMALLEST = float(np.finfo(np.float32).tiny)
LEAST_ELEMENTS = 10  # fewer may be equal by chance


@dataclass(frozen=True, slots=True)
class Answer:
    """Expected values, by how much each may be off, and who says so."""

    values: npt.NDArray[Any]
    tolerance: npt.NDArray[Any] | float
    source: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Largest absolute difference, largest ratio to the tolerance, and what is wrong, if anything is; doubt: why it
    proves little that nothing is."""

    max_error: float
    ratio: float
    reason: str = ""
    doubt: str = ""


def judge(result: npt.NDArray[Any], answer: Answer, exact: bool) -> Verdict:
    """Compare every element with a finite tolerance; a NaN is wrong there, unless it is the answer.

    Where there is no such element, or all have one value, as after post-ops that saturate, nothing that is equal can
    be trusted: benchdnn calls such results mistrusted, too.
    """
    if not result.size:
        return Verdict(0.0, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        difference = np.abs(np.subtract(result, answer.values, dtype=np.float64))
        open_ended = np.broadcast_to(np.isinf(answer.tolerance), difference.shape)
        none = np.isnan(answer.values)  # the answer of a type without infinity
        difference[open_ended | (result == answer.values) | (none & np.isnan(result))] = 0  # infinities, too, are equal
        wrong = ~(difference <= answer.tolerance)
        ratio = 0.0 if exact else float(np.max(difference / np.maximum(answer.tolerance, SMALLEST)))
    if (open_ended | none).all() and not wrong.any():
        return Verdict(0.0, 0.0, doubt="no element can be checked: post-ops take all to where f32 has no numbers")
    worst = float(np.max(difference))
    if not wrong.any():
        return Verdict(worst, ratio, doubt=_doubt(answer.values[~(open_ended | none)]))
    at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    kind = "integer" if exact else "real"
    return Verdict(
        worst,
        ratio if not exact else math.inf,
        f"on {kind} data {np.count_nonzero(wrong)} of {wrong.size} elements are wrong, the first at "
        f"{tuple(int(i) for i in at)}: {result[at]:.9g} instead of {answer.values[at]:.9g} ({answer.source})",
    )


def _doubt(checked: npt.NDArray[Any]) -> str:
    """What speaks against values that are right; nothing, if two of them differ."""
    if checked.size < LEAST_ELEMENTS or (checked != checked.flat[0]).any():
        return ""
    return f"all {checked.size} elements that can be checked are {checked.flat[0]:.9g}"
