"""Functions of one, two and three arrays, element by element."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import MemoryDesc
from asmdnn.memory.foreign import as_array, is_python
from asmdnn.ops.applied import Descs, Ending, SameDims, apply, compute
from asmdnn.ops.arguments import AnyArray, AnyDataType
from asmdnn.ops.exact_words import check_words
from asmdnn.ops.typed import kind_of, typed
from asmdnn.primitives.attributes.post_ops import AnyPostOp
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.elementwise.binary import BinaryForward
from asmdnn.primitives.elementwise.eltwise import EltwiseForward
from asmdnn.types import BinaryAlgorithm, EltwiseAlgorithm, PropKind

COMPARISONS = ("ge", "gt", "le", "lt", "eq", "ne")  # whose results do not say that operands were rounded


def eltwise(
    x: Any,
    alg: EltwiseAlgorithm,
    alpha: float = 0.0,
    beta: float = 0.0,
    *,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """A function of every element of an array: alg, alpha and beta as in EltwiseForward, "relu", "gelu_erf", ...

    out: anything that exports memory of x's dims; x itself, for a dense x.  post_ops run in order on the result.
    Raises InvalidArguments, Unimplemented.
    """

    def describe(descs: Descs, dst: MemoryDesc) -> EltwiseForward:
        return EltwiseForward(PropKind.forward_inference, alg, descs["src"], dst, alpha, beta)

    key = ("eltwise", alg, alpha, beta)
    return apply(key, {"src": ("x", x)}, describe, SameDims("src"), (post_ops, out, engine, dtype))


def binary(
    alg: BinaryAlgorithm,
    a: Any,
    b: Any,
    *,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """alg(a, b) of two arrays, broadcast as numpy does: "add", "max", "ge" (1 where a >= b, else 0), ..., as in
    BinaryForward.

    One of them may be a number, which has no type: the result is of the array's.
    out: anything that exports memory of the result's dims; a itself, for a dense a of these dims.  post_ops run in
    order on the result.  Raises InvalidArguments, Unimplemented.
    """
    if type(b) is str:
        raise InvalidArguments(f"b is the text {shown(b)}, where an array is wanted: the algorithm comes first")
    return broadcast(alg, {"src0": ("a", a), "src1": ("b", b)}, (post_ops, out, engine, dtype))


def select(
    condition: Any,
    a: Any,
    b: Any,
    *,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """a where the condition is true, else b, of arrays, broadcast as numpy.where does; the rest as binary.

    condition: bools, or numbers, which are true but for 0.
    """
    given = {"src0": ("a", a), "src1": ("b", b), "src2": ("condition", condition)}
    return broadcast("select", given, (post_ops, out, engine, dtype))


def broadcast(alg: Any, given: dict[str, tuple[str, Any]], ending: Ending) -> AnyArray:
    """Of arrays of the same dims, or of 1 instead, those in front left out.  Numbers of Python are of no type: the
    result is of the first array's."""
    arrays = {name: (label, numbers(label, value)) for name, (label, value) in given.items()}
    try:
        dims = np.broadcast_shapes(*(array.shape for _, array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{label} {array.shape}" for label, array in arrays.values())
        raise InvalidArguments(f"dims that are not 1 must be equal, from the last one on: {shapes}") from None
    if isinstance(alg, str) and alg in COMPARISONS:
        check_words(arrays.values(), "use numpy")
    wide = {
        name: (label, array.reshape((1,) * (len(dims) - array.ndim) + array.shape))
        for name, (label, array) in arrays.items()
    }

    def describe(descs: Descs, dst: MemoryDesc) -> BinaryForward:
        return BinaryForward(alg, descs["src0"], descs["src1"], dst, descs.get("src2"))

    post_ops, out, engine, dtype = ending
    if dtype is None and out is None and is_python(given["src0"][1]):
        dtype = None if is_python(given["src1"][1]) else kind_of(arrays["src1"][1])
    result_dims = (lambda _: dims) if dims else SameDims("src0")  # which takes arrays without dims
    return compute(("binary", alg), wide, describe, result_dims, (post_ops, out, engine, dtype))


def numbers(label: str, value: Any) -> AnyArray:
    """An array; of a condition of bools their bytes, 0 and 1."""
    array = as_array(label, value) if label == "condition" else None
    if array is not None and array.dtype == np.bool_:
        return np.asarray(array).view(np.uint8)
    return typed(label, value)
