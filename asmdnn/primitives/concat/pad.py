"""Padding: a tensor with elements around it, constant, or repeated, or mirrored."""

from collections.abc import Sequence
from itertools import product
from numbers import Real
from typing import Literal, NamedTuple

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.exact import exact
from asmdnn.isa.elements import element_of
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly, nothing
from asmdnn.planning.phase import Int64, Phase, View
from asmdnn.planning.phases import merged
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.attributes.numbers import check_alg
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.copies import Inside, as_passed_or_copied
from asmdnn.primitives.reorder.schedule import reorder_phases
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.primitives.shapes.tensors import refuse_overlap
from asmdnn.primitives.shapes.windows import MAX_SIZE
from asmdnn.records import dataclass, replace
from asmdnn.types import DataType

NAME = "pad"
CONSTANT, EDGE, REFLECT = MODES = ("constant", "edge", "reflect")
PadMode = Literal["constant", "edge", "reflect"]
VALUE = "value"  # the constant


@exact
@dataclass(frozen=True, slots=True, eq=False)
class Pad:
    """dst has src in its middle, before[d] elements in front of it and after[d] after it along each dim.

    mode: "constant" fills them with `value`, "edge" repeats the outermost element of src, "reflect" mirrors src without
    it, as numpy.pad does.  Any format, one type; before and after are smaller than src's dims in mode reflect.
    Raises InvalidArguments.
    """

    src: MemoryDesc
    dst: MemoryDesc
    before: tuple[int, ...]
    mode: PadMode = "constant"
    value: float = 0.0

    def __post_init__(self) -> None:
        for name, desc in (("src", self.src), ("dst", self.dst)):
            if not isinstance(desc, MemoryDesc) or desc.is_any:
                raise InvalidArguments(f"{name} must be a MemoryDesc with a format, not {shown(desc)}")
        check_alg("Pad.mode", self.mode, MODES)
        if self.dst.ndims != self.src.ndims or self.dst.dtype != self.src.dtype:
            raise InvalidArguments(f"dst is {self.dst}, it must have the type and as many dims as src: {self.src}")
        if not isinstance(self.before, tuple) or len(self.before) != self.src.ndims:
            raise InvalidArguments(f"before must be {self.src.ndims} integers, not {shown(self.before)}")
        for dim, start in enumerate(self.before):
            if isinstance(start, bool) or not isinstance(start, int) or not 0 <= start <= MAX_SIZE:
                raise InvalidArguments(f"before must be integers of at least 0, not {shown(self.before)}")
            self._check_dim(dim, start)
        object.__setattr__(self, "value", number("value", self.value))
        bits_of(self.value, self.src.dtype)

    def _check_dim(self, dim: int, start: int) -> None:
        size, after = self.src.dims[dim], self.after[dim]
        if after < 0:
            raise InvalidArguments(
                f"dim {dim} of dst is {self.dst.dims[dim]}, with src and before it is {size + start}"
            )
        most = {CONSTANT: MAX_SIZE, EDGE: MAX_SIZE if size else 0, REFLECT: max(0, size - 1)}[self.mode]
        if max(start, after) > most:
            raise InvalidArguments(f"dim {dim} of src is {size}, mode {self.mode} pads it by at most {most}")

    @property
    def after(self) -> tuple[int, ...]:
        sizes = zip(self.dst.dims, self.src.dims, self.before, strict=True)
        return tuple(made - size - start for made, size, start in sizes)

    def __str__(self) -> str:
        value = f" {self.value:g}" if self.mode == CONSTANT else ""
        return f"pad {self.mode}{value} of {self.src} to {self.dst}, {self.before} before"


def number(name: str, value: float) -> float:
    """`value` as a float, which may be infinite or NaN, or InvalidArguments naming the field."""
    try:
        if isinstance(value, Real) and not isinstance(value, bool):
            return float(value)
    except OverflowError:
        pass
    raise InvalidArguments(f"{name} must be a number, not {shown(value)}")


def bits_of(value: float, dtype: DataType) -> Int64:
    """int64[1] that begins with the element.  Raises InvalidArguments if the type does not have that number."""
    element = element_of(dtype)
    if element.limits:
        with np.errstate(all="ignore"):
            stored = np.array([value]).astype(dtype.numpy)
        if stored[0] != value:
            raise InvalidArguments(f"value must be a number of type {dtype}, not {shown(value)}")
        return np.frombuffer(stored.tobytes().ljust(8, bytes(1)), np.int64).copy()
    return np.array([element.code(value)], np.int64)


class PadPiece(NamedTuple):
    """`size` elements of dst along a dim from `first` on: those of src from `origin` on, or that one again and again;
    or, mirrored, that one and those before it; or the constant."""

    first: int
    size: int
    origin: int
    kind: Literal["body", "repeated", "mirrored", "constant"]


def inside_of(desc: Pad, attr: Attr, engine: Engine) -> Inside:
    """The plan of a padding.  Raises Refused."""
    refuse_attr(attr, "padding")
    refuse_overlap(dst=desc.dst)
    src, dst = (plain(tensor) for tensor in (desc.src, desc.dst))
    assembly = Assembly(engine.tuning, engine.isa)
    if desc.mode == CONSTANT:
        assembly.constants[VALUE] = bits_of(desc.value, src.dtype)
    found: list[Phase] = []
    for pieces in product(*(pieces_of(desc, dim) for dim in range(dst.ndims))):
        if all(piece.size for piece in pieces):
            ones = [replaced(piece) for piece in pieces]
            source, buffer = source_of(src, ones)
            part = dst.submemory([piece.size for piece in ones], [piece.first for piece in ones])
            made = reorder_phases(source, part, (buffer, "dst"), engine.tuning, isa=assembly.isa)
            found += [one for phase in made for one in mirrored(phase, moves_of(src, dst, pieces))]
    first, *rest = joined(found) or [nothing(2)]
    assembly.add([first, *(replace(phase, independent=True) for phase in rest)])
    whole = assembly.plan(f"{NAME}:{f32_level(engine.isa)}", {"src": src, "dst": dst}, ("dst",))
    return Inside(whole, {"src": desc.src, "dst": desc.dst}, engine.tuning, assembly.isa)


plans = as_passed_or_copied(NAME, inside_of, f32_level)


def replaced(piece: PadPiece) -> PadPiece:
    """Of a mirrored piece the first element, which is copied as others are."""
    return piece._replace(size=1, kind="repeated") if piece.kind == "mirrored" else piece


def moves_of(src: MemoryDesc, dst: MemoryDesc, pieces: Sequence[PadPiece]) -> Int64:
    """int64[n, 2]: how many bytes further in src and dst every element of mirrored pieces lies than the first one."""
    found, size = np.zeros((1, 2), np.int64), src.dtype.size_bytes
    for dim, piece in enumerate(pieces):
        if piece.kind == "mirrored":
            step = np.array([-src.strides[dim] * size, dst.strides[dim] * size])
            found = (found[:, None] + np.arange(piece.size)[:, None] * step).reshape(-1, 2)
    return found


def mirrored(phase: Phase, moves: Int64) -> list[Phase]:
    """The phase once for every move: as one where its records come once and by themselves."""
    if phase.repeats or phase.groups is not None:
        return [replace(phase, records=phase.records + np.array([0, *move])) for move in moves]
    records = np.tile(phase.records, (len(moves), 1))
    records[:, 1:] += np.repeat(moves, len(phase.records), axis=0)
    return [replace(phase, records=records, cycles=np.tile(phase.cycles, len(moves)))]


def joined(phases: Sequence[Phase]) -> list[Phase]:
    """As few phases as there can be: the pieces write disjoint parts of dst, and read none of it."""
    simple: dict[tuple[View, ...], list[Phase]] = {}
    for phase in phases:
        if not phase.repeats and phase.groups is None:
            simple.setdefault(phase.arguments, []).append(phase)
    return [merged(some) for some in simple.values()] + [x for x in phases if x.repeats or x.groups is not None]


def plain(desc: MemoryDesc) -> MemoryDesc:
    """The tensor, or a format for it that can be cut anywhere."""
    return row_major(desc.dims, desc) if desc.inner_blocks else desc


def pieces_of(desc: Pad, dim: int) -> list[PadPiece]:
    """What dst is along a dim."""
    size, start, after = desc.src.dims[dim], desc.before[dim], desc.after[dim]
    found = [PadPiece(start, size, 0, "body")]
    for first, count, edge in ((0, start, 0), (start + size, after, size - 1)):
        if desc.mode == REFLECT and count:
            found.append(PadPiece(first, count, 2 * edge - (first - start), "mirrored"))
        elif count:
            found.append(PadPiece(first, count, edge, "constant" if desc.mode == CONSTANT else "repeated"))
    return found


def source_of(src: MemoryDesc, pieces: Sequence[PadPiece]) -> tuple[MemoryDesc, str]:
    """What a part of dst is copied from, with its dims, and the buffer of it."""
    dims = [piece.size for piece in pieces]
    if any(piece.kind == "constant" for piece in pieces):
        return MemoryDesc(dims, src.dtype, strides=(0,) * src.ndims), VALUE
    read = [piece.size if piece.kind == "body" else 1 for piece in pieces]
    single = src.submemory(read, [piece.origin for piece in pieces])
    strides = [step if piece.kind == "body" else 0 for step, piece in zip(single.strides, pieces, strict=True)]
    return MemoryDesc(dims, src.dtype, strides=strides, offset0=single.offset0), "src"
