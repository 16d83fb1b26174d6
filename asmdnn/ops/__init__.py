"""Operations on arrays, for callers who do not care for formats: planned once for every shape, then only executed."""

from asmdnn.ops.attention import attention
from asmdnn.ops.conv import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    pack_conv_transpose_weights,
    pack_conv_weights,
)
from asmdnn.ops.conv_gradients import (
    conv_input_gradient,
    conv_transpose_input_gradient,
    conv_transpose_weight_gradient,
    conv_weight_gradient,
)
from asmdnn.ops.dropout import dropout
from asmdnn.ops.elementwise import binary, eltwise, select
from asmdnn.ops.gather import embedding, gather
from asmdnn.ops.matmul import matmul, pack_weights
from asmdnn.ops.moves import concat, expand, pad, slice, split
from asmdnn.ops.normalization import batch_norm, group_norm, layer_norm, lrn, rms_norm
from asmdnn.ops.pooling import adaptive_avg_pool, adaptive_max_pool, avg_pool, max_pool
from asmdnn.ops.prelu import prelu
from asmdnn.ops.recurrent import gru, lstm, pack_recurrent, rnn
from asmdnn.ops.reduction import cumsum, reduce
from asmdnn.ops.resampling import resize
from asmdnn.ops.softmax import log_softmax, softmax
from asmdnn.ops.sum import weighted_sum
from asmdnn.ops.topk import argmax, argmin, topk

__all__ = [
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "argmax",
    "argmin",
    "attention",
    "avg_pool",
    "batch_norm",
    "binary",
    "concat",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_input_gradient",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "conv_transpose_input_gradient",
    "conv_transpose_weight_gradient",
    "conv_weight_gradient",
    "cumsum",
    "dropout",
    "eltwise",
    "embedding",
    "expand",
    "gather",
    "group_norm",
    "gru",
    "layer_norm",
    "log_softmax",
    "lrn",
    "lstm",
    "matmul",
    "max_pool",
    "pack_conv_transpose_weights",
    "pack_conv_weights",
    "pack_recurrent",
    "pack_weights",
    "pad",
    "prelu",
    "reduce",
    "resize",
    "rms_norm",
    "rnn",
    "select",
    "slice",
    "softmax",
    "split",
    "topk",
    "weighted_sum",
]
