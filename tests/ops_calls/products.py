"""Convolutions and products, and what packs their weights."""

import asmdnn as dnn
from tests.support.ops_calls import Arguments, array

WINDOW: Arguments = {"stride": 1, "padding": 1, "dilation": 1, "groups": 1}
IMAGE, FILTERS, TURNED, BIAS = array(1, 2, 5, 5), array(3, 2, 3, 3), array(2, 3, 3, 3), array(3)
A, B = array(2, 3), array(3, 4)
FORWARD: Arguments = {"bias": BIAS, **WINDOW, "post_ops": ["relu"]}
LINE, VOLUME = array(1, 2, 5), array(1, 2, 4, 4, 4)

CALLS: dict[str, Arguments] = {
    "conv1d": {"x": LINE, "weights": FILTERS[:, :, 0].copy(), **FORWARD},
    "conv2d": {"x": IMAGE, "weights": FILTERS, **FORWARD, "padding": "same", "algorithm": "auto"},
    "conv3d": {"x": VOLUME, "weights": array(3, 2, 3, 3, 3), **FORWARD},
    "conv_input_gradient": {"dy": array(1, 3, 5, 5), "weights": FILTERS, "dims": (1, 2, 5, 5), **WINDOW},
    "conv_transpose1d": {"x": LINE, "weights": TURNED[:, :, 0].copy(), **FORWARD, "output_padding": 0},
    "conv_transpose2d": {"x": IMAGE, "weights": TURNED, **FORWARD, "output_padding": 0},
    "conv_transpose3d": {"x": VOLUME, "weights": array(2, 3, 3, 3, 3), **FORWARD, "output_padding": 0},
    "conv_transpose_input_gradient": {"dy": array(1, 3, 5, 5), "weights": TURNED, **WINDOW},
    "conv_transpose_weight_gradient": {"x": IMAGE, "dy": array(1, 3, 5, 5), "kernel": 3, **WINDOW},
    "conv_weight_gradient": {"x": IMAGE, "dy": array(1, 3, 5, 5), "kernel": (3, 3), **WINDOW},
    "inner_product": {
        "x": array(2, 3, 2), "weights": array(4, 3, 2), "bias": array(4), "dtype": dnn.f32, "scales": {"weights": 2},
        "zero_points": {}, "fpmath_mode": "bf16", "accumulation_mode": "any",
    },
    "inner_product_input_gradient": {"dy": A, "weights": array(3, 5)},
    "inner_product_weight_gradient": {"x": array(2, 5), "dy": A},
    "matmul": {"a": A, "b": B, "bias": array(1, 4)},
    "matmul_gradient": {"dy": array(2, 4), "a": A, "b": B},
    "pack_conv_transpose_weights": {"weights": TURNED, "dims": (1, 2, 5, 5), **WINDOW},
    "pack_conv_weights": {
        "weights": FILTERS, "dims": (1, 2, 5, 5), **WINDOW, "algorithm": "auto", "fpmath_mode": "bf16",
    },
    "pack_quantized_weights": {"b": array(64, 4), "dtype": "u4", "group": 32},
    "pack_weights": {"b": B},
}  # fmt: skip
