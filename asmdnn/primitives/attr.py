"""Attributes of a primitive: post-ops that run on its result before it is stored, scales and zero points."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real

from asmdnn.errors import InvalidArguments
from asmdnn.generators.postops import PostOp, ReluOp, SumOp

MAX_POST_OPS = 32
SCRATCHPAD_MODES = ("library", "user")  # the primitive has a pool of it; the caller passes it with every call
QUANTIZED = ("src", "weights", "dst")
FLOAT32_MAX = float.fromhex("0x1.fffffep127")


def finite(name: str, value: float) -> float:
    """`value` as a float that f32 can hold, or InvalidArguments naming the field."""
    if isinstance(value, bool) or not isinstance(value, Real) or not -FLOAT32_MAX <= value <= FLOAT32_MAX:
        raise InvalidArguments(f"{name} must be a finite f32 number, not {value!r}")
    return float(value)


@dataclass(frozen=True, slots=True)
class Sum:
    """dst = op + scale * dst."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", finite("Sum.scale", self.scale))

    def on_registers(self) -> PostOp:
        return SumOp(self.scale)


@dataclass(frozen=True, slots=True)
class Eltwise:
    """dst = f(op).  relu: x if x > 0, else alpha * x."""

    alg: str
    alpha: float = 0.0
    beta: float = 0.0

    def __post_init__(self) -> None:
        if self.alg != "relu":
            raise InvalidArguments(f"Eltwise.alg must be 'relu', the only algorithm so far, not {self.alg!r}")
        object.__setattr__(self, "alpha", finite("Eltwise.alpha", self.alpha))
        object.__setattr__(self, "beta", finite("Eltwise.beta", self.beta))
        if self.beta:
            raise InvalidArguments(f"Eltwise.beta must be 0 for relu, not {self.beta!r}")

    def on_registers(self) -> PostOp:
        return ReluOp(self.alpha)


def checked_masks(field: str, masks: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """The masks by tensor, sorted; InvalidArguments names the field."""
    if not isinstance(masks, Mapping):
        raise InvalidArguments(f"{field} must map tensors to masks, such as {{'src': 0}}, not {masks!r}")
    for name, mask in masks.items():
        if name not in QUANTIZED:
            raise InvalidArguments(f"{field} has the tensor {name!r}, it must be one of {', '.join(QUANTIZED)}")
        if isinstance(mask, bool) or not isinstance(mask, int) or mask < 0:
            raise InvalidArguments(f"{field}[{name!r}] must be a mask of dims, an integer >= 0, not {mask!r}")
    return tuple(sorted(masks.items()))


@dataclass(frozen=True, slots=True)
class Attr:
    """post_ops: Sum and Eltwise values, executed in order of appending; at most 32.

    scales, zero_points: for each tensor ("src", "dst") a mask, whose bit d says that every index of dim d has a value
    of its own; 0 is one value for all.  The values come with the call: `src_scales` is f32[product of those dims],
    `src_zero_points` s32, and so on.  Raises InvalidArguments.
    """

    post_ops: tuple[Sum | Eltwise, ...] = ()
    scales: tuple[tuple[str, int], ...] = ()
    zero_points: tuple[tuple[str, int], ...] = ()
    scratchpad_mode: str = "library"  # who owns the temporary memory of a call: see SCRATCHPAD_MODES

    def __init__(
        self,
        post_ops: Iterable[Sum | Eltwise] = (),
        scales: Mapping[str, int] | None = None,
        zero_points: Mapping[str, int] | None = None,
        scratchpad_mode: str = "library",
    ) -> None:
        chain = tuple(post_ops) if isinstance(post_ops, Iterable) and not isinstance(post_ops, str) else (post_ops,)
        for i, op in enumerate(chain):
            if not isinstance(op, Sum | Eltwise):
                raise InvalidArguments(f"post_ops[{i}] must be a Sum or an Eltwise, not {op!r}")
        if len(chain) > MAX_POST_OPS:
            raise InvalidArguments(f"post_ops has {len(chain)} entries, at most {MAX_POST_OPS} can be chained")
        object.__setattr__(self, "post_ops", chain)
        object.__setattr__(self, "scales", checked_masks("scales", scales or {}))
        object.__setattr__(self, "zero_points", checked_masks("zero_points", zero_points or {}))
        if scratchpad_mode not in SCRATCHPAD_MODES:
            raise InvalidArguments(f"scratchpad_mode must be 'library' or 'user', not {scratchpad_mode!r}")
        object.__setattr__(self, "scratchpad_mode", scratchpad_mode)

    @property
    def quantizes(self) -> bool:
        """Whether values are scaled or shifted on the way in or out."""
        return bool(self.scales or self.zero_points)

    def on_registers(self) -> tuple[PostOp, ...]:
        """The chain as kernels execute it."""
        return tuple(op.on_registers() for op in self.post_ops)

    def reads_dst(self) -> bool:
        """Whether the result depends on what the destination held before."""
        return any(isinstance(op, Sum) for op in self.post_ops)
