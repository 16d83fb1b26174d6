"""Attributes of a primitive: post-ops, scales and zero points, and what it may do in other ways."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, get_args

from asmdnn.errors import InvalidArguments, not_one_of, resembling, shown
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.sequences import items
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.numbers import check_alg
from asmdnn.primitives.attributes.post_ops import AnyPostOp, Sum, check_chain, named_post_op
from asmdnn.primitives.attributes.user_post_op import PostOp
from asmdnn.records import dataclass, replace
from asmdnn.types import AccumulationMode, FpMathMode, RoundingMode, ScratchpadMode

SCRATCHPAD_MODES = ("library", "user")
DENORMALS = ("flush", "keep")
FPMATH_MODES: Final[tuple[str, ...]] = get_args(FpMathMode)
ACCUMULATION_MODES: Final[tuple[str, ...]] = get_args(AccumulationMode)
ROUNDING_MODES: Final[tuple[str, ...]] = get_args(RoundingMode)
QUANTIZED = ("src", "weights", "dst")
NUMBERED = re.compile("src[0-9]{1,4}")  # of several sources


def checked_masks(field: str, masks: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """The masks by tensor, sorted; InvalidArguments names the field."""
    if not isinstance(masks, Mapping):
        raise InvalidArguments(f"{field} must map tensors to masks, such as {{'src': 0}}, not {shown(masks)}")
    for name, mask in masks.items():
        if name not in QUANTIZED and not (isinstance(name, str) and NUMBERED.fullmatch(name)):
            known = f"{', '.join(QUANTIZED)}, src0, src1, ...{resembling(name, QUANTIZED)}"
            raise InvalidArguments(f"{field} has the tensor {shown(name)}, it must be one of {known}")
        if isinstance(mask, bool) or not isinstance(mask, int) or mask < 0:
            raise InvalidArguments(f"{field}[{shown(name)}] must be a mask of dims, an integer >= 0, not {shown(mask)}")
    return tuple(sorted(masks.items()))


def checked_groups(
    groups: Mapping[str, tuple[int, int]] | tuple[()], given: Mapping[str, int]
) -> tuple[tuple[str, tuple[int, int]], ...]:
    """By tensor, sorted.  Raises InvalidArguments."""
    if isinstance(groups, tuple) and not groups:  # of a copy of attributes
        return ()
    if not isinstance(groups, Mapping):
        raise InvalidArguments(f"groups must map tensors to sizes, such as {{'weights': (32, 1)}}, not {shown(groups)}")
    found = {}
    for name, sizes in groups.items():
        if name not in given:
            raise InvalidArguments(f"groups has {shown(name)}, which has neither scales nor zero points")
        try:
            pair = tuple(items(sizes))
        except Exception:  # whatever the caller's object does
            pair = ()
        if len(pair) != 2 or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in pair):
            what = f"groups[{shown(name)}] must be two whole numbers above 0"
            raise InvalidArguments(f"{what}, such as (32, 1), not {shown(sizes)}")
        found[name] = pair
    return tuple(sorted(found.items()))


def checked_rounding(modes: Mapping[str, str] | tuple[()], any_batch: bool) -> tuple[tuple[str, str], ...]:
    """By result, sorted, without those that are rounded as usual.  Raises InvalidArguments."""
    if isinstance(modes, tuple) and not modes:  # of a copy of attributes
        return ()
    if not isinstance(modes, Mapping):
        raise InvalidArguments(
            f"rounding_mode must map results to modes, such as {{'dst': 'stochastic'}}, not {shown(modes)}"
        )
    for name, mode in modes.items():
        if not isinstance(name, str) or name != "dst":
            raise InvalidArguments(f"rounding_mode has the result {shown(name)}, it must be dst")
        check_alg(f"rounding_mode[{name!r}]", mode, ROUNDING_MODES)
    found = tuple(sorted((name, mode) for name, mode in modes.items() if mode != "environment"))
    if found and any_batch:
        raise InvalidArguments(
            "rounding_mode is stochastic, deterministic='batch': bits depend on places, leave one out"
        )
    return found


@dataclass(frozen=True, slots=True)
class Attr:
    """post_ops: Sum, Eltwise, Binary, PReLU, Depthwise and PostOp values, executed in order of appending; at most 32.
    Words stand for those without parameters: ["relu"] is [Eltwise("relu")], "sum" is Sum().

    The chain is a tuple of frozen values: its length, each one's `kind` and parameters can be read, and what is done to
    the list that it was made from does not change it.

    scales, zero_points: for each tensor ("src", "weights", "dst"; with several sources "src0", "src1" and so on) a
    mask, whose bit d says that every index of dim d has a value of its own; 0 is one value for all.  The values come
    with the call: `src_scales` is f32[product of those dims], `src_zero_points` s32, and so on.  Results are divided by
    the scales of dst, after all post-ops.
    groups: for each tensor with scales or zero points how many neighbours along the last two dims share one, such as
    {"weights": (32, 1)} of a matmul's weights: 32 of k, and of mask 3 k / 32 rows of scales for all columns.
    scratchpad_mode: "library", the primitive has a pool of temporary memory, or "user", every call passes it.
    deterministic: ask for results that are bitwise equal in every run and for every number of threads.  All kernels
    here are, so True changes nothing; a request that says so stays true when others come.  "batch" asks besides that
    the bits of a row or image depend on neither the others nor their number: docs/attributes.md has the kinds.
    denormals: "flush", subnormal numbers count as zeros, as operands and as results; "keep", they are computed with,
    which may be slow; None: convolutions and products flush, all others keep.  Copies keep bits in any case.
    fpmath_mode: what f32 may be rounded to before it is multiplied in convolutions and products: "strict", nothing;
    "bf16", "f16" or "any" of both; "bf16x3", the sum of two bf16, by tiles of AMX; "tf32" is computed as f32.  It is a
    permission: f32 stays where it is expected to be as fast.  Weights that are `any` may become of the smaller type.
    accumulation_mode: what products are summed in: "strict" or "relaxed", f32, and s32 of integers; "any", f16 of f16
    where that is faster; "f32", "s32" or "f16" ask for that type, and are refused where sums have another one.
    rounding_mode: {"dst": "stochastic"} rounds a result of bf16, f16, f8, s8 or u8 to one of its two neighbours at
    random, so that its mean is what was computed.  The argument `rounding_seed`, s32[1], comes with every call.
    Raises InvalidArguments.
    """

    post_ops: tuple[AnyPostOp, ...] = ()
    scales: tuple[tuple[str, int], ...] = ()
    zero_points: tuple[tuple[str, int], ...] = ()
    scratchpad_mode: ScratchpadMode = "library"
    deterministic: bool | Literal["batch"] = False
    denormals: str | None = None
    fpmath_mode: FpMathMode = "strict"
    accumulation_mode: AccumulationMode = "strict"
    groups: tuple[tuple[str, tuple[int, int]], ...] = ()
    rounding_mode: tuple[tuple[str, str], ...] = ()

    def __init__(
        self,
        post_ops: AnyPostOp | str | Iterable[AnyPostOp | str] = (),
        scales: Mapping[str, int] | None = None,
        zero_points: Mapping[str, int] | None = None,
        scratchpad_mode: ScratchpadMode = "library",
        deterministic: bool | Literal["batch"] = False,
        denormals: str | None = None,
        fpmath_mode: FpMathMode = "strict",
        accumulation_mode: AccumulationMode = "strict",
        groups: Mapping[str, tuple[int, int]] | None = None,
        rounding_mode: Mapping[str, RoundingMode] | None = None,
    ) -> None:
        try:
            chain = items(post_ops) if isinstance(post_ops, Iterable) and not isinstance(post_ops, str) else (post_ops,)
        except Exception:  # whatever the caller's object does when it is iterated over
            chain = (post_ops,)  # type: ignore[assignment]
        chain = tuple(named_post_op(op) if isinstance(op, str) else op for op in chain)
        check_chain(chain)
        object.__setattr__(self, "post_ops", chain)
        object.__setattr__(self, "scales", checked_masks("scales", {} if scales is None else scales))
        object.__setattr__(
            self, "zero_points", checked_masks("zero_points", {} if zero_points is None else zero_points)
        )
        if not isinstance(scratchpad_mode, str) or scratchpad_mode not in SCRATCHPAD_MODES:
            raise InvalidArguments(not_one_of("scratchpad_mode", scratchpad_mode, SCRATCHPAD_MODES))
        object.__setattr__(self, "scratchpad_mode", scratchpad_mode)
        is_batch = isinstance(deterministic, str) and deterministic == "batch"
        if not isinstance(deterministic, bool) and not is_batch:
            near = resembling(deterministic, ["batch"])
            raise InvalidArguments(f"deterministic must be True or False, or 'batch', not {shown(deterministic)}{near}")
        if is_batch and fpmath_mode != "strict":
            raise InvalidArguments(
                f"deterministic='batch' with fpmath_mode {shown(fpmath_mode)}: rounding depends on rows, use strict"
            )
        object.__setattr__(self, "deterministic", deterministic)
        if denormals is not None and not (isinstance(denormals, str) and denormals in DENORMALS):
            what = f"not {shown(denormals)}{resembling(denormals, DENORMALS)}"
            raise InvalidArguments(f"denormals must be 'flush', 'keep' or None for the default, {what}")
        object.__setattr__(self, "denormals", denormals)
        given = dict(self.scales) | dict(self.zero_points)
        object.__setattr__(self, "groups", checked_groups({} if groups is None else groups, given))
        modes = checked_rounding({} if rounding_mode is None else rounding_mode, is_batch)
        object.__setattr__(self, "rounding_mode", modes)
        object.__setattr__(self, "fpmath_mode", check_alg("fpmath_mode", fpmath_mode, FPMATH_MODES))
        object.__setattr__(
            self, "accumulation_mode", check_alg("accumulation_mode", accumulation_mode, ACCUMULATION_MODES)
        )

    @property
    def strict(self) -> "Attr":
        """The same without permission to round."""
        return self if self.fpmath_mode == "strict" else self.changed(fpmath_mode="strict")

    def changed(self, **fields: Any) -> "Attr":
        """The same with other values of some fields, as `__init__` takes them.  Raises InvalidArguments."""
        masks = {name: dict(getattr(self, name)) for name in ("scales", "zero_points", "groups", "rounding_mode")}
        return replace(self, **{**masks, **fields})

    @property
    def quantizes(self) -> bool:
        """Whether values are scaled or shifted on the way in or out."""
        return bool(self.scales or self.zero_points)

    def tensors(self) -> dict[str, MemoryDesc]:
        """What post-ops read, by argument name: that of the tensor, and the number of the post-op in the chain."""
        return {f"{name}_{i}": desc for i, op in enumerate(self.post_ops) for name, desc in op.tensors.items()}

    def data(self) -> dict[str, Memory]:
        """The data that came with tensors of user-written post-ops, by argument name."""
        if not self.post_ops:
            return {}
        own = ((i, op) for i, op in enumerate(self.post_ops) if isinstance(op, PostOp))
        return {f"{name}_{i}": memory for i, op in own for name, memory in op.data.items()}

    def reads_dst(self) -> bool:
        """Whether the result depends on what the destination held before."""
        return any(isinstance(op, Sum) for op in self.post_ops)


NO_ATTR = Attr()


def refuse_attr(attr: Attr, of: str = "") -> None:
    """Raise Refused for post-ops, scales and zero points, which `of` does not have, or which nobody has written."""
    if attr.post_ops or attr.quantizes:
        has_none = f"{of} has no post-ops, scales or zero points"
        raise Refused(has_none if of else "post-ops, scales and zero points are not implemented")


def refuse_scales(attr: Attr) -> None:
    """Raise Refused for scales and zero points, which nobody has written."""
    if attr.quantizes:
        raise Refused("scales and zero points are not implemented")
