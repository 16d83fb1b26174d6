"""`f.compare(reference, cases=1000)`: random arguments, the same through both, and whatever differs.

Every array is as long as the footprint says and lies between guard bytes: what is written beside it is found, and what
is read beside it are NaNs.  prove() shows the same for all data; here it is the values that are in question.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from operator import index
from typing import Any, Final

import numpy as np

from asmdnn.asm.converters import dtype_of
from asmdnn.asm.footprint import Reaches
from asmdnn.asm.prototype import CArgument, Prototype
from asmdnn.errors import InvalidArguments, shown
from asmdnn.records import dataclass

GUARD_BYTES: Final = 256
MOST_VALUES: Final = 1 << 20
SIZES: Final = (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 255, 257)
Tolerance = Callable[[Any, Any], Any]
Draw = Callable[[np.random.Generator, "np.dtype[Any]", int], Any]


def well_conditioned(rng: np.random.Generator, dtype: "np.dtype[Any]", size: int) -> Any:
    """Numbers in [0.5, 2), whose sums and products keep all digits; integers in [0, 127)."""
    return rng.uniform(0.5, 2, size) if dtype.kind == "f" else rng.integers(0, 127, size)


def ulp(units: float) -> Tolerance:
    """Differences of so many units in the last place of the larger magnitude; for sums use an absolute bound, too."""

    def allows(got: Any, wanted: Any) -> Any:
        a, b = np.asarray(got), np.asarray(wanted)
        larger = np.maximum(np.abs(a), np.abs(b)).astype(a.dtype)
        return (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= units * np.spacing(larger))

    return allows


def within(absolute: float, relative: float = 0.0) -> Tolerance:
    """Differences of at most absolute + relative * |wanted|."""
    return lambda got, wanted: np.isclose(got, wanted, rtol=relative, atol=absolute, equal_nan=True)


def exact(got: Any, wanted: Any) -> Any:
    """Equal values, NaNs being equal."""
    return np.equal(got, wanted) | ((got != got) & (wanted != wanted))


@dataclass(frozen=True)
class Comparison:
    """cases: how many were equal within the tolerance; all of them, or compare() would have raised."""

    name: str
    cases: int

    def __str__(self) -> str:
        return f"{self.name}: {self.cases} random cases agree"


class Mismatch(AssertionError):
    """A case in which a function and its reference differ; `arguments` are what both were given."""

    def __init__(self, message: str, arguments: Sequence[Any]) -> None:
        super().__init__(message)
        self.arguments = tuple(arguments)


class RandomCases:
    """Random arguments of one function."""

    def __init__(self, prototype: Prototype, extents: Reaches, ranges: Mapping[str, Any], draw: Draw) -> None:
        self.prototype, self._extents, self._draw = prototype, extents, draw
        self._integers = [a for a in prototype.arguments if a.type.is_integer]
        unknown = ranges.keys() - {a.name for a in self._integers}
        if unknown:
            raise InvalidArguments(f"compare({', '.join(sorted(unknown))}=...) names no integer of {prototype}.")
        self._ranges = {name: _values(name, values) for name, values in ranges.items()}

    def draw(self, rng: np.random.Generator) -> "tuple[list[Any], list[np.ndarray[Any, Any]]]":
        """The arguments, and the guarded memory of each array."""
        lists = [self._ranges.get(a.name, SIZES) for a in self._integers]
        numbers = [values[int(rng.integers(len(values)))] for values in lists]
        sizes, given, guarded = iter(numbers), [], []
        for argument in self.prototype.arguments:
            if argument.type.is_pointer:
                memory, array = self._array(rng, argument, numbers)
                guarded.append(memory)
                given.append(array)
            else:
                given.append(float(self._draw(rng, np.dtype("f8"), 1)[0]) if argument.type.is_float else next(sizes))
        return given, guarded

    def _array(self, rng: np.random.Generator, argument: CArgument, numbers: Sequence[int]) -> Any:
        found = [side[argument.name] for side in self._extents if argument.name in side]
        if not found:
            raise InvalidArguments(f"compare of {self.prototype.name!r} needs reads= or writes= of {argument.name}.")
        size = max(0, *(extent.size(*numbers) for extent in found))
        dtype = dtype_of(argument.type.item) or np.dtype(np.uint8)
        memory = np.full(size + 2 * GUARD_BYTES, 0xFF, np.uint8)  # NaNs of every width
        array = memory[GUARD_BYTES : GUARD_BYTES + size // dtype.itemsize * dtype.itemsize].view(dtype)
        array[:] = np.asarray(self._draw(rng, dtype, array.size)).astype(dtype)
        return memory, array


def _values(name: str, stated: Any) -> Sequence[int]:
    """The values that an integer argument is drawn from.  Raises InvalidArguments."""
    if isinstance(stated, range) and stated:
        return stated
    try:
        found = [index(value) for value in islice(stated, MOST_VALUES + 1)]
    except Exception:  # whatever the caller's object does
        found = []
    if not 0 < len(found) <= MOST_VALUES:
        raise InvalidArguments(f"compare({name}={shown(stated)}) needs a range, or 1 to {MOST_VALUES} integers.")
    return found


def compare(
    call: Callable[..., Any],
    cases: RandomCases,
    reference: Callable[..., Any],
    count: int,
    tolerance: Tolerance,
    seed: int,
) -> Comparison:
    """Raises Mismatch for the first case that differs, or in which something beside an array was written.

    reference: gives the result, or, for a void function, writes its arrays as `call` does.  A function of Python takes
    the same arguments; any other callable, such as numpy.dot, takes those that are not integers.
    """
    if not callable(reference):
        raise InvalidArguments(f"reference must be a function of the same arguments, not {shown(reference)}.")
    if not callable(tolerance):
        raise InvalidArguments(f"tolerance must be a function, such as asm.within(1e-6), not {shown(tolerance)}.")
    if not isinstance(count, int) or count < 1:
        raise InvalidArguments(f"cases must be an integer from 1 on, not {shown(count)}.")
    whole = inspect.isfunction(reference)
    rng, name = np.random.default_rng(seed), cases.prototype.name
    for case in range(count):
        given, guarded = cases.draw(rng)
        ours = [value.copy() if isinstance(value, np.ndarray) else value for value in given]
        result, wanted = call(*given), reference(*(v for v in ours if whole or not isinstance(v, int)))
        what_was_given = ", ".join(str(v) if not isinstance(v, np.ndarray) else f"{v.dtype}[{v.size}]" for v in given)
        for what, got, right in _outcomes(cases, given, ours, result, wanted):
            agree = np.asarray(tolerance(got, right))
            if not agree.all():
                first = int(np.argmin(agree.ravel()))
                at = f"[{first}]" if agree.ndim else ""
                values = f"{np.ravel(got)[first]!r}, where the reference has {np.ravel(right)[first]!r}"
                raise Mismatch(f"{name}({what_was_given}), case {case}: {what}{at} is {values}.", ours)
        for memory in guarded:
            if (memory[:GUARD_BYTES] != 0xFF).any() or (memory[-GUARD_BYTES:] != 0xFF).any():
                raise Mismatch(f"{name}({what_was_given}), case {case}: bytes beside an array were written.", ours)
    return Comparison(name, count)


def _outcomes(
    cases: RandomCases, given: Sequence[Any], ours: Sequence[Any], result: Any, wanted: Any
) -> Iterator[tuple[str, Any, Any]]:
    returned = cases.prototype.result
    if not returned.is_void:
        yield "the result", *_results(cases.prototype, result, wanted)
    for argument, got, right in zip(cases.prototype.arguments, given, ours, strict=True):
        if isinstance(got, np.ndarray):
            yield argument.name, got, right


def _results(prototype: Prototype, result: Any, wanted: Any) -> tuple[Any, Any]:
    """Both in a type that holds them.  Raises InvalidArguments for a reference that gives no number."""
    is_beyond = isinstance(wanted, int) and abs(wanted) >= 1 << 64  # of numpy's integers
    right = np.asarray((-np.inf if wanted < 0 else np.inf) if is_beyond else wanted)
    if right.size != 1 or right.dtype.kind not in "biuf":
        what = f"the reference gave {shown(wanted)}, where {prototype.name!r} gives {prototype.result}"
        raise InvalidArguments(f"{what}: let it return a number.")
    if prototype.result.is_float:
        dtype = np.dtype(f"f{prototype.result.size_bytes}")
        return np.asarray(result, dtype), right.reshape(()).astype(dtype)
    numbers = int(result), right.item()
    for limits in (np.iinfo(np.int64), np.iinfo(np.uint64)):
        if right.dtype.kind != "f" and limits.min <= min(numbers) <= max(numbers) <= limits.max:
            return np.asarray(numbers[0], limits.dtype), np.asarray(numbers[1], limits.dtype)
    return np.asarray(numbers[0], np.float64), np.asarray(numbers[1], np.float64)
