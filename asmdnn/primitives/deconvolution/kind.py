"""Deconvolution, as a kind of primitive."""

from asmdnn.primitives.convolution.dequantized import of_numbers
from asmdnn.primitives.convolution.description import DeconvolutionForward
from asmdnn.primitives.convolution.kind import problem_word
from asmdnn.primitives.convolution.run_sums import with_run_sums
from asmdnn.primitives.convolution.scaled import scaling_weights, with_scales
from asmdnn.primitives.core.any_batch import of_products
from asmdnn.primitives.core.kind import Kind, Words
from asmdnn.primitives.core.widening import with_widening
from asmdnn.primitives.deconvolution import direct, few_outputs, grouped, tiles
from asmdnn.primitives.deconvolution.candidates import candidates
from asmdnn.primitives.deconvolution.parts import parts_of
from asmdnn.primitives.products.plan import with_thrice
from asmdnn.primitives.reorder.fpmath import with_float8, with_roundings


def words(desc: DeconvolutionForward) -> Words:
    return Words("deconvolution", f"alg:{desc.algorithm_name}", problem_word(desc), desc.prop_kind.value)


SCALED = tuple(map(with_scales, (grouped.plans, few_outputs.plans, direct.plans)))
SINGLE = with_thrice(*with_roundings(*with_run_sums(tiles.plans, scaling_weights(parts_of), *SCALED)))
PLANNERS = (
    *with_float8(*with_widening(*SINGLE, channels=1)),
    of_numbers(parts_of, *SCALED),
)
KINDS = (
    Kind(
        DeconvolutionForward, PLANNERS, words, candidates=candidates, letters=DeconvolutionForward.letters,
        any_batch=of_products, rounds=True, transformed=("weights",),
    ),
)  # fmt: skip
