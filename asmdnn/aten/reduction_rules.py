"""ATen's reductions, softmax, sums along an axis, and what is sorted."""

from typing import Any

import numpy as np

from asmdnn.aten.values import ONNX_TYPES, RULES, Rewriter, Traced, axes_of, axis_of, rule

REDUCTIONS = {"sum": "ReduceSum", "mean": "ReduceMean", "amax": "ReduceMax", "amin": "ReduceMin", "prod": "ReduceProd"}


def _reduce(onnx: str) -> Any:
    def translate(c: Rewriter, x: Traced, dims: Any = None, keepdim: bool = False, **options: Any) -> Any:
        axes = axes_of(dims, x.rank)
        operand = c.cast(x, c.dtype) if onnx in ("ReduceSum", "ReduceMean", "ReduceProd") else x
        return c.apply(onnx, operand, np.array(axes, np.int64), keepdims=int(keepdim))

    return translate


for _name, _onnx in REDUCTIONS.items():
    for _overload in ("default", "dim", "dim_IntList", "dim_int"):
        RULES[f"{_name}.{_overload}"] = _reduce(_onnx)


@rule("linalg_vector_norm.default", "norm.ScalarOpt_dim", "norm.Scalar")
def _norm(c: Rewriter, x: Traced, order: Any = 2, dims: Any = None, keepdim: bool = False, **options: Any) -> Any:
    if order not in (None, 1, 2):
        raise c.refuse(f"a norm of order {order}")
    axes = np.array(axes_of(dims, x.rank), np.int64)
    return c.apply("ReduceL1" if order == 1 else "ReduceL2", x, axes, keepdims=int(keepdim))


@rule("var.correction", "var.dim")
def _var(c: Rewriter, x: Traced, dims: Any = None, *rest: Any, correction: Any = 1, keepdim: bool = False) -> Any:
    if rest:
        correction, keepdim = (rest[0], rest[1] if len(rest) > 1 else keepdim)
    axes = axes_of(dims, x.rank)
    count = int(np.prod([x.shape[axis] for axis in axes]))
    at = np.array(axes, np.int64)
    apart = c.apply("Sub", x, c.apply("ReduceMean", x, at, keepdims=1))
    total = c.apply("ReduceSum", c.apply("Mul", apart, apart), at, keepdims=int(keepdim))
    return c.apply("Div", total, np.float32(max(count - int(correction), 0)))


@rule("softmax.int", "_softmax.default", "log_softmax.int", "_log_softmax.default")
def _softmax(c: Rewriter, x: Traced, dim: int, *rest: Any, **options: Any) -> Any:
    if not x.rank:
        alone = c.apply("Sub", x, x)
        return alone if "log" in c.name else c.apply("Exp", alone)
    return c.apply("LogSoftmax" if "log" in c.name else "Softmax", x, axis=axis_of(dim, x.rank))


@rule("argmax.default", "argmin.default")
def _arg(c: Rewriter, x: Traced, dim: Any = None, keepdim: bool = False) -> Any:
    onnx = "ArgMax" if c.name.startswith("argmax") else "ArgMin"
    if dim is None or not x.rank:
        flat = c.apply(onnx, c.reshape(x, [-1]), axis=0, keepdims=0)
        return c.reshape(flat, c.shape)
    return c.apply(onnx, x, axis=axis_of(dim, x.rank), keepdims=int(keepdim))


@rule("max.dim", "min.dim")
def _max_dim(c: Rewriter, x: Traced, dim: int, keepdim: bool = False) -> Any:
    names = ("ReduceMax", "ArgMax") if c.name.startswith("max") else ("ReduceMin", "ArgMin")
    axis = axis_of(dim, x.rank)
    values = c.apply(names[0], x, np.array([axis], np.int64), keepdims=int(keepdim))
    return values, c.apply(names[1], x, axis=axis, keepdims=int(keepdim))


@rule("any.default", "any.dim", "any.dims", "all.default", "all.dim", "all.dims")
def _truths(c: Rewriter, x: Traced, dims: Any = None, keepdim: bool = False) -> Any:
    """Of 1 and 0 the largest or the smallest."""
    axes = np.array(axes_of(dims, x.rank), np.int64)
    if not x.rank or not all(x.shape):
        raise c.refuse(f"truths of {x.shape}")
    truths = c.cast(x, np.dtype(bool)) if x.dtype != np.bool_ else x.symbol
    ones = c.apply("Cast", truths, to=ONNX_TYPES["float32"])
    found = c.apply("ReduceMax" if c.name.startswith("any") else "ReduceMin", ones, axes, keepdims=int(keepdim))
    return c.apply("Cast", found, to=ONNX_TYPES[c.dtype.name])  # of bytes torch makes bytes


@rule("cumsum.default")
def _cumsum(c: Rewriter, x: Traced, dim: int, **options: Any) -> Any:
    return c.apply("CumSum", c.cast(x, c.dtype), np.array(axis_of(dim, x.rank), np.int64))


@rule("cumprod.default")
def _cumprod(c: Rewriter, x: Traced, dim: int, **options: Any) -> Any:
    return c.apply("CumProd", c.cast(x, c.dtype), np.array(axis_of(dim, x.rank), np.int64))


@rule("logcumsumexp.default")
def _logcumsumexp(c: Rewriter, x: Traced, dim: int) -> Any:
    """log(e^a + e^b) = m + log(e^(a - m) + e^(b - m)), m = max(a, b), of elements 1, 2, 4, ... apart in turn."""
    if not x.rank:
        return x.symbol
    axis, y, distance = axis_of(dim, x.rank), c.operand(x), 1
    count, limit = x.shape[axis], np.finfo(np.float32).max
    at = np.array([axis], np.int64)
    while distance < count:
        nothing = np.full([distance if i == axis else n for i, n in enumerate(x.shape)], -np.inf, np.float32)
        ends = (np.array([n], np.int64) for n in (0, count - distance))
        before = c.apply("Concat", nothing, c.apply("Slice", y, *ends, at), axis=axis)
        m = c.apply("Clip", c.apply("Max", y, before), -limit, limit)
        total = c.apply("Add", *(c.apply("Exp", c.apply("Sub", part, m)) for part in (y, before)))
        y, distance = c.apply("Add", m, c.apply("Log", total)), 2 * distance
    return y


@rule("topk.default")
def _topk(c: Rewriter, x: Traced, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    options = {"axis": axis_of(dim, x.rank), "largest": int(largest), "sorted": int(sorted)}
    return c.apply("TopK", x, np.array([k], np.int64), results=2, **options)


@rule("sort.default", "sort.stable")
def _sort(c: Rewriter, x: Traced, *rest: Any, dim: int = -1, descending: bool = False, stable: Any = None) -> Any:
    """All elements as the k best.  Of equal ones the first comes first, as `stable` asks."""
    given = dict(zip(("dim", "descending"), rest[c.name == "sort.stable" :], strict=False))
    dim, descending = given.get("dim", dim), given.get("descending", descending)
    axis = axis_of(dim, x.rank)
    count = np.array([x.shape[axis]], np.int64)
    return c.apply("TopK", x, count, results=2, axis=axis, largest=int(descending), sorted=1)
