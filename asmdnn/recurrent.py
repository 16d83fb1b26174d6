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

Numbers of other types are rounded to f32; what is too large for it is refused.

Source: the operators' definitions in torch.nn and ONNX, opset 14.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory.allocation import within_memory
from asmdnn.memory.foreign import rounded_f32

__all__ = ["from_onnx", "from_torch", "to_onnx", "to_torch"]

Floats = npt.NDArray[np.float32]
Weights = dict[str, Floats]
GATES = {"rnn": 1, "lstm": 4, "gru": 3, "lbr_gru": 3}
# Where this library's gates are in the other's order.
TORCH_GATES = {"rnn": [0], "lstm": [0, 1, 2, 3], "lbr_gru": [1, 0, 2]}
ONNX_GATES = {"rnn": [0], "lstm": [0, 2, 3, 1], "gru": [0, 1, 2], "lbr_gru": [0, 1, 2]}
ONNX_PEEPHOLE = [0, 2, 1]
MAX_LAYERS = 10_000  # in a name of torch's
SUFFIXES = ("", "_reverse")  # torch's, of the directions
TORCH_NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
TORCH_NEEDS = ("weight_ih", "weight_hh")
NEEDED = ("weights_layer", "weights_iter", "bias")
TORCH_KEEPS, ONNX_KEEPS = ("weights_projection",), ("weights_peephole",)  # beside those


@within_memory
def from_torch(cell: str, state: Mapping[str, Any], layer: int = 0) -> Weights:
    """One layer of a torch.nn.RNN, LSTM or GRU, of its `state_dict()`; a layer with reverse weights has 2 directions.

    cell: "rnn", "lstm" or "lbr_gru", which is torch's GRU.  A module without bias has a bias of 0.  Raises
    InvalidArguments for weights that are not there, or of dims that the cell does not have.
    """
    order = order_of(cell, TORCH_GATES, "torch")
    check_layer(layer)
    if not isinstance(state, Mapping):
        raise InvalidArguments(f"state must be the state_dict() of a torch.nn.RNN, LSTM or GRU, not {shown(state)}")
    if f"weight_ih_l{layer}" not in state:
        raise InvalidArguments(f"layer is {shown(layer)}, and state has no weight_ih_l{layer}: {shown(list(state))}")
    ends = [f"_l{layer}{suffix}" for suffix in SUFFIXES if f"weight_ih_l{layer}{suffix}" in state]
    given = [{name: _of_state(state, name + end) for name in TORCH_NAMES} for end in ends]
    return checked(cell, together([_torch_direction(cell, order, each) for each in given]))


def _of_state(state: Mapping[str, Any], name: str) -> Floats | None:
    if name in state:
        return rounded_f32(name, state[name])
    if name.startswith(TORCH_NEEDS):
        raise InvalidArguments(f"state has no {name}: it must be the state_dict() of a torch.nn.RNN, LSTM or GRU")
    return None


def _torch_direction(cell: str, order: list[int], given: Mapping[str, Floats | None]) -> Weights:
    gates = len(order)
    first, recurrent, projection = given["weight_ih"], given["weight_hh"], given["weight_hr"]
    assert first is not None and recurrent is not None
    layer, iteration = by_gate(first, gates, "weight_ih"), by_gate(recurrent, gates, "weight_hh")
    found = {
        "weights_layer": layer[order].transpose(2, 0, 1),
        "weights_iter": iteration[order].transpose(2, 0, 1),
        "bias": biases_of(cell, order, given["bias_ih"], given["bias_hh"], layer.shape[1]),
    }
    return found if projection is None else {**found, "weights_projection": projection.T}


@within_memory
def to_torch(cell: str, weights: Mapping[str, Any], layer: int = 0) -> Weights:
    """What from_torch takes, under torch's names; bias_hh is 0 but for an lbr_gru's fourth bias.

    Raises InvalidArguments, for a peephole too, which torch does not have.
    """
    order = order_of(cell, TORCH_GATES, "torch")
    check_layer(layer)
    given = checked(cell, weights)
    check_kept(given, TORCH_KEEPS, "torch")
    gates, back, found = len(order), np.argsort(order), Weights()
    for d, suffix in enumerate(SUFFIXES[: given["weights_layer"].shape[1]]):
        end = f"_l{layer}{suffix}"
        for name, argument in (("weight_ih", "weights_layer"), ("weight_hh", "weights_iter")):
            _, _, channels, _, units = given[argument].shape
            rows = given[argument][0, d].transpose(1, 2, 0)[back]
            found[name + end] = np.ascontiguousarray(rows.reshape(gates * units, channels))
        bias = given["bias"][0, d]
        inner = np.zeros_like(bias[:gates])
        inner[gates - 1] = bias[gates] if len(bias) > gates else 0
        found["bias_ih" + end], found["bias_hh" + end] = bias[:gates][back].ravel(), inner[back].ravel()
        if "weights_projection" in given:
            found["weight_hr" + end] = np.ascontiguousarray(given["weights_projection"][0, d].T)
    return found


@within_memory
def from_onnx(cell: str, w: Any, r: Any, b: Any = None, p: Any = None) -> Weights:
    """The inputs W, R, B and P of ONNX's RNN, LSTM or GRU: [d, g h, c], [d, g h, h], [d, 2 g h], [d, 3 h].

    cell: "gru" is a GRU with linear_before_reset 0, "lbr_gru" another one.  Raises InvalidArguments for other dims.
    """
    order = order_of(cell, ONNX_GATES, "ONNX")
    gates = len(order)
    first, recurrent = (by_direction(x, 3, name) for x, name in ((w, "W"), (r, "R")))
    directions = len(first)
    both = None if b is None else by_direction(b, 2, "B")
    peephole = None if p is None else by_direction(p, 2, "P")
    units = by_gate(first[0], gates, "W").shape[1]
    wanted = {"R": (recurrent, gates * units), "B": (both, 2 * gates * units), "P": (peephole, 3 * units)}
    for name, (array, size) in wanted.items():
        if array is not None and array.shape[:2] != (directions, size):
            raise InvalidArguments(
                f"{name} has dims {array.shape}, it must start with {directions}, {size} as W is {first.shape}"
            )
    parts = []
    for d in range(directions):
        layer, iteration = by_gate(first[d], gates, "W"), by_gate(recurrent[d], gates, "R")
        outer, inner = (None, None) if both is None else both[d].reshape(2, -1)
        bias = biases_of(cell, order, outer, inner, units)
        arrays = (layer[order].transpose(2, 0, 1), iteration[order].transpose(2, 0, 1), bias)
        parts.append(dict(zip(NEEDED, arrays, strict=True)))
    found = together(parts)
    if peephole is not None:
        found["weights_peephole"] = peephole.reshape(directions, 3, units)[:, ONNX_PEEPHOLE][None]
    return checked(cell, found)


@within_memory
def to_onnx(cell: str, weights: Mapping[str, Any]) -> Weights:
    """What from_onnx takes, under ONNX's names W, R, B and, of a peephole, P.

    Raises InvalidArguments, for a projection too, which ONNX does not have.
    """
    order = order_of(cell, ONNX_GATES, "ONNX")
    given = checked(cell, weights)
    check_kept(given, ONNX_KEEPS, "ONNX")
    back, gates, found = np.argsort(order), len(order), Weights()
    for name, argument in (("W", "weights_layer"), ("R", "weights_iter")):
        _, directions, channels, _, units = given[argument].shape
        found[name] = given[argument][0].transpose(0, 2, 3, 1)[:, back].reshape(directions, gates * units, channels)
    bias = given["bias"][0]
    inner = np.zeros_like(bias[:, :gates])
    if bias.shape[1] > gates:
        inner[:, gates - 1] = bias[:, gates]
    size = gates * bias.shape[2]
    found["B"] = np.concatenate([x[:, back].reshape(len(bias), size) for x in (bias[:, :gates], inner)], 1)
    if "weights_peephole" in given:
        peephole = given["weights_peephole"][0]
        found["P"] = peephole[:, ONNX_PEEPHOLE].reshape(len(peephole), 3 * peephole.shape[2])
    return found


def order_of(cell: str, orders: Mapping[str, list[int]], whose: str) -> list[int]:
    """Where this library's gates are.  Raises InvalidArguments for a cell that is not there."""
    if not isinstance(cell, str) or cell not in orders:
        way_out = '; its GRU is "lbr_gru"' if isinstance(cell, str) and cell == "gru" else ""
        raise InvalidArguments(f"cell is {shown(cell)}, {whose} has {', '.join(orders)}{way_out}")
    return orders[cell]


def check_layer(layer: int) -> None:
    """Raise InvalidArguments unless it is the number of a layer."""
    if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer < MAX_LAYERS:
        raise InvalidArguments(f"layer must be the number of a layer, from 0 to {MAX_LAYERS - 1}, not {shown(layer)}")


def by_direction(array: Any, ndims: int, name: str) -> Floats:
    found = rounded_f32(name, array)
    if found.ndim != ndims or len(found) not in (1, 2):
        raise InvalidArguments(f"{name} has dims {found.shape}, it must have {ndims}, the first 1 or 2 directions")
    return found


def by_gate(array: Floats, gates: int, name: str) -> Floats:
    """[g h, c] as [g, h, c]."""
    if array.ndim != 2 or len(array) % gates:
        raise InvalidArguments(f"{name} has dims {array.shape}, its rows must be {gates} gates of equally many units")
    return array.reshape(gates, len(array) // gates, array.shape[1])


def biases_of(cell: str, order: list[int], outer: Floats | None, inner: Floats | None, units: int) -> Floats:
    """The sum of both biases; of an lbr_gru the inner one of the last gate stands apart."""
    gates = len(order)
    both = []
    for bias in (outer, inner):
        found = np.zeros(gates * units, np.float32) if bias is None else bias
        if found.shape != (gates * units,):
            raise InvalidArguments(f"a bias has dims {found.shape}, it must have {gates * units} of {gates} gates")
        both.append(found.reshape(gates, units)[order])
    with np.errstate(over="ignore", invalid="ignore"):  # a sum beyond f32 is infinite, as in the layer itself
        sums: Floats = both[0] + both[1]
    if cell != "lbr_gru":
        return sums
    return np.concatenate([sums[:2], both[0][2:], both[1][2:]])


def together(directions: Sequence[Weights]) -> Weights:
    """The weights of one layer from those of each direction.  Raises InvalidArguments where they differ in dims."""
    dims = [{name: array.shape for name, array in each.items()} for each in directions]
    if dims[0] != dims[-1]:
        raise InvalidArguments(
            f"directions must have weights of equal dims, they are {shown(dims[0])}, {shown(dims[-1])}"
        )
    return {name: np.stack([each[name] for each in directions])[None] for name in directions[0]}


def checked(cell: str, weights: Mapping[str, Any]) -> Weights:
    """The arrays of one layer of that cell, f32, without what is None.  Raises InvalidArguments for other weights."""
    if not isinstance(weights, Mapping):
        raise InvalidArguments(f"weights must map names to arrays, not {shown(weights)}")
    given = {name: value for name, value in weights.items() if value is not None}
    missing = [name for name in NEEDED if name not in given]
    if missing:
        raise InvalidArguments(f"weights have no {missing[0]}: give weights_layer, weights_iter and bias")
    first = rounded_f32("weights_layer", given["weights_layer"])
    dims, gates = first.shape, GATES[cell]
    if len(dims) != 5 or dims[0] != 1 or dims[1] not in (1, 2) or dims[3] != gates:
        raise InvalidArguments(f"weights_layer has dims {dims}, one layer of {cell} has [1, d, c, {gates}, h]")
    _, directions, _, _, units = dims
    projection = np.shape(given.get("weights_projection", np.empty((1, 1, 1, units), bool)))
    rows = projection[3] if len(projection) == 4 else units
    wanted: dict[str, tuple[int, ...]] = {
        "weights_layer": dims,
        "weights_iter": (1, directions, rows, gates, units),
        "bias": (1, directions, gates + (cell == "lbr_gru"), units),
    }
    if cell == "lstm":
        wanted["weights_peephole"] = (1, directions, 3, units)
        wanted["weights_projection"] = (1, directions, units, rows)
    found = Weights()
    for name, value in given.items():
        if name not in wanted:
            raise InvalidArguments(f"weights has {shown(name)}, one layer of {cell} has {', '.join(wanted)}")
        found[name] = rounded_f32(name, value)
        if found[name].shape != wanted[name]:
            raise InvalidArguments(
                f"{name} has dims {found[name].shape}, beside this weights_layer it has {wanted[name]}"
            )
    return found


def check_kept(weights: Weights, kept: Sequence[str], whose: str) -> None:
    """Raise InvalidArguments for weights that the other library has no place for."""
    for name in weights:
        if name not in (*NEEDED, *kept):
            raise InvalidArguments(f"weights has {name}, which {whose} has no place for: leave it out")
