"""Ranges of open dims: every shape that they have, for `prepare`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import lcm, prod
from typing import Any, Final, NamedTuple

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory.sequences import items
from asmdnn.network.dims import AnyDim, Dim, OpenDims, Shapes, declared_dims
from asmdnn.network.graph import LARGEST_DIM

MOST_SHAPES: Final = 10_000  # of ranges: each is planned
Progress = Callable[[int, int], object]


def shapes_of(dims: OpenDims, asked: Any) -> tuple[list[Mapping[str, Any]], bool]:
    """The shapes that `prepare` is asked for, and whether ranges say some of them.

    Raises InvalidArguments for ranges that do not fit the network, have no end, or have too many shapes."""
    if asked is None:
        return Variables(dims, {}).shapes(), True
    try:
        several = [asked] if isinstance(asked, Mapping) else items(asked)
    except Exception:  # whatever the caller's object does
        raise InvalidArguments(f"shapes must be several, such as [{{'x': dims}}], not {shown(asked)}") from None
    found, is_range = list[Mapping[str, Any]](), [says_ranges(dims, each) for each in several]
    for each, is_one in zip(several, is_range, strict=True):
        found += Variables(dims, each).shapes() if is_one else [each]
        if len(found) > MOST_SHAPES + len(several):
            raise too_many(len(found), f"{len(several)} ranges")
    return found, any(is_range)


def says_ranges(dims: OpenDims, shapes: Any) -> bool:
    """Whether not all dims are numbers, or inputs are left out that were loaded with ranges.  What is none is looked at
    where shapes are."""
    if not isinstance(shapes, Mapping):
        return False
    try:
        if any(name not in shapes and name in dims.given for name in dims.open_inputs):
            return True
        return any(n is None or isinstance(n, str | Dim) for dims in shapes.values() for n in items(dims))
    except Exception:  # whatever the caller's object does
        return False


def told_by(progress: Any) -> Progress:
    """It, or nothing; what it raises is said to be its own.  Raises InvalidArguments for what cannot be called."""
    if progress is not None and not callable(progress):
        raise InvalidArguments(f"progress must be a function of two numbers, or None, not {shown(progress)}")

    def told(done: int, count: int) -> None:
        try:
            if progress is not None:
                progress(done, count)
        except Exception as error:
            raise InvalidArguments(f"progress({done}, {count}) raised {shown(error)}") from error

    return told


def too_many(count: int, of: str) -> InvalidArguments:
    way_out = "give dims a multiple, or prepare smaller ranges"
    return InvalidArguments(f"prepare takes {MOST_SHAPES} shapes, and there are {count} of {of}: {way_out}")


class Variable(NamedTuple):
    """What dims of one name are.  in_file: a name that the model's file has, and no caller."""

    name: str
    in_file: bool = False


class Variables:
    """The dims of all open inputs, as numbers and variables.  asked: as `prepare` takes it, of some inputs.

    Dims to which a caller has given one name are one variable.  A name of the file joins those that no caller has said,
    and what was said first of such a dim."""

    def __init__(self, dims: OpenDims, asked: Mapping[str, Any]) -> None:
        self._dims = dims
        self._given = {name: declared_dims(name, dims.declared, value) for name, value in asked.items()}
        self._same, self._ranges = dict[Variable, Variable](), dict[Variable, list[Dim]]()
        self._places = {
            name: tuple(self._placed(f"{name}[{i}]", known) for i, known in enumerate(self._known(name)))
            for name in dict.fromkeys([*dims.open_inputs, *self._given])
        }
        used = dict.fromkeys(self._root(n) for each in self._places.values() for n in each if isinstance(n, Variable))
        self._sizes = {variable: self._sizes_of(variable) for variable in used}

    def shapes(self) -> list[Mapping[str, Any]]:
        """Raises InvalidArguments for too many."""
        count = prod(map(len, self._sizes.values()))
        if count > MOST_SHAPES:
            raise too_many(count, ", ".join(f"{len(sizes)} {x.name}" for x, sizes in self._sizes.items()))
        return [self._shapes_with(dict(zip(self._sizes, one, strict=True))) for one in product(*self._sizes.values())]

    def _shapes_with(self, sizes: Mapping[Variable, int]) -> Shapes:
        def size(n: int | Variable) -> int:
            return sizes[self._root(n)] if isinstance(n, Variable) else n

        return {name: tuple(map(size, dims)) for name, dims in self._places.items()}

    def _known(self, name: str) -> Iterator[tuple[AnyDim, AnyDim, AnyDim]]:
        """Of each dim of an input: what `prepare` is asked for, what the network was loaded with, the file's."""
        file, own, asked = self._dims.declared[name].shape, self._dims.given.get(name), self._given.get(name)
        known = next((dims for dims in (asked, own, file) if dims is not None), None)
        if known is None:
            raise InvalidArguments(f"input {name} may have any number of dims: say them, as in {{{name!r}: (1, 64)}}")
        nothing = (None,) * len(known)
        return zip(asked or nothing, own or nothing, file or nothing, strict=True)

    def _placed(self, place: str, known: tuple[AnyDim, AnyDim, AnyDim]) -> int | Variable:
        """A number, or a variable, whose ranges are noted."""
        said = [Variable(str(n)) for n in known[:2] if isinstance(n, str | Dim)]
        in_file = Variable(known[2], in_file=True) if isinstance(known[2], str) and known[2] else None
        numbers = [n for n in known if isinstance(n, int)]
        if numbers and not said:
            return numbers[0]
        own = said[0] if said else in_file or Variable(place)
        for other in said[1:]:
            if self._root(other) != self._root(own):
                self._same[self._root(other)] = self._root(own)
        if in_file and in_file != own:
            self._same.setdefault(in_file, own)
        ranges = [n for n in known if isinstance(n, Dim)] + [Dim(own.name, n, n) for n in numbers]
        self._ranges.setdefault(own, []).extend(ranges)
        return own

    def _root(self, variable: Variable) -> Variable:
        """The one that stands for all that are the same."""
        while variable in self._same:
            variable = self._same[variable]
        return variable

    def _sizes_of(self, variable: Variable) -> Sequence[int]:
        """Raises InvalidArguments where there is no end, or no size."""
        ranges = [dim for each, dims in self._ranges.items() if self._root(each) == variable for dim in dims]
        most = min([dim.most for dim in ranges], default=LARGEST_DIM)
        if most == LARGEST_DIM:
            example = f"dnn.Dim({variable.name!r}, 1, 64)"
            way_out = f"give it a range, as {example}"
            raise InvalidArguments(f"{variable.name} of {self._dims} has no largest size: {way_out}")
        step, least = lcm(*(dim.multiple for dim in ranges)), max(dim.least for dim in ranges)
        sizes = range(-(-least // step) * step, most + 1, step)
        if not sizes:
            raise InvalidArguments(f"{variable.name} has no size that all of its ranges allow: make them overlap")
        return sizes
