"""Weights of recurrent layers in the orders of torch and ONNX, and in this library's, which is oneDNN's.

A layer's weights here are a mapping with the names that primitives use, f32 arrays in logical order, one layer, d
directions (1 or 2), left to right first:

    weights_layer [1, d, c, g, h]   weights_iter [1, d, r, g, h]     bias [1, d, g, h], of an lbr_gru [1, d, 4, h]
    weights_peephole [1, d, 3, h]   weights_projection [1, d, h, r]  only of an lstm that has them

with c source channels, h units, r the size of the state: h, or the projection's.  cell is "rnn", "lstm", "gru" or
"lbr_gru"; its gates are i f c o or u r o, the peephole's i f o, and an lbr_gru's fourth bias is inside the reset.

torch stacks rows of gates, i f g o or r z n, and has two biases, which are added; its GRU is an lbr_gru.  ONNX has
i o f c or z r h, the peephole's i o f; a GRU with linear_before_reset != 0 is an lbr_gru.  Layers of torch and ONNX
that are bidirectional read both directions of the layer before, so that each one is a primitive of its own.

Source: the operators' definitions in torch.nn and ONNX, opset 14.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.errors import InvalidArguments, shown

Floats = npt.NDArray[np.float32]
Weights = dict[str, Floats]
GATES = {"rnn": 1, "lstm": 4, "gru": 3, "lbr_gru": 3}
# Where this library's gates are in the other's order.
TORCH_GATES = {"rnn": [0], "lstm": [0, 1, 2, 3], "lbr_gru": [1, 0, 2]}
ONNX_GATES = {"rnn": [0], "lstm": [0, 2, 3, 1], "gru": [0, 1, 2], "lbr_gru": [0, 1, 2]}
ONNX_PEEPHOLE = [0, 2, 1]
SUFFIXES = ("", "_reverse")  # torch's, of the directions


def from_torch(cell: str, state: Mapping[str, Any], layer: int = 0) -> Weights:
    """One layer of a torch.nn.RNN, LSTM or GRU, of its `state_dict()`; a layer with reverse weights has 2 directions.

    cell: "rnn", "lstm" or "lbr_gru", which is torch's GRU.  A module without bias has a bias of 0.  Raises
    InvalidArguments for weights that are not there, or of dims that the cell does not have.
    """
    order = order_of(cell, TORCH_GATES, "torch")
    if f"weight_ih_l{layer}" not in state:
        raise InvalidArguments(f"layer is {shown(layer)}, and state has no weight_ih_l{layer}: {shown(list(state))}")
    ends = [f"_l{layer}{suffix}" for suffix in SUFFIXES if f"weight_ih_l{layer}{suffix}" in state]
    found = [_torch_direction(cell, order, {name: _of_state(state, name + end) for name in NAMES}) for end in ends]
    return {name: np.stack([one[name] for one in found])[None] for name in found[0]}


NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
NEEDED = ("weight_ih", "weight_hh")


def _of_state(state: Mapping[str, Any], name: str) -> Floats | None:
    if name in state:
        return np.asarray(state[name], np.float32)
    if name.startswith(NEEDED):
        raise InvalidArguments(f"state has no {name}: it must be the state_dict() of a torch.nn.RNN, LSTM or GRU")
    return None


def _torch_direction(cell: str, order: list[int], given: Mapping[str, Floats | None]) -> Weights:
    gates = len(order)
    first, recurrent = given["weight_ih"], given["weight_hh"]
    assert first is not None and recurrent is not None
    layer, iteration = by_gate(first, gates, "weight_ih"), by_gate(recurrent, gates, "weight_hh")
    found = {
        "weights_layer": layer[order].transpose(2, 0, 1),
        "weights_iter": iteration[order].transpose(2, 0, 1),
        "bias": biases_of(cell, order, given["bias_ih"], given["bias_hh"], layer.shape[1]),
    }
    if given["weight_hr"] is not None:
        found["weights_projection"] = given["weight_hr"].T
    return found


def to_torch(cell: str, weights: Mapping[str, Any], layer: int = 0) -> Weights:
    """What from_torch takes, under torch's names; bias_hh is 0 but for an lbr_gru's fourth bias."""
    order = order_of(cell, TORCH_GATES, "torch")
    gates, found = len(order), Weights()
    checked(cell, weights)
    for d, suffix in enumerate(SUFFIXES[: weights["weights_layer"].shape[1]]):
        end, back = f"_l{layer}{suffix}", np.argsort(order)
        for name, argument in (("weight_ih", "weights_layer"), ("weight_hh", "weights_iter")):
            array = np.asarray(weights[argument], np.float32)[0, d]
            found[name + end] = np.ascontiguousarray(array.transpose(1, 2, 0)[back].reshape(-1, len(array)))
        bias = np.asarray(weights["bias"], np.float32)[0, d]
        inner = np.zeros_like(bias[:gates])
        inner[gates - 1] = bias[gates] if len(bias) > gates else 0
        found["bias_ih" + end], found["bias_hh" + end] = bias[:gates][back].ravel(), inner[back].ravel()
        if "weights_projection" in weights:
            found["weight_hr" + end] = np.ascontiguousarray(np.asarray(weights["weights_projection"])[0, d].T)
    return found


def from_onnx(cell: str, w: Any, r: Any, b: Any = None, p: Any = None) -> Weights:
    """The inputs W, R, B and P of ONNX's RNN, LSTM or GRU: [d, g h, c], [d, g h, h], [d, 2 g h], [d, 3 h].

    cell: "gru" is a GRU with linear_before_reset 0, "lbr_gru" another one.  Raises InvalidArguments for other dims.
    """
    order = order_of(cell, ONNX_GATES, "ONNX")
    gates, found = len(order), Weights()
    first, recurrent = (by_direction(x, 3, name) for x, name in ((w, "W"), (r, "R")))
    both = None if b is None else by_direction(b, 2, "B").reshape(len(first), 2, -1)
    parts = []
    for d in range(len(first)):
        layer, iteration = by_gate(first[d], gates, "W"), by_gate(recurrent[d], gates, "R")
        outer, inner = (None, None) if both is None else both[d]
        bias = biases_of(cell, order, outer, inner, layer.shape[1])
        parts.append((layer[order].transpose(2, 0, 1), iteration[order].transpose(2, 0, 1), bias))
    for name, arrays in zip(("weights_layer", "weights_iter", "bias"), zip(*parts, strict=True), strict=True):
        found[name] = np.stack(arrays)[None]
    if p is not None:
        found["weights_peephole"] = by_direction(p, 2, "P").reshape(len(first), 3, -1)[:, ONNX_PEEPHOLE][None]
    return found


def to_onnx(cell: str, weights: Mapping[str, Any]) -> Weights:
    """What from_onnx takes, under ONNX's names W, R, B and, of a peephole, P."""
    order = order_of(cell, ONNX_GATES, "ONNX")
    checked(cell, weights)
    back, gates, found = np.argsort(order), len(order), Weights()
    for name, argument in (("W", "weights_layer"), ("R", "weights_iter")):
        array = np.asarray(weights[argument], np.float32)[0]
        directions, channels, _, units = array.shape
        found[name] = array.transpose(0, 2, 3, 1)[:, back].reshape(directions, gates * units, channels)
    bias = np.asarray(weights["bias"], np.float32)[0]
    inner = np.zeros_like(bias[:, :gates])
    if bias.shape[1] > gates:
        inner[:, gates - 1] = bias[:, gates]
    found["B"] = np.concatenate([x[:, back].reshape(len(bias), -1) for x in (bias[:, :gates], inner)], 1)
    if "weights_peephole" in weights:
        peephole = np.asarray(weights["weights_peephole"], np.float32)[0]
        found["P"] = peephole[:, ONNX_PEEPHOLE].reshape(len(peephole), -1)
    return found


def order_of(cell: str, orders: Mapping[str, list[int]], whose: str) -> list[int]:
    """Where this library's gates are.  Raises InvalidArguments for a cell that is not there."""
    if cell not in orders:
        way_out = '; its GRU is "lbr_gru"' if cell == "gru" else ""
        raise InvalidArguments(f"cell is {shown(cell)}, {whose} has {', '.join(orders)}{way_out}")
    return orders[cell]


def by_direction(array: Any, ndims: int, name: str) -> Floats:
    found = np.asarray(array, np.float32)
    if found.ndim != ndims or len(found) not in (1, 2):
        raise InvalidArguments(f"{name} has dims {found.shape}, it must have {ndims}, the first 1 or 2 directions")
    return found


def by_gate(array: Floats, gates: int, name: str) -> Floats:
    """[g h, c] as [g, h, c]."""
    if array.ndim != 2 or len(array) % gates:
        raise InvalidArguments(f"{name} has dims {array.shape}, its rows must be {gates} gates of equally many units")
    return array.reshape(gates, -1, array.shape[1])


def biases_of(cell: str, order: list[int], outer: Floats | None, inner: Floats | None, units: int) -> Floats:
    """The sum of both biases; of an lbr_gru the inner one of the last gate stands apart."""
    gates = len(order)
    both = []
    for bias in (outer, inner):
        found = np.zeros(gates * units, np.float32) if bias is None else bias
        if found.shape != (gates * units,):
            raise InvalidArguments(f"a bias has dims {found.shape}, it must have {gates * units} of {gates} gates")
        both.append(found.reshape(gates, units)[order])
    if cell != "lbr_gru":
        return both[0] + both[1]
    return np.concatenate([both[0][:2] + both[1][:2], both[0][2:], both[1][2:]])


def checked(cell: str, weights: Mapping[str, Any]) -> None:
    """Raise InvalidArguments unless these are one layer's weights of that cell."""
    missing = [name for name in ("weights_layer", "weights_iter", "bias") if name not in weights]
    if missing:
        raise InvalidArguments(f"weights have no {missing[0]}: give weights_layer, weights_iter and bias")
    dims = np.shape(weights["weights_layer"])
    if len(dims) != 5 or dims[0] != 1 or dims[3] != GATES[cell]:
        raise InvalidArguments(f"weights_layer has dims {dims}, one layer of {cell} has [1, d, c, {GATES[cell]}, h]")
