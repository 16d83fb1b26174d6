"""Dims of inputs: those of the model, those that a caller adds, and what is open until arrays come."""

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any

from asmdnn.errors import InvalidArguments, did_you_mean, shown
from asmdnn.memory.sequences import no_text
from asmdnn.network.graph import LARGEST_DIM, TensorType
from asmdnn.network.passing import name_of, type_named
from asmdnn.records import dataclass

Declared = Mapping[str, TensorType]
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Dim:
    """A dim of an input that is open: from `least` to `most`, a multiple of `multiple`.

    Dims of one name have one size in a call.  Raises InvalidArguments.
    """

    name: str
    least: int = 0
    most: int = LARGEST_DIM
    multiple: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidArguments(f"Dim.name must be a text such as 'width', not {shown(self.name)}")
        for field, low in (("least", 0), ("most", 0), ("multiple", 1)):
            value = getattr(self, field)
            if type(value) is not int or not low <= value <= LARGEST_DIM:
                raise InvalidArguments(f"Dim.{field} must be an integer from {low} to 2**63 - 1, not {shown(value)}")
        if self.least > self.most:
            raise InvalidArguments(f"Dim {self.name!r} goes from {self.least} to {self.most}: swap them")

    def __str__(self) -> str:
        return self.name

    def refusal(self, size: int) -> str:
        """Why it cannot have this size, or ""."""
        if not self.least <= size <= self.most:
            return f"is {size}, {self.name} is from {self.least} to {self.most}"
        return f"is {size}, {self.name} is a multiple of {self.multiple}" if size % self.multiple else ""


AnyDim = int | str | Dim | None


@dataclass(frozen=True)
class OpenDims:
    """What inputs may be.  declared: as in the model, those that are constants left out; given: dims that the caller
    has named, bounded or fixed, by input."""

    declared: Declared
    given: Mapping[str, tuple[AnyDim, ...]]

    @property
    def open_inputs(self) -> tuple[str, ...]:
        return tuple(name for name in self.declared if not is_fixed(self.of(name)))

    def of(self, name: str) -> tuple[AnyDim, ...] | None:
        """Dims that are numbers, named or neither; None: not even their number is known."""
        known, given = self.declared[name].shape, self.given.get(name)
        if given is None or known is None:
            return known if given is None else given
        return tuple(n if isinstance(n, int) or m is None else m for n, m in zip(known, given, strict=True))

    @property
    def fixed(self) -> Shapes:
        """What the caller has given as numbers alone."""
        return {name: dims for name, dims in self.given.items() if all(type(n) is int for n in dims)}  # type: ignore[misc]

    def __str__(self) -> str:
        return ", ".join(f"{name} {self.text(name)}" for name in self.declared)

    def text(self, name: str) -> str:
        """For example "float32[batch, 3, ?, width]"."""
        dims = self.of(name)
        words = "..." if dims is None else ", ".join("?" if n in (None, "") else str(n) for n in dims)
        return f"{self.declared[name].dtype.name}[{words}]"

    def check(self, shapes: Shapes) -> None:
        """Raise InvalidArguments for dims that are not those wanted, or that contradict one another."""
        sizes: dict[Dim | str, tuple[str, int]] = {}
        for name, shape in shapes.items():
            dims = self.of(name)
            if not fits(dims, shape):
                raise InvalidArguments(f"input {name} is {list(shape)}, the network takes {self.text(name)}")
            for dim, size in zip(self.given.get(name, shape), shape, strict=True):
                if isinstance(dim, Dim) and (reason := dim.refusal(size)):
                    raise InvalidArguments(f"input {name} is {list(shape)}, a dim of which {reason}")
                if isinstance(dim, Dim | str):
                    other, known = sizes.setdefault(dim, (name, size))
                    if known != size:
                        both = f"{known} in input {other} and {size} in input {name}"
                        raise InvalidArguments(f"{dim} is {both}: make them equal")


def open_dims(declared: Declared, shapes: Any, constants: Iterable[str]) -> OpenDims:
    """The dims of all inputs but the constants.  Raises InvalidArguments for what does not fit the model."""
    if shapes is not None and not isinstance(shapes, Mapping):
        raise InvalidArguments(f"shapes must map names of inputs to values, not {shown(shapes)}")
    given = {name: declared_dims(name, declared, value) for name, value in (shapes or {}).items()}
    left_out = set(constants)
    return OpenDims({name: each for name, each in declared.items() if name not in left_out}, given)


def declared_dims(name: Any, declared: Declared, value: Any) -> tuple[AnyDim, ...]:
    if not isinstance(name, str) or name not in declared:
        raise InvalidArguments(f"{shown(name)} is no input of the model: {did_you_mean(shown(name), declared)}")
    try:
        dims = tuple(n if n is None or isinstance(n, str | Dim) else index(n) for n in no_text(value))
    except Exception:  # whatever the caller's object does
        raise InvalidArguments(f"shapes[{name!r}] must be integers, names or Dims, not {shown(value)}") from None
    known = declared[name].shape
    if not all(0 <= n <= LARGEST_DIM for n in dims if isinstance(n, int)) or not fits(known, dims):
        raise InvalidArguments(f"shapes[{name!r}] is {shown(value)}, which does not fit the model's {declared[name]}")
    return dims


def fits(known: tuple[AnyDim, ...] | None, dims: tuple[AnyDim, ...]) -> bool:
    """Whether every dim may be what is known of it."""
    if known is None:
        return True
    pairs = zip(known, dims, strict=False)
    return len(known) == len(dims) and all(not isinstance(n, int) or may_be(m, n) for n, m in pairs)


def may_be(dim: AnyDim, size: int) -> bool:
    if isinstance(dim, Dim):
        return not dim.refusal(size)
    return not isinstance(dim, int) or dim == size


def is_fixed(dims: tuple[AnyDim, ...] | None) -> bool:
    return dims is not None and all(isinstance(n, int) for n in dims)


def open_text(dims: OpenDims) -> dict[str, Any]:
    """What inputs may be, as JSON."""
    declared = [[name, [name_of(known.dtype), dims_text(known.shape)]] for name, known in dims.declared.items()]
    return {"declared": declared, "given": [[name, dims_text(given)] for name, given in dims.given.items()]}


def open_read(text: Mapping[str, Any]) -> OpenDims:
    """What `open_text` wrote.  Raises anything for what it did not."""
    declared = {name: TensorType(type_named(dtype), dims_read(dims)) for name, (dtype, dims) in text["declared"]}
    return OpenDims(declared, {name: dims_read(dims) or () for name, dims in text["given"]})


def dims_text(dims: Any) -> Any:
    """Dims that are numbers, names, `Dim`s or None as JSON."""
    if dims is None:
        return None
    return [{"dim": [n.name, n.least, n.most, n.multiple]} if isinstance(n, Dim) else n for n in dims]


def dims_read(text: Any) -> Any:
    """What `dims_text` wrote.  Raises anything for what it did not."""
    dims = None if text is None else tuple(Dim(*n["dim"]) if isinstance(n, dict) else n for n in text)
    if dims is not None and any(type(n) not in (int, str, Dim, type(None)) for n in dims):
        raise ValueError(dims)
    return dims
