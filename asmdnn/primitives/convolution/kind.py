"""Convolution, as a kind of primitive."""

from asmdnn.primitives.convolution import (
    direct,
    few_inputs,
    few_outputs,
    grouped,
    kernel_rows,
    pointwise,
    pointwise_tiles,
    raster_tiles,
    reordered,
)
from asmdnn.primitives.convolution.candidates import candidates
from asmdnn.primitives.convolution.dequantized import of_numbers
from asmdnn.primitives.convolution.description import ConvolutionDesc, ConvolutionForward
from asmdnn.primitives.convolution.pairs import plan as pairs
from asmdnn.primitives.convolution.reciprocals import with_reciprocals
from asmdnn.primitives.convolution.run_sums import with_run_sums
from asmdnn.primitives.convolution.scaled import scaling_weights, with_scales
from asmdnn.primitives.convolution.winograd import plan as winograd
from asmdnn.primitives.core.any_batch import of_products
from asmdnn.primitives.core.kind import Kind, Words
from asmdnn.primitives.core.widening import with_widening
from asmdnn.primitives.products.plan import with_thrice
from asmdnn.primitives.reorder.fpmath import with_float8, with_roundings


def problem_word(desc: ConvolutionDesc) -> str:
    """`mb1_ic64oc64_ih56oh56kh3sh1dh0ph1_iw56...`"""
    (mb, ic), oc = desc.src.dims[:2], desc.dst.dims[1]
    axes = []
    for i, axis in enumerate("dhw"[5 - desc.src.ndims :]):
        sizes = {
            "i": desc.src.dims[2 + i], "o": desc.dst.dims[2 + i], "k": desc.kernel[i],
            "s": desc.strides[i], "d": desc.dilations[i], "p": desc.padding_l[i],
        }  # fmt: skip
        axes.append("".join(f"{kind}{axis}{size}" for kind, size in sizes.items()))
    groups = f"g{desc.groups}" if desc.has_groups else ""
    return f"{groups}mb{mb}_ic{ic}oc{oc}_{'_'.join(axes)}"


def words(desc: ConvolutionForward) -> Words:
    return Words("convolution", f"alg:{desc.algorithm_name}", problem_word(desc), desc.prop_kind.value)


BETWEEN = (reordered.plan_widened, reordered.plan, pointwise.plan, reordered.plan_packed, reordered.plan_both)
FEW = (few_inputs.plans, few_outputs.plans, kernel_rows.plans)
DIRECT = (grouped.plans, *FEW, reordered.plan_words, direct.plan, *BETWEEN)
SINGLE = with_widening(
    *with_thrice(
        *with_roundings(
            *with_run_sums(
                *map(winograd.unless_demanded, (pointwise_tiles.plans, raster_tiles.plans)),
                with_scales(winograd.plans),
                *map(winograd.unless_demanded, (scaling_weights(direct.one_part), *map(with_scales, DIRECT))),
            )
        )
    ),
    channels=1,
)
PLANNERS = (
    *with_float8(*with_reciprocals(*pairs.planners_of(SINGLE))),
    of_numbers(direct.one_part, *map(with_scales, DIRECT)),
)
KINDS = (
    Kind(
        ConvolutionForward,
        PLANNERS,
        words,
        transformed=("weights",),
        summed=("weights",),
        candidates=candidates,
        letters=ConvolutionForward.letters,
        any_batch=of_products,
        rounds=True,
    ),
)
