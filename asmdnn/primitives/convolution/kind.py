"""Convolution, as a kind of primitive."""

from asmdnn.primitives.convolution import (
    column_parts,
    direct,
    few_inputs,
    few_outputs,
    grouped,
    interleaved,
    kernel_rows,
    pointwise,
    pointwise_tiles,
    raster_tiles,
    reordered,
    widened_rows,
)
from asmdnn.primitives.convolution.candidates import candidates
from asmdnn.primitives.convolution.dequantized import of_numbers
from asmdnn.primitives.convolution.description import ConvolutionDesc, ConvolutionForward
from asmdnn.primitives.convolution.pairs.pair import is_pair
from asmdnn.primitives.convolution.pairs.plan import plan_phases, plan_strips
from asmdnn.primitives.convolution.reciprocals import reciprocals
from asmdnn.primitives.convolution.run_sums import run_sums
from asmdnn.primitives.convolution.scaled import scaling_src, scaling_weights
from asmdnn.primitives.convolution.winograd import plan as winograd
from asmdnn.primitives.convolution.winograd.checks import is_demanded
from asmdnn.primitives.core.any_batch import of_products
from asmdnn.primitives.core.kind import Kind, Words
from asmdnn.primitives.core.ways import EndsWhere, Entries, listed
from asmdnn.primitives.core.widening import widened
from asmdnn.primitives.products.plan import thrice
from asmdnn.primitives.reorder.fpmath import float8, rounded


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


DIRECT = (
    pointwise.plans_of_groups,
    pointwise.plan_planes,
    interleaved.plans,
    widened_rows.plans,
    grouped.plans,
    column_parts.plans,
    few_inputs.plans,
    few_outputs.plans,
    kernel_rows.plans,
    reordered.plan_words,
    direct.plan,
    reordered.plan_widened,
    reordered.plan,
    pointwise.plan_others,
    reordered.plan_packed,
    reordered.plan_both,
)
WAYS: Entries = (
    float8,  # asks those below for wider types
    reciprocals,  # asks for a post-op in place of scales of dst
    plan_strips,
    plan_phases,  # asks for each of a pair
    EndsWhere(lambda desc, attr: is_pair(attr)),
    widened(channels=1),  # asks for bf16 as f32
    thrice(),  # asks for f32 as three products of bf16
    rounded(),  # asks for f32 as bf16 or f16
    run_sums,  # asks for sums of f16
    pointwise_tiles.plans,
    raster_tiles.plans,
    *scaling_src([winograd.plans]),
    EndsWhere(lambda desc, attr: is_demanded(desc)),
    scaling_weights(direct.one_part),
    *scaling_src(DIRECT),
)
PLANNERS = (*listed(WAYS), of_numbers(direct.one_part, scaling_src(DIRECT)))
KINDS = (
    Kind(
        ConvolutionForward,
        PLANNERS,
        words,
        transformed=("weights",),
        summed=("weights",),
        candidates=candidates,
        letters=ConvolutionForward.letters,
        any_batch_refusal=of_products,
        rounds=True,
    ),
)
