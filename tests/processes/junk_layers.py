"""Valid calls of layers, in which junk is put in the place of every argument: recurrent ones, norms, attention, ..."""

from typing import Any

import numpy as np

import asmdnn as dnn
from tests.processes.junk import ENGINE, Arguments, Call, array, desc

TRAINING = dnn.PropKind.forward_training
RNN: Arguments = {"activation": "relu", "alpha": 0.5}
GATES = {"VanillaRNN": 1, "LSTM": 4, "GRU": 3, "LBRGRU": 3}
BIAS_ROWS = {**GATES, "LBRGRU": 4}


def described() -> dict[str, Call]:
    """What describes them."""
    return {**recurrent(), **normalizations(), **others()}


def called() -> dict[str, Call]:
    """Their functions of arrays."""
    return {**recurrent_functions(), **convolutions(), **functions()}


def recurrent_tensors(kind: str) -> Arguments:
    """Of one step more than one, one layer and one direction, with all that may be absent."""
    gates = GATES[kind]
    peephole = {"weights_peephole": desc(1, 1, 3, 4), "weights_projection": desc(1, 1, 4, 4)}
    return {
        "src_layer": desc(2, 3, 5), "weights_layer": desc(1, 1, 5, gates, 4), "weights_iter": desc(1, 1, 4, gates, 4),
        "dst_layer": desc(2, 3, 4), "src_iter": desc(1, 1, 3, 4), "bias": desc(1, 1, BIAS_ROWS[kind], 4),
        "dst_iter": desc(1, 1, 3, 4),
        **({"src_iter_c": desc(1, 1, 3, 4), **peephole, "dst_iter_c": desc(1, 1, 3, 4)} if kind == "LSTM" else {}),
    }  # fmt: skip


def recurrent() -> dict[str, Call]:
    found: dict[str, Call] = {}
    for kind in GATES:
        tensors = recurrent_tensors(kind)
        more = {"direction": "unidirectional_right2left", **(RNN if kind == "VanillaRNN" else {})}
        forward = {**tensors, **more, "prop_kind": TRAINING, "lengths": (2, 1, 1)}
        results = ("dst_iter", "dst_iter_c")
        read = {name: value for name, value in tensors.items() if name not in (*results, "bias")}
        backward = {**read, **{f"diff_{name}": value for name, value in tensors.items()}, **more}
        backward |= {"src_layer": desc(4, 5), "dst_layer": desc(4, 4), "lengths": (2, 1, 1)}
        backward |= {"diff_src_layer": desc(4, 5), "diff_dst_layer": desc(4, 4)}
        for name, arguments in ((f"{kind}Forward", forward), (f"{kind}Backward", backward)):
            found[name] = (getattr(dnn, name), lambda arguments=arguments: arguments)  # type: ignore[misc]
    return found


def normalizations() -> dict[str, Call]:
    image: Arguments = {"prop_kind": TRAINING, "src": desc(2, 4, 3, 3), "dst": desc(2, 4, 3, 3), "epsilon": 1e-5}
    affine: Arguments = {"scale": desc(4), "shift": desc(4), "use_global_stats": False}
    return {
        "BatchNormForward": (
            dnn.BatchNormForward,
            lambda: {**image, **affine, "mean": desc(4), "variance": desc(4), "fuse": "norm_add_relu",
                     "src_1": desc(2, 4, 3, 3), "workspace": dnn.MemoryDesc((2, 4, 3, 3), dnn.u8, "abcd")},
        ),
        "GroupNormForward": (
            dnn.GroupNormForward,
            lambda: {**image, **affine, "groups": 2, "mean": desc(2, 2), "variance": desc(2, 2)},
        ),
        "LayerNormForward": (
            dnn.LayerNormForward,
            lambda: {"prop_kind": TRAINING, "src": desc(2, 4), "dst": desc(2, 4), "epsilon": 1e-5, **affine,
                     "mean": desc(2), "variance": desc(2), "rms": False},
        ),
    }  # fmt: skip


def others() -> dict[str, Call]:
    heads, kind = desc(1, 2, 3, 4), dnn.PropKind.forward_inference
    return {
        "AttentionForward": (
            dnn.AttentionForward,
            lambda: {"prop_kind": kind, "query": heads, "key": heads, "value": heads, "dst": heads,
                     "mask": desc(1, 1, 3, 3), "scale": 0.5, "causal": True},
        ),
        "DeconvolutionForward": (
            dnn.DeconvolutionForward,
            lambda: {"src": desc(1, 2, 5, 5), "weights": desc(3, 2, 3, 3), "dst": desc(1, 3, 5, 5), "bias": desc(3),
                     "strides": (1, 1), "dilations": (0, 0), "padding_l": (1, 1), "padding_r": (1, 1),
                     "prop_kind": kind, "algorithm": dnn.Algorithm.deconvolution_direct},
        ),
        "PReLUForward": (
            dnn.PReLUForward,
            lambda: {"prop_kind": kind, "src": desc(2, 3), "weights": desc(1, 3), "dst": desc(2, 3)},
        ),
        "ReductionForward": (
            dnn.ReductionForward,
            lambda: {"alg": "norm_lp_sum", "src": desc(2, 3), "dst": desc(2, 1), "p": 2.0, "eps": 0.5},
        ),
        "SoftmaxForward": (
            dnn.SoftmaxForward,
            lambda: {"prop_kind": kind, "alg": "accurate", "src": desc(2, 3), "dst": desc(2, 3), "axis": 1,
                     "mask": desc(1, 3), "scale": 0.5},
        ),
    }  # fmt: skip


def weights_of(kind: str) -> dict[str, Any]:
    """Arrays by name."""
    return {
        name: np.ones(value.dims, np.float32)
        for name, value in recurrent_tensors(kind).items()
        if name == "bias" or name.startswith("weights")
    }


def recurrent_functions() -> dict[str, Call]:
    """With `weights` as a whole, and each of them for itself."""
    state, ops = array(1, 1, 3, 4), dnn.ops
    shared: Arguments = {"src": array(2, 3, 5), "src_iter": state}
    more: Arguments = {"direction": "unidirectional_left2right", "lengths": (2, 1, 1), "engine": ENGINE}
    return {
        "ops.rnn": (ops.rnn, lambda: {**shared, "weights": weights_of("VanillaRNN"), **RNN, **more}),
        "ops.gru": (
            ops.gru, lambda: {**shared, "weights": weights_of("GRU"), "linear_before_reset": False, **more}
        ),
        "ops.lstm": (ops.lstm, lambda: {**shared, "weights": weights_of("LSTM"), "src_iter_c": state, **more}),
        "ops.lstm by weights": (
            lambda **weights: ops.lstm(array(2, 3, 5), weights, engine=ENGINE), lambda: weights_of("LSTM")
        ),
        "ops.pack_recurrent": (
            ops.pack_recurrent, lambda: {"cell": "lstm", "weights": weights_of("LSTM"), "engine": ENGINE}
        ),
        "PackedWeights": (
            dnn.PackedWeights,
            lambda: {"source": array(3, 4), "desc": dnn.MemoryDesc((3, 4), dnn.f32, "ba"), "engine": ENGINE,
                     "name": "w"},
        ),
        "ops.pack_recurrent by weights": (
            lambda **weights: ops.pack_recurrent("lstm", weights, ENGINE), lambda: weights_of("LSTM")
        ),
    }  # fmt: skip


def convolutions() -> dict[str, Call]:
    """Those of one and of three axes, and their packing."""
    window: Arguments = {"stride": 1, "dilation": 1, "groups": 1}
    more: Arguments = {**window, "padding": 1, "post_ops": [], "engine": ENGINE}
    transposed: Arguments = {**more, "output_padding": 0}
    line: Arguments = {"x": array(1, 2, 5), "w": array(3, 2, 3), "b": array(3), "out": array(1, 3, 5)}
    volume: Arguments = {"x": array(1, 2, 4, 4, 4), "w": array(3, 2, 3, 3, 3), "b": array(3),
                         "out": array(1, 3, 4, 4, 4)}  # fmt: skip
    ops = dnn.ops
    return {
        "ops.conv1d": (ops.conv1d, lambda: {**line, **more}),
        "ops.conv3d": (ops.conv3d, lambda: {**volume, **more}),
        "ops.conv_transpose1d": (ops.conv_transpose1d, lambda: {**line, **transposed, "w": array(2, 3, 3)}),
        "ops.conv_transpose3d": (ops.conv_transpose3d, lambda: {**volume, **transposed, "w": array(2, 3, 3, 3, 3)}),
        "ops.pack_conv_transpose_weights": (
            ops.pack_conv_transpose_weights,
            lambda: {"w": array(2, 3, 3, 3), "image": (1, 2, 5, 5), **window, "padding": 1, "engine": ENGINE},
        ),
    }


def functions() -> dict[str, Call]:
    ops, rows = dnn.ops, array(2, 3)
    more: Arguments = {"post_ops": [], "out": array(2, 3), "engine": ENGINE}
    affine: Arguments = {"scale": array(3), "shift": array(3), "epsilon": 1e-5}
    softmax: Arguments = {"x": rows, "axis": 1, "mask": array(1, 3), "scale": 0.5, **more}
    heads = array(1, 2, 3, 4)
    return {
        "ops.attention": (
            ops.attention,
            lambda: {"query": heads, "key": heads, "value": heads, "mask": array(3, 3), "causal": True, "scale": 0.5,
                     "out": array(1, 2, 3, 4), "engine": ENGINE},
        ),
        "ops.attention_gradient": (
            ops.attention_gradient,
            lambda: {"dy": heads, "query": heads, "key": heads, "value": heads, "mask": array(3, 3), "causal": True,
                     "scale": 0.5, "engine": ENGINE},
        ),
        "ops.batch_norm": (
            ops.batch_norm, lambda: {"x": rows, **affine, "mean": array(3), "variance": array(3), **more}
        ),
        "ops.group_norm": (
            ops.group_norm,
            lambda: {**more, "x": array(2, 4, 3), "groups": 2, "scale": array(4), "shift": array(4), "epsilon": 1e-5,
                     "out": array(2, 4, 3)},
        ),
        "ops.layer_norm": (ops.layer_norm, lambda: {"x": rows, **affine, **more}),
        "ops.rms_norm": (ops.rms_norm, lambda: {"x": rows, "scale": array(3), "epsilon": 1e-5, **more}),
        "ops.softmax": (ops.softmax, lambda: softmax),
        "ops.log_softmax": (ops.log_softmax, lambda: softmax),
        "ops.eltwise": (ops.eltwise, lambda: {"x": rows, "alg": "linear", "alpha": 2.0, "beta": 1.0, **more}),
        "ops.binary": (ops.binary, lambda: {"alg": "add", "a": rows, "b": array(3), **more}),
        "ops.select": (ops.select, lambda: {"condition": rows, "a": rows, "b": array(3), **more}),
        "ops.prelu": (ops.prelu, lambda: {"x": rows, "weights": array(3), **more}),
        "ops.reduce": (
            ops.reduce,
            lambda: {**more, "x": rows, "alg": "norm_lp_sum", "axis": 1, "keepdims": False, "p": 2.0, "eps": 0.5,
                     "out": array(2)},
        ),
    }  # fmt: skip
