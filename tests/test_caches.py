"""Caches: keys compare bits, for every cache of the package, those that do not exist yet included."""

import importlib
import pkgutil
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops
from asmdnn.exact import exact, is_exact
from asmdnn.generators.functions.postops import EltwiseOp, GradientOp, OffsetSumOp, Operand, ReluOp, SumOp

SKIPPED = {"asmdnn.__main__"}  # runs when it is imported
VALUES = ("generators", "isa", "memory", "planning", "primitives", "jit", "ops", "blas")  # where values are keys


def modules() -> Iterator[ModuleType]:
    package = Path(dnn.__file__).parent
    for info in pkgutil.walk_packages([str(package)], "asmdnn."):
        if info.name not in SKIPPED:
            yield importlib.import_module(info.name)


def classes() -> list[type]:
    """All dataclasses that compare by value, where values are keys of caches."""
    found = {
        value
        for module in modules()
        if module.__name__.split(".")[1] in VALUES
        for value in vars(module).values()
        if isinstance(value, type) and is_dataclass(value) and value.__module__ == module.__name__
    }
    return [cls for cls in found if cls.__eq__ is not object.__eq__]


def holds_floats(annotation: object) -> bool:
    return "Callable" not in str(annotation) and re.search(r"\bfloat\b", str(annotation)) is not None


def floats_of(cls: type) -> dict[str, object]:
    """The types of the fields that hold floats."""
    return {field.name: field.type for field in fields(cls) if field.compare and holds_floats(field.type)}


def kept_functions() -> Iterator[tuple[str, Any]]:
    for module in modules():
        for name, value in vars(module).items():
            if hasattr(value, "cache_info") and value.__module__ == module.__name__:
                yield f"{module.__name__}.{name}", value


def test_every_value_with_floats_compares_their_bits() -> None:
    hashable = [cls for cls in classes() if cls.__hash__ is not None and floats_of(cls)]
    assert len(hashable) > 8
    assert [cls.__qualname__ for cls in hashable if not is_exact(cls)] == []


def test_no_cache_has_a_bare_float_as_its_key() -> None:
    names = []
    for name, function in kept_functions():
        names.append(name)
        hints = function.__wrapped__.__annotations__
        assert not any(holds_floats(hint) for argument, hint in hints.items() if argument != "return"), name
    assert "asmdnn.generators.functions.chain.compose" in names, "the walk sees caches"


def test_no_class_with_floats_hides_them_deeper_than_in_a_tuple() -> None:
    """`exact` looks at fields, and into tuples of floats."""
    for cls in filter(is_exact, classes()):
        assert set(floats_of(cls).values()) <= {float, "float", tuple[float, ...]}, cls


def test_tuples_of_floats_compare_their_bits() -> None:
    @exact
    @dataclass(frozen=True)
    class Several:
        values: tuple[float, ...]

    assert Several((1.0, 0.0)) != Several((1.0, -0.0))
    assert Several((float("nan"),)) == Several((float("nan"),))
    assert len({Several((0.0,)), Several((-0.0,)), Several((0.0,))}) == 2


def test_values_of_many_fields_differ_by_any_of_them() -> None:
    """Hashes look at the first ones alone, so that these are equal."""
    one = dnn.Engine(isa="avx2", threads=1, machine="zen3").tuning.products
    names = [field.name for field in fields(one) if isinstance(getattr(one, field.name), float)]
    others = [replace(one, **{name: -getattr(one, name)}) for name in names]
    assert len(names) > 1
    assert len({one, replace(one), *others}) == 1 + len(names)


PAIRS = [
    (dnn.Sum(0.0), dnn.Sum(-0.0)),
    (dnn.Sum(1.0, 0.0), dnn.Sum(1.0, -0.0)),
    (dnn.Eltwise("linear", 1.0, 0.0), dnn.Eltwise("linear", 1.0, -0.0)),
    (dnn.Eltwise("linear", 0.0, 1.0), dnn.Eltwise("linear", -0.0, 1.0)),
    (dnn.Eltwise("relu", scale=0.0), dnn.Eltwise("relu", scale=-0.0)),
    (SumOp(0.0), SumOp(-0.0)),
    (ReluOp(0.0), ReluOp(-0.0)),
    (OffsetSumOp(1.0, 0.0), OffsetSumOp(1.0, -0.0)),
    (EltwiseOp("linear", 1.0, 0.0, 1.0), EltwiseOp("linear", 1.0, -0.0, 1.0)),
    (GradientOp("linear", 0.0, 0.0, False, Operand(2, 0, 0, True)),
     GradientOp("linear", 0.0, -0.0, False, Operand(2, 0, 0, True))),
    (dnn.PostOp(lambda x: x * 0.0), dnn.PostOp(lambda x: x * -0.0)),
    (dnn.Attr(dnn.Sum(0.0)), dnn.Attr(dnn.Sum(-0.0))),
]  # fmt: skip


@pytest.mark.parametrize(("plus", "minus"), PAIRS, ids=lambda value: type(value).__name__)
def test_zeros_of_either_sign_are_two_keys(plus: object, minus: object) -> None:
    assert plus != minus
    assert len({plus: 0, minus: 1}) == 2


def nan(payload: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", 0x7FF8 << 48 | payload))[0])


def test_nan_equals_itself_and_no_other() -> None:
    assert SumOp(nan(1)) == SumOp(nan(1))
    assert SumOp(nan(1)) != SumOp(nan(2))
    assert len({SumOp(nan(i % 3)) for i in range(9)}) == 3


def test_other_types_are_not_compared() -> None:
    @exact
    @dataclass(frozen=True)
    class One:
        value: float

    assert One(1.0) == One(1.0)
    others: list[object] = [SumOp(1.0), 1.0]
    assert One(1.0) not in others


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("first", [0.0, -0.0])
def test_the_sign_of_zero_reaches_the_result(first: float) -> None:
    """-0 * x + beta is beta + -0: minus zero only where beta is."""
    x, one = np.zeros((2, 3), np.float32), np.ones((3, 3), np.float32)
    for beta in (first, -first):
        result = ops.matmul(-x, one, post_ops=[dnn.Eltwise("linear", -0.0, beta)])
        assert np.array_equal(np.signbit(result), np.full((2, 3), np.signbit(np.float32(-0.0) * 0 + np.float32(beta))))
        desc = dnn.MemoryDesc((5,), dnn.f32, "a")
        src, dst = dnn.Memory(desc), dnn.Memory(desc)
        src.array[...] = -0.0
        forward = dnn.EltwiseForward(dnn.PropKind.forward_inference, "linear", desc, desc, 1.0, beta)
        dnn.Primitive(dnn.primitive_desc(forward)).execute(src=src, dst=dst)
        assert np.array_equal(np.signbit(dst.array), [np.signbit(beta)] * 5)


@pytest.mark.isa("avx2")
def test_post_op_tensors_are_those_of_the_call() -> None:
    """Equal post-ops, other data: the same kernels and plan, and their own results."""
    a, b = np.ones((4, 4), np.float32), np.eye(4, dtype=np.float32)
    x, w = np.ones((1, 8, 4, 4), np.float32), np.ones((8, 8, 1, 1), np.float32)

    def scaled(y, c):  # type: ignore[no-untyped-def]
        return y * c

    for value in (2.0, 3.0, 5.0):
        op = dnn.PostOp(scaled, c=np.full((1, 4), value, np.float32))
        assert np.array_equal(ops.matmul(a, b, post_ops=[op]), a * np.float32(value))
        op = dnn.PostOp(scaled, c=np.full((1, 8, 1, 1), value, np.float32))
        assert np.array_equal(ops.conv2d(x, w, post_ops=[op]), np.full((1, 8, 4, 4), 8 * value, np.float32))
