"""The call of a training step on arrays that stay: they are looked at once, and not with each call."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.network.arrays import Array
from asmdnn.network.calls.in_place import InPlaceCalls
from asmdnn.network.inputs import check_apart, check_bound, names_and_others
from asmdnn.network.training.recipe import LOSS
from asmdnn.network.training.updates import SIZE
from asmdnn.network.words import check_no_borders

Types = Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]


def bound_call(
    net: Any, calls: InPlaceCalls | None, inputs: Types, arrays: Mapping[str, Array]
) -> Callable[[], dict[str, Array]]:
    """What runs a step's network on a caller's arrays: the loss, and the sizes that the step looks at.

    calls: in place, None if the network has none; inputs: those that the caller passes.

    Raises InvalidArguments.
    """
    if calls is None:
        why = "a step is bound if it is one native call, and its outputs are values of their own"
        raise InvalidArguments(f"{why}: use run()")
    check_no_borders(net._runnable.borders)
    outputs = {name: wanted for name, wanted in net.outputs.items() if name not in (LOSS, SIZE)}
    wanted = {**inputs, **outputs}
    if arrays.keys() != wanted.keys():
        raise InvalidArguments(f"arrays must be {names_and_others(arrays, wanted)}")
    for name, (dims, dtype) in wanted.items():
        check_bound(name, arrays[name], dims, dtype, name in outputs)
    check_apart(wanted, outputs, arrays)
    kept = {name: np.empty(*made) for name, made in net.outputs.items() if name not in outputs}
    results = {value: {**kept, **arrays}[name] for name, value in net._runnable.results.items()}
    call = calls.bound(arrays, results)

    def run() -> dict[str, Array]:
        call()
        return dict(kept)

    return run
