"""Products and convolutions of arrays of other types than f32: what is asked for, scales and zero points of arrays."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from asmdnn.errors import InvalidArguments, counted, resembling, shown
from asmdnn.memory import Memory
from asmdnn.memory.allocation import allocated
from asmdnn.ops.arguments import F32, AnyArray, AnyDataType
from asmdnn.ops.older_names import older_of, with_new_names
from asmdnn.ops.typed import INTEGERS
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.post_ops import AnyPostOp
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import dataclass, field
from asmdnn.types import DATA_TYPES, FLOATS8, HALF_FLOATS, AccumulationMode, DataType, FpMathMode, f32, s32

OF_FLOATS = (name for t in (*HALF_FLOATS, *FLOATS8) for name in (t.name, t.extension or np.dtype(t.numpy).name))
TYPED = frozenset((*OF_FLOATS, "int8", "uint8", "s8", "u8", "s4", "u4", "f4_e2m1", "nf4"))  # numpy's names and ours
Modes = tuple[FpMathMode, AccumulationMode]
STRICT: Modes = ("strict", "strict")
NOTHING: Mapping[str, Any] = MappingProxyType({})


def is_typed(x: Any) -> bool:
    """Whether these are numbers of another type than f32 that products take."""
    try:
        kind = x.desc.dtype if type(x) is Memory else getattr(x, "dtype", F32)
        return not (kind is F32 or kind is f32) and of_few_bits(kind)
    except Exception:  # whatever the caller's object does: who reads it as f32 says what is wrong with it
        return False


@lru_cache(maxsize=64)
def of_few_bits(kind: Any) -> bool:
    """The same of the type of an array: numpy makes its name anew whenever it is asked for."""
    return str(getattr(kind, "name", kind)) in TYPED


def needs_types(x: Any, weights: Any, *others: Any) -> bool:
    """Whether arrays are no matter of f32 alone, whose calls are kept; those with weights that an fpmath_mode packed
    are.  others: bias and destination, or None."""
    if not is_typed(weights):
        return is_typed(x)
    is_rounded = type(weights) is Memory and bool(weights.desc.inner_blocks) and weights.desc.dtype in HALF_FLOATS
    return not is_rounded or not all(is_f32(other) for other in (x, *others) if other is not None)


def is_f32(x: Any) -> bool:
    return type(x) is np.ndarray and x.dtype is F32


def is_plain(dtype: AnyDataType | None, scales: Any, zero_points: Any) -> bool:
    """Whether nothing is asked for that calls of f32 have not."""
    if dtype is None and scales is zero_points is NOTHING:
        return True
    return dtype is None and all(x is NOTHING or (type(x) is dict and not x) for x in (scales, zero_points))


def attr_of(chain: tuple[AnyPostOp, ...], modes: Modes, **others: Any) -> Attr:
    """The attributes of a call.  Raises InvalidArguments."""
    fpmath_mode, accumulation_mode = modes
    return Attr(chain, fpmath_mode=fpmath_mode, accumulation_mode=accumulation_mode, **others)


class ProductRequest(NamedTuple):
    """What a product or a convolution is asked to do beside multiplying; see `matmul`.

    modes: fpmath_mode and accumulation_mode.
    """

    post_ops: Sequence[AnyPostOp | str]
    dtype: AnyDataType | None
    scales: Mapping[str, Any]
    zero_points: Mapping[str, Any]
    engine: Engine | None
    modes: Modes = STRICT

    @property
    def has_numbers(self) -> bool:
        """Whether there may be scales or zero points."""
        return not (self.scales is self.zero_points is NOTHING)

    def usual_type(self, src: DataType) -> DataType:
        """Of a result, if none is asked for: f32 where scales are given, else integers' sums, and src's of floats."""
        of_integers = np.dtype(src.numpy).kind in INTEGERS and not src.extension
        return f32 if self.scales else s32 if of_integers else src


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arrays by the names that callers know, and what primitives call them.

    weights: which of them may have several scales, `count` of them, one for each of the `many`; these are the dims of
    `mask`.  depth: k, of which groups may have rows of scales; 0: they may not.  others: of other arrays how many they
    may have, of what, and the mask.
    """

    tensors: Mapping[str, str]
    weights: str
    many: str
    count: int
    mask: int
    depth: int = 0
    others: Mapping[str, tuple[int, str, int]] = field(default_factory=dict)

    def check(self, request: ProductRequest) -> None:
        """Raise InvalidArguments for scales and zero points of what has none, or of wrong sizes."""
        self.vectors("scales", request.scales)
        self.vectors("zero_points", request.zero_points)

    def vectors(self, kind: str, given: Mapping[str, Any]) -> dict[str, AnyArray]:
        """Scales or zero points by the caller's names.  Raises InvalidArguments."""
        if not isinstance(given, Mapping):
            first, *between, last = self.tensors
            words = f"{', '.join((first, *between))} or {last}"
            raise InvalidArguments(f"{kind} must map {words} to numbers, such as {{{first!r}: 2}}, not {shown(given)}")
        named = with_new_names(given, older_of(self.tensors))
        return {name: self.vector(kind, name, value) for name, value in named.items()}

    def vector(self, kind: str, name: str, value: Any) -> AnyArray:
        if name not in self.tensors:
            known = f"{', '.join(self.tensors)}{resembling(name, self.tensors)}"
            raise InvalidArguments(f"{kind} has {shown(name)}, it must be one of {known}")
        try:
            values = np.asarray(value)
        except Exception:  # whatever the caller's object does
            raise InvalidArguments(f"{kind}[{name!r}] must be numbers, not {shown(value)}") from None
        of_scales = kind == "scales"
        if values.dtype.kind not in ("iuf" if of_scales else INTEGERS):
            whole = "" if of_scales else "whole "
            raise InvalidArguments(f"{kind}[{name!r}] must be {whole}numbers, not {shown(value)}")
        if not of_scales:
            check_range(f"{kind}[{name!r}]", values)
        may_be_many = name == self.weights and (of_scales or self.depth)
        alone = 1, "", 0
        count, many, _ = (self.count, self.many, self.mask) if may_be_many else self.others.get(name, alone)
        dtype = np.float32 if of_scales else np.int32
        if may_be_many and self.depth and values.ndim == 2 and len(values) > 1:
            self.check_groups(f"{kind}[{name!r}]", values.shape)
        elif values.size not in (1, count):
            most = f", or {count} for the {many}" if count > 1 else ""
            raise InvalidArguments(f"{kind}[{name!r}] has {counted(values.size, 'element')}, it must have 1{most}")
        else:
            values = values.reshape(-1)
        with np.errstate(over="ignore"):  # what becomes infinite is refused
            found = allocated(np.ascontiguousarray, values, dtype)
        return checked_scales(f"{kind}[{name!r}]", found) if of_scales else found

    def check_groups(self, what: str, shape: tuple[int, ...]) -> None:
        """Raise InvalidArguments for rows that are not of groups of k, or not of all columns."""
        rows, columns = shape
        if self.depth % rows:
            raise InvalidArguments(
                f"{what} has {counted(rows, 'row')}, which do not divide k, {self.depth}, into groups"
            )
        if columns != self.count:
            raise InvalidArguments(
                f"{what} has {counted(columns, 'column')}, it must have {self.count} for the {self.many}"
            )

    def mask_of(self, name: str, values: AnyArray) -> int:
        """Of one number, of one for each of the many, or of rows of these."""
        if name in self.others:
            return self.others[name][2] * (values.size > 1)
        of_groups = self.mask | self.mask >> 1
        return of_groups if values.ndim > 1 else self.mask * (values.size > 1)

    def groups(self, *found: Mapping[str, AnyArray]) -> dict[str, tuple[int, int]]:
        """The sizes of groups of weights.  Raises InvalidArguments for scales and zero points of different ones."""
        rows = {len(values) for vectors in found for values in vectors.values() if values.ndim > 1}
        if len(rows) > 1:
            raise InvalidArguments(
                f"scales and zero_points of {self.weights!r} have {' and '.join(map(str, sorted(rows)))} rows: "
                "groups of k share both"
            )
        sizes = [(self.depth // count, 1) for count in rows]
        return {self.tensors[self.weights]: sizes[0]} if sizes else {}


def checked_scales(what: str, scales: AnyArray) -> AnyArray:
    """Positive numbers, finite ones.  Raises InvalidArguments."""
    bad = ~((scales > 0) & np.isfinite(scales))
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InvalidArguments(f"{what}{list(at)} is {scales[at]}, scales must be numbers above 0")
    return scales


def check_range(what: str, points: AnyArray) -> None:
    """Raise InvalidArguments for zero points that are no s32: as such they would be others."""
    limits = np.iinfo(np.int32)
    if points.size and not limits.min <= points.min() <= points.max() <= limits.max:
        found = f"from {points.min()} to {points.max()}" if points.size > 1 else f"{points.max()}"
        raise InvalidArguments(f"{what} has {found}, zero points must be {limits.min} to {limits.max}")


def packed_source(weights: DataType) -> DataType:
    """The type of src for which weights are packed: their own, or u8 for s8, which serve both kinds of bytes."""
    return DATA_TYPES["u8"] if weights.name == "s8" else weights
