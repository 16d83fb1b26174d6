"""Data types, propagation kinds, and the names that signatures take, in oneDNN's words.  Imports nothing of asmdnn."""

from enum import Enum
from typing import Literal

from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class DataType:
    """An element type: `name` as oneDNN spells it, `size_bytes` of one element, `numpy` its array-protocol string.

    extension: ml_dtypes' name for a type that numpy lacks; `numpy` is then that of unsigned integers, as which its
    storage is viewed.  dlpack: DLPack's code of such a type.  What code does with elements is said in isa/elements.py.
    in_a_byte: how many elements share one, whose size_bytes is 1 then.
    """

    name: str
    size_bytes: int
    numpy: str
    extension: str = ""
    dlpack: int = 0
    in_a_byte: int = 1

    def __hash__(self) -> int:
        return hash(self.name)  # a spec's hash, which planning takes hundreds of times, has several types in it

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


f32 = DataType("f32", 4, "<f4")
bf16 = DataType("bf16", 2, "<u2", "bfloat16", dlpack=4)
f8_e5m2 = DataType("f8_e5m2", 1, "|u1", "float8_e5m2", dlpack=12)
f8_e4m3 = DataType("f8_e4m3", 1, "|u1", "float8_e4m3fn", dlpack=10)
f16 = DataType("f16", 2, "<f2")
s32 = DataType("s32", 4, "<i4")
s16 = DataType("s16", 2, "<i2")  # inside plans alone: bytes as words that are multiplied
s8 = DataType("s8", 1, "|i1")
u8 = DataType("u8", 1, "|u1")

s4 = DataType("s4", 1, "|u1", "int4", in_a_byte=2)
u4 = DataType("u4", 1, "|u1", "uint4", in_a_byte=2)
f4_e2m1 = DataType("f4_e2m1", 1, "|u1", "float4_e2m1fn", in_a_byte=2)
nf4 = DataType("nf4", 1, "|u1", in_a_byte=2)

F32_BYTES = f32.size_bytes
HALF_FLOATS = (bf16, f16)  # kept in two bytes, computed with as f32
UPPER_FLOATS = (bf16, f32)  # the upper bytes of an f32, whose exponents they have
FLOATS = (f32, *HALF_FLOATS)  # of tensors that kernels widen as they load and round as they store
FLOATS8 = (f8_e5m2, f8_e4m3)
INTEGERS8 = (u8, s8)
FLOAT_NAMES = tuple(t.name for t in FLOATS)
DATA_TYPES = {t.name: t for t in (f32, bf16, f16, s32, s8, u8, f8_e5m2, f8_e4m3)}  # that kernels compute with
CODED_FLOATS = (f4_e2m1, nf4)  # whose 4 bits are the number of a float in a table
PACKED_TYPES = {t.name: t for t in (s4, u4, *CODED_FLOATS)}  # of weights, which share bytes


class PropKind(Enum):
    """What a primitive computes; forward kinds differ in what they keep for a backward pass.

    Gradients are of data, of weights and other parameters, or `backward`, of both: each has a description of its own.
    """

    forward_training = "forward_training"
    forward_inference = "forward_inference"
    backward = "backward"
    backward_data = "backward_data"
    backward_weights = "backward_weights"


class Algorithm(Enum):
    """Convolution algorithms; `auto` takes the one that is expected to be the fastest.

    Winograd's rounds more, and differently: docs/winograd.md has its bound.
    """

    convolution_auto = "convolution_auto"
    convolution_direct = "convolution_direct"
    convolution_winograd = "convolution_winograd"
    deconvolution_direct = "deconvolution_direct"


# The names that public signatures take, for type checkers and completion; what they mean is said where they are
# registered, and tests/test_types.py holds each to its registry.

IsaName = Literal[
    "avx2", "avx2_vnni", "avx512_core", "avx512_core_vnni", "avx512_core_bf16", "avx512_core_fp16", "avx512_core_amx"
]  # fmt: skip
ConvolutionAlgorithm = Literal["auto", "direct", "winograd"]  # Algorithm without its first word
EltwiseAlgorithm = Literal[
    "relu", "tanh", "elu", "square", "abs", "sqrt", "linear", "clip", "clip_v2", "soft_relu", "logistic", "exp",
    "gelu_tanh", "gelu_erf", "swish", "log", "pow", "round", "mish", "hardswish", "hardsigmoid", "erf", "reciprocal",
    "rsqrt", "sign", "sin", "cos", "floor", "ceil", "trunc", "not", "bounded_relu", "gelu"
]  # fmt: skip
EltwiseBackwardAlgorithm = Literal[
    "relu", "tanh", "elu", "square", "abs", "sqrt", "linear", "clip", "clip_v2", "soft_relu", "logistic", "exp",
    "gelu_tanh", "gelu_erf", "swish", "log", "pow", "mish", "hardswish", "hardsigmoid", "relu_use_dst_for_bwd",
    "tanh_use_dst_for_bwd", "elu_use_dst_for_bwd", "sqrt_use_dst_for_bwd", "clip_v2_use_dst_for_bwd",
    "logistic_use_dst_for_bwd", "exp_use_dst_for_bwd", "bounded_relu", "gelu"
]  # fmt: skip
BinaryAlgorithm = Literal[
    "add", "sub", "mul", "div", "max", "min", "ge", "gt", "le", "lt", "eq", "ne", "and", "or", "xor", "fmod", "mod"
]  # fmt: skip
PoolingAlgorithm = Literal["max", "avg_include_padding", "avg_exclude_padding"]
ScratchpadMode = Literal["library", "user"]
FpMathMode = Literal["strict", "bf16", "f16", "tf32", "bf16x3", "any"]
AccumulationMode = Literal["strict", "relaxed", "any", "f32", "s32", "f16"]
RoundingMode = Literal["environment", "stochastic"]
RNNActivation = Literal["relu", "tanh", "logistic"]
RNNDirection = Literal[
    "unidirectional_left2right", "unidirectional_right2left", "bidirectional_concat", "bidirectional_sum"
]  # fmt: skip
UsualTag = Literal[
    "any", "a", "ab", "ba", "abc", "abcd", "abcde", "nc", "cn", "ncw", "nwc", "nchw", "nhwc", "chwn", "ncdhw", "ndhwc",
    "nChw8c", "nChw16c", "oi", "io", "oiw", "wio", "oihw", "hwio", "ohwi", "oidhw", "dhwio", "goiw", "goihw", "goidhw",
    "tn", "tnc", "ntc", "ldnc", "ldio", "ldigo", "ldgo"
]  # fmt: skip
FormatTag = UsualTag | str  # any layout can be spelled: memory/tags.py has the grammar
