"""Scales and zero points as benchdnn writes them: `--attr-scales=src:common:0.5+dst:per_dim_1`.

Entries are ARGUMENT:POLICY[:VALUE[*]][:TYPE[:GROUPS]], joined by +.  The policy says which dims have values of their
own; a value is needed for `common`, where others have random ones if none is given.  benchdnn's `*` (passed at run
time) is accepted, and a number whose bit d stands for dim d, as verbose lines have it.  Scales are f32, zero points
s32 here.  Scales may be called another type of floats that has their numbers, zero points s8, u8, s4 or u4.  What
oneDNN takes by value (`host_scalar`) is a tensor of one number.  Weights of a product may have groups, as
`wei:per_ocic:f32:32x1`: 32 of k share a scale.  Arguments and policies that only oneDNN has raise Unimplemented.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.bench.vocabulary import ALL_DATA_TYPES
from asmdnn.errors import InvalidArguments, Unimplemented, resembling
from asmdnn.memory.tags import MAX_NDIMS
from asmdnn.primitives.attributes.numbers import FLOAT32_MAX
from asmdnn.primitives.attributes.words import number_word
from asmdnn.records import dataclass

COMMON, BY_VALUE = "common", "host_scalar"
POLICIES = {
    COMMON: 0, "per_dim_0": 1, "per_dim_1": 2, "per_dim_01": 3, "per_dim_2": 4, "per_dim_3": 8, BY_VALUE: 0,
}  # fmt: skip
PER_CHANNEL, PER_BOTH = "per_oc", "per_ocic"
SMALL = {"s8": (-128, 127), "u8": (0, 255), "s4": (-8, 7), "u4": (0, 15)}  # types of zero points, which are s32 here
DIGITS = {"f32": 24, "bf16": 8, "f16": 11, "f8_e4m3": 4, "f8_e5m2": 3, "e8m0": 1}  # of types of scales, in bits
MOST_GROUP = 1 << 31
UNBUILT_ARGUMENT = re.compile("(src1?|wei|dst|bia|msrc[0-9]+|attr_post_op_dw_(wei|dst))")
UNBUILT_POLICY = re.compile("per_(ocic|tensor|mb|dim_[0-9]+)")
JOINT = re.compile(r"\+|(?<!attr_post_op_dw)_(?=(?:src|wei|dst):)")  # older files have _
EXPONENTS = (-3, 4)  # random scales are powers of two, which do not round
LARGEST_ZERO_POINT = 7


@dataclass(frozen=True, slots=True)
class Quantity:
    """Scales or zero points of one argument; value None: random ones.  dtype, groups: as they are written, if they are;
    groups are of the last two dims."""

    argument: str
    policy: str
    value: float | None
    dtype: str = ""
    groups: tuple[int, ...] = ()

    def mask(self, channels: int = 1) -> int:
        """Bit d is set if every index of dim d has a value of its own; `channels` is the dim of output channels."""
        if self.policy == PER_CHANNEL:
            return 1 << channels
        if self.policy == PER_BOTH:
            return 3 << channels - 1
        return POLICIES[self.policy] if self.policy in POLICIES else int(self.policy)

    def shape(self, dims: Sequence[int], channels: int = 1) -> tuple[int, ...]:
        """The values' dims, to broadcast to a tensor's."""
        along = (1,) * (len(dims) - len(self.groups)) + self.groups
        sizes = (max(1, n // size) for n, size in zip(dims, along, strict=True))
        return tuple(n if self.mask(channels) >> dim & 1 else 1 for dim, n in enumerate(sizes))

    def spread(self, values: npt.NDArray[Any], dims: Sequence[int]) -> npt.NDArray[Any]:
        """Values by groups, for every element of a tensor."""
        if self.groups:
            for axis, size in enumerate(self.groups, len(dims) - len(self.groups)):
                values = np.repeat(values, size, axis) if values.shape[axis] > 1 else values
        return values

    def scales(self, dims: Sequence[int], channels: int = 1) -> npt.NDArray[np.float32]:
        """float32 in `shape(dims, channels)`."""
        shape = self.shape(dims, channels)
        if self.value is not None:
            return np.full(shape, self.value, np.float32)
        exponents = np.random.default_rng(2).integers(*EXPONENTS, shape)
        return np.exp2(exponents).astype(np.float32)

    def zero_points(self, dims: Sequence[int], channels: int = 1) -> npt.NDArray[np.int32]:
        """int32 in `shape(dims)`."""
        shape = self.shape(dims, channels)
        if self.value is not None:
            return np.full(shape, int(self.value), np.int32)
        least = 0 if self.dtype.startswith("u") else -LARGEST_ZERO_POINT
        return np.random.default_rng(3).integers(least, LARGEST_ZERO_POINT, shape, np.int32, endpoint=True)

    def __str__(self) -> str:
        words = [self.argument, self.policy] + ([] if self.value is None else [number_word(self.value)])
        words += [self.dtype] * bool(self.dtype) + ["x".join(map(str, self.groups))] * bool(self.groups)
        return ":".join(words)


def quantities(
    arguments: Sequence[str], whole: bool, grouped: Sequence[str] = ()
) -> Callable[[str], tuple[Quantity, ...]]:
    """A parser of a list for these arguments; `whole` numbers are zero points.  grouped: those that may have groups.
    It raises InvalidArguments."""

    def parse(word: str) -> tuple[Quantity, ...]:
        word = word.rstrip(";")
        found = tuple(_quantity(entry, arguments, whole, grouped) for entry in JOINT.split(word)) if word else ()
        if len({quantity.argument for quantity in found}) != len(found):
            raise InvalidArguments("names an argument twice")
        return found

    return parse


def joined(found: Sequence[object]) -> str:
    return "+".join(map(str, found))


def _quantity(entry: str, arguments: Sequence[str], whole: bool, grouped: Sequence[str]) -> Quantity:
    argument, *rest = entry.split(":")
    argument, policy = {"src0": "src"}.get(argument, argument), rest.pop(0) if rest else ""
    if argument not in arguments:
        if UNBUILT_ARGUMENT.fullmatch(argument):
            raise Unimplemented(f"has '{entry}', and only {', '.join(arguments)} is built yet")
        near = resembling(argument, arguments)
        raise InvalidArguments(f"has '{argument}': arguments are {', '.join(arguments)}{near}")
    may_group = argument in grouped
    if policy != PER_BOTH or not may_group:
        _check_policy(entry, policy)
    value = rest.pop(0) if rest and rest[0].lower() not in ALL_DATA_TYPES else ""
    if rest and rest[0].lower() not in ALL_DATA_TYPES:
        raise InvalidArguments(f"has '{entry}': after the value comes a data type, then groups")
    known = ("s32", *SMALL) if whole else tuple(DIGITS)
    if rest and rest[0].lower() not in known:
        raise Unimplemented(f"has '{entry}', and only {', '.join(known)} is built yet")
    if len(rest) > 1 + may_group:
        raise Unimplemented(f"has '{entry}': groups of {argument} are not built yet")
    if not value and policy in (COMMON, BY_VALUE):
        raise InvalidArguments(f"has '{entry}' without a value: write {argument}:{policy}:2")
    number = real(value.removesuffix("*"), whole) if value else None
    dtype = rest[0].lower() if rest and (len(rest) > 1 or rest[0].lower() not in ("f32", "s32")) else ""
    if number is not None and dtype and not has_number(dtype, number):
        raise Unimplemented(f"has '{entry}', and {dtype} has no {number_word(number)}: rounding it is not built yet")
    return Quantity(argument, policy, number, dtype, _groups(entry, rest[1]) if len(rest) > 1 else ())


def has_number(dtype: str, number: float) -> bool:
    """Whether the type has it; exponents beyond are not looked for."""
    if dtype in DIGITS:
        return math.ldexp(math.frexp(number)[0], DIGITS[dtype]).is_integer() and (number > 0 or dtype != "e8m0")
    least, most = SMALL.get(dtype, (-math.inf, math.inf))
    return least <= number <= most


def _groups(entry: str, word: str) -> tuple[int, ...]:
    """Of two dims."""
    sizes = word.split("x")
    if len(sizes) != 2 or not all(size.isascii() and size.isdecimal() and 0 < int(size) < MOST_GROUP for size in sizes):
        raise InvalidArguments(f"has '{entry}': groups are two sizes, such as 32x1")
    return tuple(map(int, sizes))


def _check_policy(entry: str, policy: str) -> None:
    is_mask = policy.isascii() and policy.isdecimal() and len(policy) <= 5 and int(policy) < 1 << MAX_NDIMS
    if policy in POLICIES or policy == PER_CHANNEL or is_mask:
        return
    if UNBUILT_POLICY.fullmatch(policy):
        raise Unimplemented(f"has '{entry}', a policy that is not built yet")
    names = (*POLICIES, PER_CHANNEL)
    known = f"{', '.join(names)}, or a mask of dims{resembling(policy, names)}"
    raise InvalidArguments(f"has the policy '{policy}': policies are {known}")


def real(word: str, whole: bool = False) -> float:
    """A finite number, a whole one if asked for."""
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or abs(value) > FLOAT32_MAX or (whole and not value.is_integer()):
        raise InvalidArguments(f"has '{word}', which is not a {'whole' if whole else 'finite'} number")
    return value
