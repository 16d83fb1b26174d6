"""Operators on parts of tensors, and reductions and poolings that others lead to."""

from math import prod

import numpy as np

from asmdnn.network.decompositions.indexing import fits, looked_up, places_of
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.definition import bounded, normal, number
from asmdnn.network.operators.geometry import window_of
from asmdnn.network.operators.reductions import axes_to_reduce
from asmdnn.network.operators.shapes import sizes_by_axis

Names = tuple[str, ...] | None
OF_NOTHING = {
    "ReduceSum": 0.0, "ReduceMean": np.nan, "ReduceProd": 1.0, "ReduceMax": -np.inf, "ReduceMin": np.inf,
    "ReduceL1": 0.0, "ReduceL2": 0.0, "ReduceSumSquare": 0.0, "ReduceLogSum": -np.inf, "ReduceLogSumExp": -np.inf,
}  # fmt: skip
OF_ONE = {"ReduceL1": "Abs", "ReduceL2": "Abs", "ReduceLogSum": "Log"}  # of others the element itself


def reduction(w: Decomposer, node: Node, x: str, given: str = NOTHING) -> Names:
    """Of no elements a constant, along no axes what it makes of one element."""
    dims = w.shape(x)
    axes = axes_to_reduce(node, len(dims), w.data(given))
    kept = [1 if i in axes else n for i, n in enumerate(dims) if node.get("keepdims", 1) or i not in axes]
    if any(dims[axis] == 0 for axis in axes):
        return (w.constant(np.full(kept, OF_NOTHING[node.op])),)
    if not axes:
        return (w("Mul", x, x) if node.op == "ReduceSumSquare" else w(OF_ONE.get(node.op, "Identity"), x),)
    if node.op != "ReduceLogSum":
        return None
    return (w("Log", w.reduced("ReduceSum", x, *axes, keepdims=bool(node.get("keepdims", 1)))),)


def triangle(w: Decomposer, node: Node, x: str, k: str = NOTHING) -> Names:
    """Elements from the k-th diagonal on, which may be data."""
    rows, columns = bounded(w.shape(x)[-2:])
    diagonal = np.arange(columns) - np.arange(rows)[:, None]
    known = 0 if k == NOTHING else w.data(k)
    if known is None:
        op = "GreaterOrEqual" if node.get("upper", 1) else "LessOrEqual"
        kept = w(op, w.constant(diagonal), w.reshaped(w.number(k), 1, 1))
    else:
        first = int(number(known))
        kept = w.constant(diagonal >= first if node.get("upper", 1) else diagonal <= first, bool)
    return (w.where(w.expanded(kept, *w.shape(x)), x, w.like(x, 0)),)


def centre(w: Decomposer, node: Node, x: str, sizes: str) -> Names:
    """Slices, and one Pad."""
    widths = np.zeros((2, len(w.shape(x))), np.int64)
    for axis, size in sizes_by_axis(node, len(w.shape(x)), w.data(sizes)).items():
        n = w.shape(x)[axis]
        before = abs(size - n) // 2
        if size < n:
            x = w.part(x, axis, before, before + size)
        else:
            widths[:, axis] = before, size - n - before
    return (w("Pad", x, w.ints(*widths.ravel())) if widths.any() else w("Identity", x),)


def one_hot(w: Decomposer, node: Node, indices: str, depth: str, values: str) -> Names:
    """A comparison with each number; below 0 they count from the end."""
    count, ndim = int(number(w.data(depth))), len(w.shape(indices)) + 1
    axis = normal(node.get("axis", -1), ndim)
    dims = [*w.shape(indices)[:axis], count, *w.shape(indices)[axis:]]
    if 0 in dims or w.value(values).dtype == np.bool_:
        return None
    along = [-1 if i == axis else 1 for i in range(ndim)]
    place = w.expanded(w.lifted(w.number(indices), axis), *dims)
    hits = [w("Equal", place, w.constant((np.arange(count) - lack).reshape(along))) for lack in (0, count)]
    off, on = (w.reshaped(w.part(values, 0, i, i + 1), *[1] * ndim) for i in (0, 1))
    return (w.where(w("Or", *hits), on, off),)


def reverse_sequence(w: Decomposer, node: Node, x: str, lengths: str) -> Names:
    """Each sequence in slices, where lengths are constant; by data each step is looked up."""
    known, dims = w.data(lengths), w.shape(x)
    batch, time = node.get("batch_axis", 1), node.get("time_axis", 0)
    if known is None and fits(w, x, lengths):
        return steps_reversed(w, (x, lengths), batch, time)
    if known is None or 0 in dims or known.min() < 0 or known.max() > dims[time]:
        return None
    rows = []
    for i, length in enumerate(known.tolist()):
        row = w.part(x, batch, i, i + 1)
        order = np.r_[np.arange(length)[::-1], length : dims[time]]
        rows.append(w("Gather", row, w.constant(order, np.int64), axis=time))
    return (w.joined(batch, *rows),)


def steps_reversed(w: Decomposer, given: tuple[str, str], batch: int, time: int) -> Names:
    """Rows along the first two axes, one of steps and one of sequences: step t of a sequence is that of length - 1 - t
    as long as t is less than its length.  A length beyond the steps there are is an index out of range."""
    (x, lengths), dims = given, w.shape(given[0])
    places = np.indices(dims[:2])
    distance = dims[1] if time == 0 else 1
    own = w.reshaped(lengths, *(dims[batch] if axis == batch else 1 for axis in range(2)))
    steps = w.like(own, places[time])
    turned = w("Sub", w("Sub", own, w.like(own, 1)), steps)
    now = w("Where", w("Less", steps, own), turned, steps)
    base = places[batch] * (1 if time == 0 else dims[1])
    every = places_of(w, [(now, dims[time], time, distance)], base)
    return looked_up(w, x, every, (dims[0] * dims[1], prod(dims[2:])), dims)


def lp_pool(w: Decomposer, node: Node, x: str) -> Names:
    """The mean of powers, times how many there are."""
    p, kernel = node.get("p", 2), node.get("kernel_shape", ())
    window = window_of(node, w.shape(x)[2:], kernel)
    if node.get("ceil_mode", 0):
        return None  # a mean counts less at the end
    how = {"kernel_shape": kernel, "strides": window.strides, "dilations": window.dilations, "count_include_pad": 1}
    how["pads"] = (*window.before, *window.after)
    return (root(w, w.mul(w("AveragePool", powers(w, x, p), **how), float(prod(kernel))), p),)


def global_lp_pool(w: Decomposer, node: Node, x: str) -> Names:
    axes, p = range(2, len(w.shape(x))), node.get("p", 2)
    if p in (1, 2):
        return (w.reduced(f"ReduceL{p}", x, *axes),)
    return (root(w, w.reduced("ReduceSum", powers(w, x, p), *axes), p),)


def powers(w: Decomposer, x: str, p: int) -> str:
    if p == 2:
        return w.mul(x, x)
    size = w("Abs", x)
    return size if p == 1 else w("Pow", size, w.constant(float(p)))


def root(w: Decomposer, x: str, p: int) -> str:
    if p == 1:
        return x
    return w("Sqrt", x) if p == 2 else w("Pow", x, w.constant(1 / p))


def swiglu(w: Decomposer, node: Node, a: str, b: str) -> Names:
    return (w.mul(w("Swish", a, alpha=node.get("alpha", 1.0)), b),)


DECOMPOSITIONS = {
    **dict.fromkeys(OF_NOTHING, reduction),
    "Trilu": triangle,
    "CenterCropPad": centre,
    "OneHot": one_hot,
    "ReverseSequence": reverse_sequence,
    "LpPool": lp_pool,
    "GlobalLpPool": global_lp_pool,
    "SwiGLU": swiglu,
}
