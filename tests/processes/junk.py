"""Junk: values of every kind that a caller could pass by mistake, some hostile; and valid calls of everything."""

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

import asmdnn as dnn
from asmdnn.errors import LONGEST_MESSAGE

f32 = dnn.f32
ENGINE = dnn.Engine(isa="avx2", threads=1)


def raising(error: BaseException) -> Callable[..., Any]:
    def method(*_: object, **__: object) -> Any:
        raise error

    return method


def stand_in(**methods: Any) -> Any:
    """An object of a class of its own with these methods; those that are exceptions raise them."""
    made = {name: raising(m) if isinstance(m, BaseException) else m for name, m in methods.items()}
    return type("StandIn", (), made)()


GRADIENT = RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead." * 20)
PROTOCOLS: dict[str, Any] = {
    "tensor with a gradient": stand_in(
        __dlpack__=BufferError("Can't export tensors that require gradient"),
        __dlpack_device__=lambda self: (1, 0),
        __array__=GRADIENT,
        shape=(2, 2),
    ),
    "tensor of an odd type": stand_in(
        __dlpack__=lambda self, **_: np.zeros((2, 2), np.complex64).__dlpack__(),
        __dlpack_device__=lambda self: (1, 0),
        __array__=TypeError("Got unsupported ScalarType BFloat16"),
    ),
    "tensor elsewhere": stand_in(
        __dlpack__=lambda self, **_: None, __dlpack_device__=lambda self: (2, 0), __array__=TypeError("cuda:0")
    ),
    "no device": stand_in(__dlpack__=lambda self, **_: 3, __dlpack_device__=lambda self: "cpu"),
    "no capsule": stand_in(__dlpack__=lambda self, **_: object(), __dlpack_device__=lambda self: (1, 0)),
    "device that fails": stand_in(__dlpack__=lambda self: 3, __dlpack_device__=OSError("gone")),
    "array that fails": stand_in(__array__=KeyError("gone")),
    "array that is none": stand_in(__array__=lambda self, *a, **k: 3),
    "odd interface": stand_in(__array_interface__={"version": 3, "shape": (2,), "typestr": "<f4", "data": "none"}),
    "no repr": stand_in(__repr__=ValueError("no repr")),
    "no str": stand_in(__str__=ValueError("no str"), __repr__=RuntimeError("nor repr")),
    "no length": stand_in(__len__=OverflowError("no length"), __getitem__=OSError("no item")),
    "no iteration": stand_in(__iter__=ZeroDivisionError("no iteration")),
    "no index": stand_in(__index__=ArithmeticError("no index")),
    "index that is none": stand_in(__index__=lambda self: "3"),
    "no equality": stand_in(__eq__=RuntimeError("no equality"), __hash__=lambda self: 1),
    "no hash": stand_in(__hash__=TypeError("no hash")),
    "no attribute": stand_in(__getattr__=RuntimeError("no attribute")),
    "no truth": stand_in(__bool__=ValueError("neither true nor false")),
    "no path": stand_in(__fspath__=OSError("no path")),
    "odd path": stand_in(__fspath__=lambda self: 3),
}
NUMBERS: dict[str, Any] = {
    "none": None, "true": True, "zero": 0, "minus one": -1, "half": 0.5, "nan": math.nan, "inf": math.inf,
    "2**31": 2**31, "2**63": 2**63, "-2**63 - 1": -(2**63) - 1, "2**64": 2**64, "huge": 10**400, "too long": 10**5000,
    "minus too long": -(10**5000), "complex": 1j, "fraction": Fraction(1, 3), "decimal": Decimal("1e999999"),
    "float32": np.float32(1), "int64": np.int64(-3), "uint64": np.uint64(2**64 - 1), "numpy bool": np.bool_(True),
    "numpy str": np.str_("x"), "datetime": np.datetime64("2020-01-01"),
}  # fmt: skip
TEXTS: dict[str, Any] = {
    "empty": "", "long": "x" * 30_000, "null": "a\0b", "surrogate": "\ud800", "lines": "a\nb" * 300, "bytes": b"\xff",
    "long bytes": b"x" * 30_000, "avx2": "avx2", "any": "any", "digits": "9" * 5000, "unicode digits": "a²b",
}  # fmt: skip
CONTAINERS: dict[str, Any] = {
    "list": [], "tuple": (), "dict": {}, "set": {1}, "pairs": [(0, 8)] * 20, "ragged": [[1.0], [2.0, 3.0]],
    "nested": [1, [2]], "ints": (3, 4), "many ints": tuple(range(1000)), "huge ints": (2**62, 2**62),
    "long ints": (10**5000, 1), "nans": [math.nan], "strings": ["a", "b"], "nones": [None, None],
    "object": object(), "class": int, "function": len, "module": math, "slice": slice(3), "ellipsis": ...,
    "generator": "GENERATOR", "range": range(3), "odd keys": {3: 4}, "masks": {"src": 10**5000},
}  # fmt: skip
ARRAYS: dict[str, Any] = {
    "array": np.ones((2, 2), np.float32), "no dims": np.float32(1).reshape(()), "empty array": np.ones((0, 3), "f4"),
    "f64": np.ones((2, 2)), "objects": np.array([[object()]]), "words": np.array([["a"]]), "c8": np.ones((2, 2), "c8"),
    "structured": np.zeros(3, "i4,f4"), "dates": np.zeros(3, "M8[s]"), "reversed": np.ones((3, 3), np.float32)[::-1],
    "overlapping": np.broadcast_to(np.float32(1), (4, 4)), "swapped": np.ones((2, 2), ">f4"),
    "gapped": np.zeros((4, 2), "f4,i1")["f0"], "read-only": np.frombuffer(bytes(64), np.float32),
    "many dims": np.ones((1,) * 30, "f4"), "bytes array": np.ones(100, np.uint8), "masked": np.ma.ones((2, 2), "f4"),
    "shared": as_strided(np.ones(8, np.float32), (4, 4), (4, 4)), "five dims": np.ones((1, 2, 3, 4, 5), np.float32),
}  # fmt: skip
OURS: dict[str, Any] = {
    "dtype": f32, "bf16": dnn.bf16, "prop kind": dnn.PropKind.backward_data, "desc": dnn.MemoryDesc((2, 2), f32, "ab"),
    "any desc": dnn.MemoryDesc((2, 2), f32, "any"), "u8 desc": dnn.MemoryDesc((2, 2), dnn.u8, "ab"),
    "blocked desc": dnn.MemoryDesc((3, 5), f32, "aB8b"), "empty desc": dnn.MemoryDesc((0, 2), f32, "ab"),
    "overlapping desc": dnn.MemoryDesc((4, 4), f32, strides=(0, 1)), "large desc": dnn.MemoryDesc((2**43,), f32, "a"),
    "memory": dnn.Memory(dnn.MemoryDesc((2, 2), f32, "ab")), "engine": ENGINE, "attr": dnn.Attr([dnn.Sum()]),
    "stream": dnn.Stream(dnn.Engine(isa="avx2", threads=2)), "sum": dnn.Sum(), "chain": [dnn.Sum()] * 40,
}  # fmt: skip
JUNK = {**PROTOCOLS, **NUMBERS, **TEXTS, **CONTAINERS, **ARRAYS, **OURS}


def fresh(name: str) -> Any:
    """The value; iterators are made anew."""
    return (n for n in (1, 2)) if name == "generator" else JUNK[name]


def desc(*dims: int, tag: str = "abcdefghijkl", dtype: Any = f32) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, tag[: len(dims)] if tag == "abcdefghijkl" else tag)


def array(*dims: int) -> Any:
    return np.ones(dims, np.float32)


def matmul_pd() -> dnn.PrimitiveDesc:
    return dnn.primitive_desc(dnn.MatMul(desc(2, 3), desc(3, 4), desc(2, 4)), engine=ENGINE)


def matmul_memories() -> dict[str, Any]:
    return {"src": dnn.Memory(desc(2, 3)), "weights": dnn.Memory(desc(3, 4)), "dst": dnn.Memory(desc(2, 4))}


Arguments = dict[str, Any]
Call = tuple[Callable[..., Any], Callable[[], Arguments]]


def failures(call: Callable[..., Any], valid: Callable[[], Arguments]) -> Iterator[str]:
    """What is raised beyond the library's errors, a line for each; every argument in turn, with every junk."""
    for argument in valid():
        for name in JUNK:
            arguments = {**valid(), argument: fresh(name)}
            try:
                call(**arguments)
            except (dnn.AsmdnnError, BufferError) as error:
                if len(str(error)) > LONGEST_MESSAGE:
                    yield f"{argument}={name}: a message of {len(str(error))} characters"
            except Exception as error:
                yield f"{argument}={name}: {type(error).__name__}: {str(error)[:100]}"


def descriptions() -> dict[str, Call]:
    """What describes primitives."""
    return {**sums_of_products(), **moves(), **maps()}


def sums_of_products() -> dict[str, Call]:
    """Convolutions and products."""
    conv: Arguments = {
        "src": desc(1, 2, 5, 5), "weights": desc(3, 2, 3, 3), "dst": desc(1, 3, 5, 5), "bias": desc(3),
        "strides": (1, 1), "dilations": (0, 0), "padding_l": (1, 1), "padding_r": (1, 1),
        "prop_kind": dnn.PropKind.forward_inference, "algorithm": dnn.Algorithm.convolution_direct,
    }  # fmt: skip
    ip = {"src": desc(2, 3), "weights": desc(4, 3), "dst": desc(2, 4), "bias": desc(4)}
    return {
        "ConvolutionForward": (dnn.ConvolutionForward, lambda: conv),
        "MatMul": (
            dnn.MatMul,
            lambda: {"src": desc(2, 3), "weights": desc(3, 4), "dst": desc(2, 4), "bias": desc(1, 4)},
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


def moves() -> dict[str, Call]:
    """What moves elements, whole or resampled."""
    return {
        "Reorder": (dnn.Reorder, lambda: {"src": desc(2, 3), "dst": desc(2, 3, dtype=dnn.s8), "compensation": 1}),
        "Concat": (dnn.Concat, lambda: {"srcs": (desc(2, 3), desc(2, 4)), "dst": desc(2, 7), "axis": 1}),
        "Dropout": (
            dnn.Dropout,
            lambda: {"src": desc(5, 3), "dst": desc(5, 3), "mask": desc(5, 3, dtype=dnn.u8)},
        ),
        "Gather": (
            dnn.Gather,
            lambda: {"src": desc(5, 3), "indices": desc(2, dtype=dnn.s32), "dst": desc(2, 3), "axis": 0},
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


def values() -> dict[str, Call]:
    """Attributes, engines, formats and memories."""
    plain, memory = desc(2, 3), dnn.Memory(desc(2, 3))
    return {
        "Engine": (dnn.Engine, lambda: {"kind": "cpu", "isa": "avx2", "threads": 1, "l2_bytes": 1 << 19}),
        "Stream": (dnn.Stream, lambda: {"engine": ENGINE}),
        "max_cpu_isa": (entered(dnn.max_cpu_isa), lambda: {"name": "avx2"}),
        "Attr": (
            dnn.Attr,
            lambda: {"post_ops": [dnn.Sum()], "scales": {"src": 0}, "zero_points": {"dst": 0},
                     "scratchpad_mode": "user", "deterministic": True},
        ),
        "Sum": (dnn.Sum, lambda: {"scale": 1.0, "zero_point": 0.0}),
        "Eltwise": (dnn.Eltwise, lambda: {"alg": "linear", "alpha": 1.0, "beta": 2.0, "scale": 1.0}),
        "Binary": (dnn.Binary, lambda: {"alg": "mul", "src1": plain}),
        "PReLU": (dnn.PReLU, lambda: {"weights": plain}),
        "Depthwise": (
            dnn.Depthwise,
            lambda: {"weights": desc(4, 1, 1, 3, 3), "bias": desc(4), "strides": (1, 2), "dilations": (0, 0),
                     "padding_l": (1, 1), "padding_r": (1, 0)},
        ),
        "PostOp": (dnn.PostOp, lambda: {"function": lambda x, c: x * c, "c": plain}),
        "MemoryDesc": (dnn.MemoryDesc, lambda: {"dims": (2, 3), "dtype": f32, "tag": "ab", "offset0": 1}),
        "MemoryDesc by strides": (
            dnn.MemoryDesc, lambda: {"dims": (2, 16), "dtype": f32, "strides": (16, 16), "inner_blocks": [(1, 16)]}
        ),
        "MemoryDesc.nelems": (plain.nelems, lambda: {"with_padding": False}),
        "MemoryDesc.offset": (plain.offset, lambda: {"index": (1, 1)}),
        "MemoryDesc.offsets": (plain.offsets, lambda: {"with_padding": False}),
        "MemoryDesc.dim_offsets": (plain.dim_offsets, lambda: {"dim": 1}),
        "MemoryDesc.submemory": (plain.submemory, lambda: {"dims": (1, 1), "offsets": (0, 1)}),
        "MemoryDesc.permute_axes": (plain.permute_axes, lambda: {"permutation": (1, 0)}),
        "MemoryDesc.reshape": (plain.reshape, lambda: {"dims": (3, 2)}),
        "Memory": (dnn.Memory, lambda: {"desc": plain, "buffer": array(6), "padding_is_zero": False}),
        "Memory.from_array": (dnn.Memory.from_array, lambda: {"array": array(2, 3), "dtype": f32}),
        "Memory.from_numpy": (dnn.Memory.from_numpy, lambda: {"array": array(2, 3), "desc": plain}),
        "Memory.from_dlpack": (dnn.Memory.from_dlpack, lambda: {"producer": array(2, 3)}),
        "reorder": (dnn.reorder, lambda: {"src": memory, "dst": desc(2, 3, tag="ba"), "engine": ENGINE}),
    }  # fmt: skip


def entered(manager: Callable[..., Any]) -> Callable[..., None]:
    def call(**arguments: Any) -> None:
        with manager(**arguments):
            pass

    return call


def primitives(directory: Path) -> dict[str, Call]:
    """What plans, packs and executes."""
    pd = matmul_pd()
    user = dnn.Attr(scratchpad_mode="user")
    description = dnn.MatMul(desc(20, 30), desc(30, 40, tag="ba"), desc(20, 40))
    in_user_mode = dnn.Primitive(dnn.primitive_desc(description, user, ENGINE))
    large = {
        "src": dnn.Memory(desc(20, 30)),
        "weights": dnn.Memory(desc(30, 40, tag="ba")),
        "dst": dnn.Memory(desc(20, 40)),
    }
    primitive, rows = dnn.Primitive(pd), dnn.MatMulRows(desc(3, 4), engine=ENGINE)
    request = {"desc": pd.desc, "attr": dnn.Attr(), "engine": ENGINE}
    return {
        "primitive_desc": (dnn.primitive_desc, lambda: request),
        "implementations": (dnn.implementations, lambda: request),
        "Primitive": (dnn.Primitive, lambda: {"pd": pd}),
        "Primitive.execute": (primitive.execute, lambda: {"stream": dnn.Stream(ENGINE), **matmul_memories()}),
        "Primitive.execute with scratchpad": (
            in_user_mode.execute, lambda: {"scratchpad": dnn.Memory(in_user_mode.pd.scratchpad_desc), **large}
        ),
        "Primitive.bind": (primitive.bind, matmul_memories),
        "MatMulRows": (
            dnn.MatMulRows, lambda: {"weights": desc(3, 4), "bias": desc(1, 4), "attr": dnn.Attr(), "engine": ENGINE}
        ),
        "MatMulRows.execute": (rows.execute, lambda: {"stream": dnn.Stream(ENGINE), **matmul_memories()}),
        "load_pack": (dnn.load_pack, lambda: {"path": directory / "valid.pack", "threads": 1}),
        "write_pack": (
            dnn.write_pack, lambda: {"path": directory / "other.pack", "descs": [pd], "facts": {"of": "tests"}}
        ),
    }  # fmt: skip


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
        "ops.gather": (
            dnn.ops.gather,
            lambda: {"x": array(4, 3), "indices": np.array([1, -1]), "axis": 0, "out": array(2, 3), "engine": ENGINE},
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
    }  # fmt: skip


def array_products() -> dict[str, Call]:
    """Convolutions and products."""
    conv = {"x": array(1, 2, 5, 5), "w": array(3, 2, 3, 3), "b": array(3), "stride": 1, "padding": (1, 1),
            "dilation": 1, "post_ops": [], "out": array(1, 3, 5, 5), "engine": ENGINE}  # fmt: skip
    transposed = {**conv, "w": array(2, 3, 3, 3)}
    product = {"a": array(2, 3), "b": array(3, 4), "bias": array(1, 4), "post_ops": [], "out": array(2, 4)}
    return {
        "ops.conv2d": (dnn.ops.conv2d, lambda: {**conv, "groups": 1, "algorithm": "auto"}),
        "ops.conv_transpose2d": (dnn.ops.conv_transpose2d, lambda: {**transposed, "groups": 1, "output_padding": 0}),
        "ops.matmul": (dnn.ops.matmul, lambda: {**product, "engine": ENGINE}),
        "ops.pack_weights": (dnn.ops.pack_weights, lambda: {"b": array(3, 4), "engine": ENGINE}),
        "ops.pack_conv_weights": (
            dnn.ops.pack_conv_weights,
            lambda: {"w": array(3, 2, 3, 3), "image": (1, 2, 5, 5), "stride": 1, "padding": 1, "dilation": 1,
                     "groups": 1, "algorithm": "auto", "engine": ENGINE},
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
