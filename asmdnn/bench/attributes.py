"""The attributes of compute primitives as options, and the data and the answers that come with scales.

--attr-post-ops=sum:0.5+relu        post_ops.py has the words
--attr-scales=src:common:0.5+wei:per_oc+dst:common:2
--attr-scratchpad=user              the caller's memory, not the primitive's; of this library only
--attr-deterministic=true
--attr-denormals=keep               subnormal numbers; of this library only
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.bench.numbers import TypedNumbers
from asmdnn.bench.post_ops import Word, attr_of, chain
from asmdnn.bench.post_ops import joined as joined_chain
from asmdnn.bench.quantization import Quantity, joined, quantities
from asmdnn.bench.words import Option, Settings, boolean, one_of, option
from asmdnn.primitives.attributes.attr import ACCUMULATION_MODES, DENORMALS, FPMATH_MODES
from asmdnn.records import dataclass, field
from asmdnn.types import DataType

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]
ROUNDED = {"bf16": dnn.bf16, "f16": dnn.f16, "any": dnn.bf16}  # as benchdnn fills f32 where it may be rounded
WORDS = {"src": "src", "wei": "weights", "dst": "dst"}  # benchdnn's, and the tensors


@dataclass(frozen=True, slots=True)
class AttributeSettings(Settings):
    """Of every compute primitive."""

    post_ops: tuple[Word, ...] = ()
    scratchpad: str = "library"
    deterministic: bool = False
    denormals: str = "default"

    def attr(self, dims: Sequence[int], **more: Any) -> dnn.Attr:
        """For a result of these dims; `more` as `attr_of` takes it.  Raises InvalidArguments."""
        denormals = None if self.denormals == "default" else self.denormals
        modes: dict[str, Any] = {
            "scratchpad_mode": self.scratchpad,
            "deterministic": self.deterministic,
            "denormals": denormals,
        }
        return attr_of(self.post_ops, dims, **modes, **more)


@dataclass(frozen=True, slots=True)
class ScaledSettings(AttributeSettings):
    """Of sums of products: convolution, matmul, inner product."""

    scales: tuple[Quantity, ...] = ()
    fpmath: str = "strict"
    acc_mode: str = "strict"

    def attr(self, dims: Sequence[int], **more: Any) -> dnn.Attr:
        mode = self.fpmath.partition(":")[0]
        modes = {"fpmath_mode": mode, "accumulation_mode": self.acc_mode}
        return AttributeSettings.attr(self, dims, **modes, **more)


@dataclass(frozen=True, slots=True)
class ScaleWords:
    """What `--attr-scales` says of a case.

    arrays: the arguments, flat.  factor, divisor: of the sums and of results, as arrays that broadcast to dst.
    source: of src, where channels that are summed over have scales, as an array that broadcasts to it.
    weights: likewise, of groups of these, whose sizes are in `groups`.
    """

    masks: Mapping[str, int] = field(default_factory=dict)
    arrays: Mapping[str, Floats] = field(default_factory=dict)
    factor: Doubles | float = 1.0
    divisor: Doubles | float = 1.0
    source: Doubles | float = 1.0
    weights: Doubles | float = 1.0
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


UNSCALED = ScaleWords()


def scales_of(
    found: Sequence[Quantity], dims: Mapping[str, tuple[int, ...]], channels: Mapping[str, int]
) -> ScaleWords:
    """dims: of src, weights and dst.  channels: of each the dim that `per_oc` means.

    Weights' output channels are their dim 0 and dst's dim 1, or the last dim of both.
    """
    masks, arrays, factors, groups = {}, {}, {}, {}
    weights: Doubles | float = 1.0
    for quantity in found:
        name = WORDS[quantity.argument]
        masks[name] = quantity.mask(channels[name])
        values = quantity.scales(dims[name], channels[name])
        arrays[f"{name}_scales"] = values.ravel()
        if quantity.groups:
            groups[name], weights = quantity.groups, quantity.spread(values, dims[name]).astype(np.float64)
            continue
        if name == "weights" and channels[name] == 0:
            values = values.swapaxes(0, 1)
        if set(values.shape[len(dims["dst"]) :]) == {1}:  # height and width, of which dst has none
            values = values.reshape(values.shape[: len(dims["dst"])])
        factors[name] = values.astype(np.float64)
    source = factors.pop("src") if masks.get("src", 0) >> channels["src"] & 1 else 1.0
    factor = factors.get("src", 1.0) * factors.get("weights", 1.0)
    return ScaleWords(
        masks=masks,
        arrays=arrays,
        factor=factor,
        divisor=factors.get("dst", 1.0),
        source=source,
        weights=weights,
        groups=groups,
    )


def fpmath_mode(word: str) -> str:
    """MODE[:APPLY_TO_INT]: whether it holds for integers, too, whose products are exact here."""
    mode, _, integers = word.lower().partition(":")
    return one_of(*FPMATH_MODES)(mode) + (":true" if integers and boolean(integers) else "")


def zero_points_option(with_weights: bool = False) -> dict[str, Option]:
    """Of what has them: src and dst, or weights too, by groups of k."""
    arguments, grouped = (("src", "wei", "dst"), ("wei",)) if with_weights else (("src", "dst"), ())
    parse = quantities(arguments, whole=True, grouped=grouped)
    return {"attr-zero-points": option(parse, "src:common:3+dst:common:-2", joined)}


def numbers_of(
    types: Mapping[str, DataType],
    found: Sequence[Quantity],
    dims: Mapping[str, tuple[int, ...]],
    fpmath: str = "strict",
) -> tuple[TypedNumbers, dict[str, int]]:
    """What `--dt`, `--attr-zero-points` and `--attr-fpmath` say of a case: types, zero points, and what f32 is rounded
    to; and the masks of zero points."""
    points = {WORDS[quantity.argument]: quantity for quantity in found}
    arrays, shifts, masks = {}, {}, {}
    for name, quantity in points.items():
        channels = len(dims[name]) - 1 if name == "weights" else 1
        values = quantity.zero_points(dims[name], channels)
        arrays[f"{name}_zero_points"] = values.ravel()
        shifts[name], masks[name] = quantity.spread(values, dims[name]), quantity.mask(channels)
    return TypedNumbers(types, arrays, rounded_to(fpmath), shifts), masks


def rounded_to(fpmath: str) -> DataType:
    """What f32 may be rounded to, by the word of `--attr-fpmath`."""
    return ROUNDED.get(fpmath.partition(":")[0], dnn.f32)


def options(example: str) -> dict[str, Option]:
    """Of AttributeSettings."""
    return {
        "attr-post-ops": option(chain, f"in order: {example}, ...", joined_chain),
        "attr-scratchpad": option(one_of("library", "user"), "who owns temporary memory: library (default) or user"),
        "attr-deterministic": option(boolean, "true or false (default): results are the same",
                                     lambda value: str(value).lower()),
        "attr-denormals": option(one_of("default", *DENORMALS),
                                 "subnormal numbers: flush or keep, default as the primitive prefers"),
    }  # fmt: skip


def scaled_options(grouped: Sequence[str] = ()) -> dict[str, Option]:
    """Of ScaledSettings; grouped: what may have groups."""
    parse = quantities(tuple(WORDS), whole=False, grouped=grouped)
    return {
        **options("sum:0.5, relu:0.1, tanh, add:f32:per_oc, sum+relu"),
        "attr-scales": option(parse, "src:common:0.5+wei:per_oc+dst:common:2", joined),
        "attr-fpmath": option(fpmath_mode,
                              "what f32 may be rounded to: strict (default), bf16, f16, tf32, any, bf16x3"),
        "attr-acc-mode": option(one_of(*ACCUMULATION_MODES),
                                "what sums are of: strict (default), relaxed, any, f32, s32, f16"),
        "attr-oscale": option(lambda word: parse(f"wei:{word}"), "older words for a scale of the weights: common:0.5",
                              joined, field="scales", describes=False),
    }  # fmt: skip
