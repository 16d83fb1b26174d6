"""Gradients of recurrent layers on arrays: the forward pass again, which leaves a workspace, then the backward pass."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.memory.sequences import items
from asmdnn.memory.tags import LETTERS
from asmdnn.ops.arguments import F32, AnyArray
from asmdnn.ops.gradients import Descs, floats, gradients
from asmdnn.ops.packed_weights import PackedWeights
from asmdnn.ops.recurrent import KINDS, LEFT2RIGHT, outputs_of, weights_of
from asmdnn.ops.typed import kind_of
from asmdnn.primitives.attributes.numbers import check_alg, check_flag
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.recurrent.backward_description import (
    GRUBackward,
    LBRGRUBackward,
    LSTMBackward,
    RecurrentBackward,
    VanillaRNNBackward,
)
from asmdnn.primitives.recurrent.description import DIRECTIONS, RecurrentForward
from asmdnn.primitives.recurrent.qparams import SCALES
from asmdnn.types import PropKind, RNNActivation, RNNDirection

BACKWARD: dict[str, type[RecurrentBackward]] = {
    "rnn": VanillaRNNBackward, "lstm": LSTMBackward, "gru": GRUBackward, "lbr_gru": LBRGRUBackward,
}  # fmt: skip
STATES = ("src_iter", "src_iter_c")
LABELS = {"src_layer": "src", "diff_dst_layer": "dy", "diff_dst_iter": "dh", "diff_dst_iter_c": "dc"}
Weights = dict[str, AnyArray]


def rnn_gradient(
    dy: Any,
    src: Any,
    weights: Mapping[str, Any],
    src_iter: Any = None,
    *,
    dh: Any = None,
    activation: RNNActivation = "tanh",
    alpha: float = 0.0,
    direction: RNNDirection = LEFT2RIGHT,
    lengths: Sequence[int] = (),
    engine: Engine | None = None,
) -> tuple[AnyArray, Weights, AnyArray | None]:
    """(dsrc, dweights, dsrc_iter) of a vanilla RNN layer, as `lstm_gradient` has them; the rest is that of `rnn`."""
    sources, more = {"src_layer": src, "src_iter": src_iter}, {"activation": activation, "alpha": alpha}
    found = run("rnn", (dy, dh, None), sources, weights, (direction, lengths, more), engine)
    return found[0], found[1], found[2]


def gru_gradient(
    dy: Any,
    src: Any,
    weights: Mapping[str, Any],
    src_iter: Any = None,
    *,
    dh: Any = None,
    linear_before_reset: bool = False,
    direction: RNNDirection = LEFT2RIGHT,
    lengths: Sequence[int] = (),
    engine: Engine | None = None,
) -> tuple[AnyArray, Weights, AnyArray | None]:
    """(dsrc, dweights, dsrc_iter) of a GRU layer, as `lstm_gradient` has them; the rest is that of `gru`."""
    check_flag("linear_before_reset", linear_before_reset)
    cell = "lbr_gru" if linear_before_reset else "gru"
    sources = {"src_layer": src, "src_iter": src_iter}
    found = run(cell, (dy, dh, None), sources, weights, (direction, lengths, {}), engine)
    return found[0], found[1], found[2]


def lstm_gradient(
    dy: Any,
    src: Any,
    weights: Mapping[str, Any],
    src_iter: Any = None,
    src_iter_c: Any = None,
    *,
    dh: Any = None,
    dc: Any = None,
    direction: RNNDirection = LEFT2RIGHT,
    lengths: Sequence[int] = (),
    engine: Engine | None = None,
) -> tuple[AnyArray, Weights, AnyArray | None, AnyArray | None]:
    """(dsrc, dweights, dsrc_iter, dsrc_iter_c) of an LSTM layer, for the gradients dy, dh and dc of its results.

    src, weights, src_iter, src_iter_c, direction, lengths: those of `lstm`, of f32, bf16 or f16; weights are of one
    type and not packed.  dy: dims of dst_layer; dh, dc: of the last states.  Each may be None, which is 0, but not all.
    dweights: a dict by the names in weights; gradients of states that were not given are None.  All gradients are f32.
    The layer is computed anew.
    Raises InvalidArguments, Unimplemented.
    """
    sources = {"src_layer": src, "src_iter": src_iter, "src_iter_c": src_iter_c}
    return run("lstm", (dy, dh, dc), sources, weights, (direction, lengths, {}), engine)


def run(
    cell: str,
    diffs: tuple[Any, Any, Any],
    sources: Mapping[str, Any],
    weights: Mapping[str, Any],
    options: tuple[RNNDirection, Sequence[int], Mapping[str, Any]],
    engine: Engine | None,
) -> tuple[AnyArray, Weights, AnyArray | None, AnyArray | None]:
    """The gradients by src, weights and states.  options: direction, lengths and the cell's own."""
    direction, lengths, more = options
    check_alg("direction", direction, DIRECTIONS)
    try:
        steps = items(lengths)
    except Exception:  # whatever the caller's object does
        raise InvalidArguments(f"lengths must be a sequence of integers, not {shown(lengths)}") from None
    plain = plain_weights(cell, weights)
    given = {"src_layer": array_of("src", sources["src_layer"]), **plain}
    given |= {name: array_of(name, sources[name]) for name in STATES if sources.get(name) is not None}
    how = {**more, "direction": direction, "lengths": steps}
    key = ("recurrent", cell, *how.items())
    results, left = forward(cell, given, how, key, engine)

    def describe(descs: Descs) -> RecurrentBackward:
        tensors: dict[str, Any] = {name: desc for name, desc in descs.items() if name != "workspace"}
        return BACKWARD[cell](**tensors, **how)

    names = [name for name in given if name != "src_layer"]
    wanted = {f"diff_{name}": given[name].shape for name in (*names, "src_layer")}
    inputs = {name: array for name, array in given.items() if name != "bias"} | left
    inputs |= gradients_of_results(diffs, results)
    labelled = {name: (LABELS.get(name, name), array) for name, array in inputs.items()}
    found = dict(zip(wanted, gradients(key, labelled, wanted, describe, None, engine), strict=True))
    by_state, by_state_c = (found.get(f"diff_{name}") for name in STATES)
    return found["diff_src_layer"], {name: found[f"diff_{name}"] for name in plain}, by_state, by_state_c


def array_of(label: str, value: Any) -> AnyArray:
    """Of floats, with dims.  Raises InvalidArguments."""
    array = floats(label, value)
    if not array.ndim:
        raise InvalidArguments(f"{label} is a scalar, it must have dims")
    return array


def plain_weights(cell: str, weights: Mapping[str, Any]) -> dict[str, AnyArray]:
    """Raises InvalidArguments for names that a cell does not have, packed weights and those of bytes."""
    known = weights_of(cell, weights)
    for name, value in weights.items():
        if type(value) is PackedWeights:
            raise InvalidArguments(f"{name} is packed for the forward pass: pass the array, which is packed anew")
        if name in SCALES and value is not None:
            raise InvalidArguments(f"weights has {name}, of bytes, which have no gradients: pass weights of floats")
    return {name: array_of(name, value) for name, value in known.items() if value is not None}


def forward(
    cell: str, given: Mapping[str, AnyArray], how: Mapping[str, Any], key: tuple[Any, ...], engine: Engine | None
) -> tuple[dict[str, MemoryDesc], dict[str, AnyArray]]:
    """The results' descriptors, and what the pass of training leaves: dst_layer, and its workspace if it has one."""
    descs = {name: MemoryDesc(array.shape, kind_of(array), LETTERS[: array.ndim]) for name, array in given.items()}
    results = outputs_of(KINDS[cell], descs, how)

    def describe(descs: Descs) -> RecurrentForward:
        tensors: dict[str, Any] = {name: desc for name, desc in descs.items() if name != "workspace"}
        return KINDS[cell](**tensors, **how, prop_kind=PropKind.forward_training)

    planned = primitive_desc(describe({**descs, "dst_layer": results["dst_layer"]}), engine=engine)
    kept = {} if planned.workspace_desc is None else {"workspace": planned.workspace_desc.dims}
    wanted = {**kept, "dst_layer": results["dst_layer"].dims}
    labelled = {name: (LABELS.get(name, name), array) for name, array in given.items()}
    found = gradients((*key, "forward"), labelled, wanted, describe, None, engine)
    return results, dict(zip(wanted, found, strict=True))


def gradients_of_results(diffs: tuple[Any, Any, Any], results: Mapping[str, MemoryDesc]) -> dict[str, AnyArray]:
    """By the primitive's names; of dst_layer zeros if it is None.  Raises InvalidArguments if there is none."""
    if all(each is None for each in diffs):
        raise InvalidArguments("dy is None, and so are those of the last states: give the gradient of one result")
    named = zip(("dst_layer", "dst_iter", "dst_iter_c"), ("dy", "dh", "dc"), diffs, strict=True)
    found = {f"diff_{name}": array_of(label, array) for name, label, array in named if array is not None}
    if "diff_dst_layer" not in found:
        found["diff_dst_layer"] = allocated(np.zeros, results["dst_layer"].dims, F32)
    return found
