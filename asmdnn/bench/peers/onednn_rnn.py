"""Recurrent layers of oneDNN as calls to measure and compare with."""

from collections.abc import Callable, Mapping
from typing import Any

import asmdnn as dnn
from asmdnn.bench.driver import Array, Data
from asmdnn.bench.peers.onednn import OnednnPrimitive, Storage, Tensor
from asmdnn.bench.peers.onednn_library import load
from asmdnn.bench.recurrent.data import LayerWords
from asmdnn.definitions.recurrent.layers import CONCAT, LEFT2RIGHT, RIGHT2LEFT, SUM
from asmdnn.errors import Unimplemented

# Numbers of the C interface.
ARGUMENTS = {
    "src_layer": 1, "src_iter": 2, "src_iter_c": 3, "dst_layer": 17, "dst_iter": 18, "dst_iter_c": 19,
    "weights_layer": 33, "weights_iter": 34, "weights_peephole": 35, "weights_projection": 36, "bias": 41,
}  # fmt: skip
WORKSPACE = {"workspace": 64}
FORWARD = {"FWD_D": 64, "FWD_I": 96}
TRAINING, BACKWARD = "FWD_D", 128
DIFF, DIFF_ARGUMENT = "diff_", 128  # a gradient's number is that of what it is of and this
DIRECTIONS = {LEFT2RIGHT: 1, RIGHT2LEFT: 2, CONCAT: 3, SUM: 4}
ACTIVATIONS = {"RELU": 0x20, "TANH": 0x21, "LOGISTIC": 0x29}
NO_FLAGS, OVERWRITE = 0, 1  # gradients of weights replace what is there

LSTM_ORDER = (
    "src_layer", "src_iter", "src_iter_c", "weights_layer", "weights_iter", "weights_peephole", "weights_projection",
    "bias", "dst_layer", "dst_iter", "dst_iter_c",
)  # fmt: skip
ORDER = ("src_layer", "src_iter", "weights_layer", "weights_iter", "bias", "dst_layer", "dst_iter")
FUNCTIONS = {"VANILLA_RNN": "vanilla_rnn", "VANILLA_LSTM": "lstm", "VANILLA_GRU": "gru", "LBR_GRU": "lbr_gru"}

Qparams = tuple[tuple[float, float], tuple[float, ...]]
GATES_AND_CHANNELS = 24  # the mask of their dims in weights


def onednn_rnn(
    words: LayerWords,
    descs: Mapping[str, dnn.MemoryDesc],
    results: tuple[str, ...],
    isa: str,
    threads: int,
    qparams: Qparams | None = None,
) -> OnednnPrimitive:
    """A forward pass, with the workspace that training needs.  Raises Unimplemented for layers that read both ways.

    qparams: of data and weights, where these are bytes.
    """
    layers, directions = descs["weights_layer"].dims[:2]
    if layers > 1 and directions > 1:
        raise Unimplemented("onednn: with several layers, both directions are stacks of their own")
    tensors = {name: Tensor(ARGUMENTS[name], desc) for name, desc in descs.items()}
    internal = WORKSPACE if words.dir != "FWD_I" else {}
    return OnednnPrimitive(_forward(words, qparams), tensors, isa, threads, results, storage=Storage(internal))


class OnednnRnnBackward:
    """A PeerSide: the backward pass, whose `write` runs the training pass that leaves the workspace."""

    def __init__(
        self, words: LayerWords, descs: Mapping[str, dnn.MemoryDesc], results: tuple[str, ...], isa: str, threads: int
    ) -> None:
        self._forward = forward = onednn_rnn(words, descs, ("dst_layer",), isa, threads)
        tensors = {name: Tensor(ARGUMENTS[name], desc) for name, desc in descs.items()}
        for name, desc in descs.items():
            tensors[DIFF + name] = Tensor(DIFF_ARGUMENT + ARGUMENTS[name], _gradient(name, desc))
        try:
            self._backward = OnednnPrimitive(
                _backward(words, forward), tensors, isa, threads, results, storage=Storage(WORKSPACE, forward)
            )
        except Exception:
            forward.close()
            raise
        self.implementation, self.run = self._backward.implementation, self._backward.run

    def write(self, data: Data) -> None:
        self._forward.compute(data)
        self._backward.write(data)

    def compute(self, data: Data) -> Array:
        self._forward.compute(data)
        return self._backward.compute(data)

    def close(self) -> None:
        self._backward.close()
        self._forward.close()


def _gradient(name: str, desc: dnn.MemoryDesc) -> dnn.MemoryDesc:
    """f32, of weights in the format that oneDNN prefers, if that is free, of others row-major."""
    return dnn.MemoryDesc(desc.dims, dnn.f32, "any" if desc.is_any else "abcde"[: desc.ndims])


def _forward(words: LayerWords, qparams: Qparams | None) -> Callable[[OnednnPrimitive], Any]:
    kind = FORWARD[words.dir if words.dir in FORWARD else TRAINING]

    def create(peer: OnednnPrimitive) -> Any:
        attr = _attributes(peer, qparams) if qparams else peer.null
        return _describe(
            peer=peer, words=words, way="forward", kind=kind, given=_given(peer, words), flags=NO_FLAGS, hint=(attr,)
        )

    return create


def _attributes(peer: OnednnPrimitive, qparams: Qparams) -> Any:
    """The handle of attributes that say what bytes stand for."""
    lib, check = peer.lib, load().check
    data, scales = qparams
    handle = peer.own(lib.dnnl_primitive_attr_create, lib.dnnl_primitive_attr_destroy)
    check(lib.dnnl_primitive_attr_set_rnn_data_qparams(handle, *data), "rnn_data_qparams")
    set_scales = lib.dnnl_primitive_attr_set_rnn_weights_qparams
    mask = GATES_AND_CHANNELS if len(scales) > 1 else 0
    check(set_scales(handle, len(scales), mask, list(scales)), "rnn_weights_qparams")
    return handle


def _backward(words: LayerWords, forward: OnednnPrimitive) -> Callable[[OnednnPrimitive], Any]:
    def create(peer: OnednnPrimitive) -> Any:
        given = _given(peer, words) + _given(peer, words, DIFF)
        return _describe(
            peer=peer,
            words=words,
            way="backward",
            kind=BACKWARD,
            given=given,
            flags=OVERWRITE,
            hint=(forward.desc, peer.null),
        )

    return create


def _given(peer: OnednnPrimitive, words: LayerWords, prefix: str = "") -> list[Any]:
    order = LSTM_ORDER if words.alg == "VANILLA_LSTM" else ORDER
    return [peer.descs.get(prefix + name, peer.null) for name in order]


def _describe(
    peer: OnednnPrimitive, words: LayerWords, way: str, kind: int, given: list[Any], flags: int, hint: tuple[Any, ...]
) -> Any:
    function = getattr(peer.lib, f"dnnl_{FUNCTIONS[words.alg]}_{way}_primitive_desc_create")
    direction = DIRECTIONS[words.direction]
    if words.alg == "VANILLA_RNN":
        activation = ACTIVATIONS[words.activation]
        return peer.describe(function, kind, activation, direction, *given, flags, 0.0, 0.0, *hint)
    return peer.describe(function, kind, direction, *given, flags, *hint)
