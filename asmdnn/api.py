"""The names of `import asmdnn`, which takes them from here when the first of them is asked for."""

from asmdnn import losses, ops, optim, recurrent, show
from asmdnn.aten.entry import from_torch
from asmdnn.aten.module import TorchNetwork
from asmdnn.blas import (
    gemm_bf16bf16f32,
    gemm_compute,
    gemm_f16f16f32,
    gemm_pack,
    gemm_pack_get_size,
    gemm_x8x8s32,
    sgemm,
)
from asmdnn.errors import AsmdnnError, InvalidArguments, NotPackable, OutOfMemory, PlanError, Unimplemented
from asmdnn.export.writing import export_c
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory_use import MemoryReport, clear_caches, memory_report, set_memory_limits
from asmdnn.network.building import Graph
from asmdnn.network.dims import Dim
from asmdnn.network.loading import load_network, load_onnx, load_pack
from asmdnn.network.network import Network
from asmdnn.network.open import OpenNetwork
from asmdnn.network.quantization import quantize
from asmdnn.network.static_qdq.ranges import Calibration
from asmdnn.network.training.step import TrainingStep
from asmdnn.ops.packed_weights import PackedWeights
from asmdnn.planning.host import max_cpu_isa
from asmdnn.planning.refusal import Refusal
from asmdnn.primitives.attention.backward_description import AttentionBackward
from asmdnn.primitives.attention.description import AttentionForward
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.depthwise import Depthwise
from asmdnn.primitives.attributes.functions import (
    absolute,
    ceil,
    clip,
    cos,
    exp,
    floor,
    fmod,
    log,
    logistic,
    maximum,
    minimum,
    mod,
    power,
    rint,
    sign,
    sin,
    sqrt,
    square,
    tanh,
    trunc,
    where,
)
from asmdnn.primitives.attributes.post_ops import Binary, Eltwise, PReLU, Sum
from asmdnn.primitives.attributes.user_post_op import PostOp
from asmdnn.primitives.channel_gradients.description import BatchNormBackward, GroupNormBackward, PReLUBackward
from asmdnn.primitives.concat.concat import Concat
from asmdnn.primitives.concat.pad import Pad
from asmdnn.primitives.convolution.description import ConvolutionForward, DeconvolutionForward
from asmdnn.primitives.convolution_backward.description import (
    ConvolutionBackwardData,
    ConvolutionBackwardWeights,
    DeconvolutionBackwardData,
    DeconvolutionBackwardWeights,
)
from asmdnn.primitives.core.descriptor import PrimitiveDesc, implementations, primitive_desc
from asmdnn.primitives.core.engine import Engine, Stream
from asmdnn.primitives.core.packing import write_pack
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.primitives.dropout.dropout import Dropout
from asmdnn.primitives.elementwise.binary import BinaryForward
from asmdnn.primitives.elementwise.eltwise import EltwiseBackward, EltwiseForward
from asmdnn.primitives.elementwise.prelu import PReLUForward
from asmdnn.primitives.gather.description import Gather
from asmdnn.primitives.inner_product.inner_product import (
    InnerProductBackwardData,
    InnerProductBackwardWeights,
    InnerProductForward,
)
from asmdnn.primitives.normalization.channel_description import BatchNormForward, GroupNormForward
from asmdnn.primitives.normalization.layer_description import LayerNormForward
from asmdnn.primitives.normalization.lrn_backward_description import LRNBackward
from asmdnn.primitives.normalization.lrn_description import LRNForward
from asmdnn.primitives.pooling.description import AdaptivePooling, PoolingForward
from asmdnn.primitives.pooling_backward.description import PoolingBackward
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.products.matmul_rows import MatMulRows
from asmdnn.primitives.quantized.description import QuantizedMatMul
from asmdnn.primitives.random_numbers.random_numbers import RandomNumbers
from asmdnn.primitives.recurrent.backward_description import (
    GRUBackward,
    LBRGRUBackward,
    LSTMBackward,
    VanillaRNNBackward,
)
from asmdnn.primitives.recurrent.description import GRUForward, LBRGRUForward, LSTMForward, VanillaRNNForward
from asmdnn.primitives.reduction.cumulative import CumulativeProduct, CumulativeSum
from asmdnn.primitives.reduction.description import ReductionForward
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.primitives.reorder.reordering import reorder
from asmdnn.primitives.resampling.backward_description import ResamplingBackward
from asmdnn.primitives.resampling.description import ResamplingForward
from asmdnn.primitives.row_gradients.description import LayerNormBackward, SoftmaxBackward
from asmdnn.primitives.scatter.description import Scatter
from asmdnn.primitives.shuffle.shuffle import Shuffle
from asmdnn.primitives.softmax.description import SoftmaxForward
from asmdnn.primitives.stochastic_rounding.stochastic_rounding import StochasticRounding
from asmdnn.primitives.sum.sum import SumForward
from asmdnn.primitives.suppression.description import NonMaxSuppression
from asmdnn.primitives.topk.description import TopKForward
from asmdnn.primitives.tree_ensemble.description import TreeEnsemble
from asmdnn.show import notebook as _notebook  # noqa: F401 - registers what notebooks show
from asmdnn.types import (
    Algorithm,
    DataType,
    PropKind,
    bf16,
    f4_e2m1,
    f8_e4m3,
    f8_e5m2,
    f16,
    f32,
    nf4,
    s4,
    s8,
    s32,
    u4,
    u8,
)

__all__ = [
    "AdaptivePooling", "Algorithm", "AsmdnnError", "AttentionBackward", "AttentionForward", "Attr",
    "BatchNormBackward", "BatchNormForward", "Binary", "BinaryForward", "Calibration", "Concat",
    "ConvolutionBackwardData", "ConvolutionBackwardWeights", "ConvolutionForward", "CumulativeProduct",
    "CumulativeSum", "DataType", "DeconvolutionBackwardData", "DeconvolutionBackwardWeights", "DeconvolutionForward",
    "Depthwise", "Dim", "Dropout", "Eltwise", "EltwiseBackward", "EltwiseForward", "Engine", "GRUBackward",
    "GRUForward", "Gather", "Graph", "GroupNormBackward", "GroupNormForward", "InnerProductBackwardData",
    "InnerProductBackwardWeights", "InnerProductForward", "InvalidArguments", "LBRGRUBackward", "LBRGRUForward",
    "LRNBackward", "LRNForward", "LSTMBackward", "LSTMForward", "LayerNormBackward", "LayerNormForward", "MatMul",
    "MatMulRows", "Memory", "MemoryDesc", "MemoryReport", "Network", "NonMaxSuppression", "NotPackable", "OpenNetwork",
    "OutOfMemory", "PReLU", "PReLUBackward", "PReLUForward", "PackedWeights", "Pad", "PlanError", "PoolingBackward",
    "PoolingForward", "PostOp", "Primitive", "PrimitiveDesc", "PropKind", "QuantizedMatMul", "RandomNumbers",
    "ReductionForward", "Refusal", "Reorder", "ResamplingBackward", "ResamplingForward", "Scatter", "Shuffle",
    "SoftmaxBackward", "SoftmaxForward", "StochasticRounding", "Stream", "Sum", "SumForward", "TopKForward",
    "TorchNetwork", "TrainingStep", "TreeEnsemble", "Unimplemented", "VanillaRNNBackward", "VanillaRNNForward",
    "absolute", "bf16", "ceil", "clear_caches", "clip", "cos", "exp", "export_c", "f4_e2m1", "f8_e4m3", "f8_e5m2",
    "f16", "f32", "floor", "fmod", "from_torch", "gemm_bf16bf16f32", "gemm_compute", "gemm_f16f16f32", "gemm_pack",
    "gemm_pack_get_size", "gemm_x8x8s32", "implementations", "load_network", "load_onnx", "load_pack", "log",
    "logistic", "losses", "max_cpu_isa", "maximum", "memory_report", "minimum", "mod", "nf4", "ops", "optim", "power",
    "primitive_desc", "quantize", "recurrent", "reorder", "rint", "s4", "s8", "s32", "set_memory_limits", "sgemm",
    "show", "sign", "sin", "sqrt", "square", "tanh", "trunc", "u4", "u8", "where", "write_pack",
]  # fmt: skip
