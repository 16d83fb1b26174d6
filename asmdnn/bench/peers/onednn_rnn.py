"""Recurrent layers of oneDNN as calls to measure and compare with."""

from collections.abc import Callable, Mapping
from typing import Any

import asmdnn as dnn
from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor
from asmdnn.bench.recurrent.data import Words
from asmdnn.bench.recurrent.reference import CONCAT, LEFT2RIGHT, RIGHT2LEFT, SUM
from asmdnn.errors import Unimplemented

# Numbers of the C interface.
ARGUMENTS = {
    "src_layer": 1, "src_iter": 2, "src_iter_c": 3, "dst_layer": 17, "dst_iter": 18, "dst_iter_c": 19,
    "weights_layer": 33, "weights_iter": 34, "weights_peephole": 35, "weights_projection": 36, "bias": 41,
}  # fmt: skip
WORKSPACE = {"workspace": 64}
FORWARD = {"FWD_D": 64, "FWD_I": 96}
DIRECTIONS = {LEFT2RIGHT: 1, RIGHT2LEFT: 2, CONCAT: 3, SUM: 4}
ACTIVATIONS = {"RELU": 0x20, "TANH": 0x21, "LOGISTIC": 0x29}
NO_FLAGS = 0

LSTM_ORDER = (
    "src_layer", "src_iter", "src_iter_c", "weights_layer", "weights_iter", "weights_peephole", "weights_projection",
    "bias", "dst_layer", "dst_iter", "dst_iter_c",
)  # fmt: skip
ORDER = ("src_layer", "src_iter", "weights_layer", "weights_iter", "bias", "dst_layer", "dst_iter")
FUNCTIONS = {"VANILLA_RNN": "vanilla_rnn", "VANILLA_LSTM": "lstm", "VANILLA_GRU": "gru", "LBR_GRU": "lbr_gru"}


def onednn_rnn(
    words: Words, descs: Mapping[str, dnn.MemoryDesc], results: tuple[str, ...], isa: str, threads: int
) -> OnednnPrimitive:
    """A forward pass, with the workspace that training needs.  Raises Unimplemented for layers that read both ways."""
    layers, directions = descs["weights_layer"].dims[:2]
    if layers > 1 and directions > 1:
        raise Unimplemented("onednn: with several layers, both directions are stacks of their own")
    tensors = {name: Tensor(ARGUMENTS[name], desc) for name, desc in descs.items()}
    internal = WORKSPACE if words.dir == "FWD_D" else {}
    return OnednnPrimitive(_creator(words), tensors, isa, threads, results, internal=internal)


def _creator(words: Words) -> Callable[[OnednnPrimitive], Any]:
    def create(peer: OnednnPrimitive) -> Any:
        function = getattr(peer.lib, f"dnnl_{FUNCTIONS[words.alg]}_forward_primitive_desc_create")
        order = LSTM_ORDER if words.alg == "VANILLA_LSTM" else ORDER
        given = [peer.descs.get(name, peer.null) for name in order]
        direction, kind = DIRECTIONS[words.direction], FORWARD[words.dir]
        if words.alg == "VANILLA_RNN":
            activation = ACTIVATIONS[words.activation]
            return peer.describe(function, kind, activation, direction, *given, NO_FLAGS, 0.0, 0.0, peer.null)
        return peer.describe(function, kind, direction, *given, NO_FLAGS, peer.null)

    return create
