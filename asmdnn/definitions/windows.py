"""Windows that slide along spatial axes, and what pooling makes of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from asmdnn.definitions.rounding import UNIT_ROUNDOFF, Array, Doubles
from asmdnn.records import dataclass

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """For each spatial axis: the kernel's size, its step, the step between its positions, and the padding; after may
    be negative, which leaves elements out."""

    kernel: Sizes
    strides: Sizes
    dilations: Sizes
    before: Sizes
    after: Sizes

    def outputs(self, sizes: Sizes, rounds_up: bool = False) -> Sizes:
        """How many positions there are; rounds_up: one more where the last step does not fit, if it starts inside.

        Raises ValueError if there is none.
        """
        found = []
        for n, k, s, d, a, b in zip(sizes, *self.fields(), strict=True):
            room = n + a + b - (k - 1) * d - 1
            count = (-(-room // s) if rounds_up else room // s) + 1
            if rounds_up and (count - 1) * s >= n + a:
                count -= 1
            if count < 1:
                raise ValueError(f"a window of {self.kernel} does not fit into {sizes}")
            found.append(count)
        return tuple(found)

    def fields(self) -> tuple[Sizes, ...]:
        return self.kernel, self.strides, self.dilations, self.before, self.after


def padded(x: Array, window: SlidingWindow, value: Any = 0) -> Array:
    """x (n, c, ...) with the window's padding around its spatial axes; negative padding cuts off."""
    kept = [slice(None), slice(None)]
    for n, before, after in zip(x.shape[2:], window.before, window.after, strict=True):
        kept.append(slice(max(0, -before), n - max(0, -after)))
    around = [(max(0, a), max(0, b)) for a, b in zip(window.before, window.after, strict=True)]
    return np.pad(x[tuple(kept)], [(0, 0), (0, 0), *around], constant_values=value)


def taps(x: Array, window: SlidingWindow, outside: Any = 0) -> Iterator[tuple[Sizes, Array]]:
    """Every position of the kernel, row by row, and what each result finds there: a view."""
    outputs, whole = window.outputs(x.shape[2:]), padded(x, window, outside)
    for at in np.ndindex(*window.kernel):
        axes = zip(at, window.dilations, window.strides, outputs, strict=True)
        cuts = (slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, s, n in axes)
        yield at, whole[(slice(None), slice(None), *cuts)]


def window_sums(x: Array, window: SlidingWindow) -> Array:
    """The sum of each window, of floats in double precision."""
    dims = (*x.shape[:2], *window.outputs(x.shape[2:]))
    total = np.zeros(dims, np.result_type(x, np.float64) if x.dtype.kind == "f" else x.dtype)
    for _, part in taps(x, window):
        total += part
    return total


def spread(parts: Iterator[tuple[Sizes, Array]], window: SlidingWindow, sizes: Sizes) -> Doubles:
    """The adjoint of `taps`: the sum of parts, one for each position of the kernel, where it takes them from, in a
    plane of these sizes."""
    total = None
    before = [max(0, a) for a in window.before]
    for at, part in parts:
        if total is None:
            around = [n + a + max(0, b) for n, a, b in zip(sizes, before, window.after, strict=True)]
            total = np.zeros((*part.shape[:2], *around))
        axes = zip(at, window.dilations, window.strides, part.shape[2:], window.before, strict=True)
        first = ((t * d + max(0, -a), s, n) for t, d, s, n, a in axes)
        cuts = (slice(i, i + (n - 1) * s + 1, s) for i, s, n in first)
        total[(slice(None), slice(None), *cuts)] += part
    assert total is not None, "a kernel has positions"
    return total[(slice(None), slice(None), *(slice(a, a + n) for a, n in zip(before, sizes, strict=True)))]


def element_numbers(sizes: Sizes) -> Array:
    """Of the elements of a plane, which broadcast to a tensor."""
    return np.arange(np.prod(sizes), dtype=np.int64).reshape(1, 1, *sizes)


def means_gradient(d: Array, window: SlidingWindow, sizes: Sizes, includes_padding: bool) -> Doubles:
    """Of x, of d that of its window_means."""
    _, count = window_means(np.ones((1, 1, *sizes)), window, includes_padding)
    return spread(((at, d / count) for at in np.ndindex(*window.kernel)), window, sizes)


def largest_gradient(d: Array, where: Array, window: SlidingWindow, sizes: Sizes) -> Doubles:
    """Of x, of d that of its `largest`, which were found at `where`, as numbers of elements of a plane."""
    numbers = element_numbers(sizes)
    return spread(((at, np.where(n == where, d, 0)) for at, n in taps(numbers, window, -1)), window, sizes)


def position_gradient(d: Array, where: Array, window: SlidingWindow, sizes: Sizes) -> Doubles:
    """As largest_gradient, of numbers of positions in the windows."""
    positions = enumerate(np.ndindex(*window.kernel))
    return spread(((at, np.where(n == where, d, 0)) for n, at in positions), window, sizes)


def positions_of(where: Array, window: SlidingWindow, sizes: Sizes) -> Array:
    """Numbers of elements of a plane as those of positions in the windows that have them."""
    found = np.zeros(where.shape, np.int64)
    for position, (_, number) in enumerate(taps(element_numbers(sizes), window, -1)):
        found = np.where(number == where, position, found)
    return found


def window_means(x: Array, window: SlidingWindow, includes_padding: bool) -> tuple[Array, Array]:
    """(The mean of each window, how many elements count): all of the kernel, or those that are none of padding."""
    if includes_padding:
        count = np.array(np.prod(window.kernel))
    else:
        count = window_sums(np.ones((1, 1, *x.shape[2:]), x.dtype), window)
    return np.asarray(window_sums(x, window) / count, x.dtype), count


def mean_error(x: Doubles, mean: Doubles, count: Array, window: SlidingWindow, exact: bool) -> Doubles:
    """A rounding of every partial sum, of which those of small integers have none, and one of the quotient."""
    if exact:
        return np.asarray(UNIT_ROUNDOFF * np.abs(mean))
    return np.asarray(UNIT_ROUNDOFF * (np.prod(window.kernel) + 1) * window_sums(np.abs(x), window) / count)


def largest(x: Array, window: SlidingWindow, places: Array) -> tuple[Array, Array]:
    """The maximum of each window, NaN if it has one, and where the first of them is: of `places`, which are x's or
    broadcast to it."""
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    best: Array | None = None
    for (_, part), (_, place) in zip(taps(x, window, lowest), taps(places, window), strict=True):
        if best is None:
            best, where = part.copy(), np.broadcast_to(place, part.shape)
            continue
        larger = (part > best) | (np.isnan(part) & ~np.isnan(best))
        best, where = np.where(larger, part, best), np.where(larger, place, where)
    assert best is not None, "a kernel has positions"
    return best, where


def largest_and_places(x: Array, window: SlidingWindow, in_windows: bool) -> tuple[Array, Array]:
    """The maxima, and where the first of them are: numbers of elements of the plane, or of positions in windows."""
    values, where = largest(x, window, element_numbers(x.shape[2:]))
    return values, positions_of(where, window, x.shape[2:]) if in_windows else where


def adaptive_windows(x: Array, outputs: Sizes) -> Iterator[tuple[Sizes, Array, Array]]:
    """Of each result of adaptive pooling where it is, its window of x (n, c, ...) as (n, c, elements), and the numbers
    of these in the plane."""
    places = np.arange(np.prod(x.shape[2:])).reshape(x.shape[2:])
    for at in np.ndindex(*outputs):
        axes = zip(at, x.shape[2:], outputs, strict=True)
        cuts = tuple(slice(i * n // made, -(-(i + 1) * n // made)) for i, n, made in axes)
        inside = places[cuts].ravel()
        yield at, x[(slice(None), slice(None), *cuts)].reshape(*x.shape[:2], len(inside)), inside


def adaptive_means(x: Array, outputs: Sizes) -> tuple[Doubles, Doubles]:
    """The mean of each window, and how far sums in f32 may be from it."""
    mean, error = np.zeros((2, *x.shape[:2], *outputs))
    for at, part, places in adaptive_windows(x, outputs):
        mean[(..., *at)] = part.mean(-1)
        error[(..., *at)] = UNIT_ROUNDOFF * (len(places) + 1) * np.abs(part).mean(-1)
    return mean, error


def adaptive_largest(x: Array, outputs: Sizes) -> tuple[Array, Array]:
    """The maximum of each window, and the number of the first of them in the plane."""
    best, where = np.zeros((2, *x.shape[:2], *outputs))
    for at, part, places in adaptive_windows(x, outputs):
        best[(..., *at)], where[(..., *at)] = part.max(-1), places[part.argmax(-1)]
    return best, where
