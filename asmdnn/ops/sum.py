"""Sums of arrays."""

from collections.abc import Sequence
from typing import Any

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory.sequences import items
from asmdnn.ops.applied import SameDims, apply
from asmdnn.ops.arguments import AnyArray, AnyDataType
from asmdnn.primitives.attributes.post_ops import AnyPostOp
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.sum.sum import SumForward


def weighted_sum(
    arrays: Sequence[Any],
    scales: Sequence[float] = (),
    *,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """scales[0] * arrays[0] + scales[1] * arrays[1] + ... of up to 64 arrays of the same dims; scales default to 1.

    out: anything that exports memory of these dims; an array of the sum itself, if dense.  Raises InvalidArguments.
    """
    try:
        given, factors = items(arrays), items(scales)
    except Exception:  # whatever the caller's objects do
        raise InvalidArguments(
            f"arrays and scales must be sequences, not {shown(arrays)} and {shown(scales)}"
        ) from None
    if not given or any(array is None for array in given):
        raise InvalidArguments(f"arrays must be one array or more, not {shown(arrays)}")
    inputs = {f"src{k}": (f"arrays[{k}]", array) for k, array in enumerate(given)}
    return apply(
        ("weighted_sum", factors),
        inputs,
        lambda descs, dst: SumForward(tuple(descs.values()), dst, factors),
        SameDims("src0"),
        (post_ops, out, engine, dtype),
    )
