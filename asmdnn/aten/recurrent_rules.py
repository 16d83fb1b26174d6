"""torch's LSTM and GRU, a node of ONNX for each layer."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn import recurrent
from asmdnn.aten.values import Rewriter, Traced, rule

NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


@rule("lstm.input")
def _lstm(c: Rewriter, x: Traced, states: Sequence[Traced], *rest: Any) -> Any:
    return _layers(c, "lstm", x, list(states), rest)


@rule("gru.input")
def _gru(c: Rewriter, x: Traced, state: Traced, *rest: Any) -> Any:
    return _layers(c, "lbr_gru", x, [state], rest)


def _layers(c: Rewriter, cell: str, x: Traced, states: list[Traced], rest: Sequence[Any]) -> Any:
    """Each layer reads both directions of the one before.  rest: ATen's other arguments."""
    parameters, has_biases, layers, dropout, training, bidirectional, batch_first = rest
    onnx = {"lstm": "LSTM", "lbr_gru": "GRU"}[cell]
    if training and dropout:
        raise c.refuse("a module in training mode: call eval() first")
    if x.rank != 3:
        raise c.refuse(f"a sequence of {x.rank} dims, it takes batches of sequences")
    directions, names = 1 + bidirectional, NAMES[: 4 if has_biases else 2]
    if len(parameters) != layers * directions * len(names):
        raise c.refuse("projections")
    hidden = parameters[1].shape[1]
    length, batch = (x.shape[1], x.shape[0]) if batch_first else x.shape[:2]
    sequence = c.apply("Transpose", x, perm=[1, 0, 2]) if batch_first else x.symbol
    lasts: list[list[Any]] = [[] for _ in states]
    for layer in range(layers):
        at = layer * directions * len(names)
        mine = parameters[at : at + directions * len(names)]
        weights = _onnx_weights(c, cell, mine, names, directions)
        starts = [_part(c, state, layer, directions) for state in states]
        options = {"linear_before_reset": 1} if onnx == "GRU" else {}
        found = c.apply(
            onnx, sequence, *weights, None, *starts, results=1 + len(states), hidden_size=hidden,
            direction="bidirectional" if bidirectional else "forward", **options,
        )  # fmt: skip
        turned = c.apply("Transpose", found[0], perm=[0, 2, 1, 3])
        sequence = c.reshape(turned, (length, batch, directions * hidden))
        for kept, last in zip(lasts, found[1:], strict=True):
            kept.append(last)
    result = c.apply("Transpose", sequence, perm=[1, 0, 2]) if batch_first else sequence
    return (result, *(c.apply("Concat", *kept, axis=0) if layers > 1 else kept[0] for kept in lasts))


def _onnx_weights(
    c: Rewriter, cell: str, parameters: Sequence[Traced], names: Sequence[str], directions: int
) -> list[Any]:
    """W, R and B, of data: `asmdnn.recurrent` knows the orders of gates."""
    suffixes = ("_l0", "_l0_reverse")[:directions]
    state: dict[str, Any] = {}
    for i, parameter in enumerate(parameters):
        if parameter.data is None:
            raise c.refuse("weights that are computed")
        state[names[i % len(names)] + suffixes[i // len(names)]] = parameter.data
    found = recurrent.to_onnx(cell, recurrent.from_torch(cell, state))
    return [found["W"], found["R"], found["B"]]


def _part(c: Rewriter, state: Traced, layer: int, directions: int) -> Any:
    begin = layer * directions
    if state.shape[0] == directions:
        return state.symbol
    ends = (np.array([n], np.int64) for n in (begin, begin + directions, 0, 1))
    return c.apply("Slice", state, *ends)
