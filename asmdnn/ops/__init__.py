"""Operations on arrays, for callers who do not care for formats: planned once for every shape, then only executed."""

from asmdnn.ops.conv import conv2d, pack_conv_weights
from asmdnn.ops.matmul import matmul, pack_weights
from asmdnn.ops.softmax import log_softmax, softmax

__all__ = ["conv2d", "log_softmax", "matmul", "pack_conv_weights", "pack_weights", "softmax"]
