"""RNN, LSTM and GRU as the recurrent primitives, their weights packed once."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn import recurrent
from asmdnn.definitions.recurrent.sequences import USUAL_FUNCTIONS
from asmdnn.errors import Unimplemented
from asmdnn.network.descriptors import any_format, row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.joining.place import Place
from asmdnn.network.operators.own import OWN
from asmdnn.network.operators.recurrent import (
    ACTIVATIONS,
    DIRECTIONS,
    activations_of,
    cell_of,
    directions_of,
    missing_kernel,
    of_floats,
)
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.recurrent.description import GRUForward, LBRGRUForward, LSTMForward, VanillaRNNForward
from asmdnn.primitives.recurrent.qparams import SCALES
from asmdnn.types import DataType, f32, s8

VECTORS = ("bias", "weights_peephole", *SCALES)
DYNAMIC = f"{OWN}.DynamicQuantizeLSTM"


def lower_recurrent(steps: Steps, group: Group) -> None:
    """x is [t, n, i]; Y is [t, directions, n, h], a permutation of how the primitive writes it.  With a layout of 1,
    sequences come first in all of them, which are permutations, too."""
    node = group.node
    x, w, r, *more = node.inputs
    scales, more = (more[:2], more[2:]) if node.key == DYNAMIC else ([], more)
    node = of_floats(node) if scales else node
    b, lengths, h0, c0, p = (*more, *[NOTHING] * 5)[:5]
    directions = len(directions_of(node))
    reason = missing_kernel(node)
    if reason:
        raise Refused(reason)
    weights = weights_of(steps, node, (w, r, b, p))
    if scales:
        weights = of_bytes(steps, weights, scales)
    dtype = steps.factor_type(group.result)
    source, size = steps.plain(x, None if dtype == f32 else dtype), weights["weights_iter"].shape[2]
    if is_batch_first(node):
        source = Place(source.buffer, source.desc.permute_axes((1, 0, 2)))
    t, n, _ = source.desc.dims
    descs = weight_descs(weights, dtype)
    places = {"src_layer": source}
    states = {"src_iter": (h0, dtype), "src_iter_c": (c0, f32)}
    places |= {name: state_at(steps, node, *state) for name, state in states.items() if state[0] != NOTHING}
    outputs = (*node.outputs, NOTHING, NOTHING)
    results = {"dst_layer": outputs[0], "dst_iter": outputs[1], "dst_iter_c": outputs[2]}
    state = {
        name: row_major((1, directions, n, size), kept) for name, kept in (("dst_iter", dtype), ("dst_iter_c", f32))
    }
    descs |= {name: desc for name, desc in state.items() if results[name]}
    if node.op == "LSTM" and "dst_iter" in descs:
        descs.setdefault("dst_iter_c", state["dst_iter_c"])
    desc = make(node, {
        **descs, **{name: place.desc for name, place in places.items()},
        "dst_layer": row_major((t, n, directions * size), dtype),
        "direction": DIRECTIONS[node.get("direction", "forward")], "lengths": lengths_of(steps, lengths, t),
    })  # fmt: skip
    wanted = {name: value for name, value in results.items() if name in (*descs, "dst_layer")}
    constants = {name: (f"{w} {name}", array) for name, array in weights.items()}
    steps.add(group.nodes, group.label, desc, places, wanted, constants)
    rows = row_major((t, n, directions * size), dtype).reshape((t, n, directions, size))
    seen_as = {outputs[0]: rows if is_batch_first(node) else rows.permute_axes((0, 2, 1, 3))}
    seen_as |= {outputs[i]: desc.reshape((directions, n, size)) for i, desc in enumerate(state.values(), 1)}
    for value, as_written in seen_as.items():
        if value:
            (made,) = steps.places[value]
            axes = (1, 0, *range(2, as_written.ndims)) if is_batch_first(node) else range(as_written.ndims)
            steps.places[value] = [Place(made.buffer, as_written.permute_axes(tuple(axes)))]


def weight_descs(weights: dict[str, Array], dtype: DataType) -> dict[str, Any]:
    """Matrices of a type, or s8, in formats that the primitive chooses; vectors stay f32."""
    plain = {name: row_major(array.shape) for name, array in weights.items() if name in VECTORS}
    matrices = {name: array for name, array in weights.items() if name not in VECTORS}
    types = {name: s8 if array.dtype == np.int8 else dtype for name, array in matrices.items()}
    return {name: any_format(array.shape, types[name]) for name, array in matrices.items()} | plain


def of_bytes(steps: Steps, weights: dict[str, Array], scales: Sequence[str]) -> dict[str, Array]:
    """Weights as s8, which they are, and what 1 of them stands for, in the order of the primitive's gates."""
    found = dict(weights)
    for name, scale in zip(("weights_layer", "weights_iter"), scales, strict=True):
        data = steps.value(scale).data
        assert data is not None, "as the decomposition has made it"
        directions, columns = data.shape
        units = np.zeros((directions, columns, weights["weights_iter"].shape[2]), np.float32)
        by_gate = recurrent.from_onnx("lstm", data[..., None], units)["weights_layer"]
        found |= {name: weights[name].astype(np.int8), f"{name}_scales": by_gate[:, :, 0]}
    return found


def sequences(steps: Steps, node: Node, dtype: DataType) -> Any:
    """The layer of a type, with rows in the usual order and states of zeros: for what it multiplies.

    Raises Unimplemented for what has no kernel.
    """
    try:
        weights = weights_of(steps, node, (*node.inputs[1:3], *(*node.inputs[3:4], NOTHING)[:1], NOTHING))
        is_known = not missing_kernel(node) and NOTHING in (*node.inputs[7:8], NOTHING)[:1]
    except Refused as error:
        raise Unimplemented(str(error)) from None
    if not is_known:
        raise Unimplemented("cells with a kernel of bf16 are the usual ones")
    t, n, i = steps.shape(node.inputs[0])
    if is_batch_first(node):
        t, n = n, t
    width = len(directions_of(node)) * weights["weights_iter"].shape[2]
    tensors = {"src_layer": row_major((t, n, i), dtype), "dst_layer": row_major((t, n, width), dtype)}
    words = {"direction": DIRECTIONS[node.get("direction", "forward")], "lengths": ()}
    return make(node, {**weight_descs(weights, dtype), **tensors, **words})


def is_batch_first(node: Node) -> bool:
    return bool(node.get("layout", 0))


def state_at(steps: Steps, node: Node, name: str, dtype: DataType) -> Place:
    """An initial state as [1, directions, n, h]."""
    plain = steps.plain(name, None if dtype == f32 else dtype)
    if is_batch_first(node):
        n, directions, size = plain.desc.dims
        return Place(plain.buffer, plain.desc.reshape((1, n, directions, size)).permute_axes((0, 2, 1, 3)))
    return Place(plain.buffer, plain.desc.reshape((1, *plain.desc.dims)))


def weights_of(steps: Steps, node: Node, names: tuple[str, ...]) -> dict[str, Array]:
    """In the primitives' order of dims and gates."""
    data = []
    for name in names:
        value = steps.value(name).data if name != NOTHING else None
        if name != NOTHING and value is None:
            raise Refused(f"its weights {name} are no constant")
        data.append(value)
    return {name: np.asarray(array) for name, array in recurrent.from_onnx(cell_of(node), *data).items()}


def lengths_of(steps: Steps, name: str, t: int) -> tuple[int, ...]:
    """How many steps each sequence has; () if all have t."""
    if name == NOTHING:
        return ()
    data = steps.value(name).data
    if data is None:
        raise Refused(f"its sequence_lens {name} is no constant")
    found = tuple(int(n) for n in data)
    return () if all(n == t for n in found) else found


def make(node: Node, arguments: dict[str, Any]) -> Any:
    if node.op == "RNN":
        name, alpha, _ = activations_of(node)[0]
        return VanillaRNNForward(**arguments, activation=ACTIVATIONS[name], alpha=alpha)
    if node.op == "LSTM":
        return LSTMForward(**arguments)
    return (LBRGRUForward if node.get("linear_before_reset", 0) else GRUForward)(**arguments)


LOWERINGS = dict.fromkeys((*USUAL_FUNCTIONS, DYNAMIC), lower_recurrent)
