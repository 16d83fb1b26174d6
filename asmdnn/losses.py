"""Losses, written in a graph's operators: each is one number of f32, for `Graph.gradients` and `Graph.train`.

`Graph.apply` has the losses that ONNX has: SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss.
"""

from typing import Any, Final

import numpy as np

from asmdnn.errors import AsmdnnError, InvalidArguments, counted, shown
from asmdnn.network.symbol_dims import symbol_dims
from asmdnn.network.symbols import Symbol

__all__ = ["binary_cross_entropy_with_logits", "cross_entropy", "ctc", "mean_absolute_error", "mean_squared_error"]

HIDDEN: Final = -1e30  # the logarithm of the probability of what cannot be: finite, so that no gradient is NaN


def mean_squared_error(x: Symbol, target: Any) -> Symbol:
    """The mean of (x - target)**2.  x: f32 of any dims; target: a Symbol, an array or a number that broadcasts with it.

    Raises InvalidArguments.
    """
    difference = symbol("x", x) - target
    return mean(difference * difference)


def mean_absolute_error(x: Symbol, target: Any) -> Symbol:
    """The mean of |x - target|, as `mean_squared_error`; where they are equal the gradient is 0."""
    return mean(symbol("x", x).graph.apply("Abs", x - target))


def binary_cross_entropy_with_logits(logits: Symbol, target: Any) -> Symbol:
    """The mean of log(1 + exp(logits)) - logits target, which is -target log p - (1 - target) log(1 - p) of p =
    1 / (1 + exp(-logits)), and right however large logits are.

    logits: f32 of any dims; target: probabilities that broadcast with them.  Raises InvalidArguments.
    """
    return mean(symbol("logits", logits).graph.apply("Softplus", logits) - logits * target)


def cross_entropy(scores: Symbol, target: Any, *, smoothing: float = 0.0) -> Symbol:
    """The mean of -log softmax(scores)[target], with a share of every class besides (Szegedy et al., 2016).

    scores: f32[n, classes, ...]; target: int64[n, ...]; smoothing: the share, from 0 to below 1, that all classes have
    alike in what is aimed at.  Raises InvalidArguments.
    """
    graph = symbol("scores", scores).graph
    if type(smoothing) not in (int, float) or not 0 <= smoothing < 1:
        raise InvalidArguments(f"smoothing must be a number from 0 to below 1, not {shown(smoothing)}")
    if not smoothing:
        return graph.apply("SoftmaxCrossEntropyLoss", scores, target)  # type: ignore[no-any-return]
    chosen, logs = graph.apply("SoftmaxCrossEntropyLoss", scores, target, results=2)
    aimed: Symbol = chosen * (1 - smoothing) - mean(logs) * smoothing
    return aimed


def ctc(scores: Symbol, targets: Any, target_lengths: Any, input_lengths: Any = None, *, blank: int = 0) -> Symbol:
    """The mean over sequences of -log P(target | scores) / max(length of target, 1), where P sums all ways to write the
    target with blanks and repetitions (Graves et al., 2006; equations 6 to 8).

    scores: f32[steps, n, classes], whose softmax has the probabilities of a step; targets: int64[n, most labels], of
    which those behind a sequence's length may be any class; target_lengths, input_lengths: int64[n], of labels and of
    steps, default all; blank: the class that writes nothing.  A target that is too long for its steps, or a length that
    there is not, costs some 1e30 by its length.  Every step is some ten primitives.  Dims must be fixed.  Raises
    InvalidArguments.
    """
    apply = symbol("scores", scores).graph.apply
    steps, n, classes = known_dims("scores", scores, 3)
    _, most = known_dims("targets", targets, 2)
    if type(blank) is not int or not 0 <= blank < classes:
        raise InvalidArguments(f"blank must be one of {classes} classes, not {shown(blank)}")
    states = 2 * most + 1
    labels = apply("Reshape", apply("Concat", *blanks_and(apply, targets, n, most, blank), axis=2), ints(n, 2 * most))
    labels = apply("Concat", labels, np.full((n, 1), blank, np.int64), axis=1)
    every = apply("Expand", apply("Unsqueeze", labels, ints(0)), ints(steps, n, states))
    written = apply("GatherElements", apply("LogSoftmax", scores, axis=2), every, axis=2)
    same = apply("Equal", part(apply, labels, 1, 2, states), part(apply, labels, 1, 0, states - 2))
    skips = apply("Where", same, np.float32(HIDDEN), np.float32(0))  # from a label to the next, unless they are equal
    at = np.where(np.arange(states) < 2, 0, HIDDEN).astype(np.float32) + step_of(apply, written, 0, n, states)
    for t in range(1, steps):
        ways = [at, moved(apply, at, 1, states), moved(apply, at, 2, states, skips)]
        both = apply("Concat", *(apply("Unsqueeze", way, ints(0)) for way in ways), axis=0)
        new = apply("ReduceLogSumExp", both, ints(0), keepdims=0) + step_of(apply, written, t, n, states)
        at = new if input_lengths is None else apply("Where", later(apply, input_lengths, t), new, at)
    ends = apply("Unsqueeze", target_lengths, ints(1))
    last = apply("Mul", ends, np.array(2, np.int64))
    place = np.arange(states, dtype=np.int64)[None]
    is_end = apply("Or", apply("Equal", place, last), apply("Equal", place + 1, last))
    logs = apply("ReduceLogSumExp", apply("Where", is_end, at, np.float32(HIDDEN)), ints(1), keepdims=0)
    return mean(0 - logs / apply("Max", apply("Cast", target_lengths, to=1), np.float32(1)))


def blanks_and(apply: Any, targets: Any, n: int, most: int, blank: int) -> tuple[Any, Any]:
    return np.full((n, most, 1), blank, np.int64), apply("Unsqueeze", targets, ints(2))


def part(apply: Any, x: Any, axis: int, start: int, end: int) -> Any:
    return apply("Slice", x, ints(start), ints(end), ints(axis))


def step_of(apply: Any, written: Any, t: int, n: int, states: int) -> Any:
    return apply("Reshape", part(apply, written, 0, t, t + 1), ints(n, states))


def moved(apply: Any, at: Any, by: int, states: int, cost: Any = None) -> Any:
    """What comes from so many states before."""
    rest = part(apply, at, 1, 0, states - by)
    rest = rest if cost is None else rest + cost
    return apply("Pad", rest, ints(0, by, 0, 0), np.float32(HIDDEN))


def later(apply: Any, lengths: Any, t: int) -> Any:
    """Whether step t is one of a sequence."""
    return apply("Unsqueeze", apply("Greater", lengths, np.array(t, np.int64)), ints(1))


def ints(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def mean(x: Symbol) -> Symbol:
    return x.graph.apply("ReduceMean", x, keepdims=0)  # type: ignore[no-any-return]


def symbol(name: str, x: Any) -> Symbol:
    """Raises InvalidArguments for what is no value of a graph."""
    if not isinstance(x, Symbol):
        raise InvalidArguments(f"{name} must be a Symbol of a graph, not {shown(x)}")
    return x


def known_dims(name: str, x: Any, count: int) -> tuple[int, ...]:
    """Raises InvalidArguments for another number of them."""
    try:
        dims = symbol_dims(x) if isinstance(x, Symbol) else tuple(np.asarray(x).shape)
    except AsmdnnError:
        raise
    except Exception:  # whatever the caller's object does
        raise InvalidArguments(f"{name} must be a Symbol or an array, not {shown(x)}") from None
    if len(dims) != count or 0 in dims:
        raise InvalidArguments(f"{name} has dims {dims}, ctc takes {counted(count, 'dim')}, none of them 0")
    return dims
