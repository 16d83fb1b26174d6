"""Functions of elements, norms, sums, attention and recurrent layers, and their gradients."""

from tests.support.ops_calls import Arguments, array

ROWS, PLANES, HEADS, COLUMN = array(2, 3), array(2, 4, 3), array(1, 2, 3, 4), array(3)
MAP: Arguments = {"post_ops": []}
AFFINE: Arguments = {"scale": COLUMN, "shift": COLUMN, "epsilon": 1e-5}
SOFTMAX: Arguments = {"x": ROWS, "axis": 1, "mask": array(1, 3), "scale": 0.5, **MAP}
ATTENTION: Arguments = {
    "query": HEADS, "key": HEADS, "value": HEADS, "mask": array(3, 3), "causal": True, "scale": 0.5,
}  # fmt: skip
REDUCED: Arguments = {"x": ROWS, "alg": "norm_lp_sum", "axis": 1, "keepdims": True, "p": 3.0, "eps": 0.5}
ALONG: Arguments = {"axis": 1, "exclusive": True, "reverse": True}
CHANNELS: Arguments = {"x": PLANES, "size": 3, "alpha": 0.5, "beta": 0.75, "k": 2.0, "alg": "lrn_within_channel"}
OUT, STATE = array(2, 3, 4), array(1, 1, 3, 4)
LAYER: Arguments = {
    "src": array(2, 3, 5), "src_iter": array(1, 1, 3, 4), "direction": "unidirectional_left2right",
    "lengths": (2, 1, 1),
}  # fmt: skip


def gates(count: int, **more: Arguments) -> Arguments:
    return {
        "weights_layer": array(1, 1, 5, count, 4), "weights_iter": array(1, 1, 4, count, 4),
        "bias": array(1, 1, count, 4), **more,
    }  # fmt: skip


LSTM = gates(4, weights_peephole=array(1, 1, 3, 4), weights_projection=array(1, 1, 4, 4))

CALLS: dict[str, Arguments] = {
    "attention": {**ATTENTION, "return_logsumexp": True},
    "attention_gradient": {"dy": HEADS, **ATTENTION, "logsumexp": array(1, 2, 3, 1)},
    "batch_norm": {"x": ROWS, **AFFINE, "mean": COLUMN, "variance": COLUMN, **MAP},
    "batch_norm_gradient": {
        "dy": PLANES, "x": PLANES, "scale": array(4), "mean": array(4), "variance": array(4), "epsilon": 1e-5,
    },
    "binary": {"alg": "add", "a": ROWS, "b": COLUMN, **MAP},
    "binary_gradient": {"alg": "div", "dy": ROWS, "a": ROWS, "b": COLUMN},
    "cumsum": {"x": ROWS, **ALONG},
    "cumsum_gradient": {"dy": ROWS, **ALONG},
    "eltwise": {"x": ROWS, "alg": "linear", "alpha": 2.0, "beta": 1.0, **MAP},
    "eltwise_gradient": {"dy": ROWS, "x": ROWS, "alg": "elu", "alpha": 0.5, "beta": 0.0},
    "group_norm": {"x": PLANES, "groups": 2, "scale": array(4), "shift": array(4), "epsilon": 1e-5, **MAP},
    "group_norm_gradient": {"dy": PLANES, "x": PLANES, "groups": 2, "scale": array(4), "epsilon": 1e-5},
    "gru": {**LAYER, "weights": gates(3), "linear_before_reset": False},
    "gru_gradient": {"dy": OUT, "dh": STATE, **LAYER, "weights": gates(3), "linear_before_reset": False},
    "layer_norm": {"x": ROWS, **AFFINE, **MAP},
    "layer_norm_gradient": {"dy": ROWS, "x": ROWS, "scale": COLUMN, "epsilon": 1e-5},
    "log_softmax": SOFTMAX,
    "log_softmax_gradient": {"dy": ROWS, "y": ROWS, "axis": 1},
    "lrn": {**CHANNELS, "alg": "lrn_across_channels"},
    "lrn_gradient": {"dy": PLANES, **CHANNELS},
    "lstm": {**LAYER, "weights": LSTM, "src_iter_c": array(1, 1, 3, 4)},
    "lstm_gradient": {"dy": OUT, "dh": STATE, "dc": STATE, **LAYER, "weights": LSTM, "src_iter_c": STATE},
    "pack_recurrent": {"cell": "lstm", "weights": LSTM},
    "prelu": {"x": ROWS, "weights": COLUMN, **MAP},
    "prelu_gradient": {"dy": ROWS, "x": ROWS, "weights": COLUMN},
    "reduce": {**REDUCED, **MAP},
    "reduce_gradient": {"dy": array(2, 1), **REDUCED},
    "rms_norm": {"x": ROWS, "scale": COLUMN, "epsilon": 1e-5, **MAP},
    "rms_norm_gradient": {"dy": ROWS, "x": ROWS, "scale": COLUMN, "epsilon": 1e-5},
    "rnn": {**LAYER, "weights": gates(1), "activation": "relu", "alpha": 0.5},
    "select": {"condition": ROWS > 2, "a": ROWS, "b": COLUMN, **MAP},
    "rnn_gradient": {"dy": OUT, "dh": STATE, **LAYER, "weights": gates(1), "activation": "relu", "alpha": 0.5},
    "select_gradient": {"dy": ROWS, "condition": ROWS > 2, "a": ROWS, "b": COLUMN},
    "softmax": SOFTMAX,
    "softmax_gradient": {"dy": ROWS, "y": ROWS, "axis": 1},
    "weighted_sum": {"arrays": [ROWS, ROWS], "scales": (1.0, 2.0), **MAP},
    "weighted_sum_gradient": {"dy": ROWS, "scales": [2.0, 0.5]},
}  # fmt: skip
