"""What a training step does beside gradients and updates."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from asmdnn.errors import InvalidArguments, not_one_of, shown
from asmdnn.memory.sequences import items
from asmdnn.network.graph import Node
from asmdnn.network.operators.own import OWN
from asmdnn.network.training.rounding import STOCHASTIC
from asmdnn.optim.checks import number, whole
from asmdnn.primitives.core.widening import MULTIPLIED
from asmdnn.records import dataclass, replace

MOST_NAMED = 6
MOST_PARTS = 2**20
PRECISIONS = tuple(dtype.name for dtype in MULTIPLIED)


@dataclass(frozen=True)
class TrainingOptions:
    """clip_norm: the most that the Euclidean norm of all gradients together may be; accumulate: how many calls' mean
    gradient makes a step; ema: how much an average of parameters keeps of itself; check_finite: whether a step whose
    loss or gradients are not finite is refused; precision: what matrix products multiply where it is faster;
    memory_limit: the most bytes that a call may take beside inputs, outputs and states; checkpoints: values of the
    forward pass between which others are computed again; rounding: how parameters that are numbers of bf16 are
    rounded, None for those of f32."""

    clip_norm: float | None
    accumulate: int
    ema: float | None
    check_finite: bool
    precision: str = PRECISIONS[0]
    memory_limit: int | None = None
    checkpoints: tuple[str, ...] = ()
    rounding: str | None = None


def checked_options(
    clip_norm: Any, accumulate: Any, ema: Any, check_finite: Any, precision: Any = PRECISIONS[0], rounding: Any = None
) -> TrainingOptions:
    """Those that need no graph.  Raises InvalidArguments."""
    if not isinstance(precision, str) or precision not in PRECISIONS:
        raise InvalidArguments(not_one_of("precision", precision, PRECISIONS))
    is_known = isinstance(rounding, str) and rounding == STOCHASTIC and precision != PRECISIONS[0]
    if rounding is not None and not is_known:
        said = f"rounding must be None, or {STOCHASTIC!r} with precision='bf16', not {shown(rounding)}"
        raise InvalidArguments(f"{said} with {precision!r}")
    most = None if clip_norm is None else number("clip_norm", clip_norm)
    if most == 0:
        raise InvalidArguments("clip_norm must be more than 0: with it no parameter would change")
    if whole("accumulate", accumulate, 1) > MOST_PARTS:
        raise InvalidArguments(f"accumulate must be an integer from 1 to 2**20, not {shown(accumulate)}")
    if type(check_finite) is not bool:
        raise InvalidArguments(f"check_finite must be True or False, not {shown(check_finite)}")
    kept = None if ema is None else number("ema", ema, below=1)
    return TrainingOptions(most, accumulate, kept, check_finite, precision, rounding=rounding)


def with_memory(options: TrainingOptions, limit: Any, checkpoints: Any, nodes: Sequence[Node]) -> TrainingOptions:
    """The options of a step of these nodes, whose names checkpoints are patterns of.  Raises InvalidArguments."""
    most = None if limit is None else whole("memory_limit", limit, 1)
    try:
        patterns = [checkpoints] if isinstance(checkpoints, str) else list(items(checkpoints))
    except Exception:  # whatever the caller's object does
        patterns = [None]
    if not all(isinstance(pattern, str) and pattern for pattern in patterns):
        raise InvalidArguments(f"checkpoints must be names of nodes, such as ['block.*'], not {shown(checkpoints)}")
    named, found = [node for node in nodes if node.name and node.domain != OWN], list[str]()
    for pattern in patterns:
        ends = [node.outputs[0] for node in named if fnmatchcase(node.name, pattern)]
        if not ends:
            known = ", ".join(node.name for node in named[:MOST_NAMED]) or "none has, give apply(..., name='block')"
            raise InvalidArguments(f"checkpoints has {shown(pattern)}, which no node is named: {known}")
        found += ends
    return replace(options, memory_limit=most, checkpoints=tuple(dict.fromkeys(found)))
