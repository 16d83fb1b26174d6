"""Gradients of convolutions and deconvolutions, as kinds of primitives."""

from asmdnn.primitives.convolution.kind import problem_word
from asmdnn.primitives.convolution_backward import (
    data,
    grouped_weights,
    updated,
    weights,
    weights_exchanged,
    weights_pairs,
    weights_planar,
    weights_planes,
    weights_products,
    weights_repeated,
)
from asmdnn.primitives.convolution_backward.description import (
    BackwardData,
    BackwardWeights,
    ConvolutionBackwardData,
    ConvolutionBackwardWeights,
    DeconvolutionBackwardData,
    DeconvolutionBackwardWeights,
)
from asmdnn.primitives.convolution_backward.winograd import plan as winograd
from asmdnn.primitives.core.any_batch import of_f32
from asmdnn.primitives.core.kind import Kind, Words
from asmdnn.primitives.core.ways import EndsWhere, listed
from asmdnn.primitives.reorder.as_f32 import as_f32
from asmdnn.primitives.reorder.fpmath_gradients import rounded_gradient


def words(desc: BackwardData | BackwardWeights) -> Words:
    p = desc.forward()
    primitive = p.algorithm_name.partition("_")[0]
    return Words(primitive, f"alg:{p.algorithm_name}", problem_word(p), desc.prop_kind.value)


OF_F32 = (
    weights_planar.plans,
    grouped_weights.plans,
    weights_repeated.plans,
    weights_exchanged.plans,
    weights_planes.plans,
    weights.plans,
)
IN_F32, *_ = as_f32(*OF_F32)  # of tensors of several types, and of groups
WEIGHTS = (
    weights_pairs.plans,
    weights_planar.plans,
    grouped_weights.plans,
    weights_repeated.plans,
    weights_products.plans,
    IN_F32,
    weights_exchanged.plans,
    weights_planes.plans,
    weights.plans,
)
ROUNDED = rounded_gradient("src", "diff_dst")
OF_CONVOLUTIONS = (
    updated.plans,
    ROUNDED,
    winograd.plans,
    EndsWhere(lambda desc, attr: winograd.is_demanded(desc)),
    *WEIGHTS,
)
LETTERS = ConvolutionBackwardData.letters
KINDS = (
    Kind(
        ConvolutionBackwardData,
        (data.plan_convolution,),
        words,
        transformed=("weights",),
        letters=LETTERS,
        any_batch_refusal=of_f32("diff_dst", "weights"),
    ),
    Kind(
        DeconvolutionBackwardData,
        (data.plan_deconvolution,),
        words,
        transformed=("weights",),
        letters=LETTERS,
        any_batch_refusal=of_f32("diff_dst", "weights"),
    ),
    Kind(ConvolutionBackwardWeights, listed(OF_CONVOLUTIONS), words, letters=LETTERS),
    Kind(DeconvolutionBackwardWeights, listed((ROUNDED, *WEIGHTS)), words, letters=LETTERS),
)
