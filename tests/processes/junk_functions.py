"""Valid calls of functions of arrays, in which junk is put in the place of every argument."""

import numpy as np

import asmdnn as dnn
from tests.processes.junk import ENGINE, Call, array


def functions() -> dict[str, Call]:
    """Functions of arrays."""
    return {**windows(), **array_moves(), **array_products(), **gemms()}


def windows() -> dict[str, Call]:
    """Poolings."""
    pooled = {"x": array(1, 2, 5, 5), "kernel": 2, "stride": 2, "padding": 0, "ceil_mode": False, "post_ops": [],
              "out": array(1, 2, 2, 2), "engine": ENGINE}  # fmt: skip
    adaptive = {"x": array(1, 2, 5, 5), "size": 2, "post_ops": [], "out": array(1, 2, 2, 2), "engine": ENGINE}
    return {
        "ops.max_pool": (dnn.ops.max_pool, lambda: {**pooled, "dilation": 1, "return_indices": False}),
        "ops.avg_pool": (dnn.ops.avg_pool, lambda: {**pooled, "count_include_pad": True}),
        "ops.adaptive_max_pool": (dnn.ops.adaptive_max_pool, lambda: {**adaptive, "return_indices": False}),
        "ops.adaptive_avg_pool": (dnn.ops.adaptive_avg_pool, lambda: adaptive),
    }  # fmt: skip


def array_moves() -> dict[str, Call]:
    """What takes arrays apart and puts them together."""
    summed = {"scales": (1.0, 2.0), "post_ops": [], "out": array(2, 3), "engine": ENGINE}
    return {
        "ops.concat": (
            dnn.ops.concat,
            lambda: {"arrays": [array(2, 3), array(2, 3)], "axis": 1, "out": array(2, 6), "engine": ENGINE},
        ),
        "ops.split": (dnn.ops.split, lambda: {"x": array(2, 4), "parts": 2, "axis": 1, "engine": ENGINE}),
        "ops.slice": (
            dnn.ops.slice,
            lambda: {"x": array(2, 4), "starts": (0, 1), "stops": (2, 4), "steps": (1, 2), "engine": ENGINE},
        ),
        "ops.dropout": (
            dnn.ops.dropout,
            lambda: {"x": array(4, 3), "probability": 0.5, "seed": 1, "out": array(4, 3), "engine": ENGINE},
        ),
        "ops.stochastic_rounding": (
            dnn.ops.stochastic_rounding,
            lambda: {"x": array(4, 3), "seed": 1, "dtype": dnn.bf16, "engine": ENGINE},
        ),
        "ops.gather": (
            dnn.ops.gather,
            lambda: {"x": array(4, 3), "indices": np.array([1, -1]), "axis": 0, "out": array(2, 3), "engine": ENGINE},
        ),
        "ops.scatter": (
            dnn.ops.scatter,
            lambda: {
                "x": array(4, 3), "indices": np.array([1, -1]), "updates": array(2, 3), "axis": 0, "reduction": "add",
                "out": array(4, 3), "engine": ENGINE,
            },
        ),
        "ops.embedding": (
            dnn.ops.embedding,
            lambda: {"table": array(4, 3), "indices": np.array([1]), "out": array(1, 3), "engine": ENGINE},
        ),
        "ops.pad": (
            dnn.ops.pad,
            lambda: {"x": array(2, 4), "widths": ((1, 1), (0, 2)), "mode": "edge", "value": 0.0, "out": array(4, 6),
                     "engine": ENGINE},
        ),
        "ops.expand": (
            dnn.ops.expand,
            lambda: {"x": array(2, 1), "dims": (3, 2, 4), "out": array(3, 2, 4), "engine": ENGINE},
        ),
        "ops.weighted_sum": (dnn.ops.weighted_sum, lambda: {"arrays": [array(2, 3), array(2, 3)], **summed}),
        "ops.resize": (
            dnn.ops.resize,
            lambda: {"x": array(1, 2, 3, 4), "factor": 2, "mode": "linear", "coordinates": "half_pixel",
                     "rounding": "floor", "out": array(1, 2, 6, 8), "engine": ENGINE},
        ),
        "ops.resize_gradient": (
            dnn.ops.resize_gradient,
            lambda: {"dy": array(1, 2, 6, 8), "image": (1, 2, 3, 4), "factor": 2, "mode": "linear",
                     "coordinates": "half_pixel", "rounding": "floor", "out": array(1, 2, 3, 4), "engine": ENGINE},
        ),
    }  # fmt: skip


def array_products() -> dict[str, Call]:
    """Convolutions and products."""
    conv = {"x": array(1, 2, 5, 5), "w": array(3, 2, 3, 3), "b": array(3), "stride": 1, "padding": (1, 1),
            "dilation": 1, "post_ops": [], "out": array(1, 3, 5, 5), "engine": ENGINE}  # fmt: skip
    transposed = {**conv, "w": array(2, 3, 3, 3)}
    pooled = {"dy": array(1, 2, 3, 3), "image": (1, 2, 6, 6), "kernel": 2, "stride": 2, "padding": 0, "engine": ENGINE}
    row = {"dy": array(2, 3), "engine": ENGINE}
    grouped = {"dy": array(2, 4, 3), "x": array(2, 4, 3), "scale": array(4), "epsilon": 1e-5, "engine": ENGINE}
    normed = {"x": array(2, 3), "scale": array(3), "epsilon": 1e-5}
    back = {"dy": array(1, 3, 5, 5), "stride": 1, "padding": (1, 1), "dilation": 1, "groups": 1, "engine": ENGINE}
    product = {"a": array(2, 3), "b": array(3, 4), "bias": array(1, 4), "post_ops": [], "out": array(2, 4)}
    return {
        "ops.conv2d": (dnn.ops.conv2d, lambda: {**conv, "groups": 1, "algorithm": "auto"}),
        "ops.conv_transpose2d": (dnn.ops.conv_transpose2d, lambda: {**transposed, "groups": 1, "output_padding": 0}),
        "ops.conv_input_gradient": (
            dnn.ops.conv_input_gradient,
            lambda: {**back, "w": array(3, 2, 3, 3), "image": (1, 2, 5, 5), "out": array(1, 2, 5, 5),
                     "algorithm": "auto"},
        ),
        "ops.conv_transpose_input_gradient": (
            dnn.ops.conv_transpose_input_gradient, lambda: {**back, "w": array(2, 3, 3, 3), "out": array(1, 2, 5, 5)}
        ),
        "ops.avg_pool_gradient": (
            dnn.ops.avg_pool_gradient, lambda: {**pooled, "count_include_pad": True, "out": array(1, 2, 6, 6)}
        ),
        "ops.max_pool_gradient": (
            dnn.ops.max_pool_gradient,
            lambda: {**pooled, "indices": np.zeros((1, 2, 3, 3), np.int64), "dilation": 1, "out": array(1, 2, 6, 6)},
        ),
        "ops.softmax_gradient": (dnn.ops.softmax_gradient, lambda: {**row, "y": array(2, 3), "axis": 1}),
        "ops.log_softmax_gradient": (dnn.ops.log_softmax_gradient, lambda: {**row, "y": array(2, 3), "axis": 1}),
        "ops.layer_norm_gradient": (dnn.ops.layer_norm_gradient, lambda: {**row, **normed}),
        "ops.group_norm_gradient": (dnn.ops.group_norm_gradient, lambda: {**grouped, "groups": 2}),
        "ops.rms_norm_gradient": (dnn.ops.rms_norm_gradient, lambda: {**row, **normed}),
        "ops.conv_weight_gradient": (
            dnn.ops.conv_weight_gradient, lambda: {**back, "x": array(1, 2, 5, 5), "kernel": (3, 3)}
        ),
        "ops.conv_transpose_weight_gradient": (
            dnn.ops.conv_transpose_weight_gradient, lambda: {**back, "x": array(1, 2, 5, 5), "kernel": 3}
        ),
        "ops.inner_product": (
            dnn.ops.inner_product,
            lambda: {"x": array(2, 3, 2), "w": array(4, 3, 2), "b": array(4), "post_ops": [], "dtype": dnn.f32,
                     "scales": {"w": 2}, "zero_points": {}, "fpmath_mode": "bf16", "accumulation_mode": "any",
                     "out": array(2, 4), "engine": ENGINE},
        ),
        "ops.matmul": (dnn.ops.matmul, lambda: {**product, "engine": ENGINE}),
        "ops.pack_quantized_weights": (
            dnn.ops.pack_quantized_weights, lambda: {"b": array(64, 4), "dtype": "u4", "group": 32, "engine": ENGINE}
        ),
        "ops.pack_weights": (dnn.ops.pack_weights, lambda: {"b": array(3, 4), "engine": ENGINE}),
        "ops.pack_conv_weights": (
            dnn.ops.pack_conv_weights,
            lambda: {"w": array(3, 2, 3, 3), "image": (1, 2, 5, 5), "stride": 1, "padding": 1, "dilation": 1,
                     "groups": 1, "algorithm": "auto", "fpmath_mode": "bf16", "engine": ENGINE},
        ),
    }  # fmt: skip


def gemms() -> dict[str, Call]:
    """The BLAS."""
    packed_size = dnn.gemm_pack_get_size("B", 2, 4, 3, ENGINE)
    return {
        "sgemm": (
            dnn.sgemm,
            lambda: {"transa": "N", "transb": "N", "alpha": 1.0, "a": array(2, 3), "b": array(3, 4), "beta": 0.5,
                     "c": array(2, 4), "engine": ENGINE},
        ),
        "gemm_pack_get_size": (
            dnn.gemm_pack_get_size, lambda: {"identifier": "B", "m": 2, "n": 4, "k": 3, "engine": ENGINE}
        ),
        "gemm_pack": (
            dnn.gemm_pack,
            lambda: {"identifier": "B", "trans": "N", "alpha": 1.0, "x": array(3, 4),
                     "out": np.zeros(packed_size, np.uint8), "engine": ENGINE},
        ),
        "gemm_compute": (
            dnn.gemm_compute,
            lambda: {"transa": "N", "transb": "N", "a": array(2, 3), "b": array(3, 4), "beta": 0.0, "c": array(2, 4),
                     "engine": ENGINE},
        ),
    }  # fmt: skip
