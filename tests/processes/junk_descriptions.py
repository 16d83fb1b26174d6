"""Valid calls of what describes primitives, in which junk is put in the place of every argument."""

import asmdnn as dnn
from tests.processes.junk import Arguments, Call, desc


def descriptions() -> dict[str, Call]:
    """What describes primitives."""
    return {**sums_of_products(), **row_gradients(), **norm_gradients(), **moves(), **maps()}


def sums_of_products() -> dict[str, Call]:
    """Convolutions and products."""
    conv: Arguments = {
        "src": desc(1, 2, 5, 5), "weights": desc(3, 2, 3, 3), "dst": desc(1, 3, 5, 5), "bias": desc(3),
        "strides": (1, 1), "dilations": (0, 0), "padding_l": (1, 1), "padding_r": (1, 1),
        "prop_kind": dnn.PropKind.forward_inference, "algorithm": dnn.Algorithm.convolution_direct,
    }  # fmt: skip
    transposed = dnn.DeconvolutionForward(desc(1, 2, 3, 3), desc(3, 2, 3, 3), desc(1, 3, 5, 5))
    ip = {"src": desc(2, 3), "weights": desc(4, 3), "dst": desc(2, 4), "bias": desc(4)}
    return {
        "ConvolutionForward": (dnn.ConvolutionForward, lambda: conv),
        "ConvolutionBackwardData": (dnn.ConvolutionBackwardData, lambda: gradient_of(conv)),
        "DeconvolutionBackwardData": (
            dnn.DeconvolutionBackwardData,
            lambda: gradient_of(conv) | {"algorithm": dnn.Algorithm.deconvolution_direct},
        ),
        "ConvolutionBackwardWeights": (dnn.ConvolutionBackwardWeights, lambda: weights_gradient_of(conv)),
        "DeconvolutionBackwardWeights": (
            dnn.DeconvolutionBackwardWeights,
            lambda: weights_gradient_of(conv) | {"algorithm": dnn.Algorithm.deconvolution_direct},
        ),
        "ConvolutionBackwardWeights.of": (
            dnn.ConvolutionBackwardWeights.of,
            lambda: {"forward": dnn.primitive_desc(dnn.ConvolutionForward(**conv)), "diff_bias": "a"},
        ),
        "DeconvolutionBackwardWeights.of": (
            dnn.DeconvolutionBackwardWeights.of, lambda: {"forward": dnn.primitive_desc(transposed)}
        ),
        "ConvolutionBackwardData.of": (
            dnn.ConvolutionBackwardData.of,
            lambda: {"forward": dnn.primitive_desc(dnn.ConvolutionForward(**conv)), "diff_src": "nhwc"},
        ),
        "DeconvolutionBackwardData.of": (
            dnn.DeconvolutionBackwardData.of, lambda: {"forward": dnn.primitive_desc(transposed), "weights": "any"}
        ),
        "MatMul": (
            dnn.MatMul,
            lambda: {"src": desc(2, 3), "weights": desc(3, 4), "dst": desc(2, 4), "bias": desc(1, 4)},
        ),
        "QuantizedMatMul": (
            dnn.QuantizedMatMul,
            lambda: {"src": desc(2, 64), "weights": dnn.MemoryDesc((32, 4), dnn.u8, "ab"), "scales": desc(2, 4),
                     "dst": desc(2, 4), "zero_point": 8.0},
        ),
        "InnerProductForward": (
            dnn.InnerProductForward,
            lambda: {**ip, "prop_kind": dnn.PropKind.forward_training},
        ),
        "InnerProductBackwardData": (
            dnn.InnerProductBackwardData,
            lambda: {"diff_src": desc(2, 3), "weights": desc(4, 3), "diff_dst": desc(2, 4)},
        ),
        "InnerProductBackwardWeights": (
            dnn.InnerProductBackwardWeights,
            lambda: {"src": desc(2, 3), "diff_weights": desc(4, 3), "diff_dst": desc(2, 4), "diff_bias": desc(4)},
        ),
    }  # fmt: skip


def gradient_of(conv: Arguments) -> Arguments:
    """The arguments of the gradient of data, from those of the forward pass."""
    names = {"src": "diff_src", "dst": "diff_dst"}
    return {names.get(name, name): value for name, value in conv.items() if name not in ("bias", "prop_kind")}


def weights_gradient_of(conv: Arguments) -> Arguments:
    """The same of the gradient of weights."""
    names = {"weights": "diff_weights", "bias": "diff_bias", "dst": "diff_dst"}
    return {names.get(name, name): value for name, value in conv.items() if name != "prop_kind"}


def row_gradients() -> dict[str, Call]:
    """Gradients of windows, and those that need sums over a row."""
    x = desc(4, 6)
    return {
        "ResamplingBackward": (
            dnn.ResamplingBackward,
            lambda: {
                "alg": "linear", "diff_src": desc(1, 2, 3, 3), "diff_dst": desc(1, 2, 6, 6), "factors": (2.0, 2.0),
                "coordinates": "half_pixel", "rounding": "floor",
            },
        ),
        "LRNBackward": (
            dnn.LRNBackward,
            lambda: {
                "alg": "lrn_across_channels", "src": desc(2, 6, 4), "diff_dst": desc(2, 6, 4),
                "diff_src": desc(2, 6, 4), "local_size": 3, "alpha": 1.0, "beta": 0.75, "k": 1.0,
                "workspace": desc(2, 6, 4),
            },
        ),
        "AttentionBackward": (
            dnn.AttentionBackward,
            lambda: {
                **dict.fromkeys(
                    ("query", "key", "value", "diff_dst", "diff_query", "diff_key", "diff_value"), desc(1, 2, 4, 8)
                ),
                "mask": desc(1, 1, 4, 4), "scale": 0.5, "causal": True,
            },
        ),
        "SoftmaxBackward": (
            dnn.SoftmaxBackward, lambda: {"alg": "log", "dst": x, "diff_dst": x, "diff_src": x, "axis": 1}
        ),
        "PoolingBackward": (
            dnn.PoolingBackward,
            lambda: {
                "alg": "max", "diff_src": desc(1, 2, 6, 6), "diff_dst": desc(1, 2, 3, 3), "kernel": (2, 2),
                "strides": (2, 2), "dilations": (0, 0), "padding_l": (0, 0), "padding_r": (0, 0),
                "indices": desc(1, 2, 3, 3, dtype=dnn.s32),
            },
        ),
    }  # fmt: skip


def norm_gradients() -> dict[str, Call]:
    """Gradients of what has statistics, or weights, by channels or along rows."""
    x, rows, columns = desc(4, 6), desc(4), desc(6)
    return {
        "BatchNormBackward": (
            dnn.BatchNormBackward,
            lambda: {
                "src": x, "diff_dst": x, "diff_src": x, **dict.fromkeys(("mean", "variance"), columns), "epsilon": 1e-5,
                **dict.fromkeys(("scale", "diff_scale", "diff_shift"), columns), "use_global_stats": False,
                "fuse": "norm_add_relu", "workspace": desc(4, 6, dtype=dnn.u8), "diff_src_1": x,
            },
        ),
        "GroupNormBackward": (
            dnn.GroupNormBackward,
            lambda: {
                "src": x, "diff_dst": x, "diff_src": x, "groups": 2, **dict.fromkeys(("mean", "variance"), desc(4, 2)),
                "epsilon": 1e-5, **dict.fromkeys(("scale", "diff_scale", "diff_shift"), columns),
                "use_global_stats": False,
            },
        ),
        "PReLUBackward": (
            dnn.PReLUBackward,
            lambda: {"src": x, "weights": desc(1, 6), "diff_dst": x, "diff_src": x, "diff_weights": desc(1, 6)},
        ),
        "LayerNormBackward": (
            dnn.LayerNormBackward,
            lambda: {
                "src": x, "diff_dst": x, "diff_src": x, "mean": rows, "variance": rows, "epsilon": 1e-5,
                "scale": columns, "diff_scale": columns, "diff_shift": columns, "rms": False,
            },
        ),
    }  # fmt: skip


def moves() -> dict[str, Call]:
    """What moves elements, whole or resampled."""
    return {
        "Reorder": (dnn.Reorder, lambda: {"src": desc(2, 3), "dst": desc(2, 3, dtype=dnn.s8), "compensation": 1}),
        "Concat": (dnn.Concat, lambda: {"srcs": (desc(2, 3), desc(2, 4)), "dst": desc(2, 7), "axis": 1}),
        "Dropout": (
            dnn.Dropout,
            lambda: {"src": desc(5, 3), "dst": desc(5, 3), "mask": desc(5, 3, dtype=dnn.u8)},
        ),
        "StochasticRounding": (
            dnn.StochasticRounding,
            lambda: {"src": desc(5, 3), "dst": desc(5, 3, dtype=dnn.bf16), "first": 4},
        ),
        "TreeEnsemble": (
            dnn.TreeEnsemble,
            lambda: {
                "src": desc(5, 3), "nodes": desc(64, dtype=dnn.s32), "order": desc(1, 16, dtype=dnn.s32),
                "values": desc(1, 4, 8), "base": desc(2), "dst": desc(5, 2), "trees": 3, "aggregate": "sum",
                "mirrored": False,
            },
        ),
        "Gather": (
            dnn.Gather,
            lambda: {"src": desc(5, 3), "indices": desc(2, dtype=dnn.s32), "dst": desc(2, 3), "axis": 0},
        ),
        "Scatter": (
            dnn.Scatter,
            lambda: {
                "src": desc(5, 3), "indices": desc(2, dtype=dnn.s32), "updates": desc(2, 3), "dst": desc(5, 3),
                "axis": 0, "alg": "add",
            },
        ),
        "Pad": (
            dnn.Pad,
            lambda: {"src": desc(2, 3), "dst": desc(3, 5), "before": (1, 1), "mode": "constant", "value": 2.0},
        ),
        "SumForward": (
            dnn.SumForward, lambda: {"srcs": (desc(2, 3), desc(2, 3)), "dst": desc(2, 3), "scales": (1.0, 2.0)}
        ),
        "ResamplingForward": (
            dnn.ResamplingForward,
            lambda: {"alg": "linear", "src": desc(1, 2, 3, 4), "dst": desc(1, 2, 6, 8), "factors": (2.0, 2.0),
                     "coordinates": "half_pixel", "rounding": "floor"},
        ),
        "Shuffle": (
            dnn.Shuffle,
            lambda: {"src": desc(2, 6), "dst": desc(2, 6), "axis": 1, "group_size": 3,
                     "prop_kind": dnn.PropKind.forward_training},
        ),
    }  # fmt: skip


def maps() -> dict[str, Call]:
    """Functions of elements and of windows."""
    pool: Arguments = {
        "alg": "max", "src": desc(1, 2, 5, 5), "dst": desc(1, 2, 3, 3), "kernel": (3, 3), "strides": (2, 2),
        "dilations": (0, 0), "padding_l": (1, 1), "padding_r": (1, 1), "indices": desc(1, 2, 3, 3, dtype=dnn.s32),
    }  # fmt: skip
    eltwise: Arguments = {"alg": "relu", "alpha": 0.5, "beta": 0.0}
    return {
        "PoolingForward": (dnn.PoolingForward, lambda: pool),
        "AdaptivePooling": (
            dnn.AdaptivePooling,
            lambda: {"alg": "max", "src": desc(1, 2, 5, 5), "dst": desc(1, 2, 2, 2), "indices": None},
        ),
        "BinaryForward": (
            dnn.BinaryForward,
            lambda: {"alg": "select", "src0": desc(2, 2), "src1": desc(1, 2), "dst": desc(2, 2), "src2": desc(2, 2)},
        ),
        "EltwiseForward": (
            dnn.EltwiseForward,
            lambda: {"prop_kind": dnn.PropKind.forward_training, "src": desc(2, 2), "dst": desc(2, 2), **eltwise},
        ),
        "EltwiseBackward": (
            dnn.EltwiseBackward,
            lambda: {"data": desc(2, 2), "diff_dst": desc(2, 2), "diff_src": desc(2, 2), **eltwise},
        ),
    }  # fmt: skip
