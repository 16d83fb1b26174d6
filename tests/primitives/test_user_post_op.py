"""Post-ops written in Python: what is traced, what equals what, and errors that point at the user's line."""

import inspect
import math
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.planning.codec import decode_plan, encode_plan

VECTOR = dnn.MemoryDesc((1, 50), dnn.f32, "ab")


def smooth(x: Any, c: Any) -> Any:
    return dnn.where((x > 0) & ~(x > 1), dnn.clip(x, 0.25, c), dnn.maximum(c, -dnn.tanh(x)) / (dnn.absolute(x) + 1))


def everything(x: Any) -> Any:
    y = dnn.exp(-x * x) + dnn.log(dnn.square(x) + 1) + dnn.logistic(x) - dnn.sqrt(abs(x))
    y = y + dnn.sin(x) * dnn.cos(x) + dnn.trunc(x) * dnn.sign(x) + dnn.fmod(x, 1.5) - dnn.mod(2.0, x * x + 0.5)
    return y + dnn.floor(x) * 2 - dnn.ceil(x) / 3 + dnn.rint(x) + dnn.power(dnn.absolute(x), 1.5) + dnn.minimum(x, 0.5)


def apply(op: dnn.PostOp, x: Any, **tensors: Any) -> Any:
    """On a tensor, after a function that does nothing."""
    src, dst = dnn.Memory.from_array(x.copy()), dnn.Memory.from_array(np.full_like(x, np.nan))
    desc = dnn.EltwiseForward(dnn.PropKind.forward_inference, "linear", src.desc, dst.desc, 1.0)
    pd = dnn.primitive_desc(desc, dnn.Attr([op]))
    dnn.Primitive(pd).execute(src=src, dst=dst, **{f"{n}_0": dnn.Memory.from_array(t) for n, t in tensors.items()})
    return dst.numpy()


def test_the_function_is_its_reference(isa: str) -> None:
    x = np.random.default_rng(0).normal(0, 2, (3, 50)).astype(np.float32)
    c = np.random.default_rng(1).normal(0, 1, (1, 50)).astype(np.float32)
    op = dnn.PostOp(smooth, c=VECTOR)
    np.testing.assert_allclose(apply(op, x, c=c), op.reference(x, c=c), 1e-5, 1e-6)
    np.testing.assert_allclose(apply(dnn.PostOp(everything), x), everything(x.astype(np.float64)), 1e-5, 1e-5)


def test_nan_is_numpys(isa: str) -> None:
    x = np.float32([[np.nan, 1, -1, np.inf, -np.inf]])
    for function in (lambda x: dnn.maximum(x, 0.5), lambda x: dnn.minimum(0.5, x), lambda x: dnn.maximum(x, x * x),
                     lambda x: dnn.where(x != x, 7.0, x), lambda x: dnn.where(x == x, x, -1.0)):  # fmt: skip
        assert np.array_equal(apply(dnn.PostOp(function), x), function(x), equal_nan=True)


def test_equal_expressions_are_equal() -> None:
    a, b = dnn.PostOp(lambda x, c: x * c + 1, c=VECTOR), dnn.PostOp(lambda v, c: v * c + 1.0, c=VECTOR)
    assert a == b and hash(a) == hash(b) and hash(dnn.Attr([a])) == hash(dnn.Attr([b]))
    assert a != dnn.PostOp(lambda x, c: x * c + 2, c=VECTOR)
    assert dnn.PostOp(lambda x, k: x * k, k=2.0) == dnn.PostOp(lambda x: x * 2)
    assert len(dnn.PostOp(lambda x: dnn.tanh(x) * dnn.tanh(x)).program.steps) == 1 + len(
        dnn.PostOp(lambda x: dnn.tanh(x)).program.steps
    ), "a common subexpression is computed once"


def test_plans_survive_being_written() -> None:
    """A kernel pack holds them: in-place tensors, expressions and operands too."""
    desc = dnn.EltwiseForward(dnn.PropKind.forward_inference, "swish", VECTOR, VECTOR, 1.0)
    plan = dnn.primitive_desc(desc, dnn.Attr([dnn.PostOp(smooth, c=VECTOR), dnn.Binary("add", VECTOR)])).plan
    copy, _ = decode_plan(encode_plan(plan))
    assert (copy.specs, copy.in_place) == (plan.specs, plan.in_place)


def branches(x: Any) -> Any:
    if x > 0:
        return x
    return -x


def uses_float(x: Any) -> Any:
    return x * math.tanh(x)


def uses_numpy(x: Any) -> Any:
    return np.tanh(x)


def formats(x: Any) -> Any:
    name = f"{x}"
    return x * len(name)


def prints(x: Any) -> Any:
    print("tracing")
    return x


def iterates(x: Any) -> Any:
    return sum(x)


def chained(x: Any) -> Any:
    return dnn.where(0 < x < 1, x, 0)


def raises(x: Any) -> Any:
    return x * [1, 2][3]


@pytest.mark.parametrize(
    ("function", "line", "message"),
    [
        (branches, 1, "not known while the kernel is made: use dnn.where"),
        (uses_float, 1, "a traced value is no number yet"),
        (uses_numpy, 1, "numpy's functions cannot compute with a traced value"),
        (formats, 1, "cannot be printed or formatted"),
        (prints, 0, r"uses print\(\), which would run once"),
        (iterates, 1, "has no elements"),
        (chained, 1, "& and | combine conditions"),
        (raises, 1, "IndexError"),
        (lambda x: x**2, 0, "use dnn.power"),
        (lambda x: 3.0, 0, "returns 3.0, it must return what it computes"),
        (lambda x: dnn.where(x, 1, 2), 0, "where's condition is a number"),
        (lambda x: dnn.power(x, "2"), 0, "exponent must be a finite f32 number"),
        (lambda x: x + "1", 0, "an operand is a str: use numbers"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_errors_point_at_the_line(function: Any, line: int, message: str) -> None:
    first = inspect.getsourcelines(function)[1]
    with pytest.raises(dnn.InvalidArguments, match=message) as caught:
        dnn.PostOp(function)
    assert str(caught.value).startswith(f"{__file__}:{first + line}: ")


def test_other_bad_input() -> None:
    with pytest.raises(dnn.InvalidArguments, match="does not depend on c: leave it out"):
        dnn.PostOp(lambda x, c: x + 1, c=VECTOR)
    with pytest.raises(dnn.InvalidArguments, match="must be callable"):
        dnn.PostOp("x + 1")  # type: ignore[arg-type]
    kept: list[Any] = []
    with pytest.raises(dnn.InvalidArguments, match="does not depend on x"):
        dnn.PostOp(lambda x, c: kept.append(x) or c * 2, c=VECTOR)
    with pytest.raises(dnn.InvalidArguments, match="kept from another call"):
        dnn.PostOp(lambda x: x + kept[0])
