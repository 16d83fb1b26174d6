"""What a training step does beside gradients and updates."""

from typing import Any

from asmdnn.errors import InvalidArguments, not_one_of, shown
from asmdnn.optim.checks import number, whole
from asmdnn.primitives.core.widening import MULTIPLIED
from asmdnn.records import dataclass

MOST_PARTS = 2**20
PRECISIONS = tuple(dtype.name for dtype in MULTIPLIED)


@dataclass(frozen=True)
class TrainingOptions:
    """clip_norm: the most that the Euclidean norm of all gradients together may be; accumulate: how many calls' mean
    gradient makes a step; ema: how much an average of parameters keeps of itself; check_finite: whether a step whose
    loss or gradients are not finite is refused; precision: what matrix products multiply where it is faster."""

    clip_norm: float | None
    accumulate: int
    ema: float | None
    check_finite: bool
    precision: str = PRECISIONS[0]


def checked_options(
    clip_norm: Any, accumulate: Any, ema: Any, check_finite: Any, precision: Any = PRECISIONS[0]
) -> TrainingOptions:
    """Raises InvalidArguments."""
    if not isinstance(precision, str) or precision not in PRECISIONS:
        raise InvalidArguments(not_one_of("precision", precision, PRECISIONS))
    most = None if clip_norm is None else number("clip_norm", clip_norm)
    if most == 0:
        raise InvalidArguments("clip_norm must be more than 0: with it no parameter would change")
    if whole("accumulate", accumulate, 1) > MOST_PARTS:
        raise InvalidArguments(f"accumulate must be an integer from 1 to 2**20, not {shown(accumulate)}")
    if type(check_finite) is not bool:
        raise InvalidArguments(f"check_finite must be True or False, not {shown(check_finite)}")
    kept = None if ema is None else number("ema", ema, below=1)
    return TrainingOptions(most, accumulate, kept, check_finite, precision)
