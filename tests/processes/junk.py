"""Junk: values of every kind that a caller could pass by mistake, some hostile; and what counts as a failure."""

import inspect
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

import asmdnn as dnn
from asmdnn.errors import LONGEST_MESSAGE
from tests.support.ops_calls import array as array

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
    "generator": "GENERATOR", "range": range(3), "long range": range(10**12),
    "arrays": (np.ones((4, 6), np.float32),) * 2, "no end": "COUNT", "odd keys": {3: 4}, "masks": {"src": 10**5000},
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
    made: dict[str, Callable[[], Any]] = {"generator": lambda: (n for n in (1, 2)), "no end": itertools.count}
    return made[name]() if name in made else JUNK[name]


def desc(*dims: int, tag: str = "abcdefghijkl", dtype: Any = f32) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, tag[: len(dims)] if tag == "abcdefghijkl" else tag)


def matmul_pd() -> dnn.PrimitiveDesc:
    return dnn.primitive_desc(dnn.MatMul(desc(2, 3), desc(3, 4), desc(2, 4)), engine=ENGINE)


def matmul_memories() -> dict[str, Any]:
    return {"src": dnn.Memory(desc(2, 3)), "weights": dnn.Memory(desc(3, 4)), "dst": dnn.Memory(desc(2, 4))}


Arguments = dict[str, Any]
Call = tuple[Callable[..., Any], Callable[[], Arguments]]


def parameters(call: Callable[..., Any], valid: Arguments) -> list[str]:
    """Those of its signature, whether the valid call gives them or not; and what it takes by names of the caller's."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    own = [name for name, each in inspect.signature(call).parameters.items() if each.kind in named]
    return list(dict.fromkeys([*valid, *own]))


def needed(call: Callable[..., Any]) -> list[str]:
    """Parameters without a default."""
    own = inspect.signature(call).parameters.values()
    return [p.name for p in own if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def failure(call: Callable[..., Any], arguments: Arguments) -> str:
    """What is wrong with what a call raises, beyond the library's errors, or with what it warns of; "" if nothing."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call(**arguments)
        except (dnn.AsmdnnError, BufferError) as error:
            if len(str(error)) > LONGEST_MESSAGE:
                return f"a message of {len(str(error))} characters"
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:100]}"
    return f"{caught[0].category.__name__}: {str(caught[0].message)[:100]}" if caught else ""


def failures(call: Callable[..., Any], valid: Callable[[], Arguments], every: int, first: int) -> Iterator[str]:
    """A line for each; every argument in turn, with every so-many-th junk, in turns, too."""
    for at, argument in enumerate(parameters(call, valid())):
        for name in list(JUNK)[(first + at) % every :: every]:
            if found := failure(call, {**valid(), argument: fresh(name)}):
                yield f"{argument}={name}: {found}"
